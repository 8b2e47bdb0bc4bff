//! What a controller is told about delivery-rate samples and marks.

use super::*;
use crate::options::EcnCounts;

/// draft-ietf-ccwg-bbr sec. 4.1.2.4: two segments are in flight when there is nothing to send; the third is sent later. When more
/// than these two have been delivered, the sender is no longer application-limited.
#[test]
fn an_ack_tells_whether_there_was_enough_to_send() {
    let mut bench = Bench::new();
    let supply = |bench: &mut Bench| match bench.heard()[..] {
        [.., Heard::Ack(Ack { departure, .. }, _), Heard::Round(_)] | [.., Heard::Ack(Ack { departure, .. }, _)] => {
            departure.supply
        }
        _ => panic!("it is an ACK"),
    };
    bench.send(2);
    bench.control.on_short();
    bench.send(1);
    bench.ack(ms(100), 2, &[]);
    assert_eq!(supply(&mut bench), Supply::Enough);
    bench.ack(ms(1), 3, &[]);
    assert_eq!(supply(&mut bench), Supply::Short);
    bench.send(1);
    bench.ack(ms(100), 4, &[]);
    assert_eq!(supply(&mut bench), Supply::Enough);
    // A full window is not a lack of data.
    bench.send(10);
    bench.control.on_short();
    bench.ack(ms(100), 5, &[]);
    bench.send(1);
    bench.ack(ms(100), 15, &[]);
    assert_eq!(supply(&mut bench), Supply::Enough);
}

/// All marks are counted, whatever the response to the first one is.
#[test]
fn an_ack_counts_marks() {
    let mut bench = Bench::new();
    bench.control.set_ecn(true);
    bench.send(3);
    (0..3).for_each(|_| assert!(bench.control.ecn.on_sent(true).is_some()));
    bench.heard();
    bench.now += ms(100);
    let context = bench.control.ack_context(bench.now);
    bench.board.acknowledge(3000, &context, |()| ());
    let ecn = EcnReport::Counts(Some(EcnCounts { ce: 2, ect0: 1, ect1: 0 }));
    bench.control.on_ack(bench.now, &mut bench.board, Via::Own { delay: Span::ZERO, late: Span::ZERO, ecn });
    let marked = bench.heard().iter().find_map(|heard| match heard {
        Heard::Ack(ack, _) => Some(ack.newly_marked as u32),
        _ => None,
    });
    assert_eq!(marked, Some(2));
}

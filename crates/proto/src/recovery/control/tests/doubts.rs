//! When the losses of a path cast doubt on its MTU.

use super::*;

/// Signs that a path no longer carries long datagrams: nothing of a flight arrives until the timeout, or of less until the second one; or other
/// segments arrive, but one segment is lost for the third time. Anything less casts no doubt: behind a full buffer a segment or two are lost, too.
#[test]
fn a_timeout_and_a_third_loss_are_doubts() {
    let mut bench = Bench::under("reno", "100");
    bench.send(1);
    for loss in 1..=3 {
        assert!(!bench.control.is_doubtful(), "{loss}");
        // Three segments that were sent after it arrive.
        let next = bench.board.next() / 1000;
        bench.send(3);
        bench.ack(ms(90), 0, &[(next, next + 3)]);
        assert_eq!(bench.control.tally.lost, loss);
        if loss < 3 {
            bench.resend();
        }
    }
    assert!(bench.control.take_doubt() && !bench.control.is_doubtful());

    for (segments, at_first) in [(1, false), (3, false), (4, true)] {
        let mut bench = Bench::under("reno", "100");
        bench.send(segments);
        bench.time_out();
        assert_eq!(bench.control.is_doubtful(), at_first, "{segments}");
        bench.resend();
        bench.time_out();
        assert_eq!(bench.control.tally.timeouts, 2);
        assert!(bench.control.is_doubtful(), "{segments}");
    }
}

//! Urgent datagrams. The first path has a round trip of 100 ms; windows begin with ten segments, and a datagram of 996 bytes fills one.

use super::*;
use crate::{Form, PathId, SendDatagramError, Urgency};

fn pair() -> Pair {
    let ours = || Config { form: Form::Sealed, paths_max: 4, receive_buffer: 1 << 20, ..config() };
    Pair::established(ours(), ours())
}

#[track_caller]
fn send(pair: &mut Pair, count: u64, urgency: Urgency) {
    for _ in 0..count {
        assert_eq!(pair.client.send_datagram_as(pair.now, 996, Time::NEVER, urgency), Ok::<_, SendDatagramError>(()));
    }
    pair.drain();
}

/// Runs until the server has read the datagram of this number. Returns how long that took.
#[track_caller]
fn arrives(pair: &mut Pair, number: u64) -> Span {
    let begin = pair.now;
    pair.run_until(|pair| pair.server.datagrams.iter().any(|datagram| datagram.start == number));
    pair.now - begin
}

/// Ten fill the window of a path of 20 ms. It has room again after a round trip, so an urgent one arrives after 30 ms, and not after 50 on the other path.
#[test]
fn urgent_datagram_waits_for_the_quick_path() {
    for (urgency, after) in [(Urgency::Usual, 50), (Urgency::Urgent, 30)] {
        let mut pair = pair();
        pair.join(ms(10));
        send(&mut pair, 10, Urgency::Usual);
        send(&mut pair, 1, urgency);
        assert_eq!(arrives(&mut pair, 10), ms(after), "{urgency:?}");
    }
}

/// A path of 60 ms is quicker than one of 100 ms by 20 ms one way. It is full, and its answers are due in 5 ms, but are lost: an urgent datagram leaves on the
/// other path after 20 ms, and others meanwhile.
#[test]
fn urgent_datagram_waits_no_longer_than_it_gains() {
    let mut pair = pair();
    pair.join(ms(30));
    send(&mut pair, 10, Urgency::Usual);
    pair.routes[0].down.is_cut = true;
    pair.run_for(ms(55));
    send(&mut pair, 1, Urgency::Urgent);
    send(&mut pair, 1, Urgency::Usual);
    assert_eq!(arrives(&mut pair, 11), ms(50), "it did not wait");
    assert_eq!(arrives(&mut pair, 10), ms(20), "it waited for 20 ms");
}

/// A full window on the only path, and ten that wait for it: the urgent one overtakes them.
#[test]
fn urgent_datagram_leaves_before_others() {
    let mut pair = pair();
    send(&mut pair, 20, Urgency::Usual);
    send(&mut pair, 1, Urgency::Urgent);
    pair.run_for(ms(400));
    let expected: Vec<u64> = (0..10).chain([20]).chain(10..20).collect();
    assert_eq!(pair.server.datagram_numbers(), expected);
}

/// Of two paths one is cut, and its probes are due: an urgent datagram is not risked there.
#[test]
fn urgent_datagram_is_no_probe_of_a_silent_path() {
    let mut pair = pair();
    let quick = pair.join(ms(10));
    (pair.routes[0].up.is_cut, pair.routes[0].down.is_cut) = (true, true);
    send(&mut pair, 10, Urgency::Usual);
    for number in 10..30 {
        send(&mut pair, 1, Urgency::Urgent);
        pair.run_for(ms(7));
        assert!(pair.client.connection.path(quick).is_some() && pair.client.connection.path(PathId::FIRST).is_some());
        assert!(number < 30);
    }
    pair.run_for(ms(500));
    assert_eq!(pair.server.datagram_numbers(), (10..30).collect::<Vec<_>>());
}

/// A link carries half of what both send. The short queue gets half of the link; the urgent ones that it has no room for are a third of the other
/// queue, so the others get two thirds of a half: a third.
#[test]
fn flood_of_urgent_datagrams_leaves_a_third_to_others() {
    let mut pair = pair();
    pair.up.spacing = ms(1);
    for _ in 0..400 {
        for urgency in [Urgency::Urgent, Urgency::Usual].repeat(10) {
            send(&mut pair, 1, urgency);
        }
        pair.run_for(ms(10));
    }
    // Every second number is that of an urgent one.
    let numbers = pair.server.datagram_numbers();
    let urgent = numbers.iter().filter(|number| *number % 2 == 0).count();
    let others = numbers.len() - urgent;
    assert!(urgent > 1000 && others * 2 >= urgent, "{urgent} urgent ones, {others} others");
}

/// Forty pairs of paths, drawn: 2 to 200 ms one way beside 50 ms. The quicker one has a window in flight, which is answered after a round trip, and up to nine
/// more are on the way on the other one, which has room. An urgent datagram waits if it arrives earlier by that, and only then.
#[test]
fn urgent_datagram_arrives_on_the_path_that_is_first() {
    let mut drawn = 20_261_128_u64;
    let mut draw = |least: u64, most: u64| {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (drawn >> 33) % (most - least + 1)
    };
    let mut waited = 0;
    for _ in 0..40 {
        let (other, more) = (draw(2, 200), draw(1, 9));
        let (quick, slow) = (other.min(50), other.max(50));
        let [usual, urgent] = [Urgency::Usual, Urgency::Urgent].map(|urgency| {
            let mut pair = pair();
            pair.join(ms(other));
            send(&mut pair, 10 + more, Urgency::Usual);
            send(&mut pair, 1, urgency);
            arrives(&mut pair, 10 + more)
        });
        assert_eq!((usual, urgent), (ms(slow), ms(slow.min(3 * quick))), "{other} ms, {more} more");
        waited += u32::from(urgent < usual);
    }
    assert!((5..35).contains(&waited), "both happen: {waited} of 40");
}

//! Buffers that adapt to the paths.

use proptest::prelude::*;

use super::*;
use crate::{ArrivalBuffer, Pacing};

/// FAST with fifty segments in the queue, one stream in use out of 255.
fn fast() -> Config {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "50")]).unwrap();
    Config { law, streams: 255, pacing: Pacing::Always, ..config() }
}

/// A path with an RTT of 100 ms that carries 10,000 segments a second: a thousand per round trip.
fn long_and_fat(client: Config, server: Config) -> Pair {
    let mut pair = Pair::established(client, server);
    pair.up.spacing = Span::from_micros(100);
    pair
}

/// Segments per second on one stream, measured four seconds after its start.
fn rate(pair: &mut Pair) -> f64 {
    let sid = pair.send(996 * 200_000);
    pair.run_for(ms(4000));
    let before = pair.server.received(sid);
    pair.run_for(ms(2000));
    (pair.server.received(sid) - before) as f64 / (996.0 * 2.0)
}

/// 255 streams share 500 kB. That is a fifth of what one stream with half of the buffer needs for a round trip and the law's
/// queue. The buffer may grow to 16 MB, and needs at most four times what is read in a round trip of 100 ms, plus up to 25 ms of
/// queueing in slow start; or twice as much if a stream, which has two thirds of half of the buffer, lacks two round trips of its rate.
#[test]
fn a_receive_buffer_grows_to_what_the_path_holds() {
    let small = Config { receive_buffer: 500_000, ..fast() };
    let mut pair = long_and_fat(fast(), small.clone());
    assert!(rate(&mut pair) < 4000.0);
    let mut pair = long_and_fat(fast(), Config { receive_buffer_max: 16_000_000, ..small.clone() });
    let tuned = rate(&mut pair);
    assert!((9900.0..=10_001.0).contains(&tuned), "{tuned}");
    let capacity = pair.server.connection.receiver.window.capacity();
    assert!((4_000_000..=10_000_000).contains(&capacity), "{capacity}");
    // The ceiling holds.
    let mut pair = long_and_fat(fast(), Config { receive_buffer_max: 700_000, ..small });
    assert!(rate(&mut pair) < 6000.0);
    assert_eq!(pair.server.connection.receiver.window.capacity(), 700_000);
}

/// The law wants two thousand segments in the queue. On a path of 0.4 ms no more than the arrival buffer is on its way, which is enough for
/// the rate of the link; with a single lost segment, too. A longer path is not limited.
#[test]
fn a_short_path_holds_what_the_host_can_take() {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "2000")]).unwrap();
    let client = Config { law, streams: 255, pacing: Pacing::Always, ..config() };
    let server = Config { arrival_buffer: ArrivalBuffer::new(60_000), ..client.clone() };
    let ahead = |delay: Span| {
        let mut pair = Pair::with(client.clone(), server.clone());
        (pair.up.spacing, pair.up.delay, pair.down.delay) = (Span::from_micros(100), delay, delay);
        pair.run_for(ms(150));
        let sid = pair.send(996 * 10_000);
        pair.run_for(ms(300));
        pair.lose(&[pair.up.count + 3]);
        pair.run_for(ms(300));
        let receiver = &pair.server.connection.receiver;
        (receiver.window.edge() - receiver.arrivals.end(), pair.server.received(sid) / 996)
    };
    let (short, received) = ahead(Span::from_micros(200));
    assert!((58_000..=60_000).contains(&short) && (5_500..=6_000).contains(&received), "{short} {received}");
    let (long, _) = ahead(ms(5));
    assert!(long > 1_000_000, "{long}");
}

/// What the window has announced is not taken back, so a connection begins with little where the handshake was short.
#[test]
fn first_window_of_a_short_path_is_small() {
    let server = Config { arrival_buffer: ArrivalBuffer::new(4 << 20), ..fast() };
    for (delay, ahead) in [(Span::from_micros(200), 256 << 10), (ms(5), u64::MAX)] {
        let mut pair = Pair::with(fast(), server.clone());
        (pair.up.delay, pair.down.delay) = (delay, delay);
        pair.run_for(ms(50));
        let window = &pair.server.connection.receiver.window;
        assert_eq!(window.ahead(), ahead);
        assert!(window.edge() <= 1 + ahead.min(window.capacity()), "{}", window.edge());
    }
}

/// Two connections of one socket, whose peers send at once, have half of what it holds each; when one has ended, the other has all.
#[test]
fn connections_of_a_socket_share_what_it_holds() {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "2000")]).unwrap();
    let client = Config { law, streams: 255, pacing: Pacing::Always, ..config() };
    let server = Config { arrival_buffer: ArrivalBuffer::new(60_000), ..client.clone() };
    let mut pairs = [(); 2].map(|()| Pair::with(client.clone(), server.clone()));
    for pair in &mut pairs {
        (pair.up.spacing, pair.up.delay, pair.down.delay) =
            (Span::from_micros(100), Span::from_micros(200), Span::from_micros(200));
        pair.run_for(ms(150));
    }
    let ahead = |pair: &Pair| {
        let receiver = &pair.server.connection.receiver;
        receiver.window.edge() - receiver.arrivals.end()
    };
    pairs[0].send(996 * 20_000);
    pairs[1].send(996 * 1_500);
    let mut widths = vec![];
    for _ in 0..95 {
        pairs.iter_mut().for_each(|pair| pair.run_for(ms(10)));
        widths.push(pairs.each_ref().map(ahead));
    }
    // The second sends for 0.3 s.
    assert!(widths[1..25].iter().flatten().all(|width| (28_000..=30_000).contains(width)), "{widths:?}");
    assert!(widths[85..].iter().all(|[first, _]| (58_000..=60_000).contains(first)), "{widths:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Paths of 0.02 to 0.8 ms, links of 2,000 to 20,000 segments a second, hosts that hold 4 to 100 segments, some of which are lost: all arrive,
    /// and with half of the rate at least that the link, or the hosts for each round trip, allow.
    #[test]
    fn any_short_path_goes_on_with_what_the_host_holds(
        delay in 10_u64..400,
        spacing in 50_u64..500,
        held in 4_u64..100,
        lost in proptest::collection::vec(10_u64..1_000, 0..20),
    ) {
        let (delay, spacing) = (Span::from_micros(delay), Span::from_micros(spacing));
        let mut pair = Pair::with(fast(), Config { arrival_buffer: ArrivalBuffer::new(held * 1_000), ..fast() });
        (pair.up.spacing, pair.up.delay, pair.down.delay) = (spacing, delay, delay);
        pair.run_for(ms(50));
        pair.lose(&lost);
        let sid = pair.send(996 * 1_000);
        let took = pair.run_until_received(sid, 996 * 1_000).as_secs_f64();
        // An ACK may wait for a second segment.
        let round = 2.0 * delay.as_secs_f64() + 3.0 * spacing.as_secs_f64();
        let rate = (1.0 / spacing.as_secs_f64()).min(held as f64 / round);
        // The start, and a probe timeout for each loss at worst.
        let most = 2.0 * 1_000.0 / rate + 0.1 + 0.05 * lost.len() as f64;
        prop_assert!(took < most, "{} s instead of {}", took, most);
    }
}

/// A new route of 10 ms: ten seconds later nothing is limited any more. Both ends send, so that both have RTTs.
#[test]
fn a_path_that_becomes_longer_is_not_limited() {
    let server = Config { arrival_buffer: ArrivalBuffer::new(60_000), ..fast() };
    let mut pair = Pair::with(fast(), server);
    (pair.up.delay, pair.down.delay) = (Span::from_micros(200), Span::from_micros(200));
    pair.run_for(ms(50));
    let talk = |pair: &mut Pair| {
        let sid = pair.send(0);
        for _ in 0..30 {
            pair.client.write(sid, 996);
            pair.server.write(sid, 996);
            pair.run_for(ms(50));
        }
        pair.server.connection.receiver.window.ahead()
    };
    assert_eq!(talk(&mut pair), 60_000);
    (pair.up.delay, pair.down.delay) = (ms(5), ms(5));
    assert_eq!(talk(&mut pair), 60_000);
    pair.run_for(ms(9_000));
    assert_eq!(talk(&mut pair), u64::MAX);
}

/// If the application never reads, the buffer keeps its initial size, and is filled.
#[test]
fn a_receive_buffer_that_is_not_read_stays_as_it_is() {
    let mut pair = long_and_fat(fast(), Config { receive_buffer: 500_000, receive_buffer_max: 16_000_000, ..fast() });
    pair.server.is_reading = false;
    let sid = pair.send(996 * 200_000);
    pair.run_for(ms(4000));
    assert_eq!((pair.server.received(sid), pair.server.connection.receiver.window.capacity()), (0, 500_000));
    assert!(pair.server.connection.buffered() < 500_000);
}

/// 10,000 segments a second are a hundred in 10 ms. A stream with a send buffer of ten segments may have a hundred waiting once
/// the path's rate is known.
#[test]
fn a_send_buffer_holds_what_leaves_while_its_application_sleeps() {
    for (max, least, most) in [(0, 10_000, 10_000), (1 << 20, 95_000, 101_000), (50_000, 50_000, 50_000)] {
        let client = Config { send_buffer: 10_000, send_buffer_max: max, ..fast() };
        let mut pair = long_and_fat(client, fast());
        pair.send(996 * 200_000);
        pair.run_for(ms(4000));
        let limit = pair.client.connection.sender.outbound.limit();
        assert!((least..=most).contains(&limit), "{limit}");
    }
}

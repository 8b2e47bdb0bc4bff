//! Buffers that follow the paths.

use super::*;
use crate::Pacing;

/// FAST, with fifty segments in the queue, on one stream of 255.
fn fast() -> Config {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "50")]).unwrap();
    Config { law, streams: 255, pacing: Pacing::Always, ..config() }
}

/// A way of 100 ms there and back that carries 10,000 segments a second: a thousand of them in a round trip.
fn long_and_fat(client: Config, server: Config) -> Pair {
    let mut pair = Pair::established(client, server);
    pair.up.spacing = Span::from_micros(100);
    pair
}

/// Segments a second on one stream, four seconds after its beginning.
fn rate(pair: &mut Pair) -> f64 {
    let sid = pair.send(996 * 200_000);
    pair.run_for(ms(4000));
    let before = pair.server.received(sid);
    pair.run_for(ms(2000));
    (pair.server.received(sid) - before) as f64 / (996.0 * 2.0)
}

/// 255 streams share 500 kB, a fifth of what a round trip and the law's queue take for a stream that has half. It may grow to 16 MB, and needs no
/// more than four times what is read in a round trip, of 100 ms and up to 25 that slow start makes wait.
#[test]
fn a_receive_buffer_grows_to_what_the_path_holds() {
    let small = Config { receive_buffer: 500_000, ..fast() };
    let mut pair = long_and_fat(fast(), small.clone());
    assert!(rate(&mut pair) < 4000.0);
    let mut pair = long_and_fat(fast(), Config { receive_buffer_max: 16_000_000, ..small.clone() });
    let tuned = rate(&mut pair);
    assert!((9900.0..=10_001.0).contains(&tuned), "{tuned}");
    let capacity = pair.server.connection.receiver.window.capacity();
    assert!((4_000_000..=5_000_000).contains(&capacity), "{capacity}");
    // A ceiling is one.
    let mut pair = long_and_fat(fast(), Config { receive_buffer_max: 700_000, ..small });
    assert!(rate(&mut pair) < 6000.0);
    assert_eq!(pair.server.connection.receiver.window.capacity(), 700_000);
}

/// Who reads nothing has the buffer of the beginning filled, and no more.
#[test]
fn a_receive_buffer_that_is_not_read_stays_as_it_is() {
    let mut pair = long_and_fat(fast(), Config { receive_buffer: 500_000, receive_buffer_max: 16_000_000, ..fast() });
    pair.server.is_reading = false;
    let sid = pair.send(996 * 200_000);
    pair.run_for(ms(4000));
    assert_eq!((pair.server.received(sid), pair.server.connection.receiver.window.capacity()), (0, 500_000));
    assert!(pair.server.connection.buffered() < 500_000);
}

/// 10,000 segments a second are a hundred in 10 ms: a stream that may have ten waiting may have these as well, once the path is known.
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

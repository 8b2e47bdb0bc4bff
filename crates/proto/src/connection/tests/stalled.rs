//! Streams whose reader stands still hold little, and stop nobody else.

use proptest::prelude::*;

use super::*;
use crate::Form;

/// A path of 20 ms with this time for a segment, FAST with twenty segments in the queue, and these buffers.
fn path(spacing: Span, buffers: Config) -> Pair {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "20")]).unwrap();
    let each = Config { law, form: Form::Sealed, ..buffers };
    let mut pair = Pair::established(each.clone(), each);
    pair.up.spacing = spacing;
    (pair.up.delay, pair.down.delay) = (ms(10), ms(10));
    pair
}

/// Opens a stream with endless data, of which the server reads `read` bytes and no more.
fn stall(pair: &mut Pair, read: u64) -> Sid {
    let sid = pair.client.open();
    if read == 0 {
        pair.server.neglected.insert(sid);
        pair.client.write_now(sid, 1 << 30);
        return sid;
    }
    pair.client.write(sid, 1 << 40);
    pair.run_until(|pair| pair.server.received(sid) >= read);
    pair.server.neglected.insert(sid);
    sid
}

/// The segments that a stream delivers in two seconds, after one in which it begins.
fn rate(pair: &mut Pair) -> u64 {
    let sid = pair.client.open();
    pair.client.write(sid, 1 << 40);
    pair.run_for(Span::from_secs(1));
    let before = pair.server.received(sid);
    pair.run_for(Span::from_secs(2));
    let rate = (pair.server.received(sid) - before) / 996;
    pair.client.reset(sid, 0).unwrap();
    pair.run_for(ms(200));
    rate
}

/// The buffers of the network library, and 4,000 streams of which nothing is read: each holds 32 kB or 2 kB at the server, and
/// 16 kB more at the client. Another stream has the path for itself.
#[test]
fn four_thousand_unread_streams_slow_no_other() {
    let buffers =
        Config { receive_buffer: 32 << 20, receive_buffer_max: 512 << 20, send_memory: 512 << 20, ..config() };
    let mut pair = path(Span::ZERO, Config { streams: Sid::STREAMS_MAX, ..buffers });
    (0..4000).for_each(|_| _ = stall(&mut pair, 0));
    pair.run_for(ms(500));
    assert_eq!(pair.server.connection.buffered(), 255 * (32 << 10) + 3745 * (2 << 10));
    assert_eq!(pair.client.stories[4000].bytes, (2 << 10) + (512 << 20) / 8 / 4080);
    pair.up.spacing = ms(1);
    let rate = rate(&mut pair);
    assert!(rate >= 2000 * 9 / 10, "{rate} of 2000");
}

/// 25,000 segments in two seconds, which are 250 kB in a round trip. Streams are read at that rate, one after another, and then
/// stand still: each keeps what it had, four round trips, as long as there is enough.
#[test]
fn streams_that_were_read_fast_and_stop_leave_another_its_rate() {
    let buffers = Config { receive_buffer: 4 << 20, receive_buffer_max: 64 << 20, ..config() };
    let mut pair = path(Span::from_micros(80), Config { streams: 64, ..buffers });
    for count in [1, 11, 12] {
        (0..count).for_each(|_| _ = stall(&mut pair, 2_000_000));
        pair.run_for(ms(300));
        let rate = rate(&mut pair);
        assert!(rate >= 25_000 * 9 / 10, "{rate} of 25,000 beside {}", pair.server.neglected.len());
    }
    let held = pair.server.connection.buffered() / 24;
    assert!(held <= 4 * 300_000, "{held} bytes a stream");
}

/// What waits at the client for 40 streams without credit does not hold back five bytes on another.
#[test]
fn forty_streams_without_credit_let_a_write_of_five_bytes_pass() {
    let buffers = Config { send_buffer: 1 << 20, send_memory: 16 << 20, ..config() };
    let mut pair = path(Span::from_micros(80), Config { streams: 64, ..buffers });
    (0..40).for_each(|_| _ = stall(&mut pair, 100_000));
    pair.run_for(ms(500));
    let sid = pair.client.open();
    pair.client.write_now(sid, 5);
    assert_eq!(pair.client.stories.last().map(|story| story.bytes), Some(5));
    pair.drain();
    pair.run_until_received(sid, 5);
}

/// What an application does to a stream, chosen by its index among the open ones.
#[derive(Clone, Copy, Debug)]
enum Change {
    Begin,
    Stall(usize),
    GoOn(usize),
    Reset(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Begin),
        3 => any::<usize>().prop_map(Change::Stall),
        2 => any::<usize>().prop_map(Change::GoOn),
        1 => any::<usize>().prop_map(Change::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Streams with endless data begin, stand still, go on and end at random. A stream that is read gets data all the time: none
    /// waits for what another one holds, at either end, in a buffer that grows or does not. (The pair checks after each step that
    /// what is granted and unread fits the buffer.)
    #[test]
    fn no_stream_that_is_read_waits_for_one_that_is_not(
        changes in prop::collection::vec((change(), 1u64..400), 1..60),
        receive_buffer_max in prop_oneof![Just(0), Just(8u64 << 20)],
    ) {
        let buffers = Config { receive_buffer: 1 << 20, receive_buffer_max, send_memory: 4 << 20, ..config() };
        let mut pair = path(ms(4), Config { streams: 48, send_buffer: 1 << 18, ..buffers });
        let mut open: Vec<Sid> = vec![];
        for (change, pause) in changes {
            let pick = |index: usize| open.get(index.checked_rem(open.len()).unwrap_or(0)).copied();
            match change {
                Change::Begin => {
                    let Ok(sid) = pair.client.try_open() else { continue };
                    pair.client.write(sid, 1 << 40);
                    open.push(sid);
                }
                Change::Stall(index) => pair.server.neglected.extend(pick(index)),
                Change::GoOn(index) => pick(index).iter().for_each(|sid| _ = pair.server.neglected.remove(sid)),
                Change::Reset(index) => if let Some(sid) = pick(index) {
                    pair.client.reset(sid, 0).unwrap();
                    pair.server.neglected.remove(&sid);
                    open.retain(|other| *other != sid);
                },
            }
            pair.run_for(ms(pause));
            let read: Vec<_> = open.iter().filter(|sid| !pair.server.neglected.contains(sid)).copied().collect();
            let before: Vec<u64> = read.iter().map(|&sid| pair.server.received(sid)).collect();
            pair.run_for(ms(800));
            for (sid, before) in read.into_iter().zip(before) {
                prop_assert!(pair.server.received(sid) > before, "stream {sid} stands still");
            }
        }
    }
}

//! In steady state the engine allocates no memory.

mod loopback;

use anabranch_cc::{Settings, registry};
use anabranch_proto::{Address, Config, Connection, Form, FourTuple, Secret, SeqNumber, Sid, Transmit, Virtual};
use anabranch_units::Time;
use loopback::Loopback;

#[track_caller]
fn allocations(streams: u8, paths: u8, lose_each: u64, segments: u64) -> u64 {
    let mut loopback = Loopback::new(streams, paths, lose_each, 1);
    // By now everything with a limit has reached its largest size.
    loopback.run(600_000);
    // Losses sometimes halve the window.
    let (flight, _) = loopback.flight();
    assert!(flight > if lose_each == 0 { 900.0 } else { 250.0 }, "the path is full: {flight}");
    allocation_counter::measure(|| {
        loopback.run(segments);
    })
    .count_total
}

#[test]
fn a_stream_costs_no_allocation_per_segment() {
    assert_eq!(allocations(1, 1, 0, 100_000), 0);
}

#[test]
fn nor_do_many_streams() {
    assert_eq!(allocations(200, 1, 0, 100_000), 0);
}

/// The two paths overtake each other all the time, so there is nearly always a hole.
#[test]
fn nor_do_two_paths() {
    assert_eq!(allocations(200, 2, 0, 100_000), 0);
}

/// One loss in a thousand, with 1000 segments per round trip: there is nearly always a hole.
#[test]
fn nor_do_holes() {
    assert_eq!(allocations(20, 1, 1000, 100_000), 0);
}

/// What a receiver stores from the first segment of a stream on, however far its SID is from the others: at most what the first
/// 255 SIDs take.
#[test]
fn one_segment_makes_its_receiver_keep_little() {
    let law = Settings::default_for(registry::find("anabranch").expect("it is the default"));
    let streams = Sid::STREAMS_MAX;
    let config = Config { form: Form::Sealed, streams, receive_buffer: 32 << 20, ..Config::new(law) };
    let end = |address| Address { address, port: 0 };
    let tuple = FourTuple { local: end(1), remote: end(2) };
    let secret = || Secret::predictable(SeqNumber(0));
    let now = Time::ZERO;
    let bytes_kept = |name: u16| {
        let mut client = Connection::<Virtual>::connect(now, config.clone(), tuple, secret()).expect("it can work");
        let mut server = Connection::listen(now, config.clone(), tuple.reversed(), secret()).expect("it can work");
        let next = |from: &mut Connection<Virtual>| from.poll_transmit(now).map(|Transmit { segment, .. }| segment);
        while let Some(segment) = next(&mut client) {
            server.handle_segment(now, tuple.reversed(), segment);
            while let Some(segment) = next(&mut server) {
                client.handle_segment(now, tuple, segment);
            }
        }
        while client.streams().open().expect("it was granted").number() < name {}
        client.streams().write(Sid::new(name), &mut Virtual(100)).expect("it is open");
        let segment = next(&mut client).expect("there is something to send");
        let kept = allocation_counter::measure(|| server.handle_segment(now, tuple.reversed(), segment)).bytes_max;
        assert!(server.streams().is_readable(Sid::new(name)), "{name}");
        kept
    };
    let [first, last_of_a_byte, next, last] = [1, 255, 256, streams].map(bytes_kept);
    assert!(first < 2000, "{first} bytes");
    assert!(last_of_a_byte < 50_000, "{last_of_a_byte} bytes");
    assert!(next < 10_000 && last < 20_000, "{next} and {last} bytes");
}

//! In steady state the engine allocates no memory.

mod loopback;

use anabranch_cc::{Settings, registry};
use anabranch_proto::{
    Address, Config, Connection, Content, Flags, Form, FourTuple, Header, Options, Payload, Secret, Segment, SeqNumber,
    Sid, Ssn, StreamBuffer, StreamHeader, Transmit, Virtual,
};
use anabranch_units::Time;
use bytes::Bytes;
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

/// Two engines with these settings, connected, and the addresses of the client.
fn connected<P: Payload>(config: &Config) -> (Connection<P>, Connection<P>, FourTuple) {
    let end = |address| Address { address, port: 0 };
    let tuple = FourTuple { local: end(1), remote: end(2) };
    let secret = || Secret::predictable(SeqNumber(0));
    let now = Time::ZERO;
    let mut client = Connection::connect(now, config.clone(), tuple, secret()).expect("it can work");
    let mut server = Connection::listen(now, config.clone(), tuple.reversed(), secret()).expect("it can work");
    while let Some(segment) = next(&mut client) {
        server.handle_segment(now, tuple.reversed(), segment);
        while let Some(segment) = next(&mut server) {
            client.handle_segment(now, tuple, segment);
        }
    }
    (client, server, tuple)
}

fn next<P: Payload>(from: &mut Connection<P>) -> Option<Segment<P>> {
    from.poll_transmit(Time::ZERO).map(|Transmit { segment, .. }| segment)
}

/// A hostile peer sends segments of one byte above a hole: in order, every other one, backwards, and to all streams in turn. The limit
/// is the documented one, and what pools keep free.
#[test]
fn tiny_segments_out_of_order_hold_what_is_documented() {
    const BUFFER: u64 = 4 << 20;
    const COUNT: u64 = 200_000;
    const STREAMS: u64 = Sid::STREAMS_MAX as u64;
    let law = Settings::default_for(registry::find("anabranch").expect("it is the default"));
    let config = Config {
        form: Form::Sealed,
        streams: Sid::STREAMS_MAX,
        receive_buffer: BUFFER,
        receive_buffer_max: BUFFER,
        stream_buffer: StreamBuffer::Bytes(BUFFER),
        ..Config::new(law)
    };
    // 256 free blocks each of held data (40 B an entry) and of ranges (24 B), of 128 entries.
    let free = 256 * 128 * (40 + 24);
    let most = BUFFER + (1 << 20) + free;
    /// The number of a segment in the sequence space, its stream, and its number there.
    type Order = fn(u64) -> (u64, u64, u64);
    let orders: [(&str, Order); 4] = [
        ("in order", |number| (1 + number, 1, 1 + number)),
        ("every other", |number| (2 + 2 * number, 1, 2 + 2 * number)),
        ("backwards", |number| (2 * (COUNT - number), 1, 2 * (COUNT - number))),
        ("all streams", |number| (2 + 2 * number, 1 + number % STREAMS, 1 + 2 * (number / STREAMS))),
    ];
    for (name, order) in orders {
        let (mut client, mut server, tuple) = connected::<Bytes>(&config);
        let sid = client.streams().open().expect("it was granted");
        client.streams().write(sid, &mut Bytes::from_static(b"a")).expect("it is open");
        let first = next(&mut client).expect("there is something to send");
        let header = Header { flags: Flags::ACK | Flags::MSE, window: 1000, ..first.header };
        let kept = allocation_counter::measure(|| {
            for (place, sid, ssn) in (0..COUNT).map(order) {
                // A datagram of its own, as a driver would hand it over.
                let content = Content::Data(Bytes::from(vec![7; 1]));
                let stream_header = Some(StreamHeader { sid: Sid::new(sid as u16), ssn: Ssn::of(ssn) });
                let header = Header { seq: header.seq.plus(5 * place), ..header };
                let options = Options::default();
                let segment = Segment { header, options, stream_header, content };
                server.handle_segment(Time::ZERO, tuple.reversed(), segment);
                while next(&mut server).is_some() {}
            }
        });
        // Common allocators take 16 bytes more for each allocation, or round up to 32.
        let held = (kept.bytes_current + 16 * kept.count_current) as u64;
        let pieces = server.buffered();
        println!("{name}: {held} bytes for {pieces} segments");
        assert!(pieces > 500, "{name}: {pieces} segments are held");
        assert!(held <= most, "{name}: {held} bytes for {pieces} segments, more than {most}");
    }
}

/// What a receiver stores from the first segment of a stream on, however far its SID is from the others: at most what the first
/// 255 SIDs take.
#[test]
fn one_segment_makes_its_receiver_keep_little() {
    let law = Settings::default_for(registry::find("anabranch").expect("it is the default"));
    let streams = Sid::STREAMS_MAX;
    let config = Config { form: Form::Sealed, streams, receive_buffer: 32 << 20, ..Config::new(law) };
    let bytes_kept = |name: u16| {
        let (mut client, mut server, tuple) = connected::<Virtual>(&config);
        while client.streams().open().expect("it was granted").number() < name {}
        client.streams().write(Sid::new(name), &mut Virtual(100)).expect("it is open");
        let segment = next(&mut client).expect("there is something to send");
        let kept =
            allocation_counter::measure(|| server.handle_segment(Time::ZERO, tuple.reversed(), segment)).bytes_max;
        assert!(server.streams().is_readable(Sid::new(name)), "{name}");
        kept
    };
    let [first, last_of_a_byte, next, last] = [1, 255, 256, streams].map(bytes_kept);
    assert!(first < 2000, "{first} bytes");
    assert!(last_of_a_byte < 50_000, "{last_of_a_byte} bytes");
    assert!(next < 10_000 && last < 20_000, "{next} and {last} bytes");
}

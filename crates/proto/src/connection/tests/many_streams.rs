//! More than 255 streams.

use super::*;
use crate::{Form, Header, Read, StreamHeader};

fn many() -> Config {
    Config { form: Form::Sealed, streams: Sid::STREAMS_MAX, receive_buffer: 32 << 20, ..config() }
}

fn granted(client: Config, server: Config) -> [Option<u16>; 2] {
    let pair = Pair::established(client, server);
    [&pair.client, &pair.server].map(|end| match end.events[..] {
        [Event::Established { streams }] => streams,
        ref events => panic!("{events:?}"),
    })
}

/// Both ends must support it, in the sealed form. The number is rounded up to a multiple of 16.
#[test]
fn many_streams_are_agreed_on() {
    let few = Config { streams: 200, ..many() };
    let tcp = Config { form: Form::Tcp, ..many() };
    let some = Config { streams: 1000, ..many() };
    assert_eq!(granted(many(), many()), [Some(4080); 2]);
    assert_eq!(granted(many(), some.clone()), [Some(1008); 2]);
    assert_eq!(granted(some, many()), [Some(1008); 2]);
    assert_eq!(granted(many(), few.clone()), [Some(200); 2]);
    assert_eq!(granted(few, many()), [Some(200); 2]);
    assert_eq!(granted(tcp.clone(), tcp), [Some(255); 2]);
}

/// Each stream has one byte more than the one before it, and all are open at the same time. A SID takes no memory before its
/// first use.
#[test]
fn four_thousand_streams_at_a_time() {
    let mut pair = Pair::established(many(), many());
    let sids: Vec<Sid> = (0..4080).map(|_| pair.client.open()).collect();
    assert!(sids.iter().enumerate().all(|(index, sid)| usize::from(sid.number()) == index + 1));
    assert_eq!(pair.client.try_open(), Err(OpenError::NoneLeft));
    for &sid in &sids {
        pair.client.write(sid, 1000 + u64::from(sid.number()));
    }
    pair.run_for(Span::from_secs(10));
    for &sid in &sids {
        assert_eq!(pair.server.received(sid), 1000 + u64::from(sid.number()), "{sid}");
        pair.client.finish(sid).unwrap();
    }
    pair.run_for(Span::from_secs(5));
    assert!(sids.iter().all(|&sid| pair.server.ended(sid) == 1));
    // SIDs are reused in order, the first 255 first.
    assert_eq!([pair.client.open(), pair.client.open()].map(Sid::number), [1, 2]);
}

/// 8 MB are for the first 255 streams and 8 MB for all others, so 32 kB and 2 kB each. Nothing is read, and everything that
/// arrives fits the buffer.
#[test]
fn further_streams_begin_with_less_credit() {
    let mut pair = Pair::established(many(), many());
    pair.server.is_reading = false;
    let sids: Vec<Sid> = (0..300).map(|_| pair.client.open()).collect();
    sids.iter().for_each(|&sid| pair.client.write(sid, 100_000));
    pair.run_for(Span::from_secs(10));
    for &sid in &sids {
        let mut came = 0;
        while let Ok(Read::Data(data)) = pair.server.connection.streams().read(sid, u32::MAX) {
            came += data.len;
        }
        assert_eq!(came, if sid.number() <= 255 { 32_768 } else { 2048 }, "{sid}");
    }
}

/// Segments with a SID beyond the agreed number are ignored, and cost no memory.
#[test]
fn a_name_that_there_is_not_is_as_good_as_lost() {
    let mut pair = Pair::established(Config { streams: 300, ..many() }, many());
    pair.transfer(10_000);
    let segment = pair.up.data().last().unwrap().1;
    for name in [305, 4080, 4093] {
        let stream_header = Some(StreamHeader { sid: Sid::new(name), ssn: crate::Ssn::of(0) });
        let seq = pair.client_at(pair.client.connection.sent() + 1);
        let forged = Segment { header: Header { seq, ..segment.header }, stream_header, ..segment };
        let tuple = pair.server.tuple;
        pair.server.connection.handle_segment(pair.now, tuple, forged);
        pair.run_for(ms(500));
        assert!(!pair.server.connection.has_arrived(pair.client.connection.sent() + 1), "{name}");
    }
    assert_eq!(pair.states(), (State::Established, State::Established));
}

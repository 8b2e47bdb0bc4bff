//! A hostile peer that sends anything: nothing panics, buffers keep their limits, and never more is delivered than was sent.

use proptest::prelude::*;

use super::*;
use crate::testing::End;
use crate::{
    AcknowledgementOptions, Features, HandshakeOptions, Header, Multistream, Options, PathOption, Record, RecordList,
    SackBlocks, Ssn, StreamHeader, Timestamps,
};

/// A segment whose numbers are relative to what the victim would expect.
#[derive(Clone, Debug)]
struct Forged {
    seq: i32,
    ack: i32,
    flags: u8,
    window: u16,
    blocks: Vec<(i32, u16)>,
    stream: Option<(u8, i32)>,
    content: Content<Marked>,
    is_handshake: bool,
    wait: u64,
}

fn near() -> impl Strategy<Value = i32> {
    prop_oneof![6 => Just(0), 6 => -3000..3000i32, 2 => (-20..20i32).prop_map(|count| count * 1000), 1 => any::<i32>()]
}

fn content() -> impl Strategy<Value = Content<Marked>> {
    let data = (0..2000u32).prop_map(|len| Content::Data(Marked { tag: 0, start: 0, len }));
    let record = (0..5, any::<u8>(), 0..20u64, any::<u32>()).prop_map(|(kind, sid, ssn, limit): (_, _, u64, u32)| {
        let (every, sid, ssn, code) = (sid, Sid::new(sid.into()), Ssn::of(ssn), limit as u16);
        match kind {
            0 => Record::Finish { sid, end: ssn },
            1 => Record::Reset { sid, end: ssn, code },
            2 => Record::Stop { sid, expected: ssn, code },
            3 => Record::AcknowledgeEach { every, delay: code },
            _ => Record::MaxStreamData { sid, limit, over: every },
        }
    });
    let records = prop::collection::vec(record, 1..=RecordList::MAX).prop_map(|records| {
        let mut list = RecordList::from(records[0]);
        records[1..].iter().for_each(|record| list.push(*record).unwrap());
        Content::Control(list)
    });
    prop_oneof![2 => Just(Content::Nothing), 4 => data, 1 => records]
}

fn forged() -> impl Strategy<Value = Forged> {
    let blocks = prop::collection::vec((near(), 1..5000u16), 0..4);
    // The last two are those of datagrams and voids.
    let stream = prop::option::weighted(0.7, (0..8u8, -3..6i32));
    let flags = prop_oneof![6 => Just(0x10u8), 2 => Just(0x11), 1 => any::<u8>()];
    (near(), near(), flags, any::<u16>(), blocks, stream, content(), any::<bool>(), 0..300u64).prop_map(
        |(seq, ack, flags, window, blocks, stream, content, is_handshake, wait)| Forged {
            seq,
            ack,
            flags,
            window,
            blocks,
            stream,
            content,
            is_handshake,
            wait,
        },
    )
}

/// Builds the segment. Its numbers are relative to those in the victim's last segment.
fn segment(forged: Forged, last: &Header) -> Segment<Marked> {
    let plus = |number: SeqNumber, by: i32| number.plus(by as u64);
    let flag = |bit: u8, flag: Flags| if forged.flags & bit != 0 { flag } else { Flags::default() };
    let flags = [(1, Flags::FIN), (2, Flags::SYN), (4, Flags::RST), (16, Flags::ACK), (32, Flags::MSE)];
    let timestamps = Timestamps { value: forged.wait as u32, echo: forged.flags.into() };
    let mut sack = SackBlocks::default();
    for (left, len) in forged.blocks {
        sack.push(plus(last.seq, left), plus(last.seq, left).plus(len.into()));
    }
    let multistream =
        Some(Multistream { version: 2, streams: forged.flags, features: Features(forged.flags), credit: forged.flags });
    let handshake = HandshakeOptions {
        mss: Some(forged.window),
        window_scale: Some(forged.flags),
        sack_permitted: true,
        multistream,
        timestamps: Some(timestamps),
    };
    let header_of = |(sid, ssn): (u8, i32)| {
        let sid = match sid {
            6 => Sid::VOID,
            7 => Sid::DATAGRAM,
            sid => Sid::new(sid.into()),
        };
        // Voids are of all sizes, and most are too long.
        StreamHeader { sid, ssn: Ssn::of(if sid == Sid::VOID { 300_u64.wrapping_mul(ssn as u64) } else { ssn as u64 }) }
    };
    let stream_header = forged.stream.map(header_of);
    let stream_header = stream_header.filter(|header| header.sid == Sid::VOID || forged.content != Content::Nothing);
    Segment {
        header: Header {
            seq: plus(last.ack, forged.seq),
            ack: plus(last.seq, forged.ack),
            flags: flags.iter().fold(Flags::default(), |all, (bit, one)| all | flag(*bit, *one)),
            window: forged.window,
            ..Header::default()
        },
        options: if forged.is_handshake {
            Options::Handshake(handshake)
        } else if forged.flags & 128 != 0 {
            Options::Path(PathOption::Challenge(forged.wait.to_be_bytes()))
        } else {
            let expected = forged.stream.map(header_of);
            let options = AcknowledgementOptions::new(sack, expected);
            let is_timed = forged.flags & 64 != 0;
            Options::Acknowledgement(if is_timed { options.with_timestamps(timestamps) } else { options })
        },
        stream_header,
        content: forged.content,
    }
}

/// Reads all data without checking it: the peer never wrote anything sensible.
fn read_all(end: &mut End) -> u64 {
    let mut bytes = 0;
    for sid in (1..=6).map(Sid::new) {
        while let Ok(crate::Read::Data(payload)) = end.connection.streams().read(sid, 700) {
            bytes += u64::from(payload.len);
        }
    }
    bytes
}

proptest! {
    #[test]
    fn hostile_segments_break_no_engine(
        forgeries in prop::collection::vec(forged(), 1..60),
        established in any::<bool>(),
        streams in 0..6u16,
        is_reading in any::<bool>(),
        timestamps in any::<bool>(),
        is_listening in any::<bool>(),
        is_sealed in any::<bool>(),
    ) {
        let form = if is_sealed { crate::Form::Sealed } else { crate::Form::Tcp };
        let base = Config { form, datagram_receive_buffer: 5000, ..config() };
        let victim = Config { streams, timestamps, receive_buffer: 20_000, ..base.clone() };
        let mut pair = if established { Pair::established(victim, Config { timestamps, ..base }) } else { Pair::with(victim, base) };
        let sid = if established && streams > 0 { pair.client.open() } else { Sid::PLAIN };
        if established {
            pair.client.write_now(sid, 50_000);
        }
        // Both wires are cut: the client receives only forged segments.
        (pair.up.is_cut, pair.down.is_cut) = (true, true);
        let mut now = pair.now;
        let mut last = Header::default();
        let mut taken = 0;
        for forgery in forgeries {
            let wait = ms(forgery.wait);
            let connection = &mut pair.client.connection;
            while let Some(transmit) = connection.poll_transmit(now) {
                last = transmit.segment.header;
            }
            let tuple = pair.client.tuple;
            connection.handle_segment(now, tuple, segment(forgery, &last));
            while connection.poll_transmit(now).is_some() {}
            while is_listening && connection.poll_event().is_some() {}
            connection.check();
            let until = now + wait;
            while connection.poll_timeout() <= until {
                now = now.max(connection.poll_timeout());
                connection.handle_timeout(now);
                while connection.poll_transmit(now).is_some() {}
            }
            now = until;
            if is_reading {
                taken += read_all(&mut pair.client);
            }
        }
        taken += read_all(&mut pair.client);
        pair.client.connection.check();
        // Nothing beyond the window was accepted: the buffer, and what was read from it, or was a datagram or the void of one.
        let datagrams = pair.client.connection.datagram_stats();
        let freed = 2004 * datagrams.received + 1004 * datagrams.missed;
        prop_assert!(pair.client.connection.received() <= 1 + 20_000 + taken + freed + 36 * 60 + 1);
        prop_assert!(pair.client.connection.receiver.datagrams.weight() <= 5000);
    }
}

/// A peer opens, fills, finishes and stops all possible streams, a thousand times, and the application does not react: what waits
/// is bounded.
#[test]
fn provoked_answers_do_not_accumulate() {
    let victim = Config { streams: 255, receive_buffer: 1 << 20, ..config() };
    let mut pair = Pair::established(victim.clone(), victim);
    let sids: Vec<Sid> = (1..=255).map(|_| pair.client.open()).collect();
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    let (now, tuple) = (pair.now, pair.client.tuple);
    let connection = &mut pair.client.connection;
    // What an acknowledgement of the victim would tell the peer.
    connection.acks.demand_pure();
    let answer = connection.poll_transmit(now).expect("an acknowledgement is due").segment.header;
    let last = Header { ack: answer.seq, window: u16::MAX, ..answer };
    let mut seq = answer.ack;
    let mut control = 0;
    for round in 0..1000u64 {
        for &sid in &sids {
            let data = Content::Data(Marked { tag: 0, start: 0, len: 1 });
            let records = [
                Record::Stop { sid, expected: Ssn::of(2 * round), code: 1 },
                Record::MaxStreamData { sid, limit: (round as u32) << 16, over: round as u8 },
                Record::Reset { sid, end: Ssn::of(2 * round + 1), code: 1 },
            ];
            let contents = [(sid, Ssn::of(2 * round), data)].into_iter().chain(records.map(|record| {
                control += 1;
                (Sid::CONTROL, Ssn::of(control - 1), Content::Control(record.into()))
            }));
            for (sid, ssn, content) in contents {
                let stream_header = Some(StreamHeader { sid, ssn });
                let header = Header { seq, ..last };
                let segment = Segment { header, options: Options::default(), stream_header, content };
                connection.handle_segment(now, tuple, segment);
                seq = seq.plus(segment.space());
            }
        }
        connection.check();
        assert!(connection.events.len() <= 2 + 4 * 255, "{} events", connection.events.len());
        assert!(
            connection.sender.outbound.records.len() <= 3 * 255,
            "{} records",
            connection.sender.outbound.records.len()
        );
    }
    assert!(connection.arrived() > 100_000 && connection.buffered() <= 1 << 20, "{}", connection.arrived());
}

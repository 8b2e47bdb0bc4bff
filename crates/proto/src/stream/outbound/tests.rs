//! Turns, ends, records and credit of the sending side.

use bytes::Bytes;

use super::*;
use crate::payload::Virtual;

/// Payloads that cannot be joined without a copy are copied when a segment is made.
#[test]
fn small_writes_fill_segments() {
    let mut outbound = Outbound::<Bytes>::new(Framing::Streams, 1, 1 << 20, u64::MAX);
    let sid = outbound.open().unwrap();
    let letters: Vec<u8> = (0..2500).map(|count| count as u8).collect();
    for write in letters.chunks(100) {
        assert_eq!(outbound.write(sid, &mut Bytes::copy_from_slice(write)), Ok(100));
    }
    let mut segments = vec![];
    while let Some(space) = outbound.peek(1004) {
        let (_, content) = outbound.cut(space, 1004, &mut Events::new()).unwrap();
        let Content::Data(payload) = content else { panic!("{content:?} is no data") };
        segments.push(payload);
    }
    assert_eq!(segments.iter().map(Bytes::len).collect::<Vec<_>>(), [1000, 1000, 500]);
    assert_eq!(segments.concat(), letters);
}

/// The data that waits on all streams together is limited: 250 bytes for each, and 750 that they share. A stream that had no room
/// is informed when it has half of its own part, or half of the shared part is free.
#[test]
fn all_streams_together_have_a_limit() {
    let mut outbound = Outbound::new(Framing::Streams, 3, 1000, 1 << 20).with_waiting_max(1500, 3);
    let sids = [(); 3].map(|()| outbound.open().unwrap());
    let written = sids.map(|sid| outbound.write(sid, &mut Virtual(1000)).unwrap());
    assert_eq!(written, [1000, 250, 250]);
    let mut events = Events::new();
    let told: Vec<_> = (0..10)
        .flat_map(|turn| {
            outbound.cut(104, 104, &mut events).unwrap();
            std::iter::from_fn(|| events.pop_front()).map(|event| (turn, event)).collect::<Vec<_>>()
        })
        .collect();
    // They take turns. After two turns, 50 of the 250 bytes of the second and the third wait.
    assert_eq!(told, [(4, Event::Writable(sids[1])), (5, Event::Writable(sids[2]))]);
    assert_eq!(outbound.write(sids[1], &mut Virtual(1000)), Ok(650), "250, and the first has left 400 of the 750");
}

/// Without credit a stream holds its reserve of 100 bytes and 15 of the shared part, and no write on another stream fails. With
/// credit, it is told that there is room.
#[test]
fn write_without_credit_leaves_reserve_of_others() {
    let mut outbound = Outbound::new(Framing::Streams, 10, 1000, 0).with_waiting_max(2000, 10);
    let sids = [(); 10].map(|()| outbound.open().unwrap());
    assert_eq!(sids.map(|sid| outbound.write(sid, &mut Virtual(1000)).unwrap()), [115; 10]);
    let mut events = Events::new();
    outbound.on_credit(sids[9], 150, 0, &mut events);
    assert_eq!(events.pop_front(), Some(Event::Writable(sids[9])), "265 may wait, and 115 do");
    assert_eq!(outbound.write(sids[9], &mut Virtual(1000)), Ok(150));
    while outbound.peek(104).is_some() {
        outbound.cut(104, 104, &mut events).unwrap();
    }
    assert_eq!((outbound.waiting, events.pop_front()), (1150, None));
}

/// A million writes of one byte do not become a million pieces.
#[test]
fn tiny_writes_are_copied_together() {
    let mut outbound = Outbound::<Bytes>::new(Framing::Streams, 1, 1 << 20, u64::MAX);
    let sid = outbound.open().unwrap();
    for _ in 0..1 << 20 {
        assert_eq!(outbound.write(sid, &mut Bytes::from_static(b"x")), Ok(1));
    }
    assert!(outbound.streams[sid.index()].waiting.len() <= WRITES_MAX + (1 << 20) / ABSORBED_MAX as usize);
}

fn cut(outbound: &mut Outbound<Virtual>) -> Option<(u16, u32, u32)> {
    let (header, content) = outbound.cut(104, 104, &mut Events::new())?;
    let header = header.expect("there are streams");
    Some((header.sid.number(), header.ssn.bits(), content.len()))
}

/// [mfast-2019] sec. V: "in a round robin fashion".
#[test]
fn streams_take_turns_a_segment_each() {
    let mut outbound = Outbound::new(Framing::Streams, 3, 1000, 1 << 20);
    for (number, bytes) in [(1, 250), (2, 100), (3, 150)] {
        assert_eq!(outbound.open(), Ok(Sid::new(number)));
        assert_eq!(outbound.write(Sid::new(number), &mut Virtual(bytes)), Ok(bytes));
    }
    let order: Vec<_> = std::iter::from_fn(|| cut(&mut outbound)).collect();
    assert_eq!(order, [(1, 0, 100), (2, 0, 100), (3, 0, 100), (1, 1, 100), (3, 1, 50), (1, 2, 50)]);
}

#[test]
fn a_full_stream_takes_no_more_and_says_when_there_is_room() {
    let mut outbound = Outbound::new(Framing::Streams, 1, 300, 1 << 20);
    let (sid, mut events) = (outbound.open().unwrap(), Events::new());
    let mut payload = Virtual(1000);
    assert_eq!((outbound.write(sid, &mut payload), payload), (Ok(300), Virtual(700)));
    assert_eq!(outbound.write(sid, &mut payload), Ok(0));
    outbound.cut(104, 104, &mut events);
    assert_eq!(events.pop_front(), None);
    outbound.cut(104, 104, &mut events);
    assert_eq!(events.pop_front(), Some(Event::Writable(sid)));
}

#[test]
fn acknowledged_name_is_reused_and_numbers_go_on() {
    let mut outbound = Outbound::new(Framing::Streams, 1, 300, 1 << 20);
    let (sid, mut events) = (outbound.open().unwrap(), Events::new());
    outbound.write(sid, &mut Virtual(100)).unwrap();
    outbound.finish(sid).unwrap();
    assert_eq!(outbound.write(sid, &mut Virtual(1)), Err(WriteError::NotOpen));
    assert_eq!(cut(&mut outbound), Some((1, 0, 100)));
    let (header, content) = outbound.cut(104, 104, &mut events).unwrap();
    assert_eq!(content, Content::Control(Record::Finish { sid, end: Ssn::of(1) }.into()));
    assert_eq!(header.map(|header| header.sid), Some(Sid::CONTROL));
    outbound.on_acked(sid, &mut events);
    assert_eq!(outbound.open(), Err(OpenError::NoneLeft));
    outbound.on_acked(sid, &mut events);
    assert_eq!((outbound.open(), events.pop_front()), (Ok(sid), Some(Event::Finished(sid))));
    outbound.write(sid, &mut Virtual(10)).unwrap();
    assert_eq!(cut(&mut outbound), Some((1, 2, 10)), "number 1 is the end of the first");
}

#[test]
fn reset_drops_waiting_data_and_replaces_unsent_end() {
    let (mut outbound, mut events) = (Outbound::new(Framing::Streams, 2, 1000, 1 << 20), Events::new());
    let (sid, other) = (outbound.open().unwrap(), outbound.open().unwrap());
    for sid in [sid, other] {
        outbound.write(sid, &mut Virtual(150)).unwrap();
    }
    assert_eq!(cut(&mut outbound), Some((1, 0, 100)));
    outbound.reset(sid, 7).unwrap();
    outbound.finish(other).unwrap();
    let reset = |sid, end, code| Some(Content::Control(Record::Reset { sid, end: Ssn::of(end), code }.into()));
    let mut content = || outbound.cut(104, 104, &mut Events::new()).map(|(_, content)| content);
    assert_eq!(content(), reset(sid, 1, 7));
    assert_eq!(content(), Some(Content::Data(Virtual(100))));
    assert_eq!(content(), Some(Content::Data(Virtual(50))));
    outbound.reset(other, 8).unwrap();
    assert_eq!(outbound.reset(other, 9), Err(WriteError::NotOpen));
    assert_eq!(outbound.cut(104, 104, &mut events).map(|(_, content)| content), reset(other, 2, 8));
    assert!(outbound.is_empty());
    // One segment and the Reset; then two segments and the Reset.
    for (sid, count) in [(sid, 2), (other, 3)] {
        (0..count).for_each(|_| outbound.on_acked(sid, &mut events));
        assert_eq!(events.pop_front(), Some(Event::Finished(sid)));
    }
}

#[test]
fn a_stop_counts_for_the_stream_to_which_its_number_belongs() {
    let (mut outbound, mut events) = (Outbound::<Virtual>::new(Framing::Streams, 1, 1000, 1 << 20), Events::new());
    let sid = outbound.open().unwrap();
    outbound.finish(sid).unwrap();
    cut(&mut outbound);
    outbound.on_acked(sid, &mut events);
    assert_eq!(events.pop_front(), Some(Event::Finished(sid)));
    outbound.open().unwrap();
    // The first stream has the number 0, its end; the second begins with 1.
    outbound.stop(sid, Ssn::of(0), 5, &mut events);
    assert_eq!(events.pop_front(), None);
    outbound.stop(sid, Ssn::of(1), 6, &mut events);
    outbound.stop(sid, Ssn::of(1), 7, &mut events);
    assert_eq!(events.pop_front(), Some(Event::Stopped { sid, code: 6 }));
    assert_eq!((events.pop_front(), outbound.write(sid, &mut Virtual(1))), (None, Err(WriteError::NotOpen)));
}

/// A header of 4 bytes and 8 bytes per record: four records in a segment, or as many as fit if there is less room.
#[test]
fn records_that_wait_share_segments() {
    let mut outbound = Outbound::<Virtual>::new(Framing::Streams, 9, 1000, 1 << 20);
    for sid in [0; 9].map(|_| outbound.open().unwrap()) {
        outbound.finish(sid).unwrap();
    }
    assert_eq!((outbound.peek(104), outbound.peek(27), outbound.shortened(11)), (Some(36), Some(20), None));
    assert_eq!(outbound.shortened(21), Some(20));
    let mut cut = |space| match outbound.cut(space, 104, &mut Events::new()) {
        Some((Some(header), Content::Control(records))) => (header.ssn.bits(), records.iter().collect::<Vec<_>>()),
        other => panic!("{other:?}"),
    };
    let finish = |sid| Record::Finish { sid: Sid::new(sid), end: Ssn::of(0) };
    assert_eq!(cut(20), (0, [1, 2].map(finish).to_vec()));
    assert_eq!(cut(36), (1, [3, 4, 5, 6].map(finish).to_vec()));
    assert_eq!(cut(36), (2, [7, 8, 9].map(finish).to_vec()));
    assert!(outbound.is_empty());
}

#[test]
fn a_stream_without_credit_has_no_turn() {
    let mut outbound = Outbound::new(Framing::Streams, 2, 1000, 130);
    let (blocked, other) = (outbound.open().unwrap(), outbound.open().unwrap());
    outbound.write(blocked, &mut Virtual(300)).unwrap();
    outbound.write(other, &mut Virtual(120)).unwrap();
    outbound.finish(blocked).unwrap();
    let order: Vec<_> = std::iter::from_fn(|| cut(&mut outbound)).collect();
    assert_eq!(order, [(1, 0, 100), (2, 0, 100), (1, 1, 30), (2, 1, 20)]);
    assert_eq!((outbound.is_empty(), outbound.is_drained(), outbound.peek(104)), (true, false, None));
    outbound.on_credit(blocked, 130, 0, &mut Events::new());
    outbound.on_credit(blocked, 100, 0, &mut Events::new());
    assert_eq!(outbound.peek(104), None, "an old limit takes nothing away");
    outbound.on_credit(blocked, 180, 0, &mut Events::new());
    assert_eq!((outbound.peek(104), cut(&mut outbound), outbound.peek(104)), (Some(54), Some((1, 2, 50)), None));
    outbound.lift_credit(&mut Events::new());
    assert_eq!(std::iter::from_fn(|| cut(&mut outbound)).collect::<Vec<_>>(), [(1, 3, 100), (1, 4, 20), (0, 0, 8)]);
    assert!(outbound.is_drained());
}

#[test]
fn a_priority_counts_at_once_and_ends_with_its_stream() {
    let mut outbound = Outbound::new(Framing::Streams, 2, 1000, 1 << 20);
    let (first, second) = (outbound.open().unwrap(), outbound.open().unwrap());
    for sid in [first, second] {
        outbound.write(sid, &mut Virtual(300)).unwrap();
    }
    assert_eq!(cut(&mut outbound), Some((1, 0, 100)));
    outbound.set_priority(first, Priority { level: 2, weight: 1 }).unwrap();
    assert_eq!([0; 3].map(|_| cut(&mut outbound).unwrap().0), [1, 1, 2]);
    outbound.reset(first, 0).unwrap();
    assert_eq!(outbound.set_priority(first, Priority::USUAL), Err(WriteError::NotOpen));
    cut(&mut outbound);
    (0..4).for_each(|_| outbound.on_acked(first, &mut Events::new()));
    assert_eq!(outbound.open(), Ok(first));
    outbound.write(first, &mut Virtual(100)).unwrap();
    assert_eq!([0; 2].map(|_| cut(&mut outbound).unwrap().0), [2, 1], "it is as usual again");
}

/// Two SIDs with 1000 bytes of credit each. Of the first, `count` streams have ended, with one byte each; the last of them after
/// the only stream of the second.
fn used(count: u32) -> Outbound<Virtual> {
    let mut outbound = Outbound::new(Framing::Streams, 2, 1000, 1000);
    let (first, second) = (outbound.open().unwrap(), outbound.open().unwrap());
    let end = |outbound: &mut Outbound<Virtual>, sid| {
        outbound.write(sid, &mut Virtual(1)).unwrap();
        outbound.finish(sid).unwrap();
        while cut(outbound).is_some() {}
        (0..2).for_each(|_| outbound.on_acked(sid, &mut Events::new()));
    };
    for _ in 1..count {
        end(&mut outbound, first);
        assert_eq!(outbound.open(), Ok(first));
    }
    end(&mut outbound, second);
    end(&mut outbound, first);
    outbound
}

/// The number of streams that the peer reports as over is compared modulo 256. The limit must exceed that of an unused SID.
#[test]
fn name_with_extra_credit_is_reused_after_streams_end() {
    let next = |count: u32, told: &[(u32, u8)]| {
        let mut outbound = used(count);
        told.iter().for_each(|(limit, over)| outbound.on_credit(Sid::new(1), *limit, *over, &mut Events::new()));
        outbound.open().unwrap().number()
    };
    assert_eq!(next(1, &[]), 2);
    assert_eq!(next(1, &[(2000, 1)]), 1);
    assert_eq!(next(1, &[(2000, 0)]), 2, "it is not read");
    assert_eq!(next(1, &[(2000, 2)]), 2, "there was one");
    assert_eq!([next(1, &[(1001, 1)]), next(1, &[(1002, 1)])], [2, 1], "a byte is used");
    assert_eq!([next(300, &[(2000, 44)]), next(300, &[(2000, 43)])], [1, 2]);
    // The same limit again, with later counts; then records that arrive late.
    assert_eq!(next(3, &[(2000, 1), (2000, 2), (2000, 3)]), 1);
    assert_eq!(next(3, &[(2000, 3), (2000, 2), (1900, 1)]), 1);
    assert_eq!(next(2, &[(2000, 1), (1900, 2)]), 2, "a lower limit was said before");
    assert_eq!(next(1, &[(2000, 1), (2000, 7)]), 2, "a peer that takes its word back");
}

/// A peer may report anything about any SID: each SID is used only once at a time, and the control stream never.
#[test]
fn no_credit_makes_a_name_of_what_is_none() {
    let mut outbound = Outbound::<Virtual>::new(Framing::Streams, 300, 1000, 1000);
    let say = |outbound: &mut Outbound<Virtual>| {
        for name in [0, 1, 2, 300, 301, 4095] {
            outbound.on_credit(Sid::new(name), 1 << 20, 0, &mut Events::new());
        }
    };
    say(&mut outbound);
    let mut given: Vec<_> = (0..260).map(|_| outbound.open().unwrap().number()).collect();
    say(&mut outbound);
    given.extend(std::iter::from_fn(|| outbound.open().ok()).map(Sid::number));
    assert_eq!(given, (1..=300).collect::<Vec<_>>());
}

use bytes::Bytes;

use super::*;
use crate::payload::Virtual;

const SID: Sid = Sid::new(1);

fn accept(inbound: &mut Inbound<Virtual>, ssn: u64, len: u32) -> usize {
    let mut events = Events::new();
    inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(ssn) }, Virtual(len), &mut events);
    std::iter::from_fn(|| events.pop_front()).count()
}

fn take(inbound: &mut Inbound<Virtual>, most: u32) -> Read<Virtual> {
    inbound.read(SID, most).unwrap().0
}

fn freed(payload: u64, records: u32) -> Freed {
    Freed { payload, records: 8 * records, is_over: false }
}

/// As above, and the application is done with the stream.
fn over(payload: u64, records: u32) -> Freed {
    Freed { is_over: true, ..freed(payload, records) }
}

/// Payloads that are kept do not keep the batches in which they arrived, except for a few: each is a small part of 64 kB.
#[test]
fn kept_payload_does_not_hold_its_batch() {
    let blocks: Vec<Bytes> = (0..2000).map(|_| Bytes::from(vec![7; 1 << 16])).collect();
    for (first, len, most) in [(0, 1, 256), (1, 1, 256), (0, 511, 256), (0, 512, 1024), (1, 512, 1024)] {
        let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
        for (number, block) in blocks.iter().enumerate() {
            let header = StreamHeader { sid: SID, ssn: Ssn::of(first + number as u64) };
            inbound.accept(header, block.slice(5..5 + len), &mut events);
        }
        let kept = blocks.iter().filter(|block| !block.is_unique()).count();
        assert!((most - 56..=most).contains(&kept), "{kept} blocks, of {len} bytes from number {first} on");
        let overhead = inbound.overhead();
        // Without that, at least two words and an allocation for each segment.
        let least = 2000 * (16 + ALLOCATION as u64);
        assert!(first == 1 || most == 1024 || overhead < least / 2, "what is ready is copied together: {overhead}");
        inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(0) }, Bytes::from_static(&[7]), &mut events);
        let mut bytes = vec![];
        while let (Read::Data(data), _) = inbound.read(SID, u32::MAX).expect("there is such a stream") {
            bytes.extend(data);
        }
        assert_eq!(bytes, vec![7; 2000 * len + first as usize]);
        assert_eq!(inbound.overhead(), 0);
    }
}

#[test]
fn a_stream_is_delivered_in_its_order_and_told_of_once() {
    let mut inbound = Inbound::new(2, 0);
    assert_eq!(accept(&mut inbound, 1, 10), 0);
    assert_eq!(accept(&mut inbound, 2, 20), 0);
    assert_eq!(take(&mut inbound, 100), Read::Nothing);
    assert_eq!(accept(&mut inbound, 0, 5), 1);
    assert_eq!(accept(&mut inbound, 3, 1), 0, "told and not read empty");
    assert_eq!(take(&mut inbound, 30), Read::Data(Virtual(30)));
    assert_eq!(take(&mut inbound, 30), Read::Data(Virtual(6)));
    assert_eq!(take(&mut inbound, 30), Read::Nothing);
    assert_eq!(accept(&mut inbound, 4, 1), 1);
    assert_eq!(inbound.expected(SID), Ssn::of(5));
}

#[test]
fn the_end_waits_for_what_is_before_it() {
    let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
    inbound.finish(SID, Ssn::of(2), &mut events);
    accept(&mut inbound, 1, 1);
    assert_eq!(take(&mut inbound, 9), Read::Nothing);
    accept(&mut inbound, 0, 1);
    assert_eq!(inbound.read(SID, 9), Ok((Read::Data(Virtual(2)), freed(2, 0))));
    assert_eq!(inbound.read(SID, 9), Ok((Read::End, over(0, 1))));
    // The SID is reused, and SSNs continue after that of the end.
    accept(&mut inbound, 3, 7);
    assert_eq!(take(&mut inbound, 9), Read::Data(Virtual(7)));
}

#[test]
fn a_segment_of_the_past_is_of_no_use() {
    let mut inbound = Inbound::new(1, 0);
    accept(&mut inbound, 0, 10);
    let header = StreamHeader { sid: SID, ssn: Ssn::of(0) };
    assert_eq!(inbound.accept(header, Virtual(10), &mut Events::new()), freed(10, 0));
    assert_eq!(inbound.read(Sid::CONTROL, 1), Err(ReadError::NoSuchStream));
}

fn read(inbound: &mut Inbound<Virtual>) -> Read<Virtual> {
    take(inbound, 1000)
}

#[test]
fn a_reset_drops_what_came_and_what_comes_late() {
    let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
    for (ssn, len) in [(0, 10), (1, 20), (3, 40)] {
        accept(&mut inbound, ssn, len);
    }
    assert_eq!(take(&mut inbound, 5), Read::Data(Virtual(5)));
    assert_eq!(inbound.reset(SID, Ssn::of(5), 7, &mut events), freed(5 + 20 + 40, 0));
    assert_eq!(inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(2) }, Virtual(9), &mut events), freed(9, 0));
    // The next stream begins before this one is read.
    accept(&mut inbound, 6, 3);
    assert_eq!([0; 3].map(|_| read(&mut inbound)), [Read::Reset(7), Read::Data(Virtual(3)), Read::Nothing]);
}

/// A Finish and a Reset of one stream, in either order, before and after its data: only one of them counts.
#[test]
fn a_finish_and_a_reset_with_one_end_end_one_stream() {
    let finish = |inbound: &mut Inbound<Virtual>| inbound.finish(SID, Ssn::of(2), &mut Events::new());
    let reset = |inbound: &mut Inbound<Virtual>| inbound.reset(SID, Ssn::of(2), 7, &mut Events::new());
    let mut whole = Inbound::new(1, 0);
    accept(&mut whole, 0, 10);
    accept(&mut whole, 1, 10);
    assert_eq!((finish(&mut whole), reset(&mut whole)), (freed(0, 0), freed(0, 1)));
    assert_eq!([0; 3].map(|_| read(&mut whole)), [Read::Data(Virtual(20)), Read::End, Read::Nothing]);
    let mut broken = Inbound::new(1, 0);
    accept(&mut broken, 1, 10);
    assert_eq!((finish(&mut broken), reset(&mut broken)), (freed(0, 0), freed(10, 1)));
    assert_eq!(broken.read(SID, 9), Ok((Read::Reset(7), over(0, 1))));
    assert_eq!(read(&mut broken), Read::Nothing);
    let mut swapped = Inbound::new(1, 0);
    assert_eq!((reset(&mut swapped), finish(&mut swapped)), (freed(0, 0), freed(0, 1)));
    assert_eq!([0; 2].map(|_| read(&mut swapped)), [Read::Reset(7), Read::Nothing]);
}

#[test]
fn data_of_stopped_stream_is_dropped_until_end() {
    let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
    assert_eq!(inbound.stop(SID, &mut events), Err(ReadError::NoSuchStream), "nothing has come");
    accept(&mut inbound, 0, 10);
    accept(&mut inbound, 2, 10);
    assert_eq!(inbound.stop(SID, &mut events), Ok((freed(20, 0), Some(Ssn::of(1)))));
    assert_eq!(inbound.stop(SID, &mut events), Err(ReadError::NoSuchStream), "once is enough");
    assert_eq!((accept(&mut inbound, 1, 5), read(&mut inbound)), (0, Read::Nothing));
    assert_eq!(inbound.reset(SID, Ssn::of(4), 7, &mut events), over(0, 1));
    accept(&mut inbound, 5, 3);
    assert_eq!(read(&mut inbound), Read::Data(Virtual(3)), "the next stream is wanted");
}

/// The application stops the stream that it reads, although a later stream of the SID has arrived.
#[test]
fn ended_stream_is_stopped_without_message() {
    let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
    accept(&mut inbound, 0, 10);
    inbound.finish(SID, Ssn::of(1), &mut events);
    accept(&mut inbound, 2, 3);
    assert_eq!(inbound.stop(SID, &mut events), Ok((over(10, 1), None)));
    assert_eq!(read(&mut inbound), Read::Data(Virtual(3)));
    // The end is known, but not all before it has arrived.
    inbound.finish(SID, Ssn::of(4), &mut events);
    assert_eq!(inbound.stop(SID, &mut events), Ok((over(0, 1), None)));
    assert_eq!(inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(3) }, Virtual(9), &mut events), freed(9, 0));
}

#[test]
fn data_beyond_stream_end_is_freed() {
    let (mut inbound, mut events) = (Inbound::new(1, 0), Events::new());
    accept(&mut inbound, 3, 10);
    assert_eq!(inbound.finish(SID, Ssn::of(2), &mut events), freed(10, 0));
    assert_eq!(inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(2) }, Virtual(9), &mut events), freed(9, 0));
    accept(&mut inbound, 0, 1);
    accept(&mut inbound, 1, 1);
    assert_eq!([0; 3].map(|_| read(&mut inbound)), [Read::Data(Virtual(2)), Read::End, Read::Nothing]);
}

//! The receiving half: which TSNs have arrived, which chunks wait in their streams, and what a SACK reports.
//!
//! Every stream delivers in its own order. All streams share one receive buffer. Delivered chunks leave it at once, so only
//! chunks that wait for a hole in their stream take room. A chunk that does not fit is dropped silently.
//!
//! Quirks of ns-2:
//! * Waiting chunks are sorted by their 16-bit SSN as a plain number. So chunk 0 sorts before chunk 65535, which must be
//!   delivered first. If both wait, the stream never delivers again, and the receive buffer stays full.
//! * A chunk that does not fit cancels the SACK that it would have triggered, together with its timer. In CMT the count of
//!   packets then stays above the trigger, and no SACK follows until a duplicate triggers one.

use std::collections::VecDeque;

use super::packet::{Data, Sack};

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Free room in the receive buffer in bytes (`uiMyRwnd`).
    pub(crate) window: u32,
    /// Everything up to this TSN has arrived.
    pub(crate) cumulative: u32,
    highest: u32,
    /// The blocks that arrived above `cumulative`: first and last TSN, in order, disjoint and not adjacent. Bounded by the
    /// buffer.
    blocks: Vec<(u32, u32)>,
    /// The duplicates since the last SACK, in order.
    duplicates: Vec<u32>,
    streams: Vec<InStream>,
    /// Chunks that wait in their streams.
    pub(crate) held: u32,
    /// Data packets since the last SACK (`iDataPktCountSinceLastSack`).
    pub(crate) packets: u32,
}

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    New,
    Duplicate,
    /// The buffer had no room for it.
    Refused,
}

#[derive(Clone, Debug, Default)]
struct InStream {
    next: u16,
    /// Sorted by SSN, which after a wrap is not the order of sending.
    waiting: VecDeque<Data>,
}

impl Receiver {
    pub(crate) fn new(window: u32) -> Self {
        Self {
            window,
            cumulative: 0,
            highest: 0,
            blocks: Vec::new(),
            duplicates: Vec::new(),
            streams: Vec::new(),
            held: 0,
            packets: 0,
        }
    }

    /// The peer has `count` outgoing streams.
    pub(crate) fn open_streams(&mut self, count: u16) {
        self.streams = vec![InStream::default(); count.into()];
    }

    pub(crate) fn has_gaps(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The association is closed.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.duplicates.clear();
    }

    /// A chunk arrives. Chunks that can be delivered now go to `deliver`.
    pub(crate) fn take(&mut self, data: &Data, deliver: impl FnMut(&Data)) -> Fate {
        if data.length > self.window {
            return Fate::Refused;
        }
        if data.tsn > self.highest {
            self.highest = data.tsn;
        } else if self.has(data.tsn) {
            if let Err(place) = self.duplicates.binary_search(&data.tsn) {
                self.duplicates.insert(place, data.tsn);
            }
            return Fate::Duplicate;
        }
        self.window -= data.length;
        self.note(data.tsn);
        self.sort_in(data, deliver);
        Fate::New
    }

    /// The SACK to send now, with at most `room` bytes.
    ///
    /// ns-2 announces all gaps but writes only those that fit. Its sender then reads the memory behind the packet. That cannot be
    /// reproduced, so a SACK here announces the gaps that fit.
    pub(crate) fn sack(&mut self, room: u32, packets: u8) -> Sack {
        // An entry must end below the room, not at it.
        let fits = (room.saturating_sub(Sack::HEADER + 1) / Sack::ENTRY) as usize;
        let offset = |tsn: u32| (tsn - self.cumulative) as u16;
        let gaps: Vec<_> = self.blocks.iter().take(fits).map(|&(first, last)| (offset(first), offset(last))).collect();
        let duplicates = self.duplicates.len().min(fits - gaps.len());
        self.duplicates.drain(..duplicates);
        Sack { cumulative: self.cumulative, window: self.window, packets, gaps, duplicates: duplicates as u32 }
    }

    fn has(&self, tsn: u32) -> bool {
        let place = self.blocks.partition_point(|&(_, last)| last < tsn);
        tsn <= self.cumulative || self.blocks.get(place).is_some_and(|&(first, _)| first <= tsn)
    }

    /// Records a TSN that has not arrived before.
    fn note(&mut self, tsn: u32) {
        if tsn == self.cumulative + 1 {
            self.cumulative = tsn;
            if self.blocks.first().is_some_and(|&(first, _)| first == tsn + 1) {
                self.cumulative = self.blocks.remove(0).1;
            }
            return;
        }
        let place = self.blocks.partition_point(|&(_, last)| last < tsn);
        let touches_next = self.blocks.get(place).is_some_and(|&(first, _)| first == tsn + 1);
        let touches_last = place > 0 && self.blocks[place - 1].1 + 1 == tsn;
        match (touches_last, touches_next) {
            (true, true) => self.blocks[place - 1].1 = self.blocks.remove(place).1,
            (true, false) => self.blocks[place - 1].1 = tsn,
            (false, true) => self.blocks[place].0 = tsn,
            (false, false) => self.blocks.insert(place, (tsn, tsn)),
        }
    }

    fn sort_in(&mut self, data: &Data, mut deliver: impl FnMut(&Data)) {
        if data.unordered {
            self.window += data.length;
            deliver(data);
            return;
        }
        let stream = &mut self.streams[usize::from(data.stream)];
        let place = stream.waiting.partition_point(|waiting| waiting.ssn < data.ssn);
        if stream.waiting.get(place).is_none_or(|waiting| waiting.ssn != data.ssn) {
            stream.waiting.insert(place, *data);
            self.held += 1;
        }
        while let Some(first) = stream.waiting.pop_front_if(|first| first.ssn == stream.next) {
            stream.next = stream.next.wrapping_add(1);
            self.window += first.length;
            self.held -= 1;
            deliver(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::SimTime;

    use super::*;

    fn data(tsn: u32, stream: u16, ssn: u16) -> Data {
        Data { tsn, stream, ssn, length: 116, unordered: false, first_sent_at: SimTime::ZERO }
    }

    struct Fixture {
        receiver: Receiver,
        delivered: Vec<u32>,
    }

    impl Fixture {
        fn new(streams: u16) -> Self {
            let mut receiver = Receiver::new(10_000);
            receiver.open_streams(streams);
            Self { receiver, delivered: vec![] }
        }

        fn take(&mut self, data: Data) -> Fate {
            self.receiver.take(&data, |data| self.delivered.push(data.tsn))
        }
    }

    #[test]
    fn a_hole_blocks_its_stream_only() {
        let mut it = Fixture::new(2);
        for (tsn, stream, ssn) in [(1, 0, 0), (3, 0, 1), (5, 0, 2), (6, 1, 2), (4, 1, 1)] {
            assert_eq!(it.take(data(tsn, stream, ssn)), Fate::New);
        }
        // TSN 2, the first chunk of stream 1, is missing.
        assert_eq!(it.delivered, [1, 3, 5]);
        assert_eq!(it.receiver.sack(1468, 0).gaps, [(2, 5)]);
        assert_eq!((it.receiver.window, it.receiver.held), (10_000 - 2 * 116, 2));
        it.take(data(2, 1, 0));
        assert_eq!(it.delivered, [1, 3, 5, 2, 4, 6]);
        assert_eq!((it.receiver.cumulative, it.receiver.window, it.receiver.has_gaps()), (6, 10_000, false));
    }

    #[test]
    fn duplicates_are_reported_once() {
        let mut it = Fixture::new(1);
        it.take(data(1, 0, 0));
        it.take(data(3, 0, 2));
        assert_eq!([1, 3, 1].map(|tsn| it.take(data(tsn, 0, 0))), [Fate::Duplicate; 3]);
        assert_eq!(it.receiver.sack(1468, 0).duplicates, 2);
        assert_eq!(it.receiver.sack(1468, 0).duplicates, 0);
    }

    #[test]
    fn chunk_beyond_buffer_is_refused() {
        let mut it = Fixture::new(1);
        it.receiver.window = 115;
        assert_eq!(it.take(data(1, 0, 0)), Fate::Refused);
        assert_eq!(it.receiver.cumulative, 0);
    }

    /// ns-2's order of SSNs: 0 waits in front of 65535. Nothing is delivered after the hole is filled.
    #[test]
    fn a_hole_before_the_wrap_closes_the_stream() {
        let mut it = Fixture::new(1);
        it.receiver.streams[0].next = u16::MAX - 1;
        for (tsn, ssn) in [(2, u16::MAX), (3, 0), (1, u16::MAX - 1)] {
            it.take(data(tsn, 0, ssn));
        }
        assert_eq!(it.delivered, []);
        assert_eq!(it.receiver.cumulative, 3);
    }
}

//! The receiving side of streams: [mfast-2019] Procedure 1. Data that is in order on its stream is delivered, even if data of
//! other streams is missing.
//!
//! A record takes effect on arrival, whether before, after or between the segments that it concerns. The end of a stream takes an
//! SSN, so SSNs distinguish two streams of one SID, and a late record has a past SSN.

use std::collections::VecDeque;

use crate::event::{Event, Events};
use crate::ordered::{Ordered, Pool};
use crate::payload::Payload;
use crate::segment::{Record, Sid, StreamHeader};
use crate::seq::{Offset, Ssn};
use crate::stream::by_name::ByName;

/// The receiving streams of a connection.
#[derive(Debug)]
pub(crate) struct Inbound<P> {
    /// The used SIDs, the control stream included.
    streams: ByName<Stream<P>>,
    /// The number of SIDs without the control stream; and the number at which each stream begins.
    names: u16,
    begin: u64,
    store: Store<P>,
}

/// What all streams share.
#[derive(Debug)]
struct Store<P> {
    /// The memory of held segments.
    pool: Pool<P>,
    /// The number of payloads that are ready to read.
    ready: usize,
}

#[derive(Debug)]
struct Stream<P> {
    /// ESSN, without wrapping: the next segment to deliver. It counts segments and ends; in plain TCP it is an offset.
    expected: u64,
    /// The first SSN of the current stream of this SID.
    begin: u64,
    /// Segments above the expected one. The receive window limits them.
    held: Ordered<P>,
    /// What the application may read. The receive window limits it: an end counts as the bytes of its record, so that a peer
    /// cannot accumulate ends.
    ready: VecDeque<Ready<P>>,
    /// The end of the stream, if known. Nothing at or above it is held.
    end: Option<u64>,
    /// Whether the application has stopped the stream.
    is_stopped: bool,
    /// Whether the application was informed that there is something to read.
    is_told: bool,
}

#[derive(Debug)]
enum Ready<P> {
    Data(P),
    End,
    Reset(u16),
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read<P> {
    /// The next bytes of the stream.
    Data(P),
    /// The stream has ended. The next read belongs to another stream of the same SID.
    End,
    /// The peer has reset the stream, with this error code of its application. Unread data was dropped. The next read belongs to
    /// another stream of the same SID.
    Reset(u16),
    /// There is nothing to read yet.
    Nothing,
}

/// Why a stream cannot be read or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no stream of this SID or, for a stop, nothing of it has arrived.
    NoSuchStream,
    /// Plain TCP cannot stop its stream without closing the connection.
    Plain,
}

/// Bytes that no longer occupy the buffer, and whether they end a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Bytes of payload, which return as flow-control credit.
    pub(crate) payload: u64,
    /// Bytes of records, which need no credit.
    pub(crate) records: u32,
    /// Whether a stream of this SID is over for the application, so that nothing more of it can arrive.
    pub(crate) is_over: bool,
}

impl<P: Payload> Inbound<P> {
    /// `streams` streams besides the control stream. Plain TCP has one stream, which begins at `expected`.
    pub(crate) fn new(streams: u16, expected: u64) -> Self {
        Self {
            streams: ByName::new(),
            names: streams,
            begin: expected,
            store: Store { pool: Pool::default(), ready: 0 },
        }
    }

    /// Whether there is a stream of this SID.
    pub(crate) fn has(&self, sid: Sid) -> bool {
        sid.number() <= self.names
    }

    /// The stream of this SID, which must exist, and the store.
    fn stream(&mut self, sid: Sid) -> (&mut Stream<P>, &mut Store<P>) {
        let begin = self.begin;
        (self.streams.get_or_make(sid, |_| Stream::new(begin)), &mut self.store)
    }

    /// The memory of received and unread data, without the data itself.
    pub(crate) fn overhead(&self) -> u64 {
        // A queue grows to twice its length.
        let ready = 2 * size_of::<Ready<P>>() * self.store.ready;
        self.store.pool.bytes() + (ready + ALLOCATION * self.store.pieces()) as u64
    }

    /// A segment of a stream arrived for the first time. Returns the part of it that needs no buffer.
    pub(crate) fn accept(&mut self, header: StreamHeader, payload: P, events: &mut Events) -> Freed {
        let (stream, store) = self.stream(header.sid);
        let count = header.ssn.count_near(stream.expected).filter(|&count| stream.takes(count));
        // An SSN that the stream has passed because it was reset; or an error of the peer.
        let Some(count) = count else { return Freed::payload(payload.len()) };
        if stream.is_stopped {
            stream.expected = count;
            return Freed::payload(payload.len());
        }
        // [mfast-2019] Procedure 1, lines 5 to 22.
        if count > stream.expected {
            let before = stream.held.insert(count, store.keep(payload), &mut store.pool);
            return Freed::payload(before.map_or(0, |before| before.len()));
        }
        stream.deliver(payload, store);
        stream.expected += 1;
        while let Some(payload) = stream.take_next(store) {
            stream.deliver(payload, store);
            stream.expected += 1;
        }
        stream.settle(header.sid, events);
        Freed::default()
    }

    /// Data of plain TCP arrived for the first time, at this offset.
    pub(crate) fn accept_plain(&mut self, place: Offset, payload: P, events: &mut Events) {
        let (stream, store) = self.stream(Sid::PLAIN);
        if place != stream.expected {
            stream.held.insert(place, store.keep(payload), &mut store.pool);
            return;
        }
        stream.expected += u64::from(payload.len());
        stream.deliver(payload, store);
        while let Some(payload) = stream.take_next(store) {
            stream.expected += u64::from(payload.len());
            stream.deliver(payload, store);
        }
        stream.settle(Sid::PLAIN, events);
    }

    /// A segment of the control stream arrived. Its records take effect at once, so nothing is held.
    pub(crate) fn accept_control(&mut self, ssn: Ssn) {
        let (control, _) = self.stream(Sid::CONTROL);
        if let Some(count) = ssn.count_near(control.expected) {
            control.expected = control.expected.max(count + 1);
        }
    }

    /// The peer has announced the end of a stream. Returns what needs no buffer, including the record.
    pub(crate) fn finish(&mut self, sid: Sid, end: Ssn, events: &mut Events) -> Freed {
        let Some((stream, end, store)) = self.ending(sid, end) else { return Freed::RECORD };
        if stream.is_stopped {
            return stream.skip(end, store).and(Freed::END);
        }
        if stream.end.is_some() {
            // A contradictory end.
            return Freed::RECORD;
        }
        stream.end = Some(end);
        let mut beyond = Freed::default();
        while stream.held.last().is_some_and(|last| last.0 >= end)
            && let Some((_, payload)) = stream.held.pop_last(&mut store.pool)
        {
            beyond = beyond.and(Freed::payload(payload.len()));
        }
        stream.settle(sid, events);
        beyond
    }

    /// The peer has reset a stream. Returns what needs no buffer, including the record.
    pub(crate) fn reset(&mut self, sid: Sid, end: Ssn, code: u16, events: &mut Events) -> Freed {
        let Some((stream, end, store)) = self.ending(sid, end) else { return Freed::RECORD };
        let is_stopped = stream.is_stopped;
        let freed = stream.skip(end, store);
        if is_stopped {
            return freed.and(Freed::END);
        }
        stream.ready.push_back(Ready::Reset(code));
        stream.settle(sid, events);
        freed
    }

    /// The application stops the stream that it is reading. Returns what no longer needs a buffer, and the SSN for a Stop record
    /// if the sender must be asked.
    pub(crate) fn stop(&mut self, sid: Sid, events: &mut Events) -> Result<(Freed, Option<Ssn>), ReadError> {
        let stream = self.streams.get_mut(sid).filter(|_| sid != Sid::CONTROL);
        let stream = stream.filter(|stream| !stream.ready.is_empty() || stream.is_there());
        let stream = stream.ok_or(ReadError::NoSuchStream)?;
        stream.is_told = false;
        let mut freed = Freed::default();
        while let Some(ready) = stream.ready.pop_front() {
            freed = freed.and(ready.freed());
            if matches!(ready, Ready::Data(_)) {
                self.store.ready -= 1;
            } else {
                // All of the stream had arrived. The rest belongs to the next stream of this SID.
                stream.settle(sid, events);
                return Ok((freed, None));
            }
        }
        match stream.end {
            Some(end) => Ok((freed.and(stream.skip(end, &mut self.store)).and(Freed::OVER), None)),
            None => {
                stream.is_stopped = true;
                Ok((freed.and(stream.drop_unread(&mut self.store)), Some(Ssn::of(stream.expected))))
            }
        }
    }

    /// The stream of plain TCP ends at this offset.
    pub(crate) fn finish_plain(&mut self, end: Offset, events: &mut Events) {
        let (stream, _) = self.stream(Sid::PLAIN);
        stream.end = Some(end);
        stream.settle(Sid::PLAIN, events);
    }

    /// The SSN that a stream expects next.
    pub(crate) fn expected(&self, sid: Sid) -> Ssn {
        Ssn::of(self.streams.get(sid).map_or(self.begin, |stream| stream.expected))
    }

    /// Reads at most `most` bytes, which then no longer need a buffer.
    pub(crate) fn read(&mut self, sid: Sid, most: u32) -> Result<(Read<P>, Freed), ReadError> {
        if sid == Sid::CONTROL || !self.has(sid) {
            return Err(ReadError::NoSuchStream);
        }
        let Some(stream) = self.streams.get_mut(sid) else { return Ok((Read::Nothing, Freed::default())) };
        let mut is_whole = true;
        let ready = match stream.ready.front_mut() {
            None => {
                stream.is_told = false;
                return Ok((Read::Nothing, Freed::default()));
            }
            Some(Ready::Data(payload)) if payload.len() > most => {
                is_whole = false;
                Ready::Data(payload.split_to(most))
            }
            Some(_) => stream.ready.pop_front().expect("it was just looked at"),
        };
        let freed = ready.freed();
        let read = match ready {
            Ready::Data(payload) => {
                self.store.ready -= usize::from(is_whole);
                Read::Data(payload)
            }
            Ready::End => Read::End,
            Ready::Reset(code) => Read::Reset(code),
        };
        Ok((read, freed))
    }

    /// Whether a stream has something to read.
    pub(crate) fn is_readable(&self, sid: Sid) -> bool {
        sid != Sid::CONTROL && self.streams.get(sid).is_some_and(|stream| !stream.ready.is_empty())
    }

    /// For tests: what takes room in the window.
    #[cfg(test)]
    pub(crate) fn unread(&self) -> Freed {
        self.streams.values().fold(Freed::default(), |sum, stream| sum.and(stream.unread()))
    }

    /// The stream that ends with this SSN, the SSN without wrapping, and the store. `None` if the stream has already ended.
    fn ending(&mut self, sid: Sid, end: Ssn) -> Option<(&mut Stream<P>, u64, &mut Store<P>)> {
        if sid == Sid::CONTROL || !self.has(sid) {
            return None;
        }
        let (stream, store) = self.stream(sid);
        let end = end.count_near(stream.expected).filter(|&end| end >= stream.expected)?;
        Some((stream, end, store))
    }
}

impl<P: Payload> Store<P> {
    /// The number of stored payloads.
    fn pieces(&self) -> usize {
        self.pool.entries() + self.ready
    }

    /// Whether too many payloads share memory with others, so that one of `len` bytes must not.
    fn is_crowded(&self, len: u32) -> bool {
        self.pieces() >= if len < PIECE_LARGE { PIECES_SHARED_MAX } else { PIECES_LARGE_MAX }
    }

    /// Stores a payload that may stay for a long time. It shares memory with others of its batch of datagrams, which only a
    /// limited number of payloads may do.
    fn keep(&self, mut payload: P) -> P {
        if self.is_crowded(payload.len()) {
            payload.detach();
        }
        payload
    }
}

impl<P: Payload> Stream<P> {
    fn new(expected: u64) -> Self {
        Self {
            expected,
            begin: expected,
            held: Ordered::default(),
            ready: VecDeque::new(),
            end: None,
            is_stopped: false,
            is_told: false,
        }
    }

    /// Whether a segment with this number may still arrive.
    fn takes(&self, count: u64) -> bool {
        count >= self.expected && self.end.is_none_or(|end| count < end)
    }

    /// Whether anything of the current stream has arrived, and it was not stopped.
    fn is_there(&self) -> bool {
        let has_come = self.expected > self.begin || !self.held.is_empty() || self.end.is_some();
        has_come && !self.is_stopped
    }

    /// Takes the expected segment, if it is held.
    fn take_next(&mut self, store: &mut Store<P>) -> Option<P> {
        self.held.first().filter(|first| first.0 == self.expected)?;
        self.held.pop_first(&mut store.pool).map(|(_, payload)| payload)
    }

    fn deliver(&mut self, payload: P, store: &mut Store<P>) {
        let is_crowded = store.is_crowded(payload.len());
        let payload = match self.ready.back_mut() {
            Some(Ready::Data(last)) if is_crowded => {
                last.join(payload).or_else(|payload| last.absorb(payload, ABSORBED_MAX)).err()
            }
            Some(Ready::Data(last)) => last.join(payload).err(),
            Some(Ready::End | Ready::Reset(_)) | None => Some(payload),
        };
        if let Some(payload) = payload {
            self.ready.push_back(Ready::Data(store.keep(payload)));
            store.ready += 1;
        }
    }

    /// Ends the stream if its end is reached. Informs the application once that there is something to read.
    fn settle(&mut self, sid: Sid, events: &mut Events) {
        if self.end == Some(self.expected) {
            self.begin_after(self.expected);
            self.ready.push_back(Ready::End);
        }
        if !self.ready.is_empty() && !std::mem::replace(&mut self.is_told, true) {
            events.push_back(Event::Readable(sid));
        }
    }

    /// The stream ends unread. Returns what no longer needs a buffer.
    fn skip(&mut self, end: u64, store: &mut Store<P>) -> Freed {
        let record = if self.end.is_some() { Freed::RECORD } else { Freed::default() };
        let freed = self.drop_unread(store).and(record);
        self.begin_after(end);
        freed
    }

    /// The next stream of this SID begins.
    fn begin_after(&mut self, end: u64) {
        self.expected = end + 1;
        self.begin = self.expected;
        self.end = None;
        self.is_stopped = false;
    }

    /// Drops the unread data of the current stream.
    fn drop_unread(&mut self, store: &mut Store<P>) -> Freed {
        let mut freed = Freed { payload: sum(self.held.values()), ..Freed::default() };
        self.held.clear(&mut store.pool);
        while let Some(Ready::Data(_)) = self.ready.back() {
            freed = freed.and(self.ready.pop_back().map_or(Freed::default(), |ready| ready.space()));
            store.ready -= 1;
        }
        freed
    }

    /// For tests: what takes room in the window.
    #[cfg(test)]
    fn unread(&self) -> Freed {
        let ends = if self.end.is_some() { Freed::RECORD } else { Freed::default() };
        let held = Freed { payload: sum(self.held.values()), ..Freed::default() };
        self.ready.iter().fold(ends.and(held), |sum, ready| sum.and(ready.space()))
    }
}

impl<P: Payload> Ready<P> {
    /// What it takes of the receive window.
    fn space(&self) -> Freed {
        match self {
            Self::Data(payload) => Freed::payload(payload.len()),
            Self::End | Self::Reset(_) => Freed::RECORD,
        }
    }

    /// The bytes freed when the application reads it.
    fn freed(&self) -> Freed {
        match self {
            Self::Data(_) => self.space(),
            Self::End | Self::Reset(_) => Freed::END,
        }
    }
}

impl Freed {
    /// The bytes of a record.
    pub(crate) const RECORD: Self = Self { payload: 0, records: Record::LEN, is_over: false };

    /// The end of a stream that is over for the application: without its record, and with it.
    const OVER: Self = Self { payload: 0, records: 0, is_over: true };
    const END: Self = Self { is_over: true, ..Self::RECORD };

    fn payload(bytes: u32) -> Self {
        Self { payload: bytes.into(), ..Self::default() }
    }

    fn and(self, other: Self) -> Self {
        Self {
            payload: self.payload + other.payload,
            records: self.records + other.records,
            is_over: self.is_over || other.is_over,
        }
    }
}

fn sum<'a, P: Payload + 'a>(payloads: impl Iterator<Item = &'a P>) -> u64 {
    payloads.map(|payload| u64::from(payload.len())).sum()
}

/// So many payloads may share memory with freed ones. At 64 kB each this is 16 MB.
const PIECES_SHARED_MAX: usize = 256;

/// A payload of this many bytes may keep its part of a shared block. Every full segment has more.
const PIECE_LARGE: u32 = 512;

/// The number of such payloads that may be stored: what a driver reads in a turn, about 700 datagrams; at worst 64 MB. Copying
/// each would take a seventh of the processor time.
const PIECES_LARGE_MAX: usize = 1024;

/// If there are more, ready payloads are copied together up to this size.
const ABSORBED_MAX: u32 = 16 << 10;

/// What a small payload's own allocation takes beyond the data: the least that common allocators give is 32 bytes.
const ALLOCATION: usize = 32;

#[cfg(test)]
mod tests;

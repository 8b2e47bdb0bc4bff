//! The sending side of streams: what waits on each, and whose turn it is.
//!
//! ```text
//! Idle ──open──> Open ──finish──> Ending ──last data cut──> Ended ──all acknowledged──> Idle
//!                 └────────reset────┴────────────────────────┴──> Reset ──all acknowledged──^
//! ```
//!
//! Streams take turns as `turns` says; usually a segment each. A stream that has ended keeps its count of segments: when its name is used again, the
//! numbers go on after that of its end, so that the two are never confused.

use std::collections::VecDeque;

use crate::event::{Event, Events};
use crate::payload::Payload;
use crate::segment::{Content, Record, RecordList, Sid, StreamHeader};
use crate::seq::Ssn;
use crate::stream::flow_control::{initial, later};
use crate::stream::names::Names;
use crate::stream::records::Records;
use crate::stream::turns::{Priority, Turns};

/// All streams of one direction.
#[derive(Debug)]
pub(crate) struct Outbound<P> {
    /// By name, the control stream included, as far as names have been used.
    streams: Vec<Stream<P>>,
    /// Those that are not in use, and the credit that the first of them have from the start.
    names: Names,
    credit: u64,
    /// Streams with data and credit, in the order of their turns.
    turns: Turns,
    /// Bytes that wait on all streams.
    waiting: u64,
    /// What is to be said on the control stream.
    pub(crate) records: Records,
    framing: Framing,
    /// Bytes that may wait on one stream, and on all together.
    limit: u64,
    waiting_max: u64,
    /// Whether a write was cut short because of what waits on all streams.
    is_full: bool,
}

/// How content is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One stream and no stream headers.
    Plain,
    /// A stream header before each content.
    Streams,
}

#[derive(Debug)]
struct Stream<P> {
    state: State,
    waiting: VecDeque<P>,
    /// Bytes in `waiting`; at most the limit.
    bytes: u64,
    priority: Priority,
    /// Whether it has a turn.
    is_queued: bool,
    /// Bytes cut so far, and how many the peer takes, on all streams of this name.
    used: u64,
    credit: u64,
    /// Streams of this name so far, and those of them that are over for the peer's application by its own account; both modulo 256.
    opened: u8,
    over: u8,
    /// Numbers given so far, to segments and ends.
    segments: u64,
    /// Those given before it was opened last.
    begin: u64,
    /// Segments sent and ends told, or about to be, that have not been acknowledged cumulatively.
    unacked: u64,
    /// Whether a write was cut short, so that the application waits for room.
    wants_room: bool,
    /// Numbers that the peer has in order, by its own account.
    expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    /// The application has finished and data waits.
    Ending,
    /// Nothing more will be cut.
    Ended,
    /// It was given up.
    Reset,
}

/// What can be wrong with opening a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The connection is not established, or no longer.
    NotEstablished,
    /// All streams that the peer granted are in use.
    NoneLeft,
}

/// What can be wrong with writing to a stream, or finishing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no such open stream.
    NotOpen,
    /// In plain TCP a stream can only be given up with its connection.
    Plain,
}

impl<P: Payload> Outbound<P> {
    /// So many streams besides the control stream, with so much credit each; plain TCP has one, which is open. On each so many bytes
    /// may wait.
    pub(crate) fn new(framing: Framing, streams: u16, limit: u64, credit: u64) -> Self {
        let mut outbound = Self {
            streams: vec![],
            // Plain TCP's stream is in use.
            names: Names::new(if framing == Framing::Plain { 0 } else { streams }, credit),
            credit,
            turns: Turns::new(),
            waiting: 0,
            records: Records::new(),
            framing,
            limit,
            waiting_max: u64::MAX,
            is_full: false,
        };
        outbound.make(Sid::CONTROL);
        if framing == Framing::Plain {
            outbound.make(Sid::PLAIN).state = State::Open;
        }
        outbound
    }

    /// The same, with so many bytes at the most on all streams together.
    pub(crate) fn with_waiting_max(self, waiting_max: u64) -> Self {
        Self { waiting_max, ..self }
    }

    /// Opens a stream that is not in use.
    pub(crate) fn open(&mut self) -> Result<Sid, OpenError> {
        let sid = self.names.take().ok_or(OpenError::NoneLeft)?;
        let stream = self.make(sid);
        debug_assert_eq!(stream.state, State::Idle, "a name that is in use is none of them");
        (stream.state, stream.begin, stream.priority) = (State::Open, stream.segments, Priority::USUAL);
        stream.opened = stream.opened.wrapping_add(1);
        Ok(sid)
    }

    /// The stream of this name, which is there from now on.
    fn make(&mut self, sid: Sid) -> &mut Stream<P> {
        for index in self.streams.len()..=sid.index() {
            self.streams.push(Stream::new(initial(Sid::new(index as u16), self.credit)));
        }
        &mut self.streams[sid.index()]
    }

    /// Bytes that may wait on each stream.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// From now on so many may.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Takes as much off `payload` as may wait. Returns how much.
    pub(crate) fn write(&mut self, sid: Sid, payload: &mut P) -> Result<u32, WriteError> {
        let (limit, room_of_all) = (self.limit, self.waiting_max.saturating_sub(self.waiting));
        let stream = self.writable(sid)?;
        let room = limit.saturating_sub(stream.bytes);
        let taken = u32::try_from(room.min(room_of_all)).unwrap_or(u32::MAX).min(payload.len());
        stream.wants_room |= taken < payload.len();
        let is_full = u64::from(payload.len()).min(room) > room_of_all;
        self.is_full |= is_full;
        let stream = &mut self.streams[sid.index()];
        if taken == 0 {
            return Ok(0);
        }
        let part = payload.split_to(taken);
        let is_crowded = stream.waiting.len() >= WRITES_MAX;
        let part = match stream.waiting.back_mut() {
            Some(last) if is_crowded => last.join(part).or_else(|part| last.absorb(part, ABSORBED_MAX)).err(),
            Some(last) => last.join(part).err(),
            None => Some(part),
        };
        stream.waiting.extend(part);
        stream.bytes += u64::from(taken);
        self.waiting += u64::from(taken);
        self.enqueue(sid);
        Ok(taken)
    }

    /// From now on the stream stands so to the others.
    pub(crate) fn set_priority(&mut self, sid: Sid, priority: Priority) -> Result<(), WriteError> {
        let stream = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL).ok_or(WriteError::NotOpen)?;
        if !matches!(stream.state, State::Open | State::Ending) {
            return Err(WriteError::NotOpen);
        }
        let before = std::mem::replace(&mut stream.priority, priority);
        if stream.is_queued && before != priority {
            self.turns.remove(sid, before);
            self.turns.push(sid, priority);
        }
        Ok(())
    }

    /// Nothing more will be written to a stream.
    pub(crate) fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let stream = self.writable(sid)?;
        stream.state = State::Ending;
        if stream.bytes == 0 {
            self.end(sid);
        }
        Ok(())
    }

    /// Gives a stream up. What waits is dropped; what was sent stays in sequence space until it is acknowledged.
    pub(crate) fn reset(&mut self, sid: Sid, code: u16) -> Result<(), WriteError> {
        if self.framing == Framing::Plain {
            return Err(WriteError::Plain);
        }
        let stream = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL).ok_or(WriteError::NotOpen)?;
        match stream.state {
            State::Idle | State::Reset => return Err(WriteError::NotOpen),
            State::Open | State::Ending => {
                stream.waiting.clear();
                self.waiting -= std::mem::take(&mut stream.bytes);
                stream.wants_room = false;
                if std::mem::take(&mut stream.is_queued) {
                    self.turns.remove(sid, stream.priority);
                }
                stream.segments += 1;
            }
            State::Ended => {}
        }
        stream.state = State::Reset;
        // A reset takes the place of an end that has not left.
        let is_new = self.records.push(Record::Reset { sid, end: Ssn::of(stream.segments - 1), code });
        stream.unacked += u64::from(is_new);
        Ok(())
    }

    /// The peer does not want the rest of the stream to which the number `expected` belongs. If there is a rest, the stream is
    /// reset.
    pub(crate) fn stop(&mut self, sid: Sid, expected: Ssn, code: u16, events: &mut Events) {
        let Some(stream) = self.streams.get(sid.index()) else { return };
        let is_meant =
            expected.count_near(stream.segments).is_some_and(|count| (stream.begin..=stream.segments).contains(&count))
                && matches!(stream.state, State::Open | State::Ending);
        if is_meant && self.reset(sid, code).is_ok() {
            events.push_back(Event::Stopped { sid, code });
        }
    }

    /// Finishes all streams that are open.
    pub(crate) fn finish_all(&mut self) {
        for index in 1..self.streams.len() {
            // Those that are not open need no finishing.
            let _ = self.finish(Sid::new(index as u16));
        }
    }

    /// The peer says what it takes on a stream, and how many streams of the name are over for its application. Records come in any order: the higher
    /// limit is the later one, and of two with one limit that with the later count.
    pub(crate) fn on_credit(&mut self, sid: Sid, bits: u32, over: u8) {
        let fresh = initial(sid, self.credit);
        // The control stream has no limit.
        let Some(stream) = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL) else { return };
        let before = stream.rich(fresh);
        match later(stream.credit, bits) {
            Some(credit) => (stream.credit, stream.over) = (credit, over),
            None if stream.credit as u32 == bits && (1..128).contains(&over.wrapping_sub(stream.over)) => {
                stream.over = over;
            }
            None => return,
        }
        if stream.state == State::Idle {
            let rich = stream.rich(fresh);
            self.names.on_credit(sid, before, rich);
        }
        self.enqueue(sid);
    }

    /// The peer's FIN has come, after which it can say no more about credit: only its window counts.
    pub(crate) fn lift_credit(&mut self) {
        self.credit = u64::MAX;
        self.names.lift_credit();
        for index in 0..self.streams.len() {
            self.streams[index].credit = u64::MAX;
            self.enqueue(Sid::new(index as u16));
        }
    }

    /// Whether there is nothing that could be sent now.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.records.is_empty()
    }

    /// Whether nothing waits, not even for credit.
    pub(crate) fn is_drained(&self) -> bool {
        self.waiting == 0 && self.records.is_empty()
    }

    /// Whether the next segment has records.
    pub(crate) fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Bytes of sequence space of the next segment, if it may have `space` of them.
    #[inline]
    pub(crate) fn peek(&self, space: u32) -> Option<u32> {
        let header = self.header_len();
        if !self.records.is_empty() {
            return Some(self.records_within(space).max(header + Record::LEN));
        }
        let stream = &self.streams[self.turns.first()?.index()];
        let most = u32::try_from(stream.bytes).unwrap_or(u32::MAX).min(stream.credit());
        Some(header.saturating_add(most).min(space))
    }

    /// Whether the next segment takes all that waits, and the application may still write more.
    pub(crate) fn may_grow(&self) -> bool {
        let only = |sid: Sid| {
            let stream = &self.streams[sid.index()];
            stream.state == State::Open && stream.bytes <= stream.credit().into()
        };
        self.records.is_empty() && self.turns.only().is_some_and(only)
    }

    /// Bytes of sequence space of the next segment if it has records, as many as fit into so much.
    fn records_within(&self, space: u32) -> u32 {
        let header = self.header_len();
        let count = (space.saturating_sub(header) / Record::LEN).min(self.records.len().min(RecordList::MAX) as u32);
        header + count * Record::LEN
    }

    /// How much of `usable` the next segment can do with, where it would have more: a record at least, or a byte of data.
    pub(crate) fn shortened(&self, usable: u32) -> Option<u32> {
        let space = if self.records.is_empty() { usable } else { self.records_within(usable) };
        (space > self.header_len()).then_some(space)
    }

    /// Cuts the next segment, with at most `space` bytes of sequence space where a full one has `full`.
    pub(crate) fn cut(
        &mut self,
        space: u32,
        full: u32,
        events: &mut Events,
    ) -> Option<(Option<StreamHeader>, Content<P>)> {
        if let Some(first) = self.records.pop() {
            let header = self.streams[Sid::CONTROL.index()].number(Sid::CONTROL, self.framing);
            let mut list = RecordList::from(first);
            for _ in 1..space.saturating_sub(self.header_len()) / Record::LEN {
                let Some(record) = self.records.pop() else { break };
                list.push(record).expect("a segment is peeked at before it is cut, and is no longer than that");
            }
            self.records.on_sent(list);
            return Some((header, Content::Control(list)));
        }
        let sid = self.turns.first()?;
        let (header_len, limit) = (self.header_len(), self.limit);
        let stream = &mut self.streams[sid.index()];
        let header = stream.number(sid, self.framing);
        let room = space.checked_sub(header_len).map(|room| room.min(stream.credit()));
        let room =
            room.filter(|&room| room > 0).expect("a segment has room for data, and a stream with a turn has credit");
        let part = stream.take(room).expect("a stream that has a turn has data");
        stream.used += u64::from(part.len());
        stream.unacked += 1;
        stream.is_queued = stream.bytes > 0 && stream.credit() > 0;
        self.turns.on_sent(header_len + part.len(), full, stream.priority, stream.is_queued);
        self.waiting -= u64::from(part.len());
        let is_ending = stream.bytes == 0 && stream.state == State::Ending;
        if !self.is_full {
            stream.tell_room(sid, limit, events);
        } else if 2 * self.waiting <= self.waiting_max {
            self.is_full = false;
            for (index, stream) in self.streams.iter_mut().enumerate() {
                stream.tell_room(Sid::new(index as u16), limit, events);
            }
        }
        if is_ending {
            self.end(sid);
        }
        Some((header, Content::Data(part)))
    }

    /// A segment or an end has been acknowledged for good.
    #[inline(always)]
    pub(crate) fn on_acked(&mut self, sid: Sid, events: &mut Events) {
        let stream = &mut self.streams[sid.index()];
        stream.unacked -= 1;
        if matches!(stream.state, State::Ended | State::Reset)
            && stream.unacked == 0
            && self.framing == Framing::Streams
        {
            stream.state = State::Idle;
            self.names.release(sid, stream.rich(initial(sid, self.credit)));
            events.push_back(Event::Finished(sid));
        }
    }

    /// The peer says what it expects next on a stream.
    pub(crate) fn on_expected(&mut self, header: StreamHeader) {
        if let Some(stream) = self.streams.get_mut(header.sid.index())
            && let Some(count) = header.ssn.count_near(stream.expected)
            && count <= stream.segments
        {
            stream.expected = stream.expected.max(count);
        }
    }

    /// For tests: of each name how many bytes have been cut, and how many the peer takes.
    #[cfg(test)]
    pub(crate) fn credits(&self) -> impl Iterator<Item = (Sid, u64, u64)> {
        let streams = self.streams.iter().enumerate().skip(1);
        streams.map(|(index, stream)| (Sid::new(index as u16), stream.used, stream.credit))
    }

    /// Segments and ends on a stream that the peer has in order, by its own account.
    pub(crate) fn expected(&self, sid: Sid) -> u64 {
        self.streams.get(sid.index()).map_or(0, |stream| stream.expected)
    }

    /// Gives a stream a turn if it has data and credit.
    fn enqueue(&mut self, sid: Sid) {
        let stream = &mut self.streams[sid.index()];
        if stream.bytes > 0 && stream.credit() > 0 && !std::mem::replace(&mut stream.is_queued, true) {
            self.turns.push(sid, stream.priority);
        }
    }

    fn writable(&mut self, sid: Sid) -> Result<&mut Stream<P>, WriteError> {
        let stream = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL);
        stream.filter(|stream| stream.state == State::Open).ok_or(WriteError::NotOpen)
    }

    /// The last data of a stream is cut: says where it ends. In plain TCP a FIN does.
    fn end(&mut self, sid: Sid) {
        let stream = &mut self.streams[sid.index()];
        stream.state = State::Ended;
        if self.framing == Framing::Streams {
            self.records.push(Record::Finish { sid, end: Ssn::of(stream.segments) });
            stream.segments += 1;
            stream.unacked += 1;
        }
    }

    fn header_len(&self) -> u32 {
        match self.framing {
            Framing::Plain => 0,
            Framing::Streams => StreamHeader::LEN,
        }
    }
}

impl<P: Payload> Stream<P> {
    /// Takes the next `most` bytes that wait, or all if there are fewer: one payload, however many writes they came by.
    fn take(&mut self, most: u32) -> Option<P> {
        let whole = self.take_piece(most)?;
        let len = u64::from(most).min(self.bytes + u64::from(whole.len())) as u32;
        let mut missing = len - whole.len();
        if missing == 0 {
            return Some(whole);
        }
        let more = std::iter::from_fn(|| {
            let piece = if missing > 0 { self.take_piece(missing) } else { None }?;
            missing -= piece.len();
            Some(piece)
        });
        Some(P::gather(std::iter::once(whole).chain(more), len))
    }

    /// Tells the application of room if it waits for some and half of it is there.
    fn tell_room(&mut self, sid: Sid, limit: u64, events: &mut Events) {
        if self.wants_room && self.state == State::Open && 2 * self.bytes <= limit {
            self.wants_room = false;
            events.push_back(Event::Writable(sid));
        }
    }

    /// Takes at most so many bytes off the first write.
    fn take_piece(&mut self, most: u32) -> Option<P> {
        let first = self.waiting.front_mut()?;
        let piece = if first.len() > most { first.split_to(most) } else { self.waiting.pop_front()? };
        self.bytes -= u64::from(piece.len());
        Some(piece)
    }
}

impl<P> Stream<P> {
    /// The header of its next segment.
    fn number(&mut self, sid: Sid, framing: Framing) -> Option<StreamHeader> {
        let ssn = Ssn::of(self.segments);
        self.segments += 1;
        (framing == Framing::Streams).then_some(StreamHeader { sid, ssn })
    }

    /// How much may be cut.
    fn credit(&self) -> u32 {
        u32::try_from(self.credit - self.used).unwrap_or(u32::MAX)
    }

    /// The credit that is left, if that is more than a new name has and all streams of this name are over for the peer's application: so a new one does
    /// not wait behind another.
    fn rich(&self, fresh: u64) -> Option<u64> {
        let left = self.credit - self.used;
        (left > fresh && self.over == self.opened).then_some(left)
    }

    fn new(credit: u64) -> Self {
        Self {
            state: State::Idle,
            waiting: VecDeque::new(),
            bytes: 0,
            priority: Priority::USUAL,
            is_queued: false,
            used: 0,
            credit,
            opened: 0,
            over: 0,
            segments: 0,
            begin: 0,
            unacked: 0,
            wants_room: false,
            expected: 0,
        }
    }
}

/// Writes that wait on a stream as they came. Beyond them small ones are copied together, so that they do not cost a hundred times
/// their bytes: 64 of 1,400 bytes are more than a path takes at once.
const WRITES_MAX: usize = 64;

/// What small writes are copied together to: some ten segments.
const ABSORBED_MAX: u32 = 16 << 10;

#[cfg(test)]
mod tests;

//! The sending side of streams: waiting data, and the order of the streams.
//!
//! ```text
//! Idle ──open──> Open ──finish──> Ending ──last data taken──> Ended ──all acknowledged──> Idle
//!                 └────────reset────┴──────────────────────────┴──> Reset ──all acknowledged──^
//! ```
//!
//! Streams take turns as `turns` defines, usually one segment each. A stream that has ended keeps its count of segments: when its
//! SID is reused, SSNs continue after its end, so the two streams cannot be confused.

use std::collections::VecDeque;

use crate::event::{Event, Events};
use crate::payload::Payload;
use crate::segment::{Content, Record, RecordList, Sid, StreamHeader};
use crate::seq::Ssn;
use crate::stream::flow_control::{initial, later};
use crate::stream::names::Names;
use crate::stream::records::Records;
use crate::stream::send_queue::SendQueue;
use crate::stream::turns::{Priority, Turns};

/// The sending streams of a connection.
#[derive(Debug)]
pub(crate) struct Outbound<P> {
    /// The streams by SID, up to the highest used one, including the control stream.
    streams: Vec<Stream<P>>,
    /// The unused SIDs, and the initial credit of the first ones.
    names: Names,
    credit: u64,
    /// Streams with data and credit, in the order of their turns.
    turns: Turns,
    /// Bytes that wait to be sent on all streams.
    waiting: u64,
    /// Records for the control stream.
    pub(crate) records: Records,
    framing: Framing,
    /// The limits on waiting bytes.
    queue: SendQueue,
}

/// The framing of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One stream and no stream headers.
    Plain,
    /// A stream header before the content of each segment.
    Streams,
}

#[derive(Debug)]
struct Stream<P> {
    state: State,
    waiting: VecDeque<P>,
    /// Bytes in `waiting`, within the limits of [`SendQueue`].
    bytes: u64,
    priority: Priority,
    /// Whether it waits for a turn.
    is_queued: bool,
    /// Bytes sent so far, and the peer's limit, over all streams of this SID.
    used: u64,
    credit: u64,
    /// The number of streams of this SID so far, and how many of them the peer reports as over for its application; both modulo
    /// 256.
    opened: u8,
    over: u8,
    /// SSNs assigned so far, to segments and ends.
    segments: u64,
    /// SSNs assigned before the current stream was opened.
    begin: u64,
    /// Segments and ends that were sent, or are queued, and are not yet cumulatively acknowledged.
    unacked: u64,
    /// Whether a write was cut short, so that the application waits for room.
    wants_room: bool,
    /// SSNs that the peer has received in order, as it reports.
    expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    /// The application has finished; data waits.
    Ending,
    /// All data has been put into segments.
    Ended,
    /// The stream was reset.
    Reset,
}

/// Why a stream cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The connection is not yet, or no longer, established.
    NotEstablished,
    /// All streams that the peer granted are in use.
    NoneLeft,
}

/// Why a stream cannot be written or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no such open stream.
    NotOpen,
    /// Plain TCP cannot reset its stream without closing the connection.
    Plain,
}

impl<P: Payload> Outbound<P> {
    /// `streams` streams besides the control stream, each with this initial credit. Plain TCP has one stream, which is open.
    /// `limit` bytes may wait on each.
    pub(crate) fn new(framing: Framing, streams: u16, limit: u64, credit: u64) -> Self {
        let mut outbound = Self {
            streams: vec![],
            // The stream of plain TCP is always in use.
            names: Names::new(if framing == Framing::Plain { 0 } else { streams }, credit),
            credit,
            turns: Turns::new(),
            waiting: 0,
            records: Records::new(),
            framing,
            queue: SendQueue::new(limit, u64::MAX, streams),
        };
        outbound.make(Sid::CONTROL);
        if framing == Framing::Plain {
            outbound.make(Sid::PLAIN).state = State::Open;
        }
        outbound
    }

    /// Sets the limit of bytes that wait on all of the `streams` streams together.
    pub(crate) fn with_waiting_max(self, waiting_max: u64, streams: u16) -> Self {
        Self { queue: SendQueue::new(self.queue.limit(), waiting_max, streams), ..self }
    }

    /// Opens a stream on an unused SID.
    pub(crate) fn open(&mut self) -> Result<Sid, OpenError> {
        let sid = self.names.take().ok_or(OpenError::NoneLeft)?;
        let stream = self.make(sid);
        debug_assert_eq!(stream.state, State::Idle, "a name that is in use is none of them");
        (stream.state, stream.begin, stream.priority) = (State::Open, stream.segments, Priority::USUAL);
        stream.opened = stream.opened.wrapping_add(1);
        Ok(sid)
    }

    /// The stream of this SID, created if necessary.
    fn make(&mut self, sid: Sid) -> &mut Stream<P> {
        for index in self.streams.len()..=sid.index() {
            self.streams.push(Stream::new(initial(Sid::new(index as u16), self.credit)));
        }
        &mut self.streams[sid.index()]
    }

    /// Bytes that may wait on each stream.
    pub(crate) fn limit(&self) -> u64 {
        self.queue.limit()
    }

    /// Sets how many bytes may wait on each stream.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.queue.set_limit(limit);
    }

    /// Takes as much of `payload` as may wait. Returns the number of bytes.
    pub(crate) fn write(&mut self, sid: Sid, payload: &mut P) -> Result<u32, WriteError> {
        let (bytes, credit) = self.writable(sid).map(|stream| (stream.bytes, stream.credit - stream.used))?;
        let taken = self.queue.add(bytes, credit, payload.len().into()) as u32;
        let stream = &mut self.streams[sid.index()];
        stream.wants_room |= taken < payload.len();
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

    /// Sets the priority of a stream.
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

    /// Finishes a stream: no more data will be written to it.
    pub(crate) fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let stream = self.writable(sid)?;
        stream.state = State::Ending;
        if stream.bytes == 0 {
            self.end(sid);
        }
        Ok(())
    }

    /// Resets a stream. Waiting data is dropped; sent data keeps its sequence space until it is acknowledged.
    pub(crate) fn reset(&mut self, sid: Sid, code: u16) -> Result<(), WriteError> {
        if self.framing == Framing::Plain {
            return Err(WriteError::Plain);
        }
        let stream = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL).ok_or(WriteError::NotOpen)?;
        match stream.state {
            State::Idle | State::Reset => return Err(WriteError::NotOpen),
            State::Open | State::Ending => {
                stream.waiting.clear();
                self.queue.remove(stream.bytes, stream.bytes);
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
        // A reset replaces a Finish that was not sent.
        let is_new = self.records.push(Record::Reset { sid, end: Ssn::of(stream.segments - 1), code });
        stream.unacked += u64::from(is_new);
        Ok(())
    }

    /// The peer refuses the rest of the stream to which the SSN `expected` belongs. If a rest exists, the stream is reset.
    pub(crate) fn stop(&mut self, sid: Sid, expected: Ssn, code: u16, events: &mut Events) {
        let Some(stream) = self.streams.get(sid.index()) else { return };
        let is_meant =
            expected.count_near(stream.segments).is_some_and(|count| (stream.begin..=stream.segments).contains(&count))
                && matches!(stream.state, State::Open | State::Ending);
        if is_meant && self.reset(sid, code).is_ok() {
            events.push_back(Event::Stopped { sid, code });
        }
    }

    /// Finishes all open streams.
    pub(crate) fn finish_all(&mut self) {
        for index in 1..self.streams.len() {
            // Finishing fails on streams that are not open, which is fine.
            let _ = self.finish(Sid::new(index as u16));
        }
    }

    /// The peer raised the limit of a SID and reported ended streams. Records arrive in any order: the higher limit is the later
    /// one; if limits are equal, the later count is.
    pub(crate) fn on_credit(&mut self, sid: Sid, bits: u32, over: u8, events: &mut Events) {
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
        stream.tell_room(sid, &self.queue, events);
        self.enqueue(sid);
    }

    /// The peer's FIN has arrived. No record follows it, so from now on only the window limits data.
    pub(crate) fn lift_credit(&mut self, events: &mut Events) {
        self.credit = u64::MAX;
        self.names.lift_credit();
        for index in 0..self.streams.len() {
            let (sid, stream) = (Sid::new(index as u16), &mut self.streams[index]);
            stream.credit = u64::MAX;
            stream.tell_room(sid, &self.queue, events);
            self.enqueue(sid);
        }
    }

    /// Whether nothing can be sent now.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.records.is_empty()
    }

    /// Bytes that wait, with or without credit.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether nothing waits, not even data without credit.
    pub(crate) fn is_drained(&self) -> bool {
        self.waiting == 0 && self.records.is_empty()
    }

    /// Whether the next segment carries records.
    pub(crate) fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// The sequence space of the next segment, limited to `space`.
    pub(crate) fn peek(&self, space: u32) -> Option<u32> {
        let header = self.header_len();
        if !self.records.is_empty() {
            return Some(self.records_within(space).max(header + Record::LEN));
        }
        let stream = &self.streams[self.turns.first()?.index()];
        let most = u32::try_from(stream.bytes).unwrap_or(u32::MAX).min(stream.credit());
        Some(header.saturating_add(most).min(space))
    }

    /// Whether the next segment takes all waiting data, while the application may still write more.
    pub(crate) fn may_grow(&self) -> bool {
        let only = |sid: Sid| {
            let stream = &self.streams[sid.index()];
            stream.state == State::Open && stream.bytes <= stream.credit().into()
        };
        self.records.is_empty() && self.turns.only().is_some_and(only)
    }

    /// The sequence space of the next segment if it carries records: as many as fit in `space`.
    fn records_within(&self, space: u32) -> u32 {
        let header = self.header_len();
        let count = (space.saturating_sub(header) / Record::LEN).min(self.records.len().min(RecordList::MAX) as u32);
        header + count * Record::LEN
    }

    /// The part of `usable` that a shorter segment can use: at least a record, or a byte of data.
    pub(crate) fn shortened(&self, usable: u32) -> Option<u32> {
        let space = if self.records.is_empty() { usable } else { self.records_within(usable) };
        (space > self.header_len()).then_some(space)
    }

    /// Makes the next segment, of at most `space` bytes of sequence space. A full segment has `full` bytes.
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
        let header_len = self.header_len();
        let stream = &mut self.streams[sid.index()];
        let header = stream.number(sid, self.framing);
        let room = space.checked_sub(header_len).map(|room| room.min(stream.credit()));
        let room =
            room.filter(|&room| room > 0).expect("a segment has room for data, and a stream with a turn has credit");
        let before = stream.bytes;
        let part = stream.take(room).expect("a stream that has a turn has data");
        self.queue.remove(before, part.len().into());
        stream.used += u64::from(part.len());
        stream.unacked += 1;
        stream.is_queued = stream.bytes > 0 && stream.credit() > 0;
        self.turns.on_sent(header_len + part.len(), full, stream.priority, stream.is_queued);
        self.waiting -= u64::from(part.len());
        let is_ending = stream.bytes == 0 && stream.state == State::Ending;
        stream.tell_room(sid, &self.queue, events);
        if self.queue.take_has_room() {
            for (index, stream) in self.streams.iter_mut().enumerate() {
                stream.tell_room(Sid::new(index as u16), &self.queue, events);
            }
        }
        if is_ending {
            self.end(sid);
        }
        Some((header, Content::Data(part)))
    }

    /// A segment or an end has been acknowledged cumulatively.
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

    /// The peer reported the SSN that it expects next on a stream.
    pub(crate) fn on_expected(&mut self, header: StreamHeader) {
        if let Some(stream) = self.streams.get_mut(header.sid.index())
            && let Some(count) = header.ssn.count_near(stream.expected)
            && count <= stream.segments
        {
            stream.expected = stream.expected.max(count);
        }
    }

    /// For tests: for each SID, the bytes sent and the peer's limit.
    #[cfg(test)]
    pub(crate) fn credits(&self) -> impl Iterator<Item = (Sid, u64, u64)> {
        let streams = self.streams.iter().enumerate().skip(1);
        streams.map(|(index, stream)| (Sid::new(index as u16), stream.used, stream.credit))
    }

    /// Segments and ends of a SID that the peer has received in order, as it reports.
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

    /// The last data of a stream was taken: queues the stream's end. In plain TCP the end is a FIN.
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
    /// Takes up to `most` waiting bytes as one payload, however many writes they came from.
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

    /// Informs the application that there is room, if it waits for room and half of what may wait is free.
    fn tell_room(&mut self, sid: Sid, queue: &SendQueue, events: &mut Events) {
        if self.wants_room && self.state == State::Open && 2 * self.bytes <= queue.most_now(self.credit - self.used) {
            self.wants_room = false;
            events.push_back(Event::Writable(sid));
        }
    }

    /// Takes at most `most` bytes of the first waiting write.
    fn take_piece(&mut self, most: u32) -> Option<P> {
        let first = self.waiting.front_mut()?;
        let piece = if first.len() > most { first.split_to(most) } else { self.waiting.pop_front()? };
        self.bytes -= u64::from(piece.len());
        Some(piece)
    }
}

impl<P> Stream<P> {
    /// The stream header of its next segment.
    fn number(&mut self, sid: Sid, framing: Framing) -> Option<StreamHeader> {
        let ssn = Ssn::of(self.segments);
        self.segments += 1;
        (framing == Framing::Streams).then_some(StreamHeader { sid, ssn })
    }

    /// Bytes that may be sent.
    fn credit(&self) -> u32 {
        u32::try_from(self.credit - self.used).unwrap_or(u32::MAX)
    }

    /// The remaining credit, if it exceeds that of an unused SID, and if all streams of this SID are over for the peer's
    /// application, so that a new stream does not wait behind another.
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

/// The number of writes that wait on a stream as they came. Beyond it, small writes are copied together, so that they do not take
/// a hundred times their size in memory. 64 writes of 1,400 bytes are more than a path takes at once.
const WRITES_MAX: usize = 64;

/// Small writes are copied together up to this size: about ten segments.
const ABSORBED_MAX: u32 = 16 << 10;

#[cfg(test)]
mod tests;

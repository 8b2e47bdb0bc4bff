//! The sending side of streams: what waits on each, and whose turn it is.
//!
//! ```text
//! Idle ──open──> Open ──finish──> Ending ──last data cut──> Ended ──all acknowledged──> Idle
//! ```
//!
//! Streams take turns, a segment each. A stream that has ended keeps its count of segments: when its name is used again, the
//! numbers go on, so that the two are never confused.

use std::collections::VecDeque;

use crate::event::Event;
use crate::payload::Payload;
use crate::segment::{Content, Record, Sid, StreamHeader};
use crate::seq::Ssn;

/// All streams of one direction.
#[derive(Debug)]
pub(crate) struct Outbound<P> {
    /// By name, the control stream included.
    streams: Vec<Stream<P>>,
    /// Streams with data, in the order of their turns.
    turns: VecDeque<Sid>,
    records: VecDeque<Record>,
    framing: Framing,
    /// Bytes that may wait on one stream.
    limit: u64,
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
    /// Segments cut so far.
    segments: u64,
    /// Segments and records sent and not acknowledged cumulatively.
    unacked: u64,
    /// Whether a write was cut short, so that the application waits for room.
    wants_room: bool,
    /// Segments that the peer has in order, by its own account.
    pub(crate) expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    /// The application has finished and data waits.
    Ending,
    /// Nothing more will be cut.
    Ended,
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
}

impl<P: Payload> Outbound<P> {
    /// So many streams besides the control stream; plain TCP has one, which is open.
    pub(crate) fn new(framing: Framing, streams: u8, limit: u64) -> Self {
        let mut outbound = Self {
            streams: (0..=streams).map(|_| Stream::new()).collect(),
            turns: VecDeque::new(),
            records: VecDeque::new(),
            framing,
            limit,
        };
        if framing == Framing::Plain {
            outbound.streams[Sid::PLAIN.index()].state = State::Open;
        }
        outbound
    }

    /// Opens the lowest stream that is not in use.
    pub(crate) fn open(&mut self) -> Result<Sid, OpenError> {
        let idle = self.streams.iter().skip(1).position(|stream| stream.state == State::Idle);
        let index = idle.ok_or(OpenError::NoneLeft)? + 1;
        self.streams[index].state = State::Open;
        Ok(Sid::new(index as u8))
    }

    /// Takes as much off `payload` as may wait. Returns how much.
    pub(crate) fn write(&mut self, sid: Sid, payload: &mut P) -> Result<u32, WriteError> {
        let limit = self.limit;
        let stream = self.writable(sid)?;
        let room = u32::try_from(limit.saturating_sub(stream.bytes)).unwrap_or(u32::MAX);
        let taken = room.min(payload.len());
        stream.wants_room |= taken < payload.len();
        if taken == 0 {
            return Ok(0);
        }
        let part = payload.split_to(taken);
        let part = match stream.waiting.back_mut() {
            Some(last) => last.join(part).err(),
            None => Some(part),
        };
        stream.waiting.extend(part);
        if stream.bytes == 0 {
            self.turns.push_back(sid);
        }
        self.streams[sid.index()].bytes += u64::from(taken);
        Ok(taken)
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

    /// Finishes all streams that are open.
    pub(crate) fn finish_all(&mut self) {
        for index in 1..self.streams.len() {
            // Those that are not open need no finishing.
            let _ = self.finish(Sid::new(index as u8));
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.records.is_empty()
    }

    /// Bytes of sequence space of the next segment, if it may have `space` of them.
    pub(crate) fn peek(&self, space: u32) -> Option<u32> {
        let header = self.header_len();
        if !self.records.is_empty() {
            return Some(header + Record::LEN);
        }
        let first = self.streams[self.turns.front()?.index()].waiting.front()?;
        Some((header + first.len()).min(space))
    }

    /// Whether the next segment takes all that waits, and the application may still write more.
    pub(crate) fn may_grow(&self) -> bool {
        let only = |sid: &Sid| {
            let stream = &self.streams[sid.index()];
            stream.state == State::Open && stream.waiting.len() == 1
        };
        self.records.is_empty() && self.turns.len() == 1 && self.turns.front().is_some_and(only)
    }

    /// Whether the next segment could be shorter.
    pub(crate) fn can_shorten(&self) -> bool {
        self.records.is_empty()
    }

    /// Cuts the next segment, with at most `space` bytes of sequence space.
    pub(crate) fn cut(
        &mut self,
        space: u32,
        events: &mut VecDeque<Event>,
    ) -> Option<(Option<StreamHeader>, Content<P>)> {
        if let Some(record) = self.records.pop_front() {
            if let Record::Finish { sid, .. } = record {
                self.streams[sid.index()].unacked += 1;
            }
            return Some((self.number(Sid::CONTROL), Content::Control(record)));
        }
        let sid = self.turns.pop_front()?;
        let (header_len, limit) = (self.header_len(), self.limit);
        let header = self.number(sid);
        let stream = &mut self.streams[sid.index()];
        let first = stream.waiting.front_mut().expect("a stream that has a turn has data");
        let room = space.checked_sub(header_len).filter(|&room| room > 0).expect("a segment has room for data");
        let part = if first.len() > room {
            first.split_to(room)
        } else {
            stream.waiting.pop_front().expect("it was just looked at")
        };
        stream.bytes -= u64::from(part.len());
        stream.unacked += 1;
        if stream.bytes > 0 {
            self.turns.push_back(sid);
        } else if stream.state == State::Ending {
            self.end(sid);
        }
        let stream = &mut self.streams[sid.index()];
        if stream.wants_room && stream.state == State::Open && 2 * stream.bytes <= limit {
            stream.wants_room = false;
            events.push_back(Event::Writable(sid));
        }
        Some((header, Content::Data(part)))
    }

    /// A segment or record has been acknowledged for good.
    pub(crate) fn on_acked(&mut self, sid: Sid, events: &mut VecDeque<Event>) {
        let stream = &mut self.streams[sid.index()];
        stream.unacked -= 1;
        if stream.state == State::Ended && stream.unacked == 0 && self.framing == Framing::Streams {
            stream.state = State::Idle;
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

    /// Segments of a stream that the peer has in order, by its own account.
    pub(crate) fn expected(&self, sid: Sid) -> u64 {
        self.streams.get(sid.index()).map_or(0, |stream| stream.expected)
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
            self.records.push_back(Record::Finish { sid, end: Ssn::of(stream.segments) });
        }
    }

    /// The header of the next segment of a stream.
    fn number(&mut self, sid: Sid) -> Option<StreamHeader> {
        let stream = &mut self.streams[sid.index()];
        let ssn = Ssn::of(stream.segments);
        stream.segments += 1;
        (self.framing == Framing::Streams).then_some(StreamHeader { sid, ssn })
    }

    fn header_len(&self) -> u32 {
        match self.framing {
            Framing::Plain => 0,
            Framing::Streams => StreamHeader::LEN,
        }
    }
}

impl<P> Stream<P> {
    fn new() -> Self {
        Self {
            state: State::Idle,
            waiting: VecDeque::new(),
            bytes: 0,
            segments: 0,
            unacked: 0,
            wants_room: false,
            expected: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    fn cut(outbound: &mut Outbound<Virtual>) -> Option<(u8, u32, u32)> {
        let (header, content) = outbound.cut(104, &mut VecDeque::new())?;
        let header = header.expect("there are streams");
        Some((header.sid.number(), header.ssn.bits(), content.len()))
    }

    /// [mfast-2019] sec. V: "in a round robin fashion".
    #[test]
    fn streams_take_turns_a_segment_each() {
        let mut outbound = Outbound::new(Framing::Streams, 3, 1000);
        for (number, bytes) in [(1, 250), (2, 100), (3, 150)] {
            assert_eq!(outbound.open(), Ok(Sid::new(number)));
            assert_eq!(outbound.write(Sid::new(number), &mut Virtual(bytes)), Ok(bytes));
        }
        let order: Vec<_> = std::iter::from_fn(|| cut(&mut outbound)).collect();
        assert_eq!(order, [(1, 0, 100), (2, 0, 100), (3, 0, 100), (1, 1, 100), (3, 1, 50), (1, 2, 50)]);
    }

    #[test]
    fn a_full_stream_takes_no_more_and_says_when_there_is_room() {
        let mut outbound = Outbound::new(Framing::Streams, 1, 300);
        let (sid, mut events) = (outbound.open().unwrap(), VecDeque::new());
        let mut payload = Virtual(1000);
        assert_eq!((outbound.write(sid, &mut payload), payload), (Ok(300), Virtual(700)));
        assert_eq!(outbound.write(sid, &mut payload), Ok(0));
        outbound.cut(104, &mut events);
        assert!(events.is_empty());
        outbound.cut(104, &mut events);
        assert_eq!(events, [Event::Writable(sid)]);
    }

    #[test]
    fn a_name_is_used_again_when_all_of_it_is_acknowledged_and_numbers_go_on() {
        let mut outbound = Outbound::new(Framing::Streams, 1, 300);
        let (sid, mut events) = (outbound.open().unwrap(), VecDeque::new());
        outbound.write(sid, &mut Virtual(100)).unwrap();
        outbound.finish(sid).unwrap();
        assert_eq!(outbound.write(sid, &mut Virtual(1)), Err(WriteError::NotOpen));
        assert_eq!(cut(&mut outbound), Some((1, 0, 100)));
        let (header, content) = outbound.cut(104, &mut events).unwrap();
        assert_eq!(content, Content::Control(Record::Finish { sid, end: Ssn::of(1) }));
        assert_eq!(header.map(|header| header.sid), Some(Sid::CONTROL));
        outbound.on_acked(sid, &mut events);
        assert_eq!(outbound.open(), Err(OpenError::NoneLeft));
        outbound.on_acked(sid, &mut events);
        assert_eq!((outbound.open(), events.pop_front()), (Ok(sid), Some(Event::Finished(sid))));
        outbound.write(sid, &mut Virtual(10)).unwrap();
        assert_eq!(cut(&mut outbound), Some((1, 1, 10)));
    }
}

//! The receiving side of streams: [mfast-2019] Procedure 1. What is in order on its stream is delivered, whatever is missing of
//! other streams.

use std::collections::{BTreeMap, VecDeque};

use crate::event::Event;
use crate::payload::Payload;
use crate::segment::{Sid, StreamHeader};
use crate::seq::{Offset, Ssn};

/// All streams of one direction.
#[derive(Debug)]
pub(crate) struct Inbound<P> {
    /// By name, the control stream included.
    streams: Vec<Stream<P>>,
}

#[derive(Debug)]
struct Stream<P> {
    /// ESSN, without wrapping: what to deliver next. A number of segments, or a place in plain TCP.
    expected: u64,
    /// What arrived above it. Bounded by the receive window.
    held: BTreeMap<u64, P>,
    /// What the application may read. Bounded by the receive window.
    ready: VecDeque<Ready<P>>,
    /// Where the stream ends, if that is known and lies above `expected`.
    end: Option<u64>,
    /// Whether the application has been told that there is something.
    is_told: bool,
}

#[derive(Debug)]
enum Ready<P> {
    Data(P),
    End,
}

/// What a stream has for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read<P> {
    /// The next bytes of the stream.
    Data(P),
    /// The stream has ended. What is read next belongs to another stream of the same name.
    End,
    /// Nothing yet.
    Nothing,
}

/// What can be wrong with reading a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no stream of this name.
    NoSuchStream,
}

impl<P: Payload> Inbound<P> {
    /// So many streams besides the control stream, in plain TCP one that begins at `expected`.
    pub(crate) fn new(streams: u8, expected: u64) -> Self {
        let stream = || Stream { expected, held: BTreeMap::new(), ready: VecDeque::new(), end: None, is_told: false };
        Self { streams: (0..=streams).map(|_| stream()).collect() }
    }

    /// Whether there is a stream of this name.
    pub(crate) fn has(&self, sid: Sid) -> bool {
        sid.index() < self.streams.len()
    }

    /// A segment of a stream arrived for the first time. Returns how much of it is of no use to anybody.
    pub(crate) fn accept(&mut self, header: StreamHeader, payload: P, events: &mut VecDeque<Event>) -> u32 {
        let stream = &mut self.streams[header.sid.index()];
        let Some(count) = header.ssn.count_near(stream.expected).filter(|&count| count >= stream.expected) else {
            // A number that the stream is past, in sequence space that it is not: the peer is wrong.
            return payload.len();
        };
        // [mfast-2019] Procedure 1, lines 5 to 22.
        if count > stream.expected {
            return stream.held.insert(count, payload).map_or(0, |before| before.len());
        }
        stream.deliver(payload);
        stream.expected += 1;
        while let Some(entry) = stream.held.first_entry()
            && *entry.key() == stream.expected
        {
            let payload = entry.remove();
            stream.deliver(payload);
            stream.expected += 1;
        }
        stream.settle(header.sid, events);
        0
    }

    /// Data of plain TCP arrived for the first time, at this place.
    pub(crate) fn accept_plain(&mut self, place: Offset, payload: P, events: &mut VecDeque<Event>) {
        let stream = &mut self.streams[Sid::PLAIN.index()];
        if place != stream.expected {
            stream.held.insert(place, payload);
            return;
        }
        stream.expected += u64::from(payload.len());
        stream.deliver(payload);
        while let Some(entry) = stream.held.first_entry()
            && *entry.key() == stream.expected
        {
            let payload = entry.remove();
            stream.expected += u64::from(payload.len());
            stream.deliver(payload);
        }
        stream.settle(Sid::PLAIN, events);
    }

    /// A segment of the control stream arrived. Records are acted on at once, so nothing is held.
    pub(crate) fn accept_control(&mut self, ssn: Ssn) {
        let control = &mut self.streams[Sid::CONTROL.index()];
        if let Some(count) = ssn.count_near(control.expected) {
            control.expected = control.expected.max(count + 1);
        }
    }

    /// The peer says where a stream ends.
    pub(crate) fn finish(&mut self, sid: Sid, end: Ssn, events: &mut VecDeque<Event>) {
        if let Some(stream) = self.streams.get_mut(sid.index()) {
            stream.end = end.count_near(stream.expected).filter(|&end| end >= stream.expected);
            stream.settle(sid, events);
        }
    }

    /// Plain TCP's stream ends at this place.
    pub(crate) fn finish_plain(&mut self, end: Offset, events: &mut VecDeque<Event>) {
        let stream = &mut self.streams[Sid::PLAIN.index()];
        stream.end = Some(end);
        stream.settle(Sid::PLAIN, events);
    }

    /// The number that a stream expects next.
    pub(crate) fn expected(&self, sid: Sid) -> Ssn {
        Ssn::of(self.streams[sid.index()].expected)
    }

    /// Takes at most `most` bytes of what is ready.
    pub(crate) fn read(&mut self, sid: Sid, most: u32) -> Result<Read<P>, ReadError> {
        let stream = self.streams.get_mut(sid.index()).filter(|_| sid != Sid::CONTROL);
        let stream = stream.ok_or(ReadError::NoSuchStream)?;
        let read = match stream.ready.front_mut() {
            None => {
                stream.is_told = false;
                return Ok(Read::Nothing);
            }
            Some(Ready::Data(payload)) if payload.len() > most => return Ok(Read::Data(payload.split_to(most))),
            Some(_) => stream.ready.pop_front().expect("it was just looked at"),
        };
        Ok(match read {
            Ready::Data(payload) => Read::Data(payload),
            Ready::End => Read::End,
        })
    }
}

impl<P: Payload> Stream<P> {
    fn deliver(&mut self, payload: P) {
        let payload = match self.ready.back_mut() {
            Some(Ready::Data(last)) => last.join(payload).err(),
            Some(Ready::End) | None => Some(payload),
        };
        self.ready.extend(payload.map(Ready::Data));
    }

    /// Ends the stream if its end is reached, and tells the application once that there is something to read.
    fn settle(&mut self, sid: Sid, events: &mut VecDeque<Event>) {
        if self.end == Some(self.expected) {
            self.end = None;
            self.ready.push_back(Ready::End);
        }
        if !self.ready.is_empty() && !std::mem::replace(&mut self.is_told, true) {
            events.push_back(Event::Readable(sid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    const SID: Sid = Sid::new(1);

    fn accept(inbound: &mut Inbound<Virtual>, ssn: u64, len: u32) -> usize {
        let mut events = VecDeque::new();
        inbound.accept(StreamHeader { sid: SID, ssn: Ssn::of(ssn) }, Virtual(len), &mut events);
        events.len()
    }

    #[test]
    fn a_stream_is_delivered_in_its_order_and_told_of_once() {
        let mut inbound = Inbound::new(2, 0);
        assert_eq!(accept(&mut inbound, 1, 10), 0);
        assert_eq!(accept(&mut inbound, 2, 20), 0);
        assert_eq!(inbound.read(SID, 100), Ok(Read::Nothing));
        assert_eq!(accept(&mut inbound, 0, 5), 1);
        assert_eq!(accept(&mut inbound, 3, 1), 0, "told and not read empty");
        assert_eq!(inbound.read(SID, 30), Ok(Read::Data(Virtual(30))));
        assert_eq!(inbound.read(SID, 30), Ok(Read::Data(Virtual(6))));
        assert_eq!(inbound.read(SID, 30), Ok(Read::Nothing));
        assert_eq!(accept(&mut inbound, 4, 1), 1);
        assert_eq!(inbound.expected(SID), Ssn::of(5));
    }

    #[test]
    fn the_end_waits_for_what_is_before_it() {
        let (mut inbound, mut events) = (Inbound::new(1, 0), VecDeque::new());
        inbound.finish(SID, Ssn::of(2), &mut events);
        accept(&mut inbound, 1, 1);
        assert_eq!(inbound.read(SID, 9), Ok(Read::Nothing));
        accept(&mut inbound, 0, 1);
        assert_eq!(inbound.read(SID, 9), Ok(Read::Data(Virtual(2))));
        assert_eq!(inbound.read(SID, 9), Ok(Read::End));
        // The name is used again, and the numbers go on.
        accept(&mut inbound, 2, 7);
        assert_eq!(inbound.read(SID, 9), Ok(Read::Data(Virtual(7))));
    }

    #[test]
    fn a_segment_of_the_past_is_of_no_use() {
        let mut inbound = Inbound::new(1, 0);
        accept(&mut inbound, 0, 10);
        let header = StreamHeader { sid: SID, ssn: Ssn::of(0) };
        assert_eq!(inbound.accept(header, Virtual(10), &mut VecDeque::new()), 10);
        assert_eq!(inbound.read(Sid::CONTROL, 1), Err(ReadError::NoSuchStream));
    }
}

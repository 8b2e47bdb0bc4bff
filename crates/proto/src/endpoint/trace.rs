//! What happens to the segments of a connection, for a log: kept only where somebody asked for it, and only as far as [`TRACED_MAX`].
//!
//! A segment has the number that its path has counted, from 0 on, for each direction: what is sent again has a new one. Which of them an
//! acknowledgement is about its reader finds out by the places in the sequence space.

use std::collections::VecDeque;

use anabranch_units::{Rate, Span, Time};
use bytes::Bytes;

use super::{ConnectionId, Endpoint};
use crate::connection::{Connection, State};
use crate::options::Options;
use crate::path::{FourTuple, PathId, SLOTS_MAX};
use crate::segment::{Content, Flags, Segment};
use crate::seq::{Offset, SeqNumber};

/// Something happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent {
    /// When.
    pub at: Time,
    /// On which path.
    pub path: PathId,
    /// What it was.
    pub what: Traced,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traced {
    /// A segment left.
    Sent(TracedSegment),
    /// A segment came.
    Received(TracedSegment),
    /// A segment was taken for lost.
    Lost {
        /// Where it begins in the sequence space that this end sends.
        offset: Offset,
        /// Whether a timeout found it, or the path was given up; else acknowledgements did.
        by_timeout: bool,
    },
    /// The numbers of a path are others than before.
    Metrics(Metrics),
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedSegment {
    /// Its number on its path.
    pub number: u64,
    /// Bytes of its datagram.
    pub size: u32,
    /// Where it begins in the sequence space of who sent it.
    pub offset: Offset,
    /// What it takes of that.
    pub space: u32,
    /// The number of the stream of which it has data.
    pub stream: Option<u16>,
    /// Its control bits.
    pub flags: Flags,
    /// Below what its sender has everything.
    pub ack: Option<Offset>,
    /// What it has beyond; empty if the two are equal.
    pub sack: [(Offset, Offset); 3],
}

/// The numbers of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The congestion window, in bytes of sequence space.
    pub window: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// SRTT.
    pub rtt_smoothed: Option<Span>,
    /// The latest sample.
    pub rtt_latest: Option<Span>,
    /// The least.
    pub rtt_min: Option<Span>,
    /// The rate at which segments leave.
    pub pacing: Option<Rate>,
}

/// What is kept of a connection.
#[derive(Debug, Default)]
pub(super) struct Trace {
    events: Vec<TraceEvent>,
    dropped: u64,
    /// Segments so far, by path.
    sent: [u64; SLOTS_MAX],
    received: [u64; SLOTS_MAX],
    timed_out: [u64; SLOTS_MAX],
    metrics: [Metrics; SLOTS_MAX],
}

/// What a connection was traced to have done.
#[derive(Debug)]
pub struct Traces {
    /// Which connection.
    pub connection: ConnectionId,
    /// What happened, the earliest first.
    pub events: Vec<TraceEvent>,
    /// How many events there was no room for.
    pub dropped: u64,
}

impl Trace {
    fn push(&mut self, at: Time, path: PathId, what: Traced) {
        if self.events.len() < TRACED_MAX {
            self.events.push(TraceEvent { at, path, what });
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn on_sent(
        &mut self,
        at: Time,
        (path, size): (PathId, usize),
        segment: &Segment<Bytes>,
        connection: &Connection<Bytes>,
    ) {
        let number = count(&mut self.sent[path.index()]);
        let offset = connection.offset_sent(segment.header.seq);
        let segment = traced(segment, offset, |ack| connection.offset_received(ack));
        self.push(at, path, Traced::Sent(TracedSegment { number, size: size as u32, ..segment }));
    }

    pub(super) fn on_received(
        &mut self,
        at: Time,
        (tuple, size): (FourTuple, usize),
        segment: &Segment<Bytes>,
        connection: &Connection<Bytes>,
    ) {
        let Some((path, _)) = connection.path_reports().find(|(_, report)| report.tuple == tuple) else { return };
        let number = count(&mut self.received[path.index()]);
        let offset = connection.offset_received(segment.header.seq);
        let segment = traced(segment, offset, |ack| connection.offset_sent(ack));
        self.push(at, path, Traced::Received(TracedSegment { number, size: size as u32, ..segment }));
    }

    /// After an input: what was found lost, and what the paths are like now.
    pub(super) fn look(&mut self, at: Time, connection: &mut Connection<Bytes>) {
        let losses = connection.take_losses();
        if connection.state() == State::Closed {
            return;
        }
        for (path, offset) in losses {
            let tally = connection.path(path).map(|report| report.tally.lost_by_timeout);
            let by_timeout = tally.is_none_or(|lost| lost > self.timed_out[path.index()]);
            self.push(at, path, Traced::Lost { offset, by_timeout });
        }
        for (path, report) in connection.path_reports() {
            self.timed_out[path.index()] = report.tally.lost_by_timeout;
            let segment = connection.segment();
            let metrics = Metrics {
                window: (report.window * segment) as u64,
                flight: (report.flight * segment) as u64,
                rtt_smoothed: report.rtt_smoothed,
                rtt_latest: report.tally.rtt_latest,
                rtt_min: report.rtt_min,
                pacing: report.pacing_rate,
            };
            if self.metrics[path.index()] != metrics {
                self.metrics[path.index()] = metrics;
                self.push(at, path, Traced::Metrics(metrics));
            }
        }
    }

    pub(super) fn take(&mut self, connection: ConnectionId) -> Option<Traces> {
        if self.events.is_empty() && self.dropped == 0 {
            return None;
        }
        let (events, dropped) = (std::mem::take(&mut self.events), std::mem::take(&mut self.dropped));
        Some(Traces { connection, events, dropped })
    }
}

impl Endpoint {
    /// From now on all new connections are traced; their traces are to be taken after each turn ([`Endpoint::trace_of`]).
    pub fn trace(&mut self) {
        self.is_tracing = true;
    }

    /// Nobody wants to know any more.
    pub fn stop_trace(&mut self) {
        self.is_tracing = false;
        self.traces_left.clear();
        for slot in self.slots.iter_mut().flatten() {
            slot.trace = None;
            slot.connection.forget_losses();
        }
    }

    /// What has been traced of a connection and not been taken; of one that is gone, too, for a while.
    pub fn trace_of(&mut self, id: ConnectionId) -> Option<Traces> {
        if !self.is_tracing {
            return None;
        }
        if let Some(place) = self.traces_left.iter().position(|traces| traces.connection == id) {
            return self.traces_left.remove(place);
        }
        self.find(id)?.trace.as_mut()?.take(id)
    }
}

/// Keeps what is left of a connection that is gone.
pub(super) fn leave(left: &mut VecDeque<Traces>, traces: Traces) {
    if left.len() == LEFT_MAX {
        left.pop_front();
    }
    left.push_back(traces);
}

fn traced(segment: &Segment<Bytes>, offset: Offset, other: impl Fn(SeqNumber) -> Offset) -> TracedSegment {
    let Segment { header, options, stream_header, content } = segment;
    let flags = header.flags;
    let mut sack = [(0, 0); 3];
    if let Options::Acknowledgement(options) = options {
        for (place, (left, right)) in sack.iter_mut().zip(options.sack().as_slice()) {
            *place = (other(*left), other(*right));
        }
    }
    let stream = stream_header.filter(|_| matches!(content, Content::Data(_))).map(|header| header.sid.number());
    TracedSegment {
        number: 0,
        size: 0,
        offset,
        space: segment.space() as u32,
        stream,
        flags,
        ack: segment.has(Flags::ACK).then(|| other(header.ack)),
        sack,
    }
}

fn count(counter: &mut u64) -> u64 {
    let number = *counter;
    *counter += 1;
    number
}

/// Events of a connection that wait to be taken, some hundred bytes each: a driver takes them after each turn.
const TRACED_MAX: usize = 1 << 13;

/// Connections that are gone and whose traces wait: those that were never established are of no interest to anybody.
const LEFT_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Header;
    use crate::{Sid, Ssn, StreamHeader};

    #[test]
    fn a_stream_beyond_a_byte_keeps_its_number() {
        let segment = |number| Segment {
            header: Header::default(),
            options: Options::Acknowledgement(Default::default()),
            stream_header: Some(StreamHeader { sid: Sid::new(number), ssn: Ssn::of(0) }),
            content: Content::Data(Bytes::from_static(b"x")),
        };
        let numbers = [1, 255, 256, 257, Sid::STREAMS_MAX];
        assert_eq!(numbers.map(|number| traced(&segment(number), 1, |_| 0).stream), numbers.map(Some));
    }
}

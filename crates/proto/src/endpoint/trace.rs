//! Traces a connection's segments for a log: only on request, with at most [`TRACED_MAX`] waiting events.
//!
//! A segment's number counts the segments of its path and direction from 0; a retransmission has a new number. A reader matches
//! acknowledgements to segments by offsets.

use std::collections::VecDeque;

use anabranch_units::{Rate, Span, Time};
use bytes::Bytes;

use super::{ConnectionId, Endpoint};
use crate::connection::{Connection, State};
use crate::options::Options;
use crate::path::{FourTuple, PathId, SLOTS_MAX};
use crate::segment::{Content, Flags, Segment};
use crate::seq::{Offset, SeqNumber};

/// A traced event of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceEvent {
    /// When it happened.
    pub at: Time,
    /// The path that it concerns.
    pub path: PathId,
    /// What happened there.
    pub what: Traced,
}

/// The kinds of traced events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traced {
    /// A segment was sent.
    Sent(TracedSegment),
    /// A segment arrived.
    Received(TracedSegment),
    /// A segment was detected as lost.
    Lost {
        /// Its offset in the sequence space of this end.
        offset: Offset,
        /// Whether a timeout or the removal of its path detected the loss; otherwise acknowledgements did.
        by_timeout: bool,
    },
    /// The metrics of a path have changed.
    Metrics(Metrics),
}

/// What a trace records of a segment that was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedSegment {
    /// Its number on its path.
    pub number: u64,
    /// Bytes of its datagram.
    pub size: u32,
    /// Its offset in its sender's sequence space.
    pub offset: Offset,
    /// The sequence space that it takes.
    pub space: u32,
    /// The stream number of its data.
    pub stream: Option<u16>,
    /// Its control bits.
    pub flags: Flags,
    /// The cumulative acknowledgement.
    pub ack: Option<Offset>,
    /// Its SACK blocks; a block with equal ends is empty.
    pub sack: [(Offset, Offset); 3],
}

/// The metrics of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The congestion window, in bytes of sequence space.
    pub window: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// The smoothed RTT (SRTT).
    pub rtt_smoothed: Option<Span>,
    /// The latest RTT sample.
    pub rtt_latest: Option<Span>,
    /// The minimum RTT.
    pub rtt_min: Option<Span>,
    /// The pacing rate.
    pub pacing: Option<Rate>,
}

/// The trace of a connection.
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

/// The trace of a connection since the last call.
#[derive(Debug)]
pub struct Traces {
    /// The traced connection.
    pub connection: ConnectionId,
    /// The events, the earliest first.
    pub events: Vec<TraceEvent>,
    /// The number of events dropped because the trace was full.
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

    /// After an input: records losses and changed metrics.
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
    /// Traces all new connections from now on. Take the traces after each turn ([`Endpoint::trace_of`]).
    pub fn trace(&mut self) {
        self.is_tracing = true;
    }

    /// Stops tracing connections.
    pub fn stop_trace(&mut self) {
        self.is_tracing = false;
        self.traces_left.clear();
        for slot in self.slots.iter_mut().flatten() {
            slot.trace = None;
            slot.connection.forget_losses();
        }
    }

    /// Takes the trace of a connection. For a while this also works for a closed one.
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

/// Keeps the remaining trace of a closed connection.
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

/// The limit on waiting events per connection, of some hundred bytes each. A driver takes them after each turn.
const TRACED_MAX: usize = 1 << 13;

/// The limit on closed connections with waiting traces. Connections that were never established have none.
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

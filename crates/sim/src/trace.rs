//! The packet trace: a record for each event on the observed links, for comparison with ns-2's trace files.

use std::fmt;

use anabranch_units::SimTime;

use crate::id::{FlowId, LinkId};
use crate::probe::{Direction, Happening, Observer, PacketEvent};

/// Records every event on its links.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The first [`Trace::RECORDS_MAX`] events.
    pub records: Vec<TraceRecord>,
    /// The number of events.
    pub count: u64,
}

/// An event. It prints as a line: `+` enqueued, `d` dropped, `r` received; seconds; link; flow and direction; sequence number;
/// bytes. ns-2 also writes `-` when a packet leaves its queue. Here that time is known in advance and not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it happened.
    pub time: SimTime,
    /// The kind of the event.
    pub happening: Happening,
    /// The link where it happened.
    pub link: LinkId,
    /// The packet's flow.
    pub flow: FlowId,
    /// The direction in the flow.
    pub direction: Direction,
    /// The packet's sequence number.
    pub seq: i64,
    /// Bytes on the wire.
    pub size: u32,
}

impl Trace {
    /// The limit on records, which take about a gigabyte. Further events are only counted.
    pub const RECORDS_MAX: usize = 1 << 24;
}

impl Observer for Trace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let &PacketEvent { time, happening, link, flow, direction, size, body } = event;
        self.count += 1;
        if self.records.len() < Self::RECORDS_MAX {
            self.records.push(TraceRecord { time, happening, link, flow, direction, seq: body.seq(), size });
        }
    }
}

impl fmt::Display for TraceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, happening, link, flow, direction, seq, size } = self;
        let happening = match happening {
            Happening::Enqueued => '+',
            Happening::Dropped(_) | Happening::Discarded => 'd',
            Happening::Received => 'r',
        };
        let direction = match direction {
            Direction::Forward => '>',
            Direction::Backward => '<',
        };
        let (secs, picos) = (time.ticks() / anabranch_units::PICO, time.ticks() % anabranch_units::PICO);
        write!(f, "{happening} {secs}.{picos:012} {link} {flow}{direction} {seq} {size}")
    }
}

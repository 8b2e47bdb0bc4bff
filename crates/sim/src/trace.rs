//! The packet trace: what happened on links, one record after the other, for comparison with ns-2's trace files.

use std::fmt;

use anabranch_units::SimTime;

use crate::id::{FlowId, LinkId};
use crate::probe::{Direction, Happening, Observer, PacketEvent};

/// Remembers every event of the links that it is put on.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The first [`Trace::RECORDS_MAX`] of them.
    pub records: Vec<TraceRecord>,
    /// How many there were.
    pub count: u64,
}

/// One event. It prints as a line: `+` enqueued, `d` dropped, `r` received; seconds; link; flow and direction; sequence number;
/// bytes. ns-2 writes `-` as well, when a packet leaves its queue; here that is known before it happens, and not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When.
    pub time: SimTime,
    /// What.
    pub happening: Happening,
    /// Where.
    pub link: LinkId,
    /// Whose.
    pub flow: FlowId,
    /// Which way.
    pub direction: Direction,
    /// The packet's sequence number.
    pub seq: i64,
    /// Bytes on the wire.
    pub size: u32,
}

impl Trace {
    /// Records that are kept, about a gigabyte; further ones are counted.
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

//! The traces of a run: the arrivals of flows and the packets of links, kept for series and pictures, and the tables that are written: `flow.<id>.csv`
//! and `link.<id>.csv`, with a row at each change.

mod packets;
mod table;

use std::collections::VecDeque;

use anabranch_sim::{Detail, Direction, Entry, FlowId, Happening, History, Interest, Observer, PacketEvent, Portion};
use anabranch_units::{SimSpan, SimTime};

pub use self::packets::Hop;
pub(crate) use self::packets::{PacketTrace, Watch};
pub(crate) use self::table::Table;
pub use self::table::{OpenTable, Output};

/// The trace of arrivals at both ends of a flow.
pub(crate) struct ArrivalTrace {
    flow: FlowId,
    bits: History<Bits>,
    /// The arrival times of ACKs at the source, and the times since the ACK before.
    answer_delays: History<(SimTime, SimSpan)>,
    /// The arrival time of the last ACK.
    answered_at: Option<SimTime>,
}

/// Bits on the wire that arrived at the destination of a flow.
#[derive(Clone, Copy)]
struct Bits(SimTime, u64);

impl Entry for Bits {
    fn time(&self) -> SimTime {
        self.0
    }

    fn joined(&self, later: &Self) -> Self {
        Self(self.0, self.1 + later.1)
    }
}

impl ArrivalTrace {
    /// A trace that observes the last links of both directions.
    pub(crate) fn new(flow: FlowId, detail: Detail) -> Self {
        Self { flow, bits: History::new(detail), answer_delays: History::new(detail), answered_at: None }
    }

    /// The arrival times in seconds, and the bits on the wire.
    pub(crate) fn bits(&self) -> impl Iterator<Item = (f64, f64)> {
        self.bits.entries().iter().map(|&Bits(at, bits)| (at.as_secs_f64(), bits as f64))
    }

    /// The arrival times of ACKs in seconds, and the seconds since the ACK before.
    pub(crate) fn answer_delays(&self) -> impl Iterator<Item = (f64, f64)> {
        self.answer_delays.entries().iter().map(|&(at, delay)| (at.as_secs_f64(), delay.as_secs_f64()))
    }

    /// The resolution: arrivals within this time are one entry.
    pub(crate) fn resolution(&self) -> SimSpan {
        self.bits.resolution().max(self.answer_delays.resolution())
    }
}

impl Observer for ArrivalTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.happening != Happening::Received || event.flow != self.flow {
            return;
        }
        match event.direction {
            Direction::Forward => self.bits.push(Bits(event.time, 8 * u64::from(event.size))),
            Direction::Backward => {
                if let Some(before) = self.answered_at.replace(event.time) {
                    self.answer_delays.push((event.time, event.time.since(before)));
                }
            }
        }
    }

    fn interest(&self) -> Interest {
        Interest { enqueued: false, received: true, departures: false }
    }
}

/// The time at which the application had read the last bit of each message, and the seconds since the message was offered. Bits read from a
/// stream belong to its oldest messages.
pub(crate) fn message_delays(
    offers: impl Iterator<Item = Portion>,
    reads: impl Iterator<Item = Portion>,
) -> Vec<(f64, f64)> {
    let mut waiting: Vec<VecDeque<Portion>> = vec![];
    for offer in offers {
        if waiting.len() <= offer.stream {
            waiting.resize(offer.stream + 1, VecDeque::new());
        }
        waiting[offer.stream].push_back(offer);
    }
    let mut delays = Vec::new();
    for read in reads {
        let mut bits = read.bits;
        let Some(waiting) = waiting.get_mut(read.stream) else { continue };
        while let Some(message) = waiting.front_mut() {
            let taken = message.bits.min(bits);
            (message.bits, bits) = (message.bits - taken, bits - taken);
            if message.bits > 0 {
                break;
            }
            delays.push((read.time.as_secs_f64(), read.time.since(message.time).as_secs_f64()));
            waiting.pop_front();
        }
    }
    delays
}

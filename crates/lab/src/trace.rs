//! The traces of a run: the variables of links and the arrivals of flows, kept for series, or written as tables: `flow.<id>.csv` and
//! `link.<id>.csv`, with a row at each change.

mod packets;
mod table;

use std::collections::VecDeque;
use std::io;

use anabranch_sim::{
    Detail, Direction, DropReason, Entry, FlowId, Happening, History, LinkId, Observer, PacketEvent, Portion,
};
use anabranch_units::{SimSpan, SimTime};

pub use self::packets::Hop;
pub(crate) use self::packets::{PacketTrace, Watch};
pub(crate) use self::table::Table;
pub use self::table::{OpenTable, Output};

/// The trace of a link's variables.
pub(crate) struct LinkTrace {
    /// The rows that are complete.
    settled: Settled,
    /// The later changes.
    pending: Pending,
}

/// The complete rows of a link: those that are kept for series, and the table that is written.
#[derive(Default)]
struct Settled {
    last: LinkRow,
    kept: Option<History<LinkRow>>,
    table: Option<Table<LinkRow>>,
}

impl Settled {
    fn push(&mut self, row: LinkRow) {
        self.last = row;
        if let Some(kept) = &mut self.kept {
            kept.push(row);
        }
        if let Some(table) = &mut self.table {
            table.push(row);
        }
    }
}

/// Changes that are not complete: a packet departs later than its departure is known.
#[derive(Clone, Default)]
struct Pending {
    /// Departures, in their order.
    departures: VecDeque<SimTime>,
    /// The others, in theirs.
    others: VecDeque<(SimTime, Change)>,
}

impl Pending {
    /// Moves the changes before `until` to the rows. Changes at the same time are one row.
    fn settle(&mut self, rows: &mut Settled, until: SimTime) {
        loop {
            let departure = self.departures.front().copied().unwrap_or(SimTime::NEVER);
            let time = self.others.front().map_or(departure, |other| other.0.min(departure));
            if time >= until {
                return;
            }
            let mut row = LinkRow { time, ..rows.last };
            // Arrivals before departures, so that a queue is never negative.
            let mut gone = 0;
            while let Some((_, change)) = self.others.pop_front_if(|other| other.0 == time) {
                match change {
                    Change::Received => row.forwarded += 1,
                    Change::Enqueued => row.queue += 1,
                    Change::Discarded => (gone, row.dropped) = (gone + 1, row.dropped + 1),
                    Change::Dropped => row.dropped += 1,
                }
            }
            while self.departures.pop_front_if(|departure| *departure == time).is_some() {
                gone += 1;
            }
            row.queue -= gone;
            rows.push(row);
        }
    }
}

/// A change other than a departure from the transmitter.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The queue accepted a packet.
    Enqueued,
    /// A packet was received at the far end.
    Received,
    /// The queue dropped a packet that it had accepted.
    Discarded,
    /// A packet was lost before the queue.
    Dropped,
}

/// A link's variables from some time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkRow {
    pub(crate) time: SimTime,
    /// Packets, the one in service included.
    pub(crate) queue: u64,
    /// Packets lost so far.
    pub(crate) dropped: u64,
    /// Packets received at the far end so far.
    pub(crate) forwarded: u64,
}

impl Entry for LinkRow {
    fn time(&self) -> SimTime {
        self.time
    }

    fn joined(&self, later: &Self) -> Self {
        *later
    }
}

impl LinkTrace {
    /// A trace with rows in this detail for series, and with a table.
    pub(crate) fn new(detail: Option<Detail>, table: Option<Table<LinkRow>>) -> Self {
        Self {
            settled: Settled { kept: detail.map(History::new), table, ..Settled::default() },
            pending: Pending::default(),
        }
    }

    /// The resolution of the rows that are kept: changes within this time are one row.
    pub(crate) fn resolution(&self) -> Option<SimSpan> {
        self.settled.kept.as_ref().map(History::resolution)
    }

    /// A row at each time of a change until `end`, if they are kept.
    pub(crate) fn rows(&self, end: SimTime) -> Option<Vec<LinkRow>> {
        let kept = self.settled.kept.clone()?;
        let mut rows = Settled { last: self.settled.last, kept: Some(kept), table: None };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
        rows.kept.map(History::into_entries)
    }

    /// Writes the rest of the table, if there is one, until `end`.
    ///
    /// # Errors
    /// If it could not be written, now or before.
    pub(crate) fn finish_table(&mut self, end: SimTime) -> io::Result<()> {
        let Some(table) = self.settled.table.take() else { return Ok(()) };
        let mut rows = Settled { last: self.settled.last, kept: None, table: Some(table) };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
        rows.table.map_or(Ok(()), |mut table| table.finish())
    }
}

impl Observer for LinkTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let change = match event.happening {
            Happening::Enqueued => Change::Enqueued,
            Happening::Received => Change::Received,
            Happening::Discarded => Change::Discarded,
            Happening::Dropped(DropReason::Error | DropReason::Queue | DropReason::TooLong) => Change::Dropped,
            // The node at the far end had no route for it; this does not concern the link.
            Happening::Dropped(DropReason::NoRoute | DropReason::HopLimit) => return,
        };
        self.pending.others.push_back((event.time, change));
        self.pending.settle(&mut self.settled, event.time);
    }

    fn on_departure(&mut self, _: LinkId, at: SimTime) {
        self.pending.departures.push_back(at);
    }
}

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

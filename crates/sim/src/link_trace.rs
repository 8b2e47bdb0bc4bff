//! The variables of a link over time, as rows.
//!
//! A packet departs later than its departure is known, and changes at the same time are one row. So changes wait until time has passed them.

use std::collections::VecDeque;
use std::fmt;

use anabranch_units::{SimSpan, SimTime};

use crate::history::{Detail, Entry, History};
use crate::id::LinkId;
use crate::link::DropReason;
use crate::probe::{Happening, Observer, PacketEvent};

/// A link's variables from some time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRow {
    /// When they changed.
    pub time: SimTime,
    /// Packets, the one in service included.
    pub queue: u64,
    /// Packets lost so far.
    pub dropped: u64,
    /// Packets received at the far end so far.
    pub forwarded: u64,
}

impl Entry for LinkRow {
    fn time(&self) -> SimTime {
        self.time
    }

    fn joined(&self, later: &Self) -> Self {
        *later
    }
}

/// An observer that keeps the rows of a link, or tells of each.
pub struct LinkTrace {
    settled: Settled,
    pending: Pending,
}

/// The rows that are complete.
struct Settled {
    last: LinkRow,
    kept: Option<History<LinkRow>>,
    tell: Option<Box<dyn FnMut(LinkRow) + Send>>,
}

impl Settled {
    fn push(&mut self, row: LinkRow) {
        self.last = row;
        if let Some(kept) = &mut self.kept {
            kept.push(row);
        }
        if let Some(tell) = &mut self.tell {
            tell(row);
        }
    }
}

/// The later changes.
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

impl LinkTrace {
    /// A trace that keeps rows in this detail, and calls `tell` for each row.
    pub fn new(detail: Option<Detail>, tell: Option<Box<dyn FnMut(LinkRow) + Send>>) -> Self {
        let settled = Settled { last: LinkRow::default(), kept: detail.map(History::new), tell };
        Self { settled, pending: Pending::default() }
    }

    /// The resolution of the rows that are kept: changes within this time are one row.
    pub fn resolution(&self) -> Option<SimSpan> {
        self.settled.kept.as_ref().map(History::resolution)
    }

    /// A row at each time of a change until `end`, if they are kept.
    pub fn rows(&self, end: SimTime) -> Option<impl Iterator<Item = LinkRow>> {
        let kept = self.settled.kept.as_ref()?;
        // The last row is copied alone, since later ones may be merged with it.
        let (last, before) =
            kept.entries().split_last().map_or((None, &[][..]), |(last, before)| (Some(*last), before));
        let mut late = History::new(kept.resolution());
        last.into_iter().for_each(|last| late.push(last));
        let mut rows = Settled { last: self.settled.last, kept: Some(late), tell: None };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
        let late = rows.kept.map(History::into_entries).unwrap_or_default();
        Some(before.iter().copied().chain(late))
    }

    /// Tells of the rows until `end` that are still to come. It is the last call.
    pub fn finish(&mut self, end: SimTime) {
        let mut rows = Settled { last: self.settled.last, kept: None, tell: self.settled.tell.take() };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
    }
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTrace").field("last", &self.settled.last).finish_non_exhaustive()
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

//! The variables of a link over time, as rows.
//!
//! A packet departs later than its departure is known, and changes at the same time are one row. So changes wait until time has passed them.

use std::collections::VecDeque;
use std::fmt;

use anabranch_units::{SimSpan, SimTime};

use crate::history::{Detail, Entry, History};
use crate::id::LinkId;
use crate::interest::Interest;
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
}

/// An observer that keeps the rows of a link, or tells of each.
pub struct LinkTrace {
    settled: Settled,
    pending: Pending,
    interest: Interest,
}

/// The rows that are complete.
struct Settled {
    kept: Option<History<LinkRow>>,
    tell: Option<Box<dyn FnMut(LinkRow) + Send>>,
}

impl Settled {
    fn push(&mut self, row: LinkRow) {
        if let Some(kept) = &mut self.kept {
            kept.push(row);
        }
        if let Some(tell) = &mut self.tell {
            tell(row);
        }
    }
}

/// The changes that time has not passed.
#[derive(Clone, Default)]
struct Pending {
    /// The row at the time of the last change, which may still change.
    row: LinkRow,
    /// Whether there is one: before the first change there is none.
    is_open: bool,
    /// Later departures, in their order; those at the time of the row are still missing in it.
    departures: VecDeque<SimTime>,
}

impl Pending {
    /// Completes the rows before `until`. Changes at the same time are one row.
    fn settle(&mut self, rows: &mut Settled, until: SimTime) {
        while let Some(departure) = self.departures.pop_front_if(|departure| *departure < until) {
            self.at(rows, departure).queue -= 1;
        }
        if self.is_open && self.row.time < until {
            rows.push(self.row);
            self.is_open = false;
        }
    }

    /// The row of a time that is not before the last.
    fn at(&mut self, rows: &mut Settled, time: SimTime) -> &mut LinkRow {
        if self.is_open && self.row.time < time {
            rows.push(self.row);
        }
        self.is_open = true;
        self.row.time = time;
        &mut self.row
    }
}

impl LinkTrace {
    /// A trace that keeps rows in this detail, and calls `tell` for each row.
    pub fn new(detail: Option<Detail>, tell: Option<Box<dyn FnMut(LinkRow) + Send>>) -> Self {
        let settled = Settled { kept: detail.map(History::new), tell };
        Self { settled, pending: Pending::default(), interest: Interest::ALL }
    }

    /// The same trace without packets received at the far end: a row at each change of the queue.
    #[must_use]
    pub fn of_queue(self) -> Self {
        Self { interest: Interest { received: false, ..self.interest }, ..self }
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
        let mut rows = Settled { kept: Some(late), tell: None };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
        let late = rows.kept.map(History::into_entries).unwrap_or_default();
        Some(before.iter().copied().chain(late))
    }

    /// Tells of the rows until `end` that are still to come. It is the last call.
    pub fn finish(&mut self, end: SimTime) {
        let mut rows = Settled { kept: None, tell: self.settled.tell.take() };
        self.pending.clone().settle(&mut rows, end.saturating_add(SimSpan::from_ticks(1)));
    }
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTrace").field("row", &self.pending.row).finish_non_exhaustive()
    }
}

impl Observer for LinkTrace {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        // The node at the far end had no route for it; this does not concern the link.
        if matches!(event.happening, Happening::Dropped(DropReason::NoRoute | DropReason::HopLimit)) {
            return;
        }
        self.pending.settle(&mut self.settled, event.time);
        let row = self.pending.at(&mut self.settled, event.time);
        match event.happening {
            Happening::Enqueued => row.queue += 1,
            Happening::Received => row.forwarded += 1,
            Happening::Discarded => (row.queue, row.dropped) = (row.queue - 1, row.dropped + 1),
            Happening::Dropped(_) => row.dropped += 1,
        }
    }

    fn on_departure(&mut self, _: LinkId, at: SimTime) {
        self.pending.departures.push_back(at);
    }

    fn interest(&self) -> Interest {
        self.interest
    }
}

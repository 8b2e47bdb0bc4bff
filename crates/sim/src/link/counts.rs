//! What happened to packets on a link, by flow and direction.

use anabranch_proto::EcnCodepoint;

use crate::packet::{Flight, Leg};

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// An error model took it.
    Error,
    /// The queue refused it, or threw it away later.
    Queue,
    /// The node had no route for it.
    NoRoute,
    /// It had passed [`crate::HOPS_MAX`] links: the routes form a loop.
    HopLimit,
    /// It was longer than the link's packets may be.
    TooLong,
}

/// What happened to packets on a link since the start. Always
/// `offered = errors + drops + waiting + flying + delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came to the link's entrance.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that an error model took.
    pub errors: u64,
    /// Packets that the queue refused, or threw away later, and those that were too long.
    pub drops: u64,
    /// Of these, those that were too long.
    pub too_long: u64,
    /// Packets that the queue marked.
    pub marks: u64,
    /// The most packets of one flow and direction that were lost at the entrance one right after the other.
    pub losses_in_row_max: u64,
    /// How many were lost so up to the last one that was.
    losses_in_row: u64,
    /// Which one that was, counted from 1.
    last_lost: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            offered_bytes: self.offered_bytes + other.offered_bytes,
            errors: self.errors + other.errors,
            drops: self.drops + other.drops,
            too_long: self.too_long + other.too_long,
            marks: self.marks + other.marks,
            losses_in_row_max: self.losses_in_row_max.max(other.losses_in_row_max),
            ..Self::default()
        }
    }

    /// The packet that was offered last is marked.
    pub(crate) fn mark(&mut self, flight: &mut Flight) {
        *flight = flight.with_ecn(Some(EcnCodepoint::Ce));
        self.marks += 1;
    }

    /// The packet that was offered last is lost.
    pub(crate) fn lose(&mut self, reason: DropReason) -> DropReason {
        match reason {
            DropReason::Error => self.errors += 1,
            DropReason::Queue | DropReason::NoRoute | DropReason::HopLimit | DropReason::TooLong => self.drops += 1,
        }
        self.too_long += u64::from(reason == DropReason::TooLong);
        let is_next = self.last_lost + 1 == self.offered;
        self.losses_in_row = if is_next { self.losses_in_row + 1 } else { 1 };
        self.last_lost = self.offered;
        self.losses_in_row_max = self.losses_in_row_max.max(self.losses_in_row);
        reason
    }
}

/// Counts by flow and direction. A link sees few flows of a large world, often neighbours, so this is a window over the
/// numbers of their legs.
#[derive(Clone, Debug, Default)]
pub(crate) struct LegCounts {
    first: Leg,
    counts: Vec<Counts>,
}

impl LegCounts {
    #[inline]
    pub(crate) fn of(&mut self, leg: Leg) -> &mut Counts {
        let index = leg.wrapping_sub(self.first) as usize;
        if index >= self.counts.len() {
            self.widen(leg);
        }
        &mut self.counts[(leg - self.first) as usize]
    }

    #[cold]
    fn widen(&mut self, leg: Leg) {
        if self.counts.is_empty() {
            self.first = leg;
        }
        if leg < self.first {
            let missing = (self.first - leg) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(Counts::default(), missing));
            self.first = leg;
        }
        let len = (leg - self.first) as usize + 1;
        self.counts.resize(len.max(self.counts.len()), Counts::default());
    }

    pub(crate) fn get(&self, leg: Leg) -> Counts {
        leg.checked_sub(self.first).and_then(|index| self.counts.get(index as usize)).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> Counts {
        self.counts.iter().copied().fold(Counts::default(), Counts::plus)
    }
}

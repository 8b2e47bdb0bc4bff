//! Records over time in bounded memory.
//!
//! A history keeps every entry while there is room. When it is full, it becomes coarser: time is divided into bins, and the
//! entries of a bin are merged into one, as with a requested resolution. So a run of any length is recorded, and a run that fits
//! is recorded completely.

use anabranch_units::{SimSpan, SimTime};

/// The detail of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The width of a bin; bins are counted from time zero. A width of zero merges nothing.
    pub resolution: SimSpan,
    /// The memory limit of its entries in bytes.
    pub bytes_max: usize,
}

impl Detail {
    /// Everything, without a limit.
    pub const WHOLE: Self = Self { resolution: SimSpan::ZERO, bytes_max: usize::MAX };
}

/// This resolution, and no limit.
impl From<SimSpan> for Detail {
    fn from(resolution: SimSpan) -> Self {
        Self { resolution, ..Self::WHOLE }
    }
}

/// An entry with a time.
pub trait Entry: Copy {
    /// The time of the entry.
    fn time(&self) -> SimTime;

    /// Whether `later`, which is in the same bin, can be merged with this entry.
    fn joins(&self, _later: &Self) -> bool {
        true
    }

    /// Both entries merged, with the time of one of them. Of a variable the last value in a bin is kept.
    #[must_use]
    fn joined(&self, later: &Self) -> Self {
        *later
    }
}

impl<T: Copy> Entry for (SimTime, T) {
    fn time(&self) -> SimTime {
        self.0
    }
}

/// Entries in the order of their times.
#[derive(Clone, Debug)]
pub struct History<T> {
    entries: Vec<T>,
    resolution: SimSpan,
    entries_max: usize,
}

impl<T: Entry> History<T> {
    /// An empty history.
    pub fn new(detail: impl Into<Detail>) -> Self {
        let Detail { resolution, bytes_max } = detail.into();
        // A history with fewer entries would be useless.
        let entries_max = (bytes_max / size_of::<T>()).max(ENTRIES_MIN);
        Self { entries: Vec::new(), resolution, entries_max }
    }

    /// Adds an entry for the current time.
    pub fn push(&mut self, entry: T) {
        let length = add(&mut self.entries, entry, self.resolution);
        if length > self.entries_max {
            self.coarsen();
        }
    }

    /// The last entry.
    pub fn last(&self) -> Option<&T> {
        self.entries.last()
    }

    /// All entries in order.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }

    /// All entries in order, without a copy.
    pub fn into_entries(self) -> Vec<T> {
        self.entries
    }

    /// The width of a bin. It is coarser than requested if the entries did not fit.
    pub fn resolution(&self) -> SimSpan {
        self.resolution
    }

    /// At least halves the number of entries.
    fn coarsen(&mut self) {
        let span = |entries: &[T]| entries.last().map_or(0, |last| last.time().since(entries[0].time()).ticks());
        let wanted = span(&self.entries) / (self.entries_max as u64 / 2);
        let mut width = round_up(wanted.max(self.resolution.ticks() + 1));
        while self.entries.len() > self.entries_max / 2 && width < WIDTH_MAX {
            self.resolution = SimSpan::from_ticks(width);
            let mut coarser = Vec::with_capacity(self.entries_max / 2);
            for entry in &self.entries {
                add(&mut coarser, *entry, self.resolution);
            }
            self.entries = coarser;
            width = round_up(width + 1);
        }
    }
}

/// The next larger of 1, 2, 5, 10, 20, ...: round numbers.
fn round_up(ticks: u64) -> u64 {
    let steps = (0..18).flat_map(|digits| [1, 2, 5].map(|digit| digit * 10_u64.pow(digits)));
    steps.into_iter().find(|&step| step >= ticks).unwrap_or(WIDTH_MAX)
}

/// Adds an entry, or merges it within its bin; returns the number of entries.
fn add<T: Entry>(entries: &mut Vec<T>, entry: T, resolution: SimSpan) -> usize {
    let is_near = |other: &T| is_same_bin(other.time(), entry.time(), resolution);
    // Most often no entry is near.
    if !entries.last().is_some_and(is_near) {
        entries.push(entry);
        return entries.len();
    }
    let near = entries.iter().rev().take_while(|other| is_near(other)).position(|other| other.joins(&entry));
    let Some(place) = near.map(|back| entries.len() - 1 - back) else {
        entries.push(entry);
        return entries.len();
    };
    let joined = entries[place].joined(&entry);
    if joined.time() == entries[place].time() {
        entries[place] = joined;
    } else {
        entries.remove(place);
        entries.push(joined);
    }
    entries.len()
}

/// Whether two times lie in the same bin of this width. Bins are counted from time zero; with a width of zero, no two times share
/// one.
pub fn is_same_bin(one: SimTime, other: SimTime, width: SimSpan) -> bool {
    !width.is_zero() && one.ticks() / width.ticks() == other.ticks() / width.ticks()
}

/// Records the value of a variable, if it has changed.
pub(crate) fn remember<T: Copy + PartialEq>(changes: &mut History<(SimTime, T)>, now: SimTime, value: T) {
    if changes.last().is_none_or(|(_, last)| *last != value) {
        changes.push((now, value));
    }
}

/// Records a count that starts at 0.
pub(crate) fn remember_count(changes: &mut History<(SimTime, u32)>, now: SimTime, count: u32) {
    if count > 0 || changes.last().is_some() {
        remember(changes, now, count);
    }
}

/// The least number of entries that is useful.
const ENTRIES_MIN: usize = 1000;

/// No run lasts two bins of this width, which is 53 days.
const WIDTH_MAX: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> SimTime {
        SimTime::from_ticks(ticks)
    }

    fn limited(entries: usize) -> Detail {
        Detail { bytes_max: entries * size_of::<(SimTime, u64)>(), ..Detail::WHOLE }
    }

    #[test]
    fn history_keeps_entries_that_fit() {
        let mut history = History::new(limited(1000));
        (0..1000).for_each(|n| history.push((at(n), n)));
        assert_eq!(history.entries(), (0..1000).map(|n| (at(n), n)).collect::<Vec<_>>());
        assert_eq!(history.resolution(), SimSpan::ZERO);
    }

    /// A million changes at equal intervals, with room for a thousand. At most a thousand remain and at least a fifth of that,
    /// from the first to the last bin. Each is the variable's value at that time.
    #[test]
    fn history_beyond_capacity_keeps_last_of_each_bin() {
        let mut history = History::new(limited(1000));
        (0..1_000_000).for_each(|n| history.push((at(10 * n), n)));
        let entries = history.entries();
        assert!((200..=1000).contains(&entries.len()), "{}", entries.len());
        assert!(entries.iter().all(|&(time, n)| time == at(10 * n)));
        let width = history.resolution().ticks();
        assert!(entries[0].1 < width && entries.last() == Some(&(at(9_999_990), 999_999)));
        assert!(entries.windows(2).all(|pair| pair[1].0.ticks() / width == pair[0].0.ticks() / width + 1));
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Bits(SimTime, u8, u64);

    impl Entry for Bits {
        fn time(&self) -> SimTime {
            self.0
        }

        fn joins(&self, later: &Self) -> bool {
            self.1 == later.1
        }

        fn joined(&self, later: &Self) -> Self {
            Self(later.0, self.1, self.2 + later.2)
        }
    }

    /// Three streams in turn: within a bin each stream has one entry, and no bytes are lost.
    #[test]
    fn events_add_up_stream_by_stream() {
        let mut history = History::new(SimSpan::from_ticks(100));
        (0..300).for_each(|n| history.push(Bits(at(n), (n % 3) as u8, 1)));
        assert_eq!(history.entries().len(), 9);
        for stream in 0..3 {
            let of = history.entries().iter().filter(|bits| bits.1 == stream);
            assert_eq!(of.map(|bits| bits.2).sum::<u64>(), 100);
        }
        assert!(history.entries().is_sorted_by_key(|bits| bits.0));
    }
}

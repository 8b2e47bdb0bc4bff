//! The order of streams with data to send.
//!
//! Levels are strict: a stream waits while a lower level has something to send. The streams of one level take turns. A turn is
//! worth a full segment (in bytes) per unit of weight. It ends when less than a full segment is left of it, and the rest is
//! discarded. So streams of weight 1 send one segment each in turn, whether long or short ([mfast-2019] sec. V: "in a round robin
//! fashion"), and streams of greater weight send proportionally more bytes. Segments are never shortened for this.
//!
//! The streams of a level are a ring in which each stores the SID of the next one, so a step takes a few loads. Only removing a
//! stream from the middle takes a search.

use crate::segment::Sid;

/// The priority of a stream relative to others of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Streams of a lower level always go first. At most [`Priority::LEVEL_MAX`].
    pub level: u8,
    /// The share of the level's bytes, relative to a stream of weight 1; at least 1. The bytes of a turn are sent in a row.
    pub weight: u8,
}

/// Streams with data and credit, in the order of their turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// For each stream the next one on its level; the last is followed by the first. Up to the highest stream that had a turn.
    next: Vec<Sid>,
    /// For each level that has streams, the last one in order.
    last: [Sid; Priority::LEVEL_MAX as usize + 1],
    /// The levels with streams, a bit each.
    occupied: u8,
    /// The stream that has its turn, cached: it is read far more often than it changes.
    first: Sid,
    /// The bytes left of the current turn, once it has begun.
    left: Option<u64>,
}

impl Priority {
    /// The highest level; eight levels suffice.
    pub const LEVEL_MAX: u8 = 7;

    /// The default priority: a middle level, with levels above and below.
    pub const USUAL: Self = Self { level: 3, weight: 1 };

    /// The nearest valid priority.
    fn clamped(self) -> Self {
        Self { level: self.level.min(Self::LEVEL_MAX), weight: self.weight.max(1) }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { next: vec![], last: [Sid::CONTROL; _], occupied: 0, first: Sid::CONTROL, left: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The stream whose turn it is.
    pub(crate) fn first(&self) -> Option<Sid> {
        if self.occupied == 0 { None } else { Some(self.first) }
    }

    /// The only stream with something to send, if there is only one.
    pub(crate) fn only(&self) -> Option<Sid> {
        let last = *self.last.get(self.level())?;
        (self.occupied.is_power_of_two() && self.next[last.index()] == last).then_some(last)
    }

    /// Appends a stream to its level.
    pub(crate) fn push(&mut self, sid: Sid, priority: Priority) {
        let level = priority.clamped().level;
        if self.next.len() <= sid.index() {
            self.next.resize(1 + sid.index(), Sid::CONTROL);
        }
        // A stream that preempts another begins a turn of its own.
        if usize::from(level) < self.level() {
            self.left = None;
        }
        let last = std::mem::replace(&mut self.last[usize::from(level)], sid);
        let is_alone = self.occupied & 1 << level == 0;
        let before = if is_alone { sid } else { last };
        self.next[sid.index()] = self.next[before.index()];
        self.next[before.index()] = sid;
        self.occupied |= 1 << level;
        self.settle();
    }

    /// The stream that has its turn has sent `bytes` bytes of sequence space; a full segment has `full`. It `stays` if it has
    /// more to send.
    pub(crate) fn on_sent(&mut self, bytes: u32, full: u32, priority: Priority, stays: bool) {
        let turn = u64::from(priority.clamped().weight) * u64::from(full);
        let left = self.left.unwrap_or(turn).saturating_sub(bytes.into());
        self.left = Some(left).filter(|&left| stays && left >= u64::from(full));
        if self.left.is_some() {
            return;
        }
        let (level, first) = (self.level(), self.first);
        let Some(last) = self.last.get_mut(level) else { return };
        let second = self.next[first.index()];
        if stays {
            (*last, self.first) = (first, second);
        } else if first == *last {
            self.occupied &= !(1 << level);
            self.settle();
        } else {
            self.next[last.index()] = second;
            self.first = second;
        }
    }

    /// The stream has nothing more to send.
    pub(crate) fn remove(&mut self, sid: Sid, priority: Priority) {
        if self.first() == Some(sid) {
            self.left = None;
        }
        let level = priority.clamped().level;
        if self.occupied & 1 << level == 0 {
            return;
        }
        let last = &mut self.last[usize::from(level)];
        let mut before = *last;
        while self.next[before.index()] != sid {
            before = self.next[before.index()];
            if before == *last {
                // It is in no ring.
                return;
            }
        }
        if before == sid {
            self.occupied &= !(1 << level);
        } else {
            self.next[before.index()] = self.next[sid.index()];
            if *last == sid {
                *last = before;
            }
        }
        self.settle();
    }

    /// Determines which stream has its turn.
    fn settle(&mut self) {
        if let Some(last) = self.last.get(self.level()) {
            self.first = self.next[last.index()];
        }
    }

    /// The first level with streams, or one past the last level.
    fn level(&self) -> usize {
        self.occupied.trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Streams, numbered from 1, with these priorities and endless data. Returns the streams of the first segments, of `bytes`
    /// bytes each.
    fn order(priorities: &[(u8, u8)], bytes: u32, count: usize) -> Vec<u16> {
        let priority = |sid: Sid| {
            let (level, weight) = priorities[sid.index() - 1];
            Priority { level, weight }
        };
        let mut turns = Turns::new();
        (1..=priorities.len()).for_each(|number| {
            let sid = Sid::new(number as u16);
            turns.push(sid, priority(sid));
        });
        let next = |_| {
            let sid = turns.first().unwrap();
            turns.on_sent(bytes, 100, priority(sid), true);
            sid.number()
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn equals_take_turns_a_segment_each_however_long() {
        for bytes in [1, 60, 100] {
            assert_eq!(order(&[(3, 1); 3], bytes, 7), [1, 2, 3, 1, 2, 3, 1]);
        }
    }

    #[test]
    fn a_turn_is_worth_as_many_full_segments_as_the_weight_says() {
        assert_eq!(order(&[(3, 1), (3, 3)], 100, 8), [1, 2, 2, 2, 1, 2, 2, 2]);
        // In bytes: 300 are 7 segments of 40. The turn ends when less than a full segment (100) is left.
        assert_eq!(order(&[(3, 1), (3, 3)], 40, 8), [1, 2, 2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn lower_level_goes_first_and_unknown_level_is_nearest() {
        assert_eq!(order(&[(9, 0), (7, 2), (6, 1)], 100, 3), [3, 3, 3]);
        assert_eq!(order(&[(9, 0), (7, 2)], 100, 6), [1, 2, 2, 1, 2, 2]);
    }

    /// A more urgent stream preempts a turn, and the rest of that turn is lost.
    #[test]
    fn an_urgent_stream_interrupts_a_turn() {
        let (heavy, urgent) = (Priority { level: 3, weight: 3 }, Priority { level: 0, weight: 1 });
        let mut turns = Turns::new();
        (1..3).for_each(|number| turns.push(Sid::new(number), heavy));
        turns.on_sent(100, 100, heavy, true);
        turns.push(Sid::new(9), urgent);
        assert_eq!(turns.first(), Some(Sid::new(9)));
        turns.on_sent(100, 100, urgent, false);
        let next = |turns: &mut Turns| {
            let first = turns.first().unwrap().number();
            turns.on_sent(100, 100, heavy, true);
            first
        };
        assert_eq!([0; 6].map(|_| next(&mut turns)), [1, 1, 1, 2, 2, 2]);
        turns.remove(Sid::new(1), heavy);
        turns.remove(Sid::new(2), heavy);
        assert!(turns.is_empty() && turns.first().is_none());
    }

    proptest! {
        /// With full segments and weights of one, the levels are queues.
        #[test]
        fn levels_are_rows(operations in prop::collection::vec((0..4u8, 0..12u16), 0..200)) {
            let (mut turns, mut rows) = (Turns::new(), [const { VecDeque::<Sid>::new() }; 3]);
            let priority = |sid: Sid| Priority { level: (sid.number() % 3) as u8, weight: 1 };
            for (what, number) in operations {
                let sid = Sid::new(number);
                let row = &mut rows[usize::from(number % 3)];
                match what {
                    0 if !row.contains(&sid) => {
                        turns.push(sid, priority(sid));
                        row.push_back(sid);
                    }
                    1 => {
                        turns.remove(sid, priority(sid));
                        row.retain(|other| *other != sid);
                    }
                    2 | 3 => if let Some(row) = rows.iter_mut().find(|row| !row.is_empty()) {
                        turns.on_sent(100, 100, priority(row[0]), what == 2);
                        let first = row.pop_front();
                        row.extend(first.filter(|_| what == 2));
                    },
                    _ => {}
                }
                prop_assert_eq!(turns.first(), rows.iter().find_map(|row| row.front()).copied());
                let mut all = rows.iter().flatten();
                prop_assert_eq!(turns.only(), all.next().copied().filter(|_| all.next().is_none()));
            }
        }
    }
}

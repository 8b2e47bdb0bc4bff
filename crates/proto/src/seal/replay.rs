//! The replay window ([rfc-6479]): a ring of bits for the counters up to the highest one.

/// The counters of one path in one direction of a session.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One bit for each of the last [`ReplayWindow::SIZE`] counters, at the counter modulo the size.
    bits: Box<[u64; WORDS as usize]>,
    /// The highest counter so far, plus one.
    next: u64,
}

impl ReplayWindow {
    /// The width of the window, plus 64 counters. Each path has its own window, so this is how much reordering one path may have:
    /// 14 ms at 12 Gbit/s. It takes 2 kB.
    pub(super) const SIZE: u64 = 1 << 14;

    pub(super) fn new() -> Self {
        Self { bits: Box::new([0; WORDS as usize]), next: 0 }
    }

    /// The highest counter, plus one.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a counter may be new. A counter below the window is treated as old.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return counter < u64::MAX;
        }
        // The word of the highest counter may contain bits of the previous round of the ring, so the window is one word narrower.
        self.next - counter <= Self::SIZE - 64 && self.bits[word(counter)] & bit(counter) == 0
    }

    /// Marks the counter of an authentic datagram.
    pub(super) fn insert(&mut self, counter: u64) {
        debug_assert!(self.is_new(counter), "{counter} came before");
        if counter >= self.next {
            // Clears the words after the highest counter's, up to this counter's; at most all words.
            let (before, after) = (self.next.div_ceil(64), counter / 64);
            for number in before.max((after + 1).saturating_sub(WORDS))..=after {
                self.bits[(number % WORDS) as usize] = 0;
            }
            self.next = counter + 1;
        }
        self.bits[word(counter)] |= bit(counter);
    }
}

const fn word(counter: u64) -> usize {
    (counter / 64 % WORDS) as usize
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

const WORDS: u64 = ReplayWindow::SIZE / 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn oldest_counter_in_window_is_accepted() {
        let mut window = ReplayWindow::new();
        let reach = ReplayWindow::SIZE - 64;
        window.insert(1_000_000);
        assert!(window.is_new(1_000_001 - reach) && !window.is_new(1_000_000 - reach));
        assert!(!window.is_new(1_000_000) && !window.is_new(u64::MAX));
    }

    proptest! {
        /// The window equals a set of numbers.
        #[test]
        fn no_counter_is_new_twice(steps in prop::collection::vec((0..4u8, 0..50_000u64), 1..200)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::new(), BTreeSet::new(), 0u64);
            for (kind, step) in steps {
                let counter = match kind {
                    0 => highest + 1,
                    1 => highest + step,
                    2 => highest.saturating_sub(step % 70),
                    _ => highest.saturating_sub(step),
                };
                let is_new = window.is_new(counter);
                prop_assert!(!(is_new && seen.contains(&counter)), "{} twice", counter);
                let is_near = counter + 16_000 > highest;
                prop_assert!(is_new || !is_near || seen.contains(&counter), "{} below {}", counter, highest);
                if is_new {
                    window.insert(counter);
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }
}

//! What happens next: a tournament over the sources of events.
//!
//! A source (one direction of a link, a host's timer, the list of control events) has at most one next event, so it has one
//! *slot*. A full binary tree stands over the slots, and every inner node holds the earlier of its two children; the root is
//! the next event of the world. To change a slot is to replay its matches: log2(slots) compares, no allocation, no search.
//!
//! A key is one `u128`: the time in the upper half; below it the order in which the events were scheduled, and the slot. So
//! one integer compare decides a match, equal times run in insertion order, and the root says whose event it is.

use anabranch_units::SimTime;

/// When a source's next event is due and in which order it was scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

/// Hands out the places in the insertion order.
#[derive(Clone, Debug, Default)]
pub struct Order(u64);

/// The tree. Slots are numbers from 0.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Node 1 is the root, node i the earlier of nodes 2i and 2i + 1, and the leaves stand from `leaves` on. Two opponents
    /// stand together: node i is `matches[i / 2][i % 2]`.
    matches: Vec<[u128; 2]>,
    leaves: usize,
}

impl Key {
    /// The key of a slot without an event.
    pub const NONE: Self = Self((NEVER as u128) << 64);

    /// The key of an event at `time` that got the place `order`. What is later than 2^63 ps, 106 days, never happens.
    #[inline]
    pub const fn new(time: SimTime, order: u64) -> Self {
        let ticks = if time.ticks() < NEVER { time.ticks() } else { NEVER };
        Self(((ticks as u128) << 64) | order as u128)
    }

    /// When the event is due.
    #[inline]
    pub const fn time(self) -> SimTime {
        let ticks = (self.0 >> 64) as u64;
        if ticks < NEVER { SimTime::from_ticks(ticks) } else { SimTime::NEVER }
    }
}

impl Order {
    /// The next place, already shifted to where a key has it.
    ///
    /// 44 bits of order last for a week at 30 million events per second.
    pub fn draw(&mut self) -> u64 {
        self.0 += 1 << SLOT_BITS;
        self.0
    }
}

impl EventQueue {
    /// Slots that a queue may have.
    pub const SLOTS_MAX: usize = 1 << SLOT_BITS;

    /// A queue with `slots` empty slots.
    ///
    /// # Panics
    /// If there are more than [`EventQueue::SLOTS_MAX`].
    pub fn new(slots: usize) -> Self {
        assert!(slots <= Self::SLOTS_MAX, "{slots} sources of events, at most {} fit", Self::SLOTS_MAX);
        // Two leaves at least, so that the root is never a leaf.
        let leaves = slots.next_power_of_two().max(2);
        Self { matches: vec![[Key::NONE.0; 2]; leaves], leaves }
    }

    /// The time and the slot of the next event; [`SimTime::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> (SimTime, usize) {
        let key = self.matches[0][1];
        (Key(key).time(), (key & SLOT_MASK) as usize)
    }

    /// Sets the next event of `slot`, sooner or later than it was.
    #[inline]
    pub fn set(&mut self, slot: usize, key: Key) {
        debug_assert!(key.0 & SLOT_MASK == 0, "an order is drawn from `Order`, the slot's bits are free");
        let mut winner = key.0 | slot as u128;
        let mut node = self.leaves + slot;
        loop {
            let opponents = &mut self.matches[node / 2];
            opponents[node % 2] = winner;
            if node == 1 {
                break;
            }
            winner = earlier(winner, opponents[1 - node % 2]);
            node /= 2;
        }
    }

    /// Takes the event of `slot` out.
    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set(slot, Key::NONE);
    }
}

/// The lesser, without a branch: who wins a match is what a processor cannot predict, and a guess that fails costs more than
/// the rest of the match. Both are below 2^127, so the sign of the difference tells. It is computed by halves because LLVM
/// makes a branch of anything that it recognises as a choice between two pairs of words: `a.min(b)` takes twice as long.
#[inline]
const fn earlier(a: u128, b: u128) -> u128 {
    let (a_low, a_high, b_low, b_high) = (a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64);
    let difference = a_high.wrapping_sub(b_high).wrapping_sub((a_low < b_low) as u64);
    // All ones if `a` is less.
    let mask = (difference as i64 >> 63) as u64;
    let (low, high) = (b_low ^ ((a_low ^ b_low) & mask), b_high ^ ((a_high ^ b_high) & mask));
    (high as u128) << 64 | low as u128
}

/// The time of what never happens: the greatest whose sign bit is free, see [`earlier`].
const NEVER: u64 = u64::MAX >> 1;

/// A million sources; see [`Order::draw`] for the other side of the bargain.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u128 = (1 << SLOT_BITS) - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ticks: u64, order: &mut Order) -> Key {
        Key::new(SimTime::from_ticks(ticks), order.draw())
    }

    #[test]
    fn an_empty_queue_has_no_next_event() {
        assert_eq!(EventQueue::new(0).next().0, SimTime::NEVER);
    }

    #[test]
    fn the_earliest_comes_first_and_equal_times_in_insertion_order() {
        let (mut queue, mut order) = (EventQueue::new(5), Order::default());
        for (slot, ticks) in [(4, 20), (0, 10), (3, 10), (1, 10)] {
            queue.set(slot, at(ticks, &mut order));
        }
        let mut slots = Vec::new();
        while queue.next().0 != SimTime::NEVER {
            let slot = queue.next().1;
            slots.push(slot);
            queue.clear(slot);
        }
        assert_eq!(slots, [0, 3, 1, 4]);
    }

    #[test]
    fn an_event_moves_both_ways() {
        let (mut queue, mut order) = (EventQueue::new(3), Order::default());
        queue.set(0, at(50, &mut order));
        queue.set(1, at(40, &mut order));
        queue.set(1, at(60, &mut order));
        assert_eq!(queue.next(), (SimTime::from_ticks(50), 0));
        queue.set(1, at(0, &mut order));
        assert_eq!(queue.next(), (SimTime::from_ticks(0), 1));
    }

    proptest! {
        /// Against the obvious model: the least of a list.
        #[test]
        fn the_root_is_the_least_of_all_slots(changes in prop::collection::vec((0..7_usize, 0..20_u64), 1..200)) {
            let (mut queue, mut order, mut model) = (EventQueue::new(7), Order::default(), [None; 7]);
            for (slot, ticks) in changes {
                if ticks == 0 {
                    queue.clear(slot);
                    model[slot] = None;
                } else {
                    let key = at(ticks, &mut order);
                    queue.set(slot, key);
                    model[slot] = Some(key);
                }
                let least = model.iter().enumerate().filter_map(|(slot, key)| key.map(|key| (key, slot))).min();
                let expected = least.map_or(SimTime::NEVER, |(key, _)| key.time());
                prop_assert_eq!(queue.next().0, expected);
                if let Some((_, slot)) = least {
                    prop_assert_eq!(queue.next().1, slot);
                }
            }
        }
    }
}

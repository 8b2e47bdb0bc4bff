//! What happens next: a tournament over the sources of events.
//!
//! A source (one direction of a link, a host's timer, the list of control events) has at most one next event, so it has one
//! *slot*. A full binary tree stands over the slots, and every inner node holds the earlier of its two children; the root is
//! the next event of the world. To change a slot is to replay its matches: log2(slots) compares, no allocation, no search.
//!
//! Equal times run in the order in which a simulator with an event for each packet would have inserted them: first by when
//! that would have been, then by who was handed over first. The two are not the same, because a link knows of an arrival
//! before its transmission begins, which is when that simulator would insert it. It matters more than it seems: through slow
//! start a packet arrives at the bottleneck in the very instant in which another one leaves it, and this order decides
//! whether it is dropped.
//!
//! In the tree an event is one `u128`: the time in the upper half; below it how recently it was inserted, and the slot. So one
//! integer compare decides nearly every match, and the root says whose event it is.

use anabranch_units::SimTime;

/// When a source's next event is due, and its place among those of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    rank: u128,
    order: u64,
}

/// Hands out places in the order of handing over.
#[derive(Clone, Debug, Default)]
pub struct Order(u64);

/// The tree. Slots are numbers from 0.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Node 1 is the root, node i the earlier of nodes 2i and 2i + 1, and the leaves stand from `leaves` on. Two opponents
    /// stand together: node i is `matches[i / 2][i % 2]`.
    matches: Vec<[u128; 2]>,
    /// By slot: its place in the order of handing over, which is seldom asked for.
    orders: Vec<u64>,
    leaves: usize,
}

impl Key {
    /// The key of a slot without an event.
    pub const NONE: Self = Self { rank: (u64::MAX as u128) << 64, order: u64::MAX };

    /// The longest age that a key tells from longer ones, in ticks: 17.6 s.
    pub const AGE_MAX: u64 = (1 << (64 - SLOT_BITS)) - 1;

    /// The key of an event at `time` that a simulator with an event for each packet would insert at `inserted`, and that got
    /// the place `order`. Of what was inserted longer than [`Key::AGE_MAX`] ahead of its time, that much is remembered.
    #[inline]
    pub const fn new(time: SimTime, inserted: SimTime, order: u64) -> Self {
        let age = time.ticks().saturating_sub(inserted.ticks());
        let youth = Self::AGE_MAX.saturating_sub(age);
        Self { rank: (time.ticks() as u128) << 64 | (youth << SLOT_BITS) as u128, order }
    }

    /// When the event is due.
    #[inline]
    pub const fn time(self) -> SimTime {
        time_of(self.rank)
    }
}

impl Order {
    /// The next place.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// The next event of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// When it is due; [`SimTime::NEVER`] if there is none.
    pub time: SimTime,
    /// When it was inserted.
    pub inserted: SimTime,
    /// Whose it is.
    pub slot: usize,
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
        Self { matches: vec![[Key::NONE.rank; 2]; leaves], orders: vec![Key::NONE.order; leaves], leaves }
    }

    /// The next event.
    #[inline]
    pub fn next(&self) -> Next {
        let root = self.matches[0][1];
        let time = time_of(root);
        let age = Key::AGE_MAX - (root as u64 >> SLOT_BITS);
        let inserted = SimTime::from_ticks(time.ticks().saturating_sub(age));
        Next { time, inserted, slot: (root & SLOT_MASK) as usize }
    }

    /// Sets the next event of `slot`, sooner or later than it was.
    #[inline]
    pub fn set(&mut self, slot: usize, key: Key) {
        debug_assert!(key.rank & SLOT_MASK == 0, "a key leaves the bits of the slot free");
        self.orders[slot] = key.order;
        let mut winner = key.rank | slot as u128;
        let mut node = self.leaves + slot;
        loop {
            let opponents = &mut self.matches[node / 2];
            opponents[node % 2] = winner;
            if node == 1 {
                break;
            }
            let other = opponents[1 - node % 2];
            winner = if (winner ^ other) & !SLOT_MASK == 0 {
                self.first_handed_over(winner, other)
            } else {
                winner.min(other)
            };
            node /= 2;
        }
    }

    /// Decides a match of equal ranks, as between slots without events.
    fn first_handed_over(&self, a: u128, b: u128) -> u128 {
        let order = |rank: u128| self.orders[(rank & SLOT_MASK) as usize];
        if order(b) < order(a) { b } else { a }
    }

    /// Takes the event of `slot` out.
    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set(slot, Key::NONE);
    }
}

const fn time_of(rank: u128) -> SimTime {
    SimTime::from_ticks((rank >> 64) as u64)
}

/// A million sources; see [`Key::AGE_MAX`] for the other side of the bargain.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u128 = (1 << SLOT_BITS) - 1;

#[cfg(test)]
mod tests {
    use anabranch_units::PICO;
    use proptest::prelude::*;

    use super::*;

    /// Inserted at the start of the world.
    fn at(ticks: u64, order: &mut Order) -> Key {
        Key::new(SimTime::from_ticks(ticks), SimTime::ZERO, order.draw())
    }

    fn drain(mut queue: EventQueue) -> Vec<usize> {
        let mut slots = Vec::new();
        while queue.next().time != SimTime::NEVER {
            let slot = queue.next().slot;
            slots.push(slot);
            queue.clear(slot);
        }
        slots
    }

    #[test]
    fn an_empty_queue_has_no_next_event() {
        assert_eq!(EventQueue::new(0).next().time, SimTime::NEVER);
    }

    #[test]
    fn the_earliest_comes_first_and_equal_times_in_the_order_of_handing_over() {
        let (mut queue, mut order) = (EventQueue::new(5), Order::default());
        for (slot, ticks) in [(4, 20), (0, 10), (3, 10), (1, 10)] {
            queue.set(slot, at(ticks, &mut order));
        }
        assert_eq!(drain(queue), [0, 3, 1, 4]);
    }

    #[test]
    fn insertion_goes_before_handing_over() {
        let (mut queue, mut order) = (EventQueue::new(4), Order::default());
        for (slot, inserted) in [(0, 7), (1, 5), (2, 9), (3, 6)] {
            queue.set(slot, Key::new(SimTime::from_ticks(10), SimTime::from_ticks(inserted), order.draw()));
        }
        assert_eq!(queue.next().inserted, SimTime::from_ticks(5));
        assert_eq!(drain(queue), [1, 3, 0, 2]);
    }

    #[test]
    fn an_age_is_remembered_for_seventeen_seconds() {
        let (time, inserted) = (SimTime::from_ticks(40 * PICO), SimTime::from_ticks(23 * PICO));
        let mut queue = EventQueue::new(1);
        queue.set(0, Key::new(time, inserted, 1));
        assert_eq!(queue.next().inserted, inserted);
        queue.set(0, Key::new(time, SimTime::ZERO, 1));
        assert_eq!(queue.next().inserted, SimTime::from_ticks(40 * PICO - Key::AGE_MAX));
    }

    #[test]
    fn an_event_moves_both_ways() {
        let (mut queue, mut order) = (EventQueue::new(3), Order::default());
        queue.set(0, at(50, &mut order));
        queue.set(1, at(40, &mut order));
        queue.set(1, at(60, &mut order));
        assert_eq!((queue.next().time, queue.next().slot), (SimTime::from_ticks(50), 0));
        queue.set(1, at(0, &mut order));
        assert_eq!((queue.next().time, queue.next().slot), (SimTime::from_ticks(0), 1));
    }

    proptest! {
        /// Against the obvious model: the least of a list.
        #[test]
        fn the_root_is_the_least_of_all_slots(
            changes in prop::collection::vec((0..7_usize, 0..20_u64, 0..3_u64), 1..200)
        ) {
            let (mut queue, mut order, mut model) = (EventQueue::new(7), Order::default(), [None; 7]);
            for (slot, ticks, inserted) in changes {
                if ticks == 0 {
                    queue.clear(slot);
                    model[slot] = None;
                } else {
                    let key = Key::new(SimTime::from_ticks(ticks), SimTime::from_ticks(inserted), order.draw());
                    queue.set(slot, key);
                    model[slot] = Some(key);
                }
                let least = model.iter().enumerate().filter_map(|(slot, key)| key.map(|key| (key, slot))).min();
                let expected = least.map_or(SimTime::NEVER, |(key, _)| key.time());
                prop_assert_eq!(queue.next().time, expected);
                if let Some((_, slot)) = least {
                    prop_assert_eq!(queue.next().slot, slot);
                }
            }
        }
    }
}

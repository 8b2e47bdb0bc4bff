//! What happens next: a tournament over the sources of events.
//!
//! A source (one direction of a link, a host's timer, the list of control events) has at most one next event, so it has one
//! *slot*. A full binary tree stands over the slots, and every inner node holds the earlier of its two children; the root is
//! the next event of the world. To change a slot is to replay its matches: log2(slots) compares, no allocation, no search.
//!
//! Equal times run in the order in which a simulator with an event for each packet would have inserted them: first what was
//! inserted earlier, then what was handed to us earlier. The two differ because a link knows of an arrival before its
//! transmission begins, which is when the event would be inserted. It matters more than it seems: through slow start a packet
//! arrives at the bottleneck in the very instant in which another one leaves it, and this order decides whether it is dropped.

use anabranch_units::SimTime;

/// When a source's next event is due, and its place among those of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    time: SimTime,
    inserted: SimTime,
    order: u64,
}

/// Hands out places in the order of handing over.
#[derive(Clone, Debug, Default)]
pub struct Order(u64);

/// The tree. Slots are numbers from 0.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// `nodes[1]` is the root, `nodes[i]` the earlier of `nodes[2i]` and `nodes[2i + 1]`, the leaves stand from `leaves` on.
    nodes: Vec<Node>,
    /// By slot: what decides between equal times. Kept out of the nodes, since it is seldom asked.
    ties: Vec<Tie>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    time: SimTime,
    slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tie {
    inserted: SimTime,
    order: u64,
}

impl Key {
    /// The key of a slot without an event.
    pub const NONE: Self = Self { time: SimTime::NEVER, inserted: SimTime::NEVER, order: u64::MAX };

    /// The key of an event at `time` that a simulator with an event for each packet would insert at `inserted`, and that got
    /// the place `order`.
    pub const fn new(time: SimTime, inserted: SimTime, order: u64) -> Self {
        Self { time, inserted, order }
    }

    /// When the event is due.
    pub const fn time(self) -> SimTime {
        self.time
    }

    /// When it was inserted.
    pub const fn inserted(self) -> SimTime {
        self.inserted
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

impl EventQueue {
    /// Slots that a queue may have.
    pub const SLOTS_MAX: usize = 1 << 20;

    /// A queue with `slots` empty slots.
    ///
    /// # Panics
    /// If there are more than [`EventQueue::SLOTS_MAX`].
    pub fn new(slots: usize) -> Self {
        assert!(slots <= Self::SLOTS_MAX, "{slots} sources of events, at most {} fit", Self::SLOTS_MAX);
        // Two leaves at least, so that the root is never a leaf.
        let leaves = slots.next_power_of_two().max(2);
        let Key { time, inserted, order } = Key::NONE;
        let mut nodes = vec![Node { time, slot: 0 }; 2 * leaves];
        for (slot, leaf) in (0..).zip(&mut nodes[leaves..]) {
            leaf.slot = slot;
        }
        let ties = vec![Tie { inserted, order }; leaves];
        let mut queue = Self { nodes, ties, leaves };
        for node in (1..leaves).rev() {
            queue.nodes[node] = queue.nodes[2 * node];
        }
        queue
    }

    /// The time and the slot of the next event; [`SimTime::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> (SimTime, usize) {
        let Node { time, slot } = self.nodes[1];
        (time, slot as usize)
    }

    /// When the event of `slot` was inserted.
    #[inline]
    pub fn inserted(&self, slot: usize) -> SimTime {
        self.ties[slot].inserted
    }

    /// Sets the next event of `slot`, sooner or later than it was.
    #[inline]
    pub fn set(&mut self, slot: usize, key: Key) {
        self.ties[slot] = Tie { inserted: key.inserted, order: key.order };
        let mut winner = Node { time: key.time, slot: slot as u32 };
        let mut node = self.leaves + slot;
        self.nodes[node] = winner;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            let is_tie = other.time == winner.time && winner.time != SimTime::NEVER;
            if other.time < winner.time || (is_tie && self.is_earlier(other, winner)) {
                winner = other;
            }
            node >>= 1;
            self.nodes[node] = winner;
        }
    }

    /// Takes the event of `slot` out.
    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set(slot, Key::NONE);
    }

    #[cold]
    fn is_earlier(&self, a: Node, b: Node) -> bool {
        self.ties[a.slot as usize] < self.ties[b.slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ticks: u64, order: &mut Order) -> Key {
        Key::new(SimTime::from_ticks(ticks), SimTime::ZERO, order.draw())
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

    /// Slot 0 is handed over first, but its event would be inserted later.
    #[test]
    fn insertion_goes_before_handing_over() {
        let (mut queue, mut order) = (EventQueue::new(2), Order::default());
        let (time, early, late) = (SimTime::from_ticks(9), SimTime::from_ticks(1), SimTime::from_ticks(2));
        queue.set(0, Key::new(time, late, order.draw()));
        queue.set(1, Key::new(time, early, order.draw()));
        assert_eq!(queue.next(), (time, 1));
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

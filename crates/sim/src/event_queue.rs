//! The next event of the world: a tournament over the sources of events.
//!
//! A source (one direction of a link, a host's timer, the list of control events) has at most one next event, so it has one
//! *slot*. Four slots meet in a *group*, and the winners of four groups meet in another one, up to the first group, whose winner is the
//! next event of the world. When a slot changes, only its groups are played again, without allocation or search: log4(slots) of them
//! after the next event of the world, and mostly fewer otherwise, because nothing changes above a group that the slot loses and had lost.
//! Groups of four lie in one cache line each, and take fewer instructions than matches of two or groups of eight.
//!
//! Events of equal time run in the order in which a simulator with one event per packet would have inserted them: first by the
//! time of that insertion, then by the order of scheduling. The two differ, because a link schedules an arrival before the
//! transmission begins, and such a simulator inserts it when the transmission begins. This matters: throughout slow start, a
//! packet arrives at the bottleneck at the very time when another one leaves it, and the order decides whether it is dropped.
//!
//! A group compares times; the whole keys decide ties.

use std::hint::select_unpredictable;

use anabranch_units::SimTime;

/// When a source's next event is due, and its order among events of equal time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// When the event is due.
    pub time: SimTime,
    /// The bits of the time in seconds, in a world with ns-2's clock; 0 otherwise.
    pub seconds: u64,
    /// When a simulator with one event per packet would insert it.
    pub inserted: SimTime,
    /// Its number in the order of scheduling.
    pub order: u64,
}

/// Numbers events in the order of scheduling.
#[derive(Clone, Debug, Default)]
pub struct Order(u64);

/// The tournament. Slots are numbers from 0.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Key per slot.
    keys: Vec<Key>,
    /// The seats are numbered through all groups. The winner of group n > 0 has seat n - 1, and the slots have the seats behind those.
    groups: Vec<Group>,
    /// The winner of the first group.
    next: u32,
}

/// Four seats of a tournament.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Due times in ticks. Slots without an event have different times near the end of time, so that they do not tie.
    times: [u64; SEATS],
    slots: [u32; SEATS],
}

/// The seats of a group.
const SEATS: usize = 4;

/// A slot with its due time in ticks.
#[derive(Clone, Copy, Debug)]
struct Player {
    slot: u32,
    time: u64,
}

/// The next event of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Its key; [`Key::NONE`] if there is none.
    pub key: Key,
    /// The slot of its source.
    pub slot: usize,
}

impl Key {
    /// The key of a slot without an event.
    pub const NONE: Self = Self { time: SimTime::NEVER, seconds: u64::MAX, inserted: SimTime::NEVER, order: u64::MAX };

    /// The key of an event at `time`. `inserted` is when a simulator with one event per packet would insert it, and `order` its
    /// scheduling number.
    pub const fn new(time: SimTime, inserted: SimTime, order: u64) -> Self {
        Self { time, seconds: 0, inserted, order }
    }

    /// The same key at `seconds` by ns-2's clock. Times are not negative, so their bits sort as the numbers do.
    #[must_use]
    pub const fn at_seconds(self, seconds: f64) -> Self {
        Self { seconds: seconds.to_bits(), ..self }
    }
}

impl Order {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl EventQueue {
    /// The limit on slots.
    pub const SLOTS_MAX: usize = 1 << 20;

    /// A queue with `slots` empty slots.
    ///
    /// # Panics
    /// If there are more than [`EventQueue::SLOTS_MAX`].
    pub fn new(slots: usize) -> Self {
        assert!(slots <= Self::SLOTS_MAX, "{slots} sources of events, at most {} fit", Self::SLOTS_MAX);
        // Each group but the first takes a seat itself.
        let groups = slots.saturating_sub(1).div_ceil(SEATS - 1).max(1);
        let slots = groups * SEATS - (groups - 1);
        let nobody = Group { times: [u64::MAX; SEATS], slots: [0; SEATS] };
        let mut queue = Self { keys: vec![Key::NONE; slots], groups: vec![nobody; groups], next: 0 };
        (0..slots).for_each(|slot| queue.set(slot, Key::NONE));
        queue
    }

    /// The next event of all slots.
    pub fn next(&self) -> Next {
        let slot = self.next as usize;
        Next { key: self.keys[slot], slot }
    }

    /// Sets the next event of `slot`, which may be earlier or later than before.
    // The key is then in registers. One in memory, just written, would be copied in larger pieces than it was written in, for which the
    // processor waits. Inlined, it takes 2.8 % less time of `fig10` of multihoming-2010.
    #[inline]
    pub fn set(&mut self, slot: usize, key: Key) {
        let (player, seat) = self.enter(slot, key);
        self.replay(player, seat);
    }

    /// Plays the groups of a slot that has changed, up to the first in which nothing changes.
    fn replay(&mut self, mut player: Player, mut seat: usize) {
        let changed = player.slot;
        loop {
            let (number, place) = (seat / SEATS, seat % SEATS);
            let group = &mut self.groups[number];
            if player.slot != changed && group.slots[place] != changed {
                // Another slot wins, and has won before: it also goes on as before.
                return;
            }
            player = group.play(place, player, &self.keys);
            if number == 0 {
                break;
            }
            seat = number - 1;
        }
        self.next = player.slot;
    }

    /// As [`Self::set`], of the slot that has the next event of all: it has won all its groups, so all are played again.
    // Inlined into the event loop, it takes 4 % fewer instructions of `highspeed`.
    #[inline(always)]
    pub fn replace(&mut self, slot: usize, key: Key) {
        debug_assert_eq!(self.next, slot as u32, "the slot of the next event");
        let (mut player, mut seat) = self.enter(slot, key);
        let Self { keys, groups, next } = self;
        loop {
            let number = seat / SEATS;
            player = groups[number].play(seat % SEATS, player, keys);
            if number == 0 {
                break;
            }
            seat = number - 1;
        }
        *next = player.slot;
    }

    /// Stores the key of a slot. Returns the slot and its seat.
    fn enter(&mut self, slot: usize, key: Key) -> (Player, usize) {
        let time = if key.time == SimTime::NEVER { u64::MAX - slot as u64 } else { key.time.ticks() };
        self.keys[slot] = key;
        (Player { slot: slot as u32, time }, self.groups.len() - 1 + slot)
    }

    /// Removes the event of `slot`, if it has one.
    pub fn clear(&mut self, slot: usize) {
        if self.keys[slot] != Key::NONE {
            self.set(slot, Key::NONE);
        }
    }
}

impl Group {
    /// The winner, after a slot has taken a place.
    fn play(&mut self, place: usize, player: Player, keys: &[Key]) -> Player {
        self.times[place] = player.time;
        self.slots[place] = player.slot;
        let Self { times: [a, b, c, d], slots } = self;
        let slot = |place: usize| slots[place % SEATS];
        let meet = |(one, time): (usize, u64), (other, other_time): (usize, u64)| {
            let limit = if other_time == time { tie(slot(one), slot(other), time, keys) } else { time };
            let other_wins = other_time < limit;
            // The winner is unpredictable, so this must not be a branch.
            (select_unpredictable(other_wins, other, one), select_unpredictable(other_wins, other_time, time))
        };
        let (place, time) = meet(meet((0, *a), (1, *b)), meet((2, *c), (3, *d)));
        Player { slot: slot(place), time }
    }
}

/// Of two slots with equal times the keys decide: the other one wins if the time is below what this returns. Slots that tie have an event,
/// so a tick more fits.
// Kept apart, it takes 7.8 % fewer instructions of `highspeed`.
#[cold]
fn tie(slot: u32, other: u32, time: u64, keys: &[Key]) -> u64 {
    time + u64::from(keys[other as usize] < keys[slot as usize])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The key of an event inserted at the start of the world.
    fn at(ticks: u64, order: &mut Order) -> Key {
        Key::new(SimTime::from_ticks(ticks), SimTime::ZERO, order.draw())
    }

    fn drain(mut queue: EventQueue) -> Vec<usize> {
        let mut slots = Vec::new();
        while queue.next().key.time != SimTime::NEVER {
            let slot = queue.next().slot;
            slots.push(slot);
            queue.clear(slot);
        }
        slots
    }

    #[test]
    fn an_empty_queue_has_no_next_event() {
        assert_eq!(EventQueue::new(0).next().key.time, SimTime::NEVER);
    }

    #[test]
    fn earliest_event_is_first_and_equal_times_keep_order() {
        let (mut queue, mut order) = (EventQueue::new(5), Order::default());
        for (slot, ticks) in [(4, 20), (0, 10), (3, 10), (1, 10)] {
            queue.set(slot, at(ticks, &mut order));
        }
        assert_eq!(drain(queue), [0, 3, 1, 4]);
    }

    #[test]
    fn events_at_the_start_keep_order() {
        let (mut queue, mut order) = (EventQueue::new(4), Order::default());
        for slot in [2, 0, 3, 1] {
            queue.set(slot, at(0, &mut order));
        }
        assert_eq!(drain(queue), [2, 0, 3, 1]);
    }

    #[test]
    fn insertion_goes_before_handing_over() {
        let (mut queue, mut order) = (EventQueue::new(4), Order::default());
        for (slot, inserted) in [(0, 7), (1, 5), (2, 9), (3, 6)] {
            queue.set(slot, Key::new(SimTime::from_ticks(10), SimTime::from_ticks(inserted), order.draw()));
        }
        assert_eq!(queue.next().key.inserted, SimTime::from_ticks(5));
        assert_eq!(drain(queue), [1, 3, 0, 2]);
    }

    /// Slot 2 is cleared. The tie between slots 0 and 1 above it must be decided as before.
    #[test]
    fn a_slot_that_is_cleared_leaves_the_ties_of_others_alone() {
        let (mut queue, mut order) = (EventQueue::new(4), Order::default());
        for slot in [1, 0, 2] {
            queue.set(slot, at(if slot == 2 { 5 } else { 10 }, &mut order));
        }
        queue.clear(2);
        assert_eq!(drain(queue), [1, 0]);
        let (mut queue, mut order) = (EventQueue::new(4), Order::default());
        for slot in [2, 0, 3] {
            queue.set(slot, at(if slot == 3 { 5 } else { 10 }, &mut order));
        }
        queue.clear(3);
        assert_eq!(drain(queue), [2, 0]);
    }

    #[test]
    fn an_event_moves_both_ways() {
        let (mut queue, mut order) = (EventQueue::new(3), Order::default());
        queue.set(0, at(50, &mut order));
        queue.set(1, at(40, &mut order));
        queue.set(1, at(60, &mut order));
        assert_eq!((queue.next().key.time, queue.next().slot), (SimTime::from_ticks(50), 0));
        queue.set(1, at(0, &mut order));
        assert_eq!((queue.next().key.time, queue.next().slot), (SimTime::from_ticks(0), 1));
    }

    proptest! {
        /// Compares with the obvious model, the minimum of a list.
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
                let expected = least.map_or(SimTime::NEVER, |(key, _)| key.time);
                prop_assert_eq!(queue.next().key.time, expected);
                if let Some((_, slot)) = least {
                    prop_assert_eq!(queue.next().slot, slot);
                }
            }
        }
    }
}

//! The deadlines of all connections of an endpoint.
//!
//! A deadline moves with nearly every datagram, mostly to a later time. So the heap holds a time that is not later than the
//! deadline, and an entry that comes to the top too early is put back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_units::Time;

/// The deadlines of all connections, by number.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// For each connection the deadline, and its earliest time in the heap.
    deadlines: Vec<(Time, Time)>,
}

impl Timers {
    /// Sets the deadline of a connection.
    pub(super) fn set(&mut self, number: u32, deadline: Time) {
        let index = number as usize;
        if self.deadlines.len() <= index {
            self.deadlines.resize(index + 1, (Time::NEVER, Time::NEVER));
        }
        let (current, standing) = &mut self.deadlines[index];
        *current = deadline;
        if deadline < *standing {
            *standing = deadline;
            self.heap.push(Reverse((deadline, number)));
        }
    }

    /// Removes a connection whose deadline has passed.
    pub(super) fn pop(&mut self, now: Time) -> Option<u32> {
        while let Some(&Reverse((time, number))) = self.heap.peek() {
            if time > now {
                return None;
            }
            self.heap.pop();
            let (deadline, standing) = &mut self.deadlines[number as usize];
            if *standing != time {
                // The connection has, or had, an earlier entry.
                continue;
            }
            *standing = Time::NEVER;
            if *deadline <= now {
                *deadline = Time::NEVER;
                return Some(number);
            }
            let deadline = *deadline;
            self.set(number, deadline);
        }
        None
    }

    /// A lower bound of all deadlines.
    pub(super) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((time, _))| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn each_is_called_at_its_last_deadline() {
        let mut timers = Timers::default();
        timers.set(3, at(10));
        timers.set(1, at(20));
        timers.set(3, at(30));
        assert_eq!((timers.next(), timers.pop(at(10))), (at(10), None), "it has moved away");
        assert_eq!((timers.next(), timers.pop(at(20)), timers.pop(at(20))), (at(20), Some(1), None));
        timers.set(3, at(25));
        assert_eq!((timers.next(), timers.pop(at(30)), timers.pop(at(30))), (at(25), Some(3), None));
        timers.set(3, at(40));
        timers.set(3, Time::NEVER);
        assert_eq!((timers.pop(at(50)), timers.next()), (None, Time::NEVER));
    }

    /// Deadlines that move with each datagram do not make the heap grow.
    #[test]
    fn the_heap_stays_small() {
        let mut timers = Timers::default();
        for ms in 0..10_000 {
            timers.set(7, at(ms + 100));
            assert_eq!(timers.pop(at(ms)), None);
        }
        assert!(timers.heap.len() <= 2, "{}", timers.heap.len());
    }
}

//! The current time, by the clocks of a world.

use anabranch_units::SimTime;

use crate::event_queue::Key;

/// The time of the current event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: SimTime,
    /// The same time in seconds, in a world with ns-2's clock.
    pub(crate) seconds: f64,
    /// When the event was inserted.
    pub(crate) inserted: SimTime,
    /// Its number in the order of scheduling.
    pub(crate) order: u64,
}

impl Moment {
    /// The key of the current event: every event with a lesser one is over.
    pub(crate) fn key(&self) -> Key {
        Key { time: self.now, seconds: self.seconds.to_bits(), inserted: self.inserted, order: self.order }
    }
}

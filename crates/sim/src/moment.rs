//! The current time, by the clocks of a world.

use anabranch_units::SimTime;

/// The time of the current event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: SimTime,
    /// The same time in seconds, in a world with ns-2's clock.
    pub(crate) seconds: f64,
    /// When the event was inserted.
    pub(crate) inserted: SimTime,
}

//! The present, by the clocks of a world.

use anabranch_units::SimTime;

/// The present event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: SimTime,
    /// The same in seconds, in a world with ns-2's clock.
    pub(crate) seconds: f64,
    /// When it was inserted.
    pub(crate) inserted: SimTime,
}

//! The time constants of a path.

use anabranch_units::Span;

use crate::recovery::pacer::Pacing;

/// The time constants of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The least variance term of the retransmission timeout, added to SRTT.
    pub(crate) rto_min: Span,
    pub(crate) pacing: Pacing,
    /// The largest delay of the host's timers.
    pub(crate) timer: Span,
}

//! The silence of a path: since when its peer has not answered on it, and when it is probed for that.
//!
//! Another path takes over from a silent one. A path that never had another does not measure its silence.

use anabranch_units::{Span, Time};

/// What is known of a path's silence.
#[derive(Debug)]
pub(super) struct Silence {
    /// When an ACK last arrived on the path, or a segment was sent with nothing in flight.
    pub(super) heard: Time,
    /// When the oldest segment in flight was sent, if silence is measured.
    pub(super) oldest: Time,
    /// Whether another path would take over. Then silence is probed earlier.
    pub(super) has_others: bool,
    /// Whether there was ever another path.
    pub(super) is_measured: bool,
    /// Timeouts since the last RTT sample, and the number of samples by then.
    unanswered: u32,
    samples: u64,
}

impl Silence {
    pub(super) fn new(now: Time) -> Self {
        Self { heard: now, oldest: now, has_others: false, is_measured: false, unanswered: 0, samples: 0 }
    }

    /// Counts a timeout at which only copies were in flight; `samples` counts the RTT samples so far. Returns the timeouts in a row.
    pub(super) fn on_unanswered(&mut self, samples: u64) -> u32 {
        self.unanswered = if samples == self.samples { self.unanswered + 1 } else { 1 };
        self.samples = samples;
        self.unanswered
    }

    /// When to probe a silent path, if another one would take over. That is when the ACK of the oldest segment in flight is
    /// overdue, counted from its sending as in [rfc-7765]: `ack_timeout` later. On a full path ACKs arrive all the time, and
    /// this would be a moment after the last one, so the minimum is half of it after the last ACK. The peer may
    /// hold the ACK back for `ack_delay`.
    pub(super) fn ask_at(&self, ack_timeout: Span, ack_delay: Span) -> Time {
        let overdue = self.oldest.saturating_add(ack_timeout);
        self.heard.saturating_add(ack_timeout / 2).max(overdue).saturating_add(ack_delay)
    }
}

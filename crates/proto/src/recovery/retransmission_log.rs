//! The retransmissions of a recovery that are not yet known to be spurious.
//!
//! Each retransmission is recorded. It is removed when the receiver reports a duplicate of the segment ([rfc-3708] sec. 3), or
//! when an ACK shows that the original arrived. If the log becomes empty, the loss was spurious.

use anabranch_units::Time;

use crate::seq::Offset;

/// The retransmissions of one episode on one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetransmissionLog {
    /// The end of each segment whose retransmission may have been needed; at most [`ENTRIES_MAX`].
    ends: Vec<Offset>,
    /// When the first retransmission was sent.
    first: Option<Time>,
    /// Whether the log has overflowed. Then the loss never counts as spurious.
    is_overfull: bool,
}

impl RetransmissionLog {
    /// Starts an empty log.
    pub(crate) fn open(&mut self) {
        self.ends.clear();
        (self.first, self.is_overfull) = (None, false);
    }

    /// The segment that ends at `end` is retransmitted.
    pub(crate) fn on_resent(&mut self, end: Offset, time: Time) {
        self.first = self.first.or(Some(time));
        if self.ends.len() < ENTRIES_MAX {
            self.ends.push(end);
        } else {
            self.is_overfull = true;
        }
    }

    /// `left..right` was reported as a duplicate: for each segment in it, one retransmission was spurious.
    pub(crate) fn on_duplicate(&mut self, left: Offset, right: Offset) {
        let mut last = None;
        self.ends.sort_unstable();
        self.ends.retain(|&end| {
            let is_struck = left < end && end <= right && last != Some(end);
            if is_struck {
                last = Some(end);
            }
            !is_struck
        });
    }

    /// The original of the segment that ends at `end` arrived: all its retransmissions were spurious.
    pub(crate) fn on_original(&mut self, end: Offset) {
        self.ends.retain(|&other| other != end);
    }

    /// Whether every retransmission was spurious.
    pub(crate) fn is_settled(&self) -> bool {
        self.ends.is_empty() && !self.is_overfull
    }

    /// Whether anything was retransmitted.
    pub(crate) fn has_resent(&self) -> bool {
        self.first.is_some()
    }

    /// [rfc-3522] sec. 3.2: whether a segment sent before `time` was sent before the first retransmission.
    pub(crate) fn is_later_than(&self, time: Time) -> bool {
        self.first.is_some_and(|first| first >= time)
    }
}

/// An episode with more retransmissions counts as a real loss: hardly all of them can be spurious.
const ENTRIES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn retransmission_log(ends: &[Offset]) -> RetransmissionLog {
        let mut retransmission_log = RetransmissionLog::default();
        retransmission_log.open();
        ends.iter().for_each(|&end| retransmission_log.on_resent(end, Time::from_ticks(end)));
        retransmission_log
    }

    /// [rfc-3708] sec. 3: a segment that was retransmitted twice needs two duplicates.
    #[test]
    fn each_retransmission_needs_its_own_duplicate() {
        let mut retransmission_log = retransmission_log(&[200, 100, 200]);
        retransmission_log.on_duplicate(0, 100);
        retransmission_log.on_duplicate(100, 200);
        assert!(!retransmission_log.is_settled());
        retransmission_log.on_duplicate(100, 200);
        assert!(retransmission_log.is_settled());
    }

    #[test]
    fn a_block_may_cover_several_segments() {
        let mut retransmission_log = retransmission_log(&[100, 200, 300]);
        retransmission_log.on_duplicate(0, 200);
        assert!(!retransmission_log.is_settled());
        retransmission_log.on_original(300);
        assert!(retransmission_log.is_settled() && retransmission_log.has_resent());
    }

    #[test]
    fn a_retransmission_log_is_bounded() {
        let ends: Vec<Offset> = (1..=ENTRIES_MAX as u64 + 1).collect();
        let mut retransmission_log = retransmission_log(&ends);
        retransmission_log.on_duplicate(0, 1000);
        assert!(!retransmission_log.is_settled());
        retransmission_log.open();
        assert!(retransmission_log.is_settled() && !retransmission_log.has_resent());
    }
}

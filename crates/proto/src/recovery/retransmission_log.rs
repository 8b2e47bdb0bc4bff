//! What was sent again while a loss was repaired, and of what nothing shows yet that it was for nothing.
//!
//! Each retransmission is entered. It is struck out when the receiver reports that it got the segment once more
//! ([rfc-3708] sec. 3), or when an ACK shows that the original arrived. If nothing is left, the loss was none.

use anabranch_units::Time;

use crate::seq::Offset;

/// The retransmissions of one episode on one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetransmissionLog {
    /// Where each of those ends that may have been needed; at most [`ENTRIES_MAX`].
    ends: Vec<Offset>,
    /// When the first of all left.
    first: Option<Time>,
    /// Whether there were more than it takes: then nothing is ever found out.
    is_overfull: bool,
}

impl RetransmissionLog {
    /// Begins a new page.
    pub(crate) fn open(&mut self) {
        self.ends.clear();
        (self.first, self.is_overfull) = (None, false);
    }

    /// The segment that ends there leaves again.
    pub(crate) fn on_resent(&mut self, end: Offset, time: Time) {
        self.first = self.first.or(Some(time));
        if self.ends.len() < ENTRIES_MAX {
            self.ends.push(end);
        } else {
            self.is_overfull = true;
        }
    }

    /// `left..right` arrived once more: of each segment in it, one transmission was for nothing.
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

    /// The original of the segment that ends there arrived: it was sent again for nothing, however often.
    pub(crate) fn on_original(&mut self, end: Offset) {
        self.ends.retain(|&other| other != end);
    }

    /// Whether nothing is left that may have been needed.
    pub(crate) fn is_settled(&self) -> bool {
        self.ends.is_empty() && !self.is_overfull
    }

    /// Whether anything was sent again at all.
    pub(crate) fn has_resent(&self) -> bool {
        self.first.is_some()
    }

    /// [rfc-3522] sec. 3.2: whether what left before `time` left before anything was sent again.
    pub(crate) fn is_later_than(&self, time: Time) -> bool {
        self.first.is_some_and(|first| first >= time)
    }
}

/// An episode with more retransmissions is not given a second thought: hardly all of them can have been for nothing.
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

    /// [rfc-3708] sec. 3: a segment that was sent again twice has to come twice too often.
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

//! Explicit congestion notification ([rfc-3168]): routers mark what they would drop.
//!
//! Segments with content leave with ECT(0). The receiver counts the codepoints with which they come, path by path, and says so in its
//! acknowledgements. A rise of CE is a congestion signal, once a round trip. A path that takes codepoints away, or makes up others, is
//! found by counts that do not add up, and is used without ([rfc-9000] sec. 13.4.2).
//!
//! Differs from rfc-9000 in:
//! * counts are those of segments with content that go in one datagram; nothing else is marked, as acknowledgements are not acknowledged;
//! * they have 16 bits, and an acknowledgement need not have them: one that has none says nothing, unless none ever had any.

use crate::options::EcnCounts;

/// The two bits of IP's header, if they are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// The sender understands marks.
    Ect0,
    /// The same; [rfc-9331] has another use for it.
    Ect1,
    /// Marked: congestion experienced.
    Ce,
}

impl EcnCodepoint {
    /// Of the traffic class or type of service; the other six bits are not looked at.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b10 => Some(Self::Ect0),
            0b01 => Some(Self::Ect1),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ect0 => 0b10,
            Self::Ect1 => 0b01,
            Self::Ce => 0b11,
        }
    }
}

impl EcnCounts {
    /// A segment with content came.
    pub(crate) fn count(&mut self, codepoint: EcnCodepoint) {
        let Self { ce, ect0, ect1 } = self;
        let count = match codepoint {
            EcnCodepoint::Ce => ce,
            EcnCodepoint::Ect0 => ect0,
            EcnCodepoint::Ect1 => ect1,
        };
        *count = count.wrapping_add(1);
    }

    /// All of them.
    pub(crate) fn total(&self) -> u16 {
        self.ce.wrapping_add(self.ect0).wrapping_add(self.ect1)
    }
}

/// What an acknowledgement says of codepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnReport {
    /// It says nothing of what came.
    Silent,
    /// It answers a segment with content, and has these counts or none.
    Counts(Option<EcnCounts>),
}

/// Of one path, what left with ECT(0) and what is known to have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathEcn {
    is_on: bool,
    /// What the peer has counted.
    counts: EcnCounts,
    /// Segments that left with ECT(0) and have not been counted. Never below zero, or the counts are wrong.
    uncounted: u64,
    /// Segments that were acknowledged and not been counted.
    missing: i64,
}

impl PathEcn {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// Whether the path keeps marks as they are, as far as is known.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A segment with content leaves, in one datagram or several.
    pub(crate) fn on_sent(&mut self, is_whole: bool) -> Option<EcnCodepoint> {
        if !self.is_on {
            return None;
        }
        if !is_whole {
            // It will be acknowledged and not be counted.
            self.missing -= 1;
            return None;
        }
        self.uncounted += 1;
        Some(EcnCodepoint::Ect0)
    }

    /// So many segments that left on this path have been acknowledged.
    pub(crate) fn on_acked(&mut self, segments: u32) {
        self.missing += i64::from(segments);
    }

    /// An acknowledgement came on this path. Whether something was marked since the last one.
    pub(crate) fn on_report(&mut self, report: EcnReport) -> bool {
        let EcnReport::Counts(counts) = report else { return false };
        if !self.is_on {
            return false;
        }
        let Some(counts) = counts else {
            // Before the first counts all are zero; later they may have no room.
            self.is_on = self.counts != EcnCounts::default() || self.missing <= MISSING_MAX;
            return false;
        };
        let rise = |now: u16, before: u16| u64::try_from(now.wrapping_sub(before).cast_signed());
        let (Ok(ce), Ok(ect0)) = (rise(counts.ce, self.counts.ce), rise(counts.ect0, self.counts.ect0)) else {
            // It was overtaken.
            return false;
        };
        self.counts = counts;
        self.missing -= (ce + ect0).cast_signed();
        // More has come than left, something has come that did not leave, or less than was acknowledged.
        self.is_on = ce + ect0 <= self.uncounted && counts.ect1 == 0 && self.missing <= MISSING_MAX;
        self.uncounted = self.uncounted.saturating_sub(ce + ect0);
        self.is_on && ce > 0
    }
}

/// An acknowledgement may be the word of another path, and be here before the counts.
const MISSING_MAX: i64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const CE: EcnCounts = EcnCounts { ce: 1, ect0: 0, ect1: 0 };

    fn sent(count: u16) -> PathEcn {
        let mut path = PathEcn::new(true);
        for _ in 0..count {
            assert_eq!(path.on_sent(true), Some(EcnCodepoint::Ect0));
        }
        path
    }

    #[test]
    fn codepoints_are_those_of_ip() {
        let codepoints = [0, 1, 2, 3, 0xff].map(EcnCodepoint::from_bits);
        let (ect0, ect1, ce) = (EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce);
        assert_eq!(codepoints, [None, Some(ect1), Some(ect0), Some(ce), Some(ce)]);
        assert_eq!([ect1, ect0, ce].map(EcnCodepoint::bits), [1, 2, 3]);
    }

    #[test]
    fn each_rise_of_ce_is_told_once() {
        let mut path = sent(3);
        assert!(path.on_report(EcnReport::Counts(Some(CE))) && !path.on_report(EcnReport::Counts(Some(CE))));
        assert!(!path.on_report(EcnReport::Counts(Some(EcnCounts { ect0: 1, ..CE }))));
        assert!(!path.on_report(EcnReport::Counts(Some(CE))), "it was overtaken");
        assert!(path.on_report(EcnReport::Counts(Some(EcnCounts { ce: 2, ect0: 1, ect1: 0 }))) && path.is_on());
    }

    /// [rfc-9000] sec. 13.4.2.1: "greater than the number of packets it sent", a codepoint "that was never applied", marks that are missing.
    #[test]
    fn counts_that_do_not_add_up_turn_it_off() {
        for counts in [EcnCounts { ect0: 4, ..CE }, EcnCounts { ect1: 1, ..CE }, EcnCounts { ect0: 40_000, ..CE }] {
            let mut path = sent(4);
            path.on_report(EcnReport::Counts(Some(counts)));
            // What looks as if it were old says nothing: no path has so many in flight that are not marked.
            assert_eq!(path.is_on(), counts.ect0 == 40_000, "{counts:?}");
        }
        let mut path = sent(100);
        path.on_acked(16);
        assert!(!path.on_report(EcnReport::Counts(None)) && path.is_on());
        path.on_acked(1);
        path.on_report(EcnReport::Counts(None));
        assert_eq!((path.is_on(), path.on_sent(true)), (false, None), "the path takes marks away");
    }

    #[test]
    fn marks_that_vanish_later_turn_it_off_as_well() {
        let mut path = sent(100);
        path.on_acked(50);
        path.on_report(EcnReport::Counts(Some(EcnCounts { ce: 0, ect0: 50, ect1: 0 })));
        path.on_acked(17);
        path.on_report(EcnReport::Counts(None));
        assert!(path.is_on(), "there may have been no room");
        path.on_report(EcnReport::Counts(Some(EcnCounts { ce: 0, ect0: 50, ect1: 0 })));
        assert!(!path.is_on());
    }

    #[test]
    fn counts_go_round_and_fragments_are_not_counted() {
        let mut path = PathEcn::new(true);
        for count in 0..70_000u32 {
            path.on_sent(true);
            path.on_acked(1);
            path.on_report(EcnReport::Counts(Some(EcnCounts { ect0: (count + 1) as u16, ..EcnCounts::default() })));
        }
        assert!(path.is_on());
        for _ in 0..100 {
            assert_eq!(path.on_sent(false), None);
            path.on_acked(1);
        }
        path.on_report(EcnReport::Counts(Some(EcnCounts { ect0: 70_000u32 as u16, ..EcnCounts::default() })));
        assert!(path.is_on());
    }
}

//! Explicit congestion notification ([rfc-3168]): routers mark packets instead of dropping them.
//!
//! Segments with content are sent with ECT(0), or with ECT(1) if the path's law responds to marks as in [rfc-9331]. The receiver
//! counts the codepoints of arriving segments per path and reports the counts in its acknowledgements. An increase of CE is a
//! congestion signal, once per round trip. If a path clears or changes codepoints, the counts are inconsistent, and ECN is
//! switched off on that path ([rfc-9000] sec. 13.4.2).
//!
//! Some paths lose ECN-capable packets, from the start or after a change of the route. After a timeout the codepoint is in doubt:
//! segments are sent without it. When one of them has arrived, challenges with the codepoint probe the path; they take no sequence
//! space, so their loss is no congestion signal. An answer ends the doubt, and if none of [`PROBES_MAX`] is answered, ECN stays
//! off. The doubt comes with the retransmission timeout; before any codepoint has arrived, it comes with the tail loss probe. What was
//! lost before the doubt was then no congestion, and the law takes its response back (`control/black_hole.rs`).
//!
//! ```text
//!          timeout                                3 probes lost
//!   On ──────────────> Doubted ──ACK──> probes ───────────────> Off
//!    ^                                    │
//!    └───────────────answer───────────────┘
//! ```
//!
//! Differs from rfc-9000 in:
//! * only segments with content in one datagram are ECN-capable and counted, because acknowledgements are not acknowledged;
//! * counts have 16 bits, and an acknowledgement may omit them; that means nothing, unless no acknowledgement ever had any;
//! * packets that are lost switch ECN off for a while, and for good only if probes are lost as well (sec. 13.4.2 leaves it open).

use anabranch_cc::Ect;
use anabranch_units::{Span, Time};

use crate::options::EcnCounts;

/// The two ECN bits of an IP header, if they are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// The sender supports ECN.
    Ect0,
    /// The sender supports ECN; [rfc-9331] uses it for scalable senders.
    Ect1,
    /// A router has marked the packet: congestion experienced.
    Ce,
}

impl EcnCodepoint {
    /// The codepoint of a traffic class or type of service byte; the other six bits are ignored.
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
    /// A segment with content arrived.
    pub(crate) fn count(&mut self, codepoint: EcnCodepoint) {
        let Self { ce, ect0, ect1 } = self;
        let count = match codepoint {
            EcnCodepoint::Ce => ce,
            EcnCodepoint::Ect0 => ect0,
            EcnCodepoint::Ect1 => ect1,
        };
        *count = count.wrapping_add(1);
    }

    /// The sum of all counts.
    pub(crate) fn total(&self) -> u16 {
        self.ce.wrapping_add(self.ect0).wrapping_add(self.ect1)
    }
}

/// The ECN counts that an acknowledgement reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnReport {
    /// The acknowledgement answers no segment with content.
    Silent,
    /// The acknowledgement answers a segment with content. It carries these counts, or none.
    Counts(Option<EcnCounts>),
}

/// For one path, the segments sent with its codepoint and those known to have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathEcn {
    trust: Trust,
    ect: Ect,
    /// The latest counts of the peer.
    counts: EcnCounts,
    /// Segments sent with the codepoint and not yet counted. If it would become negative, the counts are wrong.
    uncounted: u64,
    /// Segments acknowledged and not counted.
    missing: i64,
    /// Segments sent with the codepoint since the last acknowledgement.
    unanswered: u64,
    /// When the latest doubt began.
    doubted: Time,
}

/// Whether segments are sent with the codepoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Off,
    On,
    /// After a timeout: they are not, until a probe is answered.
    Doubted(Option<Probe>),
}

/// The probes of a path that carries segments without the codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// Probes sent, and the token of the last one.
    sent: u32,
    token: [u8; 8],
    /// When the next one is due, or the last one counts as lost.
    at: Time,
}

impl PathEcn {
    pub(crate) fn new(is_on: bool, ect: Ect) -> Self {
        Self { trust: if is_on { Trust::On } else { Trust::Off }, ect, ..Self::default() }
    }

    /// Whether the path carries and preserves codepoints, as far as known.
    pub(crate) fn is_on(&self) -> bool {
        self.trust == Trust::On
    }

    /// Whether segments sent and acknowledged matter: ECN is on or in doubt.
    pub(crate) fn is_tracked(&self) -> bool {
        self.trust != Trust::Off
    }

    /// A segment with content is sent; `is_whole` if it is in one datagram. Returns its codepoint.
    pub(crate) fn on_sent(&mut self, is_whole: bool) -> Option<EcnCodepoint> {
        if !self.is_tracked() {
            return None;
        }
        if !is_whole || !self.is_on() {
            // It will be acknowledged but not counted.
            self.missing -= 1;
            return None;
        }
        self.uncounted += 1;
        self.unanswered += 1;
        Some(self.codepoint())
    }

    fn codepoint(&self) -> EcnCodepoint {
        match self.ect {
            Ect::Zero => EcnCodepoint::Ect0,
            Ect::One => EcnCodepoint::Ect1,
        }
    }

    /// This many segments sent on the path have been acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time, segments: u32) {
        if segments == 0 {
            return;
        }
        self.missing += i64::from(segments);
        self.unanswered = 0;
        if self.trust == Trust::Doubted(None) {
            self.trust = Trust::Doubted(Some(Probe { sent: 0, token: [0; 8], at: now }));
        }
    }

    /// A tail loss probe is due. If no codepoint has ever arrived, the path may lose what has one.
    pub(crate) fn on_probe_timeout(&mut self, now: Time) {
        if self.counts == EcnCounts::default() {
            self.on_timeout(now);
        }
    }

    /// Nothing sent with the codepoint was acknowledged before a timeout.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.is_on() && self.unanswered > 0 {
            (self.trust, self.doubted) = (Trust::Doubted(None), now);
        }
    }

    /// Whether a segment that left at `departure` may have been lost because of its codepoint.
    pub(crate) fn is_blamed(&self, departure: Time) -> bool {
        matches!(self.trust, Trust::Doubted(_)) && departure < self.doubted
    }

    /// Whether a challenge with the codepoint is due.
    pub(crate) fn is_probe_due(&self, now: Time) -> bool {
        matches!(self.trust, Trust::Doubted(Some(Probe { sent, at, .. })) if sent < PROBES_MAX && at <= now)
    }

    /// The probe is sent as a challenge with this token. A response after `timeout` does not count. Returns its codepoint.
    pub(crate) fn on_probe_sent(&mut self, now: Time, token: [u8; 8], timeout: Span) -> EcnCodepoint {
        if let Trust::Doubted(Some(probe)) = &mut self.trust {
            *probe = Probe { sent: probe.sent + 1, token, at: now.saturating_add(timeout) };
        }
        self.codepoint()
    }

    /// A challenge with this token was answered.
    pub(crate) fn on_answer(&mut self, answered: [u8; 8]) {
        if matches!(self.trust, Trust::Doubted(Some(Probe { sent: 1.., token, .. })) if token == answered) {
            self.trust = Trust::On;
        }
    }

    /// When the next probe is due, or the last one counts as lost.
    pub(crate) fn deadline(&self) -> Time {
        if let Trust::Doubted(Some(probe)) = self.trust { probe.at } else { Time::NEVER }
    }

    /// Handles the timeout of a probe: if all were lost, ECN is off for good. Returns whether that is so from now on.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> bool {
        let is_lost = matches!(self.trust, Trust::Doubted(Some(Probe { sent: PROBES_MAX.., at, .. })) if at <= now);
        if is_lost {
            self.trust = Trust::Off;
        }
        is_lost
    }

    /// An acknowledgement arrived on this path. Returns by how much CE has increased.
    pub(crate) fn on_report(&mut self, report: EcnReport) -> u64 {
        let EcnReport::Counts(counts) = report else { return 0 };
        if !self.is_tracked() {
            return 0;
        }
        let Some(counts) = counts else {
            // Before the first counts, all are zero. Later ACKs may have no room for them.
            self.keep_if(self.counts != EcnCounts::default() || self.missing <= MISSING_MAX);
            return 0;
        };
        let rise = |now: u16, before: u16| u64::try_from(now.wrapping_sub(before).cast_signed());
        let (own, before, other) = match self.ect {
            Ect::Zero => (counts.ect0, self.counts.ect0, counts.ect1),
            Ect::One => (counts.ect1, self.counts.ect1, counts.ect0),
        };
        let (Ok(ce), Ok(ect)) = (rise(counts.ce, self.counts.ce), rise(own, before)) else {
            // A newer acknowledgement overtook this one.
            return 0;
        };
        self.counts = counts;
        self.missing -= (ce + ect).cast_signed();
        // More was counted than sent, a codepoint arrived that was never sent, or less was counted than acknowledged.
        self.keep_if(ce + ect <= self.uncounted && other == 0 && self.missing <= MISSING_MAX);
        self.uncounted = self.uncounted.saturating_sub(ce + ect);
        if self.is_tracked() { ce } else { 0 }
    }

    fn keep_if(&mut self, is_consistent: bool) {
        if !is_consistent {
            self.trust = Trust::Off;
        }
    }
}

/// Tolerated difference, because an acknowledgement on another path may arrive before the counts.
const MISSING_MAX: i64 = 16;

/// As for the path MTU ([rfc-8899] sec. 5.1.2): three lost probes in a row are no accident on a path that carries other segments.
const PROBES_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const CE: EcnCounts = EcnCounts { ce: 1, ect0: 0, ect1: 0 };

    fn sent(count: u16) -> PathEcn {
        let mut path = PathEcn::new(true, Ect::Zero);
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
        let mut report = |ce, ect0| path.on_report(EcnReport::Counts(Some(EcnCounts { ce, ect0, ect1: 0 })));
        // The second report overtook the third.
        assert_eq!([report(1, 0), report(1, 0), report(1, 1), report(1, 0), report(2, 1)], [1, 0, 0, 0, 1]);
        assert!(path.is_on());
    }

    /// [rfc-9331] sec. 4.1: segments sent with ECT(1) arrive with ECT(1) or CE, and none arrives with ECT(0).
    #[test]
    fn ect_1_is_counted_as_what_it_is() {
        let mut path = PathEcn::new(true, Ect::One);
        let sent: Vec<_> = (0..5).map(|_| path.on_sent(true)).collect();
        assert_eq!(sent, [Some(EcnCodepoint::Ect1); 5]);
        let report = |ce, ect0, ect1| EcnReport::Counts(Some(EcnCounts { ce, ect0, ect1 }));
        assert_eq!((path.on_report(report(2, 0, 1)), path.is_on()), (2, true));
        assert_eq!((path.on_report(report(3, 1, 1)), path.is_on()), (0, false), "somebody has made ECT(0) of it");
    }

    /// [rfc-9000] sec. 13.4.2.1: "greater than the number of packets it sent", a codepoint "that was never applied", marks that are missing.
    #[test]
    fn counts_that_do_not_add_up_turn_it_off() {
        for counts in [EcnCounts { ect0: 4, ..CE }, EcnCounts { ect1: 1, ..CE }, EcnCounts { ect0: 40_000, ..CE }] {
            let mut path = sent(4);
            path.on_report(EcnReport::Counts(Some(counts)));
            // Counts that look old are ignored: no path has so many segments in flight.
            assert_eq!(path.is_on(), counts.ect0 == 40_000, "{counts:?}");
        }
        let mut path = sent(100);
        path.on_acked(Time::ZERO, 16);
        assert!(path.on_report(EcnReport::Counts(None)) == 0 && path.is_on());
        path.on_acked(Time::ZERO, 1);
        path.on_report(EcnReport::Counts(None));
        assert_eq!((path.is_on(), path.on_sent(true)), (false, None), "the path takes marks away");
    }

    #[test]
    fn marks_that_vanish_later_turn_it_off_as_well() {
        let mut path = sent(100);
        path.on_acked(Time::ZERO, 50);
        path.on_report(EcnReport::Counts(Some(EcnCounts { ce: 0, ect0: 50, ect1: 0 })));
        path.on_acked(Time::ZERO, 17);
        path.on_report(EcnReport::Counts(None));
        assert!(path.is_on(), "there may have been no room");
        path.on_report(EcnReport::Counts(Some(EcnCounts { ce: 0, ect0: 50, ect1: 0 })));
        assert!(!path.is_on());
    }

    #[test]
    fn counts_go_round_and_fragments_are_not_counted() {
        let mut path = PathEcn::new(true, Ect::Zero);
        for count in 0..70_000u32 {
            path.on_sent(true);
            path.on_acked(Time::ZERO, 1);
            path.on_report(EcnReport::Counts(Some(EcnCounts { ect0: (count + 1) as u16, ..EcnCounts::default() })));
        }
        assert!(path.is_on());
        for _ in 0..100 {
            assert_eq!(path.on_sent(false), None);
            path.on_acked(Time::ZERO, 1);
        }
        path.on_report(EcnReport::Counts(Some(EcnCounts { ect0: 70_000u32 as u16, ..EcnCounts::default() })));
        assert!(path.is_on());
    }
}

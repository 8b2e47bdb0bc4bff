//! Classifies a loss as random or as congestion. The rule only names the [`Cause`]; the law decides on the reaction
//! ([`mod@crate::composite`] leaves the window alone; the other laws do not ask).
//!
//! ctcp-2019 sec. 3: losses from a full queue come several at a time and after a delay that grows. A loss is random iff
//! the SACK blocks show a single hole **and** the RTT is at most the smoothed RTT; "conservative at the slightest signal of
//! congestion".
//!
//! Differs from the paper in: without evidence (no SACK block, no RTT sample) the cause is [`Cause::Unknown`], which every law
//! treats as congestion. The paper does not say which RTT is compared, when, and with what resolution; the caller decides that, and
//! the unit.

use crate::controller::Cause;

/// The state of the path when a loss is detected. `T` is any measure of time: spans, or the coarse ticks of a simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence<T> {
    /// Separate ranges of missing data below the highest one the SACK blocks report. Zero without SACK.
    pub holes: usize,
    /// The latest RTT sample.
    pub rtt_latest: Option<T>,
    /// The smoothed RTT, in the unit of `rtt_latest`.
    pub rtt_smoothed: Option<T>,
}

/// Names the cause of a loss by the rule of ctcp-2019 sec. 3.
pub fn classify<T: PartialOrd>(evidence: &Evidence<T>) -> Cause {
    let (Some(latest), Some(smoothed)) = (&evidence.rtt_latest, &evidence.rtt_smoothed) else {
        return if evidence.holes > 1 { Cause::Congestion } else { Cause::Unknown };
    };
    match evidence.holes {
        0 => Cause::Unknown,
        // [ctcp-2019] sec. 3: "The loss is treated to be an erroneous loss if RTT is smaller than or equal to SRTT."
        1 if latest <= smoothed => Cause::Random,
        _ => Cause::Congestion,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::Span;

    use super::*;

    #[track_caller]
    fn expect<T: PartialOrd>(holes: usize, rtt_latest: Option<T>, rtt_smoothed: Option<T>, cause: Cause) {
        assert_eq!(classify(&Evidence { holes, rtt_latest, rtt_smoothed }), cause);
    }

    /// ctcp-2019 sec. 3 and Fig. 1, case by case; the threshold is exact.
    #[test]
    fn only_a_single_hole_without_delay_is_random() {
        let srtt = Span::from_millis(100);
        let over = srtt + Span::from_ticks(1);
        expect(1, Some(srtt), Some(srtt), Cause::Random);
        expect(1, Some(over), Some(srtt), Cause::Congestion);
        expect(2, Some(srtt), Some(srtt), Cause::Congestion);
    }

    #[test]
    fn ticks_do_as_well_as_spans() {
        expect(1, Some(20), Some(20), Cause::Random);
        expect(1, Some(21), Some(20), Cause::Congestion);
    }

    #[test]
    fn without_evidence_the_cause_is_unknown() {
        expect(0, Some(1.0), Some(2.0), Cause::Unknown);
        expect(1, None, Some(2.0), Cause::Unknown);
        expect(1, Some(1.0), None, Cause::Unknown);
    }

    /// Two holes are congestion whatever the delay says (ctcp-2019 sec. 3, case ii).
    #[test]
    fn several_holes_need_no_rtt() {
        expect(2, None::<u64>, None, Cause::Congestion);
    }
}

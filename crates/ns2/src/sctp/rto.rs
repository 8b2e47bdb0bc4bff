//! The retransmission timeout of a destination (RFC 4960, section 6.3), in seconds.
//!
//! ```text
//! first sample:  srtt <- rtt                       rttvar <- rtt / 2
//! then:          rttvar <- 3/4 rttvar + 1/4 |srtt - rtt|      srtt <- 7/8 srtt + 1/8 rtt
//! both:          rto <- srtt + 4 rttvar, within its bounds
//! ```

use anabranch_units::SimSpan;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rto {
    min_s: f64,
    max_s: f64,
    timeout_s: f64,
    /// srtt and rttvar.
    estimate: Option<(f64, f64)>,
}

impl Rto {
    pub(crate) fn new(initial: SimSpan, min: SimSpan, max: SimSpan) -> Self {
        Self { min_s: min.as_secs_f64(), max_s: max.as_secs_f64(), timeout_s: initial.as_secs_f64(), estimate: None }
    }

    pub(crate) fn timeout_s(&self) -> f64 {
        self.timeout_s
    }

    pub(crate) fn srtt_s(&self) -> Option<f64> {
        self.estimate.map(|(srtt, _)| srtt)
    }

    pub(crate) fn sample(&mut self, rtt: f64) {
        let (srtt, deviation) = match self.estimate {
            None => (rtt, rtt / 2.0),
            // The deviation uses the old mean. The order of operations is ns-2's, so that the last bit agrees.
            Some((srtt, deviation)) => {
                ((1.0 - ALPHA) * srtt + ALPHA * rtt, (1.0 - BETA) * deviation + BETA * (srtt - rtt).abs())
            }
        };
        self.estimate = Some((srtt, deviation));
        self.timeout_s = srtt + 4.0 * deviation;
        if self.timeout_s < self.min_s {
            self.timeout_s = self.min_s;
        } else if self.timeout_s > self.max_s {
            self.timeout_s = self.max_s;
        }
    }

    /// A timeout doubles the RTO.
    pub(crate) fn back_off(&mut self) {
        self.timeout_s *= 2.0;
        if self.timeout_s > self.max_s {
            self.timeout_s = self.max_s;
        }
    }
}

/// RTO.Alpha and RTO.Beta of RFC 4960, section 15.
const ALPHA: f64 = 0.125;
const BETA: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    /// RTT samples of 2 s, then 1 s: srtt = 15/8, rttvar = 3/4 + 1/4, worked by hand.
    #[test]
    fn two_samples_by_hand() {
        let mut rto = Rto::new(SimSpan::from_secs(3), SimSpan::from_secs(1), SimSpan::from_secs(60));
        rto.sample(2.0);
        assert_eq!(rto.timeout_s().to_bits(), 6.0_f64.to_bits());
        rto.sample(1.0);
        assert_eq!(rto.timeout_s().to_bits(), 5.875_f64.to_bits());
        rto.back_off();
        assert_eq!(rto.timeout_s().to_bits(), 11.75_f64.to_bits());
    }
}

//! The RTT estimator of ns-2's one-way TCP: Jacobson's, with a coarse clock, in fixed point.
//!
//! The clock ticks every 10 ms. Without the timestamp option (ns-2's default), an RTT sample is the number of ticks between a
//! packet and its acknowledgement. So it depends on where between two ticks the packet was sent, that is, on the *phase* of the
//! sender's clock. ns-2 draws the phase of each agent at random. The smoothed RTT has three fractional bits and its deviation
//! two. The timeout is a whole number of ticks.

use anabranch_units::{SimSpan, SimTime};

/// The tick of the coarse clock (`tcpTick_`).
pub const TICK: SimSpan = SimSpan::from_millis(10);

/// The estimator, its back-off, and the resulting timeout.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    phase: SimSpan,
    rto_min: SimSpan,
    rto_max: SimSpan,
    deviation: Deviation,
    /// The last sample in ticks, at least 1 once there is one.
    rtt: i32,
    /// Eight times the smoothed RTT in ticks; 0 before the first sample and after a back-off by more than 8.
    srtt: i32,
    /// Four times the mean deviation in ticks.
    rttvar: i32,
    /// The timeout before back-off and bounds.
    rto: SimSpan,
    backoff: i32,
}

/// How a sample below the mean updates the mean deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deviation {
    /// Like a sample above it (Jacobson).
    Symmetric,
    /// With an eighth of the weight, as Linux does, so that a falling RTT does not lengthen the timeout.
    Damped,
}

impl RttEstimator {
    /// ns-2's `rtxcur_init_`: the timeout before the first sample.
    const RTO_INITIAL: SimSpan = SimSpan::from_secs(3);

    pub(crate) fn new(phase: SimSpan, rto_min: SimSpan, rto_max: SimSpan, deviation: Deviation) -> Self {
        // ns-2's `rttvar_init_` is 12 s. The first sample overwrites it, but a back-off beyond 8 before that adds to it.
        let rttvar = 12 * (SimSpan::from_secs(1).ticks() / TICK.ticks()) as i32 * 4;
        Self { phase, rto_min, rto_max, deviation, rtt: 0, srtt: 0, rttvar, rto: Self::RTO_INITIAL, backoff: 1 }
    }

    /// Adds the RTT of a packet that was sent at `sent` and acknowledged at `now`.
    pub(crate) fn sample(&mut self, sent: SimTime, now: SimTime) {
        let clock = |at: SimTime| (at + self.phase).ticks() / TICK.ticks();
        self.rtt = ((clock(now) - clock(sent)) as i32).max(1);
        if self.srtt == 0 {
            self.srtt = self.rtt << 3;
            self.rttvar = self.rtt << 1;
        } else {
            let error = self.rtt - (self.srtt >> 3);
            // srtt ← 7/8 srtt + 1/8 rtt.
            self.srtt = (self.srtt + error).max(1);
            // rttvar ← 3/4 rttvar + 1/4 |error|.
            let surplus = error.abs() - (self.rttvar >> 2);
            match self.deviation {
                Deviation::Symmetric => self.rttvar = (self.rttvar + surplus).max(1),
                Deviation::Damped if error < 0 && surplus > 0 => self.rttvar += surplus >> 3,
                Deviation::Damped => self.rttvar += surplus,
            }
        }
        let ticks = ((self.rttvar << 3) + self.srtt) >> 3;
        self.rto = TICK * u64::from(ticks.max(0).unsigned_abs());
    }

    /// The retransmission timeout, with back-off, within its bounds.
    pub(crate) fn timeout(&self) -> SimSpan {
        // The lower bound applies before the back-off (ns-2's `rfc2988_`). The timeout is at least two ticks.
        let backed_off = self.rto.max(self.rto_min).saturating_mul(u64::from(self.backoff.unsigned_abs()));
        backed_off.min(self.rto_max).max(TICK * 2)
    }

    /// Doubles the timeout.
    pub(crate) fn back_off(&mut self) {
        if self.backoff < 64 || self.timeout() < self.rto_max {
            self.backoff <<= 1;
        }
        if self.backoff > 8 {
            // After so much back-off the mean is no longer trusted: it is added to the deviation, and the next sample starts
            // anew.
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// Ends the back-off.
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 1;
    }

    /// The last sample in ticks.
    pub(crate) fn rtt_ticks(&self) -> i32 {
        self.rtt
    }

    /// The smoothed RTT in whole ticks, rounded down.
    pub(crate) fn srtt_ticks(&self) -> i32 {
        self.srtt >> 3
    }

    /// ns-2's `((t_srtt_ >> 3) + t_rttvar_) * tcp_tick_`: the idle time after which fast start begins.
    pub(crate) fn idle_threshold(&self) -> SimSpan {
        TICK * u64::from(((self.srtt >> 3) + self.rttvar).max(0).unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_millis(ms)
    }

    fn estimator(phase: SimSpan) -> RttEstimator {
        RttEstimator::new(phase, SimSpan::from_millis(200), SimSpan::from_secs(60), Deviation::Symmetric)
    }

    #[test]
    fn sample_counts_ticks_from_departure_to_ack() {
        // 24 ms span two or three ticks, depending on the phase.
        for (phase_ms, ticks) in [(0, 2), (5, 2), (6, 3), (9, 3)] {
            let mut estimator = estimator(SimSpan::from_millis(phase_ms));
            estimator.sample(at_ms(100), at_ms(124));
            assert_eq!(estimator.rtt_ticks(), ticks, "phase {phase_ms} ms");
        }
    }

    #[test]
    fn first_sample_sets_mean_and_half_the_deviation() {
        let mut estimator = estimator(SimSpan::ZERO);
        estimator.sample(at_ms(0), at_ms(200));
        // 20 ticks + 4 · 10 ticks.
        assert_eq!(estimator.timeout(), SimSpan::from_millis(600));
        assert_eq!(estimator.srtt_ticks(), 20);
    }

    #[test]
    fn back_off_doubles_from_the_lower_bound_up_to_the_upper_one() {
        let mut estimator = estimator(SimSpan::ZERO);
        for _ in 0..40 {
            estimator.sample(at_ms(0), at_ms(10));
        }
        let mut timeouts = vec![];
        for _ in 0..10 {
            timeouts.push(estimator.timeout().as_secs_f64());
            estimator.back_off();
        }
        assert_eq!(timeouts, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0]);
    }
}

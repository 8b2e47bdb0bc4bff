//! The round-trip time and the retransmission timeout.
//!
//! ```text
//! first sample R:  SRTT ← R, RTTVAR ← R/2
//! sample R:        RTTVAR ← 3/4 RTTVAR + 1/4 |SRTT − R|;  SRTT ← 7/8 SRTT + 1/8 R
//! RTO:             SRTT + max(margin, 4 RTTVAR), doubled by each consecutive timeout
//! ```
//!
//! Citation: rfc-6298. Differs from it in: the minimum applies to the variance term instead of the sum, because a constant RTT
//! would otherwise leave no margin. It is 200 ms, as in common systems; in the RFC the sum is at least 1 s.

use anabranch_units::Span;

/// The estimates of one path.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<Span>,
    variation: Span,
    least: Option<Span>,
    /// The minimum sample, including samples of segments shorter than data.
    shortest: Option<Span>,
    /// The least variance term, added to SRTT.
    margin: Span,
    /// Consecutive timeouts: each doubles the RTO.
    backoff: u32,
    /// Derived values, cached: they are read more often than they change.
    ack_timeout: Span,
    timeout: Span,
}

impl RttEstimator {
    pub(crate) fn new(margin: Span) -> Self {
        let (variation, initial) = (Span::ZERO, TIMEOUT_INITIAL);
        Self {
            smoothed: None,
            variation,
            least: None,
            shortest: None,
            margin,
            backoff: 0,
            ack_timeout: initial,
            timeout: initial,
        }
    }

    /// A sample from a segment sent once, as Karn's rule demands.
    pub(crate) fn on_sample(&mut self, sample: Span) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        // [rfc-6298] sec. 5: the backed-off timeout holds until there is a new sample.
        self.backoff = 0;
        self.smooth(sample);
    }

    /// A sample from a timestamp echo, for a retransmitted segment. It is too coarse for the minimum RTT.
    pub(crate) fn on_echo(&mut self, sample: Span) {
        self.backoff = 0;
        self.smooth(sample);
    }

    /// The sample of a handshake. Its segments are shorter than data, so it does not count for the minimum RTT: a delay-based law
    /// would count the difference as queueing delay for ever.
    pub(crate) fn on_handshake(&mut self, sample: Span) {
        self.smooth(sample);
    }

    /// The sample of a path after silence. It comes from a segment shorter than data.
    pub(crate) fn on_answer(&mut self, sample: Span) {
        self.backoff = 0;
        self.smooth(sample);
    }

    fn smooth(&mut self, sample: Span) {
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        // [rfc-6298] sec. 2.2 and 2.3.
        (self.smoothed, self.variation) = match self.smoothed {
            None => (Some(sample), sample / 2),
            Some(smoothed) => {
                let deviation = smoothed.saturating_sub(sample).max(sample.saturating_sub(smoothed));
                let variation = self.variation.saturating_mul(3).saturating_add(deviation) / 4;
                (Some(smoothed.saturating_mul(7).saturating_add(sample) / 8), variation)
            }
        };
        self.settle();
    }

    /// The timeout expired.
    pub(crate) fn back_off(&mut self) {
        self.set_backoff((self.backoff + 1).min(BACKOFF_MAX));
    }

    /// A retransmission was acknowledged. By Karn's rule it gives no sample, but the path works. [rfc-6298] sec. 5.7 leaves open
    /// when the backoff ends. Here one doubling remains until there is a sample, in case the RTT has grown beyond the timeout. Before
    /// the first sample all remain: the RTT may be anything.
    pub(crate) fn on_progress(&mut self) {
        if self.smoothed.is_some() {
            self.set_backoff(self.backoff.min(1));
        }
    }

    /// The latest timeout was spurious. Before the first sample this says only that the RTT is longer than the timeout was.
    pub(crate) fn forgive(&mut self) {
        if self.smoothed.is_some() {
            self.set_backoff(0);
        }
    }

    /// Whether the timeout has doubled more than once.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 1
    }

    fn set_backoff(&mut self, backoff: u32) {
        self.backoff = backoff;
        self.settle();
    }

    /// A segment was late by about `sample`. [rfc-4015] sec. 3.3: the next timeout must not be as early.
    pub(crate) fn on_late(&mut self, sample: Span) {
        self.smoothed = Some(self.smoothed.map_or(sample, |smoothed| smoothed.max(sample)));
        self.variation = self.variation.max(sample / 2);
        self.settle();
    }

    /// Computes both timeouts.
    fn settle(&mut self) {
        let (smoothed, swings) = (self.smoothed, self.variation.saturating_mul(4));
        let after =
            |least: Span| smoothed.map_or(TIMEOUT_INITIAL, |smoothed| smoothed.saturating_add(least.max(swings)));
        // [rfc-6298] sec. 2.1: "SHOULD set RTO <- 1 second" before there is a sample.
        let base = after(self.margin);
        self.timeout = base.saturating_mul(1 << self.backoff).min(TIMEOUT_MAX.max(base));
        // A probe is a retransmission: one that always came before the ACK would never let a sample be taken.
        self.ack_timeout = if smoothed.is_some() { after(ACK_MARGIN_MIN) } else { self.timeout };
    }

    pub(crate) fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// A lower bound for the RTT of any ACK: a probe may be shorter than data and find a shorter queue. If the transmission time
    /// of data is most of the RTT, the bound is weak: the original's ACK may arrive more than this after the retransmission was
    /// sent.
    pub(crate) fn shortest(&self) -> Option<Span> {
        self.shortest
    }

    pub(crate) fn least(&self) -> Option<Span> {
        self.least
    }

    /// How long an ACK may take on a path that works: the probe timeout of [rfc-9002] sec. 6.2.1, without backoff and ACK delay. That of
    /// a tail loss probe ([rfc-8985] sec. 7.2) is another one.
    pub(crate) fn ack_timeout(&self) -> Span {
        self.ack_timeout
    }

    /// The retransmission timeout, with backoff.
    pub(crate) fn timeout(&self) -> Span {
        self.timeout
    }
}

/// [rfc-6298] sec. 2.1.
const TIMEOUT_INITIAL: Span = Span::from_secs(1);

/// [rfc-6298] sec. 2.5 allows a maximum of 60 s or more.
const TIMEOUT_MAX: Span = Span::from_secs(60);

/// The margin for a busy host on a path whose RTT does not vary.
const ACK_MARGIN_MIN: Span = Span::from_millis(5);

/// 2^16 times any timeout of at least a millisecond exceeds [`TIMEOUT_MAX`].
const BACKOFF_MAX: u32 = 16;

/// One tick of the timestamp clock: the error of an echo.
pub(crate) const TICK: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    /// [rfc-6298] sec. 2, worked by hand: samples of 100 ms, then 180 ms.
    #[test]
    fn samples_are_smoothed_as_the_rfc_says() {
        let mut rtt = RttEstimator::new(ms(1));
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.on_sample(ms(100));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(100)), ms(300)));
        rtt.on_sample(ms(180));
        // SRTT 110, RTTVAR (3 · 50 + 80)/4 = 57.5.
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(110)), ms(340)));
        assert_eq!(rtt.least(), Some(ms(100)));
    }

    #[test]
    fn a_constant_rtt_leaves_a_margin() {
        let mut rtt = RttEstimator::new(ms(200));
        (0..100).for_each(|_| rtt.on_sample(ms(600)));
        assert_eq!(rtt.timeout(), ms(800));
    }

    #[test]
    fn timeouts_double_until_a_sample() {
        let mut rtt = RttEstimator::new(ms(200));
        rtt.on_sample(ms(400));
        assert_eq!(rtt.timeout(), ms(1200));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(), ms(4800));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), Span::from_secs(60));
        rtt.on_sample(ms(400));
        assert!(rtt.timeout() < ms(1200));
    }

    #[test]
    fn an_answer_without_a_sample_leaves_one_doubling() {
        let mut rtt = RttEstimator::new(ms(200));
        rtt.on_sample(ms(400));
        rtt.on_progress();
        assert_eq!(rtt.timeout(), ms(1200));
        (0..5).for_each(|_| rtt.back_off());
        rtt.on_progress();
        assert_eq!(rtt.timeout(), ms(2400));
    }

    /// Without any sample the RTT may be longer than each timeout so far, and a probe before the ACK would prevent a sample.
    #[test]
    fn back_off_remains_until_first_sample() {
        let mut rtt = RttEstimator::new(ms(200));
        (0..3).for_each(|_| rtt.back_off());
        rtt.on_progress();
        assert_eq!((rtt.timeout(), rtt.ack_timeout()), (ms(8000), ms(8000)));
        rtt.on_sample(ms(5000));
        assert_eq!((rtt.timeout(), rtt.ack_timeout()), (ms(15_000), ms(15_000)));
    }

    /// [rfc-6298] sec. 5, the last note: SRTT and RTTVAR are 400 ms and 200 ms. A sample of 400 ms makes RTTVAR 150 ms.
    #[test]
    fn every_sample_ends_the_back_off() {
        for sample in [RttEstimator::on_sample, RttEstimator::on_echo, RttEstimator::on_answer] {
            let mut rtt = RttEstimator::new(ms(200));
            rtt.on_handshake(ms(400));
            (0..3).for_each(|_| rtt.back_off());
            assert_eq!(rtt.timeout(), ms(9600));
            sample(&mut rtt, ms(400));
            assert_eq!(rtt.timeout(), ms(1000));
        }
    }

    /// [rfc-4015] sec. 3.3, worked by hand: SRTT 900 ms, RTTVAR 450 ms.
    #[test]
    fn a_timeout_that_was_not_needed_makes_the_next_one_later() {
        let mut rtt = RttEstimator::new(ms(200));
        rtt.on_sample(ms(100));
        rtt.back_off();
        rtt.back_off();
        rtt.on_late(ms(900));
        rtt.forgive();
        assert_eq!(rtt.timeout(), ms(2700));
    }

    #[test]
    fn a_handshake_says_nothing_about_the_least_rtt() {
        let mut rtt = RttEstimator::new(ms(200));
        rtt.on_handshake(ms(50));
        assert_eq!((rtt.smoothed(), rtt.least()), (Some(ms(50)), None));
    }
}

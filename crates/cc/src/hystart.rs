//! HyStart++: slow start slows down when the RTT rises, and ends if the RTT stays high.
//!
//! ```text
//! a round's RTT: the least of its samples, if there are at least 8
//! slow start:                 w ← w + acknowledged            until RTT ≥ last + clamp(last/8, 4 ms, 16 ms), last: the RTT of the last round
//! conservative slow start:    w ← w + acknowledged/4          back to slow start if the RTT falls below the one at which it began
//! after 5 rounds of it:       ssthresh ← w
//! ```
//!
//! Citation: rfc-9406.
//!
//! Differs from rfc-9406 in:
//! * The growth by one ACK has no limit (L). The RFC limits senders that do not pace, and the transport paces.

mod linux;

use anabranch_units::Span;

pub(crate) use self::linux::Linux;

/// The part of a law that watches the RTTs of its first slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    /// Least RTTs of the round before and of this one.
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The RTT at which it began.
    baseline: Span,
    /// Rounds that have ended within it.
    rounds: u32,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self { last: None, current: None, samples: 0, conservative: None }
    }

    /// Handles an ACK for `acked` segments in slow start. Returns the growth of the window.
    pub(crate) fn on_ack(&mut self, acked: f64, rtt: Option<Span>) -> f64 {
        // [rfc-9406] sec. 4.2: the window grows first, then the RTTs are compared.
        let growth = if self.is_conservative() { acked / DIVISOR } else { acked };
        if let Some(rtt) = rtt {
            self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        if let (Some(current), true) = (self.current, self.samples >= SAMPLES) {
            match (self.conservative, self.last) {
                (Some(Conservative { baseline, .. }), _) if current < baseline => self.conservative = None,
                (None, Some(last)) if current >= last.saturating_add((last / 8).clamp(RISE_LEAST, RISE_MOST)) => {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
                _ => {}
            }
        }
        growth
    }

    pub(crate) fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Handles the end of a round. Returns whether slow start ends with it.
    pub(crate) fn on_round(&mut self) -> bool {
        (self.last, self.current, self.samples) = (self.current, None, 0);
        let Some(conservative) = &mut self.conservative else { return false };
        conservative.rounds += 1;
        conservative.rounds >= ROUNDS
    }
}

/// rfc-9406 sec. 4.3: MIN_RTT_THRESH and MAX_RTT_THRESH.
const RISE_LEAST: Span = Span::from_millis(4);
const RISE_MOST: Span = Span::from_millis(16);

/// rfc-9406 sec. 4.3: N_RTT_SAMPLE.
const SAMPLES: u32 = 8;

/// rfc-9406 sec. 4.3: CSS_GROWTH_DIVISOR.
const DIVISOR: f64 = 4.0;

/// rfc-9406 sec. 4.3: CSS_ROUNDS, the one in which it begins included.
const ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// So many ACKs of a segment each, with this RTT: by how much the window grows.
    fn acks(hystart: &mut HyStart, count: u32, rtt_ms: u64) -> f64 {
        (0..count).map(|_| hystart.on_ack(1.0, Some(Span::from_millis(rtt_ms)))).sum()
    }

    /// [rfc-9406] sec. 4.2: 100 ms and an eighth of it, 12.5 ms. Seven samples say nothing, and the eighth that it was 113 ms.
    #[test]
    fn a_rise_by_an_eighth_slows_it() {
        let mut hystart = HyStart::new();
        assert_eq!(acks(&mut hystart, 10, 100) as u32, 10);
        assert!(!hystart.on_round());
        acks(&mut hystart, 7, 113);
        assert!(!hystart.is_conservative());
        acks(&mut hystart, 1, 113);
        assert!(hystart.is_conservative());
        assert!((acks(&mut hystart, 8, 113) - 2.0).abs() < 1e-12);
        let mut hystart = HyStart::new();
        acks(&mut hystart, 10, 100);
        hystart.on_round();
        acks(&mut hystart, 20, 112);
        assert!(!hystart.is_conservative());
    }

    /// Below 32 ms it takes 4 ms, above 128 ms it takes 16.
    #[test]
    fn the_rise_has_limits() {
        for (base, rise) in [(8, 4), (400, 16)] {
            for (above, is) in [(rise - 1, false), (rise, true)] {
                let mut hystart = HyStart::new();
                acks(&mut hystart, 8, base);
                hystart.on_round();
                acks(&mut hystart, 8, base + above);
                assert_eq!(hystart.is_conservative(), is, "{base} + {above}");
            }
        }
    }

    #[test]
    fn it_ends_after_five_rounds_or_goes_on() {
        let mut hystart = HyStart::new();
        acks(&mut hystart, 8, 100);
        hystart.on_round();
        let ends: Vec<bool> = (0..5)
            .map(|_| {
                acks(&mut hystart, 8, 120);
                hystart.on_round()
            })
            .collect();
        assert_eq!(ends, [false, false, false, false, true]);
        let mut hystart = HyStart::new();
        acks(&mut hystart, 8, 100);
        hystart.on_round();
        acks(&mut hystart, 8, 120);
        hystart.on_round();
        acks(&mut hystart, 8, 119);
        assert!(!hystart.is_conservative(), "it was an accident");
    }
}

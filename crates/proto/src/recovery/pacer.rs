//! The pacer: releases segments at the rate that the controller decides. Without a rate it releases everything.

use anabranch_units::{Bytes, Rate, Span, Time};

/// When the next segment of a path may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    free_at: Time,
}

impl Pacer {
    pub(crate) fn new() -> Self {
        Self { free_at: Time::ZERO }
    }

    /// From when on a segment may leave: `now` or later.
    pub(crate) fn release(&self, now: Time, rate: Option<Rate>) -> Time {
        if rate.is_some() { self.free_at.max(now) } else { now }
    }

    /// A segment of `size` left. If that was [`LATE_MOST`] too late, or less, it is made up for. Longer is taken for a time in which there was
    /// nothing to send: a host whose timers are as late as that sends more slowly than it may.
    pub(crate) fn on_sent(&mut self, now: Time, size: Bytes, rate: Option<Rate>) {
        if let Some(rate) = rate {
            let is_late = now.since(self.free_at) <= LATE_MOST;
            let from = if is_late { self.free_at } else { now };
            self.free_at = from.saturating_add(rate.transmission(size));
        }
    }
}

/// Hosts wake up so much after the time that they were asked for.
const LATE_MOST: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_at_the_rate() {
        let (rate, size) = (Some(Rate::from_bits_per_second(8_000_000)), Bytes::new(1000));
        let mut pacer = Pacer::new();
        let ms = |ms: u64| Time::from_ticks(ms * 1_000_000);
        assert_eq!(pacer.release(ms(5), rate), ms(5));
        pacer.on_sent(ms(5), size, rate);
        assert_eq!(pacer.release(ms(5), rate), ms(6));
        assert_eq!(pacer.release(ms(9), rate), ms(9));
        // Late by 1 ms, the next one leaves at once; by 2 ms, it does not.
        pacer.on_sent(ms(7), size, rate);
        assert_eq!(pacer.release(ms(7), rate), ms(7));
        pacer.on_sent(ms(9), size, rate);
        assert_eq!(pacer.release(ms(9), rate), ms(10));
        assert_eq!(pacer.release(ms(5), None), ms(5));
    }
}

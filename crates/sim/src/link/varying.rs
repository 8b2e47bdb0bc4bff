//! Departures from a link whose rate varies, in steps or according to a trace.
//!
//! Steps and traces are known in advance, so the departure of a packet is known at its arrival, as with a constant rate.

use anabranch_units::{PICO, Rate, SimSpan, SimTime};

use super::schedule::{Schedule, Steps};

/// The variation of a link's rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateSpec {
    /// In steps. While the rate is zero, packets wait; none is lost.
    Steps(Steps<Rate>),
    /// By delivery opportunities, as Mahimahi replays its traces (Netravali et al., USENIX ATC 2015).
    Trace(DeliveryTrace),
}

/// A periodic sequence of delivery opportunities. Each carries [`DeliveryTrace::BYTES`] bytes, of one packet or several. A packet
/// that does not fit continues in the next opportunity; unused capacity is lost.
///
/// Differs from Mahimahi's `mm-link` in: a packet that arrives exactly at an opportunity may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// The times of the opportunities in a period, in order. The last one is also the length of the period and above zero.
    pub opportunities: std::sync::Arc<[SimSpan]>,
}

impl DeliveryTrace {
    /// The capacity of an opportunity in bytes.
    pub const BYTES: u32 = 1504;
    /// The overhead per packet in bytes: the header of the device from which Mahimahi reads packets.
    pub const HEADER: u32 = 4;
    /// The limit on opportunities in a trace: a minute at 1 Gbit/s has 5 million.
    pub const OPPORTUNITIES_MAX: usize = 1 << 24;

    /// The period of the trace.
    pub fn period(&self) -> SimSpan {
        self.opportunities.last().copied().unwrap_or(SimSpan::ZERO)
    }

    /// The mean rate.
    pub fn rate(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(Self::BYTES) * 8;
        let rate = bits * u128::from(PICO) / u128::from(self.period().ticks().max(1));
        Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    fn is_valid(&self) -> bool {
        let times = &self.opportunities;
        times.len() <= Self::OPPORTUNITIES_MAX && times.is_sorted() && !self.period().is_zero()
    }
}

impl RateSpec {
    /// Whether it is valid for a link with the rate `first`: steps are in order, and the long-run rate is not zero.
    pub fn is_valid(&self, first: Rate) -> bool {
        match self {
            Self::Trace(trace) => trace.is_valid(),
            Self::Steps(steps) => {
                let moves = |rate: Rate| rate.bits_per_second() > 0;
                steps.is_valid() && {
                    let schedule = Schedule::new(first, steps.clone());
                    schedule.last().map_or_else(|| schedule.values().any(moves), moves)
                }
            }
        }
    }
}

/// The varying rate of a transmitter.
#[derive(Clone, Debug)]
pub(crate) enum Varying {
    Steps(Stepping),
    Trace(Replay),
}

/// The departure of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) starts_at: SimTime,
    /// Its time.
    pub(crate) at: SimTime,
}

impl Varying {
    /// The specification must be valid.
    pub(crate) fn new(first: Rate, spec: RateSpec) -> Self {
        match spec {
            RateSpec::Steps(steps) => Self::Steps(Stepping::new(first, steps)),
            RateSpec::Trace(trace) => Self::Trace(Replay::new(trace)),
        }
    }

    /// Sends `size` bytes from `now` on, after the earlier packets.
    pub(crate) fn send(&mut self, now: SimTime, size: u32) -> Departure {
        match self {
            Self::Steps(stepping) => stepping.send(now, size),
            Self::Trace(replay) => replay.send(now, size),
        }
    }

    /// The first time from `now` on at which a packet can start.
    pub(crate) fn ready_at(&self, now: SimTime) -> SimTime {
        match self {
            Self::Steps(stepping) => stepping.ready_at(now),
            Self::Trace(replay) => replay.place(now).time(&replay.trace),
        }
    }
}

/// A rate that changes in steps. A packet of b bits is b · 10^12 units of work; at rate r the link does r units per picosecond.
/// So the arithmetic is exact: when a departure is rounded down, its remaining work is done first for the next packet.
#[derive(Clone, Debug)]
pub(crate) struct Stepping {
    rates: Schedule<u64>,
    /// The work of a whole period.
    work_per_period: Option<(SimSpan, u128)>,
    free_at: SimTime,
    /// The work that was still left at that time, less than that of one picosecond.
    rest: u128,
}

impl Stepping {
    fn new(first: Rate, steps: Steps<Rate>) -> Self {
        let Steps { steps, period } = steps;
        let steps = steps.into_iter().map(|(at, rate)| (at, rate.bits_per_second())).collect();
        let rates = Schedule::new(first.bits_per_second(), Steps { steps, period });
        let work = |parts: &mut dyn Iterator<Item = (u64, SimSpan)>| {
            parts.map(|(rate, span)| u128::from(rate) * u128::from(span.ticks())).sum()
        };
        let work_per_period = rates.cycle().map(|(period, mut parts)| (period, work(&mut parts)));
        Self { rates, work_per_period, free_at: SimTime::ZERO, rest: 0 }
    }

    fn send(&mut self, now: SimTime, size: u32) -> Departure {
        if now > self.free_at {
            (self.free_at, self.rest) = (now, 0);
        }
        let starts_at = self.free_at;
        let mut todo = self.rest + u128::from(size) * 8 * u128::from(PICO);
        let mut time = starts_at;
        if let Some((period, work)) = self.work_per_period.filter(|&(_, work)| todo > work) {
            // Some work is always left, so the packet leaves when it is done, not at the end of a period.
            let periods = (todo - 1) / work;
            todo -= periods * work;
            time = time.saturating_add(period.saturating_mul(u64::try_from(periods).unwrap_or(u64::MAX)));
        }
        while todo > 0 && time < SimTime::NEVER {
            let (rate, until) = self.rates.at(time);
            let done = u128::from(rate) * u128::from(until.since(time).ticks());
            if todo <= done {
                let rate = u128::from(rate);
                time = SimTime::from_ticks(time.ticks() + (todo / rate) as u64);
                todo %= rate;
                break;
            }
            (time, todo) = (until, todo - done);
        }
        (self.free_at, self.rest) = (time, todo);
        Departure { starts_at, at: time }
    }

    fn ready_at(&self, now: SimTime) -> SimTime {
        let mut time = now.max(self.free_at);
        while let (0, until) = self.rates.at(time) {
            time = until;
        }
        time
    }
}

/// The replay of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    trace: DeliveryTrace,
    /// The last used opportunity.
    place: TracePosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TracePosition {
    /// The number of completed periods.
    cycle: u64,
    /// The opportunity.
    index: usize,
    /// Its unused bytes.
    left: u32,
}

impl TracePosition {
    fn time(self, trace: &DeliveryTrace) -> SimTime {
        let begin = trace.period().saturating_mul(self.cycle);
        SimTime::ZERO.saturating_add(begin).saturating_add(trace.opportunities[self.index])
    }

    fn next(self, trace: &DeliveryTrace) -> Self {
        let (cycle, index) = match self.index + 1 {
            index if index < trace.opportunities.len() => (self.cycle, index),
            _ => (self.cycle + 1, 0),
        };
        Self { cycle, index, left: DeliveryTrace::BYTES }
    }
}

impl Replay {
    fn new(trace: DeliveryTrace) -> Self {
        Self { trace, place: TracePosition { cycle: 0, index: 0, left: DeliveryTrace::BYTES } }
    }

    /// The first opportunity at `now` or later with unused bytes.
    fn place(&self, now: SimTime) -> TracePosition {
        let here = self.place.time(&self.trace);
        if here >= now {
            return if self.place.left > 0 { self.place } else { self.place.next(&self.trace) };
        }
        // The last opportunity is exactly at the end of the period and belongs to it.
        let period = self.trace.period().ticks();
        let cycle = now.ticks().saturating_sub(1) / period;
        let phase = SimSpan::from_ticks(now.ticks() - cycle * period);
        let index = self.trace.opportunities.partition_point(|&at| at < phase);
        TracePosition { cycle, index, left: DeliveryTrace::BYTES }
    }

    fn send(&mut self, now: SimTime, size: u32) -> Departure {
        self.place = self.place(now);
        let starts_at = self.place.time(&self.trace);
        let mut todo = size.saturating_add(DeliveryTrace::HEADER);
        while todo > self.place.left {
            todo -= self.place.left;
            self.place = self.place.next(&self.trace);
        }
        self.place.left -= todo;
        Departure { starts_at, at: self.place.time(&self.trace) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_millis(millis)
    }

    fn steps(first: u64, steps: &[(u64, u64)], period: Option<u64>) -> Varying {
        let steps = steps.iter().map(|&(ms, rate)| (SimSpan::from_millis(ms), Rate::from_bits_per_second(rate)));
        let spec = RateSpec::Steps(Steps { steps: steps.collect(), period: period.map(SimSpan::from_millis) });
        assert!(spec.is_valid(Rate::from_bits_per_second(first)));
        Varying::new(Rate::from_bits_per_second(first), spec)
    }

    fn trace(opportunities: &[u64]) -> DeliveryTrace {
        DeliveryTrace { opportunities: opportunities.iter().map(|&ms| SimSpan::from_millis(ms)).collect() }
    }

    /// 8 Mbit/s are 1 kB per millisecond. From 3 ms on the rate is half of that, from 7 ms on twice that. So packets of 1 kB
    /// leave at 1, 2, 3, then 5, 7, then 7.5, 8 ms.
    #[test]
    fn packets_leave_at_the_rate_of_their_time() {
        let mut varying = steps(8_000_000, &[(3, 4_000_000), (7, 16_000_000)], None);
        let left: Vec<_> = (0..7).map(|_| varying.send(SimTime::ZERO, 1000).at.ticks() / 500_000_000).collect();
        assert_eq!(left, [2, 4, 6, 10, 14, 15, 16]);
    }

    /// A packet of 4 kB starts at 1 ms: 2 kB at 1 kB/ms until 3 ms, nothing until 5 ms, 2 kB at 4 kB/ms.
    #[test]
    fn a_packet_goes_on_at_the_next_rate() {
        let mut varying = steps(8_000_000, &[(3, 0), (5, 32_000_000)], None);
        assert_eq!(varying.send(millis(1), 4000).at, SimTime::ZERO + SimSpan::from_micros(5500));
        let stalled = steps(8_000_000, &[(3, 0), (5, 32_000_000)], None);
        assert_eq!([2, 3, 4, 5].map(|ms| stalled.ready_at(millis(ms))), [2, 5, 5, 5].map(millis));
    }

    /// 7 bit/s, then 3 bit/s: the times of bytes are no integers. A thousand bytes leave exactly when the work is done: 10 s have
    /// 5 · 7 + 5 · 3 = 50 bits, so 8000 bits take 1600 s.
    #[test]
    fn steps_do_not_drift() {
        let mut varying = steps(7, &[(5000, 3)], Some(10_000));
        for _ in 0..999 {
            varying.send(SimTime::ZERO, 1);
        }
        assert_eq!(varying.send(SimTime::ZERO, 1).at, millis(1_600_000));
        // One packet of the total size gives the same time.
        assert_eq!(steps(7, &[(5000, 3)], Some(10_000)).send(SimTime::ZERO, 1000).at, millis(1_600_000));
    }

    #[test]
    fn a_link_that_ends_at_nothing_is_refused() {
        let spec = |rate: u64, period| {
            let steps = vec![(SimSpan::from_millis(1), Rate::from_bits_per_second(rate))];
            RateSpec::Steps(Steps { steps, period }).is_valid(Rate::from_bits_per_second(8))
        };
        assert!(!spec(0, None) && spec(0, Some(SimSpan::from_millis(2))) && spec(1, None));
        let is_valid = |times: &[u64]| RateSpec::Trace(trace(times)).is_valid(Rate::from_bits_per_second(8));
        assert!(is_valid(&[0, 5]) && !is_valid(&[]) && !is_valid(&[0]) && !is_valid(&[3, 2]));
    }

    /// Opportunities at 2, 2, 5 ms, then at 7, 7, 10 ms and so on. Packets of 1500 B fill one each.
    #[test]
    fn a_trace_begins_anew_after_its_last_opportunity() {
        let mut varying = Varying::new(Rate::from_bits_per_second(1), RateSpec::Trace(trace(&[2, 2, 5])));
        let left = (0..7).map(|_| varying.send(SimTime::ZERO, 1500).at).collect::<Vec<_>>();
        assert_eq!(left, [2, 2, 5, 7, 7, 10, 12].map(millis));
        // 3 opportunities of 1504 B in 5 ms.
        assert_eq!(trace(&[2, 2, 5]).rate().bits_per_second(), 3 * 1504 * 8 * 200);
    }

    /// A packet that arrives after an opportunity waits for the next one. Unused opportunities are lost.
    #[test]
    fn an_opportunity_that_passes_is_lost() {
        let mut varying = Varying::new(Rate::from_bits_per_second(1), RateSpec::Trace(trace(&[2, 4, 6, 8])));
        assert_eq!(varying.ready_at(millis(3)), millis(4));
        assert_eq!(varying.send(millis(3), 1500), Departure { starts_at: millis(4), at: millis(4) });
        assert_eq!(varying.ready_at(millis(4)), millis(6));
        assert_eq!(varying.send(millis(8), 1500).at, millis(8));
        // 100 periods later, a packet that takes five opportunities.
        assert_eq!(varying.send(millis(807), 5 * 1504 - 4).at, millis(816));
    }

    /// A packet of 700 B with its 4 B header takes 704 of 1504 bytes. Two fit in an opportunity; a third begins in it and ends in
    /// the next.
    #[test]
    fn small_packets_share_an_opportunity() {
        let mut varying = Varying::new(Rate::from_bits_per_second(1), RateSpec::Trace(trace(&[1, 2, 3])));
        let left = [(); 4].map(|()| varying.send(SimTime::ZERO, 700));
        assert_eq!(left.map(|departure| departure.at), [1, 1, 2, 2].map(millis));
        assert_eq!(left.map(|departure| departure.starts_at), [1, 1, 1, 2].map(millis));
        // 2 · 1504 - 4 · 704 = 192 B are left at 2 ms. A packet that arrives then may use them.
        assert_eq!(varying.ready_at(millis(2)), millis(2));
    }
}

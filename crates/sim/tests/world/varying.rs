//! Links that change: their rate, their delay, the order of their packets.

use anabranch_sim::{
    CoDelParameters, DelaySpec, DeliveryTrace, HoldSpec, LinkSpec, QueueSpec, RateSpec, ReorderSpec, ScatterSpec, Steps,
};
use anabranch_units::{Rate, SimSpan, SimTime};

use super::standard::{millis, spec};
use super::support::{Burst, Log, Pair};

fn span(ms: u64) -> SimSpan {
    SimSpan::from_millis(ms)
}

fn rates(steps: &[(u64, u64)], period: Option<u64>) -> RateSpec {
    let steps = steps.iter().map(|&(ms, rate)| (span(ms), Rate::from_bits_per_second(rate))).collect();
    RateSpec::Steps(Steps { steps, period: period.map(span) })
}

fn trace(opportunities: &[u64]) -> RateSpec {
    RateSpec::Trace(DeliveryTrace { opportunities: opportunities.iter().map(|&ms| span(ms)).collect() })
}

/// Returns when each packet of a burst arrives, and how many packets wait at `asked_at`.
fn run(link: LinkSpec, burst: Burst, asked_at: u64) -> (Vec<(u64, SimTime)>, u64) {
    let mut pair = Pair::new(burst, Log::default(), [link]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(millis(asked_at));
    let waiting = world.waiting(pair.links[0]);
    world.assert_conserved();
    world.run_until(SimTime::NEVER);
    world.assert_conserved();
    let arrivals = world.host::<Log>(pair.sink).unwrap().arrivals.iter().map(|&(time, seq, _)| (seq, time));
    (arrivals.collect(), waiting)
}

/// 1 kB takes 1 ms; from 2 ms on it takes 2 ms; from 6 ms on nothing is sent until 9 ms, when the period restarts. With either
/// kind of queue.
#[test]
fn packets_leave_at_the_rate_of_their_time() {
    for (queue, expected) in [(QueueSpec::packets(50), 2), (QueueSpec::from(CoDelParameters::default()), 3)] {
        let link = spec("8Mbit/s", "10ms").queue(queue).rates(rates(&[(2, 4_000_000), (6, 0)], Some(9)));
        let (arrivals, waiting) = run(link, Burst::new(1000, 7), 7);
        let times: Vec<_> = arrivals.into_iter().map(|(_, time)| time).collect();
        assert_eq!(times, [11, 12, 14, 16, 20, 21, 23].map(millis));
        assert_eq!(waiting, expected, "a managed queue chooses the fifth when the rate comes back");
    }
}

/// Packets of 1500 B, one per opportunity. A managed queue selects a packet at the opportunity: until then all of them wait.
#[test]
fn packets_leave_when_a_trace_lets_them() {
    for (queue, expected) in [(QueueSpec::packets(50), 2), (QueueSpec::from(CoDelParameters::default()), 3)] {
        let link = spec("1Mbit/s", "10ms").queue(queue).rates(trace(&[3, 3, 7, 20]));
        let (arrivals, waiting) = run(link, Burst::new(1500, 5), 5);
        let times: Vec<_> = arrivals.into_iter().map(|(_, time)| time).collect();
        assert_eq!(times, [13, 13, 17, 30, 33].map(millis));
        assert_eq!(waiting, expected);
    }
}

/// 1 ms per packet. The delay is 20 ms, 5 ms for packets that leave from 3 ms on, and 30 ms from 5 ms on. The first five packets
/// leave at 1 to 5 ms.
#[test]
fn a_shorter_way_overtakes() {
    let delays = Steps { steps: vec![(span(3), span(5)), (span(5), span(30))], period: None };
    let link = spec("8Mbit/s", "20ms").scatter(ScatterSpec { delays: Some(delays), ..ScatterSpec::default() });
    let (arrivals, _) = run(link, Burst::new(1000, 5), 4);
    assert_eq!(arrivals, [(2, 8), (3, 9), (0, 21), (1, 22), (4, 35)].map(|(seq, ms)| (seq, millis(ms))));
}

/// Of 100,000 packets, sent 1 ms apart with a delay of 10 ms, a tenth take 2.5 ms longer. Each of these is overtaken by two
/// packets, unless those are late as well.
#[test]
fn a_share_of_the_packets_is_late() {
    let reorder = Some(ReorderSpec { share: 0.1, extra: DelaySpec::Constant(SimSpan::from_micros(2500)) });
    let link = spec("8Mbit/s", "10ms").scatter(ScatterSpec { reorder, ..ScatterSpec::default() });
    let (arrivals, _) = run(link, Burst::new(1000, 100_000), 1000);
    let late = arrivals.iter().filter(|&&(seq, time)| time > millis(11 + seq)).count();
    // Binomial: the standard deviation is 95.
    assert!(late.abs_diff(10_000) < 475, "{late}");
    let overtaken = arrivals.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    // Packet n is late and arrives at n + 2.5 ms: behind n + 2, if that is not late as well, else behind n - 1 at n + 1.5 ms, if
    // that is late, else behind n + 1, if that is not late. So it follows a packet that was sent later, but for a share of 0.1 ·
    // (0.1 + 0.9 · 0.1).
    assert!(overtaken.abs_diff(late * 981 / 1000) < 70, "{overtaken} of {late}");
}

#[test]
fn a_share_of_the_packets_comes_twice() {
    let link = spec("8Mbit/s", "10ms").scatter(ScatterSpec { duplicates: 0.1, ..ScatterSpec::default() });
    let pair = Pair::new(Burst::new(1000, 100_000), Log::default(), [link]);
    let (sink, link) = (pair.sink, pair.links[0]);
    let world = pair.run();
    let arrivals = &world.host::<Log>(sink).unwrap().arrivals;
    let twice = arrivals.windows(2).filter(|pair| pair[0].1 == pair[1].1 && pair[0].0 == pair[1].0).count() as u64;
    let report = world.link(link);
    assert_eq!((report.duplicates, report.delivered), (twice, 100_000 + twice));
    assert_eq!(report.delivered_bytes, 1000 * report.delivered);
    assert!(twice.abs_diff(10_000) < 475, "{twice}");
}

/// Packets from a managed queue are held like any others: 1 ms per packet, released every 4 ms.
#[test]
fn a_managed_queue_may_have_a_hold_behind_it() {
    let queue = QueueSpec::from(CoDelParameters::default());
    let link = spec("8Mbit/s", "10ms").queue(queue).hold(HoldSpec::Grid(span(4)));
    let (arrivals, _) = run(link, Burst::new(1000, 6), 4);
    let times: Vec<_> = arrivals.into_iter().map(|(_, time)| time).collect();
    assert_eq!(times, [12, 12, 16, 16, 16, 16].map(millis));
}

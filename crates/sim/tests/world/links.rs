//! Links and queues: exact times, exact losses, exact averages.

use anabranch_sim::{
    CoDelParameters, Detail, DropReason, Drops, ErrorSpec, LinkRow, LinkTrace, Observed, QueueArea, QueueSpec,
    RedParameters, RedWeight, Throughput, Unit,
};
use anabranch_units::{PICO, SimSpan, SimTime};

use super::standard::{millis, spec};
use super::support::{Burst, Log, Pair};

#[test]
fn a_chain_delivers_at_the_exact_picosecond() {
    // 1000 B take 4 ms at 2 Mbit/s and 16/3 ms at 1.5 Mbit/s; the delays are 10, 100 and 10 ms. The first packet reaches the
    // bottleneck at 14 ms. So packet k leaves it at 14 ms + (k + 1) 16/3 ms, rounded down, and has 124 - 10 ms to go.
    let chain = [spec("2Mbit/s", "10ms"), spec("1.5Mbit/s", "100ms"), spec("2Mbit/s", "10ms")];
    let pair = Pair::new(Burst::new(1000, 50), Log::default(), chain);
    let sink = pair.sink;
    let world = pair.run();
    let expected: Vec<_> =
        (1..=50).map(|k| SimTime::from_ticks(14 * PICO / 1000 + k * 16 * PICO / 3000 + 114 * PICO / 1000)).collect();
    assert_eq!(world.host::<Log>(sink).unwrap().times(), expected);
}

#[test]
fn of_a_burst_a_drop_tail_queue_keeps_its_limit() {
    // ns-2's limit of 10: one in service, nine that wait.
    for limit in [2, 10, 50] {
        let link = spec("1Mbit/s", "1ms").queue(QueueSpec::packets(limit));
        let pair = Pair::new(Burst::new(1000, 100), Log::default(), [link]);
        let (sink, link, flow) = (pair.sink, pair.links[0], pair.flow);
        let world = pair.run();
        assert_eq!(world.host::<Log>(sink).unwrap().arrivals.len(), limit as usize);
        assert_eq!(world.link_flow(link, flow).drops, 100 - u64::from(limit));
    }
}

#[test]
fn a_limit_in_bytes_counts_what_waits() {
    // One packet of 1000 B in service and 4 kB waiting.
    let pair = Pair::new(Burst::new(1000, 9), Log::default(), [spec("1Mbit/s", "1ms").queue(QueueSpec::bytes(4999))]);
    let link = pair.links[0];
    assert_eq!(pair.run().link(link).delivered, 5);
}

/// A transmitter that becomes free while no packet waits is known to be free, at any time. A packet of 1000 B takes 8 ms: those of 0, 20, 40 and 44 ms leave at 8, 28,
/// 48 and 56 ms, and arrive 5 ms later.
#[test]
fn ns2_clock_knows_idle_transmitters() {
    let mut pair = Pair::new(Burst::new(1000, 1), Log::default(), [spec("1Mbit/s", "5ms")]);
    pair.net.ns2_clock();
    [0, 20, 40, 44].into_iter().for_each(|ms| pair.net.start(millis(ms), pair.source).unwrap());
    let mut world = pair.net.build().unwrap();
    let (link, sink) = (pair.links[0], pair.sink);
    let seen = [7, 8, 13, 27, 28, 34, 47, 48, 57, 100].map(|ms| {
        world.run_until(millis(ms));
        let lengths = world.queue_lengths(link);
        ((lengths.busy_share() * ms as f64).round() as u64, lengths.max(), world.waiting(link))
    });
    let once = [(7, 1, 0), (8, 1, 0), (8, 1, 0), (15, 1, 0), (16, 1, 0), (16, 1, 0)];
    assert_eq!(seen[..6], once);
    assert_eq!(seen[6..], [(23, 2, 1), (24, 2, 0), (32, 2, 0), (32, 2, 0)]);
    assert_eq!(world.host::<Log>(sink).unwrap().times(), [13, 33, 53, 61].map(millis));
    world.assert_conserved();
}

/// The queue over time is the same whether packets received at the far end have rows, too; and those make more rows.
#[test]
fn link_trace_of_queue_has_no_rows_for_arrivals() {
    let bottleneck = spec("1Mbit/s", "5ms").queue(QueueSpec::packets(10));
    let mut pair = Pair::new(Burst::new(1000, 7), Log::default(), [spec("3Mbit/s", "1ms"), bottleneck]);
    (0..40).for_each(|step| pair.net.start(millis(17 * step), pair.source).unwrap());
    let link = pair.links[1];
    let trace = || LinkTrace::new(Some(Detail::WHOLE), None);
    let all = pair.net.observe(&[link], trace()).unwrap();
    let queue = pair.net.observe(&[link], trace().of_queue()).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(millis(900));
    let rows = |trace: &Observed<LinkTrace>| trace.borrow().rows(millis(900)).unwrap().collect::<Vec<LinkRow>>();
    let (all, queue) = (rows(&all), rows(&queue));
    assert!(all.len() > queue.len() + 100 && queue.iter().all(|row| row.forwarded == 0));
    assert!(queue.iter().any(|row| row.dropped > 0));
    let steps = |rows: &[LinkRow]| {
        let mut steps: Vec<_> = rows.iter().map(|row| (row.time, row.queue, row.dropped)).collect();
        steps.dedup_by_key(|&mut (_, queue, dropped)| (queue, dropped));
        steps
    };
    assert_eq!(steps(&all), steps(&queue));
}

#[test]
fn the_mean_queue_of_a_burst_by_hand() {
    // Five packets of 8 ms each arrive at once: packet k waits 8 k ms, together 80 packet-ms. In the first 20 ms the second waits
    // 8, the third 16, and two more wait 20 each: 64 packet-ms.
    let mut pair = Pair::new(Burst::new(1000, 5), Log::default(), [spec("1Mbit/s", "5ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    let link = pair.links[0];
    world.run_until(millis(20));
    let early = world.queue_area(link);
    assert_eq!((early.mean_since(QueueArea::START), world.waiting(link)), (64.0 / 20.0, 2));
    world.run_until(millis(100));
    let late = world.queue_area(link);
    assert_eq!((late.mean_since(QueueArea::START), late.mean_since(early)), (80.0 / 100.0, 16.0 / 80.0));
}

#[test]
fn a_managed_queue_has_the_same_mean() {
    let link = spec("1Mbit/s", "5ms").queue(QueueSpec::from(CoDelParameters::default()));
    let mut pair = Pair::new(Burst::new(1000, 5), Log::default(), [link]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    let (link, sink) = (pair.links[0], pair.sink);
    world.run_until(millis(20));
    assert_eq!((world.queue_area(link).mean_since(QueueArea::START), world.waiting(link)), (64.0 / 20.0, 2));
    world.run_until(millis(100));
    assert_eq!((world.queue_area(link).mean_since(QueueArea::START), world.waiting(link)), (80.0 / 100.0, 0));
    assert_eq!(world.host::<Log>(sink).unwrap().times(), [13, 21, 29, 37, 45].map(millis));
}

#[test]
fn errors_strike_in_front_of_the_queue() {
    let link = spec("1Mbit/s", "1ms").queue(QueueSpec::packets(5)).error(ErrorSpec::List(vec![0, 2]));
    let mut pair = Pair::new(Burst::new(1000, 8), Log::default(), [link]);
    let drops = pair.net.observe(&pair.links, Drops::default()).unwrap();
    let sink = pair.sink;
    let world = pair.run();
    let arrived: Vec<_> = world.host::<Log>(sink).unwrap().arrivals.iter().map(|&(_, seq, _)| seq).collect();
    assert_eq!(arrived, [1, 3, 4, 5, 6]);
    let lost: Vec<_> = drops.borrow().records.iter().map(|drop| (drop.seq, drop.reason)).collect();
    assert_eq!(lost, [(0, DropReason::Error), (2, DropReason::Error), (7, DropReason::Queue)]);
}

/// A packet that is too long is lost before any other stage sees it, and is counted.
#[test]
fn packet_above_mtu_is_lost() {
    for (mtu, arrived) in [(999, 0), (1000, 5)] {
        let link = spec("1Mbit/s", "1ms").mtu(mtu).error(ErrorSpec::List(vec![]));
        let mut pair = Pair::new(Burst::new(1000, 5), Log::default(), [link]);
        let drops = pair.net.observe(&pair.links, Drops::default()).unwrap();
        let link = pair.links[0];
        let world = pair.run();
        world.assert_conserved();
        let (report, lost) = (world.link(link), 5 - arrived);
        let counts = report.counts;
        assert_eq!((counts.offered, counts.drops, counts.too_long, report.delivered), (5, lost, lost, arrived));
        assert!(drops.borrow().records.iter().all(|drop| drop.reason == DropReason::TooLong));
    }
}

#[test]
fn throughput_falls_into_bins() {
    // Arrivals at 9, 17, 25, 33, 41 ms.
    let mut pair = Pair::new(Burst::new(1000, 5), Log::default(), [spec("1Mbit/s", "1ms")]);
    let bins = Throughput::new(millis(10), SimSpan::from_millis(10), Some(pair.flow));
    let bins = pair.net.observe(&pair.links, bins).unwrap();
    pair.run();
    assert_eq!(bins.borrow().bytes(), [1000, 1000, 1000, 1000]);
}

#[test]
fn red_keeps_its_average_between_the_thresholds() {
    // The sender offers twice what the link carries: the queue must stay near the thresholds and not at its limit.
    let red = RedParameters {
        limit: 1000,
        threshold_min: 20.0,
        threshold_max: 60.0,
        weight: RedWeight::Given(0.01),
        unit: Unit::Packets,
        mean_size: 1000,
        ..RedParameters::default()
    };
    let link = spec("1Mbit/s", "1ms").queue(QueueSpec::from(red));
    let cbr = anabranch_sim::traffic::Cbr::new("2Mbit/s".parse().unwrap(), 1000);
    let mut pair = Pair::new(cbr, anabranch_sim::traffic::Sink::default(), [link]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(millis(20_000));
    let early = world.queue_area(pair.links[0]);
    world.run_until(millis(100_000));
    let mean = world.queue_area(pair.links[0]).mean_since(early);
    // Half of all packets must be dropped, so the average settles where p lies between 0.1 (at 60) and 1 (at 120).
    assert!((60.0..120.0).contains(&mean), "mean queue {mean}");
    world.assert_conserved();
}

#[test]
fn codel_brings_a_standing_queue_down() {
    let link = spec("1Mbit/s", "1ms").queue(QueueSpec::from(CoDelParameters::default()));
    let cbr = anabranch_sim::traffic::Cbr::new("1.05Mbit/s".parse().unwrap(), 1000);
    let mut pair = Pair::new(cbr, anabranch_sim::traffic::Sink::default(), [link]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(millis(100_000));
    let early = world.queue_area(pair.links[0]);
    world.run_until(millis(200_000));
    // Without management, 100 s with 5 % too much would leave 625 packets more.
    let mean = world.queue_area(pair.links[0]).mean_since(early);
    assert!(mean < 10.0, "mean queue {mean}");
    world.assert_conserved();
    let report = world.link(pair.links[0]);
    // 5/105 of the offered packets must be dropped.
    let lost = report.counts.drops as f64 / report.counts.offered as f64;
    assert!((lost - 5.0 / 105.0).abs() < 0.005, "{lost}");
}

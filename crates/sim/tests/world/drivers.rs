//! Hosts on real machines, and links that release packets in batches.

use anabranch_sim::traffic::Cbr;
use anabranch_sim::{
    Arrival, Body, Builder, DelaySpec, Driven, DriverSpec, HoldSpec, Host, HostId, QueueArea, Raw, Reads, ScatterSpec,
    Stamps, Substreams, Transmit, World,
};
use anabranch_units::{SimSpan, SimTime};

use super::standard::{millis, spec};
use super::support::{Burst, Log, Pair};

/// 1000 B at 8 Mbit/s: packet k of a burst arrives after k ms and the delay.
#[test]
fn a_link_that_holds_releases_a_burst_on_its_grid() {
    let link = spec("8Mbit/s", "10ms").hold(HoldSpec::Grid(SimSpan::from_millis(4)));
    let pair = Pair::new(Burst::new(1000, 9), Log::default(), [link]);
    let (sink, link) = (pair.sink, pair.links[0]);
    let world = pair.run();
    let log = world.host::<Log>(sink).unwrap();
    assert_eq!(log.times(), [12, 12, 16, 16, 16, 16, 20, 20, 20].map(millis));
    assert!(log.arrivals.iter().map(|&(_, number, _)| number).eq(0..9), "nothing overtakes");
    // Packets that wait at the end of the link do not wait in its queue: 8 + 7 + … + 1 packet-ms, as without a hold.
    let mean = world.queue_area(link).mean_since(QueueArea::START);
    assert!((mean - 36.0 / 20.0).abs() < 1e-9, "{mean} packets wait in 20 ms");
}

#[test]
fn hold_needs_span_and_excludes_other_exits() {
    let hold = |hold, duplicates| {
        let mut net = Builder::new(1);
        let (a, b) = (net.node("a"), net.node("b"));
        let scatter = ScatterSpec { duplicates, ..ScatterSpec::default() };
        let link = spec("1Mbit/s", "1ms").hold(hold).scatter(scatter);
        net.link(a, b, link).map_err(|error| error.to_string())
    };
    let grid = HoldSpec::Grid(SimSpan::from_millis(1));
    assert!(hold(grid, 0.0).is_ok());
    assert!(hold(HoldSpec::Grid(SimSpan::ZERO), 0.0).unwrap_err().contains("no time"));
    assert!(hold(grid, 0.1).unwrap_err().contains("a link of its own"));
}

/// Answers each packet, sets its timer 2.5 ms later, and records what happens when.
#[derive(Default)]
struct Answerer {
    owed: u64,
    deadline: Option<SimTime>,
    /// When each packet was handled, and its stated arrival time.
    read: Vec<(SimTime, SimTime)>,
    sent: Vec<SimTime>,
    rung: Vec<SimTime>,
    /// The order of reading and sending, as `r` and `s`.
    order: String,
}

impl Host for Answerer {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        self.owed += 1;
        self.deadline = Some(arrival.at + SimSpan::from_micros(2500));
        self.read.push((now, arrival.at));
        self.order.push('r');
    }

    fn handle_timeout(&mut self, now: SimTime) {
        assert!(self.deadline.is_some_and(|deadline| deadline <= now), "no timer rings early");
        self.rung.push(now);
        self.deadline = None;
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        self.owed = self.owed.checked_sub(1)?;
        self.sent.push(now);
        self.order.push('s');
        Some(Transmit::new(40, Body::Raw(Raw { seq: 0, sent_at: now })))
    }

    fn poll_timeout(&self) -> SimTime {
        self.deadline.unwrap_or(SimTime::NEVER)
    }
}

/// Packets arrive at 11, 12, …, 16 ms at a host with this driver. Returns the world and the host.
fn driven(driver: DriverSpec) -> (World, HostId) {
    let streams = ["card", "scheduler"].map(|name| Substreams::new(1).stream(name));
    let sink = Driven::new(Answerer::default(), driver, streams);
    let pair = Pair::new(Burst::new(1000, 6), sink, [spec("8Mbit/s", "10ms")]);
    let sink = pair.sink;
    (pair.run(), sink)
}

fn answerer((world, sink): &(World, HostId)) -> &Answerer {
    world.host(*sink).unwrap()
}

#[test]
fn a_driver_without_delays_changes_nothing_but_who_calls() {
    let world = driven(DriverSpec::default());
    let host = answerer(&world);
    let times = [11, 12, 13, 14, 15, 16].map(millis);
    assert_eq!((&host.sent[..], &host.order[..]), (&times[..], "rsrsrsrsrsrs"));
    assert_eq!(host.read, times.map(|time| (time, time)));
    assert_eq!(host.rung, [millis(16) + SimSpan::from_micros(2500)]);
}

/// The card reports at 12 and 16 ms: two packets, then four.
#[test]
fn card_reports_batches_and_program_reads_one_or_all() {
    let arrivals = Some(HoldSpec::Grid(SimSpan::from_millis(4)));
    let each = driven(DriverSpec { arrivals, ..DriverSpec::default() });
    let batch = driven(DriverSpec { arrivals, reads: Reads::Batch, ..DriverSpec::default() });
    assert_eq!(answerer(&each).order, "rsrsrsrsrsrs");
    assert_eq!(answerer(&batch).order, "rrssrrrrssss");
    for world in [&each, &batch] {
        assert_eq!(answerer(world).sent, [12, 12, 16, 16, 16, 16].map(millis));
    }
}

/// The program is 1.5 ms late, and its timers are on a grid of 4 ms: 18.5 ms becomes 21.5.
#[test]
fn kernel_stamps_tell_late_program_arrival_times() {
    let delay = Some(DelaySpec::Constant(SimSpan::from_micros(1500)));
    for (stamps, late) in [(Stamps::Kernel, 1500), (Stamps::Program, 0)] {
        let world = driven(DriverSpec { timer: SimSpan::from_millis(4), delay, stamps, ..DriverSpec::default() });
        let host = answerer(&world);
        let read: Vec<SimTime> = host.read.iter().map(|&(now, _)| now).collect();
        // Woken at 12.5 ms, it also finds what arrived at 12 ms, and so on.
        let expected = [12_500, 12_500, 14_500, 14_500, 16_500, 16_500];
        assert_eq!(read, expected.map(|us| SimTime::ZERO + SimSpan::from_micros(us)));
        let came: Vec<SimTime> = match stamps {
            Stamps::Kernel => [11, 12, 13, 14, 15, 16].map(millis).to_vec(),
            Stamps::Program => read.clone(),
        };
        assert!(host.read.iter().map(|&(_, at)| at).eq(came), "{stamps:?}: {:?}", host.read);
        assert_eq!(host.rung.len(), 1);
        let due = if late > 0 { 18_500 } else { 19_000 };
        assert!(
            host.rung[0] == SimTime::ZERO + SimSpan::from_micros(21_500),
            "due at {due} us, rung at {:?}",
            host.rung
        );
    }
}

/// When 65,536 packets are unread, further ones are lost and counted.
#[test]
fn a_socket_that_is_not_read_overflows() {
    let streams = ["card", "scheduler"].map(|name| Substreams::new(1).stream(name));
    let driver = DriverSpec { delay: Some(DelaySpec::Constant(SimSpan::from_secs(100))), ..DriverSpec::default() };
    let sink = Driven::new(Log::default(), driver, streams);
    let source = Cbr::new("8Gbit/s".parse().unwrap(), 100);
    let mut pair = Pair::new(source, sink, [spec("8Gbit/s", "1ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    // 70,001 packets.
    pair.net.stop(millis(7), pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    assert_eq!(world.host::<Log>(pair.sink).unwrap().arrivals.len(), 1 << 16);
    let overflows = world.host::<Driven<Log>>(pair.sink).map(Driven::overflows);
    assert_eq!(overflows, Some(world.link(pair.links[0]).delivered - (1 << 16)));
}

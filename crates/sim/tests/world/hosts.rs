//! The driver's contract with hosts, and the hosts of this crate.

use anabranch_sim::traffic::{Cbr, OnOff, OnOffParameters, Sink};
use anabranch_sim::{Arrival, Builder, Control, Host, Input, Messages, Offer, Port, Spacing, Workload};
use anabranch_units::{SimSpan, SimTime};

use super::standard::{millis, spec};
use super::support::{Log, Pair};

/// A timer that moves by 10 ms at each arrival. It records when it fires and what it is called with.
#[derive(Default)]
struct Timer {
    deadline: Option<SimTime>,
    fired: Vec<SimTime>,
    inputs: Vec<(SimTime, Input)>,
}

impl Host for Timer {
    fn handle(&mut self, now: SimTime, _arrival: Arrival<'_>) {
        self.deadline = Some(now + SimSpan::from_millis(10));
    }

    fn handle_timeout(&mut self, now: SimTime) {
        assert_eq!(self.deadline, Some(now), "a host is called at its deadline and not before");
        self.fired.push(now);
        self.deadline = None;
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        self.inputs.push((now, input));
    }

    fn poll_timeout(&self) -> SimTime {
        self.deadline.unwrap_or(SimTime::NEVER)
    }
}

#[test]
fn a_timer_that_moves_fires_once_and_at_its_deadline() {
    // A packet every 8 ms: arrivals at 2, 10, 18, 26, 34 ms each move the deadline before it is due.
    let mut pair = Pair::new(Cbr::new("1Mbit/s".parse().unwrap(), 1000), Timer::default(), [spec("8Mbit/s", "1ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    pair.net.stop(millis(39), pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    assert_eq!(world.host::<Timer>(pair.sink).unwrap().fired, [millis(44)]);
}

#[test]
fn a_window_that_is_large_enough_fills_the_bottleneck() {
    let mut dumbbell = super::standard::highspeed(1);
    dumbbell.world.run_until(millis(1000));
    let early = dumbbell.world.link(dumbbell.bottleneck).delivered;
    dumbbell.world.run_until(millis(2000));
    // 800 Mbit/s are 66 666 2/3 packets of 1500 B a second.
    let delivered = dumbbell.world.link(dumbbell.bottleneck).delivered - early;
    assert!((66_666..=66_667).contains(&delivered), "{delivered}");
}

#[test]
fn a_window_just_above_the_pipe_fills_it_without_loss() {
    // A packet and its ACK take 100 ms and 16/3 + 16/75 ms, the transmission time of 19.8 packets.
    let mut world = super::standard::small(1);
    world.run_until(SimTime::ZERO + SimSpan::from_secs(100));
    let link = world.links().next().unwrap();
    let delivered = world.link(link).delivered as f64;
    let expected = 100.0 * 1.5e6 / 8000.0;
    assert!(delivered > 0.99 * expected && delivered <= expected, "{delivered}");
    assert_eq!(world.link(link).counts.drops, 0);
}

#[test]
fn running_in_steps_changes_nothing() {
    let run = |step: u64| {
        let mut dumbbell = super::standard::highspeed(1);
        for now in (0..=600).step_by(step as usize) {
            dumbbell.world.run_until(millis(now));
        }
        (dumbbell.world.hash(), dumbbell.world.events())
    };
    assert_eq!(run(600), run(20));
    assert_eq!(run(600), run(1));
}

#[test]
fn a_workload_starts_its_host_and_offers_on_time() {
    let mut pair = Pair::new(Timer::default(), Log::default(), [spec("1Mbit/s", "1ms")]);
    let spacing = Spacing { every: Some(SimSpan::from_millis(20)), every_mean: None };
    let messages = Messages { bytes: 100, count: Some(3), streams: 2, spacing };
    pair.net.workload("messages", millis(5), (pair.source, Port::FIRST), Workload::Messages(messages)).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    let offer = |stream, message| Input::Offer(Offer { port: Port::FIRST, stream, message, bytes: Some(100) });
    let expected = [(5, Input::Start), (5, offer(0, 0)), (25, offer(1, 1)), (45, offer(0, 2))];
    assert_eq!(world.host::<Timer>(pair.source).unwrap().inputs, expected.map(|(time, input)| (millis(time), input)));
}

/// A packet every 8 ms from 0 on, and a stop at 80 ms. The stop was inserted before the timer of that packet, which was set at 72
/// ms.
#[test]
fn the_agenda_comes_before_the_packets_of_its_time() {
    let cbr = || Cbr::new("1Mbit/s".parse().unwrap(), 1000);
    let mut pair = Pair::new(cbr(), Sink::default(), [spec("8Mbit/s", "1ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    pair.net.stop(millis(80), pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    assert_eq!(world.host::<Cbr>(pair.source).unwrap().sent(), 10);
    let mut pair = Pair::new(cbr(), Sink::default(), [spec("8Mbit/s", "1ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    let stop = Control::Input { host: pair.source, input: Input::Stop };
    world.run_until(millis(50));
    world.schedule(millis(80), stop);
    world.run_until(SimTime::NEVER);
    assert_eq!(world.host::<Cbr>(pair.source).unwrap().sent(), 10);
}

#[test]
fn a_constant_rate_is_exact() {
    // 3 packets in 16 ms at 1.5 Mbit/s, the first at 0: 18751 in 100 s, at 0 and every 16/3 ms.
    let mut pair = Pair::new(Cbr::new("1.5Mbit/s".parse().unwrap(), 1000), Sink::default(), [spec("8Gbit/s", "1ms")]);
    pair.net.start(SimTime::ZERO, pair.source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(millis(100_000));
    assert_eq!(world.host::<Cbr>(pair.source).unwrap().sent(), 18_751);
    let sink = world.host::<Sink>(pair.sink).unwrap();
    // A transmission of 1 µs and a delay of 1 ms each.
    assert_eq!(sink.delay, SimSpan::from_micros(1001) * sink.packets);
}

#[test]
fn on_and_off_average_to_their_shares() {
    let mut net = Builder::new(1);
    let (a, b) = (net.node("a"), net.node("b"));
    net.duplex(a, b, spec("8Gbit/s", "1ms")).unwrap();
    let second = SimSpan::from_millis(100);
    let parameters = OnOffParameters { on: second, off: second * 3, rate: "8Mbit/s".parse().unwrap(), size: 1000 };
    let stream = net.stream("flow.0.traffic");
    let (source, sink) = (net.host(a, OnOff::new(parameters, stream)).unwrap(), net.host(b, Sink::default()).unwrap());
    net.flow(source, sink).unwrap();
    net.start(SimTime::ZERO, source).unwrap();
    let mut world = net.build().unwrap();
    world.run_until(SimTime::ZERO + SimSpan::from_secs(4000));
    // About 10 000 cycles of 100 packets and 300 ms: 1/4 of 8 Mbit/s is 250 packets a second, with a standard deviation of 250 ·
    // sqrt(2/10 000) · 3/4 = 2.7.
    let rate = world.host::<OnOff>(source).unwrap().sent() as f64 / 4000.0;
    assert!((rate - 250.0).abs() < 13.5, "{rate} packets/s, expected 250 ± 13.5");
}

//! Queue management with senders that do not respond to congestion. What the RFCs promise then has a closed form.

use anabranch_proto::EcnCodepoint;
use anabranch_sim::traffic::{Cbr, Sink};
use anabranch_sim::{
    Arrival, Builder, DualPi2Parameters, FlowId, FqCoDelParameters, Host, HostId, Input, LinkId, LinkSpec, NodeId,
    PieParameters, QueueSpec, StepParameters, Transmit, World,
};
use anabranch_units::SimTime;

use super::standard::{millis, spec};

/// A source whose packets are ECN-capable.
struct Capable<H>(H, EcnCodepoint);

impl<H: Host> Host for Capable<H> {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        self.0.handle(now, arrival);
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.0.handle_timeout(now);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        self.0.handle_input(now, input);
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        let transmit = self.0.poll_transmit(now)?;
        Some(Transmit { ecn: Some(self.1), ..transmit })
    }

    fn poll_timeout(&self) -> SimTime {
        self.0.poll_timeout()
    }
}

/// A link of 10 Mbit/s, on which a packet of 1000 B takes 0.8 ms.
struct Bottleneck {
    net: Builder,
    ends: [NodeId; 2],
    link: LinkId,
    sinks: Vec<HostId>,
    flows: Vec<FlowId>,
}

impl Bottleneck {
    fn new(queue: QueueSpec) -> Self {
        Self::with(spec("10Mbit/s", "1ms").queue(queue))
    }

    fn with(bottleneck: LinkSpec) -> Self {
        let mut net = Builder::new(1);
        let (left, right) = (net.node("left"), net.node("right"));
        let (link, _) = net.duplex(left, right, bottleneck).unwrap();
        Self { net, ends: [left, right], link, sinks: vec![], flows: vec![] }
    }

    /// Adds a sender of packets of `size` bytes at this rate.
    fn sender(mut self, rate: &str, size: u32, ecn: Option<EcnCodepoint>) -> Self {
        let cbr = Cbr::new(rate.parse().unwrap(), size);
        let [left, right] = self.ends;
        let source = match ecn {
            Some(ecn) => self.net.host(left, Capable(cbr, ecn)),
            None => self.net.host(left, cbr),
        };
        let (source, sink) = (source.unwrap(), self.net.host(right, Sink::default()).unwrap());
        self.flows.push(self.net.flow(source, sink).unwrap());
        self.sinks.push(sink);
        self.net.start(SimTime::ZERO, source).unwrap();
        self
    }

    fn run(self, seconds: u64) -> Run {
        let Self { net, link, sinks, flows, .. } = self;
        let mut world = net.build().unwrap();
        world.run_until(millis(1000 * seconds));
        world.assert_conserved();
        Run { world, link, sinks, flows }
    }
}

/// The result of a run.
struct Run {
    world: World,
    link: LinkId,
    sinks: Vec<HostId>,
    flows: Vec<FlowId>,
}

impl Run {
    fn sink(&self, sender: usize) -> Sink {
        *self.world.host(self.sinks[sender]).unwrap()
    }

    /// Mean delay of a packet in milliseconds.
    fn delay(&self, sender: usize) -> f64 {
        let Sink { packets, delay, .. } = self.sink(sender);
        1000.0 * delay.as_secs_f64() / packets as f64
    }

    /// Shares of a sender's packets that are dropped and marked.
    fn struck(&self, sender: usize) -> [f64; 2] {
        let counts = self.world.link_flow(self.link, self.flows[sender]);
        [counts.drops, counts.marks].map(|count| count as f64 / counts.offered as f64)
    }
}

#[track_caller]
fn assert_near(got: f64, expected: f64, within: f64) {
    assert!((got - expected).abs() <= within, "{got}, not {expected} within {within}");
}

/// An integral controller leaves no permanent error. Of 10.5 Mbit/s a share of 5/105 is dropped. The others wait 15 ms, plus 1.8
/// ms of transmission and delay.
#[test]
fn pie_keeps_its_target() {
    let run = Bottleneck::new(QueueSpec::from(PieParameters::default())).sender("10.5Mbit/s", 1000, None).run(200);
    assert_near(run.struck(0)[0], 5.0 / 105.0, 0.002);
    assert_near(run.delay(0), 15.0 + 1.8, 1.5);
}

/// RFC 8290, section 5.2: two senders that offer 12 and 8 Mbit/s each get a half, less the share of the third, which offers 0.1
/// Mbit/s and waits for at most one packet of each of the others.
#[test]
fn fq_codel_isolates_flows() {
    let parameters = FqCoDelParameters::default();
    let run = Bottleneck::new(QueueSpec::from(parameters))
        .sender("12Mbit/s", 1000, None)
        .sender("8Mbit/s", 1000, None)
        .sender("0.1Mbit/s", 250, None)
        .run(100);
    let rate = |sender: usize| run.sink(sender).bytes as f64 * 8.0 / 100e6;
    for (sender, expected) in [(0, 4.95), (1, 4.95), (2, 0.1)] {
        assert_near(rate(sender), expected, 0.01 * expected);
    }
    assert_near(run.struck(2)[0], 0.0, 0.0);
    // Its own transmission and delay are 1.2 ms. A packet in transmission is half sent on average, and a new flow goes first.
    assert_near(run.delay(2), 1.2 + 0.4, 0.1);
}

/// RFC 9332, section 2.1: p_L = k p' where p_C = p'². C and L together offer 10.3 Mbit/s, and C loses so much that 10 Mbit/s are
/// left.
#[test]
fn dual_pi2_couples_its_queues() {
    let run = Bottleneck::new(QueueSpec::from(DualPi2Parameters::default()))
        .sender("9.8Mbit/s", 1000, None)
        .sender("0.5Mbit/s", 250, Some(EcnCodepoint::Ect1))
        .run(400);
    let [dropped, _] = run.struck(0);
    assert_near(dropped, 0.3 / 9.8, 0.002);
    let [lost, marked] = run.struck(1);
    assert_near(lost, 0.0, 0.0);
    assert_near(marked, 2.0 * (0.3_f64 / 9.8).sqrt(), 0.01);
    // C waits for its target. L waits for the packet in transmission and sometimes for one of C's turn, and has 1.2 ms of its
    // own.
    assert_near(run.delay(0), 15.0 + 1.8, 1.5);
    assert!(run.delay(1) < 1.2 + 1.0, "{}", run.delay(1));
}

/// The sender offers twice what the link carries. Every packet that finds 20 packets waiting is marked, and the limit of 100
/// bounds the queue.
#[test]
fn a_threshold_marks_all_that_comes_above_it() {
    let step = StepParameters { packets_max: 100, mark_packets: Some(20), ..Default::default() };
    let run = Bottleneck::new(QueueSpec::from(step)).sender("20Mbit/s", 1000, Some(EcnCodepoint::Ect0)).run(10);
    let [dropped, marked] = run.struck(0);
    assert_near(dropped, 0.5, 0.01);
    assert_near(marked, 0.5, 0.01);
    // Packets that may not be marked are dropped at the threshold: 21 wait, so the delay is 22 packet times and the link's delay.
    let run = Bottleneck::new(QueueSpec::from(step)).sender("20Mbit/s", 1000, None).run(10);
    assert_near(run.delay(0), 22.0 * 0.8 + 1.0, 0.8);
}

/// Twice the rate of a link with a queue of ten packets, marked from the fifth on: who may be marked has marks and losses, as does everybody else losses alone;
/// half of all is lost either way. Behind a link that clears the codepoint nobody is marked.
#[test]
fn cleared_codepoint_prevents_marks() {
    let queue = QueueSpec::from(StepParameters { packets_max: 10, mark_packets: Some(5), ..Default::default() });
    for clears in [false, true] {
        let run = Bottleneck::with(spec("10Mbit/s", "1ms").queue(queue.clone()).clears_ecn(clears))
            .sender("20Mbit/s", 1000, Some(EcnCodepoint::Ect0))
            .run(10);
        let [drops, marks] = run.struck(0);
        assert_near(drops, 0.5, 0.01);
        assert_near(marks, if clears { 0.0 } else { 0.5 }, 0.01);
    }
}

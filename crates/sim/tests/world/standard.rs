//! The standard worlds for measuring speed, for tests and benchmarks.

use std::collections::VecDeque;

use anabranch_sim::{
    Arrival, Body, BuildError, Builder, Host, Input, LinkId, LinkSpec, QueueSpec, Raw, Transmit, World,
};
use anabranch_units::{SimSpan, SimTime};

/// Several senders, a bottleneck, and as many receivers.
pub(crate) struct Dumbbell {
    pub(crate) world: World,
    pub(crate) bottleneck: LinkId,
}

/// The standard scenario for speed: four flows of 2200 packets over 800 Mbit/s, 100 ms.
pub(crate) fn highspeed(seed: u64) -> Dumbbell {
    try_highspeed(seed).expect("nothing is wrong with it")
}

fn try_highspeed(seed: u64) -> Result<Dumbbell, BuildError> {
    let mut net = Builder::new(seed);
    let (left, right) = (net.node("left"), net.node("right"));
    let core = spec("800Mbit/s", "48ms").queue(QueueSpec::packets(3000)).named("bottleneck");
    let (bottleneck, _) = net.duplex(left, right, core)?;
    for index in 0..4 {
        let (from, to) = (net.node(format!("s{index}")), net.node(format!("r{index}")));
        net.duplex(from, left, spec("8Gbit/s", "1ms"))?;
        net.duplex(right, to, spec("8Gbit/s", "1ms"))?;
        let source = net.host(from, Window::new(1500, 2200))?;
        let sink = net.host(to, Echo::default())?;
        net.flow(source, sink)?;
        net.start(millis(100 * index), source)?;
    }
    Ok(Dumbbell { world: net.build()?, bottleneck })
}

/// One flow over 1.5 Mbit/s, 100 ms and a queue of 25, with 22 packets: the pipe holds 19.8.
pub(crate) fn small(seed: u64) -> World {
    try_small(seed).expect("nothing is wrong with it")
}

fn try_small(seed: u64) -> Result<World, BuildError> {
    let mut net = Builder::new(seed);
    let (from, to) = (net.node("from"), net.node("to"));
    net.duplex(from, to, spec("1.5Mbit/s", "50ms").queue(QueueSpec::packets(25)))?;
    let (source, sink) = (net.host(from, Window::new(1000, 22))?, net.host(to, Echo::default())?);
    net.flow(source, sink)?;
    net.start(SimTime::ZERO, source)?;
    net.build()
}
/// Keeps a fixed number of packets unacknowledged. It does not handle losses.
pub(crate) struct Window {
    size: u32,
    left: u64,
    sent: u64,
    /// Stands for a retransmission timer: every acknowledgement moves it, and it never fires.
    deadline: SimTime,
}

impl Window {
    pub(crate) fn new(size: u32, packets: u64) -> Self {
        Self { size, left: packets, sent: 0, deadline: SimTime::NEVER }
    }
}

impl Host for Window {
    fn handle(&mut self, now: SimTime, _arrival: Arrival<'_>) {
        self.left += 1;
        self.deadline = now + SimSpan::from_secs(1);
    }

    fn handle_timeout(&mut self, _now: SimTime) {
        panic!("the timer of a window that moves does not fire");
    }

    fn handle_input(&mut self, now: SimTime, _input: Input) {
        self.deadline = now + SimSpan::from_secs(1);
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if self.left == 0 || self.deadline == SimTime::NEVER {
            return None;
        }
        self.left -= 1;
        self.sent += 1;
        Some(Transmit::new(self.size, Body::Raw(Raw { seq: self.sent - 1, sent_at: now })))
    }

    fn poll_timeout(&self) -> SimTime {
        self.deadline
    }
}

/// Acknowledges each packet at once.
#[derive(Default)]
pub(crate) struct Echo {
    answers: VecDeque<Raw>,
}

impl Host for Echo {
    fn handle(&mut self, _now: SimTime, arrival: Arrival<'_>) {
        if let Body::Raw(raw) = arrival.body {
            self.answers.push_back(*raw);
        }
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.answers.pop_front().map(|raw| Transmit::new(40, Body::Raw(raw)))
    }
}

pub(crate) fn millis(millis: u64) -> SimTime {
    SimTime::ZERO + SimSpan::from_millis(millis)
}

pub(crate) fn spec(rate: &str, delay: &str) -> LinkSpec {
    LinkSpec::new(rate.parse().expect("a rate"), delay.parse().expect("a time"))
}

//! Hosts and topologies for tests and benchmarks.

use std::collections::VecDeque;

use anabranch_sim::{
    Arrival, Body, Builder, FlowId, Host, HostId, Input, LinkId, LinkSpec, QueueSpec, Raw, Transmit, World,
};
use anabranch_units::{SimSpan, SimTime};

/// Keeps a fixed number of packets unacknowledged. Knows no loss.
pub struct Window {
    pub size: u32,
    pub left: u64,
    pub sent: u64,
    pub acked: u64,
    /// Stands for a retransmission timer: moves away with every acknowledgement and never fires.
    pub deadline: SimTime,
}

impl Window {
    pub fn new(size: u32, packets: u64) -> Self {
        Self { size, left: packets, sent: 0, acked: 0, deadline: SimTime::NEVER }
    }
}

impl Host for Window {
    fn handle(&mut self, now: SimTime, _arrival: Arrival<'_>) {
        self.acked += 1;
        self.left += 1;
        self.deadline = now + SimSpan::from_secs(1);
    }

    fn handle_timeout(&mut self, _now: SimTime) {
        panic!("the timer of a window that moves does not fire");
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start => self.deadline = now + SimSpan::from_secs(1),
            Input::Stop => self.deadline = SimTime::NEVER,
            Input::Offer(_) => {}
        }
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
pub struct Echo {
    pub received: u64,
    answers: VecDeque<Raw>,
}

impl Host for Echo {
    fn handle(&mut self, _now: SimTime, arrival: Arrival<'_>) {
        self.received += 1;
        if let Body::Raw(raw) = arrival.body {
            self.answers.push_back(*raw);
        }
    }

    fn handle_timeout(&mut self, _now: SimTime) {}

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.answers.pop_front().map(|raw| Transmit::new(40, Body::Raw(raw)))
    }

    fn poll_timeout(&self) -> SimTime {
        SimTime::NEVER
    }
}

/// Several senders, a bottleneck, as many receivers.
pub struct Dumbbell {
    pub world: World,
    pub bottleneck: LinkId,
    pub flows: Vec<(FlowId, HostId, HostId)>,
}

/// The scenario that speed is measured by: four flows of 2200 packets over 800 Mbit/s, 100 ms.
pub fn highspeed(seed: u64) -> Dumbbell {
    let mut net = Builder::new(seed);
    let (left, right) = (net.node("left"), net.node("right"));
    let core = LinkSpec::new("800Mbit/s".parse().unwrap(), SimSpan::from_millis(48)).queue(QueueSpec::Packets(3000));
    let (bottleneck, _) = net.duplex(left, right, core.named("bottleneck")).unwrap();
    let access = LinkSpec::new("8Gbit/s".parse().unwrap(), SimSpan::from_millis(1));
    let mut flows = Vec::new();
    for index in 0..4 {
        let (from, to) = (net.node(format!("s{index}")), net.node(format!("r{index}")));
        net.duplex(from, left, access.clone()).unwrap();
        net.duplex(right, to, access.clone()).unwrap();
        let source = net.host(from, Window::new(1500, 2200)).unwrap();
        let sink = net.host(to, Echo::default()).unwrap();
        let flow = net.flow(source, sink).unwrap();
        net.start(SimTime::ZERO + SimSpan::from_millis(100) * index, source).unwrap();
        flows.push((flow, source, sink));
    }
    Dumbbell { world: net.build().unwrap(), bottleneck, flows }
}

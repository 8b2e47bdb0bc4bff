//! A host on a real machine: a program around an engine, which a network card, a timer and a scheduler wake up.
//!
//! ```text
//! link ──> card (arrivals are gathered) ──> socket ──> program ──> engine
//!                                            timer ──────┘ (late, and on a grid)
//! ```
//!
//! Without it an engine is told of each packet at the instant in which it comes, and of each deadline when it is due.

use std::collections::VecDeque;

use anabranch_proto::EcnCodepoint;
use anabranch_units::{SimSpan, SimTime};

use crate::account::Account;
use crate::hold::{DelaySpec, Hold, HoldSpec, grid};
use crate::host::{Arrival, Host, Input, Transmit};
use crate::id::{Address, FlowId, LinkId, Port};
use crate::packet::{Body, Raw};
use crate::rng::Stream;

/// What wakes the program up, and what it does then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverSpec {
    /// Timers ring at multiples of this; nothing: at any time.
    pub timer: SimSpan,
    /// When the card tells of what has come; `None`: at once.
    pub arrivals: Option<HoldSpec>,
    /// How much later than it could the program runs; `None`: not at all. One draw each time that it wakes up.
    pub delay: Option<DelaySpec>,
    /// In which order it reads and sends.
    pub reads: Reads,
    /// When a packet is said to have come.
    pub stamps: Stamps,
}

/// How a program reads what has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// One packet; then it sends what there is to send, and reads the next.
    #[default]
    Each,
    /// All that has come; then it sends.
    Batch,
}

/// Which time an arrival has ([`Arrival::at`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// When the card told of it: the time stamp of a kernel.
    #[default]
    Kernel,
    /// When the program read it.
    Program,
}

impl DriverSpec {
    /// Whether it can be.
    pub(crate) fn is_valid(self) -> bool {
        self.arrivals.is_none_or(HoldSpec::is_valid)
    }

    /// Whether something in it comes by chance.
    pub fn is_random(self) -> bool {
        self.arrivals.is_some_and(HoldSpec::is_random) || self.delay.is_some_and(DelaySpec::is_random)
    }
}

/// A host with a driver around it. A world finds it under the type of the host ([`World::host`](crate::World::host)).
#[derive(Debug)]
pub struct Driven<H> {
    pub(crate) host: H,
    spec: DriverSpec,
    card: Option<Hold>,
    stream: Stream,
    /// What has come and was not read, in the order of coming.
    inbox: VecDeque<Letter>,
    /// What came when the inbox was full.
    overflows: u64,
    /// How late the program wakes up the next time.
    delay: SimSpan,
    /// Whether it is reading.
    is_awake: bool,
}

/// A packet that waits to be read.
#[derive(Debug)]
struct Letter {
    /// When the program may know of it.
    told_at: SimTime,
    port: Port,
    flow: FlowId,
    size: u32,
    link: LinkId,
    address: Address,
    ecn: Option<EcnCodepoint>,
    body: Body,
}

/// Packets that a socket holds, 64 MB of them. What would be one more is lost.
const INBOX_MAX: usize = 1 << 16;

impl<H: Host> Driven<H> {
    /// The host with a driver, and the streams of its card and of its scheduler.
    ///
    /// # Panics
    /// If arrivals are held for no time.
    pub fn new(host: H, spec: DriverSpec, [card, mut stream]: [Stream; 2]) -> Self {
        assert!(spec.is_valid(), "time passes from one batch to the next");
        let card = spec.arrivals.map(|hold| Hold::new(hold, card));
        let delay = late(spec, &mut stream);
        Self { host, spec, card, stream, inbox: VecDeque::new(), overflows: 0, delay, is_awake: false }
    }

    /// Packets that were lost because the program did not read in time.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Hands over the next packet that the program knows of; whether there was one.
    fn read(&mut self, now: SimTime) -> bool {
        let Some(letter) = self.inbox.pop_front_if(|letter| letter.told_at <= now) else { return false };
        let Letter { told_at, port, flow, size, link, address, ecn, mut body } = letter;
        let at = match self.spec.stamps {
            Stamps::Kernel => told_at,
            Stamps::Program => now,
        };
        self.host.handle(now, Arrival { at, port, flow, size, link, address, ecn, body: &mut body });
        true
    }

    /// A program looks at the clock whenever it runs.
    fn ring(&mut self, now: SimTime) {
        if self.host.poll_timeout() <= now {
            self.host.handle_timeout(now);
        }
    }
}

impl<H: Host> Host for Driven<H> {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        let told_at = self.card.as_mut().map_or(now, |card| card.release(now));
        if self.inbox.len() >= INBOX_MAX {
            self.overflows += 1;
            return;
        }
        let Arrival { port, flow, size, link, address, ecn, body, .. } = arrival;
        let body = std::mem::replace(body, Body::Raw(Raw::default()));
        self.inbox.push_back(Letter { told_at, port, flow, size, link, address, ecn, body });
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.is_awake = true;
        if self.spec.reads == Reads::Batch {
            while self.read(now) {}
        }
        self.delay = late(self.spec, &mut self.stream);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        self.host.handle_input(now, input);
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        loop {
            if let Some(transmit) = self.host.poll_transmit(now) {
                return Some(transmit);
            }
            if !self.is_awake {
                return None;
            }
            if !self.read(now) {
                self.is_awake = false;
                self.ring(now);
            }
        }
    }

    fn poll_timeout(&self) -> SimTime {
        let told_at = self.inbox.front().map_or(SimTime::NEVER, |letter| letter.told_at);
        told_at.min(grid(self.host.poll_timeout(), self.spec.timer)).saturating_add(self.delay)
    }

    fn account(&self) -> &dyn Account {
        self.host.account()
    }
}

fn late(spec: DriverSpec, stream: &mut Stream) -> SimSpan {
    spec.delay.map_or(SimSpan::ZERO, |delay| delay.draw(stream))
}

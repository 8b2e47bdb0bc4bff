//! A host on a real machine: a program around an engine, woken by a network card, a timer and a scheduler.
//!
//! ```text
//! link ──> card (arrivals are gathered) ──> socket ──> program ──> engine
//!                                            timer ──────┘ (late, and on a grid)
//! ```
//!
//! Without a driver, an engine handles each packet at its arrival and each timeout when it is due.

use std::collections::VecDeque;

use anabranch_proto::EcnCodepoint;
use anabranch_units::settings::Part;
use anabranch_units::{SimSpan, SimTime};

use crate::account::Account;
use crate::hold::{DelaySpec, Hold, HoldSpec, grid};
use crate::host::{Arrival, Host, Input, Transmit};
use crate::id::{Address, FlowId, LinkId, Port};
use crate::packet::{Body, Raw};
use crate::rng::Stream;

/// The delays of a real machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverSpec {
    /// Timers fire at multiples of this span; with zero, at any time.
    pub timer: SimSpan,
    /// How the card batches arrivals; `None`: it reports each at once.
    pub arrivals: Option<HoldSpec>,
    /// The scheduler's delay, drawn for each wake-up; `None`: there is none.
    pub delay: Option<DelaySpec>,
    /// The order of reading and sending.
    pub reads: Reads,
    /// The arrival time that packets get.
    pub stamps: Stamps,
}

/// The order of reading and sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// Reads one packet, sends everything, and reads the next.
    #[default]
    Each,
    /// Reads all packets, then sends.
    Batch,
}

/// The arrival time of a packet ([`Arrival::at`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// The time when the card reported it, as a kernel's timestamp.
    #[default]
    Kernel,
    /// The time when the program read it.
    Program,
}

impl DriverSpec {
    /// Whether it is consistent.
    pub(crate) fn is_valid(self) -> bool {
        self.arrivals.is_none_or(|hold| hold.flaw().is_none())
    }

    /// Whether it needs random numbers.
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
    /// Packets that arrived and were not read, in order.
    inbox: VecDeque<Letter>,
    /// Packets lost because the inbox was full.
    overflows: u64,
    /// The delay of the next wake-up.
    delay: SimSpan,
    /// Whether it is reading.
    is_awake: bool,
}

/// A packet in the inbox.
#[derive(Debug)]
struct Letter {
    /// The time from which the program may read it.
    told_at: SimTime,
    port: Port,
    flow: FlowId,
    size: u32,
    link: LinkId,
    address: Address,
    ecn: Option<EcnCodepoint>,
    body: Body,
}

/// The size of a socket's buffer in packets, 64 MB in total. Further packets are lost.
const INBOX_MAX: usize = 1 << 16;

impl<H: Host> Driven<H> {
    /// A host with a driver around it. The two streams are for the card and for the scheduler.
    ///
    /// # Panics
    /// If `spec.arrivals` is a hold of zero length.
    pub fn new(host: H, spec: DriverSpec, [card, mut stream]: [Stream; 2]) -> Self {
        assert!(spec.is_valid(), "time passes from one batch to the next");
        let card = spec.arrivals.map(|hold| Hold::new(hold, card));
        let delay = late(spec, &mut stream);
        Self { host, spec, card, stream, inbox: VecDeque::new(), overflows: 0, delay, is_awake: false }
    }

    /// Packets lost because the program did not read in time.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Passes the next readable packet to the host; returns whether there was one.
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

    /// A program reads the clock whenever it runs.
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

//! One direction of a link: a longest packet, error models, then a queue, a transmitter, and a delay.
//!
//! ```text
//! offer ──> mtu ──> error models ──> queue ──> transmitter ──> delay ──> hold ──> arrive
//!            │           │             │
//!            └───────────┴── Dropped ──┘
//! ```
//!
//! The delay is constant, and a hold, which only few links have, keeps the order ([`crate::hold`]). So packets arrive in the order in which they came
//! in: the link is a first-in-first-out pipe, and of
//! all the packets in it only the next arrival is an event. Where the queue decides on arrival (drop-tail, RED), the
//! departure of a packet is known when it comes in, and it goes straight into the pipe. What waits is then a matter of
//! arithmetic: the packets whose transmission starts later than now.

mod counts;
mod pipe;
mod transmitter;

use std::collections::VecDeque;

use anabranch_units::{Rate, SimSpan, SimTime};

use crate::distribution::QueueLengths;
use crate::error_model::ErrorModel;
use crate::event_queue::{Key, Order};
use crate::float_clock::{self, FloatLink, Launch};
use crate::hold::Hold;
use crate::id::NodeId;
use crate::moment::Moment;
use crate::packet::{Flight, Leg};
use crate::queue::{Admission, Backlog, CoDel, Verdict};
use counts::LegCounts;
pub use counts::{Counts, DropReason};
use pipe::{Passage, Pipe};
use transmitter::Transmitter;

/// Packets that a link may hold, waiting and in flight: 2 GB of them. What would be one more is dropped.
pub const PACKETS_PER_LINK_MAX: usize = 1 << 24;

/// What a link did since the start, and what is on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkReport {
    /// What came in and what was lost, over all flows.
    pub counts: Counts,
    /// Packets that came out at the far end.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that wait for the transmitter.
    pub waiting: u64,
    /// Packets in transmission or under way.
    pub flying: u64,
}

/// What became of a packet that was offered to a link.
pub(crate) enum Offered {
    /// It is in the pipe behind others.
    Behind,
    /// It is the next to arrive: the link's event.
    First(Key),
    /// It waits in a managed queue. If the transmitter is free, now is the time to serve.
    Stored { is_free: bool },
    /// It is lost.
    Dropped(DropReason),
}

/// What a managed link does next.
#[derive(Default)]
pub(crate) struct Served {
    /// The link's new event, if the pipe was empty.
    pub(crate) arrival: Option<Key>,
    /// When the transmitter is free again, if it sends.
    pub(crate) free: Option<Key>,
}

pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// Where the routes of the node at the far end start.
    pub(crate) row: usize,
    /// Observers of this link: empty for nearly all.
    pub(crate) observers: Vec<usize>,
    pipe: Pipe,
    transmitter: Transmitter,
    delay: SimSpan,
    queue: Queue,
    /// Bytes of the longest packet.
    mtu: u32,
    errors: Vec<ErrorModel>,
    legs: LegCounts,
    delivered_bytes: u64,
    lengths: QueueLengths,
    /// In a world with ns-2's clock.
    float: Option<Box<FloatLink>>,
    /// Where packets come out in batches.
    held: Option<Box<Held>>,
}

/// The hold at the end of a link, and when each packet in the pipe is released.
struct Held {
    hold: Hold,
    releases: VecDeque<SimTime>,
}

/// The two kinds of [`crate::queue`].
pub(crate) enum Queue {
    Admission(Admission),
    Managed(Box<CoDel>),
}

impl Held {
    /// When a packet that is there at `arrives_at` comes out.
    fn push(&mut self, arrives_at: SimTime) -> SimTime {
        let release = self.hold.release(arrives_at);
        self.releases.push_back(release);
        release
    }

    /// A packet came out: when the next one does, if there is one.
    fn next(&mut self, key: Key) -> Key {
        self.releases.pop_front();
        match self.releases.front() {
            Some(&release) => Key::new(release, key.inserted, key.order),
            None => key,
        }
    }
}

impl Link {
    pub(crate) fn new(name: String, (from, to): (NodeId, NodeId), rate: Rate, delay: SimSpan, queue: Queue) -> Self {
        Self {
            name,
            from,
            to,
            row: 0,
            observers: Vec::new(),
            pipe: Pipe::new(),
            transmitter: Transmitter::new(rate),
            delay,
            queue,
            mtu: u32::MAX,
            errors: Vec::new(),
            legs: LegCounts::default(),
            delivered_bytes: 0,
            lengths: QueueLengths::default(),
            float: None,
            held: None,
        }
    }

    /// Keeps time as ns-2 does. The queue is not managed.
    pub(crate) fn use_float_clock(&mut self) {
        self.float = Some(Box::new(FloatLink::new(self.transmitter.rate(), self.delay)));
    }

    /// Takes packets of at most so many bytes.
    pub(crate) fn limit(&mut self, mtu: u32) {
        self.mtu = mtu;
    }

    /// Lets packets out in batches. The queue is not managed.
    pub(crate) fn hold(&mut self, hold: Hold) {
        self.held = Some(Box::new(Held { hold, releases: VecDeque::new() }));
    }

    /// Whether packets come out in batches.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Puts an error model behind those that there are.
    pub(crate) fn add_error(&mut self, model: ErrorModel) {
        self.errors.push(model);
    }

    /// How many error models there are.
    pub(crate) fn errors(&self) -> usize {
        self.errors.len()
    }

    /// Whether the link has an event when its transmitter is free.
    pub(crate) fn is_managed(&self) -> bool {
        matches!(self.queue, Queue::Managed(_)) || self.float.is_some()
    }

    /// A packet comes to the entrance.
    #[inline]
    pub(crate) fn offer(&mut self, moment: &Moment, mut flight: Flight, order: &mut Order) -> Offered {
        let now = moment.now;
        let counts = self.legs.of(flight.leg());
        counts.offered += 1;
        counts.offered_bytes += u64::from(flight.size());
        if flight.size() > self.mtu {
            return Offered::Dropped(counts.lose(DropReason::TooLong));
        }
        if !self.errors.is_empty() && self.errors.iter_mut().any(|model| model.strikes(now, flight.size())) {
            return Offered::Dropped(counts.lose(DropReason::Error));
        }
        if self.pipe.len() >= PACKETS_PER_LINK_MAX {
            return Offered::Dropped(counts.lose(DropReason::Queue));
        }
        let free_at = self.transmitter.free_at();
        let admission = match &mut self.queue {
            Queue::Admission(admission) => admission,
            Queue::Managed(queue) => {
                self.lengths.advance(now, queue.len() + usize::from(self.transmitter.free_at() > self.lengths.since()));
                if !queue.enqueue(now, flight) {
                    return Offered::Dropped(counts.lose(DropReason::Queue));
                }
                return Offered::Stored { is_free: queue.len() == 1 && free_at <= now };
            }
        };
        if let Some(float) = &mut self.float {
            let (packets, bytes) = float.waiting();
            let is_busy = float.is_busy();
            let idle = (!is_busy).then(|| now.since(free_at));
            let backlog = Backlog { packets: packets as u64, bytes, idle };
            match admission.admits(flight.size(), backlog, flight.ecn().is_some()) {
                Verdict::Take => {}
                Verdict::Mark => counts.mark(&mut flight),
                Verdict::Drop => return Offered::Dropped(counts.lose(DropReason::Queue)),
            }
            self.lengths.advance(now, packets + usize::from(is_busy));
            float.store(flight);
            return Offered::Stored { is_free: !is_busy };
        }
        let horizon = now.saturating_add(self.delay);
        let departed = |passage: &Passage, present| self.lengths.advance(passage.arrives_at - self.delay, present);
        self.pipe.depart_until(horizon, moment.inserted, departed);
        let (packets, bytes, in_service) = self.pipe.present();
        let backlog = if packets == 0 {
            Backlog { packets: 0, bytes: 0, idle: Some(now.since(free_at)) }
        } else {
            Backlog { packets: packets - 1, bytes: bytes - u64::from(in_service), idle: None }
        };
        match admission.admits(flight.size(), backlog, flight.ecn().is_some()) {
            Verdict::Take => {}
            Verdict::Mark => counts.mark(&mut flight),
            Verdict::Drop => return Offered::Dropped(counts.lose(DropReason::Queue)),
        }
        self.lengths.advance(now, packets as usize);
        let start = self.transmitter.send(now, flight.size());
        match self.launch(flight, start, order) {
            Some(key) => Offered::First(key),
            None => Offered::Behind,
        }
    }

    /// The packet whose arrival was the link's event, and the link's next event.
    #[inline]
    pub(crate) fn arrive(&mut self) -> (Flight, Key) {
        let is_managed = self.is_managed();
        let flight = self.pipe.pop(|passage, present| {
            // A managed queue knows when packets leave it.
            if !is_managed {
                self.lengths.advance(passage.arrives_at - self.delay, present);
            }
        });
        self.delivered_bytes += u64::from(flight.size());
        let next = self.pipe.first().map_or(Key::NONE, |next| Key::new(next.arrives_at, next.starts_at, next.order));
        let next = match &mut self.held {
            None => next,
            Some(held) => held.next(next),
        };
        match self.float.as_mut().and_then(|float| float.arrive()) {
            Some(seconds) => (flight, next.at_seconds(seconds)),
            None => (flight, next),
        }
    }

    /// The transmitter of a managed queue is free. What the queue throws away goes to `dropped`.
    pub(crate) fn serve(&mut self, moment: &Moment, order: &mut Order, dropped: &mut Vec<Flight>) -> Served {
        let (now, free_at) = (moment.now, self.transmitter.free_at());
        if let Some(float) = &mut self.float {
            self.lengths.advance(now, float.waiting().0 + usize::from(free_at > self.lengths.since()));
            let Some(Launch { flight, free_at, arrives_at }) = float.launch(moment.seconds) else {
                return Served::default();
            };
            let is_first = self.pipe.is_empty();
            let arrival = Key::new(float_clock::ticks(arrives_at), now, order.draw()).at_seconds(arrives_at);
            self.pipe.push(Passage { arrives_at: arrival.time, starts_at: now, order: arrival.order, flight });
            let free = Key::new(float_clock::ticks(free_at), now, order.draw()).at_seconds(free_at);
            self.transmitter.occupy_until(free.time);
            return Served { arrival: is_first.then_some(arrival), free: Some(free) };
        }
        let Queue::Managed(queue) = &mut self.queue else { return Served::default() };
        self.lengths.advance(now, queue.len() + usize::from(free_at > self.lengths.since()));
        let first = dropped.len();
        let next = queue.dequeue(now, dropped);
        for flight in &dropped[first..] {
            self.legs.of(flight.leg()).drops += 1;
        }
        let Some((flight, is_marked)) = next else { return Served::default() };
        if is_marked {
            self.legs.of(flight.leg()).marks += 1;
        }
        let start = self.transmitter.send(now, flight.size());
        let arrival = self.launch(flight, start, order);
        Served { arrival, free: Some(Key::new(self.transmitter.free_at(), start, order.draw())) }
    }

    /// Puts the packet that the transmitter was given last into the pipe; returns the link's event if it has changed.
    #[inline]
    fn launch(&mut self, flight: Flight, starts_at: SimTime, order: &mut Order) -> Option<Key> {
        let order = order.draw();
        let arrives_at = self.transmitter.free_at().saturating_add(self.delay);
        let is_first = self.pipe.is_empty();
        self.pipe.push(Passage { arrives_at, starts_at, order, flight });
        let released_at = match &mut self.held {
            None => arrives_at,
            Some(held) => held.push(arrives_at),
        };
        is_first.then(|| Key::new(released_at, starts_at, order))
    }

    /// Packets that wait at `now`, which is not before the link's last event.
    pub(crate) fn waiting(&self, now: SimTime) -> u64 {
        match (&self.queue, &self.float) {
            (Queue::Managed(queue), _) => queue.len() as u64,
            (Queue::Admission(_), Some(float)) => float.waiting().0 as u64,
            (Queue::Admission(_), None) => self.pipe.present_at(now.saturating_add(self.delay)).saturating_sub(1),
        }
    }

    /// For how long its queue had each length, from the start until `now`, which is not before the link's last event.
    pub(crate) fn queue_lengths(&self, now: SimTime) -> QueueLengths {
        let mut lengths = self.lengths.clone();
        if self.is_managed() {
            let is_busy = self.transmitter.free_at() > lengths.since();
            lengths.advance(now, self.waiting(now) as usize + usize::from(is_busy));
            return lengths;
        }
        let mut pipe = self.pipe.clone();
        pipe.depart_until(now.saturating_add(self.delay), now, |passage, present| {
            lengths.advance(passage.arrives_at - self.delay, present);
        });
        lengths.advance(now, pipe.present().0 as usize);
        lengths
    }

    pub(crate) fn report(&self, now: SimTime) -> LinkReport {
        let waiting = self.waiting(now);
        // Without management what waits is in the pipe, too.
        let flying = self.pipe.len() as u64 - if self.is_managed() { 0 } else { waiting };
        let (delivered, delivered_bytes) = (self.pipe.arrived(), self.delivered_bytes);
        LinkReport { counts: self.legs.total(), delivered, delivered_bytes, waiting, flying }
    }

    pub(crate) fn leg(&self, leg: Leg) -> Counts {
        self.legs.get(leg)
    }
}

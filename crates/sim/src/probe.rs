//! Observation of a world without any effect on it.
//!
//! An [`Observer`] is called for the packets of its links; a link without observers pays one test per packet. This file has the
//! observers that count: [`Drops`], [`Throughput`]. The packet trace and the capture are other observers. Queue lengths need
//! none: a link can be queried at any time, and [`QueueArea`] gives the exact mean between two times.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use crate::id::{FlowId, LinkId};
use crate::interest::Interest;
use crate::link::DropReason;
use crate::packet::Body;

/// An observer of links.
pub trait Observer: Send + 'static {
    /// A packet was accepted, lost, or delivered. Times never decrease.
    fn on_packet(&mut self, event: &PacketEvent<'_>);

    /// A packet that the queue accepted leaves the transmitter at this time. It is known when the transmission is planned, at the latest when it begins, so
    /// `at` is in the future. Times never decrease.
    fn on_departure(&mut self, _link: LinkId, _at: SimTime) {}

    /// What it is told of; it is asked once. Most packets of most links concern only some observers.
    fn interest(&self) -> Interest {
        Interest::ALL
    }
}

/// An event of a packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// The time of the event.
    pub time: SimTime,
    /// The kind of the event.
    pub happening: Happening,
    /// The link; for a packet without a route, the link by which it arrived.
    pub link: LinkId,
    /// The packet's flow.
    pub flow: FlowId,
    /// The direction in the flow.
    pub direction: Direction,
    /// Bytes on the wire.
    pub size: u32,
    /// The content of the packet.
    pub body: &'a Body,
}

/// The kinds of events of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The queue accepted it.
    Enqueued,
    /// It was lost before the queue, or after the link.
    Dropped(DropReason),
    /// The queue accepted it and dropped it later.
    Discarded,
    /// It left at the far end.
    Received,
}

/// A direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the source to the sink.
    Forward,
    /// From the sink to the source.
    Backward,
}

/// An observer that a world tells of packets, and that whoever has added it can ask in between and afterwards. It outlives the world.
#[derive(Debug)]
pub struct Observed<T>(Arc<Mutex<T>>);

impl<T: Observer> Observed<T> {
    pub(crate) fn new(observer: T) -> Self {
        Self(Arc::new(Mutex::new(observer)))
    }

    /// What the world tells the observer by.
    pub(crate) fn told(&self) -> HeldObserver {
        HeldObserver { interest: self.borrow().interest(), observer: self.0.clone() }
    }
}

impl<T> Observed<T> {
    /// The observer. While it is borrowed its world must not run: it would wait without end.
    pub fn borrow(&self) -> MutexGuard<'_, T> {
        lock(&self.0)
    }
}

/// An observer of any type, as its world has it.
pub(crate) struct HeldObserver {
    pub(crate) interest: Interest,
    observer: Arc<Mutex<dyn Observer>>,
}

impl HeldObserver {
    pub(crate) fn tell(&self, event: &PacketEvent<'_>) {
        let concerns = match event.happening {
            Happening::Enqueued => self.interest.enqueued,
            Happening::Received => self.interest.received,
            Happening::Dropped(_) | Happening::Discarded => true,
        };
        if concerns {
            lock(&self.observer).on_packet(event);
        }
    }

    pub(crate) fn tell_departure(&self, link: LinkId, at: SimTime) {
        if self.interest.departures {
            lock(&self.observer).on_departure(link, at);
        }
    }
}

/// A panic in between ends the test or the run that it is in; what was recorded until then can still be read.
fn lock<T: ?Sized>(observer: &Mutex<T>) -> MutexGuard<'_, T> {
    observer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A probe that records losses.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    /// The first [`Drops::RECORDS_MAX`] losses.
    pub records: Vec<DropRecord>,
    /// The number of losses.
    pub count: u64,
}

/// A record of one loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// When it was lost.
    pub time: SimTime,
    /// The link that lost it.
    pub link: LinkId,
    /// The packet's flow.
    pub flow: FlowId,
    /// The packet's sequence number.
    pub seq: i64,
    /// Why it was lost.
    pub reason: DropReason,
}

impl Drops {
    /// The limit of records; further losses are counted.
    pub const RECORDS_MAX: usize = 1 << 20;
}

impl Observer for Drops {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let &PacketEvent { time, happening, link, flow, body, .. } = event;
        let reason = match happening {
            Happening::Dropped(reason) => reason,
            Happening::Discarded => DropReason::Queue,
            Happening::Enqueued | Happening::Received => return,
        };
        self.count += 1;
        if self.records.len() < Self::RECORDS_MAX {
            self.records.push(DropRecord { time, link, flow, seq: body.seq(), reason });
        }
    }
}

/// Counts delivered bytes in bins of equal length.
#[derive(Clone, Debug)]
pub struct Throughput {
    start: SimTime,
    bin: SimSpan,
    flow: Option<FlowId>,
    bytes: Vec<u64>,
}

impl Throughput {
    /// The limit of bins; later bytes are not counted.
    pub const BINS_MAX: usize = 1 << 24;

    /// Bins of length `bin`, which must not be zero, from `start` on. They count one flow, or all flows.
    pub fn new(start: SimTime, bin: SimSpan, flow: Option<FlowId>) -> Self {
        assert!(!bin.is_zero(), "a bin has a length");
        Self { start, bin, flow, bytes: Vec::new() }
    }

    /// Bytes in each bin, up to the last bin that is not empty.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// The rate in each bin.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.bytes.iter().map(|&bytes| Rate::average(Bytes::new(bytes), self.bin))
    }
}

impl Observer for Throughput {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let is_ours = self.flow.is_none_or(|flow| flow == event.flow);
        if event.happening != Happening::Received || event.time < self.start || !is_ours {
            return;
        }
        let bin = (event.time.since(self.start).ticks() / self.bin.ticks()) as usize;
        if bin < Self::BINS_MAX {
            if bin >= self.bytes.len() {
                self.bytes.resize(bin + 1, 0);
            }
            self.bytes[bin] += u64::from(event.size);
        }
    }
}

/// The integral of a queue's length up to a time. The difference of two gives the exact mean length between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueArea {
    pub(crate) time: SimTime,
    /// Packets times picoseconds.
    pub(crate) area: u128,
}

impl QueueArea {
    /// The area at time zero.
    pub const START: Self = Self { time: SimTime::ZERO, area: 0 };

    /// The mean number of waiting packets since `earlier`; zero if no time passed.
    pub fn mean_since(self, earlier: Self) -> f64 {
        let span = self.time.since(earlier.time).ticks();
        if span == 0 { 0.0 } else { (self.area - earlier.area) as f64 / span as f64 }
    }
}

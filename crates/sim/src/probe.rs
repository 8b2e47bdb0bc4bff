//! Looking at a world without touching it.
//!
//! An [`Observer`] is told what happens to the packets of the links that it was put on; a link without observers pays one test
//! for them. Here are the observers that count: [`Drops`], [`Throughput`]. The packet trace and the capture are others.
//! Queue lengths need no observer: a link can be asked at any time, and [`QueueArea`] gives the exact mean between two times.

use std::any::Any;
use std::marker::PhantomData;

use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use crate::id::{FlowId, LinkId};
use crate::link::DropReason;
use crate::packet::Body;

/// Something that is told what happens on links.
pub trait Observer: Any + Send {
    /// A packet came in, was lost, or came out. Times never go back.
    fn on_packet(&mut self, event: &PacketEvent<'_>);
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// When.
    pub time: SimTime,
    /// What.
    pub happening: Happening,
    /// Where: for a packet without a way on, the link by which it came.
    pub link: LinkId,
    /// Whose.
    pub flow: FlowId,
    /// Which of the flow's two directions.
    pub direction: Direction,
    /// Bytes on the wire.
    pub size: u32,
    /// What it says.
    pub body: &'a Body,
}

/// What may happen to a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The queue took it.
    Enqueued,
    /// It was lost before it was in the queue, or behind the link.
    Dropped(DropReason),
    /// The queue had taken it and threw it away later.
    Discarded,
    /// It came out at the far end.
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

/// An observer in a world, by its type.
#[derive(Debug)]
pub struct ObserverId<T> {
    pub(crate) index: usize,
    pub(crate) kind: PhantomData<fn() -> T>,
}

impl<T> Clone for ObserverId<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ObserverId<T> {}

/// Remembers the losses.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    /// The first [`Drops::RECORDS_MAX`] of them.
    pub records: Vec<DropRecord>,
    /// How many there were.
    pub count: u64,
}

/// One loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// When.
    pub time: SimTime,
    /// Where.
    pub link: LinkId,
    /// Whose.
    pub flow: FlowId,
    /// The packet's sequence number.
    pub seq: i64,
    /// Why.
    pub reason: DropReason,
}

impl Drops {
    /// Losses that are kept; further ones are counted.
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

/// Adds up in bins of equal length what comes out of links.
#[derive(Clone, Debug)]
pub struct Throughput {
    start: SimTime,
    bin: SimSpan,
    flow: Option<FlowId>,
    bytes: Vec<u64>,
}

impl Throughput {
    /// Bins that are kept; what comes later is not counted.
    pub const BINS_MAX: usize = 1 << 24;

    /// Bins of length `bin`, which is not zero, from `start` on: of one flow, or of all.
    pub fn new(start: SimTime, bin: SimSpan, flow: Option<FlowId>) -> Self {
        assert!(!bin.is_zero(), "a bin has a length");
        Self { start, bin, flow, bytes: Vec::new() }
    }

    /// Bytes in each bin up to the last in which something came.
    pub fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// The same as rates.
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

/// How much waiting a queue has seen until a time. Two of them give the mean length between their times, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueArea {
    pub(crate) time: SimTime,
    /// Packets times picoseconds.
    pub(crate) area: u128,
}

impl QueueArea {
    /// The area at the beginning.
    pub const START: Self = Self { time: SimTime::ZERO, area: 0 };

    /// Packets that waited on average since `earlier`; zero if no time passed.
    pub fn mean_since(self, earlier: Self) -> f64 {
        let span = self.time.since(earlier.time).ticks();
        if span == 0 { 0.0 } else { (self.area - earlier.area) as f64 / span as f64 }
    }
}

/// A queue's length, read at equal intervals.
#[derive(Clone, Debug)]
pub struct QueueSamples {
    pub(crate) link: LinkId,
    pub(crate) every: SimSpan,
    pub(crate) start: SimTime,
    pub(crate) lengths: Vec<u32>,
}

impl QueueSamples {
    /// Samples that are kept; then sampling ends.
    pub const SAMPLES_MAX: usize = 1 << 24;

    /// Packets that waited at each sample, with the time.
    pub fn iter(&self) -> impl Iterator<Item = (SimTime, u32)> {
        (0..).map(|index| self.start + self.every * index).zip(self.lengths.iter().copied())
    }
}

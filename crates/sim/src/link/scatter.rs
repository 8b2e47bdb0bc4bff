//! Reordering and duplication at the far end of a link: some packets are delayed further, some are delivered twice.
//!
//! The pipe of the link has the shortest delay. Packets with a longer delay wait here, and packets with a shorter one overtake
//! them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_units::{SimSpan, SimTime};

use super::PACKETS_PER_LINK_MAX;
use super::schedule::{Schedule, Steps};
use crate::event_queue::{Key, Order};
use crate::hold::DelaySpec;
use crate::packet::Flight;
use crate::rng::Stream;

/// A random share of packets with additional delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderSpec {
    /// The share of these packets.
    pub share: f64,
    /// The additional delay.
    pub extra: DelaySpec,
}

/// Reordering and duplication of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScatterSpec {
    /// The delay in steps; it replaces the link's own delay from the first step on. A packet takes the delay that is valid when
    /// it leaves the transmitter.
    pub delays: Option<Steps<SimSpan>>,
    /// Packets with additional delay.
    pub reorder: Option<ReorderSpec>,
    /// The share of packets delivered twice, the copy directly after the original.
    pub duplicates: f64,
}

impl ScatterSpec {
    /// Whether it has no effect.
    pub fn is_nothing(&self) -> bool {
        self.delays.is_none() && self.reorder.is_none() && self.duplicates <= 0.0
    }

    /// Whether steps are in order and shares lie in `[0, 1]`.
    pub fn is_valid(&self) -> bool {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        self.delays.as_ref().is_none_or(Steps::is_valid)
            && self.reorder.is_none_or(|reorder| is_share(reorder.share))
            && is_share(self.duplicates)
    }

    /// The shortest delay that a packet can have on a link whose own is `delay`.
    pub(crate) fn delay_min(&self, delay: SimSpan) -> SimSpan {
        let steps = self.delays.iter().flat_map(|steps| steps.steps.iter().map(|&(_, delay)| delay));
        steps.fold(delay, SimSpan::min)
    }
}

/// The state of a far end that reorders or duplicates.
#[derive(Debug)]
pub(crate) struct Scatter {
    /// The delay above the shortest one.
    above: Option<Schedule<SimSpan>>,
    reorder: Option<(ReorderSpec, Stream)>,
    duplicates: Option<(f64, Stream)>,
    late: BinaryHeap<Reverse<Late>>,
    /// Copies made so far.
    copies: u64,
}

/// A delayed packet.
#[derive(Debug)]
struct Late {
    key: Key,
    flight: Flight,
}

/// The fate of a packet that leaves the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The additional delay.
    pub(crate) extra: SimSpan,
    /// Whether it is delivered twice.
    pub(crate) is_twofold: bool,
}

impl Fate {
    /// No additional delay and no copy.
    pub(crate) const PLAIN: Self = Self { extra: SimSpan::ZERO, is_twofold: false };
}

impl Scatter {
    /// `spec` must be valid; `delay` is the link's own.
    pub(crate) fn new(spec: ScatterSpec, delay: SimSpan, reorder: Stream, duplicates: Stream) -> Self {
        let least = spec.delay_min(delay);
        let above = spec.delays.map(|Steps { steps, period }| {
            let steps = steps.into_iter().map(|(at, delay)| (at, delay - least)).collect();
            Schedule::new(delay - least, Steps { steps, period })
        });
        Self {
            above,
            reorder: spec.reorder.map(|spec| (spec, reorder)),
            duplicates: (spec.duplicates > 0.0).then_some((spec.duplicates, duplicates)),
            late: BinaryHeap::new(),
            copies: 0,
        }
    }

    /// The fate of the packet that left the transmitter at `departed_at`.
    pub(crate) fn fate(&mut self, departed_at: SimTime) -> Fate {
        let above = self.above.as_ref().map_or(SimSpan::ZERO, |above| above.at(departed_at).0);
        let chance = self.reorder.as_mut().map_or(SimSpan::ZERO, |(spec, stream)| {
            if stream.happens(spec.share) { spec.extra.draw(stream) } else { SimSpan::ZERO }
        });
        let is_twofold = self.duplicates.as_mut().is_some_and(|(share, stream)| stream.happens(*share));
        if self.late.len() + 2 > PACKETS_PER_LINK_MAX {
            return Fate::PLAIN;
        }
        self.copies += u64::from(is_twofold);
        Fate { extra: above.saturating_add(chance), is_twofold }
    }

    /// Stores a packet until its time.
    pub(crate) fn wait(&mut self, now: SimTime, extra: SimSpan, flight: Flight, order: &mut Order) {
        let key = Key::new(now.saturating_add(extra), now, order.draw());
        self.late.push(Reverse(Late { key, flight }));
    }

    /// The time of the next waiting packet.
    pub(crate) fn next(&self) -> Key {
        self.late.peek().map_or(Key::NONE, |Reverse(late)| late.key)
    }

    /// Removes the next waiting packet.
    pub(crate) fn pop(&mut self) -> Option<Flight> {
        self.late.pop().map(|Reverse(late)| late.flight)
    }

    /// The number of waiting packets.
    pub(crate) fn len(&self) -> usize {
        self.late.len()
    }

    /// Copies made so far.
    pub(crate) fn copies(&self) -> u64 {
        self.copies
    }
}

// Keys are unique, so comparing them is comparing packets.
impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

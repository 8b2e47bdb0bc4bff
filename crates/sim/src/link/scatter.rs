//! What happens to packets at the end of a link that does not keep their order: some take longer than others, some come twice.
//!
//! The link's pipe ends where the shortest way would; what takes longer waits here. Who took a shorter way overtakes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_units::{SimSpan, SimTime};

use super::PACKETS_PER_LINK_MAX;
use super::schedule::{Schedule, Steps};
use crate::event_queue::{Key, Order};
use crate::hold::DelaySpec;
use crate::packet::Flight;
use crate::rng::Stream;

/// Packets that take longer than the others, by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderSpec {
    /// Which share of all.
    pub share: f64,
    /// By how much.
    pub extra: DelaySpec,
}

/// How a link scatters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScatterSpec {
    /// Its delay in steps, in place of its own from the first one on. A packet takes the delay of the time at which it has left the transmitter.
    pub delays: Option<Steps<SimSpan>>,
    /// Packets that take longer.
    pub reorder: Option<ReorderSpec>,
    /// The share of packets that come twice, one right after the other.
    pub duplicates: f64,
}

impl ScatterSpec {
    /// Whether it changes nothing.
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

/// The end of such a link.
#[derive(Debug)]
pub(crate) struct Scatter {
    /// What a packet takes above the shortest delay.
    above: Option<Schedule<SimSpan>>,
    reorder: Option<(ReorderSpec, Stream)>,
    duplicates: Option<(f64, Stream)>,
    late: BinaryHeap<Reverse<Late>>,
    /// Copies made so far.
    copies: u64,
}

/// A packet that takes longer.
#[derive(Debug)]
struct Late {
    key: Key,
    flight: Flight,
}

/// What a packet that comes out of the pipe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// It takes so much longer.
    pub(crate) extra: SimSpan,
    /// It comes twice.
    pub(crate) is_twofold: bool,
}

impl Fate {
    /// Nothing happens to it.
    pub(crate) const PLAIN: Self = Self { extra: SimSpan::ZERO, is_twofold: false };
}

impl Scatter {
    /// The specification is valid; `delay` is the link's own.
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

    /// What becomes of the packet that had left the transmitter at `departed_at`.
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

    /// A packet waits for its time.
    pub(crate) fn wait(&mut self, now: SimTime, extra: SimSpan, flight: Flight, order: &mut Order) {
        let key = Key::new(now.saturating_add(extra), now, order.draw());
        self.late.push(Reverse(Late { key, flight }));
    }

    /// When the next of those that wait comes out.
    pub(crate) fn next(&self) -> Key {
        self.late.peek().map_or(Key::NONE, |Reverse(late)| late.key)
    }

    /// The next of those that wait.
    pub(crate) fn pop(&mut self) -> Option<Flight> {
        self.late.pop().map(|Reverse(late)| late.flight)
    }

    /// Packets that wait.
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

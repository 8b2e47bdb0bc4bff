//! Drop-head: first in, first out; a packet that finds the queue full takes the place of the oldest one.
//!
//! ```text
//!   on arrival    if `packets` wait: drop the oldest; accept
//! ```
//!
//! A sender learns of a loss earlier than from drop-tail, by the time that the queue takes to drain.
//!
//! Differs from the paper in: there is none.

use std::collections::VecDeque;

use anabranch_units::SimTime;
use anabranch_units::settings::Fields;

use super::{Discipline, Managed, Queue, Site, Verdict};
use crate::packet::Flight;

/// The parameters of drop-head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropHeadParameters {
    /// The limit of waiting packets.
    pub packets_max: u32,
}

impl Default for DropHeadParameters {
    fn default() -> Self {
        Self { packets_max: 50 }
    }
}

impl Discipline for DropHeadParameters {
    const WORD: &'static str = "drop_head";
    const HELP: &'static str = "First in, first out; a packet that finds the queue full takes the place of the oldest.";
    const DECIDES_AT_HEAD: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.size(1).packets("packets", &mut self.packets_max, "The limit of waiting packets");
    }

    fn build(&self, _: &Site<'_>) -> Queue {
        let packets_max = self.packets_max as usize;
        Queue::Managed(Box::new(DropHead { packets_max, waiting: VecDeque::new(), dropped: None }))
    }
}

/// The waiting packets.
#[derive(Debug)]
struct DropHead {
    packets_max: usize,
    waiting: VecDeque<Flight>,
    /// The packet that made room for the last arrival.
    dropped: Option<Flight>,
}

impl Managed for DropHead {
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn enqueue(&mut self, _now: SimTime, flight: Flight) -> Verdict {
        self.dropped = if self.waiting.len() < self.packets_max { None } else { self.waiting.pop_front() };
        self.waiting.push_back(flight);
        Verdict::Take
    }

    fn overflow(&mut self, dropped: &mut Vec<Flight>) {
        dropped.extend(self.dropped.take());
    }

    fn dequeue(&mut self, _now: SimTime, _dropped: &mut Vec<Flight>) -> Option<(Flight, bool)> {
        self.waiting.pop_front().map(|flight| (flight, false))
    }
}

//! A path: its virtual send buffer, and FAST's agent on top of it.
//!
//! The agent numbers the packets of its path from 0, without gaps, and so sees a connection of its own. The virtual send buffer
//! maps each of these numbers to the packet's number in the common sequence space.

use std::collections::VecDeque;

use anabranch_units::SimTime;

use crate::packet::{Packet, SackBlocks};
use crate::ranges::Ranges;
use crate::sender::Sender as Agent;

#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The FAST agent, with its four components.
    pub(super) agent: Agent,
    /// The agent's packets from `first` on, each with its number in the common sequence space. The numbers rise, except for
    /// packets that another path sent before.
    buffer: VecDeque<Entry>,
    first: i32,
    /// The number of entries that another path sent before.
    adopted: usize,
    /// Highest of the agent's packets up to which the receiver has all, according to SACKs over this path.
    acked: i32,
    /// The packets that the receiver has according to SACKs over this path, in the common sequence space: all up to `told`, and
    /// those in `above`.
    told: i32,
    above: Ranges,
    /// When the last SACK arrived over this path, or when a packet was sent while nothing was in flight.
    pub(super) silent_since: SimTime,
    /// Highest of the agent's packets that were given to the other paths.
    disowned: i32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: i32,
    is_adopted: bool,
}

/// Where a number of the common sequence space comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is the next new number.
    New(i32),
    /// Another path, which is silent, sent it before.
    Adopted(i32),
}

impl Path {
    pub(super) fn new(agent: Agent) -> Self {
        Self {
            agent,
            buffer: VecDeque::new(),
            first: 0,
            adopted: 0,
            acked: -1,
            told: -1,
            above: Ranges::default(),
            silent_since: SimTime::ZERO,
            disowned: -1,
        }
    }

    /// Whether the agent has not sent its packet `seq` before.
    pub(super) fn is_new(&self, seq: i32) -> bool {
        seq == self.end()
    }

    /// The agent sends a new packet: records the packet's origin.
    pub(super) fn append(&mut self, origin: Origin) {
        let (number, is_adopted) = match origin {
            Origin::New(number) => (number, false),
            Origin::Adopted(number) => (number, true),
        };
        self.adopted += usize::from(is_adopted);
        self.buffer.push_back(Entry { number, is_adopted });
    }

    /// The number of the agent's packet `seq` in the common sequence space.
    pub(super) fn number(&self, seq: i32) -> i32 {
        let entry = usize::try_from(seq - self.first).ok().and_then(|index| self.buffer.get(index));
        entry.expect("a packet is remembered as long as the agent may send it").number
    }

    /// Packets of this path that occupy the receiver's buffer. The receiver has delivered everything up to `acked`.
    pub(super) fn occupied(&self, acked: i32) -> i32 {
        if self.adopted > 0 {
            return self.buffer.iter().filter(|entry| entry.number > acked).count() as i32;
        }
        (self.buffer.len() - self.buffer.partition_point(|entry| entry.number <= acked)) as i32
    }

    /// Translates a SACK received over this path into the agent's numbers.
    ///
    /// SACKs over other paths do not count, even if they cover packets of this path. The other paths may be faster, and a packet
    /// would seem to be acknowledged before its own SACK arrives.
    ///
    // [multihoming-2010] Fig. 9 (a), step 2, and (b), steps 2 and 3: of all that the SACK reports, only the packets sent over
    // this path.
    pub(super) fn translate(&mut self, sack: &Packet) -> Packet {
        self.told = self.told.max(sack.seq);
        let news = sack.sack.as_slice().iter().filter(|block| block.1 > self.told + 1);
        news.for_each(|&(left, right)| self.above.insert(left.max(self.told + 1), right));
        self.above.remove_below(self.told + 1);
        while let Some(entry) = self.buffer.get((self.acked + 1 - self.first) as usize)
            && (entry.number <= self.told || self.above.contains(entry.number))
        {
            self.acked += 1;
        }
        let mut blocks = SackBlocks::default();
        for &(left, right) in sack.sack.as_slice() {
            if self.adopted > 0 {
                self.push_runs(&mut blocks, left, right);
                continue;
            }
            let place = |number| self.first + self.buffer.partition_point(|entry| entry.number < number) as i32;
            let (left, right) = (place(left).max(self.acked + 1), place(right));
            if left < right {
                blocks.push(left, right);
            }
        }
        Packet { seq: self.acked, sack: blocks, ..*sack }
    }

    /// Translates one block, whose packets need not be consecutive on this path.
    fn push_runs(&self, blocks: &mut SackBlocks, left: i32, right: i32) {
        let is_inside = |seq: i32| (left..right).contains(&self.number(seq));
        let mut seq = self.acked + 1;
        while seq < self.end() {
            let start = seq;
            while seq < self.end() && is_inside(seq) {
                seq += 1;
            }
            if start < seq {
                blocks.push(start, seq);
            }
            seq += 1;
        }
    }

    /// Drops entries that neither the agent nor [`Path::occupied`] needs any more.
    pub(super) fn forget(&mut self, acked: i32) {
        // In recovery, the agent may go back to the packet at its last ACK, by the off-by-one error described in `fast`.
        let needed = self.agent.core.last_ack.min(self.agent.core.highest_ack);
        while self.first < needed
            && let Some(entry) = self.buffer.front().filter(|entry| entry.number <= acked)
        {
            self.adopted -= usize::from(entry.is_adopted);
            self.buffer.pop_front();
            self.first += 1;
        }
    }

    /// The numbers of the packets in flight on this path that were not given away before. Other paths are to send them.
    pub(super) fn disown(&mut self) -> impl Iterator<Item = i32> {
        let from = (self.disowned.max(self.agent.core.highest_ack) + 1 - self.first).max(0);
        self.disowned = self.end() - 1;
        self.buffer.iter().skip(from as usize).map(|entry| entry.number)
    }

    /// First of the agent's packets that was not sent yet.
    fn end(&self) -> i32 {
        self.first + self.buffer.len() as i32
    }
}

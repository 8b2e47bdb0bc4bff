//! Flow queueing with controlled delay (RFC 8290): a queue for each flow, deficit round robin among them, and CoDel in each.
//!
//! ```text
//!   a packet arrives  goes to the queue of its flow's hash; a queue that was empty joins the end of *new* with a deficit of one quantum
//!   too many wait    the queue with the most bytes loses its oldest packets: half of them, at most `batch`
//!   a packet leaves  from the first queue of *new*, else of *old*:
//!                      deficit ≤ 0 ── one quantum more, to the end of *old*, and try again
//!                      no packet (left by CoDel) ── from *new*: to the end of *old*; from *old*: removed; and try again
//!                      a packet ── the deficit falls by its bytes
//! ```
//!
//! So a flow that sends less than its share is always new, and waits for at most one quantum of each other new flow (RFC 8290,
//! section 5.2).
//!
//! Differs from the RFC in: a flow is one direction of a flow of the scenario, because there are no addresses and ports to hash.
//! CoDel does not drop from a queue with at most `bytes_min` bytes; the limit applies to each queue.

use std::collections::VecDeque;

use anabranch_units::SimTime;
use anabranch_units::settings::{Fields, Flaw};

use super::codel::{CoDel, CoDelParameters};
use super::{Discipline, Managed, Queue, Site, Verdict, acts_again};
use crate::packet::{Flight, Leg};
use crate::rng::Stream;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelParameters {
    /// The parameters of CoDel in each queue; `packets_max` is the limit of all queues together: 10240 (section 5.2.3 of the RFC).
    pub codel: CoDelParameters,
    /// The number of queues into which flows are hashed: 1024 (section 5.2.4).
    pub queues: u32,
    /// The bytes that a queue may send per turn: an Ethernet frame (section 5.2.5).
    pub quantum: u32,
    /// The largest number of packets dropped at once on overflow: 64 (section 5.1 of the RFC).
    pub batch: u32,
}

impl Default for FqCoDelParameters {
    fn default() -> Self {
        let codel = CoDelParameters { packets_max: 10_240, ecn: true, ..CoDelParameters::default() };
        Self { codel, queues: 1024, quantum: 1514, batch: 64 }
    }
}

impl Discipline for FqCoDelParameters {
    const WORD: &'static str = "fq_codel";
    const HELP: &'static str = "A queue for each flow, served in turn, and controlled delay in each (RFC 8290).";
    const DECIDES_AT_HEAD: bool = true;
    const IS_RANDOM: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let codel = &mut self.codel;
        fields.size(1).packets(
            "packets",
            &mut codel.packets_max,
            "The limit of waiting packets in all queues together",
        );
        fields.size(0).time("target", &mut codel.target, "The acceptable standing delay");
        fields.time("interval", &mut codel.interval, "About the longest round trip");
        fields.bytes("quantum", &mut self.quantum, "The bytes that a flow sends in its turn");
        let help = "The number of queues that flows are hashed into, up to 65536";
        fields.packets("queues", &mut self.queues, help);
        fields.switch("ecn", &mut codel.ecn, "Whether ECN-capable packets are marked instead of dropped");
    }

    fn check(&self) -> Result<(), Flaw> {
        acts_again(Self::WORD, "interval", self.codel.interval)?;
        if self.quantum == 0 || self.batch == 0 {
            let remedy = "use about one packet, such as \"1514B\"";
            return Err(Flaw::new("quantum", "a turn of so many bytes is none", remedy));
        }
        if self.queues > QUEUES_MAX {
            let message = format!("no link has {} queues", self.queues);
            return Err(Flaw::new("queues", message, format!("use at most {QUEUES_MAX}")));
        }
        Ok(())
    }

    fn build(&self, site: &Site<'_>) -> Queue {
        Queue::Managed(Box::new(FqCoDel::new(*self, (site.stream)(Self::WORD))))
    }
}

/// The limit of [`FqCoDelParameters::queues`].
const QUEUES_MAX: u32 = 1 << 16;

/// All queues and their schedule.
#[derive(Debug)]
pub(crate) struct FqCoDel {
    parameters: FqCoDelParameters,
    /// A perturbation of the hash, different for each link and each seed.
    perturbation: u64,
    /// The queues, indexed by hash.
    queues: Vec<FlowQueue>,
    /// The lists of queues: new ones, and old ones that have had a turn.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
}

#[derive(Debug)]
struct FlowQueue {
    codel: CoDel,
    /// The bytes that it may still send in its turn; negative after a packet longer than the deficit.
    deficit: i64,
    /// Whether it is on one of the two lists.
    is_listed: bool,
}

impl FqCoDel {
    pub(crate) fn new(parameters: FqCoDelParameters, mut stream: Stream) -> Self {
        let FqCoDelParameters { codel, queues, .. } = parameters;
        // A single queue has no limit; there is one limit for all queues together.
        let codel = CoDelParameters { packets_max: u32::MAX, ..codel };
        let queue = || FlowQueue { codel: CoDel::new(codel), deficit: 0, is_listed: false };
        let perturbation = (stream.uniform() * (1_u64 << 53) as f64) as u64;
        let queues = (0..queues).map(|_| queue()).collect();
        Self { parameters, perturbation, queues, new: VecDeque::new(), old: VecDeque::new(), packets: 0 }
    }

    /// The queue of a flow in one direction: SplitMix64's mixing, then a multiplication instead of a division.
    fn queue_of(&self, leg: Leg) -> u32 {
        let mut hash = (u64::from(leg) ^ self.perturbation).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (((hash >> 32) * u64::from(self.parameters.queues)) >> 32) as u32
    }
}

impl Managed for FqCoDel {
    fn len(&self) -> usize {
        self.packets
    }

    fn enqueue(&mut self, now: SimTime, flight: Flight) -> Verdict {
        let index = self.queue_of(flight.leg());
        let queue = &mut self.queues[index as usize];
        queue.codel.enqueue(now, flight);
        self.packets += 1;
        if !queue.is_listed {
            (queue.is_listed, queue.deficit) = (true, self.parameters.quantum.into());
            self.new.push_back(index);
        }
        Verdict::Take
    }

    fn overflow(&mut self, dropped: &mut Vec<Flight>) {
        if self.packets <= self.parameters.codel.packets_max as usize {
            return;
        }
        // The first queue with the most bytes. Only queues with packets are on a list.
        let listed = self.new.iter().chain(&self.old).copied();
        let fattest = listed.min_by_key(|&index| (u64::MAX - self.queues[index as usize].codel.bytes(), index));
        let codel = &mut self.queues[fattest.expect("packets are in listed queues") as usize].codel;
        let count = codel.len().div_ceil(2).min(self.parameters.batch as usize);
        dropped.extend((0..count).filter_map(|_| codel.throw_away()));
        self.packets -= count;
    }

    fn dequeue(&mut self, now: SimTime, dropped: &mut Vec<Flight>) -> Option<(Flight, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.parameters.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = queue.codel.len();
            let next = queue.codel.dequeue(now, dropped);
            self.packets -= before - queue.codel.len();
            if let Some((flight, is_marked)) = next {
                queue.deficit -= i64::from(flight.size());
                return Some((flight, is_marked));
            }
            list.pop_front();
            if is_new {
                self.old.push_back(index);
            } else {
                queue.is_listed = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Address;
    use crate::rng::Substreams;

    fn queue(parameters: FqCoDelParameters) -> FqCoDel {
        FqCoDel::new(parameters, Substreams::new(1).stream("test"))
    }

    fn enqueue(queue: &mut FqCoDel, leg: Leg, sizes: &[u32]) {
        for &size in sizes {
            queue.enqueue(SimTime::ZERO, Flight::new(0, size, leg, Address(0)));
        }
    }

    /// Legs of the next `count` packets that leave.
    fn drain(queue: &mut FqCoDel, count: usize) -> Vec<Leg> {
        (0..count)
            .map_while(|_| queue.dequeue(SimTime::ZERO, &mut Vec::new()))
            .map(|(flight, _)| flight.leg())
            .collect()
    }

    /// With a quantum of 1500 B, flow 0 sends 1500 B and flow 2 three packets of 500 B, in turn. Flow 4 arrives later and is new:
    /// it goes first.
    #[test]
    fn flows_have_turns_of_a_quantum_and_a_new_flow_goes_first() {
        let mut queue = queue(FqCoDelParameters { quantum: 1500, ..FqCoDelParameters::default() });
        enqueue(&mut queue, 0, &[1500; 4]);
        enqueue(&mut queue, 2, &[500; 9]);
        assert_eq!(drain(&mut queue, 6), [0, 2, 2, 2, 0, 2]);
        enqueue(&mut queue, 4, &[100]);
        assert_eq!(drain(&mut queue, 20), [4, 2, 2, 0, 2, 2, 2, 0]);
        assert_eq!(queue.len(), 0);
    }

    /// A packet of 3000 B takes two quanta, so the flow misses its next turn.
    #[test]
    fn flow_pays_back_deficit_of_long_packet() {
        let mut queue = queue(FqCoDelParameters { quantum: 1500, ..FqCoDelParameters::default() });
        enqueue(&mut queue, 0, &[3000; 2]);
        enqueue(&mut queue, 2, &[1500; 4]);
        assert_eq!(drain(&mut queue, 6), [0, 2, 2, 0, 2, 2]);
    }

    /// Section 4.2 of the RFC: a new queue that becomes empty joins the old ones, so that it is not new again at once.
    #[test]
    fn a_flow_is_not_new_twice_in_a_row() {
        let mut queue = queue(FqCoDelParameters { quantum: 1500, ..FqCoDelParameters::default() });
        enqueue(&mut queue, 0, &[1500; 3]);
        assert_eq!(drain(&mut queue, 1), [0]);
        enqueue(&mut queue, 2, &[1500]);
        assert_eq!(drain(&mut queue, 2), [2, 0]);
        // It was found empty when its turn came, so only now it is new again.
        enqueue(&mut queue, 2, &[1500]);
        assert_eq!(drain(&mut queue, 2), [2, 0]);
    }

    /// Eleven packets arrive where ten may wait: the flow with the most bytes loses half of its packets, from the head.
    #[test]
    fn too_many_packets_are_the_loss_of_the_fattest_flow() {
        let codel = CoDelParameters { packets_max: 10, ..CoDelParameters::default() };
        for (batch, expected) in [(64, 3), (2, 2)] {
            let mut queue = queue(FqCoDelParameters { codel, batch, ..FqCoDelParameters::default() });
            enqueue(&mut queue, 0, &[100; 5]);
            enqueue(&mut queue, 2, &[200, 201, 202, 203, 204, 205]);
            let mut dropped = Vec::new();
            queue.overflow(&mut dropped);
            let sizes: Vec<_> = dropped.iter().map(|flight| flight.size()).collect();
            assert_eq!(sizes, [200, 201, 202][..expected]);
            assert_eq!(queue.len(), 11 - expected);
            queue.overflow(&mut dropped);
            assert_eq!(dropped.len(), expected, "there is room again");
        }
    }

    /// 2048 flows in 1024 queues leave a queue empty with probability e^-2: 138.6 queues, with a standard deviation below 11.
    #[test]
    fn flows_spread_over_the_queues() {
        let queue = queue(FqCoDelParameters::default());
        let used: std::collections::BTreeSet<_> = (0..2048).map(|flow| queue.queue_of(2 * flow)).collect();
        assert!((830..=940).contains(&used.len()), "{}", used.len());
        assert!(used.last().is_some_and(|&last| last < 1024));
    }
}

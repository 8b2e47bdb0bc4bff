//! A fair queue of packets: flows take turns by bytes, and a flow that sends little does not wait for one that sends much.
//!
//! It is the queue of [rfc-8290] (FQ-CoDel) without CoDel: in the place of a target there is the longest stay, after which a packet is dropped, the oldest
//! first. So a TCP inside fills its own queue to that, and no other one. Where the queue is full, the flow that has most loses its oldest packet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sparse::Recent;

/// Packets that wait, with what a packet is.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    flows: Vec<Flow<P>>,
    /// Flows that had nothing before, and those that have had their turn.
    fresh: VecDeque<usize>,
    others: VecDeque<usize>,
    packets: usize,
    /// Packets that were dropped.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Flow<P> {
    packets: VecDeque<(Instant, P)>,
    bytes: usize,
    /// Bytes that it may still send in its turn.
    credit: isize,
    /// Whether it is in a list.
    is_listed: bool,
    /// What it has sent; `None` if nothing.
    recent: Option<Recent>,
}

/// A packet that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken<P> {
    pub(crate) packet: P,
    /// Whether nothing of its flow was here before it, and the flow sends little.
    pub(crate) is_sparse: bool,
}

impl<P: AsRef<[u8]>> Queue<P> {
    pub(crate) fn new() -> Self {
        let flow = || Flow { packets: VecDeque::new(), bytes: 0, credit: 0, is_listed: false, recent: None };
        let flows = std::iter::repeat_with(flow).take(FLOWS).collect();
        Self { flows, fresh: VecDeque::new(), others: VecDeque::new(), packets: 0, dropped: 0 }
    }

    /// Puts in a packet of a flow.
    pub(crate) fn push(&mut self, now: Instant, flow: u64, packet: P) {
        if self.packets == PACKETS_MAX {
            self.drop_of_longest();
        }
        let index = (flow % FLOWS as u64) as usize;
        // A client that takes nothing leaves old packets here, too.
        self.drop_late(now, index);
        let flow = &mut self.flows[index];
        flow.bytes += packet.as_ref().len();
        flow.packets.push_back((now, packet));
        self.packets += 1;
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit = TURN;
            self.fresh.push_back(index);
        }
    }

    /// Takes the next packet.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Taken<P>> {
        loop {
            let is_fresh = !self.fresh.is_empty();
            let index = *if is_fresh { self.fresh.front() } else { self.others.front() }?;
            self.drop_late(now, index);
            let flow = &mut self.flows[index];
            let has_turn = flow.credit > 0;
            if has_turn && let Some(packet) = flow.take() {
                let len = packet.as_ref().len();
                flow.credit -= len as isize;
                self.packets -= 1;
                let recent = flow.recent.get_or_insert_with(|| Recent::new(now));
                return Some(Taken { packet, is_sparse: recent.is_sparse(now, len) && is_fresh });
            }
            _ = if is_fresh { self.fresh.pop_front() } else { self.others.pop_front() };
            if !has_turn {
                flow.credit += TURN;
            }
            // A fresh flow that is empty goes through the other list once, so that it cannot be fresh again at once.
            if is_fresh || !flow.packets.is_empty() {
                self.others.push_back(index);
            } else {
                flow.is_listed = false;
            }
        }
    }

    /// Drops what has waited for too long in a flow.
    fn drop_late(&mut self, now: Instant, index: usize) {
        let flow = &mut self.flows[index];
        while flow.packets.front().is_some_and(|(since, _)| now.duration_since(*since) > STAY_MAX) {
            _ = flow.take();
            self.packets -= 1;
            self.dropped += 1;
        }
    }

    fn drop_of_longest(&mut self) {
        if let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.bytes)
            && longest.take().is_some()
        {
            self.packets -= 1;
            self.dropped += 1;
        }
    }
}

impl<P: AsRef<[u8]>> Flow<P> {
    fn take(&mut self) -> Option<P> {
        let (_, packet) = self.packets.pop_front()?;
        self.bytes -= packet.as_ref().len();
        Some(packet)
    }
}

/// Flows are told apart by a hash; some share a place.
const FLOWS: usize = 256;

/// Bytes of a turn: a full packet.
const TURN: isize = 1514;

/// Packets of all flows: a tenth of a second at 150 Mbit/s, and at most 9 MB of memory.
const PACKETS_MAX: usize = 1024;

/// The longest stay. A TCP inside needs about a round trip of queue to use a path fully, and a shorter queue at faster paths.
const STAY_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begin: Instant, millis: u64) -> Instant {
        begin + Duration::from_millis(millis)
    }

    #[test]
    fn packets_of_a_flow_keep_their_order() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        (0..100_u8).for_each(|number| queue.push(now, 7, vec![number; 1000]));
        let out: Vec<u8> = std::iter::from_fn(|| queue.pop(now)).map(|taken| taken.packet[0]).collect();
        assert!(out.iter().copied().eq(0..100), "{out:?}");
        assert_eq!((queue.packets, queue.dropped), (0, 0));
    }

    /// A call's packet waits for one full packet of a download at most, however many wait there.
    #[test]
    fn sparse_flow_does_not_wait_for_a_greedy_one() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        (0..500).for_each(|_| queue.push(now, 1, vec![1; 1400]));
        // Its first turn is that of a new flow.
        (0..2).for_each(|_| _ = queue.pop(now));
        for _ in 0..10 {
            queue.pop(now);
            queue.push(now, 2, vec![2; 200]);
            let next =
                [queue.pop(now).unwrap(), queue.pop(now).unwrap()].map(|taken| (taken.packet[0], taken.is_sparse));
            assert!(next.contains(&(2, true)) && !next.contains(&(1, true)), "{next:?}");
        }
    }

    #[test]
    fn greedy_flows_share_by_bytes() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        for _ in 0..400 {
            queue.push(now, 1, vec![1; 1400]);
            queue.push(now, 2, vec![2; 350]);
        }
        let out: Vec<_> = (0..300).map(|_| queue.pop(now).unwrap().packet).collect();
        let bytes = |flow: u8| out.iter().filter(|packet| packet[0] == flow).map(Vec::len).sum::<usize>();
        assert!(bytes(1).abs_diff(bytes(2)) <= 2 * 1514, "{} {}", bytes(1), bytes(2));
    }

    #[test]
    fn packet_that_waits_too_long_is_dropped() {
        let (mut queue, begin) = (Queue::new(), Instant::now());
        queue.push(begin, 1, vec![1]);
        queue.push(after(begin, 60), 1, vec![2]);
        assert_eq!(queue.pop(after(begin, 101)).map(|taken| taken.packet), Some(vec![2]));
        assert_eq!((queue.pop(after(begin, 101)), queue.dropped), (None, 1));
    }

    #[test]
    fn full_queue_drops_of_the_longest_flow() {
        let (mut queue, now) = (Queue::new(), Instant::now());
        queue.push(now, 2, vec![2; 100]);
        (0..5000).for_each(|_| queue.push(now, 1, vec![1; 1400]));
        assert_eq!((queue.packets, queue.dropped), (PACKETS_MAX, 5001 - PACKETS_MAX as u64));
        assert_eq!(std::iter::from_fn(|| queue.pop(now)).filter(|taken| taken.packet[0] == 2).count(), 1);
        assert_eq!(queue.packets, 0);
    }
}

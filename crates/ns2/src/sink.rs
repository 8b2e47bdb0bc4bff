//! The sinks: `Agent/TCPSink`, its `DelAck` and its `Sack1` variants.
//!
//! A sink acknowledges the highest packet up to which it has everything, and echoes the timestamp of the packet that advanced it.
//! The Sack1 sink adds up to three SACK blocks of eight bytes: first the block of the packet that just arrived, then the blocks
//! reported last. A DelAck sink delays the ACK of the first of two packets in order. It does not delay the ACK of the SYN, or of
//! a packet that fills a hole.

use anabranch_units::{SimSpan, SimTime};

use crate::arrivals::{Arrival, Arrivals};
use crate::config::SinkConfig;
use crate::core::HEADER;
use crate::packet::{Kind, Packet, SackBlocks};

/// A sink of ns-2.35.
#[derive(Clone, Debug)]
pub struct Sink {
    config: SinkConfig,
    arrivals: Arrivals,
    /// Highest packet that has arrived.
    highest: i32,
    /// Most packets that were above a hole at one time.
    held_max: u32,
    echo: SimTime,
    last_acked: i32,
    reports: Reports,
    /// The packet whose ACK is delayed, and until when.
    waiting: Option<(i32, SimTime)>,
    received: Received,
    out: Option<Packet>,
}

/// Blocks that a sink has reported, the most recent first (ns-2's stack, as deep as an ACK has room for).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    reported: Vec<(i32, i32)>,
}

/// Counters of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that arrived, duplicates included.
    pub packets: u64,
    /// Bytes on the wire of these packets.
    pub bytes: u64,
    /// Packets that arrived for the first time.
    pub unique_packets: u64,
    /// Unique packets that arrived after one with a higher number ([rfc-4737] sec. 3.3), such as a retransmitted one.
    pub reordered_packets: u64,
    /// Sum of the delays of unique packets, each measured from its first transmission.
    pub delay_sum: SimSpan,
    /// The highest sequence number that has arrived.
    seq_max: i32,
}

impl Sink {
    /// A sink that has received nothing.
    pub fn new(config: SinkConfig) -> Self {
        Self {
            config,
            arrivals: Arrivals::default(),
            highest: 0,
            held_max: 0,
            echo: SimTime::ZERO,
            last_acked: 0,
            reports: Reports::default(),
            waiting: None,
            received: Received::default(),
            out: None,
        }
    }

    /// A data packet arrived.
    pub fn handle(&mut self, now: SimTime, packet: &Packet) {
        let seq = packet.seq;
        // The echo is the timestamp of the last packet at or below the expected one, if that is not older than the last echo.
        if packet.sent_at >= self.echo && seq <= self.last_acked + 1 {
            self.echo = packet.sent_at;
        }
        let duplicate = !self.take(seq);
        self.received.note(now, packet, duplicate);
        if let Some(delay) = self.config.delay
            && self.waiting.is_none()
            && seq == self.arrivals.next() - 1
            && seq >= self.highest
            && seq != 0
        {
            self.waiting = Some((seq, now + delay));
            return;
        }
        self.waiting = None;
        self.acknowledge(now, seq, duplicate);
    }

    /// Handles the timeout that [`Sink::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: SimTime) {
        if let Some((seq, deadline)) = self.waiting
            && deadline <= now
        {
            self.waiting = None;
            self.acknowledge(now, seq, false);
        }
    }

    /// The ACK to put on the wire, if there is one.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.take()
    }

    /// When [`Sink::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> SimTime {
        self.waiting.map_or(SimTime::NEVER, |(_, deadline)| deadline)
    }

    /// The counters since the start.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Packets delivered in order to the application.
    pub fn delivered_packets(&self) -> u64 {
        u64::from(self.arrivals.next().unsigned_abs())
    }

    /// Packets above a hole: the used part of the receiver's buffer.
    pub fn held_packets(&self) -> u32 {
        self.arrivals.held()
    }

    /// The maximum of [`Self::held_packets`].
    pub fn held_packets_max(&self) -> u32 {
        self.held_max
    }

    /// Records the arrival; false if it had arrived before.
    fn take(&mut self, seq: i32) -> bool {
        let arrival = self.arrivals.take(seq);
        if arrival == Arrival::Again {
            return false;
        }
        self.highest = self.highest.max(seq);
        if arrival == Arrival::Above {
            self.held_max = self.held_max.max(self.arrivals.held());
        }
        true
    }

    fn acknowledge(&mut self, now: SimTime, seq: i32, duplicate: bool) {
        let sack = match self.config.sack {
            true => self.reports.blocks(&self.arrivals, self.highest, seq, duplicate),
            false => SackBlocks::default(),
        };
        self.last_acked = self.arrivals.next() - 1;
        self.out = Some(Packet {
            kind: Kind::Ack,
            size: HEADER + 8 * sack.as_slice().len() as u32,
            seq: self.arrivals.next() - 1,
            sent_at: now,
            first_sent_at: now,
            echo: self.echo,
            sack,
        });
    }
}

impl Received {
    pub(crate) fn note(&mut self, now: SimTime, packet: &Packet, is_again: bool) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if !is_again {
            self.unique_packets += 1;
            self.reordered_packets += u64::from(packet.seq < self.seq_max);
            self.seq_max = self.seq_max.max(packet.seq);
            self.delay_sum = self.delay_sum.saturating_add(now.since(packet.first_sent_at));
        }
    }
}

impl Reports {
    /// Drops blocks below `next`, the first missing packet. A sink with one path has none.
    pub(crate) fn forget_below(&mut self, next: i32) {
        self.reported.retain(|&(_, right)| right > next);
    }

    /// The SACK blocks of the ACK for `seq`. They are remembered for the next ACKs.
    pub(crate) fn blocks(&mut self, arrivals: &Arrivals, highest: i32, seq: i32, duplicate: bool) -> SackBlocks {
        let mut sack = SackBlocks::default();
        let acked = arrivals.next() - 1;
        if acked >= highest && !self.reported.is_empty() {
            self.reported.clear();
            return sack;
        }
        if acked >= highest && !duplicate {
            return sack;
        }
        // A packet at or below the ACK belongs to the block from 0 on, which covers old blocks but is not reported.
        let recent = match arrivals.above().iter().find(|block| block.0 <= seq && seq < block.1) {
            Some(&block) if seq > acked => {
                sack.push(block.0, block.1);
                block
            }
            _ => (0, arrivals.next()),
        };
        let mut index = 0;
        while sack.as_slice().len() < SackBlocks::MAX
            && let Some(&(left, right)) = self.reported.get(index)
        {
            if right > highest + 1 {
                break;
            }
            if recent.0 <= left && recent.1 >= right {
                self.reported.remove(index);
                continue;
            }
            sack.push(left, right);
            index += 1;
        }
        if seq > acked {
            self.reported.truncate(SackBlocks::MAX - 1);
            self.reported.insert(0, recent);
        }
        sack
    }
}

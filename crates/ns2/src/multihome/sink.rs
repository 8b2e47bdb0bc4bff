//! The receiver: one buffer for all paths. Each SACK returns over the path of the packet that it answers.

use std::collections::VecDeque;

use anabranch_units::SimTime;

use super::Departure;
use crate::arrivals::{Arrival, Arrivals};
use crate::core::HEADER;
use crate::packet::{Kind, Packet};
use crate::sink::{Received, Reports};

/// The receiver of a connection over several paths. Each packet is acknowledged at once.
#[derive(Clone, Debug)]
pub struct Sink {
    arrivals: Arrivals,
    /// Highest packet that has arrived.
    highest: i32,
    held_max: u32,
    received: Received,
    paths: Vec<Path>,
    out: VecDeque<Departure>,
}

/// The receiver's state of a path: the head of its virtual receive buffer.
#[derive(Clone, Debug, Default)]
struct Path {
    echo: SimTime,
    last_acked: i32,
    reports: Reports,
}

impl Sink {
    /// A receiver for `paths` paths that has received nothing.
    pub fn new(paths: usize) -> Self {
        Self {
            arrivals: Arrivals::default(),
            highest: 0,
            held_max: 0,
            received: Received::default(),
            paths: vec![Path::default(); paths],
            out: VecDeque::new(),
        }
    }

    /// A data packet arrived over a path.
    pub fn handle(&mut self, now: SimTime, path: usize, packet: &Packet) {
        let seq = packet.seq;
        let is_only_path = self.paths.len() == 1;
        let state = &mut self.paths[path];
        // ns-2 echoes the timestamp of the packet that was expected. With several paths the receiver cannot know a path's next
        // packet, so it echoes every one.
        if packet.sent_at >= state.echo && (!is_only_path || seq <= state.last_acked + 1) {
            state.echo = packet.sent_at;
        }
        let arrival = self.arrivals.take(seq);
        let is_again = arrival == Arrival::Again;
        self.received.note(now, packet, is_again);
        if !is_again {
            self.highest = self.highest.max(seq);
        }
        if arrival == Arrival::Above {
            self.held_max = self.held_max.max(self.arrivals.held());
        }
        // Packets that arrived over other paths may have filled the hole below a block that this path reported.
        state.reports.forget_below(self.arrivals.next());
        let sack = state.reports.blocks(&self.arrivals, self.highest, seq, is_again);
        state.last_acked = self.arrivals.next() - 1;
        let packet = Packet {
            kind: Kind::Ack,
            size: HEADER + 8 * sack.as_slice().len() as u32,
            seq: self.arrivals.next() - 1,
            sent_at: now,
            first_sent_at: now,
            echo: state.echo,
            sack,
        };
        self.out.push_back(Departure { path, packet });
    }

    /// The SACK to put on the wire, if there is one.
    pub fn poll_transmit(&mut self) -> Option<Departure> {
        self.out.pop_front()
    }

    /// The counters summed over all paths.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Packets delivered in order to the application, the paths' SYNs among them.
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
}

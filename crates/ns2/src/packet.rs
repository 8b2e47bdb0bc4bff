//! The packets between an ns-2 sender and its sink.

use anabranch_units::SimTime;

/// A data packet or an acknowledgement of a one-way ns-2 agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether this is a data packet or an acknowledgement.
    pub kind: Kind,
    /// Bytes on the wire, headers included.
    pub size: u32,
    /// In a data packet its sequence number, counted in packets from 0. In an ACK the highest packet received in order, -1 before
    /// the first.
    pub seq: i32,
    /// When the packet was sent (ns-2's `ts_`).
    pub sent_at: SimTime,
    /// When a packet with this sequence number was first sent: the papers measure delay from here.
    pub first_sent_at: SimTime,
    /// In an ACK, the `sent_at` of the packet that it acknowledges (ns-2's `ts_echo_`).
    pub echo: SimTime,
    /// In an ACK of a SACK sink, the blocks above the cumulative acknowledgement.
    pub sack: SackBlocks,
}

/// The direction of a [`Packet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the sender to the sink.
    Data,
    /// From the sink to the sender.
    Ack,
}

/// At most three blocks of packets that arrived above the cumulative acknowledgement, the most recent first; each is
/// `left..right` in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    blocks: [(i32, i32); Self::MAX],
}

impl SackBlocks {
    /// ns-2's `maxSackBlocks_`: three fit beside a timestamp option.
    pub const MAX: usize = 3;

    /// Appends a block; a fourth block is ignored.
    pub fn push(&mut self, left: i32, right: i32) {
        debug_assert!(left < right, "a SACK block holds at least one packet: {left}..{right}");
        if (self.len as usize) < Self::MAX {
            self.blocks[self.len as usize] = (left, right);
            self.len += 1;
        }
    }

    /// The blocks, the most recent first.
    pub fn as_slice(&self) -> &[(i32, i32)] {
        &self.blocks[..self.len as usize]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

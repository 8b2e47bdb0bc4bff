//! What an endpoint reports: departures, deliveries, its counters and the variables of its destinations.

use anabranch_units::SimSpan;

use super::packet::Packet;

/// A packet to send, and its destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Departure {
    /// The index of the destination.
    pub destination: usize,
    /// The packet to send.
    pub packet: Packet,
}

/// A chunk that a stream delivers to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The stream of the chunk.
    pub stream: u16,
    /// The chunk's number in the association (TSN).
    pub tsn: u32,
    /// Bytes of payload.
    pub bytes: u32,
}

/// The sender's counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets, of whatever kind.
    pub sent_packets: u64,
    /// Data chunks, retransmissions included.
    pub sent_chunks: u64,
    /// Data chunks retransmitted.
    pub retransmitted_chunks: u64,
    /// SACKs that triggered a fast retransmit.
    pub fast_retransmits: u64,
    /// Timeouts of data and heartbeats.
    pub timeouts: u64,
    /// Most consecutive timeouts on one path. An acknowledgement on that path resets the count, unless it is of a chunk that had
    /// timed out. Each timeout doubles the RTO.
    pub timeouts_in_row_max: u32,
}

/// The receiver's counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets with data.
    pub packets: u64,
    /// Bytes on the wire of packets with data.
    pub bytes: u64,
    /// Chunks that arrived for the first time.
    pub unique_chunks: u64,
    /// Unique chunks that arrived after one with a higher TSN ([rfc-4737] sec. 3.3).
    pub reordered_chunks: u64,
    /// Payload bytes of unique chunks.
    pub unique_bytes: u64,
    /// Payload bytes delivered to the application.
    pub delivered_bytes: u64,
    /// Most chunks that waited at one time for an earlier one in their stream.
    pub held_chunks_max: u32,
    /// The highest TSN that has arrived.
    pub(super) tsn_max: u32,
    /// Sum of the delays of unique chunks, each measured from its first transmission.
    pub delay_sum: SimSpan,
}

/// The variables of a destination that a trace shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauges {
    /// Congestion window in bytes.
    pub window: i32,
    /// Slow start threshold in bytes.
    pub ssthresh: i32,
    /// Bytes sent and not acknowledged.
    pub in_flight: i32,
    /// Retransmission timeout in seconds.
    pub rto_s: f64,
    /// Smoothed RTT in seconds, once there is one.
    pub srtt_s: Option<f64>,
}

//! What an endpoint reports: departures, deliveries, its counters and the variables of its destinations.

use anabranch_units::SimSpan;

use super::packet::Packet;

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Departure {
    /// The destination, by position.
    pub destination: usize,
    /// The packet to send.
    pub packet: Packet,
}

/// A chunk that its stream hands to the application.
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
    /// Data chunks, again or not.
    pub sent_chunks: u64,
    /// Data chunks sent again.
    pub retransmitted_chunks: u64,
    /// SACKs that made chunks be sent again.
    pub fast_retransmits: u64,
    /// Timeouts of data and heartbeats.
    pub timeouts: u64,
    /// The most of them on one path one after the other, with nothing acknowledged there between two but what had timed out. Each
    /// doubles the RTO.
    pub timeouts_in_row_max: u32,
}

/// The receiver's counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets with data.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Chunks that came for the first time.
    pub unique_chunks: u64,
    /// Of these, chunks that came after one with a higher TSN ([rfc-4737] sec. 3.3).
    pub reordered_chunks: u64,
    /// Their payload in bytes.
    pub unique_bytes: u64,
    /// Payload that was handed to the application.
    pub delivered_bytes: u64,
    /// Most chunks that have waited for one before them in their stream.
    pub held_chunks_max: u32,
    /// The highest TSN that has come.
    pub(super) tsn_max: u32,
    /// Sum of the delays of unique chunks, each from its first transmission.
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

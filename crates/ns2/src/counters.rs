//! Counters of a sender.

use anabranch_units::SimSpan;

/// Counters of a sender since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent, retransmissions and the SYN included (`ndatapack_`).
    pub sent_packets: u64,
    /// Bytes on the wire of the packets sent.
    pub sent_bytes: u64,
    /// Packets retransmitted (`nrexmitpack_`).
    pub retransmitted_packets: u64,
    /// Reductions of the window (`ncwndcuts_`).
    pub window_cuts: u64,
    /// Retransmission timeouts with data outstanding (`nrexmit_`).
    pub timeouts: u64,
    /// Losses that Composite TCP classified as random.
    pub random_losses: u64,
    /// RTT samples: one per ACK of new data.
    pub rtt_samples: u64,
    /// The sum of the RTT samples.
    pub rtt_sum: SimSpan,
    /// ACKs of new data at which the receiver's window was at most the congestion window.
    pub window_limited_acks: u64,
}

//! The settings that an ns-2 script makes on an SCTP endpoint before the start. The defaults are ns-2.35's.

use anabranch_units::SimSpan;

use super::packet::{Data, HEADERS};

/// Everything about an endpoint but its destinations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointConfig {
    /// One destination at a time, or all at once.
    pub variant: Variant,
    /// Bytes on the wire of the largest packet (`mtu_`), 32 of them headers of IP and SCTP.
    pub mtu: u32,
    /// Bytes of a data chunk of an endless source, its header of 16 included (`dataChunkSize_`).
    pub chunk: u32,
    /// Bytes that the receive buffer holds, shared by all streams and destinations (`initialRwnd_`).
    pub receive_buffer: u32,
    /// First slow start threshold in bytes (`initialSsthresh_`).
    pub ssthresh: u32,
    /// Packets below which an idle window is not halved, and in CMT the floor of `ssthresh` (`initialCwnd_`). The first
    /// window is RFC 4960's, whatever this says.
    pub window_floor: u32,
    /// Streams outwards, fed in turn by an endless source (`numOutStreams_`).
    pub streams: u16,
    /// The delay of the SACK of a first packet, in wait for a second one; `None` acknowledges each packet at once
    /// (`useDelayedSacks_`, `sackDelay_`).
    pub sack_delay: Option<SimSpan>,
    /// Whether at most four packets leave on an ACK of what was retransmitted (`useMaxBurst_`).
    pub limits_bursts: bool,
    /// Retransmission timeout before the first measurement (`initialRto_`).
    pub rto_initial: SimSpan,
    /// Its lower bound (`minRto_`).
    pub rto_min: SimSpan,
    /// Its upper bound (`maxRto_`).
    pub rto_max: SimSpan,
    /// Missing reports after which a chunk is retransmitted (`fastRtxTrigger_`).
    pub missing_reports: u32,
    /// Whether chunks are delivered as they come (`unordered_`).
    pub unordered: bool,
    /// The chunks that are retransmitted to another destination; CMT has its own policy (`rtxToAlt_`).
    pub alternate: Alternate,
    /// The behaviour after the failure of all destinations (`dormantAction_`).
    pub dormant: Dormant,
    /// Timeouts in a row after which a destination is inactive (`pathMaxRetrans_`).
    pub path_errors_max: u32,
    /// Timeouts in a row after which the association is closed (`associationMaxRetrans_`).
    pub association_errors_max: u32,
    /// Further attempts to open the association (`maxInitRetransmits_`).
    pub init_retries_max: u32,
    /// Seconds between heartbeats on idle destinations, besides an RTO; none after the handshake if absent
    /// (`heartbeatInterval_`).
    pub heartbeat_s: Option<u32>,
}

/// One destination at a time, or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// `Agent/SCTP`: new data goes to the primary destination.
    Plain,
    /// `Agent/SCTP/CMT`: new data goes wherever a window has room.
    Cmt(CmtOptions),
}

/// The parts of concurrent multipath transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmtOptions {
    /// Split fast retransmit: only later chunks of the same destination report one missing (`useCmtReordering_`).
    pub split_fast_retransmit: bool,
    /// Window update by the least unacknowledged TSN of each destination (`useCmtCwnd_`).
    pub window_update: bool,
    /// Delayed SACKs in spite of gaps; they say how many packets they stand for (`useCmtDelAck_`).
    pub delayed_ack: bool,
    /// The destination of lost chunks (`eCmtRtxPolicy_`).
    pub policy: RetransmissionPolicy,
}

impl Default for CmtOptions {
    fn default() -> Self {
        Self {
            split_fast_retransmit: true,
            window_update: true,
            delayed_ack: true,
            policy: RetransmissionPolicy::Window,
        }
    }
}

/// The destination to which CMT sends lost chunks. Ties are broken by a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmissionPolicy {
    /// Any destination whose window has room (RTX-ASAP).
    Asap,
    /// The destination of the original transmission (RTX-SAME).
    Same,
    /// The largest slow start threshold (RTX-SSTHRESH).
    Ssthresh,
    /// The least loss rate, as the script has set it (RTX-LOSSRATE).
    LossRate,
    /// The largest window (RTX-CWND).
    Window,
}

/// The chunks that plain SCTP retransmits to another destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternate {
    /// Nothing, as long as the destination is active.
    Never,
    /// Every lost chunk.
    Always,
    /// Chunks that timed out.
    Timeouts,
}

/// The destination after the failure of all destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dormant {
    /// To the next one each time.
    Hop,
    /// To the primary destination.
    Primary,
    /// To the last one used.
    Last,
}

/// One address of the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DestinationConfig {
    /// Our interface by which it is reached, counted from 0.
    pub interface: u8,
    /// The loss rate that RTX-LOSSRATE assumes (`set-destination-lossrate`).
    pub loss_rate: f32,
}

impl EndpointConfig {
    /// The defaults of ns-2.35.
    pub const fn new(variant: Variant) -> Self {
        Self {
            variant,
            mtu: 1500,
            chunk: 1468,
            receive_buffer: 65_536,
            ssthresh: 65_536,
            window_floor: 2,
            streams: 1,
            sack_delay: Some(SimSpan::from_millis(200)),
            limits_bursts: true,
            rto_initial: SimSpan::from_secs(3),
            rto_min: SimSpan::from_secs(1),
            rto_max: SimSpan::from_secs(60),
            missing_reports: 3,
            unordered: false,
            alternate: Alternate::Always,
            dormant: Dormant::Hop,
            path_errors_max: 5,
            association_errors_max: 10,
            init_retries_max: 8,
            heartbeat_s: Some(30),
        }
    }

    /// Bytes of chunks that fit a packet.
    pub const fn room(&self) -> u32 {
        self.mtu.saturating_sub(HEADERS)
    }

    /// Whether a chunk is longer than its header, fits a packet, and there is a stream for it.
    pub const fn is_possible(&self) -> bool {
        let padded = self.chunk.next_multiple_of(4);
        self.chunk > Data::HEADER && padded <= self.room() && self.mtu <= u16::MAX as u32 && self.streams > 0
    }

    pub(crate) const fn cmt(&self) -> Option<CmtOptions> {
        match self.variant {
            Variant::Plain => None,
            Variant::Cmt(options) => Some(options),
        }
    }
}

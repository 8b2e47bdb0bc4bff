//! The settings that an ns-2 script makes on an SCTP endpoint before the start. The defaults are ns-2.35's.

use anabranch_units::SimSpan;

use super::packet::{Data, HEADERS};

/// The settings of an endpoint, without those of its destinations.
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
    /// Packets below which an idle window is not halved; in CMT also the floor of `ssthresh` (`initialCwnd_`). The initial window
    /// does not depend on it: it is that of RFC 4960.
    pub window_floor: u32,
    /// Outgoing streams. An endless source serves them in turn (`numOutStreams_`).
    pub streams: u16,
    /// How long the SACK of a packet may wait for a second packet; `None` acknowledges each packet at once (`useDelayedSacks_`,
    /// `sackDelay_`).
    pub sack_delay: Option<SimSpan>,
    /// Whether an ACK of retransmitted data sends at most four packets (`useMaxBurst_`).
    pub limits_bursts: bool,
    /// Retransmission timeout before the first measurement (`initialRto_`).
    pub rto_initial: SimSpan,
    /// Lower bound of the retransmission timeout (`minRto_`).
    pub rto_min: SimSpan,
    /// Upper bound of the retransmission timeout (`maxRto_`).
    pub rto_max: SimSpan,
    /// Missing reports after which a chunk is retransmitted (`fastRtxTrigger_`).
    pub missing_reports: u32,
    /// Whether chunks are delivered as they arrive, in any order (`unordered_`).
    pub unordered: bool,
    /// Which chunks are retransmitted to another destination (`rtxToAlt_`); CMT has its own policy instead.
    pub alternate: Alternate,
    /// The destination to use after all destinations have failed (`dormantAction_`).
    pub dormant: Dormant,
    /// Consecutive timeouts after which a destination is inactive (`pathMaxRetrans_`).
    pub path_errors_max: u32,
    /// Consecutive timeouts after which the association is closed (`associationMaxRetrans_`).
    pub association_errors_max: u32,
    /// Retransmissions of INIT or COOKIE-ECHO before opening the association fails (`maxInitRetransmits_`).
    pub init_retries_max: u32,
    /// Seconds between heartbeats to an idle destination, to which an RTO is added. `None` sends none after the handshake
    /// (`heartbeatInterval_`).
    pub heartbeat_s: Option<u32>,
}

/// One destination at a time, or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// `Agent/SCTP`: new data goes to the primary destination.
    Plain,
    /// `Agent/SCTP/CMT`: new data goes to every destination whose window has room.
    Cmt(CmtOptions),
}

/// The mechanisms of concurrent multipath transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmtOptions {
    /// Split fast retransmit: a chunk is reported missing only by later chunks to the same destination (`useCmtReordering_`).
    pub split_fast_retransmit: bool,
    /// The window grows by the least unacknowledged TSN of each destination (`useCmtCwnd_`).
    pub window_update: bool,
    /// SACKs are delayed even if there are gaps, and carry the number of packets that they acknowledge (`useCmtDelAck_`).
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

/// The destination to which CMT retransmits lost chunks. Ties are broken at random.
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
    /// No chunks, as long as the destination is active.
    Never,
    /// Every lost chunk.
    Always,
    /// Chunks that timed out.
    Timeouts,
}

/// The destination to use after all destinations have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dormant {
    /// The next one each time.
    Hop,
    /// The primary destination.
    Primary,
    /// The destination used last.
    Last,
}

/// One address of the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DestinationConfig {
    /// The index of the local interface that reaches it, from 0.
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

    /// Bytes of chunks that fit in a packet.
    pub const fn room(&self) -> u32 {
        self.mtu.saturating_sub(HEADERS)
    }

    /// Whether a chunk is longer than its header and fits in a packet, and there is at least one stream.
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

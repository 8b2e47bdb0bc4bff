//! The additional keys of flows of our own transport.

use anabranch_sim::Workload;
use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use crate::load::part::PartKeys;
use crate::load::values::{Count, LawKeys, Name, Text};

/// The additional keys of a flow of our own transport.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "anabranch", transform = super::schema::part)]
pub(crate) struct EngineKeys {
    /// The congestion law and its settings: `anabranch cc list`; `anabranch` if absent.
    pub(crate) cc: Option<LawKeys>,
    /// The least term added to the smoothed RTT for the retransmission timeout; 200 ms if absent.
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The data of the application; `bulk` if absent.
    pub(crate) workload: Option<PartKeys<Workload>>,
    /// The interfaces of both ends, at most 8 pairs; one pair, by the shortest route, if absent.
    pub(crate) paths: Option<Vec<PathKeys>>,
    /// Streams from the source to its destination, 0 to 255; 0 is plain TCP; 1 if absent.
    pub(crate) streams: Option<u8>,
    /// The scheduler of several paths; `min_rtt` if absent.
    pub(crate) scheduler: Option<SchedulerKeys>,
    /// The receive buffer; `16MiB` if absent.
    pub(crate) rbuf: Option<Text<Bytes>>,
    /// The share of one stream in the receive buffer; `whole` if absent.
    pub(crate) stream_buffer: Option<StreamBufferKeys>,
    /// The loss detection; `rack` if absent.
    pub(crate) loss_detection: Option<LossDetectionKeys>,
    /// The path of retransmissions. Only with `paths`; `same_path` if absent.
    pub(crate) repair: Option<RepairKeys>,
    /// Failover from a silent path. Only with `paths`; `on_silence` if absent.
    pub(crate) failover: Option<FailoverKeys>,
    /// The pacing; `by_law` if absent, as with the agents of ns-2. Outside of scenarios the default is `always`.
    pub(crate) pacing: Option<PacingKeys>,
    /// The longest delay of an ACK, less than `500ms`: it waits for a second packet, to acknowledge both. If absent each packet is
    /// acknowledged at once.
    pub(crate) delayed_acks: Option<Text<SimSpan>>,
    /// Nagle's algorithm: whether a packet that is not full waits while data is unacknowledged; false if absent.
    pub(crate) nagle: Option<bool>,
    /// The form of segments; `tcp` if absent.
    pub(crate) form: Option<FormKeys>,
    /// Whether packets carry timestamps (RFC 7323), which take 12 bytes each; false if absent.
    pub(crate) timestamps: Option<bool>,
    /// The silence before the first keep-alive probe; further ones follow every 75 s, nine in all. No probes if absent.
    pub(crate) keep_alive: Option<Text<SimSpan>>,
}

/// A pair of interfaces of a connection, one at each end. Between them packets take the shortest route.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "path")]
pub(crate) struct PathKeys {
    /// The duplex link by which packets leave the sending node.
    pub(crate) first: Name,
    /// The duplex link by which packets reach the receiving node.
    pub(crate) last: Name,
    /// Its weight relative to others; 1 if absent. Only with the scheduler `weighted`.
    pub(crate) weight: Option<Count>,
}

/// The form of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "form")]
pub(crate) enum FormKeys {
    /// TCP, in packets of at most `packet` on every path.
    Tcp,
    /// Sealed datagrams over UDP and IPv6, as on a real network: path MTU discovery finds the size of each path's packets, up to
    /// `packet`, and routers may mark them. The simulator does not encrypt, and the key exchange takes no time.
    Sealed,
}

/// The scheduler: the path of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "scheduler")]
pub(crate) enum SchedulerKeys {
    /// All paths in proportion to their congestion windows, as in multihoming-2010.
    Window,
    /// The path with the least RTT among those with room.
    MinRtt,
    /// All paths in proportion to their weights.
    Weighted,
    /// The first path; the others if it fails.
    Backup,
    /// As `min_rtt`, and each packet is copied on another path. The first copy counts.
    Redundant,
    /// As `min_rtt`, and the last ten packets before the sender has nothing left to send are copied on another path.
    Latency,
}

/// The share of one stream in the receive buffer of a connection.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stream_buffer")]
pub(crate) enum StreamBufferKeys {
    /// All of it, as in the papers: streams have no credit of their own.
    Whole,
    /// A dynamic share that leaves room for every other stream.
    Shared,
}

/// The loss detection. Without SACK it is by duplicate ACKs in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "loss_detection")]
pub(crate) enum LossDetectionKeys {
    /// By time, with an adaptive reordering window and tail loss probes (RFC 8985).
    Rack,
    /// By three segments that left later and arrived (RFC 6675).
    DupAcks,
}

/// The pacing of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "pacing")]
pub(crate) enum PacingKeys {
    /// At the law's rate if it has one, else at 1.25 windows in a smoothed RTT (RFC 9002).
    Always,
    /// At the law's rate if it has one; otherwise ACKs clock the segments, as with the agents of the papers.
    ByLaw,
}

/// The path of retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "repair")]
pub(crate) enum RepairKeys {
    /// The segment's own path, as in multihoming-2010, unless that has failed.
    SamePath,
    /// Any path with room, its own or a faster one.
    AnyPath,
}

/// Failover from a silent path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "failover")]
pub(crate) enum FailoverKeys {
    /// After about two probe timeouts without an ACK, other paths retransmit the path's flight, until it has an ACK again. They also
    /// retransmit data that blocks the receiver's window on a much slower path.
    OnSilence,
    /// Never, as in multihoming-2010: data in flight on a silent path waits for that path. A path that stays silent stops the connection,
    /// which is closed after five minutes without progress. Not with the scheduler `backup`.
    Never,
}

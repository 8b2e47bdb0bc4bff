//! What flows of our own transport have besides.

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use super::traffic::WorkloadKeys;
use crate::load::values::{Count, LawKeys, Name, Text};

/// What a flow of our own transport has besides.
#[derive(Clone, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "anabranch", transform = super::schema::part)]
pub(crate) struct EngineKeys {
    /// The congestion law with its parameters: `anabranch cc list`; `anabranch` if absent.
    #[serde(default)]
    pub(crate) cc: Option<LawKeys>,
    /// The least that is added to the smoothed RTT for the retransmission timeout; 200 ms if absent.
    #[serde(default)]
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// What the application wants to have sent; `bulk` if absent.
    #[serde(default)]
    pub(crate) workload: Option<WorkloadKeys>,
    /// The interfaces by which both ends can be reached, at most 8 pairs; one, by the shortest way, if absent.
    #[serde(default)]
    pub(crate) paths: Option<Vec<PathKeys>>,
    /// Streams from the source to its destination, 0 to 255; 0 is plain TCP; 1 if absent.
    #[serde(default)]
    pub(crate) streams: Option<u8>,
    /// How data is spread over several paths; `min_rtt` if absent.
    #[serde(default)]
    pub(crate) scheduler: Option<SchedulerKeys>,
    /// The receive buffer; `16MiB` if absent.
    #[serde(default)]
    pub(crate) rbuf: Option<Text<Bytes>>,
    /// How much of it one stream may take; `whole` if absent.
    #[serde(default)]
    pub(crate) stream_buffer: Option<StreamBufferKeys>,
    /// How losses are found; `rack` if absent.
    #[serde(default)]
    pub(crate) loss_detection: Option<LossDetectionKeys>,
    /// Where what is lost is sent again. Only with `paths`; `same_path` if absent.
    #[serde(default)]
    pub(crate) repair: Option<RepairKeys>,
    /// Whether other paths take over from a silent one. Only with `paths`; `on_silence` if absent.
    #[serde(default)]
    pub(crate) failover: Option<FailoverKeys>,
    /// How what leaves is spread over time; `by_law` if absent, as with the agents that it is compared with. Outside of scenarios it is
    /// `always`.
    #[serde(default)]
    pub(crate) pacing: Option<PacingKeys>,
    /// How long an acknowledgement may wait for a second packet, to answer both: less than `500ms`; each packet is answered at once if
    /// absent.
    #[serde(default)]
    pub(crate) delayed_acks: Option<Text<SimSpan>>,
    /// Whether a packet that is not full waits for more as long as something is unacknowledged: Nagle's algorithm; false if absent.
    #[serde(default)]
    pub(crate) nagle: Option<bool>,
    /// In which form segments travel; `tcp` if absent.
    #[serde(default)]
    pub(crate) form: Option<FormKeys>,
    /// Whether packets say when they left (RFC 7323), which takes 12 bytes of each; false if absent.
    #[serde(default)]
    pub(crate) timestamps: Option<bool>,
    /// Keep-alive: how long an end may hear nothing before it sends a probe; then it does every 75 s, nine times. No probes if absent.
    #[serde(default)]
    pub(crate) keep_alive: Option<Text<SimSpan>>,
}

/// A pair of interfaces of a connection, one at each end. Between them packets go the shortest way.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "path")]
pub(crate) struct PathKeys {
    /// The duplex link by which packets leave the node that sends.
    pub(crate) first: Name,
    /// The duplex link by which they arrive at the node that receives.
    pub(crate) last: Name,
    /// How much it is to carry in proportion to others; 1 if absent. Only with the scheduler `weighted`.
    #[serde(default)]
    pub(crate) weight: Option<Count>,
}

/// In which form segments travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "form")]
pub(crate) enum FormKeys {
    /// As TCP, in packets of `packet` at most on every path.
    Tcp,
    /// In sealed datagrams over UDP and IPv6, as on a real network: each path's packets are as long as it carries, up to `packet`, which is found
    /// by probes, and routers may mark them. Nothing is encrypted in here, and keys take no time.
    Sealed,
}

/// Which path takes what is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "scheduler")]
pub(crate) enum SchedulerKeys {
    /// All, in proportion to their congestion windows, as in multihoming-2010.
    Window,
    /// The one with the least RTT that has room.
    MinRtt,
    /// All, in proportion to their weights.
    Weighted,
    /// The first; the others if it fails.
    Backup,
}

/// How much of the receive buffer of a connection one stream may take.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stream_buffer")]
pub(crate) enum StreamBufferKeys {
    /// All of it, as in the papers: streams have no credit of their own.
    Whole,
    /// As much as leaves something for every other stream.
    Shared,
}

/// How losses are found. Of a receiver without selective acknowledgements, by duplicates in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "loss_detection")]
pub(crate) enum LossDetectionKeys {
    /// By time, learning how much the path reorders, with a probe of the tail (RFC 8985).
    Rack,
    /// By three that arrive of what left later (RFC 6675).
    DupAcks,
}

/// How what leaves is spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "pacing")]
pub(crate) enum PacingKeys {
    /// At the rate of the law where it has one, else at 1.25 windows in a smoothed RTT (RFC 9002).
    Always,
    /// At the rate of the law where it has one; else acknowledgements set the pace, as with the agents of the papers.
    ByLaw,
}

/// Where what is lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "repair")]
pub(crate) enum RepairKeys {
    /// On its own path, as in multihoming-2010, unless that has failed.
    SamePath,
    /// On any path that has room, its own or one that is faster.
    AnyPath,
}

/// Whether other paths take over from a silent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "failover")]
pub(crate) enum FailoverKeys {
    /// After about two probe timeouts without an answer: until it answers again, others send what it had in flight. They also send
    /// what keeps the receiver's window shut on a path that is much slower.
    OnSilence,
    /// Never, as in multihoming-2010: what left on a path waits for it. A path that stays dead stops the connection, which is
    /// given up when nothing has got anywhere for five minutes. Not with the scheduler `backup`.
    Never,
}

//! What flows of ns-2's agents have besides.

use std::collections::BTreeMap;

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use super::traffic::WorkloadKeys;
use crate::load::values::{Count, LawKeys, Name, Probability, Setting, Text};

/// What a flow of a one-way TCP of ns-2 has besides.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "agent", transform = super::schema::part)]
pub(crate) struct AgentKeys {
    /// The congestion law, where the agent lets one choose, with its parameters.
    #[serde(default)]
    pub(crate) cc: Option<LawKeys>,
    /// The most packets in flight: ns-2's `window_`; 20 if absent.
    #[serde(default)]
    pub(crate) window: Option<Count>,
    /// Window at the start, in packets: ns-2's `windowInit_`; 2 if absent.
    #[serde(default)]
    pub(crate) initial_window: Option<Count>,
    /// Least retransmission timeout: ns-2's `minrto_`; 200 ms if absent.
    #[serde(default)]
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The receiver; `sack1` if absent and the agent reads selective acknowledgements, else `plain`.
    #[serde(default)]
    pub(crate) sink: Option<SinkKeys>,
    /// What the application wants to have sent; `bulk` if absent.
    #[serde(default)]
    pub(crate) workload: Option<WorkloadKeys>,
    /// Quirks of the agent: `burst_max` (`maxburst_`, 0 is no limit), `precise_halving` (`precisionReduce_`).
    #[serde(default)]
    pub(crate) options: Option<BTreeMap<String, Setting>>,
}

/// How a receiver of ns-2 acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "sink")]
pub(crate) enum SinkKeys {
    /// Each packet at once.
    Plain,
    /// Every other packet, or after 100 ms.
    Delayed,
    /// Each packet at once, with selective acknowledgements.
    Sack1,
    /// Every other packet, or after 100 ms, with selective acknowledgements.
    Sack1Delayed,
}

/// What a flow of FAST multihoming has besides.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "multihomed", transform = super::schema::part)]
pub(crate) struct MultihomedKeys {
    /// The congestion law of each path, with its parameters.
    #[serde(default)]
    pub(crate) cc: Option<LawKeys>,
    /// Window of each path at the start, in packets: ns-2's `windowInit_`; 2 if absent.
    #[serde(default)]
    pub(crate) initial_window: Option<Count>,
    /// Least retransmission timeout: ns-2's `minrto_`; 200 ms if absent.
    #[serde(default)]
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The receive buffer, which all paths share; `16MiB` if absent.
    #[serde(default)]
    pub(crate) rbuf: Option<Text<Bytes>>,
    /// The interfaces by which both ends can be reached, at most 8 pairs; one, by the shortest way, if absent.
    #[serde(default)]
    pub(crate) paths: Option<Vec<MultihomedPathKeys>>,
    /// What the application wants to have sent; `bulk` if absent.
    #[serde(default)]
    pub(crate) workload: Option<WorkloadKeys>,
    /// Quirks of the agent: `burst_max` (`maxburst_`, 0 is no limit), `precise_halving` (`precisionReduce_`), `reinject` (how long a path that times
    /// out may be silent before the others send what it has in flight, such as "2s"; never if absent).
    #[serde(default)]
    pub(crate) options: Option<BTreeMap<String, Setting>>,
}

/// A pair of interfaces of FAST multihoming, one at each end. Between them packets go the shortest way.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "multihomed_path")]
pub(crate) struct MultihomedPathKeys {
    /// The duplex link by which packets leave the node that sends.
    pub(crate) first: Name,
    /// The duplex link by which they arrive at the node that receives.
    pub(crate) last: Name,
}

/// What a flow of ns-2's SCTP has besides.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "sctp", transform = super::schema::part)]
pub(crate) struct SctpKeys {
    /// Least retransmission timeout: ns-2's `minRto_`; 1 s if absent.
    #[serde(default)]
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The interfaces by which both ends can be reached; one, by the shortest way, if absent.
    #[serde(default)]
    pub(crate) paths: Option<Vec<SctpPathKeys>>,
    /// What the application wants to have sent; `bulk` if absent.
    #[serde(default)]
    pub(crate) workload: Option<WorkloadKeys>,
    /// `chunk` (bytes with its header of 16), `streams`, `receive_buffer` and `ssthresh` (bytes), `window_floor` (packets), `delayed_sack`, `sack_delay`,
    /// `burst_limit`, `missing_reports`, `unordered`, `alternate` (`never`, `always`, `timeouts`), `dormant` (`hop`, `primary`, `last`),
    /// `path_errors_max`, `association_errors_max`, `heartbeat` (seconds, 0 for none), `primary` (a path, from 1).
    #[serde(default)]
    pub(crate) options: Option<BTreeMap<String, Setting>>,
}

/// A pair of interfaces of an association, one at each end. Between them packets go the shortest way.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "sctp_path")]
pub(crate) struct SctpPathKeys {
    /// The duplex link by which packets leave the node that sends.
    pub(crate) first: Name,
    /// The duplex link by which they arrive at the node that receives.
    pub(crate) last: Name,
    /// What the policy `loss_rate` takes for the share of packets that it loses; 0 if absent.
    #[serde(default)]
    pub(crate) loss_rate: Option<Probability>,
}

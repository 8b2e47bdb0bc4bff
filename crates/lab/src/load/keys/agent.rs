//! The additional keys of flows with ns-2's agents.

use anabranch_sim::Workload;
use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use super::options::{AgentOptionKeys, MultihomedOptionKeys};
use crate::load::part::PartKeys;
use crate::load::values::{Count, LawKeys, Name, Probability, Text};

/// The additional keys of a flow with a one-way TCP of ns-2.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "agent_with_{O}", transform = super::schema::part)]
pub(crate) struct AgentKeys<O = AgentOptionKeys> {
    /// The congestion law and its settings, for agents with a choice of laws.
    pub(crate) cc: Option<LawKeys>,
    /// The limit of packets in flight: ns-2's `window_`; 20 if absent.
    pub(crate) window: Option<Count>,
    /// The initial window in packets: ns-2's `windowInit_`; 2 if absent.
    pub(crate) initial_window: Option<Count>,
    /// The least retransmission timeout: ns-2's `minrto_`; 200 ms if absent.
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The receiver; `sack1` if absent and the agent reads selective acknowledgements, else `plain`.
    pub(crate) sink: Option<SinkKeys>,
    /// The data of the application; `bulk` if absent.
    pub(crate) workload: Option<PartKeys<Workload>>,
    /// What else a script sets on the agent.
    pub(crate) options: Option<O>,
}

/// The acknowledgements of a receiver of ns-2.
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

/// The additional keys of a flow of FAST multihoming.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "multihomed", transform = super::schema::part)]
pub(crate) struct MultihomedKeys {
    /// The congestion law of each path, and its settings.
    pub(crate) cc: Option<LawKeys>,
    /// The initial window of each path in packets: ns-2's `windowInit_`; 2 if absent.
    pub(crate) initial_window: Option<Count>,
    /// The least retransmission timeout: ns-2's `minrto_`; 200 ms if absent.
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The receive buffer shared by all paths; `16MiB` if absent.
    pub(crate) rbuf: Option<Text<Bytes>>,
    /// The interfaces of both ends, at most 8 pairs; one pair, by the shortest route, if absent.
    pub(crate) paths: Option<Vec<MultihomedPathKeys>>,
    /// The data of the application; `bulk` if absent.
    pub(crate) workload: Option<PartKeys<Workload>>,
    /// What else a script sets on the agent.
    pub(crate) options: Option<MultihomedOptionKeys>,
}

/// A pair of interfaces of FAST multihoming, one at each end. Between them packets take the shortest route.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "multihomed_path")]
pub(crate) struct MultihomedPathKeys {
    /// The duplex link by which packets leave the sending node.
    pub(crate) first: Name,
    /// The duplex link by which packets reach the receiving node.
    pub(crate) last: Name,
}

/// The additional keys of a flow of ns-2's SCTP.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "endpoint_with_{O}", transform = super::schema::part)]
pub(crate) struct SctpKeys<O> {
    /// The least retransmission timeout: ns-2's `minRto_`; 1 s if absent.
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The interfaces of both ends; one pair, by the shortest route, if absent.
    pub(crate) paths: Option<Vec<SctpPathKeys>>,
    /// The data of the application; `bulk` if absent.
    pub(crate) workload: Option<PartKeys<Workload>>,
    /// What else a script sets on the endpoint.
    pub(crate) options: Option<O>,
}

/// A pair of interfaces of an association, one at each end. Between them packets take the shortest route.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "sctp_path")]
pub(crate) struct SctpPathKeys {
    /// The duplex link by which packets leave the sending node.
    pub(crate) first: Name,
    /// The duplex link by which packets reach the receiving node.
    pub(crate) last: Name,
    /// The loss rate that the policy `loss_rate` assumes for it; 0 if absent.
    pub(crate) loss_rate: Option<Probability>,
}

//! The keys of a scenario file. Their comments are the reference: `docs/reference/scenario.md` and the JSON Schema are generated
//! from them.

mod agent;
mod change;
mod engine;
mod flow;
mod host;
mod link;
mod options;
mod route;
mod schema;
mod shapes;
mod traffic;

use schemars::JsonSchema;

pub(super) use agent::{AgentKeys, MultihomedKeys, MultihomedPathKeys, SctpKeys, SctpPathKeys, SinkKeys};
pub(super) use change::{DelayChangeKeys, RateChangeKeys, ReorderKeys, TraceKeys};
pub(super) use engine::{
    EngineKeys, FailoverKeys, FormKeys, LossDetectionKeys, PacingKeys, PathKeys, RepairKeys, SchedulerKeys,
    StreamBufferKeys,
};
pub(crate) use flow::FlowKeys;
pub(super) use flow::TransportKeys;
pub(crate) use host::HostKeys;
pub(super) use host::{ReadsKeys, StampsKeys};
pub(crate) use link::LinkKeys;
pub(super) use options::{
    AgentOptions, AlternateKeys, CmtOptionKeys, EndpointOptions, MFastOptionKeys, MultihomedOptionKeys,
    NewRenoOptionKeys, PolicyKeys, SctpOptionKeys,
};
pub(crate) use route::RouteKeys;
pub(crate) use shapes::TopologyKeys;
pub(super) use traffic::{CbrKeys, ClassKeys, OnOffKeys};

/// The arithmetic of time. It matters if two times are equal on paper, as in networks with round numbers. Experiments that are
/// compared with ns-2 packet by packet use `ns2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "clock")]
pub(crate) enum ClockKeys {
    /// Whole picoseconds.
    #[default]
    Exact,
    /// Floating-point seconds as in ns-2: their last bits decide which of two packets is first. Agents of ns-2 and `on_off` flows
    /// draw from ns-2's one random stream, in the order of ns-2.
    Ns2,
}

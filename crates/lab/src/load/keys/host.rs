//! The keys of a host's delays.

use anabranch_sim::{DelaySpec, HoldSpec};
use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::part::PartKeys;
use crate::load::values::{Name, Text, WrittenOut};

/// The delays of the programs at a node. If absent, packets and deadlines are handled at once. Only for flows of `anabranch`; each
/// end of a flow is a program of its own.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct HostKeys {
    /// The node.
    pub(crate) node: Name,
    /// The number of copies, if more than one: `#` in names becomes 0, 1, and so on.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// Timers fire at multiples of this; when they are due if absent.
    #[serde(default)]
    pub(crate) timer: Text<SimSpan>,
    /// The batches of arrivals by the network card; none if absent.
    pub(crate) arrivals: Option<PartKeys<HoldSpec>>,
    /// The scheduler's delay of each wake-up; none if absent.
    pub(crate) delay: Option<PartKeys<DelaySpec>>,
    /// The order of reading and sending; `each` if absent.
    pub(crate) reads: Option<ReadsKeys>,
    /// The arrival time of packets; `kernel` if absent.
    pub(crate) stamps: Option<StampsKeys>,
}

/// The order of reading and sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "reads")]
pub(crate) enum ReadsKeys {
    /// Reads one packet, sends everything, and reads the next.
    Each,
    /// Reads everything, then sends.
    Batch,
}

/// The arrival time of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stamps")]
pub(crate) enum StampsKeys {
    /// The time when the card reported it: a kernel's timestamp.
    Kernel,
    /// The time when the program read it.
    Program,
}

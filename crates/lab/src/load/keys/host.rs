//! The keys of what wakes up programs.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use super::hold::{DelayKeys, HoldKeys};
use crate::load::values::{Name, Text, WrittenOut};

/// What wakes up the programs that send and receive at a node. Without it each is told of a packet and of a deadline at the instant of either.
/// Only flows of `anabranch` have it: each end of one is a program of its own.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct HostKeys {
    /// The node.
    pub(crate) node: Name,
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// Timers ring at multiples of this; when they are due if absent.
    #[serde(default)]
    pub(crate) timer: Text<SimSpan>,
    /// When the network card tells of packets that have come; of each at once if absent.
    #[serde(default)]
    pub(crate) arrivals: Option<HoldKeys>,
    /// How much later than it could a program runs, each time that it is woken up; not at all if absent.
    #[serde(default)]
    pub(crate) delay: Option<DelayKeys>,
    /// In which order a program reads and sends; `each` if absent.
    #[serde(default)]
    pub(crate) reads: Option<ReadsKeys>,
    /// When packets are said to have come; `kernel` if absent.
    #[serde(default)]
    pub(crate) stamps: Option<StampsKeys>,
}

/// In which order a program reads and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "reads")]
pub(crate) enum ReadsKeys {
    /// It reads one packet, sends what there is to send, and reads the next.
    Each,
    /// It reads all that has come, then it sends.
    Batch,
}

/// When a packet is said to have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stamps")]
pub(crate) enum StampsKeys {
    /// When the card told of it: a kernel's time stamp.
    Kernel,
    /// When the program read it.
    Program,
}

//! The keys of a change of routes.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::values::{Name, Text, WrittenOut};

/// A change of a route: from a time on, a node sends packets for another node by this link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "route")]
pub(crate) struct RouteKeys {
    /// The number of copies, if more than one: `#` in names becomes 0, 1, and so on.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The time of the change; the start if absent.
    #[serde(default)]
    pub(crate) at: Text<SimSpan>,
    /// The node whose route changes.
    pub(crate) node: Name,
    /// The destination of the packets.
    pub(crate) to: Name,
    /// The link by which packets leave.
    pub(crate) via: Name,
}

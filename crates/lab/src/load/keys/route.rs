//! The keys of a change of routes.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::values::{Name, Text, WrittenOut};

/// From some time on, packets for a node leave another node by a given link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "route")]
pub(crate) struct RouteKeys {
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// From when on; from the start if absent.
    #[serde(default)]
    pub(crate) at: Text<SimSpan>,
    /// The node that they leave.
    pub(crate) node: Name,
    /// The node that they are for.
    pub(crate) to: Name,
    /// The link that they leave by.
    pub(crate) via: Name,
}

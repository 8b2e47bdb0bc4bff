//! The additional keys of `cbr` and `on_off`, and those of classes.

use anabranch_units::{Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Name, Text};

/// The additional keys of a flow at a constant rate.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "cbr", transform = super::schema::part)]
pub(crate) struct CbrKeys {
    /// The rate in bits per second.
    pub(crate) rate: Text<Rate>,
}

/// The additional keys of a flow of bursts.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "on_off", transform = super::schema::part)]
pub(crate) struct OnOffKeys {
    /// The rate of the bursts in bits per second.
    pub(crate) rate: Text<Rate>,
    /// The mean length of a burst.
    pub(crate) on: Text<SimSpan>,
    /// The mean length of a silence.
    pub(crate) off: Text<SimSpan>,
}

/// The class of a flow: its flows arrive one after the other, and the gauges of `class.<name>` count their messages together. Only
/// with `anabranch`, for workloads that end, on at most one stream.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "class")]
pub(crate) struct ClassKeys {
    /// Its name.
    pub(crate) name: Name,
    /// The time from one flow of the class to the next, in the order of the file, from `start` on; all at once if absent.
    pub(crate) every: Option<Text<SimSpan>>,
    /// The mean of that time if it is random: Poisson arrivals. The first flow, too, arrives such a time after `start`.
    pub(crate) every_mean: Option<Text<SimSpan>>,
}

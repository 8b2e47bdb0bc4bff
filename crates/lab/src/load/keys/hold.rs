//! The keys of what holds packets and programs back.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::values::Text;

/// When what waits is let out, all of it together and in its order: frames that a radio sends together, packets that a network card
/// reports together.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "hold", tag = "kind")]
pub(crate) enum HoldKeys {
    /// At all multiples of a time, counted from the start of the scenario.
    Grid {
        /// From one release to the next.
        every: Text<SimSpan>,
    },
    /// So long after the first that waits.
    Gather {
        /// How long it waits.
        span: Text<SimSpan>,
    },
    /// At random: the times from one release to the next are exponential.
    Exponential {
        /// Their mean.
        mean: Text<SimSpan>,
    },
    /// At random: the times from one release to the next are uniform, from nothing to the longest.
    Uniform {
        /// The longest.
        most: Text<SimSpan>,
    },
    /// At once, but for stalls at random, in which all waits: a machine that has other things to do, a radio that looks for another channel.
    Stalls {
        /// From the end of one to the next, on average; the times are exponential.
        every: Text<SimSpan>,
        /// How long the longest is; uniform from nothing to this.
        most: Text<SimSpan>,
    },
}

/// How much later than it could something happens.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "delay", tag = "kind")]
pub(crate) enum DelayKeys {
    /// Always by the same time.
    Constant {
        /// How long.
        span: Text<SimSpan>,
    },
    /// By an exponential time.
    Exponential {
        /// Its mean.
        mean: Text<SimSpan>,
    },
    /// By a uniform time, from nothing to the longest.
    Uniform {
        /// The longest.
        most: Text<SimSpan>,
    },
}

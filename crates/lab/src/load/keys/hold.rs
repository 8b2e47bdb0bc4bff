//! The keys of holds and delays of packets and programs.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use crate::load::values::Text;

/// The release of waiting packets, all together and in order: frames that a radio sends together, packets that a network card
/// reports together.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "hold", tag = "kind")]
pub(crate) enum HoldKeys {
    /// At all multiples of a time, counted from the start of the scenario. The name `slotted` means the same.
    Grid {
        /// The interval between releases.
        every: Text<SimSpan>,
    },
    /// This long after the first waiting packet.
    Gather {
        /// The waiting time of the first packet.
        span: Text<SimSpan>,
    },
    /// At random, with exponential intervals between releases. The name `poisson` means the same.
    Exponential {
        /// The mean of the intervals.
        mean: Text<SimSpan>,
    },
    /// At random, with uniform intervals between releases, from zero to the longest.
    Uniform {
        /// The upper limit.
        most: Text<SimSpan>,
    },
    /// At once, except during random stalls: a machine with other work, a radio that scans other channels.
    Stalls {
        /// The mean time from the end of a stall to the next; exponential.
        every: Text<SimSpan>,
        /// The longest stall; uniform from zero to this.
        most: Text<SimSpan>,
    },
}

/// A delay, constant or random.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "delay", tag = "kind")]
pub(crate) enum DelayKeys {
    /// A constant delay.
    Constant {
        /// The length of the delay.
        span: Text<SimSpan>,
    },
    /// An exponential delay.
    Exponential {
        /// The mean of the delay.
        mean: Text<SimSpan>,
    },
    /// A uniform delay, from zero to the longest.
    Uniform {
        /// The upper limit.
        most: Text<SimSpan>,
    },
}

//! The settings of `cc`, for the reference.

use anabranch_ns2::config::{FastOptions, VegasOptions};

use super::agent::{HOLES, RTTS, SENDS};
use super::fast::FAST_LAWS;

/// The settings of `cc` for each transport, as a table for the reference.
pub(crate) fn laws_markdown() -> String {
    let words = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let VegasOptions { alpha, beta, gamma } = VegasOptions::default();
    format!(
        "| transport | `name` | parameters |\n| --- | --- | --- |\n\
         | `anabranch` | any: `anabranch cc list` | what `anabranch cc show NAME` lists |\n\
         | `anabranch` | none, but `plugin`: a WASM module | what the module declares; `docs/own-controllers.md` |\n\
         | `ns2/reno`, `ns2/newreno`, `ns2/sack`, `ns2/fack`, `ns2/fs` | `reno`; `newreno` of the second | |\n\
         | `ns2/vegas` | `vegas` | `alpha` ({alpha}), `beta` ({beta}), `gamma` ({gamma}): whole packets |\n\
         | `ns2/linux` | `linux` | |\n\
         | `ns2/composite` | `composite` | `holes` ({}), `rtt` ({}), `send` ({}): the first is the default |\n\
         | `ns2/fast`, `ns2/mfast`, `ns2/fast-mh` | {} | {}; what they mean and may be: `anabranch cc show fast` |\n",
        alternatives(&HOLES),
        alternatives(&RTTS),
        alternatives(&SENDS),
        words(&FAST_LAWS),
        words(&FastOptions::PARAMETERS),
    )
}

fn alternatives<T>(options: &[(&str, T)]) -> String {
    options.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

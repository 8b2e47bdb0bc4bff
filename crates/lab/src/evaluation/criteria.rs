//! The criteria of RFC 9743, from `criteria.toml`.

use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::document::Document;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Criterion {
    /// The section, such as `5.1.4`; the `item` of its claims.
    pub(super) section: String,
    pub(super) title: String,
    pub(super) asks: String,
    /// The sentence for a law that meets it.
    pub(super) met: Option<String>,
    /// Why no simulation can judge it.
    pub(super) not_judged: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    criterion: Vec<Criterion>,
}

/// All criteria in the order of the sections.
pub(super) fn criteria() -> Result<Vec<Criterion>, Diagnostic> {
    Document::parse("criteria.toml", include_str!("criteria.toml"))?.decode::<Keys>().map(|keys| keys.criterion)
}

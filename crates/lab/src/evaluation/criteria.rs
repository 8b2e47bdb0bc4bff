//! What each section of RFC 9743 asks, as `criteria.toml` has it.

use serde::Deserialize;

use crate::diagnostic::Diagnostic;
use crate::document::Document;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Criterion {
    /// `5.1.4`: what claims name as their `item`.
    pub(super) section: String,
    pub(super) title: String,
    pub(super) asks: String,
    /// What is said of a law that meets it.
    #[serde(default)]
    pub(super) met: Option<String>,
    /// Why nothing here can judge it.
    #[serde(default)]
    pub(super) not_judged: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    criterion: Vec<Criterion>,
}

/// All of them, in the order of the sections.
pub(super) fn criteria() -> Result<Vec<Criterion>, Diagnostic> {
    Document::parse("criteria.toml", include_str!("criteria.toml"))?.decode::<Keys>().map(|keys| keys.criterion)
}

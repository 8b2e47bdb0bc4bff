//! What other documents list for evaluations, and where it is judged, as `coverage.toml` has it.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::document::Document;

/// An entry of a document's list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// `RFC 5166`, or `tcpeval` for the Common TCP Evaluation Suite.
    pub document: String,
    /// What it lists, in our words, with its section if it has one.
    pub asks: String,
    /// How it is measured here, and what is not.
    pub measured: String,
    /// Sections of RFC 9743 under which it is judged; none if it is not covered.
    pub criteria: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    entry: Vec<Coverage>,
}

/// All entries, document by document.
pub(super) fn coverage() -> Result<Vec<Coverage>, Diagnostic> {
    Document::parse("coverage.toml", include_str!("coverage.toml"))?.decode::<Keys>().map(|keys| keys.entry)
}

//! The metrics and scenarios that other documents list, with the criteria that cover them, from `coverage.toml`.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::document::Document;

/// An entry of a document's list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// `RFC 5166`, or `tcpeval` for the Common TCP Evaluation Suite.
    pub document: String,
    /// The metric or scenario in our words, with its section if it has one.
    pub asks: String,
    /// How it is measured here, and which part is not.
    pub measured: String,
    /// The sections of RFC 9743 that judge it; empty if it is not covered.
    pub criteria: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    entry: Vec<Coverage>,
}

/// All entries in the order of the documents.
pub(super) fn coverage() -> Result<Vec<Coverage>, Diagnostic> {
    Document::parse("coverage.toml", include_str!("coverage.toml"))?.decode::<Keys>().map(|keys| keys.entry)
}

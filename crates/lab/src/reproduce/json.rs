//! An outcome as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::{JudgedClaim, Outcome, Paper, Total, Under};

/// The document: the outcome, its totals by source, and all its claims in one list.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    totals: Vec<Total>,
    claims: Vec<ListedClaim<'a>>,
}

#[derive(Serialize)]
struct ListedClaim<'a> {
    paper: &'a str,
    scenario: &'a str,
    under: Under,
    #[serde(flatten)]
    claim: &'a JudgedClaim,
}

impl Outcome {
    /// Writes everything as one JSON document.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut claims = Vec::new();
        for Paper { key, experiments, .. } in &self.papers {
            for experiment in experiments {
                for claim in &experiment.claims {
                    claims.push(ListedClaim { paper: key, scenario: &experiment.file, under: claim.under(), claim });
                }
            }
        }
        serde_json::to_writer_pretty(&mut *out, &Document { outcome: self, totals: self.totals(), claims })?;
        writeln!(out)
    }
}

//! An outcome as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::{JudgedClaim, Outcome, Paper};

/// What is written: the outcome, and all its claims in one list for those who look for a number.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    claims: Vec<ListedClaim<'a>>,
}

#[derive(Serialize)]
struct ListedClaim<'a> {
    paper: &'a str,
    scenario: &'a str,
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
                let listed = |claim| ListedClaim { paper: key, scenario: &experiment.file, claim };
                claims.extend(experiment.claims.iter().map(listed));
            }
        }
        serde_json::to_writer_pretty(&mut *out, &Document { outcome: self, claims })?;
        writeln!(out)
    }
}

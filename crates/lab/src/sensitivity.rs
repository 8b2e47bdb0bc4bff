//! *Coarse* claims: they are within their band, and no reasonable error of the simulation moves them out of it.
//!
//! A sensitivity run (`cargo xtask sensitivity`, [`shake`](crate::reproduce::shake)) changes alpha, queues, window and error rate by
//! a fifth, one at a time. It writes the claims of the papers that stay reproduced with all changes into [`FILE`]. Reports mark
//! these claims. A number that can no longer be measured is not reproduced. A claim whose runs have none of these inputs is not coarse.
//!
//! ```toml
//! [[coarse]]
//! experiment = "ctcp-2019/table2"   # its paper and the name of its file
//! title = "Table 2: ..."            # as in the experiment; so are row and column
//! row = "SACK"
//! column = "Error=0"                # empty if absent
//! ```
//!
//! If two claims of an experiment have the same title, row and column, they are coarse only if both are.
//!
//! An entry without a claim is an error: the claim was renamed or removed, and the present claim was not tested.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::diagnostic::{Diagnostic, Fault};
use crate::document::{Document, Path};
use crate::experiment::{Claim, Experiment};

/// The file, in the folder of the experiments.
pub const FILE: &str = "generated/sensitivity.toml";

/// The coarse claims of a sensitivity run.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    document: Document,
    entries: Vec<Entry>,
}

/// The name of a coarse claim, as the file lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The experiment, as [`Experiment::id`] gives it.
    pub experiment: String,
    /// The title of the claim.
    pub title: String,
    /// The row of the claim.
    pub row: String,
    /// The column of the claim.
    #[serde(default)]
    pub column: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    coarse: Vec<Entry>,
}

impl Entry {
    /// The entry of a claim.
    pub fn of(experiment: &Experiment, claim: &Claim) -> Self {
        let Claim { title, row, column, .. } = claim;
        Self { experiment: experiment.id(), title: title.clone(), row: row.clone(), column: column.clone() }
    }

    fn names(&self, claim: &Claim) -> bool {
        (&self.title, &self.row, &self.column) == (&claim.title, &claim.row, &claim.column)
    }
}

impl Sensitivity {
    /// Reads the file.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(document: Document) -> Result<Self, Diagnostic> {
        let Keys { coarse: entries } = document.decode()?;
        Ok(Self { document, entries })
    }

    /// Marks the claims that are coarse. Entries of other experiments are ignored.
    ///
    /// # Errors
    /// If an entry names a claim that its experiment does not have.
    pub fn mark(&self, experiments: &mut [Experiment]) -> Result<(), Diagnostic> {
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(experiment) = experiments.iter_mut().find(|experiment| experiment.id() == entry.experiment) else {
                continue;
            };
            let mut is_found = false;
            for claim in experiment.claims.iter_mut().filter(|claim| entry.names(claim)) {
                (claim.is_coarse, is_found) = (true, true);
            }
            if !is_found {
                let Entry { experiment, title, row, column } = entry;
                let fault = Fault::new(format!("{experiment} has no claim `{title}`, `{row}`, `{column}`"));
                let fault = fault.remedy("run `cargo xtask sensitivity` again, or remove the entry");
                return Err(self.document.diagnose(&Path::default().key("coarse").index(index), fault));
            }
        }
        Ok(())
    }
}

/// The text of the file, sorted: one set of claims gives one text.
pub fn text(entries: impl IntoIterator<Item = Entry>) -> String {
    let mut entries: Vec<Entry> = entries.into_iter().collect();
    entries.sort();
    entries.dedup();
    let mut text =
        "# Which claims keep their verdict whatever is changed by a fifth? Written by `cargo xtask sensitivity`.\n"
            .to_owned();
    for Entry { experiment, title, row, column } in &entries {
        // TOML reads the escapes of JSON strings in the same way.
        let quoted = |word: &str| serde_json::Value::from(word).to_string();
        let _ = write!(
            text,
            "\n[[coarse]]\nexperiment = {}\ntitle = {}\nrow = {}\n",
            quoted(experiment),
            quoted(title),
            quoted(row)
        );
        if !column.is_empty() {
            let _ = writeln!(text, "column = {}", quoted(column));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = r#"# Is it coarse?
duration = "1s"
link = [{ id = "a", from = "n0", to = "n1", rate = "1Mbit/s", delay = "1ms" }]
flow = [{ id = "f", from = "n0", to = "n1", transport = "ns2/sack" }]
[experiment]
paper = "test-2000"
[[axis]]
name = "x"
[axis.values]
'a \ and a "' = {}
[measure]
sent = "flow.f.max_seq"
lost = "flow.f.dropped_packets"
[[table]]
item = "table1"
title = 'A "table"'
cite = "T"
unit = "packets"
band = ">= 0"
columns = ["sent", "lost"]
[table.rows]
'a \ and a "' = [1, 2]
"#;

    fn experiments() -> Vec<Experiment> {
        vec![Experiment::parse(Document::parse("test-2000/one.toml", EXPERIMENT).unwrap()).unwrap()]
    }

    fn read(text: &str) -> Sensitivity {
        Sensitivity::parse(Document::parse(FILE, text).unwrap()).unwrap()
    }

    #[test]
    fn sensitivity_file_marks_its_claims() {
        let mut experiments = experiments();
        let written = text([Entry::of(&experiments[0], &experiments[0].claims[1])]);
        read(&written).mark(&mut experiments).unwrap();
        assert_eq!(experiments[0].claims.iter().map(|claim| claim.is_coarse).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn entry_without_claim_is_error_if_experiment_exists() {
        let entry =
            Entry { experiment: "test-2000/one".into(), title: "T".into(), row: "r".into(), column: String::new() };
        let error = read(&text([entry.clone()])).mark(&mut experiments()).unwrap_err().to_string();
        assert_eq!(
            error,
            "generated/sensitivity.toml:3:1: test-2000/one has no claim `T`, `r`, ``; run `cargo xtask sensitivity` again, or remove the entry"
        );
        read(&text([Entry { experiment: "test-2000/two".into(), ..entry }])).mark(&mut experiments()).unwrap();
    }
}

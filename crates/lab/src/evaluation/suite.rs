//! The experiments. The law under test replaces `$LAW`, and a rival replaces `$RIVAL`. A file with `$RIVAL` is one experiment for each rival.
//! If `$LAW` or `$RIVAL` is the `name` of a table, the table also gets the settings of the law, and the key `plugin` in place of `name` for a law that is
//! not in the registry.
//!
//! A report shows the text that was run. It can be saved, changed and run again.

use super::contender::escaped;
use super::{Contender, Request};
use crate::diagnostic::{Diagnostic, Fault};
use crate::document::Document;
use crate::experiment::Experiment;
use crate::own::Given;

/// One file of the suite.
struct File {
    name: &'static str,
    text: &'static str,
    /// The columns that a quick run leaves out, with their figures.
    not_quick: &'static [&'static str],
}

macro_rules! file {
    ($name:literal, $not_quick:expr) => {
        File { name: $name, text: include_str!(concat!("suite/", $name, ".toml")), not_quick: &$not_quick }
    };
}

/// The files in the order of a report.
const FILES: [File; 24] = [
    file!("alone", ["0.25", "0.5", "2", "4"]),
    file!("sharing", ["1"]),
    file!("newcomer", ["4"]),
    file!("distances", ["0.25"]),
    file!("lot", []),
    file!("short", []),
    file!("beside", ["0.1", "0.5", "2", "4"]),
    file!("adoption", []),
    file!("realtime", ["0.25"]),
    file!("collapse", []),
    file!("crowd", []),
    file!("gigabit", ["0.05"]),
    file!("radio", ["0.1 % lost", "bursts lost", "frames of 4 ms", "hand-overs"]),
    file!("aqm", ["CoDel, marks", "RED", "PIE", "DualPI2"]),
    file!("tunnel", ["RED, loses marks", "CoDel, drops for marks"]),
    file!("policer", ["150 kB"]),
    file!("far", ["0.01 %"]),
    file!("reordering", []),
    file!("disorder", ["2 % twice"]),
    file!("onset", ["4"]),
    file!("reroutes", ["1.3", "4"]),
    file!("paths", []),
    file!("deceit", []),
    file!("incast", []),
];

/// The mark of the law under test.
const LAW: &str = "$LAW";
/// The mark of a rival.
const RIVAL: &str = "$RIVAL";

pub(super) fn experiments(request: &Request) -> Result<Vec<Experiment>, Diagnostic> {
    let mut experiments = Vec::new();
    let given = given([&request.law].into_iter().chain(&request.against))?;
    for file in &FILES {
        let text = put(file.text, LAW, &request.law);
        if !text.contains(RIVAL) {
            experiments.push(experiment(file, file.name, &text, request.quick, &given)?);
            continue;
        }
        for rival in &request.against {
            let (name, text) = (format!("{}-{}", file.name, rival.slug()), put(&text, RIVAL, rival));
            experiments.push(experiment(file, &name, &text, request.quick, &given)?);
        }
    }
    Ok(experiments)
}

/// The text with a law in place of its mark.
fn put(text: &str, mark: &str, law: &Contender) -> String {
    text.replace(&format!("{{ name = \"{mark}\" }}"), &law.table()).replace(mark, &escaped(&law.label()))
}

/// The laws that the registry does not have.
///
/// # Errors
/// If two different laws have one name.
pub(crate) fn given<'a>(laws: impl IntoIterator<Item = &'a Contender>) -> Result<Given, Diagnostic> {
    let mut given = Given::new();
    for (name, own) in laws.into_iter().filter_map(Contender::own) {
        if let Some(other) = given.insert(name.clone(), own.clone())
            && other.digest() != own.digest()
        {
            let fault = Fault::new(format!("two different laws are called `{name}`"));
            return Err(fault.remedy("rename one of them").about("eval"));
        }
    }
    Ok(given)
}

fn experiment(file: &File, name: &str, text: &str, is_quick: bool, given: &Given) -> Result<Experiment, Diagnostic> {
    let nothing = &mut |_: &str| Err("no other file is read here".to_owned());
    let document = Document::parse_given(&format!("eval/{name}.toml"), text, nothing, given)?;
    let mut experiment = Experiment::parse(document)?;
    if is_quick {
        experiment.leave_out(file.not_quick);
    }
    Ok(experiment)
}

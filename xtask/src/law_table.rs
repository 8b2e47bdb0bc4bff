//! `cargo xtask law-table REPORT`: writes the outcome of `anabranch reproduce law --json` into the table of docs/law.md.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::run::{self, say};

/// The reports to write.
#[derive(Args)]
pub(crate) struct Options {
    /// The output of `anabranch reproduce law --json`.
    report: PathBuf,
}

const DOCUMENT: &str = "docs/law.md";
const BEGIN: &str = "<!-- table: cargo xtask law-table -->";
const END: &str = "<!-- end of table -->";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let path = run::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let (head, rest) = text.split_once(BEGIN).ok_or_else(|| format!("{DOCUMENT}: there is no line {BEGIN}"))?;
    let (_, tail) = rest.split_once(END).ok_or_else(|| format!("{DOCUMENT}: there is no line {END}"))?;
    let rows = rows(&options.report)?;
    let lines: Vec<String> = rows.iter().map(Row::line).collect();
    let table = format!("| what | unit | measured | aim | |\n| --- | --- | --- | --- | --- |\n{}", lines.join("\n"));
    fs::write(&path, format!("{head}{BEGIN}\n{table}\n{END}{tail}")).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let misses = rows.iter().filter(|row| !row.holds).count();
    say(&format!("{DOCUMENT}: {} figures, of which {misses} miss their aim", rows.len()));
    Ok(())
}

/// One claim.
struct Row {
    what: String,
    unit: String,
    value: String,
    aim: String,
    holds: bool,
}

impl Row {
    fn line(&self) -> String {
        let Self { what, unit, value, aim, holds } = self;
        let verdict = if *holds { "" } else { "misses" };
        format!("| {what} | {unit} | {value} | {aim} | {verdict} |")
    }
}

/// The claims of a report, in its order.
fn rows(report: &PathBuf) -> Result<Vec<Row>, String> {
    let name = report.display();
    let text = fs::read_to_string(report).map_err(|error| format!("{name}: {error}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    let papers = value["papers"].as_array().into_iter().flatten();
    let experiments = papers.flat_map(|paper| paper["experiments"].as_array().into_iter().flatten());
    let claims = experiments.flat_map(|experiment| experiment["claims"].as_array().into_iter().flatten());
    let rows: Vec<Row> = claims.filter_map(row).collect();
    if rows.is_empty() {
        Err(format!("{name}: it has no claims; it is to be what `anabranch reproduce law --json` prints"))
    } else {
        Ok(rows)
    }
}

fn row(claim: &Value) -> Option<Row> {
    let text = |key: &str| claim[key].as_str().unwrap_or_default();
    let value = claim["measured"]["ours"]["value"].as_f64()?;
    let (low, high) = (claim["band"]["low"].as_f64(), claim["band"]["high"].as_f64());
    let aim = match (low, high) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => String::new(),
    };
    let what = [text("title"), text("row"), text("column")].into_iter().filter(|part| !part.is_empty());
    Some(Row {
        what: what.collect::<Vec<_>>().join(", "),
        unit: text("unit").to_owned(),
        value: rounded(value),
        aim,
        holds: text("verdict") == "reproduced",
    })
}

/// A number with three digits.
fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.5}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_line() {
        let claim = serde_json::json!({
            "title": "Beside one", "row": "CUBIC", "column": "1", "unit": "Mbit/s", "verdict": "deviates",
            "measured": { "ours": { "value": 12.345 } }, "band": { "kind": "mean", "low": 15.0, "high": 30.0 },
        });
        let line = row(&claim).map(|row| row.line());
        assert_eq!(line.as_deref(), Some("| Beside one, CUBIC, 1 | Mbit/s | 12.3 | 15 to 30 | misses |"));
    }
}

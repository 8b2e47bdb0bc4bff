//! `cargo xtask law-table REPORT`: writes the outcome of `anabranch reproduce law --json` into the table of docs/law.md.

use std::collections::BTreeMap;
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
    /// The same output for an earlier law, for the column `before`; without it that column stays.
    #[arg(long)]
    before: Option<PathBuf>,
}

const DOCUMENT: &str = "docs/law.md";
const BEGIN: &str = "<!-- table: cargo xtask law-table -->";
const END: &str = "<!-- end of table -->";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let path = run::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let (head, rest) = text.split_once(BEGIN).ok_or_else(|| format!("{DOCUMENT}: there is no line {BEGIN}"))?;
    let (old, tail) = rest.split_once(END).ok_or_else(|| format!("{DOCUMENT}: there is no line {END}"))?;
    let before = match &options.before {
        Some(report) => rows(report)?.into_iter().map(|row| (row.what, row.value)).collect(),
        None => kept(old),
    };
    let rows = rows(&options.report)?;
    let lines: Vec<String> = rows.iter().map(|row| row.line(&before)).collect();
    let table =
        format!("| what | unit | before | now | aim | |\n| --- | --- | --- | --- | --- | --- |\n{}", lines.join("\n"));
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
    fn line(&self, before: &BTreeMap<String, String>) -> String {
        let Self { what, unit, value, aim, holds } = self;
        let before = before.get(what).map_or("", String::as_str);
        let verdict = if *holds { "" } else { "misses" };
        format!("| {what} | {unit} | {before} | {value} | {aim} | {verdict} |")
    }
}

/// The column `before` of a table, by the name of the row.
fn kept(table: &str) -> BTreeMap<String, String> {
    let cells = table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    cells.filter(|cells| cells.len() > 4).map(|cells| (cells[1].to_owned(), cells[3].to_owned())).collect()
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
    fn a_claim_is_a_line_and_keeps_what_was_before() {
        let claim = serde_json::json!({
            "title": "Beside one", "row": "CUBIC", "column": "1", "unit": "Mbit/s", "verdict": "deviates",
            "measured": { "ours": { "value": 12.345 } }, "band": { "kind": "mean", "low": 15.0, "high": 30.0 },
        });
        let before = kept("| Beside one, CUBIC, 1 | Mbit/s | 6.1 | 7 | 15 to 30 | misses |");
        let line = row(&claim).map(|row| row.line(&before));
        assert_eq!(line.as_deref(), Some("| Beside one, CUBIC, 1 | Mbit/s | 6.1 | 12.3 | 15 to 30 | misses |"));
    }
}

//! `cargo xtask field`: the default law on random networks, as a regression test and as the table of docs/law.md.
//!
//! Both run `anabranch eval --field` of the release. `experiments/field/bounds.csv` has a bound for each figure of a small field, a margin off the figure
//! that the law had when it was recorded: `--record` writes it. `experiments/field/table.csv` has the figures of a large field: `--table` writes it, and
//! `cargo xtask generate` makes the table from it. `experiments/field/attacks/` has scenarios that `eval --attack` found (`--attack` finds them again), and
//! `attacks.csv` a bound for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use clap::Args;
use serde_json::Value;

use crate::run::{self, say};

/// What to do with the figures.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Write the bounds from the figures that the law has now, in place of judging it.
    #[arg(long)]
    record: bool,
    /// Search again for the scenarios in which the law does worst, store them, and write the bounds; three minutes of processor time.
    #[arg(long, conflicts_with_all = ["record", "table"])]
    attack: bool,
    /// Run the large field and write the table of docs/law.md; some minutes.
    #[arg(long, conflicts_with = "record")]
    table: bool,
    /// The draws of each family of the table.
    #[arg(long, default_value_t = DRAWS, requires = "table")]
    draws: u32,
    /// The seed of the table's draws.
    #[arg(long, default_value_t = SEED, requires = "table")]
    seed: u64,
}

/// Draws and seed of the table.
const DRAWS: u32 = 40;
const SEED: u64 = 77;

/// The small field, which takes half a minute of processor time with the rival's runs.
const SMALL: [&str; 6] = ["--against", "cubic", "--draws", "8", "--seed", "5"];

/// What finds the stored scenarios: as many for each aim.
const ATTACK: [&str; 8] = ["--cc", "anabranch", "--against", "cubic,bbr,reno", "--steps", "64", "--seed", "3"];

/// The stored scenarios, and the bound of the figure that each was found by.
const ATTACKS: &str = "experiments/field/attacks";
const ATTACK_BOUNDS: &str = "experiments/field/attacks.csv";

const BOUNDS: &str = "experiments/field/bounds.csv";
const TABLE: &str = "experiments/field/table.csv";
pub(crate) const DOCUMENT: &str = "docs/law.md";
const BEGIN: &str = "<!-- table: cargo xtask field --table -->";
const END: &str = "<!-- end of field -->";

/// The columns of the table, and the other laws that they run beside.
const LAWS: [&str; 4] = ["anabranch", "cubic", "bbr", "copa"];
const BESIDE: &str = "cubic,bbr,copa,reno";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.table {
        return write_table(options);
    }
    if options.attack {
        let arguments = [&["eval", "--attack", "--out", ATTACKS], &ATTACK[..]].concat();
        run::run(&run::anabranch()?, &arguments, &[])?;
        return record(ATTACK_BOUNDS, &attacks()?.iter().collect::<Vec<_>>());
    }
    let attacks = attacks()?;
    let figures = figures(&SMALL)?;
    let ours: Vec<&Figure> = figures.iter().filter(|figure| figure.law == LAWS[0]).collect();
    let found: Vec<&Figure> = attacks.iter().collect();
    if options.record {
        record(BOUNDS, &ours)?;
        return record(ATTACK_BOUNDS, &found);
    }
    let misses = [judge(BOUNDS, &ours)?, judge(ATTACK_BOUNDS, &found)?].concat();
    if misses.is_empty() {
        say(&format!("{} figures on random networks are within their bounds", ours.len() + found.len()));
        return Ok(());
    }
    Err(format!(
        "the law is worse on random networks than it was:\n  {}\n`anabranch eval --field --cc {} {}` shows the draws, `anabranch sim run {ATTACKS}/NAME.toml` \
         a scenario that an attack found. If it is meant, `cargo xtask field --record` records the new figures",
        misses.join("\n  "),
        LAWS[0],
        SMALL.join(" ")
    ))
}

/// Writes the bounds of these figures.
fn record(name: &str, figures: &[&Figure]) -> Result<(), String> {
    let mut text = "family,figure,bound,value,recorded\n".to_owned();
    for figure in figures {
        let (side, bound) = figure.bound();
        let _ = writeln!(text, "{},{},{side},{bound:.3},{:.3}", figure.family, figure.name, figure.value);
    }
    fs::write(run::root().join(name), text).map_err(|error| format!("{name}: {error}"))?;
    say(&format!("{name}: {} bounds", figures.len()));
    Ok(())
}

/// Compares the figures with their bounds; returns what misses.
fn judge(name: &str, figures: &[&Figure]) -> Result<Vec<String>, String> {
    let bounds = read(name)?;
    let mut misses = Vec::new();
    for row in bounds.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [family, figure, side, bound, recorded] = cells[..] else {
            return Err(format!("{name}: five cells make a row, not {row}"));
        };
        let bound: f64 = bound.parse().map_err(|_| format!("{name}: {bound} is no number"))?;
        let found = figures.iter().find(|found| found.family == family && found.name == figure);
        let value = found.ok_or_else(|| format!("{name}: there is no {figure} of {family}"))?.value;
        let holds = if side == "at least" { value >= bound } else { value <= bound };
        if !holds {
            misses.push(format!("{family}: {figure} is {value:.3}, {side} {bound} wanted; it was {recorded}"));
        }
    }
    Ok(misses)
}

/// Runs the stored scenarios; the figure of each is the one that its first line names.
fn attacks() -> Result<Vec<Figure>, String> {
    let failed = |error: std::io::Error| format!("{ATTACKS}: {error}");
    let entries = fs::read_dir(run::root().join(ATTACKS)).map_err(failed)?;
    let mut names: Vec<String> = entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    names.sort();
    let attack = |file: String| {
        let path = format!("{ATTACKS}/{file}");
        let text = read(&path)?;
        let head = text.lines().next().unwrap_or_default();
        let name = head.split(' ').nth(1).ok_or_else(|| format!("{path}: the first line names no figure"))?;
        let run = output(&["sim", "run", "--json", &path])?;
        let measures = run["measures"].as_array().cloned().unwrap_or_default();
        let measure = measures.iter().find(|measure| measure["name"] == name);
        let value = measure
            .and_then(|measure| measure["value"].as_f64())
            .ok_or_else(|| format!("{path}: {name} has no value"))?;
        let (family, name, unit) = (file.trim_end_matches(".toml").to_owned(), name.to_owned(), String::new());
        Ok(Figure {
            family,
            law: String::new(),
            name,
            unit,
            is_high_better: head.contains("(high is good)"),
            value,
            margin: Margin::Share,
        })
    };
    names.into_iter().map(attack).collect()
}

/// A statistic of a law on a family.
struct Figure {
    family: String,
    law: String,
    /// The figure and its statistic: `used p5`.
    name: String,
    unit: String,
    is_high_better: bool,
    value: f64,
    margin: Margin,
}

/// How far off a bound lies.
enum Margin {
    /// So far that a change of a few draws does not miss it.
    Draws,
    /// A fifth: of one run.
    Share,
}

impl Figure {
    /// On which side of the bound it is to be, and the bound.
    fn bound(&self) -> (&'static str, f64) {
        let value = self.value;
        match (self.is_high_better, self.unit.is_empty()) {
            (true, _) if matches!(self.margin, Margin::Share) => ("at least", 0.8 * value),
            (false, _) if matches!(self.margin, Margin::Share) => ("at most", 1.2 * value),
            (true, _) => ("at least", (value - f64::max(0.05, 0.1 * value)).max(0.0)),
            (false, true) => ("at most", 1.15 * value),
            (false, false) => ("at most", 1.2 * value + 1.0),
        }
    }
}

/// Runs the command and returns the document that it prints.
fn output(arguments: &[&str]) -> Result<Value, String> {
    let program = run::anabranch()?;
    say(&format!("$ {program} {}", arguments.join(" ")));
    let output = Command::new(&program).args(arguments).current_dir(run::root()).output();
    let output =
        output.map_err(|error| format!("cannot start `{program}`, which `cargo build --release` makes: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{program}` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`{program}`: {error}"))
}

/// Runs a field and returns its figures.
fn figures(arguments: &[&str]) -> Result<Vec<Figure>, String> {
    let field = output(&[&["eval", "--field", "--json", "--cc", LAWS[0]], arguments].concat())?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut figures = Vec::new();
    for family in list(&field["families"]) {
        let kinds = list(&family["figures"]);
        for law in list(&family["laws"]) {
            for (column, value) in list(&family["columns"]).iter().zip(list(&law["values"])) {
                let kind = &kinds[column["figure"].as_u64().unwrap_or_default() as usize];
                let (name, is_share) = statistic(&column["statistic"]);
                figures.push(Figure {
                    family: text(&family["name"]),
                    law: text(&law["law"]),
                    name: format!("{} {name}", text(&kind["name"])),
                    unit: if is_share { String::new() } else { text(&kind["unit"]) },
                    is_high_better: is_share || kind["better"] == "high",
                    value: value.as_f64().unwrap_or(f64::NAN),
                    margin: Margin::Draws,
                });
            }
        }
    }
    Ok(figures)
}

/// The name of a statistic, and whether it is a share of the draws.
fn statistic(value: &Value) -> (String, bool) {
    if let Some(share) = value["quantile"].as_f64() {
        return (format!("p{:.0}", 100.0 * share), false);
    }
    match value["within"].as_array().map(Vec::as_slice) {
        Some([low, high]) => (format!("in {low} to {high}"), true),
        _ => ("mean".to_owned(), false),
    }
}

/// Runs the field of the table and writes its figures.
fn write_table(options: &Options) -> Result<(), String> {
    let (draws, seed) = (options.draws.to_string(), options.seed.to_string());
    let families = "alone,kind,beside,route";
    let arguments = ["--against", BESIDE, "--draws", &draws, "--seed", &seed, "--family", families];
    let figures = figures(&arguments)?;
    let mut text =
        format!("# anabranch eval --field --cc {} {}\nfamily,figure,unit,law,value\n", LAWS[0], arguments.join(" "));
    for figure in figures.iter().filter(|figure| LAWS.contains(&figure.law.as_str())) {
        let Figure { family, name, unit, law, value, .. } = figure;
        let _ = writeln!(text, "{family},{name},{unit},{law},{value:.4}");
    }
    fs::write(run::root().join(TABLE), text).map_err(|error| format!("{TABLE}: {error}"))?;
    table(false).map(|_| ())
}

/// Writes the table of docs/law.md, or checks it. Returns whether it is up to date.
pub(crate) fn table(check: bool) -> Result<bool, String> {
    let stored = read(TABLE)?;
    let text = read(DOCUMENT)?;
    let (head, rest) = text.split_once(BEGIN).ok_or_else(|| format!("{DOCUMENT}: there is no line {BEGIN}"))?;
    let (_, tail) = rest.split_once(END).ok_or_else(|| format!("{DOCUMENT}: there is no line {END}"))?;
    let new = format!("{head}{BEGIN}\n{}{END}{tail}", rows(&stored));
    if check {
        return Ok(new == text);
    }
    fs::write(run::root().join(DOCUMENT), new).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    Ok(true)
}

/// A row for each family and figure, a column for each law.
fn rows(stored: &str) -> String {
    let mut values: BTreeMap<(&str, &str, &str), &str> = BTreeMap::new();
    let mut order: Vec<(&str, &str, &str)> = Vec::new();
    for line in stored.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [family, name, unit, law, value] = cells[..] else { continue };
        if !order.contains(&(family, name, unit)) {
            order.push((family, name, unit));
        }
        values.insert((family, name, law), value);
    }
    let command = stored.lines().next().unwrap_or_default().trim_start_matches("# ");
    let mut text = format!("`{command}`:\n\n| family | figure |");
    LAWS.iter().for_each(|law| text += &format!(" {law} |"));
    text += &format!("\n| --- | --- |{}\n", " --- |".repeat(LAWS.len()));
    for (family, name, unit) in order {
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        text += &format!("| {family} | {name}{unit} |");
        for law in LAWS {
            let value: f64 = values.get(&(family, name, law)).and_then(|value| value.parse().ok()).unwrap_or(f64::NAN);
            text += &if unit.is_empty() { format!(" {value:.2} |") } else { format!(" {value:.1} |") };
        }
        text += "\n";
    }
    text
}

fn read(name: &str) -> Result<String, String> {
    fs::read_to_string(run::root().join(name)).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, is_high_better: bool) -> Figure {
        let text = str::to_owned;
        Figure {
            family: text("alone"),
            law: text("anabranch"),
            name: text("used p5"),
            unit: String::new(),
            is_high_better,
            value,
            margin: Margin::Draws,
        }
    }

    #[test]
    fn bound_lies_on_worse_side_of_figure() {
        let (side, bound) = figure(0.8, true).bound();
        assert!(side == "at least" && (bound - 0.72).abs() < 1e-12, "{side} {bound}");
        let (side, bound) = figure(2.0, false).bound();
        assert!(side == "at most" && (bound - 2.3).abs() < 1e-12, "{side} {bound}");
        let (side, bound) = Figure { margin: Margin::Share, ..figure(0.05, true) }.bound();
        assert!(side == "at least" && (bound - 0.04).abs() < 1e-12, "{side} {bound}");
    }

    #[test]
    fn rows_have_column_for_each_law() {
        let stored = "# command\nfamily,figure,unit,law,value\nalone,queue p50,ms,anabranch,3.71\nalone,queue p50,ms,cubic,1.53\nalone,queue p50,ms,bbr,1.5\nalone,queue p50,ms,copa,5.2\n";
        assert!(rows(stored).ends_with("| alone | queue p50, ms | 3.7 | 1.5 | 1.5 | 5.2 |\n"), "{}", rows(stored));
    }
}

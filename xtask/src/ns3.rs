//! `cargo xtask ns3`: compares our laws with ns-3's laws of the same names on the same networks.
//!
//! `xtask/ns3/dumbbell.cc` is compiled against Debian's `libns3-dev` and runs each case of `experiments/rivals/ns3.toml`. Its figures are in that
//! file, so that `anabranch reproduce` compares ours with them without ns-3; `--write` stores them there.

mod cells;
mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::parallel;
use anabranch_lab::reproduce::{self, JudgedClaim, Options as Runs};
use anabranch_lab::verdict::Verdict;
use clap::Args;
use serde_json::Value;

use self::cells::{Cell, Figures};
use crate::links::{json, output};
use crate::run::{self, say};

/// What to compare.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare only cases whose law or network contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Store what ns-3 measured in experiments/rivals/ns3.toml.
    #[arg(long)]
    write: bool,
}

/// The experiment that has the same cases and ns-3's figures.
const EXPERIMENT: &str = "experiments/rivals/ns3.toml";
const SOURCE: &str = "xtask/ns3/dumbbell.cc";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let program = compiled()?;
    let cells: Vec<Cell> = cells::all().filter(|cell| cell.contains(&options.only)).collect();
    if cells.is_empty() {
        return Err(format!("no law and no network is called `{}`", options.only));
    }
    say(&format!("ns-3 runs {} cases", cells.len()));
    let measured = cells.into_iter().map(|cell| Ok((cell, figures(&program, &cell)?)));
    let measured: Vec<(Cell, Figures)> = measured.collect::<Result<_, String>>()?;
    let path = run::root().join(EXPERIMENT);
    let stored = fs::read_to_string(&path).map_err(|error| format!("{EXPERIMENT}: {error}"))?;
    let fresh = record::written(&stored, &measured);
    if options.write {
        fs::write(&path, &fresh).map_err(|error| format!("{EXPERIMENT}: {error}"))?;
    }
    // Our figures are compared with the new ones of ns-3, whether these are stored or not.
    let experiment =
        Document::parse(EXPERIMENT, &fresh).and_then(Experiment::parse).map_err(|error| error.to_string())?;
    let runs = Runs { jobs: parallel::jobs_default(), seeds: None };
    let outcome = reproduce::reproduce(&[experiment], runs, |_, _| {}).map_err(|error| error.to_string())?;
    let shown = |claim: &&JudgedClaim| measured.iter().any(|(cell, _)| cell.is(&claim.row, &claim.column));
    let claims: Vec<&JudgedClaim> = outcome.claims().filter(shown).collect();
    say(&format!("{:<48}{:<16}{:<20}{:>8}{:>8}{:>7}  band", "what", "law", "network", "ns-3", "ours", "ratio"));
    claims.iter().for_each(|claim| say(&line(claim)));
    let deviate = claims.iter().filter(|claim| claim.verdict != Verdict::Reproduced).count();
    say(&format!("{deviate} of {} figures are outside their bands", claims.len()));
    if fresh != stored && !options.write {
        say(&format!("ns-3 measured what is not in {EXPERIMENT}; `cargo xtask ns3 --write` stores it"));
    }
    Ok(())
}

/// One figure of ns-3 and ours.
fn line(claim: &JudgedClaim) -> String {
    let theirs = match claim.published {
        reproduce::PublishedValue::Number(number) => number,
        reproduce::PublishedValue::Words(_) => f64::NAN,
    };
    let ours = claim.measured.ours.as_ref().map_or(f64::NAN, |ours| ours.value);
    let [low, high] =
        [claim.band.low, claim.band.high].map(|end| end.map_or_else(String::new, |end| format!("{end:.2}")));
    let deviates = if claim.verdict == Verdict::Reproduced { "" } else { "  deviates" };
    let title: String = claim.title.chars().take(46).collect();
    format!(
        "{title:<48}{:<16}{:<20}{theirs:>8.2}{ours:>8.2}{:>7.2}  {low} to {high}{deviates}",
        claim.row,
        claim.column,
        ours / theirs
    )
}

/// The mean figures of a case's runs.
fn figures(program: &Path, cell: &Cell) -> Result<Figures, String> {
    let program = program.to_string_lossy();
    let runs = (1..=cell.runs()).map(|seed| {
        let arguments = cell.arguments(seed);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = json(&output(&program, &arguments)?)?;
        let number = |value: &Value, what: &str| value.as_f64().ok_or_else(|| format!("{cell}: ns-3 tells no {what}"));
        let goodputs = said["goodput_bps"].as_array().ok_or_else(|| format!("{cell}: ns-3 tells no goodput"))?;
        let goodputs: Vec<f64> = goodputs.iter().map(|one| number(one, "goodput")).collect::<Result<_, _>>()?;
        Ok(Figures::of(&goodputs, number(&said["queue_packets"], "queue")?))
    });
    let runs: Vec<Figures> = runs.collect::<Result<_, String>>()?;
    Ok(Figures::mean(&runs))
}

/// Compiles the ns-3 program if its source is newer, and returns its path.
fn compiled() -> Result<PathBuf, String> {
    if !Path::new("/usr/include/ns3/core-module.h").exists() || !run::is_installed("g++") {
        return Err("ns-3 is not installed: apt-get install libns3-dev g++".to_owned());
    }
    let (source, folder) = (run::root().join(SOURCE), run::target()?.join("ns3"));
    let program = folder.join("dumbbell");
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    if changed(&program) >= changed(&source) && program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let modules = ["applications", "point-to-point", "traffic-control", "internet", "network", "core"];
    let libraries = modules.map(|module| format!("-lns3-{module}"));
    let (source, binary) = (source.to_string_lossy(), program.to_string_lossy());
    let mut arguments = vec!["-std=c++17", "-O2", "-Wno-deprecated-declarations", &source, "-o", &binary];
    arguments.extend(libraries.iter().map(String::as_str));
    let done = Command::new("g++").args(&arguments).status().map_err(|error| format!("cannot start `g++`: {error}"))?;
    if done.success() { Ok(program) } else { Err(format!("{SOURCE} does not compile with this ns-3; 3.37 is needed")) }
}

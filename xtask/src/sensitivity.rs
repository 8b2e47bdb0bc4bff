//! `cargo xtask sensitivity`: finds the reproduced claims that survive every change of an input by a fifth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::{Experiment, is_group};
use anabranch_lab::parallel;
use anabranch_lab::reproduce::{Options as Runs, Shaken, shake};
use anabranch_lab::scenario::change::Change;
use anabranch_lab::sensitivity::{self, Entry};
use clap::Args;

use crate::run::{self, say};

/// What to print.
#[derive(Args)]
pub(crate) struct Options {
    /// Print each claim: the changes that flip it, or the range of its number.
    #[arg(long)]
    list: bool,
}

/// The folder of the experiments, in the root.
const EXPERIMENTS: &str = "experiments";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    if cfg!(debug_assertions) {
        // An optimised build, with which the ten thousand runs take a quarter of the time.
        let list = if options.list { &["--list"][..] } else { &[] };
        let again = ["run", "--release", "--quiet", "--locked", "--package", "xtask", "--", "sensitivity"];
        return run::run("cargo", &[&again, list].concat(), &[]);
    }
    let experiments = load()?;
    let runs = Runs { jobs: parallel::jobs_default(), seeds: None };
    let mut told = 0;
    let watch = |done: usize, total: usize| {
        if (done * 10).checked_div(total).is_some_and(|tenths| tenths > told) {
            told = done * 10 / total;
            say(&format!("{done} of {total} runs"));
        }
    };
    let shaken = shake(&experiments, runs, watch).map_err(|error| error.to_string())?;
    if options.list {
        shaken.iter().for_each(|shaken| say(&line(shaken)));
    }
    summary(&shaken).iter().for_each(|line| say(line));
    let path = run::root().join(EXPERIMENTS).join(sensitivity::FILE);
    let text = sensitivity::text(coarse(&shaken).iter().map(|shaken| Entry::of(shaken.experiment, shaken.claim)));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The experiments of all papers, named as by the program.
fn load() -> Result<Vec<Experiment>, String> {
    let mut experiments = vec![];
    let mut base = |name: &str| fs::read_to_string(run::root().join(name)).map_err(|error| error.to_string());
    for folder in entries(&run::root().join(EXPERIMENTS))?.iter().filter(|path| is_group(path)) {
        for path in entries(folder)?.iter().filter(|path| path.extension().is_some_and(|it| it == "toml")) {
            let name = path.strip_prefix(run::root()).unwrap_or(path).to_string_lossy();
            let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            let experiment = Document::parse_with(&name, &text, &mut base).and_then(Experiment::parse);
            experiments.push(experiment.map_err(|error| error.to_string())?);
        }
    }
    Ok(experiments)
}

fn entries(folder: &PathBuf) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = listed.map_err(|error| format!("{}: {error}", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// The coarse claims. Several claims with one name are coarse only if all are, as the file has only the name.
fn coarse<'a, 'b>(shaken: &'b [Shaken<'a>]) -> Vec<&'b Shaken<'a>> {
    let sharp: BTreeSet<Entry> = shaken.iter().filter(|it| !it.is_coarse()).map(entry).collect();
    shaken.iter().filter(|it| !sharp.contains(&entry(it))).collect()
}

fn entry(shaken: &Shaken<'_>) -> Entry {
    Entry::of(shaken.experiment, shaken.claim)
}

/// For each paper, the number of reproduced and of coarse claims; then for each change, the number of claims that it flips.
fn summary(shaken: &[Shaken<'_>]) -> Vec<String> {
    let names: BTreeSet<Entry> = coarse(shaken).into_iter().map(entry).collect();
    let mut papers: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for it in shaken {
        let [all, sharp, dull] = papers.entry(&it.experiment.paper).or_default();
        *all += 1;
        *if names.contains(&entry(it)) { dull } else { sharp } += 1;
    }
    let mut lines = vec![format!("{:20} {:>10} {:>6} {:>6}", "", "reproduced", "sharp", "coarse")];
    let total = papers.values().fold([0; 3], |total, paper| [0, 1, 2].map(|index| total[index] + paper[index]));
    for (name, [all, sharp, dull]) in papers.into_iter().chain([("all", total)]) {
        lines.push(format!("{name:20} {all:>10} {sharp:>6} {dull:>6}"));
    }
    for change in Change::all() {
        let tried = shaken.iter().filter(|it| it.tried.contains(&change)).count();
        let flips = shaken.iter().filter(|it| it.flips.contains(&change)).count();
        lines.push(format!("{:20} flips {flips} of {tried}", change.to_string()));
    }
    let untried = shaken.iter().filter(|it| it.tried.is_empty()).count();
    if untried > 0 {
        lines.push(format!("{untried} have none of these inputs, and are not called coarse"));
    }
    lines
}

/// A claim and its result.
fn line(shaken: &Shaken<'_>) -> String {
    let Entry { experiment, title, row, column } = entry(shaken);
    let flips: Vec<String> = shaken.flips.iter().map(Change::to_string).collect();
    let what = match flips.as_slice() {
        [] => format!(
            "COARSE {} in {}..{}, {:?}",
            shaken.ours, shaken.changed.low, shaken.changed.high, shaken.claim.band
        ),
        flips => format!("sharp: {}", flips.join(", ")),
    };
    format!("{experiment} | {title} | {row} | {column} | {what}")
}

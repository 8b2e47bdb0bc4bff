//! `cargo xtask reality --kernel`: measures the experiments of `experiments/kernel/` with the laws in the Linux kernel.
//!
//! Each variant's links are emulated, each of its flows is a transfer of iperf3, or in `curl.toml` a download, and the law is loaded with the settings that the
//! file says. The measures of the file are asked of what iperf3 or curl told, as they are asked of a simulated run. Two files are of our own TCP instead:
//! `own-tcp.toml`, downloads through it, and `page.toml`, pages of `proofs page`. Runs alternate: all variants once, then all
//! again, so that a busy minute does not fall on one variant alone. With `--write` the figures of each run go to `measured.csv`, and their means into the tables.

mod download;
mod flow;
mod laws;
mod multipath;
mod outcome;
mod page;
mod stored;
mod transfer;

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_lab::document::Document;
use anabranch_lab::experiment::{Experiment, Variant};
use anabranch_lab::run::{Records, run_recording};
use anabranch_lab::scenario::Scenario;

use self::download::Sender;
use self::flow::Flow;
use self::laws::Laws;
use self::outcome::Values;
use self::stored::Stored;
use crate::links::Links;
use crate::machine::Machine;
use crate::run::{self, say};

/// The folder of the experiments, in the root.
const FOLDER: &str = "experiments/kernel";
/// The name of the links.
const NAME: &str = "reality-kernel";

/// What to measure.
pub(super) struct Plan<'a> {
    pub(super) anabranch: &'a str,
    /// Only variants whose file and labels contain this.
    pub(super) only: &'a str,
    pub(super) runs: u32,
    pub(super) write: bool,
    /// Whether receivers acknowledge each segment, as the simulated ones do, and not every other one.
    pub(super) quick_acks: bool,
}

pub(super) fn run(plan: &Plan<'_>) -> Result<(), String> {
    let mut machine = Machine::new();
    for file in files()? {
        let experiment = read(&file)?;
        let chosen: Vec<Variant> =
            experiment.variants().into_iter().filter(|it| label(&experiment, it).contains(plan.only)).collect();
        let mut stored = Stored::of(&experiment, &run::root().join(FOLDER))?;
        if plan.runs > 0 {
            chosen.iter().for_each(|variant| stored.forget(&experiment.labels(variant)));
        }
        for run in 1..=plan.runs {
            for variant in &chosen {
                _ = machine.load_and_stolen();
                let values = measure(plan, &experiment, variant, run)?;
                let load = machine.load_and_stolen();
                say(&format!("{}, run {run}: {} ({load})", label(&experiment, variant), line(&values)));
                stored.add(&experiment.labels(variant), &values, &load);
            }
        }
        // Before the simulations, which take minutes and may be interrupted.
        if plan.write && !chosen.is_empty() {
            stored.write(&run::root().join(FOLDER), &file)?;
        }
        for variant in &chosen {
            compare(&experiment, variant, &stored)?;
        }
    }
    Ok(())
}

/// `rivals: BBR, rival first`.
fn label(experiment: &Experiment, variant: &Variant) -> String {
    format!("{}: {}", experiment.name(), experiment.labels(variant).join(", "))
}

fn line(values: &Values) -> String {
    values.iter().map(|(name, value)| format!("{name} {value:.3}")).collect::<Vec<_>>().join(", ")
}

fn files() -> Result<Vec<PathBuf>, String> {
    let folder = run::root().join(FOLDER);
    let listed = fs::read_dir(&folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = listed.map_err(|error| format!("{}: {error}", folder.display()))?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Experiment, String> {
    let document = Document::read(path).map_err(|error| error.to_string())?;
    Experiment::parse(document).map_err(|error| error.to_string())
}

/// A variant as a scenario of its own.
fn alone(experiment: &Experiment, variant: &Variant, seed: u64) -> Result<String, String> {
    experiment.written(variant, seed).map_err(|error| error.to_string())
}

/// One run of a variant over emulated links. Each run has other random losses.
fn measure(plan: &Plan<'_>, experiment: &Experiment, variant: &Variant, run: u32) -> Result<Values, String> {
    let anabranch = plan.anabranch;
    let text = alone(experiment, variant, u64::from(run))?;
    let path = run::target()?.join(format!("{NAME}.toml"));
    fs::write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
    if experiment.name() == page::EXPERIMENT {
        return page::run(anabranch, &path, experiment.labels(variant)[0]);
    }
    let (flows, seconds) = flow::flows(&text, run)?;
    let sender = Sender::of(experiment.name());
    let _laws = Laws::load(anabranch, if sender == Some(Sender::Ours) { &[] } else { &flows })?;
    let links = Links::up(anabranch, NAME, &path.to_string_lossy(), &[])?;
    let transfers = match sender {
        Some(sender) => download::run(anabranch, NAME, sender, &flows, seconds)?,
        None => transfer::run(anabranch, NAME, &flows, seconds, plan.quick_acks)?,
    };
    let status = links.status()?;
    links.down()?;
    let measures = measures(&text)?;
    outcome::values(&measures, &ids(&flows), &transfers, &status, seconds)
}

fn ids(flows: &[Flow]) -> Vec<String> {
    flows.iter().map(|flow| flow.id.clone()).collect()
}

/// The measures of a scenario: names and expressions, in the order of the file.
fn measures(text: &str) -> Result<Vec<(String, String)>, String> {
    let document: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let table = document.get("measure").and_then(toml::Value::as_table).ok_or("the variant has no measures")?;
    Ok(table.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect())
}

/// Prints what was measured of a variant beside the simulator's mean over the experiment's seeds.
fn compare(experiment: &Experiment, variant: &Variant, stored: &Stored) -> Result<(), String> {
    let mut sums: Vec<(String, f64)> = vec![];
    let is_random = experiment.scenario(variant).map_err(|error| error.to_string())?.is_random();
    let seeds = if is_random { u64::from(experiment.seeds) } else { 1 };
    for seed in 1..=seeds {
        for (name, value) in simulated(experiment, variant, seed)? {
            match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += value,
                None => sums.push((name, value)),
            }
        }
    }
    for (name, sum) in sums {
        let (mean, labels) = (sum / seeds as f64, experiment.labels(variant));
        let Some(real) = stored.mean(&labels, &name) else { continue };
        let off = (real / mean - 1.0) * 100.0;
        say(&format!(
            "  {:<40} {name:<12} {real:>10.3} simulated {mean:>10.3} {off:>+7.1} %",
            label(experiment, variant)
        ));
    }
    Ok(())
}

/// The measures of a simulated run.
fn simulated(experiment: &Experiment, variant: &Variant, seed: u64) -> Result<Values, String> {
    let text = alone(experiment, variant, seed)?;
    let document = Document::parse(experiment.file(), &text).map_err(|error| error.to_string())?;
    let scenario = Scenario::parse(&document).map_err(|error| error.to_string())?;
    let alone = Experiment::parse(document).map_err(|error| error.to_string())?;
    let records = Records { series: alone.series(), ..Records::default() };
    let (report, trace) = run_recording(&scenario, records, |_, _| std::ops::ControlFlow::Continue(()))
        .map_err(|error| error.to_string())?;
    let measures = trace.measures(&alone, &report).into_iter();
    Ok(measures.map(|measure| (measure.name, measure.value.unwrap_or(f64::NAN))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each variant is a transfer that iperf3 can make, with laws that exist, and each stored figure has its variant and its measure.
    #[test]
    fn experiments_of_the_kernel_can_be_measured() {
        for file in files().unwrap() {
            let experiment = read(&file).unwrap();
            let folder = file.parent().unwrap();
            let text = fs::read_to_string(&file).unwrap();
            let means = Stored::of(&experiment, folder).unwrap().written(&text).unwrap();
            for (mean, line) in means.lines().zip(text.lines()) {
                assert_eq!(line, mean, "{}: not the mean in measured.csv", file.display());
            }
            let mut stored = Stored::of(&experiment, Path::new("none")).unwrap();
            for variant in experiment.variants() {
                let text = alone(&experiment, &variant, 1).unwrap();
                let (flows, seconds) = flow::flows(&text, 1).unwrap();
                assert!(!flows.is_empty() && seconds > 0.0);
                flows.iter().for_each(|flow| assert!(laws::is_known(&flow.law), "{}: {}", file.display(), flow.law));
                let values: Values = measures(&text).unwrap().into_iter().map(|(name, _)| (name, -1.0)).collect();
                assert!(!values.is_empty());
                stored.add(&experiment.labels(&variant), &values, "0.00, 0 %");
            }
            // Every cell has been replaced, but those that are empty.
            let written = stored.written(&text).unwrap();
            let cells = |text: &str| {
                let is_row = |line: &&str| line.split_once(" = ").is_some_and(|(_, cells)| cells.starts_with('['));
                text.lines().filter(|line| line.starts_with('"')).filter(is_row).count()
            };
            let replaced =
                |line: &&str| line.contains("[-1.000") || line.contains("[1.000") || line.contains("[\"-1.000±");
            assert_eq!(written.lines().filter(replaced).count(), cells(&text), "{written}");
        }
    }
}

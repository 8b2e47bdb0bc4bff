//! Joins the shards of a sweep, from any machines, to the sweep of a single machine.
//!
//! Each run of the grid must be there exactly once, and be of this engine, this scenario and these seeds. A run that does not fit is reported with its
//! file, so that no table mixes two grids or lacks a part of one.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::{ENGINE, Options, Plan, Row, Rows, Shard, Sweep, words};
use crate::diagnostic::{Diagnostic, Fault};
use crate::experiment::Experiment;

/// The rows of one file.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name of the file in messages.
    pub file: String,
    /// The rows of the file.
    pub rows: Rows,
}

/// The sweep of the whole grid, from the rows of its shards. Nothing is run.
///
/// # Errors
/// If a point of the grid is no valid scenario, or a run is missing, is in two files, or is of another engine, scenario or grid.
pub fn merge(experiment: &Experiment, seeds: u32, parts: &[Part]) -> Result<Sweep, Diagnostic> {
    let options = Options { jobs: NonZeroUsize::MIN, seeds, shard: Shard::WHOLE };
    let mut plan = Plan::new(experiment, options, &Rows::default())?;
    let places: BTreeMap<String, usize> =
        plan.jobs.iter().enumerate().map(|(place, job)| (job.identity.clone(), place)).collect();
    let mut found_in: Vec<Option<&str>> = vec![None; plan.jobs.len()];
    for Part { file, rows } in parts {
        for row in rows.iter() {
            let Some(&place) = places.get(&row.run) else { return Err(foreign(experiment, &plan, row).about(file)) };
            let job = &mut plan.jobs[place];
            if let (Some(other), Some(known)) = (found_in[place], &job.row) {
                return Err(twice(experiment, row, known, other).about(file));
            }
            found_in[place] = Some(file);
            job.row = Some(row.clone());
        }
    }
    let missing = plan.jobs.iter().filter(|job| job.row.is_none()).count();
    if let Some(first) = plan.jobs.iter().find(|job| job.row.is_none()) {
        let which = words(experiment, &first.labels, first.scenario.seed);
        let message = format!(
            "{missing} of {} runs are in none of the files, the first {which}: a shard is missing, or was stopped",
            plan.jobs.len()
        );
        let remedy = "run it again with its `--rows`, which runs only what is missing";
        return Err(Fault::new(message).remedy(remedy).about(experiment.file()));
    }
    Ok(plan.finish(experiment, 0, Vec::new()))
}

/// The reason why a run does not belong to this grid.
fn foreign(experiment: &Experiment, plan: &Plan, row: &Row) -> Fault {
    let which = words(experiment, row.labels(), row.seed());
    if row.engine() != ENGINE {
        let engine = row.engine();
        return Fault::new(format!(
            "the run {which} is of another version of the simulator: engine {engine}, not {ENGINE}"
        ))
        .remedy("run all shards, and this, with the same version");
    }
    match plan.jobs.iter().any(|job| job.labels == row.labels() && job.scenario.seed == row.seed()) {
        true => Fault::new(format!("the run {which} is of another scenario than {}", experiment.file()))
            .remedy("give the file and the `--set` that its shard was given"),
        false => Fault::new(format!("the run {which} is not of this grid"))
            .remedy("give the `--seeds` and the `--seed` that its shard was given"),
    }
}

/// The error for a run in two files.
fn twice(experiment: &Experiment, row: &Row, known: &Row, other: &str) -> Fault {
    let which = words(experiment, row.labels(), row.seed());
    match row == known {
        true => Fault::new(format!("the run {which} is in {other} as well")).remedy("give each shard once"),
        false => Fault::new(format!("the run {which} is in {other} as well, with other numbers"))
            .remedy("one of the two files was changed, or one of the machines is at fault: run it again on both"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{run_some, sweep};
    use super::*;
    use crate::document::Document;
    use crate::sweep::missing;

    const GRID: &str = "duration = '1s'\n\
        [[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '10ms'\n\
        error = { kind = 'uniform', rate = 0.01 }\nqueue = { kind = 'drop_tail', packets = 10 }\n\
        [[flow]]\nid = 'f0'\nfrom = 'a'\nto = 'b'\ntransport = 'ns2/sack'\npacket = '1500B'\n\
        [[axis]]\nname = 'rate'\nvalues = { slow = { \"link.l.rate\" = '1Mbit/s' }, fast = { \"link.l.rate\" = '2Mbit/s' } }\n";

    fn experiment(set: &[&str]) -> Experiment {
        let mut document = Document::parse("grid.toml", GRID).unwrap();
        set.iter().for_each(|set| document.set(set).unwrap());
        Experiment::parse(document).unwrap()
    }

    fn options(seeds: u32, shard: &str) -> Options {
        Options { jobs: NonZeroUsize::MIN, seeds, shard: shard.parse().unwrap() }
    }

    /// The rows of a shard with two seeds, in a file with the name of the shard.
    fn shard(experiment: &Experiment, shard: &str) -> Part {
        let places = missing(experiment, options(2, shard), &Rows::default()).unwrap();
        let told = run_some(experiment, &places, NonZeroUsize::MIN, |_, _| {}).unwrap().expect("nobody stops it");
        let mut rows = Rows::default();
        told.rows.into_iter().for_each(|row| rows.add(row));
        Part { file: shard.to_owned(), rows }
    }

    #[track_caller]
    fn refused(parts: &[Part], seeds: u32, words: &[&str]) {
        let error = merge(&experiment(&[]), seeds, parts).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }

    #[test]
    fn shards_in_any_order_are_the_whole() {
        let experiment = experiment(&[]);
        let whole = sweep(&experiment, options(2, "1/1"), &Rows::default(), |_, _| {}).unwrap();
        let merged = merge(&experiment, 2, &[shard(&experiment, "2/2"), shard(&experiment, "1/2")]).unwrap();
        assert_eq!(merged.rows, whole.rows);
        let csv = |sweep: &Sweep| {
            let mut csv = Vec::new();
            sweep.table.write_csv(&mut csv).unwrap();
            csv
        };
        assert_eq!(csv(&merged), csv(&whole));
    }

    #[test]
    fn shards_that_differ_are_named() {
        let same = experiment(&[]);
        let (first, second) = (shard(&same, "1/2"), shard(&same, "2/2"));
        refused(
            std::slice::from_ref(&first),
            2,
            &["grid.toml: 2 of 4 runs are in none of the files, the first with rate = fast and seed 1"],
        );
        let twice = Part { file: "copy".to_owned(), ..first.clone() };
        refused(
            &[first.clone(), second.clone(), twice],
            2,
            &["copy: the run", "is in 1/2 as well; give each shard once"],
        );
        let other = shard(&experiment(&["link.l.delay=11ms"]), "2/2");
        refused(
            &[first.clone(), other],
            2,
            &["2/2: the run with rate = fast", "is of another scenario than grid.toml"],
        );
        refused(&[first.clone(), second], 1, &["seed 2 is not of this grid", "`--seeds`"]);

        let mut old = first.rows.iter().next().unwrap().clone();
        old.run = old.run.replace(ENGINE, "0123456789abcdef");
        let mut rows = Rows::default();
        rows.add(old);
        refused(&[Part { file: "old".to_owned(), rows }], 2, &["old: ", "another version", "engine 0123456789abcdef"]);

        let mut changed = first.rows.iter().next().unwrap().clone();
        changed.hash = "0".to_owned();
        let mut rows = Rows::default();
        rows.add(changed);
        refused(&[first, Part { file: "changed".to_owned(), rows }], 2, &["changed: ", "with other numbers"]);
    }
}

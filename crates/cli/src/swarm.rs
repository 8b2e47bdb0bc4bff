//! `anabranch sim swarm`.

use std::io::Write as _;
use std::time::Instant;

use anabranch_lab::swarm;
use serde::Serialize;

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{Progress, number};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    first_seed: u64,
    seeds: u32,
    failures: Vec<Failed>,
    bytes: u64,
    events: u64,
    slowest_seed: Option<u64>,
    slowest_simulated_seconds: Option<f64>,
    wall_seconds: f64,
    hash: String,
}

#[derive(Serialize)]
struct Failed {
    seed: u64,
    reason: String,
}

pub(crate) fn swarm(args: &args::Swarm) -> Outcome {
    let folder = args.keep.as_deref().map(|path| Folder::create(path, [], &Inputs::default())).transpose()?;
    let begin = Instant::now();
    let swarm = {
        let (progress, mut done) = (Progress::of_runs(), 0);
        swarm::run_all(args.seed, args.seeds, args.jobs.count(), || {
            done += 1;
            progress.set(done, args.seeds as usize);
        })
    };
    for (fate, folder) in swarm.failures.iter().flat_map(|fate| folder.iter().map(move |folder| (fate, folder))) {
        folder.write(&format!("swarm-{}.toml", fate.seed), |out| out.write_all(fate.scenario.as_bytes()))?;
    }
    let failures = swarm
        .failures
        .iter()
        .map(|fate| Failed { seed: fate.seed, reason: fate.outcome.as_ref().err().cloned().unwrap_or_default() });
    let document = Document {
        schema: "anabranch-swarm/1",
        first_seed: args.seed,
        seeds: swarm.seeds,
        failures: failures.collect(),
        bytes: swarm.bytes,
        events: swarm.events,
        slowest_seed: swarm.slowest.map(|(seed, _)| seed),
        slowest_simulated_seconds: swarm.slowest.map(|(_, done)| done.as_secs_f64()),
        wall_seconds: begin.elapsed().as_secs_f64(),
        hash: swarm.hash,
    };
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text(&document))?,
    }
    match &document.failures[..] {
        [] => Ok(()),
        [first, ..] => Err(Failure::missed(format!(
            "{} of {} seeds failed; look at the first with `anabranch sim swarm --seed {} --seeds 1 --keep DIR`, and run \
             what that writes with `anabranch sim run`",
            document.failures.len(),
            document.seeds,
            first.seed
        ))),
    }
}

fn text(document: &Document) -> String {
    let Document { first_seed, seeds, failures, bytes, events, wall_seconds, hash, .. } = document;
    let mut text: String =
        failures.iter().take(SHOWN_MAX).map(|failed| format!("seed {}: {}\n", failed.seed, failed.reason)).collect();
    if failures.len() > SHOWN_MAX {
        text += &format!("and {} more\n", failures.len() - SHOWN_MAX);
    }
    let last = first_seed.wrapping_add(u64::from(*seeds) - 1);
    text += &format!(
        "seeds {first_seed} to {last}: {} held, {} failed; {:.1} MB, {events} events in {wall_seconds:.1} s, hash {hash}\n",
        *seeds as usize - failures.len(),
        failures.len(),
        *bytes as f64 / 1e6
    );
    if let (Some(seed), Some(seconds)) = (document.slowest_seed, document.slowest_simulated_seconds) {
        text += &format!("the slowest was seed {seed}: {} s\n", number(seconds));
    }
    text
}

/// The limit of failures shown.
const SHOWN_MAX: usize = 10;

//! `anabranch sim bench`: the simulator's speed.

use std::fs;
use std::io::Write as _;
use std::time::Instant;

use anabranch_lab::run;
use anabranch_lab::scenario::Scenario;
use serde::Serialize;

use crate::args::SimBench;
use crate::failure::{Failure, Outcome};
use crate::files::Inputs;
use crate::terminal::{Align, BOLD, DIM, PLAIN, Table, named, number};

/// The scenarios, and the number of sequential runs of each on one core.
const SCENARIOS: [(&str, u32); 2] = [("highspeed.toml", 1), ("small.toml", 100)];

/// The link whose packets are counted.
const BOTTLENECK: &str = "bottleneck";

#[derive(Serialize)]
struct Benchmark {
    schema: &'static str,
    /// The peak memory of the process; `null` if the system does not report it.
    peak_memory_bytes: Option<u64>,
    scenarios: Vec<Measurement>,
}

#[derive(Serialize)]
struct Measurement {
    scenario: String,
    question: String,
    runs: u32,
    wall_seconds: f64,
    /// Simulated time of one run.
    simulated_seconds: f64,
    /// Packets over the bottleneck in all runs.
    bottleneck_packets: u64,
    bottleneck_packets_per_second: f64,
    /// Transmissions over all links.
    hops: u64,
    hops_per_second: f64,
    /// The hash of the last run.
    hash: String,
}

pub(crate) fn bench(args: &SimBench) -> Outcome {
    let folder = args.experiments.folder.join("speed");
    let mut scenarios = Vec::new();
    for (name, runs) in SCENARIOS {
        let file = folder.join(name);
        let document = Inputs::default().read_plain(&file)?;
        let scenario = Scenario::parse(&document)?;
        let name = named(&file);
        scenarios.push(measure(name, document.comment().to_owned(), &scenario, runs)?);
    }
    let benchmark = Benchmark { schema: "anabranch-bench/1", peak_memory_bytes: peak_memory(), scenarios };
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&benchmark).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text(&benchmark))?,
    }
    Ok(())
}

fn measure(name: String, question: String, scenario: &Scenario, runs: u32) -> Result<Measurement, Failure> {
    let begin = Instant::now();
    let (mut bottleneck_packets, mut hops, mut last) = (0, 0, None);
    for _ in 0..runs {
        let report = run::run(scenario).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
        let bottleneck = report.links.iter().find(|link| link.id == BOTTLENECK);
        let Some(bottleneck) = bottleneck else {
            return Err(Failure::usage(format!(
                "{name}: there is no link `{BOTTLENECK}`; the benchmark counts its packets"
            )));
        };
        bottleneck_packets += bottleneck.forwarded_packets;
        hops += report.links.iter().map(|link| link.forwarded_packets).sum::<u64>();
        last = Some(report);
    }
    let wall_seconds = begin.elapsed().as_secs_f64();
    let report = last.expect("each scenario is run at least once");
    Ok(Measurement {
        scenario: name,
        question,
        runs,
        wall_seconds,
        simulated_seconds: report.simulated_seconds,
        bottleneck_packets,
        bottleneck_packets_per_second: bottleneck_packets as f64 / wall_seconds,
        hops,
        hops_per_second: hops as f64 / wall_seconds,
        hash: report.hash,
    })
}

/// The peak memory of this process, from Linux' `/proc`.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn text(benchmark: &Benchmark) -> String {
    let mut table = Table::new(&[
        ("scenario", Align::Left),
        ("runs", Align::Right),
        ("wall s", Align::Right),
        ("bottleneck packets", Align::Right),
        ("per s", Align::Right),
        ("hops per s", Align::Right),
        ("hash", Align::Left),
    ]);
    for measured in &benchmark.scenarios {
        table.row(vec![
            (measured.scenario.clone(), BOLD),
            (measured.runs.to_string(), PLAIN),
            (number(measured.wall_seconds), PLAIN),
            (measured.bottleneck_packets.to_string(), PLAIN),
            (millions(measured.bottleneck_packets_per_second), BOLD),
            (millions(measured.hops_per_second), PLAIN),
            (measured.hash.clone(), DIM),
        ]);
    }
    let memory =
        benchmark.peak_memory_bytes.map_or("unknown".to_owned(), |bytes| format!("{:.1} MB", bytes as f64 / 1e6));
    format!("{}\npeak memory {memory}, one core\n", table.render(""))
}

fn millions(per_second: f64) -> String {
    format!("{:.2} M", per_second / 1e6)
}

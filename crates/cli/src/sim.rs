//! `anabranch sim run` and `sim sweep`.

use std::io::Write as _;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::expression::Assertion;
use anabranch_lab::report::Report;
use anabranch_lab::run;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::sweep;

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{self, Folder, Part};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Progress, Table, number};

pub(crate) fn run(args: &args::Run) -> Outcome {
    let document = files::read_document(&args.file, &args.overrides)?;
    // What the file measures and claims is not run here, but a mistake in it is a mistake.
    Experiment::parse(document.clone())?;
    let scenario = Scenario::parse(&document)?;
    let assertions = assertions(&args.asserts, &scenario)?;
    let folder = args.trace.as_deref().map(Folder::create).transpose()?;
    let capture = args.pcap.as_deref().map(Part::create).transpose()?;
    let asks_series = assertions.iter().any(Assertion::asks_series);
    let is_traced = folder.is_some() || asks_series;
    let (report, trace) = match (&folder, capture) {
        (None, None) if !asks_series => (run::run(&scenario), None),
        (folder, capture) => {
            let (report, trace) = match capture {
                None => run::run_traced(&scenario),
                Some(part) => {
                    let traced = part.writer().and_then(|out| run::run_captured(&scenario, is_traced, out));
                    part.finish(traced)?
                }
            };
            for file in folder.iter().flat_map(|_| trace.files()) {
                folder.as_ref().map_or(Ok(()), |folder| folder.write(&file, |out| trace.write(&file, out)))?;
            }
            (report, Some(trace))
        }
    };
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text(&report))?,
    }
    for (assertion, text) in assertions.iter().zip(&args.asserts) {
        let value =
            &mut |name: &str, _: &[String]| report.gauge(name).map_err(anabranch_lab::expression::ExpressionError::new);
        let series = &mut |name: &str| trace.as_ref().map_or(Ok(None), |trace| trace.lookup(name));
        let (left, right, holds) =
            assertion.evaluate(value, series).map_err(|error| Failure::failed(error.to_string()))?;
        if !holds {
            return Err(Failure::missed(format!(
                "--assert \"{text}\" does not hold: {left} against {right} (seed {})",
                report.seed
            )));
        }
    }
    Ok(())
}

/// Parsed before anything runs.
fn assertions(texts: &[String], scenario: &Scenario) -> Result<Vec<Assertion>, Failure> {
    let refuse = |text: &str, error: String| Failure::usage(format!("--assert \"{text}\": {error}"));
    let parse = |text: &String| {
        let assertion = Assertion::parse(text).map_err(|error| refuse(text, error.to_string()))?;
        let known = &mut |name: &str, labels: &[String]| scenario.check_gauge(name, labels).map(|()| 1.0);
        let series = &mut |name: &str| scenario.check_series(name).map(|()| None);
        assertion.evaluate(known, series).map_err(|error| refuse(text, error.to_string()))?;
        Ok(assertion)
    };
    texts.iter().map(parse).collect()
}

fn text(report: &Report) -> String {
    let mut flows = Table::new(&[
        ("flow", Align::Left),
        ("transport", Align::Left),
        ("goodput", Align::Right),
        ("throughput", Align::Right),
        ("sent", Align::Right),
        ("delivered", Align::Right),
        ("resent", Align::Right),
        ("dropped", Align::Right),
        ("rtt ms", Align::Right),
        ("delay ms", Align::Right),
        ("window", Align::Right),
    ]);
    let rate = |bps: f64| (format!("{} kbit/s", number(bps / 1000.0)), PLAIN);
    let count = |count: u64| (count.to_string(), PLAIN);
    let milliseconds =
        |seconds: Option<f64>| (seconds.map_or("–".to_owned(), |seconds| number(seconds * 1000.0)), PLAIN);
    for flow in &report.flows {
        flows.row(vec![
            (flow.id.clone(), BOLD),
            (flow.transport.clone(), PLAIN),
            rate(flow.goodput_bps),
            rate(flow.throughput_bps),
            count(flow.sent_packets),
            count(flow.delivered_packets),
            count(flow.retransmitted_packets),
            count(flow.dropped_packets),
            milliseconds(flow.rtt_mean_s),
            milliseconds(flow.one_way_delay_mean_s),
            (flow.window_final.map_or("–".to_owned(), number), PLAIN),
        ]);
    }
    let mut paths = Table::new(&[
        ("path", Align::Left),
        ("state", Align::Left),
        ("delivered", Align::Right),
        ("share %", Align::Right),
        ("sent", Align::Right),
        ("resent", Align::Right),
        ("rtt ms", Align::Right),
        ("window", Align::Right),
    ]);
    for flow in &report.flows {
        let sum: f64 = flow.paths.iter().map(|path| path.delivered_bps).sum();
        for path in &flow.paths {
            paths.row(vec![
                (format!("{}.{}", flow.id, path.path), BOLD),
                (path.state.to_owned(), PLAIN),
                rate(path.delivered_bps),
                (number(if sum > 0.0 { 100.0 * path.delivered_bps / sum } else { 0.0 }), PLAIN),
                count(path.sent_packets),
                count(path.retransmitted_packets),
                milliseconds(path.rtt_mean_s),
                (number(path.window_final), PLAIN),
            ]);
        }
    }
    let paths =
        if report.flows.iter().all(|flow| flow.paths.is_empty()) { String::new() } else { paths.render("") + "\n" };
    let mut links = Table::new(&[
        ("link", Align::Left),
        ("forwarded", Align::Right),
        ("dropped", Align::Right),
        ("mean queue", Align::Right),
    ]);
    for link in &report.links {
        links.row(vec![
            (link.id.clone(), BOLD),
            count(link.forwarded_packets),
            count(link.dropped_packets),
            (number(link.queue_packets_mean), PLAIN),
        ]);
    }
    let Report { seed, hash, wall_seconds, simulated_seconds, events, .. } = report;
    format!(
        "{DIM}seed {seed}, hash {hash}: {} s in {wall_seconds:.3} s, {events} events{DIM:#}\n\n{}\n{paths}{}",
        number(*simulated_seconds),
        flows.render(""),
        links.render("")
    )
}

pub(crate) fn sweep(args: &args::Sweep) -> Outcome {
    let experiment = Experiment::parse(files::read_document(&args.file, &args.overrides)?)?;
    let out = args.out.as_deref().map(Folder::of_file).transpose()?;
    let options = sweep::Options { jobs: args.jobs.count(), seeds: args.seeds, shard: args.shard };
    let table = {
        let progress = Progress::of_runs();
        sweep::sweep(&experiment, options, |done, total| progress.set(done, total))?
    };
    match out {
        Some((folder, name)) => folder.write(&name, |mut out| table.write_csv(&mut out)),
        None => Ok(table.write_csv(&mut std::io::stdout().lock())?),
    }
}

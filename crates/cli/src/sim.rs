//! `anabranch sim run` and `sim sweep`.

use std::io::Write as _;
use std::path::Path;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::expression::{Assertion, ExpressionError};
use anabranch_lab::report::{MeasureReport, Report};
use anabranch_lab::run::{self, Records, Trace};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::sweep;

use anstyle::Style;

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs, Part};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Progress, Table, number, paragraph};

pub(crate) fn run(args: &args::Run) -> Outcome {
    let mut inputs = Inputs::default();
    let document = inputs.read_document(&args.file, &args.overrides)?;
    let experiment = Experiment::parse(document.clone())?;
    let scenario = Scenario::parse(&document)?;
    let assertions = assertions(&args.asserts, &experiment, &scenario)?;
    let tables = scenario.trace_files();
    let names = || tables.iter().map(String::as_str);
    let folder = args.trace.as_deref().map(|path| Folder::create(path, names(), &inputs)).transpose()?;
    let capture = args.pcap.as_deref().map(|path| Part::create(path, &inputs)).transpose()?;
    if let (Some(folder), Some(capture), Some(path)) = (&folder, &capture, &args.pcap)
        && names().any(|name| capture.is_in(folder, name))
    {
        let path = path.display();
        return Err(Failure::usage(format!("{path}: --trace writes a table of this name; name another file")));
    }
    let series = assertions.iter().flat_map(Assertion::series).chain(experiment.series()).collect();
    let records = |capture| Records { tables: folder.is_some(), series, capture };
    let (mut report, trace) = {
        let progress = Progress::of_a_run();
        let on_step = |done, total| progress.set(done, total);
        match capture {
            None => run::run_recording(&scenario, records(None), on_step)?,
            Some(part) => {
                let run = part.writer().and_then(|out| run::run_recording(&scenario, records(Some(out)), on_step));
                part.finish(run)?
            }
        }
    };
    if let Some(folder) = &folder {
        for file in trace.files() {
            folder.write(&file, |out| trace.write(&file, out))?;
        }
    }
    report.measures = trace.measures(&experiment, &report);
    report.notes.extend(coarsened(&trace));
    report.notes.extend(left_out(&experiment, args));
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text(&report))?,
    }
    for (assertion, text) in assertions.iter().zip(&args.asserts) {
        let value = &mut |name: &str, _: &[String]| match report.measures.iter().find(|measure| measure.name == name) {
            Some(MeasureReport { value: Some(value), .. }) => Ok(*value),
            Some(MeasureReport { because, .. }) => Err(ExpressionError::new(format!(
                "`{name}` has no value: {}",
                because.as_deref().unwrap_or("not a number")
            ))),
            None => report.gauge(name).map_err(ExpressionError::new),
        };
        let series = &mut |name: &str| trace.lookup(name);
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

/// What to say of series that did not fit into memory.
fn coarsened(trace: &Trace<'_>) -> Option<String> {
    trace.coarsened().map(|resolution| {
        format!(
            "what was recorded did not fit into memory, so that of all that happens within {resolution} the last is kept: set \
             `resolution` to choose, or shorten the run"
        )
    })
}

/// What else the file asks for, and who does it.
fn left_out(experiment: &Experiment, args: &args::Run) -> Vec<String> {
    let mut notes = Vec::new();
    let file = args.file.display();
    if !experiment.axes.is_empty() {
        let axes = experiment.axes.iter().map(|axis| format!("`{}` ({} values)", axis.name, axis.values.len()));
        let axes = axes.collect::<Vec<_>>().join(" and ");
        notes.push(format!(
            "this is the file as it stands, and {axes} are not varied: `anabranch sim sweep {file}` runs every combination"
        ));
    }
    let counts = [("claims", experiment.claims.len()), ("figures", experiment.figures())];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let asked: Vec<String> = counts.map(|(what, count)| format!("{what} ({count})")).collect();
    if !asked.is_empty() {
        let folder = args.file.parent().and_then(Path::parent).filter(|folder| *folder != Path::new("experiments"));
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or(String::new(), |folder| format!(" --experiments {}", folder.display()));
        notes.push(format!(
            "its {} are not looked at here: `anabranch reproduce {}{folder}` does",
            asked.join(" and "),
            experiment.paper
        ));
    }
    notes
}

/// Parsed before anything runs.
fn assertions(texts: &[String], experiment: &Experiment, scenario: &Scenario) -> Result<Vec<Assertion>, Failure> {
    let refuse = |text: &str, error: String| Failure::usage(format!("--assert \"{text}\": {error}"));
    let parse = |text: &String| {
        let assertion = Assertion::parse(text).map_err(|error| refuse(text, error.to_string()))?;
        let known = &mut |name: &str, labels: &[String]| match labels.is_empty() && experiment.has_measure(name) {
            true => Ok(1.0),
            false => scenario.check_gauge(name, labels).map(|()| 1.0),
        };
        let series = &mut |name: &str| scenario.series_to_come(name);
        assertion.evaluate(known, series).map_err(|error| refuse(text, error.to_string()))?;
        Ok(assertion)
    };
    texts.iter().map(parse).collect()
}

fn text(report: &Report) -> String {
    let Report { seed, hash, wall_seconds, simulated_seconds, events, .. } = report;
    let mut text = format!(
        "{DIM}seed {seed}, hash {hash}: {} s in {wall_seconds:.3} s, {events} events{DIM:#}\n\n",
        number(*simulated_seconds)
    );
    text += &flows(report).render("");
    if let Some(jain) = report.jain_index.filter(|_| report.flows.len() > 1) {
        text += &format!("{DIM}Jain's index of the goodputs{DIM:#} {}\n", number(jain));
    }
    for table in [paths(report), Some(links(report)), measures(report)].into_iter().flatten() {
        text += &format!("\n{}", table.render(""));
    }
    for (index, note) in report.notes.iter().enumerate() {
        text += if index == 0 { "\n" } else { "" };
        text += &paragraph("note: ", note);
    }
    text
}

fn rate(bps: f64) -> (String, Style) {
    (format!("{} kbit/s", number(bps / 1000.0)), PLAIN)
}

fn count(count: u64) -> (String, Style) {
    (count.to_string(), PLAIN)
}

/// A dash for what was not measured.
fn known(shown: Option<String>) -> (String, Style) {
    (shown.unwrap_or_else(|| "–".to_owned()), PLAIN)
}

fn milliseconds(seconds: Option<f64>) -> (String, Style) {
    known(seconds.map(|seconds| number(seconds * 1000.0)))
}

fn flows(report: &Report) -> Table {
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("transport", Align::Left),
        ("goodput", Align::Right),
        ("throughput", Align::Right),
        ("sent", Align::Right),
        ("delivered", Align::Right),
        ("resent", Align::Right),
        ("dropped", Align::Right),
        ("rtt ms", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("delay ms", Align::Right),
        ("window", Align::Right),
    ]);
    for flow in &report.flows {
        table.row(vec![
            (flow.id.clone(), BOLD),
            (flow.transport.clone(), PLAIN),
            rate(flow.goodput_bps),
            rate(flow.throughput_bps),
            count(flow.sent_packets),
            count(flow.delivered_packets),
            count(flow.retransmitted_packets),
            count(flow.dropped_packets),
            milliseconds(flow.rtt_mean_s),
            milliseconds(flow.rtt_p50_s),
            milliseconds(flow.rtt_p95_s),
            milliseconds(flow.rtt_p99_s),
            milliseconds(flow.one_way_delay_mean_s),
            known(flow.window_final.map(number)),
        ]);
    }
    table
}

/// Nothing if no flow has several.
fn paths(report: &Report) -> Option<Table> {
    let mut table = Table::new(&[
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
        let sum: f64 = flow.paths.iter().filter_map(|path| path.delivered_bps).sum();
        for path in &flow.paths {
            let share = |bps: f64| number(if sum > 0.0 { 100.0 * bps / sum } else { 0.0 });
            table.row(vec![
                (format!("{}.path.{}", flow.id, path.path), BOLD),
                known(path.state.map(str::to_owned)),
                path.delivered_bps.map_or_else(|| known(None), rate),
                known(path.delivered_bps.map(share)),
                count(path.sent_packets),
                count(path.retransmitted_packets),
                milliseconds(path.rtt_mean_s),
                (number(path.window_final), PLAIN),
            ]);
        }
    }
    report.flows.iter().any(|flow| !flow.paths.is_empty()).then_some(table)
}

fn links(report: &Report) -> Table {
    let mut table = Table::new(&[
        ("link", Align::Left),
        ("forwarded", Align::Right),
        ("dropped", Align::Right),
        ("busy %", Align::Right),
        ("queue mean", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ]);
    for link in &report.links {
        table.row(vec![
            (link.id.clone(), BOLD),
            count(link.forwarded_packets),
            count(link.dropped_packets),
            (number(100.0 * link.utilisation), PLAIN),
            (number(link.queue_packets_mean), PLAIN),
            count(link.queue_packets_p50),
            count(link.queue_packets_p95),
            count(link.queue_packets_p99),
            count(link.queue_packets_max),
        ]);
    }
    table
}

/// Nothing if the file has none.
fn measures(report: &Report) -> Option<Table> {
    let mut table = Table::new(&[("measure", Align::Left), ("value", Align::Right), ("", Align::Left)]);
    for measure in &report.measures {
        let because = measure.because.clone().unwrap_or_default();
        table.row(vec![(measure.name.clone(), BOLD), known(measure.value.map(number)), (because, DIM)]);
    }
    (!report.measures.is_empty()).then_some(table)
}

pub(crate) fn sweep(args: &args::Sweep) -> Outcome {
    let mut inputs = Inputs::default();
    let experiment = Experiment::parse(inputs.read_document(&args.file, &args.overrides)?)?;
    let out = args.out.as_deref().map(|path| Folder::of_file(path, &inputs)).transpose()?;
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

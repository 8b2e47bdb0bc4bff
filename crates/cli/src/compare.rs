//! `anabranch compare`: runs beside each other.

use std::io::Write as _;
use std::ops::ControlFlow;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::picture::{self, Pictured};
use anabranch_lab::run::{self, Records};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::{html, report::Report};

use crate::args::Compare;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Progress, Table, named, number};

pub(crate) fn compare(args: &Compare) -> Outcome {
    let mut inputs = Inputs::default();
    // Every file is read and checked before anything runs.
    let mut scenarios = Vec::new();
    for file in &args.files {
        let document = inputs.read_document(file, &args.overrides)?;
        let (experiment, scenario) = (Experiment::parse(document.clone())?, Scenario::parse(&document)?);
        scenarios.push((named(file), document, experiment, scenario));
    }
    let (folder, name) = Folder::of_file(&args.report, &inputs)?;
    let mut runs: Vec<Pictured> = Vec::new();
    for (title, document, experiment, scenario) in &scenarios {
        let progress = Progress::of_a_run();
        let records = Records { series: picture::series(scenario), ..Records::default() };
        let on_step = |done, total| {
            progress.set(done, total);
            ControlFlow::Continue(())
        };
        let (report, trace) = run::run_recording(scenario, records, on_step)
            .map_err(|error| Failure::failed(format!("{title}: {error}")))?;
        runs.push(picture::picture(title, document, experiment, scenario, report, &trace));
    }
    folder.write(&name, |out| out.write_all(html::run_page(&runs).as_bytes()))?;
    let mut out = anstream::stdout().lock();
    write!(out, "{}", text(&runs))?;
    writeln!(out, "Everything, with curves and distributions: {}", named(&args.report))?;
    Ok(())
}

/// A line for each flow and run.
fn text(runs: &[Pictured]) -> String {
    let heads = [
        ("flow", Align::Left),
        ("run", Align::Left),
        ("law", Align::Left),
        ("goodput Mbit/s", Align::Right),
        ("rtt ms", Align::Right),
        ("p95", Align::Right),
        ("dropped", Align::Right),
    ];
    let mut table = Table::new(&heads);
    let mut ids: Vec<&str> = Vec::new();
    for flow in runs.iter().flat_map(|run| &run.report.flows) {
        if !ids.contains(&flow.id.as_str()) {
            ids.push(&flow.id);
        }
    }
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), |seconds| number(1000.0 * seconds));
    for id in ids {
        for run in runs {
            let Some(flow) = run.report.flows.iter().find(|flow| flow.id == id) else { continue };
            table.row(vec![
                (id.to_owned(), BOLD),
                (run.name.clone(), PLAIN),
                (flow.cc.clone().unwrap_or_else(|| flow.transport.clone()), DIM),
                (number(flow.goodput_bps / 1e6), PLAIN),
                (milliseconds(flow.rtt_mean_s), PLAIN),
                (milliseconds(flow.rtt_p95_s), PLAIN),
                (flow.dropped_packets.to_string(), PLAIN),
            ]);
        }
    }
    let jain = |report: &Report| report.jain_index.map_or_else(|| "–".to_owned(), number);
    let indices: Vec<String> = runs.iter().map(|run| format!("{} {}", run.name, jain(&run.report))).collect();
    format!("{}{DIM}Jain's index of the goodputs: {}{DIM:#}\n\n", table.render(""), indices.join(", "))
}

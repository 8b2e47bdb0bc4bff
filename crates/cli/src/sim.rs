//! `anabranch sim run`; grids are in `sweep`.

mod sweep;
mod text;

use std::io::Write as _;
use std::ops::ControlFlow;
use std::slice;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::expression::{Assertion, ExpressionError};
use anabranch_lab::report::MeasureReport;
use anabranch_lab::reproduce::{self, Which};
use anabranch_lab::run::{self, OpenTable, Records, Trace};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::{html, picture};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs, Part};
use crate::terminal::{Progress, named};

pub(crate) use sweep::{merge, sweep};

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
    let page = args.report.as_deref().map(|path| Folder::of_file(path, &inputs)).transpose()?;
    let drawn = if page.is_some() { picture::series(&scenario) } else { Vec::new() };
    if let (Some(folder), Some(capture), Some(path)) = (&folder, &capture, &args.pcap)
        && names().any(|name| capture.is_in(folder, name))
    {
        let path = named(path);
        return Err(Failure::usage(format!("{path}: --trace writes a table of this name; name another file")));
    }
    let series: Vec<String> =
        assertions.iter().flat_map(Assertion::series).chain(experiment.series()).chain(drawn).collect();
    let mut parts = Vec::new();
    let mut open = |name: &str| {
        let Some(folder) = &folder else { return Err(std::io::ErrorKind::NotFound.into()) };
        let mut part = folder.part(name).map_err(|failure| std::io::Error::other(failure.message))?;
        let out = part.appender(tables.len())?;
        parts.push(part);
        Ok(out)
    };
    let (mut report, trace) = {
        let progress = Progress::of_a_run();
        let on_step = |done, total| {
            progress.set(done, total);
            ControlFlow::Continue(())
        };
        let mut open: Option<&mut OpenTable<'_>> = if folder.is_some() { Some(&mut open) } else { None };
        let mut run = |capture| {
            let records = Records { tables: open.take(), series: Vec::clone(&series), capture };
            run::run_recording(&scenario, records, on_step)
        };
        match capture {
            None => run(None)?,
            Some(mut part) => {
                let run = part.writer().and_then(|out| run(Some(out)));
                part.finish(run)?
            }
        }
    };
    parts.into_iter().try_for_each(|part| part.finish(Ok(())))?;
    report.measures = trace.measures(&experiment, &report);
    report.notes.extend(coarsened(&trace));
    report.notes.extend(left_out(&experiment, args));
    if let Some((folder, name)) = &page {
        let title = named(&args.file);
        let run = picture::picture(&title, &document, &experiment, &scenario, report.clone(), &trace);
        folder.write(name, |out| out.write_all(html::run_page(&[run]).as_bytes()))?;
    }
    let mut out = anstream::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?)?,
        false => write!(out, "{}", text::text(&report))?,
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

/// The message for series that were recorded at a coarser resolution.
fn coarsened(trace: &Trace<'_>) -> Option<String> {
    trace.coarsened().map(|resolution| {
        format!(
            "what the measures and the report read did not fit into memory, so that of all that happens within {resolution} they see \
             the last: set `resolution` to choose, or shorten the run"
        )
    })
}

/// What else the file contains, and the command for it.
fn left_out(experiment: &Experiment, args: &args::Run) -> Vec<String> {
    let mut notes = Vec::new();
    let file = named(&args.file);
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
        let command =
            reproduce::command(Some(experiment.file()), Which::Named(slice::from_ref(&experiment.paper)), None);
        notes.push(format!("its {} are not looked at here: `{command}` does", asked.join(" and ")));
    }
    notes
}

/// Parses assertions before the run.
fn assertions(texts: &[String], experiment: &Experiment, scenario: &Scenario) -> Result<Vec<Assertion>, Failure> {
    let refuse = |text: &str, error: String| Failure::usage(format!("--assert \"{text}\": {error}"));
    let parse = |text: &String| {
        let assertion = Assertion::parse(text)
            .and_then(|it| it.written_out(&|place| scenario.ids(place)))
            .map_err(|error| refuse(text, error.to_string()))?;
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

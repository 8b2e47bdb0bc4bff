//! `anabranch sim run` and `sim sweep`.

mod text;

use std::fs;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::expression::{Assertion, ExpressionError};
use anabranch_lab::report::MeasureReport;
use anabranch_lab::reproduce;
use anabranch_lab::run::{self, Records, Trace};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::sweep::{self, Row, Rows, Sweep};
use anabranch_lab::{html, picture};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs, Part};
use crate::terminal::Progress;

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
        let path = path.display();
        return Err(Failure::usage(format!("{path}: --trace writes a table of this name; name another file")));
    }
    let series = assertions.iter().flat_map(Assertion::series).chain(experiment.series()).chain(drawn).collect();
    let records = |capture| Records { tables: folder.is_some(), series, capture };
    let (mut report, trace) = {
        let progress = Progress::of_a_run();
        let on_step = |done, total| {
            progress.set(done, total);
            ControlFlow::Continue(())
        };
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
    if let Some((folder, name)) = &page {
        let title = args.file.display().to_string();
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
            "what was recorded did not fit into memory, so that of all that happens within {resolution} the last is kept: set \
             `resolution` to choose, or shorten the run"
        )
    })
}

/// What else the file contains, and the command for it.
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
        let command = reproduce::command(Some(experiment.file()), &experiment.paper, None);
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

pub(crate) fn sweep(args: &args::Sweep) -> Outcome {
    let mut inputs = Inputs::default();
    let experiment = Experiment::parse(inputs.read_document(&args.file, &args.overrides)?)?;
    let place = |path: Option<&Path>| path.map(|path| Folder::of_file(path, &inputs)).transpose();
    let (out, page) = (place(args.out.as_deref())?, place(args.report.as_deref())?);
    let mut keeper = args.rows.as_deref().map(|path| Keeper::open(path, &experiment, &inputs)).transpose()?;
    let options = sweep::Options { jobs: args.jobs.count(), seeds: args.seeds, shard: args.shard };
    let kept = keeper.as_mut().map(|keeper| std::mem::take(&mut keeper.rows)).unwrap_or_default();
    let sweep = {
        let mut watch = Watcher { progress: Progress::of_runs(), keeper: keeper.as_mut() };
        sweep::sweep(&experiment, options, &kept, &mut watch)?
    };
    if let Some(keeper) = keeper {
        keeper.finish(&experiment, kept, &sweep)?;
    }
    if let Some((folder, name)) = &page {
        folder.write(name, |out| out.write_all(html::sweep_page(&experiment, &sweep).as_bytes()))?;
    }
    match out {
        Some((folder, name)) => folder.write(&name, |mut out| sweep.table.write_csv(&mut out))?,
        None => sweep.table.write_csv(&mut std::io::stdout().lock())?,
    }
    // The table is on stdout, for programs.
    notes(&sweep).iter().try_for_each(|note| writeln!(anstream::stderr(), "note: {note}"))?;
    Ok(())
}

/// What a reader of the table should know.
fn notes(sweep: &Sweep) -> Vec<String> {
    let mut notes = Vec::new();
    if sweep.certain > 0 {
        let which = match sweep.certain == sweep.points {
            true => "no point has anything random".to_owned(),
            false => format!("{} of {} points have nothing random", sweep.certain, sweep.points),
        };
        notes.push(format!("{which} and were run once; a `start_jitter` of a flow makes seeds differ"));
    }
    if sweep.kept > 0 {
        notes.push(format!("{} of {} runs were kept from an earlier sweep", sweep.kept, sweep.rows.len()));
    }
    notes
}

/// A file of rows, to which each run is added as soon as it is done.
struct Keeper {
    folder: Folder,
    name: String,
    file: fs::File,
    rows: Rows,
}

impl Keeper {
    fn open(path: &Path, experiment: &Experiment, inputs: &Inputs) -> Result<Self, Failure> {
        let (folder, name) = Folder::of_file(path, inputs)?;
        let refuse = |error: std::io::Error| {
            Failure::usage(format!("{}: cannot be kept: {error}; name another file", path.display()))
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(refuse(error)),
        };
        let rows = Rows::parse(experiment, &path.display().to_string(), &text)?;
        // The file is rewritten before anything is added, so that no line follows an incomplete one.
        folder.write(&name, |out| write_rows(experiment, rows.iter(), out))?;
        let file = fs::File::options().append(true).open(path).map_err(refuse)?;
        Ok(Self { folder, name, file, rows })
    }

    /// Writes all rows again, in an order that does not depend on which run was done first.
    fn finish(self, experiment: &Experiment, mut rows: Rows, sweep: &Sweep) -> Outcome {
        sweep.rows.iter().for_each(|row| rows.add(row.clone()));
        self.folder.write(&self.name, |out| write_rows(experiment, rows.iter(), out))
    }
}

fn write_rows<'a>(
    experiment: &Experiment,
    rows: impl Iterator<Item = &'a Row>,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    out.write_all(sweep::head(experiment).as_bytes())?;
    let mut rows = rows;
    rows.try_for_each(|row| row.write_csv(out))
}

struct Watcher<'a> {
    progress: Progress,
    keeper: Option<&'a mut Keeper>,
}

impl sweep::Watch for &mut Watcher<'_> {
    fn runs(&mut self, done: usize, total: usize) {
        self.progress.set(done, total);
    }

    fn row(&mut self, row: &Row) {
        // A failure here is no error yet: all rows are written again at the end.
        if let Some(keeper) = &mut self.keeper {
            let _ = row.write_csv(&mut keeper.file);
        }
    }
}

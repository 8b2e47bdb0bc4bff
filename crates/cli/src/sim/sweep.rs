//! `anabranch sim sweep`, and `anabranch sim merge`, which joins the rows of shards.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::sweep::{self, Failed, Part, Row, Rows, Sweep};
use anabranch_lab::{files, html};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{Progress, named};

pub(crate) fn sweep(args: &args::Sweep) -> Outcome {
    let mut inputs = Inputs::default();
    let experiment = Experiment::parse(inputs.read_document(&args.file, &args.overrides)?)?;
    let outputs = Outputs::open(&args.outputs, &inputs)?;
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
    outputs.write(&experiment, &sweep)?;
    // The table alone goes to stdout, so that programs can read it.
    notes(&sweep).iter().try_for_each(|note| writeln!(anstream::stderr(), "note: {note}"))?;
    match sweep.failed.first() {
        None => Ok(()),
        Some(first) => Err(failed(&experiment, first, &sweep, args.rows.is_some())),
    }
}

/// The failure for runs that panicked: their number and the first of them.
fn failed(experiment: &Experiment, first: &Failed, sweep: &Sweep, are_kept: bool) -> Failure {
    let (count, total) = (sweep.failed.len(), sweep.failed.len() + sweep.rows.len());
    let which = match sweep::describe(experiment, first.place) {
        Ok(which) => which,
        Err(diagnostic) => return diagnostic.into(),
    };
    let others = if are_kept { "the others are kept" } else { "the table has the others" };
    Failure::failed(format!("{count} of {total} runs failed, the first {which}: {}; {others}", first.because))
}

/// Joins the rows of shards. Nothing is run.
pub(crate) fn merge(args: &args::Merge) -> Outcome {
    let mut inputs = Inputs::default();
    let experiment = Experiment::parse(inputs.read_document(&args.file, &args.overrides)?)?;
    let mut parts = Vec::with_capacity(args.parts.len());
    for path in &args.parts {
        let file = named(path);
        let text = inputs.read_text(path)?;
        parts.push(Part { rows: Rows::parse(&experiment, &file, &text)?, file });
    }
    let outputs = Outputs::open(&args.outputs, &inputs)?;
    let rows = args.rows.as_deref().map(|path| Folder::of_file(path, &inputs)).transpose()?;
    let sweep = sweep::merge(&experiment, args.seeds, &parts)?;
    if let Some((folder, name)) = rows {
        let mut all = Rows::default();
        sweep.rows.iter().for_each(|row| all.add(row.clone()));
        folder.write(&name, |out| write_rows(&experiment, all.iter(), out))?;
    }
    outputs.write(&experiment, &sweep)?;
    notes(&sweep).iter().try_for_each(|note| writeln!(anstream::stderr(), "note: {note}"))?;
    Ok(())
}

/// The destinations of the table and the report.
struct Outputs {
    table: Option<(Folder, String)>,
    page: Option<(Folder, String)>,
}

impl Outputs {
    fn open(args: &args::SweepOutputs, inputs: &Inputs) -> Result<Self, Failure> {
        let place = |path: Option<&Path>| path.map(|path| Folder::of_file(path, inputs)).transpose();
        Ok(Self { table: place(args.out.as_deref())?, page: place(args.report.as_deref())? })
    }

    fn write(&self, experiment: &Experiment, sweep: &Sweep) -> Outcome {
        if let Some((folder, name)) = &self.page {
            folder.write(name, |out| out.write_all(html::sweep_page(experiment, sweep).as_bytes()))?;
        }
        match &self.table {
            Some((folder, name)) => folder.write(name, |mut out| sweep.table.write_csv(&mut out))?,
            None => sweep.table.write_csv(&mut std::io::stdout().lock())?,
        }
        Ok(())
    }
}

/// Notes on the table, for its reader.
fn notes(sweep: &Sweep) -> Vec<String> {
    let mut notes = Vec::new();
    if sweep.certain > 0 {
        let which = match sweep.certain == sweep.points {
            true => "all points have nothing random".to_owned(),
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
            Failure::usage(format!("{}: cannot be kept: {error}; name another file", named(path)))
        };
        let text = match files::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(refuse(error)),
        };
        let rows = Rows::parse(experiment, &named(path), &text)?;
        // The file is rewritten before anything is added, so that no line follows an incomplete one.
        folder.write(&name, |out| write_rows(experiment, rows.iter(), out))?;
        let file = fs::File::options().append(true).open(path).map_err(refuse)?;
        Ok(Self { folder, name, file, rows })
    }

    /// Writes all rows again, in an order that does not depend on the order of the runs.
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

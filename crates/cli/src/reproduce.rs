//! `anabranch reproduce`: published numbers beside ours.

mod screen;
mod summary;
mod tables;

use std::io::{self, Write};
use std::path::Path;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::html;
use anabranch_lab::reproduce::{self, Options, Paper, Watch, Which};
use anabranch_web::page::page_with;

use crate::args::{Experiments, Format, Reproduce, Selection};
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{Progress, named};

pub(crate) fn reproduce(args: &Reproduce) -> Outcome {
    let mut inputs = Inputs::default();
    let experiments = load(&args.selection, &mut inputs)?;
    let is_for_people = args.format() == Format::Text;
    // People want the report; a program requests its files.
    let path = args.out.as_deref().or(is_for_people.then_some(Path::new(REPORT_FOLDER)));
    let names = if args.out.is_some() { &[REPORT, PLAYGROUND, JSON, CSV, MARKDOWN][..] } else { &[REPORT, PLAYGROUND] };
    let create = |path| Folder::create(path, names.iter().copied(), &inputs);
    let folder = path.map(|path| create(path).map(|folder| (folder, path))).transpose()?;
    let options = Options { jobs: args.selection.jobs.count(), seeds: args.selection.seeds };
    let of_paper = match (is_for_people, args.verbose) {
        (false, _) => None,
        (true, false) => Some(screen::text as fn(&Paper) -> String),
        (true, true) => Some(tables::text as fn(&Paper) -> String),
    };
    let mut printer = Printer { progress: Progress::of_runs(), of_paper, printed: Ok(()) };
    let outcome = reproduce::reproduce(&experiments, options, &mut printer)?;
    printer.finish()?;
    let mut out = anstream::stdout().lock();
    if let Some((folder, _)) = &folder {
        folder.write(REPORT, |out| out.write_all(html::page_beside(&outcome, Some(PLAYGROUND)).as_bytes()))?;
        let sources = experiments.iter().map(Experiment::document).flat_map(|document| {
            let own = (document.file().to_owned(), document.text().to_owned());
            let bases = document.bases().iter().map(|base| (base.file.to_string(), base.text.to_string()));
            bases.chain([own])
        });
        folder.write(PLAYGROUND, |out| out.write_all(page_with(sources).as_bytes()))?;
        if args.out.is_some() {
            folder.write(JSON, |out| outcome.write_json(out))?;
            folder.write(CSV, |out| outcome.write_csv(out))?;
            folder.write(MARKDOWN, |out| outcome.write_markdown(out))?;
        }
    }
    match args.format() {
        Format::Text => write!(out, "{}", summary::text(&outcome))?,
        Format::Markdown => outcome.write_markdown(&mut out)?,
        Format::Json => outcome.write_json(&mut out)?,
        Format::Csv => outcome.write_csv(&mut out)?,
    }
    if let (true, Some((_, path))) = (is_for_people, folder) {
        let more = if args.verbose { "" } else { "; every number in the terminal: --verbose" };
        writeln!(out, "Everything, with reasons and figures: {}{more}", named(path.join(REPORT)))?;
    }
    match (outcome.missed(), outcome.engine_missed()) {
        (0, 0) => Ok(()),
        (0, missed) => Err(Failure::missed(format!(
            "our transport gives something else than ns-2's agents in {missed} of the claims, and the experiments do not say why"
        ))),
        (1, _) => Err(Failure::missed("1 claim deviates, and its experiment does not say why")),
        (missed, _) => Err(Failure::missed(format!("{missed} claims deviate, and their experiments do not say why"))),
    }
}

/// Prints each paper as soon as it is judged.
struct Printer {
    progress: Progress,
    of_paper: Option<fn(&Paper) -> String>,
    /// After a failure nothing more is printed.
    printed: io::Result<()>,
}

impl Printer {
    fn finish(self) -> io::Result<()> {
        self.printed
    }
}

impl Watch for &mut Printer {
    fn runs(&mut self, done: usize, total: usize) {
        self.progress.set(done, total);
    }

    fn paper(&mut self, paper: &Paper) {
        if let (Some(of_paper), Ok(())) = (self.of_paper, &self.printed) {
            let text = of_paper(paper);
            self.printed = self.progress.aside(|| {
                let mut out = anstream::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            });
        }
    }
}

/// The default folder of the report.
const REPORT_FOLDER: &str = "reproduction";
const REPORT: &str = "report.html";
/// The page that the links of the report open.
pub(crate) const PLAYGROUND: &str = "playground.html";
const JSON: &str = "outcome.json";
const CSV: &str = "outcome.csv";
const MARKDOWN: &str = "outcome.md";

/// The experiments that are asked for, sorted by key and file name.
pub(crate) fn load(
    Selection { keys, all, experiments: Experiments { folder }, .. }: &Selection,
    inputs: &mut Inputs,
) -> Result<Vec<Experiment>, Failure> {
    let which = match (keys.as_slice(), all) {
        (_, true) => Which::All,
        ([], false) => Which::Papers,
        (named, false) => Which::Named(named),
    };
    reproduce::load(folder, which, |file| inputs.read_plain(file))
}

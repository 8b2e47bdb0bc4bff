//! `anabranch reproduce`: published numbers beside ours.

mod screen;
mod summary;
mod tables;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_lab::diagnostic::suggestion;
use anabranch_lab::experiment::{COMMON, Experiment};
use anabranch_lab::html;
use anabranch_lab::reproduce::{self, Options, Paper, Watch};
use anabranch_lab::sensitivity::{self, Sensitivity};

use crate::args::{Experiments, Format, Reproduce, Selection};
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::Progress;

pub(crate) fn reproduce(args: &Reproduce) -> Outcome {
    let mut inputs = Inputs::default();
    let experiments = load(&args.selection, &mut inputs)?;
    let is_for_people = args.format() == Format::Text;
    // People want the report; a program requests its files.
    let path = args.out.as_deref().or(is_for_people.then_some(Path::new(REPORT_FOLDER)));
    let names = if args.out.is_some() { &[REPORT, JSON, CSV, MARKDOWN][..] } else { &[REPORT] };
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
        folder.write(REPORT, |out| out.write_all(html::page(&outcome).as_bytes()))?;
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
        writeln!(out, "Everything, with reasons and figures: {}{more}", path.join(REPORT).display())?;
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
const JSON: &str = "outcome.json";
const CSV: &str = "outcome.csv";
const MARKDOWN: &str = "outcome.md";

/// The experiments of some papers, or of all, sorted by key and file name.
pub(crate) fn load(
    Selection { keys, experiments: Experiments { folder }, .. }: &Selection,
    inputs: &mut Inputs,
) -> Result<Vec<Experiment>, Failure> {
    let is_paper = |path: &PathBuf| path.is_dir() && !path.ends_with(COMMON);
    let papers = entries(folder)?.into_iter().filter(is_paper).collect::<Vec<_>>();
    let mut experiments = Vec::new();
    for paper in &papers {
        for file in
            entries(paper)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        {
            let experiment = Experiment::parse(inputs.read_plain(&file)?)?;
            // A folder may contain scenarios without claims, such as the benchmark's.
            if !experiment.paper.is_empty() {
                experiments.push(experiment);
            }
        }
    }
    let known: Vec<String> = experiments.iter().map(|experiment| experiment.paper.clone()).collect();
    if let Some(unknown) = keys.iter().find(|key| !known.contains(key)) {
        let mut papers: Vec<&str> = known.iter().map(String::as_str).collect();
        papers.dedup();
        let folder = folder.display();
        return Err(Failure::usage(format!("no paper `{unknown}` in {folder}; {}", suggestion(unknown, papers))));
    }
    experiments.retain(|experiment| keys.is_empty() || keys.contains(&experiment.paper));
    let sensitivity = folder.join(sensitivity::FILE);
    if sensitivity.exists() {
        Sensitivity::parse(inputs.read_plain(&sensitivity)?)?.mark(&mut experiments)?;
    }
    match experiments.is_empty() {
        false => Ok(experiments),
        true => Err(Failure::usage(format!(
            "{}: there are no experiments; name their folder with --experiments",
            folder.display()
        ))),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let refuse = |error| {
        let folder = folder.display();
        Failure::usage(format!(
            "{folder}: cannot be read: {error}; name the folder of the experiments with --experiments"
        ))
    };
    let listed =
        fs::read_dir(folder).and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
    let mut paths: Vec<PathBuf> = listed.map_err(refuse)?;
    paths.sort();
    Ok(paths)
}

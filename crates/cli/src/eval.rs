//! `anabranch eval`: evaluates a congestion law by the criteria of RFC 9743, or on random networks.

mod attack;
mod field;

use std::io::Write as _;
use std::path::Path;

use anabranch_lab::evaluation::{self, Evaluation, JudgedCriterion, Request, Ruling};
use anabranch_lab::html;
use anabranch_web::page::page_with;

use crate::args::Eval;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::reproduce::PLAYGROUND;
use crate::terminal::{Align, BAD, BOLD, DIM, GOOD, PLAIN, Progress, Table, named, paragraph};

pub(crate) fn eval(args: &Eval) -> Outcome {
    if args.field {
        return field::field(args);
    }
    if args.attack {
        return attack::attack(args);
    }
    if args.seed.is_some() || args.family.is_some() {
        return Err(Failure::usage("`--seed` and `--family` need `--field` or `--attack`"));
    }
    let request = Request::new(&args.cc, args.against.as_deref(), args.jobs.count())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let request = Request { quick: args.quick, seeds: args.seeds, ..request };
    // People want the report; a program requests its files.
    let path = args.out.as_deref().or((!args.json).then_some(Path::new(FOLDER)));
    let folder =
        path.map(|path| Folder::create(path, [], &Inputs::default()).map(|folder| (folder, path))).transpose()?;
    let progress = Progress::of_runs();
    let evaluation = evaluation::evaluate(&request, |done, total| progress.set(done, total))?;
    drop(progress);
    if let Some((folder, path)) = &folder {
        let report = html::evaluation_page_beside(&evaluation, Some(PLAYGROUND));
        folder.write(REPORT, |out| out.write_all(report.as_bytes()))?;
        let experiments = evaluation.outcome.papers.iter().flat_map(|paper| &paper.experiments);
        let sources = experiments.map(|experiment| (experiment.file.clone(), experiment.source.clone()));
        folder.write(PLAYGROUND, |out| out.write_all(page_with(sources).as_bytes()))?;
        if args.out.is_some() {
            folder.write(JSON, |out| write_json(&evaluation, out))?;
            folder.write(CSV, |out| evaluation.outcome.write_csv(out))?;
            let scenarios = Folder::create(&path.join(SCENARIOS), [], &Inputs::default())?;
            for (name, text) in evaluation.scenarios() {
                scenarios.write(&format!("{name}.toml"), |out| out.write_all(text.as_bytes()))?;
            }
            // The scenarios name them, and so can be run as they are.
            for (name, bytes) in evaluation.modules() {
                scenarios.write(name, |out| out.write_all(bytes))?;
            }
        }
    }
    let mut out = anstream::stdout().lock();
    match (args.json, folder) {
        (true, _) => write_json(&evaluation, &mut out)?,
        (false, folder) => {
            write!(out, "{}", text(&evaluation))?;
            if let Some((_, path)) = folder {
                writeln!(out, "Everything, with curves and scenarios: {}", named(path.join(REPORT)))?;
            }
        }
    }
    match evaluation.count(Ruling::Missed) {
        0 => Ok(()),
        1 => Err(Failure::missed("1 criterion is missed")),
        missed => Err(Failure::missed(format!("{missed} criteria are missed"))),
    }
}

fn write_json(evaluation: &Evaluation, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, evaluation)?;
    writeln!(out)
}

/// A line for each criterion, then the worst number of each missed one.
fn text(evaluation: &Evaluation) -> String {
    let Evaluation { law, against, criteria, outcome, .. } = evaluation;
    let beside = if against.is_empty() { String::new() } else { format!(" beside {}", against.join(", ")) };
    let mut text = format!("{BOLD}{law}{BOLD:#}{beside}, by the criteria of RFC 9743\n\n");
    let mut table =
        Table::new(&[("", Align::Left), ("criterion", Align::Left), ("bounds met", Align::Right), ("", Align::Left)]);
    for JudgedCriterion { section, title, ruling, met, claims, .. } in criteria {
        let (word, style) = match ruling {
            Ruling::Met => ("met", GOOD),
            Ruling::Missed => ("missed", BAD),
            Ruling::NotJudged => ("not judged", DIM),
        };
        let count = if *ruling == Ruling::NotJudged { String::new() } else { format!("{met} of {claims}") };
        table.row(vec![(section.clone(), DIM), (title.clone(), PLAIN), (count, PLAIN), (word.to_owned(), style)]);
    }
    text += &table.render("  ");
    text.push('\n');
    for criterion in criteria.iter().filter(|criterion| criterion.ruling == Ruling::Missed) {
        text += &paragraph(&format!("  {} ", criterion.section), &criterion.sentence);
    }
    text + &format!("\n{DIM}{} runs in {:.1} s, hash {}{DIM:#}\n", outcome.runs, outcome.wall_seconds, outcome.hash)
}

/// The default folder of the report.
const FOLDER: &str = "evaluation";
const REPORT: &str = "report.html";
const JSON: &str = "evaluation.json";
const CSV: &str = "claims.csv";
/// The folder of the scenarios as they were run, as `reproduce --experiments DIR/experiments` reads them.
const SCENARIOS: &str = "experiments/eval";

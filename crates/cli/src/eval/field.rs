//! `anabranch eval --field`: a law on random networks.

use std::io::Write as _;
use std::path::Path;

use anabranch_lab::evaluation::Contender;
use anabranch_lab::field::{self, DRAWS, Family, FamilyOutcome, Field, Request, Statistic, WORST_FOLDER};
use anabranch_lab::html;

use crate::args::Eval;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{Align, BOLD, DIM, PLAIN, Progress, Table, named, paragraph};

pub(super) fn field(args: &Eval) -> Outcome {
    let request = request(args)?;
    // A person wants the report and the worst scenarios; a program requests its files.
    let path = args.out.as_deref().or((!args.json).then_some(Path::new(FOLDER)));
    let folder =
        path.map(|path| Folder::create(path, [], &Inputs::default()).map(|folder| (folder, path))).transpose()?;
    let progress = Progress::of_runs();
    let field = field::run(&request, |done, total| progress.set(done, total))?;
    drop(progress);
    if let Some((folder, path)) = &folder {
        folder.write(REPORT, |out| out.write_all(html::field_page(&field).as_bytes()))?;
        folder.write(JSON, |out| write_json(&field, out))?;
        let worst = Folder::create(&path.join(WORST_FOLDER), [], &Inputs::default())?;
        for (name, text) in field.scenarios() {
            worst.write(name, |out| out.write_all(text.as_bytes()))?;
        }
        // The scenarios name them, and so can be run as they are.
        for (name, bytes) in field.modules() {
            worst.write(name, |out| out.write_all(bytes))?;
        }
    }
    let mut out = anstream::stdout().lock();
    match (args.json, folder) {
        (true, _) => write_json(&field, &mut out)?,
        (false, folder) => {
            let place =
                folder.as_ref().map_or_else(String::new, |(_, path)| path.join(WORST_FOLDER).display().to_string());
            write!(out, "{}", text(&field, &place))?;
            if let Some((_, path)) = folder {
                writeln!(out, "Everything, with distributions and scenarios: {}", named(path.join(REPORT)))?;
            }
        }
    }
    Ok(())
}

fn request(args: &Eval) -> Result<Request, Failure> {
    let usage = |error: String| Failure::usage(error);
    let evaluation = anabranch_lab::evaluation::Request::new(&args.cc, args.against.as_deref(), args.jobs.count())
        .map_err(|error| usage(error.to_string()))?;
    let families = families(args)?;
    let draws = args.draws.unwrap_or(DRAWS);
    let (law, against): (Contender, Vec<Contender>) = (evaluation.law, evaluation.against);
    Ok(Request { law, against, families, draws, seed: args.seed.unwrap_or(1), jobs: evaluation.jobs })
}

/// The families of the command line.
pub(super) fn families(args: &Eval) -> Result<Vec<Family>, Failure> {
    match &args.family {
        None => Ok(Family::ALL.to_vec()),
        Some(names) => names.iter().map(|name| Family::find(name)).collect::<Result<_, _>>().map_err(Failure::usage),
    }
}

fn write_json(field: &Field, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, field)?;
    writeln!(out)
}

fn text(field: &Field, place: &str) -> String {
    let Field { laws, families, draws, seed, runs, hash, .. } = field;
    let mut text = format!("{BOLD}{}{BOLD:#} on random networks: {draws} draws of each family, seed {seed}\n", laws[0]);
    for family in families {
        text += &table(family);
        text += &worst(family, place);
    }
    text + &format!("\n{DIM}{runs} runs, hash {hash}{DIM:#}\n")
}

fn table(family: &FamilyOutcome) -> String {
    let mut text = format!("\n{BOLD}{}{BOLD:#}\n", family.name);
    text += &paragraph("  ", family.question);
    let heads: Vec<String> = family
        .columns
        .iter()
        .map(|column| {
            let kind = family.figures[column.figure];
            let unit = if kind.unit.is_empty() { String::new() } else { format!(" {}", kind.unit) };
            format!("{}{unit} {}", kind.name, column.statistic.name())
        })
        .collect();
    let columns: Vec<(&str, Align)> =
        [("law", Align::Left)].into_iter().chain(heads.iter().map(|head| (head.as_str(), Align::Right))).collect();
    let mut table = Table::new(&columns);
    for law in &family.laws {
        let values = law.values.iter().zip(&family.columns).map(|(value, column)| {
            let is_ratio =
                family.figures[column.figure].unit.is_empty() || matches!(column.statistic, Statistic::Within(..));
            (if is_ratio { format!("{value:.2}") } else { format!("{value:.1}") }, PLAIN)
        });
        table.row([(law.law.clone(), PLAIN)].into_iter().chain(values).collect());
    }
    text + &table.render("  ")
}

/// The three worst draws; the others are in the folder.
fn worst(family: &FamilyOutcome, place: &str) -> String {
    let mut text = String::new();
    for one in family.laws[0].worst.iter().take(3) {
        let facts: Vec<String> =
            family.draws[one.draw].iter().map(|fact| format!("{} {}", fact.name, fact.value)).collect();
        let line = format!(
            "{} {:.2}: anabranch sim run {place}/{}  ({})",
            family.figures[0].name,
            one.value,
            one.file,
            facts.join(", ")
        );
        text += &format!("  {DIM}{line}{DIM:#}\n");
    }
    text
}

/// The default folder.
const FOLDER: &str = "field";
const REPORT: &str = "report.html";
const JSON: &str = "field.json";

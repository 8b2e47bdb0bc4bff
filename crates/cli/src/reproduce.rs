//! `anabranch reproduce`: published tables beside ours.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anabranch_lab::diagnostic::suggestion;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::html;
use anabranch_lab::reproduce::{self, JudgedClaim, Options, Paper, Total, item_rank};
use anabranch_lab::sensitivity::{self, Sensitivity};
use anabranch_lab::verdict::Verdict;

use crate::args::{Experiments, Format, Reproduce, Selection};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Folder};
use crate::terminal::{Align, BAD, BOLD, DIM, GOOD, NOTABLE, PLAIN, Progress, Table, paragraph};

pub(crate) fn reproduce(args: &Reproduce) -> Outcome {
    let experiments = load(&args.selection)?;
    let is_for_people = args.format() == Format::Text;
    // Who reads the text shall find the report; a program asks for what it wants to have.
    let path = args.out.as_deref().or(is_for_people.then_some(Path::new(REPORT_FOLDER)));
    let folder = path.map(|path| Folder::create(path).map(|folder| (folder, path))).transpose()?;
    let options = Options { jobs: args.selection.jobs.count(), seeds: args.selection.seeds };
    let outcome = {
        let progress = Progress::new();
        reproduce::reproduce(&experiments, options, |done, total| progress.set(done, total))?
    };
    let mut out = anstream::stdout().lock();
    if let Some((folder, _)) = &folder {
        folder.write(REPORT, |out| out.write_all(html::page(&outcome).as_bytes()))?;
        if args.out.is_some() {
            folder.write("outcome.json", |out| outcome.write_json(out))?;
            folder.write("outcome.csv", |out| outcome.write_csv(out))?;
            folder.write("outcome.md", |out| outcome.write_markdown(out))?;
        }
    }
    match args.format() {
        Format::Text => write!(out, "{}", text(&outcome))?,
        Format::Markdown => outcome.write_markdown(&mut out)?,
        Format::Json => outcome.write_json(&mut out)?,
        Format::Csv => outcome.write_csv(&mut out)?,
    }
    if let (true, Some((_, path))) = (is_for_people, folder) {
        writeln!(out, "report: {}", path.join(REPORT).display())?;
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

/// Where the report goes unless somebody says otherwise.
const REPORT_FOLDER: &str = "reproduction";
const REPORT: &str = "report.html";

/// The experiments of some papers, or of all, in the order of their keys and of their files' names.
pub(crate) fn load(
    Selection { keys, experiments: Experiments { folder }, .. }: &Selection,
) -> Result<Vec<Experiment>, Failure> {
    let papers = entries(folder)?.into_iter().filter(|path| path.is_dir()).collect::<Vec<_>>();
    let mut experiments = Vec::new();
    for paper in &papers {
        for file in
            entries(paper)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        {
            let experiment = Experiment::parse(files::read_plain(&file)?)?;
            // A folder may hold scenarios that claim nothing, as those of the benchmark.
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
        Sensitivity::parse(files::read_plain(&sensitivity)?)?.mark(&mut experiments)?;
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

fn text(outcome: &reproduce::Outcome) -> String {
    let mut text = String::new();
    for Paper { key, experiments, .. } in &outcome.papers {
        text += &format!("{BOLD}{key}{BOLD:#}\n");
        let claims: Vec<&JudgedClaim> = experiments.iter().flat_map(|experiment| &experiment.claims).collect();
        // The claims of an item may stand in several files. Tables come first, then figures, then what the text says.
        let mut items: Vec<&str> = Vec::new();
        for claim in &claims {
            if !items.contains(&claim.item.as_str()) {
                items.push(&claim.item);
            }
        }
        items.sort_by_key(|item| item_rank(item));
        for item in items {
            let claims: Vec<&JudgedClaim> = claims.iter().copied().filter(|claim| claim.item == item).collect();
            let mut titles: Vec<&str> = claims.iter().map(|claim| claim.title.as_str()).collect();
            titles.dedup();
            for title in titles {
                let group: Vec<&JudgedClaim> = claims.iter().copied().filter(|claim| claim.title == title).collect();
                text += &table(title, &group);
            }
            for note in experiments.iter().flat_map(|experiment| &experiment.notes).filter(|note| note.item == item) {
                text += &paragraph("  * ", &note.text);
            }
        }
    }
    text + &summary(outcome)
}

fn table(title: &str, claims: &[&JudgedClaim]) -> String {
    let has_engine = claims.iter().any(|claim| claim.engine.is_some());
    let mut columns = vec![
        ("", Align::Left),
        ("", Align::Left),
        ("published", Align::Right),
        ("ours", Align::Right),
        ("± sd", Align::Right),
        ("difference", Align::Right),
        ("", Align::Left),
        ("must lie", Align::Left),
        ("verdict", Align::Left),
    ];
    if has_engine {
        columns.extend([("engine", Align::Right), ("to ours", Align::Right)]);
    }
    let mut table = Table::new(&columns);
    for claim in claims {
        let style = match claim.verdict {
            Verdict::Reproduced | Verdict::Holds => GOOD,
            Verdict::Deviates if claim.is_missed || claim.is_open => BAD,
            Verdict::Deviates | Verdict::NotReproducible => NOTABLE,
        };
        let mut row = vec![
            (claim.row.clone(), PLAIN),
            (claim.column.clone(), PLAIN),
            (claim.published.to_string(), PLAIN),
            (claim.ours_shown().unwrap_or_else(|| "–".to_owned()), PLAIN),
            (claim.sd_shown().unwrap_or_default(), DIM),
            (claim.difference_shown().unwrap_or_default(), PLAIN),
            (claim.unit.clone(), DIM),
            (claim.band_shown().unwrap_or_default(), DIM),
            (claim.verdict.to_string(), style),
        ];
        if has_engine {
            let style = match &claim.engine {
                Some(engine) if engine.is_missed => BAD,
                Some(engine) if !engine.agrees => NOTABLE,
                _ => GOOD,
            };
            row.push((claim.engine_shown().unwrap_or_default(), PLAIN));
            row.push((claim.engine_stand_shown().unwrap_or_default(), style));
        }
        table.row(row);
    }
    let mut text = format!("\n  {BOLD}{title}{BOLD:#}\n{}", table.render("  "));
    let mut reasons: Vec<&str> = claims.iter().filter_map(|claim| claim.because.as_deref()).collect();
    reasons.dedup();
    for because in reasons {
        text += &paragraph("  because: ", because);
    }
    let engines = claims.iter().filter_map(|claim| claim.engine.as_ref());
    let mut reasons: Vec<&str> = engines.filter_map(|engine| engine.because.as_deref()).collect();
    reasons.dedup();
    for because in reasons {
        text += &paragraph("  engine: ", because);
    }
    text
}

/// Claims by who says so: results first, then what cannot fail or nobody else says.
fn totals(outcome: &reproduce::Outcome) -> String {
    let totals = outcome.totals();
    let columns = [
        ("claims", Align::Left),
        ("", Align::Right),
        ("reproduced", Align::Right),
        ("deviate", Align::Right),
        ("unexplained", Align::Right),
        ("not reproducible", Align::Right),
        ("coarse", Align::Right),
    ];
    let shown = |count: usize| if count > 0 { count.to_string() } else { String::new() };
    let row = |total: &Total| {
        let unexplained = total.open + total.missed;
        vec![
            (total.under.name().to_owned(), PLAIN),
            (total.claims.to_string(), PLAIN),
            (total.good.to_string(), GOOD),
            (shown(total.deviate()), NOTABLE),
            (shown(unexplained), BAD),
            (shown(total.not_reproducible), NOTABLE),
            (shown(total.coarse), NOTABLE),
        ]
    };
    let mut text = format!("\n{BOLD}Totals by source{BOLD:#}\n");
    let mut results = Table::new(&columns);
    totals.iter().filter(|total| total.under.is_result()).for_each(|total| results.row(row(total)));
    if !results.is_empty() {
        text += &results.render("  ");
    }
    let others: Vec<&Total> = totals.iter().filter(|total| !total.under.is_result()).collect();
    if !others.is_empty() {
        let mut table = Table::new(&columns.map(|(head, align)| match head {
            "claims" => ("not results", align),
            "reproduced" => ("hold", align),
            other => (other, align),
        }));
        others.iter().for_each(|total| table.row(row(total)));
        text += &format!("\n{}", table.render("  "));
    }
    text
}

fn summary(outcome: &reproduce::Outcome) -> String {
    let reproduce::Outcome { runs, wall_seconds, hash, .. } = outcome;
    let mut text = totals(outcome);
    let [numbers, others] = outcome.engine_counts();
    if numbers.claims + others.claims > 0 {
        text += &format!(
            "\nour transport in place of ns-2's agents: {} of {} numbers within 5 %, {} of {} orders, times and shapes hold",
            numbers.agree, numbers.claims, others.agree, others.claims
        );
        if others.kept_by_none > 0 {
            text += &format!(" ({} do not with ns-2's agents either)", others.kept_by_none);
        }
        match outcome.engine_missed() {
            0 => text += "; the experiments say why the others do not",
            missed => text += &format!("; {BAD}{missed} are not explained{BAD:#}"),
        }
    }
    text + &format!("\n{DIM}{runs} runs in {wall_seconds:.1} s, hash {hash}{DIM:#}\n")
}

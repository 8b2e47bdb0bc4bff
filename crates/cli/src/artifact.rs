//! `anabranch artifact`: what was run and what came out, for others to check.

use std::fs::File;
use std::io::{BufReader, Cursor, Write as _};

use anabranch_lab::artifact::{self, Artifact};
use anabranch_lab::diagnostic::Diagnostic;
use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::html;
use anabranch_lab::reproduce::{self, Options};

use crate::args::{Jobs, Pack, Verify};
use crate::failure::{Failure, Outcome};
use crate::files::Folder;
use crate::reproduce::load;
use crate::terminal::{Progress, shown};

/// More differences than these tell nothing new.
const DIFFERENCES_SHOWN: usize = 20;

pub(crate) fn pack(args: &Pack) -> Outcome {
    // An outcome names the files it is from: in an artifact, by the names that they have there.
    let documents: Vec<Document> = load(&args.selection)?
        .iter()
        .map(|experiment| Document::parse(&artifact::name_of(experiment.file()), experiment.source()))
        .collect::<Result<_, Diagnostic>>()?;
    let (folder, name) = Folder::of_file(&args.file)?;
    let outcome = run(&documents, &args.selection.jobs, args.selection.seeds)?;
    let (mut csv, mut markdown) = (Vec::new(), Vec::new());
    outcome.write_csv(&mut csv)?;
    outcome.write_markdown(&mut markdown)?;
    let report = html::page(&outcome).into_bytes();
    let reports = [("outcome.csv", csv), ("outcome.md", markdown), ("report.html", report)];
    let reports = reports.map(|(name, bytes)| (name.to_owned(), bytes)).into();
    let mut archive = Cursor::new(Vec::new());
    artifact::pack(&documents, &outcome, reports, &mut archive)
        .map_err(|error| Failure::failed(format!("{}: cannot be packed: {error}", args.file.display())))?;
    let archive = archive.into_inner();
    folder.write(&name, |out| out.write_all(&archive))?;
    let mut out = anstream::stdout().lock();
    let (file, bytes, claims) = (args.file.display(), archive.len(), outcome.claims().count());
    let reproduce::Outcome { runs, hash, .. } = &outcome;
    writeln!(out, "{file}: {bytes} bytes; {claims} claims, {runs} runs, hash {hash}")?;
    Ok(())
}

pub(crate) fn verify(args: &Verify) -> Outcome {
    let name = args.file.display();
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{name}: {error}; name a whole file that `anabranch artifact pack` has written"))
    };
    let file = File::open(&args.file).map_err(|error| refuse(&error))?;
    let artifact = Artifact::read(BufReader::new(file)).map_err(|error| refuse(&error))?;
    let documents = artifact.documents().map_err(|error| refuse(&error))?;
    let manifest = artifact.manifest();
    let mut out = anstream::stdout().lock();
    let (files, version, platform) = (manifest.files.len(), &manifest.version, &manifest.platform);
    let (version, platform) = (shown(version), shown(platform));
    writeln!(out, "{name}: {files} files as they were packed, by anabranch {version} on {platform}")?;
    let outcome = run(&documents, &args.jobs, manifest.seeds)?;
    let differences = artifact.differences(&outcome, DIFFERENCES_SHOWN).map_err(|error| refuse(&error))?;
    let (runs, hash, claims) = (outcome.runs, &outcome.hash, outcome.claims().count());
    if differences.is_empty() {
        writeln!(out, "{claims} claims, {runs} runs, hash {hash}: the same in every number")?;
        return Ok(());
    }
    differences.iter().try_for_each(|difference| writeln!(out, "  {}", shown(&difference.to_string())))?;
    if version != outcome.version {
        writeln!(out, "This is anabranch {}; the same version may give the same numbers.", outcome.version)?;
    }
    Err(Failure::missed(format!("{name}: its experiments give another outcome here")))
}

fn run(documents: &[Document], jobs: &Jobs, seeds: Option<u32>) -> Result<reproduce::Outcome, Failure> {
    let experiments: Vec<Experiment> =
        documents.iter().cloned().map(Experiment::parse).collect::<Result<_, Diagnostic>>()?;
    let progress = Progress::of_runs();
    let options = Options { jobs: jobs.count(), seeds };
    Ok(reproduce::reproduce(&experiments, options, |done, total| progress.set(done, total))?)
}

//! `anabranch artifact`: packs experiments with their outcome, and verifies them.

use std::io::{BufReader, Cursor, Write as _};

use anabranch_lab::artifact::{self, Artifact};
use anabranch_lab::diagnostic::Diagnostic;
use anabranch_lab::document::Document;
use anabranch_lab::files;
use anabranch_lab::reproduce::{self, Options};
use anabranch_lab::sensitivity;

use crate::args::{Jobs, Pack, Verify};
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::reproduce::load;
use crate::terminal::{Progress, named, shown};

/// More differences than this are not shown.
const DIFFERENCES_SHOWN: usize = 20;

pub(crate) fn pack(args: &Pack) -> Outcome {
    // An outcome names its source files: in an artifact, by their names there.
    let mut inputs = Inputs::default();
    let mut documents: Vec<Document> = load(&args.selection, &mut inputs)?
        .iter()
        .map(|experiment| artifact::renamed(experiment.document()))
        .collect::<Result<_, Diagnostic>>()?;
    let sensitivity = args.selection.experiments.folder.join(sensitivity::FILE);
    if sensitivity.exists() {
        let marks = inputs.read_plain(&sensitivity)?;
        documents.push(Document::parse(&artifact::name_of_sensitivity(), marks.text())?);
    }
    // Sorted as the verifier will read them.
    documents.sort_by(|a, b| a.file().cmp(b.file()));
    let (folder, name) = Folder::of_file(&args.file, &inputs)?;
    let outcome = run(&documents, &args.selection.jobs, args.selection.seeds)?;
    let mut archive = Cursor::new(Vec::new());
    artifact::pack(&documents, &outcome, &mut archive)
        .map_err(|error| Failure::failed(format!("{}: cannot be packed: {error}", named(&args.file))))?;
    let archive = archive.into_inner();
    folder.write(&name, |out| out.write_all(&archive))?;
    let mut out = anstream::stdout().lock();
    let (file, bytes, claims) = (named(&args.file), archive.len(), outcome.claims().count());
    let reproduce::Outcome { runs, hash, .. } = &outcome;
    writeln!(out, "{file}: {bytes} bytes; {claims} claims, {runs} runs, hash {hash}")?;
    Ok(())
}

pub(crate) fn verify(args: &Verify) -> Outcome {
    let name = named(&args.file);
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{name}: {error}; name a whole file that `anabranch artifact pack` has written"))
    };
    let file = files::open(&args.file).map_err(|error| refuse(&error))?;
    let artifact = Artifact::read(BufReader::new(file)).map_err(|error| refuse(&error))?;
    let documents = artifact.documents().map_err(|error| refuse(&error))?;
    let manifest = artifact.manifest();
    let mut out = anstream::stdout().lock();
    let (files, version, platform) = (manifest.files.len(), &manifest.version, &manifest.platform);
    let (version, platform) = (shown(version), shown(platform));
    writeln!(out, "{name}: {files} files as its manifest says, packed by anabranch {version} on {platform}")?;
    let outcome = run(&documents, &args.jobs, manifest.seeds)?;
    let differences = artifact.differences(&outcome, DIFFERENCES_SHOWN).map_err(|error| refuse(&error))?;
    let (runs, hash, claims) = (outcome.runs, &outcome.hash, outcome.claims().count());
    if differences.is_empty() {
        writeln!(out, "{claims} claims, {runs} runs, hash {hash}: every file comes out again, byte by byte")?;
        return Ok(());
    }
    differences.iter().try_for_each(|difference| writeln!(out, "  {}", shown(&difference.to_string())))?;
    if version != outcome.version {
        writeln!(out, "This is anabranch {}; the same version may give the same numbers.", outcome.version)?;
    }
    Err(Failure::missed(format!("{name}: its experiments give other files here")))
}

fn run(documents: &[Document], jobs: &Jobs, seeds: Option<u32>) -> Result<reproduce::Outcome, Failure> {
    let experiments = artifact::experiments(documents)?;
    let progress = Progress::of_runs();
    let options = Options { jobs: jobs.count(), seeds };
    Ok(reproduce::reproduce(&experiments, options, |done, total| progress.set(done, total))?)
}

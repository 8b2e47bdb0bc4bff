//! Artifacts: experiments and their outcome in one ZIP file that others can check.
//!
//! ```text
//! manifest.json                  the packing platform, the seeds, the hash of all runs, and each other file's length and SHA-256
//! README.md                      how to check the artifact
//! experiments/KEY/NAME.toml      the scenarios with their seeds and claims
//! experiments/common/NAME.toml   the files that they extend
//! experiments/KEY/NAME.trace     the traces of their links, there or in `common/`
//! experiments/generated/         the coarse claims among these, if that was tested
//! outcome.json                   everything measured, as `reproduce --json` prints it, without the wall time
//! outcome.csv, outcome.md        the claims as tables
//! report.html                    the report
//! ```
//!
//! Checksums detect only transmission errors: somebody who changes a file can change its checksum, too. So verification runs the
//! scenarios again, writes every file anew from that outcome, and compares all bytes, also the manifest's. It trusts only the
//! scenarios themselves and the name of the platform. No file contains the time of the runs. Packing the same outcome twice gives the
//! same bytes, and the archive has only these files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::diagnostic::{Diagnostic, Fault};
use crate::document::{Document, Source, is_trace};
use crate::experiment::{COMMON, Experiment};
use crate::html;
use crate::reproduce::Outcome;
use crate::sensitivity::{self, Sensitivity};

/// The schema of [`Manifest`].
pub const SCHEMA: &str = "anabranch-artifact/2";

const MANIFEST: &str = "manifest.json";
const OUTCOME: &str = "outcome.json";
/// The files written from an outcome, besides the manifest.
const DRAWN: [&str; 5] = ["README.md", OUTCOME, "outcome.csv", "outcome.md", "report.html"];
const EXPERIMENTS: &str = "experiments/";

/// The limit of files: all papers have some dozens.
const FILES_MAX: usize = 10_000;

/// The limit of an unpacked file. An outcome with all its series has some ten million bytes.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// The limit of all unpacked files.
const BYTES_MAX: u64 = 1 << 30;

/// The manifest of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of this document's schema.
    pub schema: String,
    /// Version of the laboratory that packed it.
    pub version: String,
    /// The architecture and operating system of the packing machine. It cannot be checked.
    pub platform: String,
    /// The number of seeds that replaces the experiments' own, if one was given.
    pub seeds: Option<u32>,
    /// The number of judged runs.
    pub runs: usize,
    /// The combined hash of all judged runs.
    pub hash: String,
    /// Every other file, sorted by name.
    pub files: Vec<Entry>,
}

/// One file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name in the archive.
    pub name: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// An artifact whose files match its manifest.
#[derive(Clone, Debug)]
pub struct Artifact {
    manifest: Manifest,
    /// The bytes of the manifest.
    text: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a file is not a valid artifact.
#[derive(Debug)]
pub enum ArtifactError {
    /// The file is no ZIP file, or a broken one.
    NotZip(zip::result::ZipError),
    /// A file in it cannot be unpacked.
    Unreadable {
        /// The name of the file.
        name: String,
        /// The error of unpacking.
        error: io::Error,
    },
    /// The artifact exceeds a limit.
    TooLarge,
    /// The artifact has no valid manifest.
    Manifest(String),
    /// The manifest names a file that is missing.
    Missing(String),
    /// A file is not in the manifest.
    Unlisted(String),
    /// A file has a name that no artifact has.
    Unknown(String),
    /// The archive contains something besides its files.
    Hidden(String),
    /// A file differs from its checksum.
    Changed(String),
    /// The artifact contains no experiments.
    NoExperiments,
    /// A scenario has a controller from a file.
    Plugin(String),
    /// A scenario extends an experiment that is not packed.
    Base(String),
    /// A scenario in it is invalid.
    Scenario(Diagnostic),
}

impl std::error::Error for ArtifactError {}

impl fmt::Display for ArtifactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotZip(error) => write!(f, "not a ZIP file that can be read: {error}"),
            Self::Unreadable { name, error } => write!(f, "{name} cannot be unpacked: {error}"),
            Self::TooLarge => {
                write!(f, "it unpacks to more than {FILES_MAX} files or {BYTES_MAX} bytes, which no artifact does")
            }
            Self::Manifest(reason) => write!(f, "{MANIFEST}: {reason}"),
            Self::Missing(name) => write!(f, "{name} is in the manifest and not in the archive"),
            Self::Unlisted(name) => write!(f, "{name} is in the archive and not in the manifest"),
            Self::Unknown(name) => write!(f, "{name:?} is no file of an artifact"),
            Self::Hidden(what) => write!(f, "there is more in it than its files: {what}"),
            Self::Changed(name) => write!(f, "{name} is not the file that was packed: its SHA-256 differs"),
            Self::NoExperiments => write!(f, "there is no experiment in it"),
            Self::Plugin(name) => write!(
                f,
                "{name} is a controller from a file, and an artifact holds texts alone; publish the module beside it, or write the law in \
                 `crates/cc`"
            ),
            Self::Base(name) => write!(
                f,
                "{name} is extended by an experiment and is not packed as one: choose its paper, too, or move what they share to \
                 `{COMMON}/`"
            ),
            Self::Scenario(diagnostic) => diagnostic.fmt(f),
        }
    }
}

/// The name of a scenario's file in an artifact: its paper's folder and its own name.
pub fn name_of(file: &str) -> String {
    let mut parts: Vec<&str> = file.rsplit(['/', '\\']).take(2).collect();
    parts.reverse();
    format!("{EXPERIMENTS}{}", parts.join("/"))
}

/// A file as it is in an artifact, with its bases: each name is that of [`name_of`].
///
/// # Errors
/// If a base is outside of the folders of an artifact: one for each paper, and `common`; or a flow has a controller from a file.
pub fn renamed(document: &Document) -> Result<Document, Diagnostic> {
    if let Some(name) = document.own_laws().keys().next() {
        return Err(Fault::new(ArtifactError::Plugin(name.to_owned()).to_string()).about(document.file()));
    }
    let mut texts = document.bases().iter();
    // The bases are requested in the order in which they were read.
    let mut base = |name: &str| match is_known(name) {
        true => Ok(texts.next().expect("the file extends what it has extended").text.to_string()),
        false => Err(format!(
            "an artifact has no place for it: keep it beside this file, or in the folder `{COMMON}` beside this folder"
        )),
    };
    Document::parse_with(&name_of(document.file()), document.text(), &mut base)
}

/// The name of the file of coarse claims in an artifact.
pub fn name_of_sensitivity() -> String {
    format!("{EXPERIMENTS}{}", sensitivity::FILE)
}

/// The experiments of an artifact's documents, with coarse claims marked.
///
/// # Errors
/// The first error in them.
pub fn experiments(documents: &[Document]) -> Result<Vec<Experiment>, Diagnostic> {
    let sensitivity = name_of_sensitivity();
    let (marks, scenarios): (Vec<&Document>, Vec<&Document>) =
        documents.iter().partition(|document| document.file() == sensitivity);
    let mut experiments = scenarios.into_iter().cloned().map(Experiment::parse).collect::<Result<Vec<_>, _>>()?;
    for marks in marks {
        Sensitivity::parse(marks.clone())?.mark(&mut experiments)?;
    }
    Ok(experiments)
}

/// Writes an artifact. The outcome must be that of the [`experiments`] of `documents`, whose files' names are those of [`renamed`]
/// and [`name_of_sensitivity`].
///
/// # Errors
/// If `out` cannot be written, or a document extends an experiment that is not packed: verification runs every experiment of an
/// artifact.
pub fn pack(documents: &[Document], outcome: &Outcome, out: impl Write + Seek) -> zip::result::ZipResult<()> {
    if let Some(name) = documents.iter().flat_map(|document| document.own_laws().keys()).next() {
        return Err(io::Error::other(ArtifactError::Plugin(name.to_owned())).into());
    }
    if let Some(base) = missing_base(documents) {
        return Err(io::Error::other(ArtifactError::Base(base.to_owned())).into());
    }
    let files = drawn(documents, outcome)?;
    if let Some(name) = files.keys().find(|name| !is_known(name)) {
        return Err(io::Error::other(ArtifactError::Unknown(name.clone())).into());
    }
    let platform = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let manifest = manifest(&files, outcome, platform);
    // ZIP's earliest time: the time of packing must not change the bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut archive = ZipWriter::new(out);
    archive.start_file(MANIFEST, options)?;
    archive.write_all(&json(&manifest)?)?;
    for (name, bytes) in &files {
        archive.start_file(name, options)?;
        archive.write_all(bytes)?;
    }
    archive.finish().map(|_| ())
}

/// A base that is an experiment and is not packed, or differs from the packed file of its name.
fn missing_base(documents: &[Document]) -> Option<&str> {
    let mut known: BTreeMap<&str, &str> = documents.iter().map(|document| (document.file(), document.text())).collect();
    for Source { file, text } in documents.iter().flat_map(Document::bases) {
        match known.get(&**file) {
            Some(&other) if other != &**text => return Some(file),
            Some(_) => {}
            None if is_common(file) || is_trace(file) => _ = known.insert(file, text),
            None => return Some(file),
        }
    }
    None
}

/// Whether a file of an artifact is a base for others and no experiment.
fn is_common(name: &str) -> bool {
    name.strip_prefix(EXPERIMENTS).and_then(|rest| rest.strip_prefix(COMMON)).is_some_and(|rest| rest.starts_with('/'))
}

/// Every file of an artifact except its manifest.
fn drawn(documents: &[Document], outcome: &Outcome) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let bases = documents.iter().flat_map(Document::bases).map(|base| file(&base.file, &base.text));
    let own = documents.iter().map(|document| file(document.file(), document.text()));
    let mut files: BTreeMap<String, Vec<u8>> = bases.chain(own).collect();
    let (mut csv, mut markdown) = (Vec::new(), Vec::new());
    outcome.write_csv(&mut csv)?;
    outcome.write_markdown(&mut markdown)?;
    let report = html::page(outcome).into_bytes();
    let bytes = [readme(outcome).into_bytes(), json(&record(outcome))?, csv, markdown, report];
    files.extend(DRAWN.map(str::to_owned).into_iter().zip(bytes));
    Ok(files)
}

fn manifest(files: &BTreeMap<String, Vec<u8>>, outcome: &Outcome, platform: String) -> Manifest {
    let entry = |(name, bytes): (&String, &Vec<u8>)| Entry {
        name: name.clone(),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    };
    Manifest {
        schema: SCHEMA.to_owned(),
        version: outcome.version.to_owned(),
        platform,
        seeds: outcome.seeds,
        runs: outcome.runs,
        hash: outcome.hash.clone(),
        files: files.iter().map(entry).collect(),
    }
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Whether an artifact may have a file of this name: scenarios, their bases and traces are in folders below `experiments/`.
fn is_known(name: &str) -> bool {
    // No name leads out of the folder of extraction.
    let is_plain = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains(['/', '\\', ':']) && !part.contains(char::is_control)
    };
    name == MANIFEST
        || DRAWN.contains(&name)
        || name
            .strip_prefix(EXPERIMENTS)
            .filter(|rest| is_trace(rest) || rest.ends_with(".toml"))
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(paper, file)| is_plain(paper) && is_plain(file) && !file.starts_with('.'))
}

/// Finds content that unpacking programs may see and the directory does not list.
fn find_hidden<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Result<(), ArtifactError> {
    let hidden = |what: String| Err(ArtifactError::Hidden(what));
    if archive.offset() > 0 {
        return hidden(format!("{} bytes before its first file", archive.offset()));
    }
    if !archive.comment().is_empty() {
        return hidden("a comment".to_owned());
    }
    archive.validate_header_consistency().or_else(|error| hidden(error.to_string()))
}

/// Whether an archive ends with the end of its directory, 22 bytes without a comment (APPNOTE.TXT, 4.3.16).
fn ends_with_directory(from: &mut (impl Read + Seek)) -> io::Result<bool> {
    let mut end = [0; 22];
    from.seek(SeekFrom::End(-22))?;
    from.read_exact(&mut end)?;
    Ok(end.starts_with(b"PK\x05\x06"))
}

impl Artifact {
    /// Reads an artifact, and checks that its files are those of its manifest and nothing else.
    ///
    /// # Errors
    /// The first fault found.
    pub fn read(mut from: impl Read + Seek) -> Result<Self, ArtifactError> {
        let is_whole = ends_with_directory(&mut from).unwrap_or(false);
        let mut archive = ZipArchive::new(from).map_err(ArtifactError::NotZip)?;
        if archive.len() > FILES_MAX {
            return Err(ArtifactError::TooLarge);
        }
        find_hidden(&mut archive)?;
        if !is_whole {
            return Err(ArtifactError::Hidden("bytes behind its directory".to_owned()));
        }
        let mut files = BTreeMap::new();
        let mut left = BYTES_MAX;
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).map_err(ArtifactError::NotZip)?;
            let name = file.name().map_err(ArtifactError::NotZip)?.into_owned();
            if !is_known(&name) || !file.is_file() || file.is_symlink() {
                return Err(ArtifactError::Unknown(name));
            }
            let most = FILE_BYTES_MAX.min(left);
            let mut bytes = Vec::new();
            // The archive's length of a file may be false: at most `most` bytes are unpacked.
            let unpacked = (&mut file).take(most + 1).read_to_end(&mut bytes);
            unpacked.map_err(|error| ArtifactError::Unreadable { name: name.clone(), error })?;
            left = left.checked_sub(bytes.len() as u64).ok_or(ArtifactError::TooLarge)?;
            if bytes.len() as u64 > most {
                return Err(ArtifactError::TooLarge);
            }
            files.insert(name, bytes);
        }
        let text = files.remove(MANIFEST).ok_or(ArtifactError::Manifest("it is missing".to_owned()))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| ArtifactError::Manifest(error.to_string()))?;
        if manifest.schema != SCHEMA {
            let reason = format!("its schema is `{}`, and this program reads `{SCHEMA}`", manifest.schema);
            return Err(ArtifactError::Manifest(reason));
        }
        for Entry { name, bytes, sha256: expected } in &manifest.files {
            let file = files.get(name).ok_or_else(|| ArtifactError::Missing(name.clone()))?;
            if file.len() as u64 != *bytes || sha256(file) != *expected {
                return Err(ArtifactError::Changed(name.clone()));
            }
        }
        let is_listed = |name: &String| manifest.files.iter().any(|entry| entry.name == *name);
        match files.keys().find(|name| !is_listed(name)) {
            Some(name) => Err(ArtifactError::Unlisted(name.clone())),
            None => Ok(Self { manifest, text, files }),
        }
    }

    /// The manifest of the artifact.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its scenarios, and the file of coarse claims.
    ///
    /// # Errors
    /// If there is none, or one is not TOML.
    pub fn documents(&self) -> Result<Vec<Document>, ArtifactError> {
        let is_scenario = |name: &str| name.starts_with(EXPERIMENTS) && !is_common(name) && !is_trace(name);
        let scenarios = self.files.iter().filter(|(name, _)| is_scenario(name));
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        // All bases are in the archive: no name leads to a file on the reader's disk.
        let mut base =
            |name: &str| self.files.get(name).map(text).ok_or_else(|| "it is not in the artifact".to_owned());
        let document = |(name, bytes): (&String, &Vec<u8>)| {
            Document::parse_with(name, &text(bytes), &mut base).map_err(ArtifactError::Scenario)
        };
        let documents: Vec<Document> = scenarios.map(document).collect::<Result<_, _>>()?;
        if documents.is_empty() { Err(ArtifactError::NoExperiments) } else { Ok(documents) }
    }

    /// The differences between its files and those of an outcome of its scenarios: at most `most` places of the outcome, with both
    /// values, and the names of other files.
    ///
    /// # Errors
    /// If its own outcome is not JSON, or its scenarios are invalid.
    pub fn differences(&self, outcome: &Outcome, most: usize) -> Result<Vec<String>, ArtifactError> {
        let unreadable = |error: io::Error| ArtifactError::Unreadable { name: OUTCOME.to_owned(), error };
        let drawn = drawn(&self.documents()?, outcome).map_err(unreadable)?;
        let mut found = Vec::new();
        let packed = self.files.get(OUTCOME).ok_or_else(|| ArtifactError::Missing(OUTCOME.to_owned()))?;
        let packed: Value = serde_json::from_slice(packed)
            .map_err(|error| ArtifactError::Manifest(format!("{OUTCOME} is no JSON: {error}")))?;
        compare("", &packed, &record(outcome), &mut |place, packed, ours| {
            found.push(format!("{place}: {packed} was packed, {ours} comes out here"));
            found.len() < most
        });
        let is_told = !found.is_empty();
        let names: BTreeSet<&String> = self.files.keys().chain(drawn.keys()).collect();
        for name in names {
            if let Some(difference) = first_difference(self.files.get(name), drawn.get(name)) {
                // The differences of the outcome are listed already.
                if name != OUTCOME || !is_told {
                    found.push(format!("{name}: {difference}"));
                }
            }
        }
        let manifest = json(&manifest(&drawn, outcome, self.manifest.platform.clone())).map_err(unreadable)?;
        if let Some(difference) = first_difference(Some(&self.text), Some(&manifest)) {
            found.push(format!("{MANIFEST}: {difference}"));
        }
        Ok(found)
    }
}

/// The first difference between a packed file and a new one.
fn first_difference(packed: Option<&Vec<u8>>, drawn: Option<&Vec<u8>>) -> Option<String> {
    let (packed, drawn) = match (packed, drawn) {
        (Some(packed), Some(drawn)) if packed == drawn => return None,
        (None, None) => return None,
        (Some(packed), Some(drawn)) => (packed, drawn),
        (None, Some(_)) => return Some("it was not packed and comes out here".to_owned()),
        (Some(_), None) => return Some("it was packed and does not come out here".to_owned()),
    };
    let same = packed.iter().zip(drawn).take_while(|(a, b)| a == b).count();
    let line = 1 + packed[..same].iter().filter(|&&byte| byte == b'\n').count();
    Some(format!("line {line} is another one than what is drawn from the outcome here"))
}

/// An outcome without its wall time.
fn record(outcome: &Outcome) -> Value {
    let mut value = serde_json::to_value(outcome).expect("an outcome is numbers, texts and lists");
    if let Value::Object(fields) = &mut value {
        fields.remove("wall_seconds");
    }
    value
}

/// Calls `report` for each place in which two documents differ, until it returns false.
fn compare(place: &str, packed: &Value, ours: &Value, report: &mut dyn FnMut(&str, &Value, &Value) -> bool) -> bool {
    match (packed, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().all(|key| {
                let of = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
                compare(&format!("{place}/{key}"), &of(a), &of(b), report)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().all(|(index, (a, b))| compare(&format!("{place}/{index}"), a, b, report))
        }
        _ if packed == ours => true,
        _ => report(place, &shown(packed), &shown(ours)),
    }
}

/// A value in one line: a list as its length.
fn shown(value: &Value) -> Value {
    match value {
        Value::Array(values) => Value::String(format!("a list of {}", values.len())),
        other => other.clone(),
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn readme(outcome: &Outcome) -> String {
    let Outcome { version, runs, hash, .. } = outcome;
    let papers: Vec<&str> = outcome.papers.iter().map(|paper| paper.key.as_str()).collect();
    format!(
        "# Published and ours: {}\n\n\
         Packed by anabranch {version}: {runs} runs, hash {hash}. `experiments/` has the scenarios with their seeds and the\n\
         claims, `{OUTCOME}` everything that was measured, `{MANIFEST}` the SHA-256 of each file.\n\n\
         To run everything again, draw every file from what comes out, and compare it byte by byte:\n\n\
         ```console\nanabranch artifact verify FILE.zip\n```\n",
        papers.join(", ")
    )
}

#[cfg(test)]
mod tests;

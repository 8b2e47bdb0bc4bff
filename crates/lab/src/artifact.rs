//! An artifact: what was run and what came out, in one ZIP file that somebody else can check.
//!
//! ```text
//! manifest.json        who packed it, what was asked for, the hash of all runs, and each other file's length and SHA-256
//! README.md            how to check it
//! experiments/KEY/*    the scenarios with their seeds and claims
//! outcome.json         everything measured, as `reproduce --json` prints it, but for the time it took
//! ...                  reports for people
//! ```
//!
//! Checking is two things: that every file is the one that was packed, and that running the scenarios again gives the same
//! outcome, number by number. Packing the same outcome twice gives the same bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::reproduce::Outcome;

/// The schema of [`Manifest`].
pub const SCHEMA: &str = "anabranch-artifact/1";

const MANIFEST: &str = "manifest.json";
const OUTCOME: &str = "outcome.json";
const EXPERIMENTS: &str = "experiments/";

/// More files than this are no artifact of ours: all papers have some dozens.
const FILES_MAX: usize = 10_000;

/// No file of an artifact is longer, unpacked. An outcome with all its series has some ten million bytes.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// All files together, unpacked.
const BYTES_MAX: u64 = 1 << 30;

/// What an artifact holds and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of this document's schema.
    pub schema: String,
    /// Version of the laboratory that packed it.
    pub version: String,
    /// What it ran on: architecture and operating system.
    pub platform: String,
    /// What was asked for instead of the experiments' own numbers of seeds.
    pub seeds: Option<u32>,
    /// How many runs were judged.
    pub runs: usize,
    /// Of the hashes of all judged runs.
    pub hash: String,
    /// Every other file, in the order of their names.
    pub files: Vec<Entry>,
}

/// One file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name in the archive.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// An artifact whose files are those that were packed.
#[derive(Clone, Debug)]
pub struct Artifact {
    manifest: Manifest,
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a file is no whole artifact.
#[derive(Debug)]
pub enum ArtifactError {
    /// It is no ZIP file, or a broken one.
    NotZip(zip::result::ZipError),
    /// A file in it cannot be unpacked.
    Unreadable {
        /// Which.
        name: String,
        /// Why.
        error: std::io::Error,
    },
    /// It holds more than an artifact does.
    TooLarge,
    /// It has no manifest, or one that we cannot read.
    Manifest(String),
    /// The manifest names a file that is not there.
    Missing(String),
    /// There is a file that the manifest does not name.
    Unlisted(String),
    /// There are two files of one name.
    Twice(String),
    /// A file is not the one that was packed.
    Changed(String),
    /// There is nothing in it that could be run.
    NoExperiments,
    /// A scenario in it is not one.
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
            Self::Twice(name) => write!(f, "{name} is in the archive twice"),
            Self::Changed(name) => write!(f, "{name} is not the file that was packed: its SHA-256 differs"),
            Self::NoExperiments => write!(f, "there is no experiment in it"),
            Self::Scenario(diagnostic) => diagnostic.fmt(f),
        }
    }
}

/// The name that a scenario's file has in an artifact: its paper's folder and its own name.
pub fn name_of(file: &str) -> String {
    let mut parts: Vec<&str> = file.rsplit(['/', '\\']).take(2).collect();
    parts.reverse();
    format!("{EXPERIMENTS}{}", parts.join("/"))
}

/// Writes an artifact. The outcome's experiments must be those of `documents`, under the names of [`name_of`]; `reports` are
/// further files.
///
/// # Errors
/// If `out` cannot be written, or a name is given twice.
pub fn pack(
    documents: &[Document],
    outcome: &Outcome,
    reports: Vec<(String, Vec<u8>)>,
    out: impl Write + Seek,
) -> zip::result::ZipResult<()> {
    let mut files: BTreeMap<String, Vec<u8>> = reports.into_iter().collect();
    files.extend(documents.iter().map(|document| (document.file().to_owned(), document.text().as_bytes().to_vec())));
    let mut text = serde_json::to_vec_pretty(&record(outcome)).map_err(std::io::Error::from)?;
    text.push(b'\n');
    files.insert(OUTCOME.to_owned(), text);
    files.insert("README.md".to_owned(), readme(outcome).into_bytes());
    let entry = |(name, bytes): (&String, &Vec<u8>)| Entry {
        name: name.clone(),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    };
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        version: outcome.version.to_owned(),
        platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        seeds: outcome.seeds,
        runs: outcome.runs,
        hash: outcome.hash.clone(),
        files: files.iter().map(entry).collect(),
    };
    // The least time that ZIP knows: when it was packed must not change its bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut archive = ZipWriter::new(out);
    archive.start_file(MANIFEST, options)?;
    archive.write_all(&serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from)?)?;
    for (name, bytes) in &files {
        archive.start_file(name, options)?;
        archive.write_all(bytes)?;
    }
    archive.finish().map(|_| ())
}

impl Artifact {
    /// Reads an artifact and checks that each file is the one that was packed.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(from: impl Read + Seek) -> Result<Self, ArtifactError> {
        let mut archive = ZipArchive::new(from).map_err(ArtifactError::NotZip)?;
        if archive.len() > FILES_MAX {
            return Err(ArtifactError::TooLarge);
        }
        let mut files = BTreeMap::new();
        let mut left = BYTES_MAX;
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).map_err(ArtifactError::NotZip)?;
            let name = file.name().map_err(ArtifactError::NotZip)?.into_owned();
            let most = FILE_BYTES_MAX.min(left);
            let mut bytes = Vec::new();
            // What the archive says of a file's length need not be true: no more than `most` is unpacked.
            let unpacked = (&mut file).take(most + 1).read_to_end(&mut bytes);
            unpacked.map_err(|error| ArtifactError::Unreadable { name: name.clone(), error })?;
            left = left.checked_sub(bytes.len() as u64).ok_or(ArtifactError::TooLarge)?;
            if bytes.len() as u64 > most {
                return Err(ArtifactError::TooLarge);
            }
            if files.insert(name.clone(), bytes).is_some() {
                return Err(ArtifactError::Twice(name));
            }
        }
        let manifest = files.remove(MANIFEST).ok_or(ArtifactError::Manifest("it is missing".to_owned()))?;
        let manifest: Manifest =
            serde_json::from_slice(&manifest).map_err(|error| ArtifactError::Manifest(error.to_string()))?;
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
            None => Ok(Self { manifest, files }),
        }
    }

    /// What it holds and where it comes from.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its scenarios.
    ///
    /// # Errors
    /// If there is none, or one is not TOML.
    pub fn documents(&self) -> Result<Vec<Document>, ArtifactError> {
        let scenarios = self.files.iter().filter(|(name, _)| name.starts_with(EXPERIMENTS));
        let document = |(name, bytes): (&String, &Vec<u8>)| {
            Document::parse(name, &String::from_utf8_lossy(bytes)).map_err(ArtifactError::Scenario)
        };
        let documents: Vec<Document> = scenarios.map(document).collect::<Result<_, _>>()?;
        if documents.is_empty() { Err(ArtifactError::NoExperiments) } else { Ok(documents) }
    }

    /// Where an outcome of its scenarios is not what was packed: at most `most` places, each with both values.
    ///
    /// # Errors
    /// If its own outcome is no JSON.
    pub fn differences(&self, outcome: &Outcome, most: usize) -> Result<Vec<String>, ArtifactError> {
        let packed = self.files.get(OUTCOME).ok_or_else(|| ArtifactError::Missing(OUTCOME.to_owned()))?;
        let packed: Value = serde_json::from_slice(packed)
            .map_err(|error| ArtifactError::Manifest(format!("{OUTCOME} is no JSON: {error}")))?;
        let mut found = Vec::new();
        compare("", &packed, &record(outcome), &mut |place, packed, ours| {
            found.push(format!("{place}: {packed} was packed, {ours} comes out here"));
            found.len() < most
        });
        Ok(found)
    }
}

/// An outcome without what differs from run to run: how long it took.
fn record(outcome: &Outcome) -> Value {
    let mut value = serde_json::to_value(outcome).expect("an outcome is numbers, texts and lists");
    if let Value::Object(fields) = &mut value {
        fields.remove("wall_seconds");
    }
    value
}

/// Tells `report` each place in which two documents differ, until it has heard enough. False: it has.
fn compare(place: &str, packed: &Value, ours: &Value, report: &mut dyn FnMut(&str, &Value, &Value) -> bool) -> bool {
    match (packed, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
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

/// A value that fits a line: of a list, its length.
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
         To run everything again and compare it number by number:\n\n\
         ```console\nanabranch artifact verify FILE.zip\n```\n",
        papers.join(", ")
    )
}

#[cfg(test)]
mod tests;

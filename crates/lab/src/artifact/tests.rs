use std::io::Cursor;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

use super::*;
use crate::experiment::Experiment;
use crate::reproduce::{Options, reproduce};

const EXPERIMENT: &str = r#"# Does a short run deliver what it can?
duration = "2s"

[[link]]
id = "a"
from = "x"
to = "y"
rate = "1Mbit/s"
delay = "10ms"

[[flow]]
id = "f"
from = "x"
to = "y"
transport = "ns2/sack"

[experiment]
paper = "ctcp-2019"

[measure]
sent = "flow.f.max_seq"

[[claim]]
item = "text"
title = "A short run"
cite = "none"
row = "sent"
column = "all"
unit = "packets"
measure = "sent"
published = 200
band = ">= 1"
"#;

fn outcome(documents: &[Document]) -> Outcome {
    let experiments: Vec<_> = documents.iter().map(|document| Experiment::parse(document.clone()).unwrap()).collect();
    reproduce(&experiments, Options { jobs: NonZeroUsize::MIN, seeds: None }, |_, _| {}).unwrap()
}

fn documents(text: &str) -> Vec<Document> {
    vec![Document::parse(&name_of("somewhere/else/ctcp-2019/short.toml"), text).unwrap()]
}

fn packed() -> Vec<u8> {
    static PACKED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let documents = documents(EXPERIMENT);
        let mut out = Cursor::new(Vec::new());
        pack(&documents, &outcome(&documents), &mut out).unwrap();
        out.into_inner()
    });
    PACKED.clone()
}

type Files = BTreeMap<String, Vec<u8>>;

/// The files of an artifact by their names.
fn unpacked() -> Files {
    let mut archive = ZipArchive::new(Cursor::new(packed())).unwrap();
    let files = archive.len();
    let file = |index| {
        let mut file = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        (file.name().unwrap().into_owned(), bytes)
    };
    (0..files).map(file).collect()
}

fn archive(files: &Files) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        out.start_file(name, SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn read(bytes: Vec<u8>) -> Result<Artifact, ArtifactError> {
    Artifact::read(Cursor::new(bytes))
}

/// The archive with one file replaced, added or removed, and the old manifest.
fn tampered(change: impl FnOnce(&mut Files)) -> Result<Artifact, ArtifactError> {
    let mut files = unpacked();
    change(&mut files);
    read(archive(&files))
}

/// The same with a manifest of the new files.
fn forged(change: impl FnOnce(&mut Files)) -> Result<Artifact, ArtifactError> {
    tampered(|files| {
        change(files);
        let mut manifest: Value = serde_json::from_slice(&files[MANIFEST]).unwrap();
        let rest = files.iter().filter(|(name, _)| *name != MANIFEST);
        let entries = rest
            .map(|(name, bytes)| serde_json::json!({"name": name, "bytes": bytes.len(), "sha256": sha256(bytes)}))
            .collect();
        manifest["files"] = Value::Array(entries);
        files.insert(MANIFEST.to_owned(), json(&manifest).unwrap());
    })
}

fn replace(files: &mut Files, name: &str, from: &str, to: &str) {
    let text = String::from_utf8(files[name].clone()).unwrap();
    assert!(text.contains(from), "there is no {from:?} in {name}: {text}");
    files.insert(name.to_owned(), text.replacen(from, to, 1).into_bytes());
}

#[test]
fn artifact_unpacks_to_what_was_packed() {
    let artifact = Artifact::read(Cursor::new(packed())).unwrap();
    let names: Vec<&str> = artifact.manifest().files.iter().map(|entry| entry.name.as_str()).collect();
    let expected = ["outcome.csv", "outcome.json", "outcome.md", "report.html"];
    assert_eq!(names, [&["README.md", "experiments/ctcp-2019/short.toml"], &expected[..]].concat());
    let documents = artifact.documents().unwrap();
    assert_eq!(documents[0].text(), EXPERIMENT);
    assert_eq!(artifact.differences(&outcome(&documents), 9).unwrap(), Vec::<String>::new());
}

#[test]
fn packing_twice_gives_the_same_bytes() {
    let documents = documents(EXPERIMENT);
    let mut again = Cursor::new(Vec::new());
    pack(&documents, &outcome(&documents), &mut again).unwrap();
    assert_eq!(packed(), again.into_inner());
}

/// The artifact contains the file of coarse claims.
#[test]
fn coarse_claims_stay_coarse() {
    let marks =
        "[[coarse]]\nexperiment = \"ctcp-2019/short\"\ntitle = \"A short run\"\nrow = \"sent\"\ncolumn = \"all\"\n";
    let mut documents = documents(EXPERIMENT);
    documents.push(Document::parse(&name_of_sensitivity(), marks).unwrap());
    let experiments = experiments(&documents).unwrap();
    assert!(experiments[0].claims[0].is_coarse);
    let outcome = reproduce(&experiments, Options { jobs: NonZeroUsize::MIN, seeds: None }, |_, _| {}).unwrap();
    let mut out = Cursor::new(Vec::new());
    pack(&documents, &outcome, &mut out).unwrap();
    let artifact = read(out.into_inner()).unwrap();
    assert_eq!(artifact.documents().unwrap().len(), 2);
    assert_eq!(artifact.differences(&outcome, 9).unwrap(), Vec::<String>::new());
}

#[test]
fn another_outcome_is_told_place_by_place() {
    let artifact = Artifact::read(Cursor::new(packed())).unwrap();
    let slower = outcome(&documents(&EXPERIMENT.replace("1Mbit/s", "2Mbit/s")));
    let differences = artifact.differences(&slower, 100).unwrap();
    let value =
        differences.iter().find(|line| line.starts_with("/papers/0/experiments/0/claims/0/measured/ours/value"));
    assert!(value.is_some_and(|line| line.contains(" was packed, ")), "{differences:#?}");
    assert!(differences.iter().any(|line| line.starts_with("/hash: ")), "{differences:#?}");
    let two = artifact.differences(&slower, 2).unwrap();
    assert_eq!(two.iter().filter(|line| line.starts_with('/')).count(), 2, "{two:#?}");
}

#[test]
fn a_changed_a_missing_and_an_added_file_are_found() {
    let changed = tampered(|files| _ = files.insert("outcome.csv".to_owned(), b"a,c\n".to_vec()));
    assert!(matches!(changed, Err(ArtifactError::Changed(name)) if name == "outcome.csv"));
    let missing = tampered(|files| _ = files.remove("outcome.csv"));
    assert!(matches!(missing, Err(ArtifactError::Missing(name)) if name == "outcome.csv"));
    let added = tampered(|files| _ = files.insert("experiments/ctcp-2019/more.toml".to_owned(), vec![]));
    assert!(matches!(added, Err(ArtifactError::Unlisted(name)) if name.ends_with("more.toml")));
    let headless = tampered(|files| _ = files.remove(MANIFEST));
    assert!(matches!(headless, Err(ArtifactError::Manifest(_))));
}

/// Every file that differs from the outcome is reported, also with a correct checksum.
#[test]
fn a_changed_file_with_its_checksum_is_found() {
    let documents = documents(EXPERIMENT);
    let outcome = outcome(&documents);
    let differences = |artifact: Result<Artifact, ArtifactError>| artifact.unwrap().differences(&outcome, 9).unwrap();
    let changes = [
        ("outcome.csv", "reproduced", "deviates"),
        ("outcome.md", "reproduced", "deviates"),
        ("report.html", "reproduced", "deviates"),
        ("README.md", "Published", "Printed"),
        // A difference without a meaning.
        ("outcome.json", "\n", "\n\n"),
    ];
    for (name, from, to) in changes {
        let found = differences(forged(|files| replace(files, name, from, to)));
        assert!(found.iter().any(|line| line.starts_with(&format!("{name}: line "))), "{name}: {found:#?}");
        // The manifest differs, too, as its checksums do.
        assert!(found.iter().any(|line| line.starts_with("manifest.json: ")), "{name}: {found:#?}");
    }
    let found = differences(forged(|files| replace(files, "outcome.json", "\"reproduced\"", "\"deviates\"")));
    assert!(found[0].starts_with("/papers/0/experiments/0/claims/0/verdict: "), "{found:#?}");
    let found = differences(forged(|files| _ = files.remove("outcome.md")));
    assert_eq!(found[0], "outcome.md: it was not packed and comes out here");
    for (from, to) in [(outcome.hash.as_str(), "0123456789abcdef"), ("\"runs\": 1", "\"runs\": 2")] {
        let found = differences(tampered(|files| replace(files, MANIFEST, from, to)));
        assert!(found.len() == 1 && found[0].starts_with("manifest.json: line "), "{found:#?}");
    }
    // The one word that cannot be checked.
    let platform = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let elsewhere = tampered(|files| replace(files, MANIFEST, &platform, "pdp11-unix"));
    assert_eq!(differences(elsewhere), Vec::<String>::new());
}

/// No file contains the wall time.
#[test]
fn the_time_it_took_changes_nothing() {
    let documents = documents(EXPERIMENT);
    let slow = Outcome { wall_seconds: 1e6, ..outcome(&documents) };
    assert_eq!(read(packed()).unwrap().differences(&slow, 9).unwrap(), Vec::<String>::new());
}

#[test]
fn files_that_no_artifact_has_are_refused() {
    let names = [
        "../outcome.csv",
        "/etc/passwd",
        "experiments/../../a.toml",
        "experiments/../a.toml",
        "experiments/a/b/c.toml",
        "experiments/c:/a.toml",
        "experiments/ctcp-2019/",
        "experiments/ctcp-2019/run.sh",
        "experiments/a.toml",
        "notes.txt",
        "outcome.json/x",
    ];
    for name in names {
        let added = forged(|files| _ = files.insert(name.to_owned(), b"#".to_vec())).err();
        assert!(matches!(&added, Some(ArtifactError::Unknown(found)) if found == name), "{name}: {added:?}");
    }
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    out.add_symlink("outcome.csv", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let link = Artifact::read(out.finish().unwrap()).err();
    assert!(matches!(&link, Some(ArtifactError::Unknown(found)) if found == "outcome.csv"), "{link:?}");
}

#[test]
fn archive_with_hidden_content_is_refused() {
    let hidden = |bytes: Vec<u8>| matches!(read(bytes), Err(ArtifactError::Hidden(_)));
    assert!(hidden([b"#!/bin/sh\n".to_vec(), packed()].concat()), "in front");
    assert!(hidden([packed(), b"more".to_vec()].concat()), "behind");
    let mut commented = packed();
    let end = commented.len();
    commented[end - 2..].copy_from_slice(&4_u16.to_le_bytes());
    assert!(hidden([commented, b"more".to_vec()].concat()), "a comment");
    // Two files of one name: of `outcome.csx` the last letter is changed wherever the archive names it.
    let twice = archive(&unpacked().into_iter().chain([("outcome.csx".to_owned(), vec![])]).collect());
    let text: Vec<u8> = twice.windows(11).map(|window| if window == b"outcome.csx" { b'!' } else { b'.' }).collect();
    let mut renamed = twice.clone();
    for (at, _) in text.iter().enumerate().filter(|(_, mark)| **mark == b'!') {
        renamed[at + 10] = b'v';
    }
    assert!(hidden(renamed), "a second file of this name");
}

#[test]
fn file_that_is_no_archive_is_refused() {
    for bytes in [&b""[..], b"PK", b"a text, not an archive"] {
        assert!(matches!(Artifact::read(Cursor::new(bytes)), Err(ArtifactError::NotZip(_))));
    }
    let mut whole = packed();
    whole.truncate(whole.len() / 2);
    assert!(Artifact::read(Cursor::new(whole)).is_err());
}

const BASE: &str =
    "duration = \"2s\"\n[[link]]\nid = \"a\"\nfrom = \"x\"\nto = \"y\"\nrate = \"1Mbit/s\"\ndelay = \"10ms\"\n";

/// [`EXPERIMENT`] over [`BASE`], packed.
fn extending(extends: &str) -> Result<Vec<Document>, Diagnostic> {
    let (_, own) = EXPERIMENT.split_once("[[flow]]").unwrap();
    let text = format!("extends = \"{extends}\"\n[[flow]]{own}");
    let read = Document::parse_with("some/where/ctcp-2019/short.toml", &text, &mut |_| Ok(BASE.to_owned())).unwrap();
    Ok(vec![renamed(&read)?])
}

#[test]
fn bases_are_packed_and_read_from_the_archive() {
    let documents = extending("../common/short.toml").unwrap();
    let mut out = Cursor::new(Vec::new());
    pack(&documents, &outcome(&documents), &mut out).unwrap();
    let artifact = Artifact::read(Cursor::new(out.into_inner())).unwrap();
    let read = artifact.documents().unwrap();
    assert_eq!(read.len(), 1, "what is extended is no experiment");
    assert_eq!(&*read[0].bases()[0].file, "experiments/common/short.toml");
    assert_eq!(&*read[0].bases()[0].text, BASE);
    assert_eq!(artifact.differences(&outcome(&read), 9).unwrap(), Vec::<String>::new());
    assert_eq!(outcome(&read).hash, outcome(&self::documents(EXPERIMENT)).hash, "it is the same scenario");
}

/// A base outside of the folders of an artifact is refused.
#[test]
fn a_base_outside_of_the_experiments_is_not_packed() {
    let message = extending("../../elsewhere/short.toml").unwrap_err().to_string();
    assert!(message.starts_with("experiments/ctcp-2019/short.toml:1:11: "), "{message}");
    assert!(message.contains("an artifact has no place for it"), "{message}");
    let documents = extending("../emfast-2019/short.toml").unwrap();
    let error = pack(&documents, &outcome(&documents), Cursor::new(Vec::new())).unwrap_err().to_string();
    assert!(
        error.contains("experiments/emfast-2019/short.toml is extended by an experiment and is not packed"),
        "{error}"
    );
}

/// Verification reads only the artifact, for any names in its files.
#[test]
fn an_artifact_reads_no_file_outside_of_itself() {
    for extends in ["../../../../tmp/a.toml", "../common/b.toml", "../../manifest.toml", "/etc/a.toml"] {
        let text = format!("extends = \"{extends}\"\n{EXPERIMENT}");
        let files = BTreeMap::from([(name_of("ctcp-2019/short.toml"), text.into_bytes())]);
        let manifest = Artifact::read(Cursor::new(packed())).unwrap().manifest;
        let error = Artifact { manifest, text: Vec::new(), files }.documents().unwrap_err().to_string();
        let is_refused = error.contains("it is not in the artifact") || error.contains("is not a relative path");
        assert!(is_refused && error.starts_with("experiments/ctcp-2019/short.toml:1:11: "), "{extends}: {error}");
    }
}

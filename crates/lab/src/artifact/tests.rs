use std::io::Cursor;
use std::num::NonZeroUsize;

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
    let documents = documents(EXPERIMENT);
    let mut out = Cursor::new(Vec::new());
    let reports = vec![("outcome.csv".to_owned(), b"a,b\n".to_vec())];
    pack(&documents, &outcome(&documents), reports, &mut out).unwrap();
    out.into_inner()
}

/// The archive with one file replaced, added or left out, by whoever does not know of the manifest.
fn tampered(change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>, added: &[&str]) -> Result<Artifact, ArtifactError> {
    let mut archive = ZipArchive::new(Cursor::new(packed())).unwrap();
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let (name, mut bytes) = (file.name().unwrap().into_owned(), Vec::new());
        file.read_to_end(&mut bytes).unwrap();
        if let Some(bytes) = change(&name, bytes) {
            out.start_file(name, SimpleFileOptions::default()).unwrap();
            out.write_all(&bytes).unwrap();
        }
    }
    for name in added {
        out.start_file(*name, SimpleFileOptions::default()).unwrap();
    }
    Artifact::read(out.finish().unwrap())
}

#[test]
fn what_was_packed_is_found_again_and_comes_out_again() {
    let artifact = Artifact::read(Cursor::new(packed())).unwrap();
    let names: Vec<&str> = artifact.manifest().files.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["README.md", "experiments/ctcp-2019/short.toml", "outcome.csv", "outcome.json"]);
    let documents = artifact.documents().unwrap();
    assert_eq!(documents[0].text(), EXPERIMENT);
    assert_eq!(artifact.differences(&outcome(&documents), 9).unwrap(), Vec::<String>::new());
}

#[test]
fn packing_twice_gives_the_same_bytes() {
    assert_eq!(packed(), packed());
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
    assert_eq!(artifact.differences(&slower, 2).unwrap().len(), 2);
}

#[test]
fn a_changed_a_missing_and_an_added_file_are_found() {
    let changed = tampered(|name, bytes| Some(if name == "outcome.csv" { b"a,c\n".to_vec() } else { bytes }), &[]);
    assert!(matches!(changed, Err(ArtifactError::Changed(name)) if name == "outcome.csv"));
    let missing = tampered(|name, bytes| (name != "outcome.csv").then_some(bytes), &[]);
    assert!(matches!(missing, Err(ArtifactError::Missing(name)) if name == "outcome.csv"));
    let added = tampered(|_, bytes| Some(bytes), &["experiments/ctcp-2019/more.toml"]);
    assert!(matches!(added, Err(ArtifactError::Unlisted(name)) if name.ends_with("more.toml")));
    let headless = tampered(|name, bytes| (name != MANIFEST).then_some(bytes), &[]);
    assert!(matches!(headless, Err(ArtifactError::Manifest(_))));
}

#[test]
fn what_is_no_archive_is_refused() {
    for bytes in [&b""[..], b"PK", b"a text, not an archive"] {
        assert!(matches!(Artifact::read(Cursor::new(bytes)), Err(ArtifactError::NotZip(_))));
    }
    let mut whole = packed();
    whole.truncate(whole.len() / 2);
    assert!(Artifact::read(Cursor::new(whole)).is_err());
}

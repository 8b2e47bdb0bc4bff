//! Computes the identity of the engine: a hash of all sources that determine the numbers of a run. A resumed sweep uses only runs of
//! the same engine.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The parts of the laboratory that judge and draw. They change no run.
const NOT_RUN: [&str; 4] = ["html", "reproduce", "evaluation", "reference"];

fn main() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "../units/src", "../cc/src", "../ns2/src", "../proto/src", "../plugin/src", "../sim/src"];
    let mut files = Vec::new();
    for folder in folders {
        println!("cargo::rerun-if-changed={}", here.join(folder).display());
        sources(&here.join(folder), &mut files);
    }
    let mut hash = Sha256::new();
    for file in files {
        let text = fs::read(&file).unwrap_or_default();
        hash.update(file.strip_prefix(&here).unwrap_or(&file).to_string_lossy().as_bytes());
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let engine: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=ANABRANCH_ENGINE={engine}");
}

/// The source files of a folder and of its folders, in the order of their names.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_run = path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| !NOT_RUN.contains(&name));
        match path.is_dir() {
            _ if !is_run => {}
            true => sources(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => files.push(path),
            false => {}
        }
    }
}

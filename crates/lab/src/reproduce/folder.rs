//! Loads experiments from folders, one folder for each paper.

use std::fs;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Fault, suggestion};
use crate::document::Document;
use crate::experiment::{Experiment, is_group};
use crate::papers;
use crate::sensitivity::{self, Sensitivity};

/// Which experiments of a folder are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which<'a> {
    /// Those of papers, without the groups of our own questions; all if there is no paper among them.
    Papers,
    /// Every experiment of the folder.
    All,
    /// Those of these papers or groups.
    Named(&'a [String]),
}

/// The experiments that are asked for, in the order of their keys and of their files' names. `read` reads each file, as [`Document::read`] does.
///
/// # Errors
/// If the folder or a file in it cannot be read, a file is invalid, there is no such paper, or there is no experiment.
pub fn load<E: From<Diagnostic>>(
    folder: &Path,
    which: Which<'_>,
    mut read: impl FnMut(&Path) -> Result<Document, E>,
) -> Result<Vec<Experiment>, E> {
    let name = folder.display().to_string();
    let fail = |fault: Fault| E::from(fault.about(&name));
    let mut experiments = Vec::new();
    for paper in entries(folder)?.iter().filter(|path| is_group(path)) {
        for file in entries(paper)?.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        {
            let experiment = Experiment::parse(read(file)?)?;
            // A folder may contain scenarios without claims, as that of the benchmark.
            if !experiment.paper.is_empty() {
                experiments.push(experiment);
            }
        }
    }
    let known: Vec<String> = experiments.iter().map(|experiment| experiment.paper.clone()).collect();
    let named = if let Which::Named(papers) = which { papers } else { &[] };
    if let Some(unknown) = named.iter().find(|paper| !known.contains(paper)) {
        let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
        known.dedup();
        return Err(fail(Fault::new(format!("there is no paper `{unknown}`")).remedy(suggestion(unknown, known))));
    }
    let has_papers = known.iter().any(|key| papers::is_paper(key));
    experiments.retain(|Experiment { paper, .. }| match which {
        Which::Papers => !has_papers || papers::is_paper(paper),
        Which::All => true,
        Which::Named(named) => named.contains(paper),
    });
    let sensitivity = folder.join(sensitivity::FILE);
    if sensitivity.exists() {
        Sensitivity::parse(read(&sensitivity)?)?.mark(&mut experiments)?;
    }
    if experiments.is_empty() {
        return Err(fail(Fault::new("there are no experiments").remedy(REMEDY)));
    }
    Ok(experiments)
}

const REMEDY: &str = "name the folder of the experiments with --experiments";

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let listed = fs::read_dir(folder).and_then(|all| all.map(|entry| entry.map(|entry| entry.path())).collect());
    let mut paths: Vec<PathBuf> = listed.map_err(|error| {
        let fault = Fault::new(format!("cannot be read: {error}")).remedy(REMEDY);
        fault.about(&folder.display().to_string())
    })?;
    paths.sort();
    Ok(paths)
}

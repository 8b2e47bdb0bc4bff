//! `cargo xtask tidy`: checks the layering of ARCHITECTURE.md in the crate graph, circles of modules, lengths of files, docs of public items,
//! names of tests, attributes for inlining, features of dependencies, the tests of docs/rfc-9293.md, what is published, and the newest commits.

mod circles;
mod docs;
mod features;
mod history;
mod inlining;
mod lengths;
mod names;
pub(crate) mod published;
mod requirements;
mod sources;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cargo_metadata::DependencyKind;

use crate::run;

/// The dependencies that a crate may have, on our crates and on others. A crate that is not listed fails.
struct Layer {
    name: &'static str,
    ours: &'static [&'static str],
    /// The allowed external dependencies of a pure crate; `None` allows all.
    others: Option<&'static [&'static str]>,
}

const LAYERS: &[Layer] = &[
    Layer { name: "anabranch-units", ours: &[], others: Some(&["strsim"]) },
    Layer { name: "anabranch-cc", ours: &["anabranch-units"], others: Some(&[]) },
    Layer { name: "anabranch-ns2", ours: &["anabranch-cc", "anabranch-units"], others: Some(&[]) },
    Layer {
        name: "anabranch-proto",
        ours: &["anabranch-cc", "anabranch-units"],
        others: Some(&["aegis", "bytes", "curve25519-dalek", "ring", "snow", "zeroize"]),
    },
    Layer {
        name: "anabranch-sim",
        ours: &["anabranch-proto", "anabranch-ns2", "anabranch-cc", "anabranch-units"],
        others: Some(&["libm", "rand_core", "rand_xoshiro"]),
    },
    Layer {
        name: "anabranch-plugin",
        ours: &["anabranch-cc", "anabranch-units"],
        others: Some(&["sha2", "wasmi", "wasmparser"]),
    },
    Layer {
        name: "anabranch-lab",
        ours: &[
            "anabranch-sim",
            "anabranch-proto",
            "anabranch-ns2",
            "anabranch-plugin",
            "anabranch-cc",
            "anabranch-units",
        ],
        others: None,
    },
    Layer { name: "anabranch-quinn-cc", ours: &["anabranch-cc", "anabranch-units"], others: None },
    Layer { name: "anabranch-bpf", ours: &["anabranch-cc", "anabranch-units"], others: None },
    Layer { name: "anabranch-tcp", ours: &["anabranch-proto", "anabranch-cc", "anabranch-units"], others: None },
    Layer { name: "anabranch-emulator", ours: &["anabranch-sim", "anabranch-units"], others: None },
    Layer { name: "anabranch", ours: &["anabranch-proto", "anabranch-cc", "anabranch-units"], others: None },
    Layer { name: "anabranch-transfer", ours: &["anabranch"], others: None },
    Layer { name: "anabranch-tunnel", ours: &["anabranch"], others: None },
    Layer {
        name: "anabranch-python",
        ours: &["anabranch", "anabranch-lab", "anabranch-cc", "anabranch-units"],
        others: None,
    },
    Layer {
        name: "anabranch-web",
        ours: &["anabranch-lab", "anabranch-plugin", "anabranch-sim", "anabranch-cc", "anabranch-units"],
        others: None,
    },
    Layer {
        name: "anabranch-cli",
        ours: &[
            "anabranch",
            "anabranch-web",
            "anabranch-bpf",
            "anabranch-emulator",
            "anabranch-lab",
            "anabranch-ns2",
            "anabranch-tcp",
            "anabranch-transfer",
            "anabranch-tunnel",
            "anabranch-lab",
            "anabranch-ns2",
            "anabranch-plugin",
            "anabranch-sim",
            "anabranch-cc",
            "anabranch-units",
        ],
        others: None,
    },
    Layer {
        name: "xtask",
        ours: &["anabranch-cli", "anabranch-lab", "anabranch-sim", "anabranch-ns2", "anabranch-cc", "anabranch-units"],
        others: None,
    },
];

/// The names that a pure crate must not use: clocks, files, sockets, the environment, threads, hash maps, printing.
const IMPURE: &[&str] = &[
    "std::time",
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::process",
    "HashMap",
    "HashSet",
    "io::stdin",
    "io::stdout",
    "io::stderr",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
    "SystemTime",
    ".powf(",
    ".powi(",
    ".exp(",
    ".ln(",
    ".log2(",
    ".log10(",
    ".cbrt(",
    ".sin(",
    ".cos(",
    ".tan(",
    "f64::powf",
    "f64::exp",
    "f64::ln",
    "f64::cbrt",
];

pub(crate) fn run() -> Result<(), String> {
    let metadata = run::metadata()?;
    let mut problems = vec![];
    let ours: BTreeMap<&str, _> = metadata.packages.iter().map(|package| (package.name.as_str(), package)).collect();
    for (name, package) in &ours {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == *name) else {
            problems
                .push(format!("{name}: not in the table of layers in xtask/src/tidy.rs; say there what it may use"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal) {
            let dependency = dependency.name.as_str();
            if ours.contains_key(dependency) {
                if !layer.ours.contains(&dependency) {
                    problems.push(format!("{name} must not depend on {dependency}: the layers run the other way"));
                }
            } else if layer.others.is_some_and(|others| !others.contains(&dependency)) {
                problems.push(format!("{name} is pure and must not depend on {dependency}"));
            }
        }
        if layer.others.is_some() {
            let source = package.manifest_path.with_file_name("src");
            purity(source.as_std_path(), &mut problems)?;
        }
        circles::check(package.manifest_path.with_file_name("src").as_std_path(), &mut problems)?;
        docs::check(package.manifest_path.with_file_name("src").as_std_path(), &mut problems)?;
        inlining::check(package.manifest_path.with_file_name("src").as_std_path(), &mut problems)?;
        let folder = package.manifest_path.parent().expect("a manifest stands in a folder");
        names::check(name, folder.as_std_path(), &mut problems)?;
        if lengths::CORE.contains(name) {
            lengths::check(folder.as_std_path(), &mut problems)?;
        }
    }
    features::check(&mut problems)?;
    requirements::check(&mut problems)?;
    published::check(&metadata.packages, &run::root(), &mut problems)?;
    history::check(&mut problems);
    if problems.is_empty() {
        run::say("tidy: the crate graph is as ARCHITECTURE.md draws it");
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

/// Searches for impure names in the sources below `folder`, without tests.
fn purity(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() && path.ends_with("tests") {
            continue;
        } else if path.is_dir() {
            purity(&path, problems)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let line = line.split("//").next().unwrap_or_default();
                if let Some(name) = IMPURE.iter().find(|name| line.contains(**name)) {
                    problems.push(format!("{}:{}: a pure crate must not use `{name}`", path.display(), number + 1));
                }
            }
        }
    }
    Ok(())
}

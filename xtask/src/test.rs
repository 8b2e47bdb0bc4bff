//! `cargo xtask test`: everything that CI runs.

use std::fs;

use crate::{counts, generate, oracle, run, tidy};

/// Version of `cargo deny` that checks licences and sources.
const DENY_VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<(), String> {
    let denied = [("RUSTDOCFLAGS", "-D warnings")];
    run::run("cargo", &["fmt", "--all", "--check"], &[])?;
    // The laws are declared by a macro, through which cargo fmt does not see them.
    let laws = files_below("crates/cc/src/law")?;
    let arguments: Vec<&str> =
        ["--edition", "2024", "--check"].into_iter().chain(laws.iter().map(String::as_str)).collect();
    run::run("rustfmt", &arguments, &[])?;
    run::run("cargo", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])?;
    run::run("cargo", &["doc", "--workspace", "--no-deps", "--locked", "--quiet"], &denied)?;
    tidy::run()?;
    generate::run(true)?;
    deny()?;
    // Elsewhere the tests of the report are skipped without a browser.
    let required = [("ANABRANCH_REQUIRE_BROWSER", "1")];
    run::run("cargo", &["test", "--workspace", "--locked", "--quiet"], &required)?;
    run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
    oracle::run(&oracle::Options::quick())?;
    counts::run(false)?;
    run::run(&run::anabranch()?, &["sim", "swarm", "--seeds", "1000"], &[])?;
    run::run(&run::anabranch()?, &["reproduce"], &[])?;
    run::say("all checks passed");
    Ok(())
}

/// The Rust files below a folder, named from the root.
fn files_below(folder: &str) -> Result<Vec<String>, String> {
    let mut files = vec![];
    let path = run::root().join(folder);
    for entry in fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))? {
        let name = entry.map_err(|error| format!("{}: {error}", path.display()))?.file_name();
        let name = format!("{folder}/{}", name.to_string_lossy());
        if run::root().join(&name).is_dir() {
            files.extend(files_below(&name)?);
        } else if name.ends_with(".rs") {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

/// Licences, sources and bans. Advisories change from day to day, so that they would fail a change that is not to blame for
/// them: `cargo deny check advisories` asks for them. The checker is installed beside what is built the first time.
fn deny() -> Result<(), String> {
    let tools = run::target()?.join("tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        let version = format!("cargo-deny@{DENY_VERSION}");
        run::run("cargo", &["install", "--quiet", "--locked", "--root", &tools.to_string_lossy(), &version], &[])?;
    }
    run::run(&program.to_string_lossy(), &["check", "--hide-inclusion-graph", "bans", "licenses", "sources"], &[])
}

//! `cargo xtask test`: everything that CI runs.

use crate::{counts, oracle, run, tidy};

/// Version of `cargo deny` that checks licences and advisories.
const DENY_VERSION: &str = "0.18.9";

pub(crate) fn run() -> Result<(), String> {
    let denied = [("RUSTDOCFLAGS", "-D warnings")];
    run::run("cargo", &["fmt", "--all", "--check"], &[])?;
    run::run("cargo", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])?;
    run::run("cargo", &["doc", "--workspace", "--no-deps", "--locked", "--quiet"], &denied)?;
    tidy::run()?;
    deny()?;
    run::run("cargo", &["test", "--workspace", "--locked", "--quiet"], &[])?;
    run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
    oracle::run(&oracle::Options::quick())?;
    counts::run(false)?;
    run::run("target/release/anabranch", &["reproduce", "--assert"], &[])?;
    run::say("all checks passed");
    Ok(())
}

/// Licences and advisories. The checker is installed into `target/tools` the first time.
fn deny() -> Result<(), String> {
    let program = run::root().join("target/tools/bin/cargo-deny");
    if !program.exists() {
        let version = format!("cargo-deny@{DENY_VERSION}");
        run::run("cargo", &["install", "--quiet", "--locked", "--root", "target/tools", &version], &[])?;
    }
    run::run(&program.to_string_lossy(), &["check", "--hide-inclusion-graph", "bans", "licenses", "sources"], &[])
}

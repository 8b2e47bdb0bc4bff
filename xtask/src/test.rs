//! `cargo xtask test`: everything that CI runs.

use std::thread;

use crate::steps::Steps;
use crate::{counts, demo, field, generate, limit, oracle, packages, python, run, tidy, tools};

/// The place of the outcome of all experiments, in the build folder. Tests that need one read it instead of running all experiments
/// again.
const REPRODUCTION: &str = "reproduction";

pub(crate) fn run() -> Result<(), String> {
    let mut steps = Steps::default();
    let result = check(&mut steps);
    steps.print();
    result?;
    run::say("all checks passed");
    Ok(())
}

fn check(steps: &mut Steps) -> Result<(), String> {
    // Before the test build writes this program anew.
    let limited = limit::setting()?;
    steps.run("packages", || {
        let purpose = "the project in Rust of `anabranch cc new` is built for it";
        packages::install().and_then(|()| packages::install_target(packages::WASM, purpose))
    })?;
    steps.run("formatting", formatting)?;
    steps.run("clippy", || {
        run::run(
            "cargo",
            &["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"],
            &[],
        )
    })?;
    steps.run("documentation", || {
        let denied = [("RUSTDOCFLAGS", "-D warnings")];
        run::run("cargo", &["doc", "--workspace", "--no-deps", "--locked", "--quiet"], &denied)
    })?;
    steps.run("crate graph", tidy::run)?;
    steps.run("generated documents", || generate::run(true))?;
    steps.run("licences", deny)?;
    steps.run("release build", || run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[]))?;
    let reproduction = steps.run("experiments", reproduce)?;
    steps.run("random networks", || field::run(&field::Options::default()))?;
    steps.run("test build", || run::run("cargo", &["test", "--workspace", "--locked", "--quiet", "--no-run"], &[]))?;
    steps.run("tests", || {
        let threads = thread::available_parallelism().map_or(2, |cores| cores.get().max(2)).to_string();
        // Outside of this command the tests of the report are skipped without a browser, and run their own experiments; tests of the projects of
        // `cc new` are skipped without their compilers.
        let environment = [
            ("ANABRANCH_REQUIRE_BROWSER", "1"),
            ("ANABRANCH_REQUIRE_COMPILERS", "1"),
            ("ANABRANCH_REQUIRE_NFTABLES", "1"),
            ("ANABRANCH_REPRODUCTION", reproduction.as_str()),
            // With one thread libtest does not tell that a test takes long.
            ("RUST_TEST_THREADS", threads.as_str()),
        ];
        let test = ["test", "--workspace", "--locked", "--quiet", "--no-fail-fast", "--config", &limited];
        run::run("cargo", &test, &environment)
    })?;
    steps.run("Python", python::quick)?;
    steps.run("demo", demo::check)?;
    steps.run("ns-2", || oracle::run(&oracle::Options::quick()))?;
    steps.run("instruction counts", || counts::run(false))?;
    steps.run("swarm", || run::run(&run::anabranch()?, &["sim", "swarm", "--seeds", "1000"], &[]))
}

fn formatting() -> Result<(), String> {
    run::run("cargo", &["fmt", "--all", "--check"], &[])
}

/// Runs all experiments, whose claims must hold, and returns the folder with the outcome.
fn reproduce() -> Result<String, String> {
    // The outcome of an earlier run must not be taken for this one.
    run::remove_in_target(REPRODUCTION)?;
    let folder = run::target()?.join(REPRODUCTION).to_string_lossy().into_owned();
    run::run(&run::anabranch()?, &["reproduce", "--all", "--out", &folder], &[])?;
    Ok(folder)
}

/// Checks licences, sources and bans. Advisories change from day to day, so they could fail an unrelated change: `cargo deny check
/// advisories` checks them.
fn deny() -> Result<(), String> {
    let program = tools::cargo(&tools::DENY)?;
    run::run(&program, &["check", "--hide-inclusion-graph", "bans", "licenses", "sources"], &[])
}

//! `cargo xtask python`: the Python module, built as users build it, in a virtual environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::run;

#[derive(Args)]
pub(crate) struct Options {
    /// Make the virtual environment anew.
    #[arg(long)]
    fresh: bool,
    /// Only what the test command runs: 15 seconds, and no virtual environment.
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) quick: bool,
    /// Arguments of pytest, such as `-k series`.
    #[arg(last = true)]
    pytest: Vec<String>,
}

/// The packages that build and test it; users do not need them.
const TOOLS: [&str; 3] = ["maturin>=1.9,<2", "mypy", "pytest"];

/// The packages that read its tables, draw its plots, learn in it, and run its sweeps and notebooks. Tests are skipped for those that cannot be installed.
const OTHERS: [&str; 11] = [
    "distributed",
    "duckdb",
    "gymnasium",
    "ipykernel",
    "matplotlib",
    "nbclient",
    "pandas",
    "polars",
    "pyarrow",
    "ray",
    "submitit",
];

/// Builds the wheel with a profile that builds fast, installs it in a virtual environment, and runs all tests: those of the module, the code of
/// `docs/python.md`, the examples, and the comparison of the types with the module.
pub(crate) fn test(options: &Options) -> Result<(), String> {
    let folder = run::target()?.join("python");
    let python = environment("python/venv", options.fresh, &TOOLS, &OTHERS)?;
    let wheel = build(&folder, &python, "quick")?;
    pip(&python, &["uninstall", "--quiet", "--yes", "anabranch"])?;
    pip(&python, &["install", "--quiet", "--no-index", "--no-deps", &wheel.to_string_lossy()])?;
    let arguments = ["-m", "pytest", "-q", "crates/python/tests"].into_iter();
    let arguments: Vec<&str> = arguments.chain(options.pytest.iter().map(String::as_str)).collect();
    run::run(&python, &arguments, &[])
}

/// Tests of the module in a quarter of a minute, for the test command: without a virtual environment, with the library of the test build. Left out are what takes
/// longer or measures times (evaluation, the pages, builds in Rust, limits) and what needs further packages; `cargo xtask python` runs all.
pub(crate) fn quick() -> Result<(), String> {
    let Some(python) = interpreter() else {
        run::say(
            "the tests of the Python module are left out: python3 has no pytest and numpy (`pip install pytest numpy`)",
        );
        return Ok(());
    };
    run::run("cargo", &["build", "--package", "anabranch-python", "--locked", "--quiet"], &[])?;
    run::remove_in_target("python/quick")?;
    let (folder, module) = (run::target()?.join("python/quick"), "anabranch");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join(module)).map_err(failed)?;
    for entry in fs::read_dir(run::root().join("crates/python/anabranch")).map_err(failed)?.flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), folder.join(module).join(entry.file_name())).map_err(failed)?;
        }
    }
    let library = format!("{}anabranch_python{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    fs::copy(run::target()?.join("debug").join(library), folder.join(module).join("_native.abi3.so"))
        .map_err(failed)?;
    let files = QUICK.map(|name| format!("crates/python/tests/test_{name}.py"));
    // A test that hangs ends them all, with the lines in which it hangs.
    let limits = ["-o", "faulthandler_timeout=120", "-o", "faulthandler_exit_on_timeout=true"];
    let options = ["-m", "pytest", "-q", "-p", "no:cacheprovider"].into_iter().chain(limits);
    let arguments: Vec<&str> = options.chain(files.iter().map(String::as_str)).collect();
    run::run(&python, &arguments, &[("PYTHONPATH", &folder.to_string_lossy())])
}

/// A Python with the packages that the quick tests need.
fn interpreter() -> Option<String> {
    let can = |python: &str| {
        let asked = Command::new(python).args(["-c", "import numpy, pytest"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(|python| can(python)).map(str::to_owned)
}

/// Tests that take little time together, and do not depend on how fast the machine is.
const QUICK: [&str; 6] = ["net", "net_cancelled", "run", "scenario", "sweep", "tables"];

/// The interpreter of a virtual environment in cargo's target folder, with `tools`, and those of `others` that can be installed.
pub(crate) fn environment(name: &str, fresh: bool, tools: &[&str], others: &[&str]) -> Result<String, String> {
    let venv = run::target()?.join(name);
    let python =
        venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" }).to_string_lossy().into_owned();
    // An interrupted installation leaves an incomplete environment, and an older version of this list another one.
    let (ready, packages) = (venv.join("ready"), [tools, others].concat().join("\n"));
    if !fresh && fs::read_to_string(&ready).is_ok_and(|installed| installed == packages) {
        return Ok(python);
    }
    run::remove_in_target(name)?;
    run::run("python3", &["-m", "venv", &venv.to_string_lossy()], &[])?;
    pip(&python, &[&["install", "--quiet"], tools].concat())?;
    let install = |which: &[&str]| pip(&python, &[&["install", "--quiet", "--only-binary", ":all:"], which].concat());
    // All at once is faster; one by one, if one of them is not for this machine.
    if !others.is_empty() && install(others).is_err() {
        for other in others {
            if let Err(error) = install(&[other]) {
                run::say(&format!("{error}; its tests are left out"));
            }
        }
    }
    fs::write(&ready, packages).map_err(|error| format!("{}: {error}", ready.display()))?;
    Ok(python)
}

fn pip(python: &str, arguments: &[&str]) -> Result<(), String> {
    let quiet = [("PIP_DISABLE_PIP_VERSION_CHECK", "1")];
    run::run(python, &[&["-m", "pip"], arguments].concat(), &quiet)
}

/// Builds the wheel and returns its path.
fn build(folder: &Path, python: &str, profile: &str) -> Result<PathBuf, String> {
    let out = folder.join("wheels").join(profile);
    // The wheel of an earlier version must not be taken for this one.
    run::remove_in_target(&format!("python/wheels/{profile}"))?;
    let text = out.to_string_lossy();
    let arguments = ["-m", "maturin", "build", "--quiet", "--locked", "--profile", profile, "--out", &text];
    // The interpreter for the build; a wheel for the stable ABI works with all of them.
    run::run(python, &[&arguments[..], &["--interpreter", python]].concat(), &[])?;
    let wheels = fs::read_dir(&out).map_err(|error| format!("{text}: {error}"))?.flatten();
    let wheel =
        wheels.into_iter().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "whl"));
    wheel.ok_or_else(|| format!("{text}: maturin has made no wheel"))
}

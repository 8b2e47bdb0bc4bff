//! The program for a target: static, so that it runs on any distribution of Linux.

use std::path::{Path, PathBuf};

use super::elf;
use super::release::Release;
use crate::{packages, run, tools, zig};

/// A target, and its names elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Rust's name.
    pub(super) triple: &'static str,
    /// The processor, as Rust and QEMU call it.
    processor: &'static str,
    /// The name in zig.
    zig: &'static str,
}

pub(super) const TARGETS: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-musl", processor: "x86_64", zig: "x86_64-linux-musl" },
    Target { triple: "aarch64-unknown-linux-musl", processor: "aarch64", zig: "aarch64-linux-musl" },
];

impl Target {
    /// Whether this machine runs its programs without an emulator.
    pub(super) fn is_native(&self) -> bool {
        cfg!(target_os = "linux") && self.processor == std::env::consts::ARCH
    }
}

/// All targets; that of this machine comes first, as its program writes the man pages of all.
pub(super) fn targets() -> [Target; 2] {
    let mut targets = TARGETS;
    targets.sort_by_key(|target| !target.is_native());
    targets
}

/// The profile in `Cargo.toml`.
pub(super) const PROFILE: &str = "dist";

/// Builds the program, and returns its path. `ring` and `blake3` contain C, which zig compiles; Rust's own linker links for all targets.
pub(super) fn build(release: &Release, target: &Target) -> Result<PathBuf, String> {
    packages::install_target(target.triple, "a program is released for it")?;
    let folder = release.source.with_file_name("compilers");
    let flag = |(from, to): &(String, &str)| format!("-ffile-prefix-map={from}={to}");
    let flags: Vec<String> = release.paths.iter().map(flag).collect();
    let python = format!("{} -m ziglang", zig::quoted(&tools::python()?));
    let (compiler, archiver) = (zig::compiler(&python, target.zig, &flags, &folder)?, zig::archiver(&python, &folder)?);
    let lower = target.triple.replace('-', "_");
    let (cc, ar, linker) =
        (format!("CC_{lower}"), format!("AR_{lower}"), format!("CARGO_TARGET_{}_LINKER", lower.to_uppercase()));
    let arguments =
        ["build", "--locked", "--profile", PROFILE, "--package", "anabranch-cli", "--target", target.triple];
    release.run("cargo", &arguments, &[(&cc, &compiler), (&ar, &archiver), (&linker, "rust-lld")])?;
    let program = release.build.join(target.triple).join(PROFILE).join("anabranch");
    let bytes = std::fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    match elf::is_static(&bytes)? {
        true => Ok(program),
        false => Err(format!("{}: it needs libraries of the system", program.display())),
    }
}

/// What runs programs of a target here: nothing else if they are this machine's, or QEMU.
pub(super) fn runner(target: &Target) -> Result<Option<String>, String> {
    if target.is_native() {
        return Ok(None);
    }
    let names = [format!("qemu-{}-static", target.processor), format!("qemu-{}", target.processor)];
    let found = names.into_iter().find(|name| run::is_installed(name));
    found.map(Some).ok_or_else(|| format!("there is no qemu-{}; apt-get install qemu-user-static", target.processor))
}

/// What the program prints with some arguments.
pub(super) fn told(runner: Option<&str>, program: &Path, arguments: &[&str]) -> Result<String, String> {
    let program = program.to_string_lossy();
    match runner {
        None => run::output_in(&run::root(), &program, arguments),
        Some(runner) => run::output_in(&run::root(), runner, &[&[&*program], arguments].concat()),
    }
}

/// Runs the program: it says its version, and a simulated transfer ends.
pub(super) fn try_out(release: &Release, runner: &Option<String>, program: &Path) -> Result<(), String> {
    let runner = runner.as_deref();
    let version = told(runner, program, &["--version"])?;
    if version.trim() != format!("anabranch {}", release.version) {
        return Err(format!("it says that it is {}", version.trim()));
    }
    told(runner, program, &["sim", "swarm", "--seeds", "3"]).map(drop)
}

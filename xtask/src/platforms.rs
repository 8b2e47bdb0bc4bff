//! `cargo xtask platforms`: checks that the libraries and the command compile for other operating systems.
//!
//! `cargo check` needs no linker and no system libraries, but `ring` contains C: mingw compiles it for Windows, zig, which has the headers, for macOS.
//! Nothing is run. The check proves only that our code uses no interface that those systems lack.

use std::fs;
use std::path::Path;

use crate::run::{self, say};
use crate::zig;

/// A system, and its C compiler.
struct Target {
    name: &'static str,
    c: Compiler,
}

enum Compiler {
    /// Debian's package `gcc-mingw-w64-x86-64`.
    Mingw,
    /// zig, with this name of the target.
    Zig(&'static str),
}

const TARGETS: [Target; 3] = [
    Target { name: "x86_64-pc-windows-gnu", c: Compiler::Mingw },
    Target { name: "x86_64-apple-darwin", c: Compiler::Zig("x86_64-macos") },
    Target { name: "aarch64-apple-darwin", c: Compiler::Zig("aarch64-macos") },
];

pub(crate) fn run() -> Result<(), String> {
    let folder = run::target()?.join("platforms");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut failed = vec![];
    for target in TARGETS {
        if let Err(problem) = check(&target, &folder) {
            say(&format!("{}: {problem}", target.name));
            failed.push(target.name);
        } else {
            say(&format!("{}: compiles", target.name));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not checked, or not compiled: {}", failed.join(", "))) }
}

fn check(target: &Target, folder: &Path) -> Result<(), String> {
    run::run("rustup", &["target", "add", target.name], &[])?;
    let packages = ["anabranch", "anabranch-cli", "anabranch-quinn-cc"].map(|name| ["--package", name]);
    let arguments =
        [&["check", "--locked", "--quiet"][..], packages.as_flattened(), &["--target", target.name]].concat();
    match target.c {
        Compiler::Mingw if run::is_installed("x86_64-w64-mingw32-gcc") => run::run("cargo", &arguments, &[]),
        Compiler::Mingw => Err("apt-get install gcc-mingw-w64-x86-64".into()),
        Compiler::Zig(name) => {
            let compiler = zig::compiler(&zig::installed()?, name, &[], folder)?;
            let variable = format!("CC_{}", target.name.replace('-', "_"));
            run::run("cargo", &arguments, &[(&variable, &compiler)])
        }
    }
}

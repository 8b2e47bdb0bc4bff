//! The playground's module: the simulator as WASM, compiled from `crates/web`, packed, and stored in `crates/web/object`, so that the command builds
//! without that target.
//!
//! Other machines and compilers make other bytes, and most changes of the simulator change no result. So a commit need not bring the module along: it
//! is held to its source by what it does. The tests of `crates/web` compare its runs, laws and queues with those of the sources; when they differ, or
//! before a release, `cargo xtask playground` makes it anew. `object/anabranch.toml` says of which sources it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::{packages, run};

/// The crates that are in it.
const CRATES: [&str; 8] = ["cc", "lab", "ns2", "plugin", "proto", "sim", "units", "web"];

/// The limit of the packed module in bytes.
const PACKED_MAX: usize = 500_000;

/// Makes the module anew, if a source of it has changed.
pub(crate) fn make() -> Result<(), String> {
    let folder = run::root().join("crates/web/object");
    let source = source_hash()?;
    if recorded(&folder, "source").as_deref() == Some(source.as_str()) && is_whole(&folder) {
        run::say("the playground's module is of these sources");
        return Ok(());
    }
    packages::install_target(packages::WASM, "the playground is a module of it")?;
    // No path of this machine, such as those of panics.
    let (home, root) = (run::cargo_home()?, run::root());
    let flags = format!("--remap-path-prefix={}=. --remap-path-prefix={home}=cargo", root.display(),);
    let arguments =
        ["build", "--locked", "-p", "anabranch-web", "--profile", "wasm", "--target", "wasm32-unknown-unknown"];
    run::run(env!("CARGO"), &arguments, &[("RUSTFLAGS", &flags)])?;
    let compiled = run::target()?.join("wasm32-unknown-unknown/wasm/anabranch_web.wasm");
    let module = fs::read(&compiled).map_err(|error| format!("{}: {error}", compiled.display()))?;
    let packed = packed(&compiled, module.len())?;
    if packed.len() > PACKED_MAX {
        return Err(format!("the packed module has {} bytes, more than {PACKED_MAX}", packed.len()));
    }
    let record = format!(
        "# Made by `cargo xtask playground`.\ncompiler = \"{}\"\nsource = \"{source}\"\nobject = \"{}\"\n",
        compiler()?,
        hash(&packed)
    );
    write(&folder.join("anabranch.wasm.lzma"), &packed)?;
    write(&folder.join("anabranch.toml"), record.as_bytes())?;
    run::say(&format!("{} bytes, packed {}", module.len(), packed.len()));
    Ok(())
}

/// Whether the stored module is the one that the record is of.
pub(crate) fn check() -> bool {
    is_whole(&run::root().join("crates/web/object"))
}

fn is_whole(folder: &Path) -> bool {
    let object = fs::read(folder.join("anabranch.wasm.lzma")).unwrap_or_default();
    recorded(folder, "object") == Some(hash(&object))
}

fn recorded(folder: &Path, key: &str) -> Option<String> {
    let record = fs::read_to_string(folder.join("anabranch.toml")).unwrap_or_default();
    let mut lines = record.lines().filter_map(|line| line.split_once(" = "));
    lines.find(|&(name, _)| name == key).map(|(_, value)| value.trim_matches('"').to_owned())
}

/// Packs a file of `len` bytes by LZMA.
fn packed(file: &Path, len: usize) -> Result<Vec<u8>, String> {
    // Instructions are not aligned (`pb`), and depend much on the byte before (`lc`).
    let options = "--lzma1=dict=4MiB,nice=273,mf=bt4,depth=2000,lc=4,pb=0";
    let told = Command::new("xz").args(["--format=lzma", "--keep", "--stdout", options]).arg(file).output();
    let told = told.map_err(|error| format!("xz: {error}; apt-get install xz-utils"))?;
    if !told.status.success() {
        return Err(format!("xz cannot pack the module: {}", String::from_utf8_lossy(&told.stderr)));
    }
    let mut packed = told.stdout;
    // The size of what is packed, which xz leaves open.
    let size = packed.get_mut(5..13).ok_or("xz wrote nothing")?;
    size.copy_from_slice(&(len as u64).to_le_bytes());
    Ok(packed)
}

/// The first line of `rustc --version`.
fn compiler() -> Result<String, String> {
    let told = Command::new("rustc").arg("--version").output().map_err(|error| format!("rustc: {error}"))?;
    Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

/// The hash of the sources, and of what they are built with.
fn source_hash() -> Result<String, String> {
    let root = run::root();
    let mut files = vec![root.join("Cargo.toml"), root.join("Cargo.lock")];
    files.extend(CRATES.map(|name| root.join(format!("crates/{name}/Cargo.toml"))));
    let folders = CRATES.map(|name| format!("crates/{name}/src"));
    hash_of(files, &folders.each_ref().map(String::as_str))
}

/// The hash of files and of those in folders, by their names from the root on.
pub(crate) fn hash_of(mut all_files: Vec<PathBuf>, folders: &[&str]) -> Result<String, String> {
    let root = run::root();
    folders.iter().try_for_each(|folder| files(&root.join(folder), &mut all_files))?;
    all_files.sort();
    let mut all = Vec::new();
    for path in all_files {
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend(format!("\n{name} {}\n", text.len()).bytes().chain(text));
    }
    Ok(hash(&all))
}

/// The files of a folder and of its folders, without those of tests.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        match path.is_dir() {
            true => files(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

//! The compiled laws of `crates/bpf`: made by clang from `c/tcp.bpf.c`, stored in the repository, and held to their source.
//!
//! `object/tcp.bpf.toml` has the hashes of source and object, and the compiler. A machine without clang, or with another version, compares the hashes;
//! with the same version it also compiles again and compares every byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::run;

const OBJECT: &str = "object/tcp.bpf.o";
const RECORD: &str = "object/tcp.bpf.toml";

/// `-g` gives BTF, the types by which the loader finds fields. `-mcpu=v3` has comparisons of 32 bits (Linux 5.1).
const FLAGS: [&str; 10] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    // No path of this machine.
    "-fdebug-compilation-dir=.",
    "-c",
];

/// Makes the object anew if its source has changed, or checks that it has not. Returns whether it is stale.
pub(crate) fn run(check: bool) -> Result<bool, String> {
    let folder = run::root().join("crates/bpf");
    let (source, compiler) = (source_hash(&folder)?, compiler());
    let object = fs::read(folder.join(OBJECT)).unwrap_or_default();
    let stored = fs::read_to_string(folder.join(RECORD)).unwrap_or_default();
    let recorded = |key: &str| {
        let lines = stored.lines().filter_map(|line| line.split_once(" = "));
        lines.filter(|&(name, _)| name == key).map(|(_, value)| value.trim_matches('"').to_owned()).next()
    };
    let is_of_source = recorded("source") == Some(source.clone()) && recorded("object") == Some(hash(&object));
    let is_of_compiler = compiler.is_some() && recorded("compiler") == compiler;
    if is_of_source && !(check && is_of_compiler) {
        return Ok(false);
    }
    if check {
        return Ok(!is_of_source || compile(&folder)? != object);
    }
    let Some(compiler) = compiler else {
        return Err(
            "clang is missing: crates/bpf/c has changed, and has to be compiled; apt-get install clang".to_owned()
        );
    };
    let object = compile(&folder)?;
    let record = format!(
        "# Made by `cargo xtask generate`.\ncompiler = \"{compiler}\"\nsource = \"{source}\"\nobject = \"{}\"\n",
        hash(&object)
    );
    write(&folder.join(OBJECT), &object)?;
    write(&folder.join(RECORD), record.as_bytes())?;
    Ok(false)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of the C files by their names, and of the flags.
fn source_hash(folder: &Path) -> Result<String, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder.join("c")).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    // The program for tests is no part of the object.
    files.retain(|path| !path.ends_with("host.c"));
    files.sort();
    let mut all = FLAGS.join(" ").into_bytes();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend(format!("\n{name} {}\n", text.len()).bytes().chain(text));
    }
    Ok(hash(&all))
}

/// The first line of `clang --version`; `None` without clang.
fn compiler() -> Option<String> {
    let told = Command::new("clang").arg("--version").output().ok()?;
    String::from_utf8_lossy(&told.stdout).lines().next().map(|line| line.trim().to_owned())
}

/// Compiles the object, and leaves out what the loader does not read.
fn compile(folder: &Path) -> Result<Vec<u8>, String> {
    let output = run::target()?.join(format!("tcp.bpf.{}.o", std::process::id()));
    let told = Command::new("clang")
        .args(FLAGS)
        .arg("tcp.bpf.c")
        .arg("-o")
        .arg(&output)
        .current_dir(folder.join("c"))
        .output();
    let told = told.map_err(|error| format!("clang: {error}"))?;
    if !told.status.success() {
        return Err(format!("crates/bpf/c/tcp.bpf.c does not compile:\n{}", String::from_utf8_lossy(&told.stderr)));
    }
    let file = fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    fs::remove_file(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    stripped(&file).ok_or_else(|| "clang wrote no ELF file".to_owned())
}

/// An ELF file without debugging information and without the relocations of BTF. Sections keep their numbers; those left out are empty.
fn stripped(file: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize, len: usize| {
        let bytes = file.get(at..at + len)?;
        Some(bytes.iter().rev().fold(0_usize, |number, &byte| number << 8 | usize::from(byte)))
    };
    let (table, count, names) = (number(40, 8)?, number(60, 2)?, number(62, 2)?);
    let header = |index: usize| table + HEADER * index;
    let names = number(header(names) + 24, 8)?;
    let mut new = file.get(..HEADER)?.to_vec();
    let mut headers = vec![];
    for index in 0..count {
        let at = header(index);
        let name = file.get(names + number(at, 4)?..)?.split(|&byte| byte == 0).next()?;
        let mut header = file.get(at..at + HEADER)?.to_vec();
        if [&b".debug"[..], b".rel.debug", b".rel.BTF", b".llvm_addrsig"].iter().any(|start| name.starts_with(start)) {
            header = vec![0; HEADER];
        } else {
            new.resize(new.len().next_multiple_of(8), 0);
            header[24..32].copy_from_slice(&(new.len() as u64).to_le_bytes());
            new.extend(file.get(number(at + 24, 8)?..)?.get(..number(at + 32, 8)?)?);
        }
        headers.extend(header);
    }
    new.resize(new.len().next_multiple_of(8), 0);
    let start = new.len() as u64;
    new[40..48].copy_from_slice(&start.to_le_bytes());
    new.extend(headers);
    Some(new)
}

/// The size of the header of the file, and of that of a section.
const HEADER: usize = 64;

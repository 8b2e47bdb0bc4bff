//! The compiled laws of `crates/bpf`: made by clang from the files `c/*.bpf.c`, stored in the repository, and held to their source.
//!
//! `object/NAME.bpf.toml` has the hashes of source and object, and the compiler. A machine without clang, or with another version, compares the hashes;
//! with the same version it also compiles again and compares every byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::run;

const NAMES: [&str; 2] = ["tcp", "anabranch"];

/// `-g` gives BTF, the types by which the loader finds fields. `-mcpu=v3` has comparisons of 32 bits (Linux 5.1). A state is cleared by words.
const FLAGS: [&str; 11] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-strict-aliasing",
    // No path of this machine.
    "-fdebug-compilation-dir=.",
    "-c",
];

/// Makes the objects anew if their source has changed, or checks that it has not. Returns whether one is stale.
pub(crate) fn run(check: bool) -> Result<bool, String> {
    let folder = run::root().join("crates/bpf");
    let source = source_hash(&folder)?;
    NAMES.iter().try_fold(false, |is_stale, name| Ok(run_one(&folder, &source, name, check)? || is_stale))
}

fn run_one(folder: &Path, source: &str, name: &str, check: bool) -> Result<bool, String> {
    let compiler = compiler();
    let (object_path, record_path) =
        (folder.join(format!("object/{name}.bpf.o")), folder.join(format!("object/{name}.bpf.toml")));
    let object = fs::read(&object_path).unwrap_or_default();
    let stored = fs::read_to_string(&record_path).unwrap_or_default();
    let recorded = |key: &str| {
        let lines = stored.lines().filter_map(|line| line.split_once(" = "));
        lines.filter(|&(name, _)| name == key).map(|(_, value)| value.trim_matches('"').to_owned()).next()
    };
    let is_of_source = recorded("source").as_deref() == Some(source) && recorded("object") == Some(hash(&object));
    let is_of_compiler = compiler.is_some() && recorded("compiler") == compiler;
    if is_of_source && !(check && is_of_compiler) {
        return Ok(false);
    }
    if check {
        return Ok(!is_of_source || compile(folder, name)? != object);
    }
    let Some(compiler) = compiler else {
        return Err(
            "clang is missing: crates/bpf/c has changed, and has to be compiled; apt-get install clang".to_owned()
        );
    };
    let object = compile(folder, name)?;
    let record = format!(
        "# Made by `cargo xtask generate`.\ncompiler = \"{compiler}\"\nsource = \"{source}\"\nobject = \"{}\"\n",
        hash(&object)
    );
    write(&object_path, &object)?;
    write(&record_path, record.as_bytes())?;
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
    let top = folder.join("c");
    let mut all_files = files(&top)?;
    all_files.extend(files(&top.join("anabranch"))?);
    // The program for tests is no part of the objects.
    all_files.retain(|path| path.is_file() && !path.ends_with("host.c"));
    all_files.sort();
    let mut all = FLAGS.join(" ").into_bytes();
    for path in all_files {
        let name = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().into_owned();
        let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend(format!("\n{name} {}\n", text.len()).bytes().chain(text));
    }
    Ok(hash(&all))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)
}

/// The first line of `clang --version`; `None` without clang.
fn compiler() -> Option<String> {
    let told = Command::new("clang").arg("--version").output().ok()?;
    String::from_utf8_lossy(&told.stdout).lines().next().map(|line| line.trim().to_owned())
}

/// Compiles the object, and leaves out what the loader does not read.
fn compile(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let source = format!("{name}.bpf.c");
    let output = run::target()?.join(format!("{name}.bpf.{}.o", std::process::id()));
    let told =
        Command::new("clang").args(FLAGS).arg(&source).arg("-o").arg(&output).current_dir(folder.join("c")).output();
    let told = told.map_err(|error| format!("clang: {error}"))?;
    if !told.status.success() {
        return Err(format!("crates/bpf/c/{source} does not compile:\n{}", String::from_utf8_lossy(&told.stderr)));
    }
    let file = fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    fs::remove_file(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    stripped(&file).ok_or_else(|| "clang wrote no ELF file".to_owned())
}

/// An ELF file without debugging information, lines of the source and relocations of BTF. Sections keep their numbers; those left out are empty.
fn stripped(file: &[u8]) -> Option<Vec<u8>> {
    let number = |at, len| number(file, at, len);
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
            let data = file.get(number(at + 24, 8)?..)?.get(..number(at + 32, 8)?)?;
            let data = if name == b".BTF.ext" { fields(data)? } else { data.to_vec() };
            header[32..40].copy_from_slice(&(data.len() as u64).to_le_bytes());
            new.extend(data);
        }
        headers.extend(header);
    }
    new.resize(new.len().next_multiple_of(8), 0);
    let start = new.len() as u64;
    new[40..48].copy_from_slice(&start.to_le_bytes());
    new.extend(headers);
    Some(new)
}

/// Of `.BTF.ext` the part about fields of structs: a line of the source for each instruction would double the object.
fn fields(data: &[u8]) -> Option<Vec<u8>> {
    let word = |at| number(data, at, 4);
    let (start, len) = (word(4)? + word(24)?, word(28)?);
    let mut new = data.get(..FIELDS_HEADER)?.to_vec();
    new[4] = FIELDS_HEADER as u8;
    new[8..].fill(0);
    new[28..].copy_from_slice(&(len as u32).to_le_bytes());
    new.extend(data.get(start..start + len)?);
    Some(new)
}

/// The number of `len` bytes at `at`.
fn number(file: &[u8], at: usize, len: usize) -> Option<usize> {
    let bytes = file.get(at..at + len)?;
    Some(bytes.iter().rev().fold(0_usize, |number, &byte| number << 8 | usize::from(byte)))
}

/// The size of the header of the file, and of that of a section.
const HEADER: usize = 64;

/// The size of the header of `.BTF.ext`.
const FIELDS_HEADER: usize = 32;

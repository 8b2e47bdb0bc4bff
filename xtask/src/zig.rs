//! zig as a compiler of C for other systems: it has the headers of all of them, and one version makes the same bytes on every machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run;

/// The command line of a zig that is installed, of any version.
pub(crate) fn installed() -> Result<String, String> {
    let by_python = || Command::new("python3").args(["-m", "ziglang", "version"]).output();
    if run::is_installed("zig") {
        Ok("zig".to_owned())
    } else if by_python().is_ok_and(|told| told.status.success()) {
        Ok("python3 -m ziglang".to_owned())
    } else {
        Err("zig is missing: pip install ziglang".into())
    }
}

/// A program in `folder` that compiles C for a target, with these flags besides. zig has different names for targets than others.
pub(crate) fn compiler(zig: &str, target: &str, flags: &[String], folder: &Path) -> Result<String, String> {
    let flags: String = flags.iter().map(|flag| format!(" {}", quoted(flag))).collect();
    let script = format!(
        "for word; do\n  shift\n  case \"$word\" in\n    --target=*|-arch|arm64|x86_64|-mmacosx-version-min=*) ;;\n    *) set -- \"$@\" \"$word\" ;;\n  esac\ndone\nexec {zig} cc -target {target}{flags} \"$@\"\n"
    );
    program(folder, &format!("cc-{target}"), &script)
}

/// A program in `folder` that makes archives of objects of any target.
pub(crate) fn archiver(zig: &str, folder: &Path) -> Result<String, String> {
    program(folder, "ar", &format!("exec {zig} ar \"$@\"\n"))
}

/// Writes a script that keeps zig's files beside it, and returns its path.
fn program(folder: &Path, name: &str, script: &str) -> Result<String, String> {
    let path = folder.join(name);
    let cache = quoted(&folder.join("zig").to_string_lossy());
    let head = format!("#!/bin/bash\nexport ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}\n");
    let write = || {
        fs::create_dir_all(folder)?;
        fs::write(&path, head + script)?;
        make_executable(&path)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

/// A word of a shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Other systems need no mode.
#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}

//! External tools of one version each, in cargo's target folder and nowhere else. They are installed when they are first needed, or by
//! `cargo xtask dist --tools`.

use std::fs;

use crate::{python, run};

/// A program of crates.io.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    /// What is run for a second costs less to build than an optimised program would save.
    profile: &'static str,
}

/// Checks licences and sources.
pub(crate) const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", profile: "dev" };
/// Makes Debian packages. It compresses 30 MB by LZMA.
pub(crate) const DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", profile: "release" };
/// Lists the components of a program.
pub(crate) const CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9", profile: "dev" };

/// What makes wheels, and zig, which compiles C for other systems.
const PYTHON: [&str; 2] = ["maturin==1.16.0", "ziglang==0.15.2"];

/// The path of a tool, which is installed if this version is not there.
pub(crate) fn cargo(tool: &Tool) -> Result<String, String> {
    let Tool { name, version, profile } = tool;
    let folder = run::target()?.join("tools");
    let program = folder.join("bin").join(name);
    // Cargo's list of what is installed there.
    let list = fs::read_to_string(folder.join(".crates.toml")).unwrap_or_default();
    if !(program.exists() && is_listed(&list, name, version)) {
        run::say(&format!("installing {name} {version} in {}", folder.display()));
        let (folder, version) = (folder.to_string_lossy(), format!("{name}@{version}"));
        let install = ["install", "--quiet", "--locked", "--force", "--profile", profile, "--root", &folder, &version];
        run::run("cargo", &install, &[])?;
    }
    Ok(program.to_string_lossy().into_owned())
}

fn is_listed(list: &str, name: &str, version: &str) -> bool {
    list.lines().any(|line| line.starts_with(&format!("\"{name} {version} (")))
}

/// The interpreter of a virtual environment with maturin and zig.
pub(crate) fn python() -> Result<String, String> {
    python::environment("tools/python", false, &PYTHON, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_not_taken() {
        let list = "[v1]\n\"cargo-deb 3.8.0 (registry+https://example.org/index)\" = [\"cargo-deb\"]\n";
        assert!(is_listed(list, "cargo-deb", "3.8.0"));
        assert!(!is_listed(list, "cargo-deb", "3.8"));
        assert!(!is_listed(list, "cargo-de", "3.8.0"));
        assert!(!is_listed("", "cargo-deb", "3.8.0"));
    }
}

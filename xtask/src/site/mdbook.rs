//! mdBook, which makes the book: one version, so that a page looks the same everywhere.

use std::process::Command;

use crate::run::{self, say};

/// The version. `cargo install` needs about three minutes for it, so it is no dependency of this program, which every test run builds.
const VERSION: &str = "0.5.4";

/// The folder for programs in cargo's target folder.
const TOOLS: &str = "tools";

/// The path of the program: the one in the target folder, or the one on the path if it has this version.
///
/// # Errors
/// If there is none. The error has the command that installs it; with `install` that command is run instead.
pub(super) fn program(install: bool) -> Result<String, String> {
    let tools = run::target()?.join(TOOLS);
    let own = tools.join("bin").join("mdbook").to_string_lossy().into_owned();
    if let Some(found) = [own.as_str(), "mdbook"].into_iter().find(|program| is_right(program)) {
        return Ok(found.to_owned());
    }
    let (version, root) = (format!("mdbook@{VERSION}"), tools.to_string_lossy());
    let arguments = ["install", "--locked", "--no-default-features", "--features", "search", "--root", &root, &version];
    if !install {
        return Err(format!(
            "mdBook {VERSION} is missing: type\n  cargo xtask site --install\nwhich runs\n  cargo {}",
            arguments.join(" ")
        ));
    }
    say(&format!("mdBook {VERSION} is missing"));
    run::run("cargo", &arguments, &[])?;
    if is_right(&own) { Ok(own) } else { Err(format!("{own} is not mdBook {VERSION}")) }
}

/// Whether a program is this version of mdBook.
fn is_right(program: &str) -> bool {
    let told = Command::new(program).arg("--version").output();
    told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).trim() == format!("mdbook v{VERSION}"))
}

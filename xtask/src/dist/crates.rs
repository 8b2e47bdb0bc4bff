//! The crates that others may use, as crates.io would get them.

use super::release::Release;
use crate::run;
use crate::tidy::published::PUBLISHED;

/// Packs all of them, each with those that it needs, and compiles what is packed. Nothing is uploaded.
pub(super) fn check(release: &Release) -> Result<(), String> {
    release.run("cargo", &[&["publish", "--dry-run", "--locked", "--allow-dirty"], &packages()[..]].concat(), &[])
}

/// Checks them with the oldest compiler that they promise.
pub(super) fn check_oldest_compiler(release: &Release) -> Result<(), String> {
    let metadata = run::metadata_in(&release.source)?;
    let versions = metadata.packages.iter().filter(|package| PUBLISHED.contains(&package.name.as_str()));
    let oldest = versions.filter_map(|package| package.rust_version.clone()).min();
    let oldest = oldest.ok_or("no `rust-version` is set")?.to_string();
    if run::output_in(&release.source, "rustup", &["run", &oldest, "rustc", "--version"]).is_err() {
        return Err(format!("it is not installed; type\n  rustup toolchain install {oldest} --profile minimal"));
    }
    let check = ["run", &oldest, "cargo", "check", "--quiet", "--locked", "--all-features"];
    release.run("rustup", &[&check[..], &packages()].concat(), &[])?;
    run::say(&format!("the crates for others compile with Rust {oldest}"));
    Ok(())
}

fn packages() -> Vec<&'static str> {
    PUBLISHED.iter().flat_map(|name| ["--package", name]).collect()
}

//! `cargo xtask screenshot`: takes the picture of the playground in README.md, and keeps of which page it is.
//!
//! A browser draws letters differently on each machine, so the picture itself cannot be compared. What is compared is the page: when a file of it has
//! changed since, `cargo xtask generate --check` says so.

use std::fs;

use crate::{module, run};

/// The folder of pictures that need a browser.
const FOLDER: &str = "docs";
pub(crate) const PICTURE: &str = "docs/playground.png";
const RECORD: &str = "docs/pictures/playground.toml";

/// The test that takes the picture.
const TEST: &str = "look::picture_of_readme_shows_two_laws";

/// Takes the picture anew.
pub(crate) fn run() -> Result<(), String> {
    let root = run::root();
    let folder = root.join(FOLDER).to_string_lossy().into_owned();
    let browser = [("ANABRANCH_REQUIRE_BROWSER", "1"), ("ANABRANCH_SCREENSHOTS", folder.as_str())];
    // With the features of the workspace, as all tests are built.
    let test = ["test", "--workspace", "--locked", "--quiet", "--test", "page", TEST, "--", "--exact"];
    run::run("cargo", &test, &browser)?;
    let record = root.join(RECORD);
    fs::write(&record, record_of_today()?).map_err(|error| format!("{}: {error}", record.display()))
}

/// Whether the picture is of the page as it is.
pub(crate) fn check() -> Result<bool, String> {
    Ok(fs::read_to_string(run::root().join(RECORD)).ok() == Some(record_of_today()?))
}

fn record_of_today() -> Result<String, String> {
    let page = module::hash_of(vec![], &["crates/web/page"])?;
    Ok(format!("# Made by `cargo xtask screenshot`: the page of which docs/playground.png is.\npage = \"{page}\"\n"))
}

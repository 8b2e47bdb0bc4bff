//! Tests of the page in a real browser. Without one (Debian's package `chromium`) the tests say so and pass, unless `ANABRANCH_REQUIRE_BROWSER` is 1.
//! `ANABRANCH_SCREENSHOTS=FOLDER` keeps screenshots.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage shall stop there")]

mod address;
#[path = "../../../lab/tests/report/browser.rs"]
#[expect(dead_code, reason = "the report's tests print, and click twice")]
mod browser;
mod exports;
#[path = "../guest/mod.rs"]
mod guest;
mod handles;
mod look;
mod own;
mod runs;
#[path = "../scenarios/mod.rs"]
mod scenarios;
mod speed;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anabranch_web::page::page;
use serde_json::{Value, json};

use crate::browser::Browser;

/// The page on a disk.
static PAGE: LazyLock<PathBuf> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground.html");
    fs::write(&file, page()).unwrap();
    file
});

/// Opens the page with an address of its own, and waits for the end of its first run.
#[track_caller]
fn open(browser: &mut Browser, address: &str) {
    browser.open(&PAGE);
    wait_for_run(browser);
    if !address.is_empty() {
        go(browser, address);
    }
}

/// Goes to another address of the page.
#[track_caller]
fn go(browser: &mut Browser, address: &str) {
    browser.evaluate(&format!(
        "playground.sides.forEach((side) => {{ side.answer = null; }}), location.hash = {}, 0",
        json!(address)
    ));
    wait_for_run(browser);
}

#[track_caller]
fn wait_for_run(browser: &mut Browser) {
    let is_done = "globalThis.playground !== undefined && playground.sides.length > 0 && playground.sides.every((side) => side.answer) && document.getElementById('stop').hidden";
    browser.wait(is_done);
}

/// The hashes of the runs that are shown.
fn hashes(browser: &mut Browser) -> Value {
    browser.evaluate("playground.sides.map((side) => side.answer.hash ?? side.answer.message)")
}

/// Waits until the runs that are shown have these hashes: a run that is ended late may show its end before the next begins.
#[track_caller]
fn wait_for_hashes(browser: &mut Browser, hashes: &Value) {
    let shown = "JSON.stringify(playground.sides.map((side) => side.answer?.hash))";
    browser.wait(&format!("{shown} === JSON.stringify({hashes})"));
}

#[track_caller]
fn assert_quiet(browser: &Browser) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let is_own = |url: &&str| !["file://", "data:", "about:", "blob:"].iter().any(|scheme| url.starts_with(scheme));
    let foreign: Vec<&str> = browser.requests().into_iter().filter(is_own).collect();
    assert!(foreign.is_empty(), "the page asked for {foreign:?}");
}

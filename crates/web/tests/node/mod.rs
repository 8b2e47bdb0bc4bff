//! The stored module in Node.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::scenarios::together;

/// The last answer of the stored module to each request, which may name laws by these files; `None` without Node.
pub(crate) fn in_node(requests: &[Value], laws: &[PathBuf]) -> Option<Vec<Value>> {
    let text: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let told = String::from_utf8(told("module.mjs", laws, text)?).unwrap();
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers = |line: &Value| -> Vec<f64> { serde_json::from_value(line.clone()).unwrap() };
    Some(lines.chunks(2).map(|answer| together(&answer[0], &numbers(&answer[1]))).collect())
}

/// What a script of this folder makes of the stored module and of laws in these files; `None` without Node.
#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
pub(crate) fn told(script: &str, laws: &[PathBuf], text: String) -> Option<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = Command::new("node");
    node.arg(here.join("tests").join(script)).arg(here.join("object/anabranch.wasm.lzma")).args(laws);
    let Ok(mut node) = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        let is_required = std::env::var("ANABRANCH_REQUIRE_BROWSER").is_ok_and(|value| value == "1");
        assert!(!is_required, "no node is installed: apt-get install nodejs");
        println!("skipped: no node is installed");
        return None;
    };
    let mut input = node.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let told = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(told.status.success());
    Some(told.stdout)
}

pub(crate) const REMEDY: &str = "the stored module is not of these sources any more; run `cargo xtask playground`";

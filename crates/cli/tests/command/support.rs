//! Common parts of the tests: a scenario, a folder for each test, the command and its output.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

#[path = "../shared/folder.rs"]
mod place;

pub(crate) use place::folder;

pub(crate) const CHAIN: &str = r#"# Does a chain work?
duration = "5s"

[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1.5Mbit/s"
delay = "20ms"
queue = { kind = "drop_tail", packets = 10 }
error = { kind = "list", packets = [100] }

[[flow]]
id = "f0"
from = "n0"
to = "n1"
transport = "ns2/sack"
window = 8
"#;

/// An experiment with a claim about the chain, whose published number and reason are given.
pub(crate) fn experiment(published: u32, because: &str) -> String {
    format!(
        "{CHAIN}\n[experiment]\npaper = \"test-2000\"\n[measure]\ndropped = \"flow.f0.dropped_packets\"\n[[claim]]\nitem = \
         \"table1\"\ntitle = \"Table 1\"\ncite = \"Table 1\"\nrow = \"SACK\"\ncolumn = \"lost\"\nunit = \"packets\"\nmeasure = \
         \"dropped('x')\"\npublished = {published}\nband = \"exact\"\n{because}"
    )
    .replace("('x')", "")
}

/// The same with random losses, on an agent that our transport can replace: 30 seeds of each.
pub(crate) fn random_experiment() -> String {
    experiment(1, "engine = \"it is a test\"\nbecause = \"it is a test\"\n")
        .replace("{ kind = \"list\", packets = [100] }", "{ kind = \"uniform\", rate = 0.05 }")
        .replace("ns2/sack", "ns2/fast")
}

/// Runs the command in `folder`.
pub(crate) fn anabranch(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).args(args).current_dir(folder).output().unwrap()
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[track_caller]
pub(crate) fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "stdout: {}\nstderr: {}", stdout(output), stderr(output));
}

#[track_caller]
pub(crate) fn document(output: &Output) -> Value {
    assert_exit(output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

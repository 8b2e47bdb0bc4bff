//! The commands of docs/wireshark/README.md: a capture of the simulator, and `tshark` with the script. Without `tshark` the test says so and passes.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

use crate::support::{anabranch, assert_exit, folder, repository};

const SCRIPT: &str = "tshark -X lua_script:docs/wireshark/anabranch.lua -r capture.pcapng";

/// Runs a command line of the page in this folder. A message of Lua is a failure.
#[track_caller]
fn shell(folder: &std::path::Path, line: &str) -> Vec<String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder).env("HOME", folder).env("WIRESHARK_CONFIG_DIR", folder);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, errors) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
    assert!(status.success() && !said.contains("Lua Error") && !errors.contains("Lua"), "{line}\n{said}\n{errors}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn simulated_capture_shows_streams_without_gaps() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: tshark is missing (Debian's package `tshark`)");
        return;
    }
    let folder = folder("simulated_capture_shows_streams_without_gaps");
    std::os::unix::fs::symlink(repository().join("docs"), folder.join("docs")).unwrap();
    let page = include_str!("../../../../docs/wireshark/README.md");
    let simulation = "sim run docs/wireshark/streams.toml --pcap capture.pcapng";
    assert!(page.contains(&format!("anabranch {simulation} ")), "the page has the command");
    let arguments: Vec<_> = simulation.split(' ').collect();
    assert_exit(&anabranch(&folder, &arguments), 0);
    let lines: Vec<_> = page.lines().filter(|line| line.starts_with("tshark ")).collect();
    assert!(lines.len() > 3 && lines.iter().all(|line| line.starts_with(SCRIPT)), "{lines:?}");
    let found: Vec<_> = lines.iter().map(|line| shell(&folder, line).len()).collect();
    // Streams and columns find something; this flow ends no stream.
    assert!(found[0] > 300 && found[1] > 2000, "{found:?}");

    // Without losses, the segments of a stream have the numbers from 0 on, each once, and an end expects no more than what was sent.
    assert_exit(&anabranch(&folder, &[&arguments[..], &["--set", "link.wan.error.rate=0"]].concat()), 0);
    let names =
        ["ip.src", "anabranch.stream.id", "anabranch.stream.ssn", "anabranch.expected.id", "anabranch.expected.ssn"];
    let columns: Vec<_> = names.iter().map(|name| format!("-e {name}")).collect();
    let rows = shell(&folder, &format!("{SCRIPT} -T fields {}", columns.join(" ")));
    let mut sent = BTreeMap::<u32, BTreeSet<u32>>::new();
    for row in rows {
        let words: Vec<_> = row.split('\t').collect();
        let number = |at: usize| words[at].parse::<u32>().ok();
        if let (Some(stream), Some(ssn)) = (number(1), number(2))
            && words[0] == "10.0.0.1"
        {
            assert!(sent.entry(stream).or_default().insert(ssn), "stream {stream}, {ssn}: twice");
        }
        if let (Some(stream), Some(ssn)) = (number(3), number(4))
            && words[0] == "10.0.0.2"
        {
            assert!(ssn as usize <= sent[&stream].len(), "stream {stream} expects {ssn}");
        }
    }
    for stream in 1..=3 {
        let numbers = &sent[&stream];
        assert!(
            numbers.len() > 300 && numbers.iter().copied().eq(0..numbers.len() as u32),
            "stream {stream}: {numbers:?}"
        );
    }
}

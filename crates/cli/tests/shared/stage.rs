//! What the stages of several tests have in common.

use std::process::{Command, Output};

/// What a test needs, and how long it may take.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// Commands of a shell that succeed where the test can run.
    pub(crate) probe: &'static str,
    /// What is said if they do not.
    pub(crate) skipped: &'static str,
    pub(crate) seconds: &'static str,
}

/// Whether this process has namespaces of its own; if not, runs the test in such.
#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
pub(crate) fn is_inside(test: &str, needs: Needs) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let probe = format!("{SET} && {}", needs.probe);
    let can = Command::new("unshare").args(["-n", "-m", "sh", "-c", &probe]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: {}", needs.skipped);
        return false;
    }
    let mut inner = Command::new("timeout");
    inner.args(["-k", "5", needs.seconds, "unshare", "-n", "-m", "--kill-child", "sh", "-c"]);
    inner.args([&format!("{SET} && exec \"$@\""), "sh"]);
    let status =
        inner.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).env(INSIDE, "1").status();
    assert!(status.unwrap().success(), "{test} failed in its namespaces");
    false
}

/// Bytes that differ from each other.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = len as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// All that a program has said.
pub(crate) fn text(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Names of namespaces are the test's own, and so is loopback.
const SET: &str = "mount -t tmpfs tmpfs /run && ip link set lo up";

/// Set for the run inside of the namespaces.
const INSIDE: &str = "ANABRANCH_INSIDE";

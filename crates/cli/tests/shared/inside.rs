//! A test in namespaces of its own.

use std::process::Command;

/// What a test needs, and how long it may take.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// Commands of a shell that succeed where the test can run.
    pub(crate) probe: &'static str,
    /// What is said if they do not.
    pub(crate) skipped: &'static str,
    pub(crate) seconds: &'static str,
}

/// Whether this process has namespaces of its own for the network, `/run` and processes; if not, runs the test in such.
#[expect(clippy::print_stdout, reason = "whoever runs the tests shall know what was not tested")]
pub(crate) fn is_inside(test: &str, needs: Needs) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let script = |command: &str| format!("mount -t tmpfs tmpfs /run && ip link set lo up && {command}");
    let can = Command::new("unshare").args(UNSHARED).args(["sh", "-c", &script(needs.probe)]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: {}", needs.skipped);
        return false;
    }
    let mut inner = Command::new("timeout");
    inner.args(["-k", "5", needs.seconds, "unshare"]).args(UNSHARED).args(["sh", "-c", &script("exec \"$@\""), "sh"]);
    let status =
        inner.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]).env(INSIDE, "1").status();
    assert!(status.unwrap().success(), "{test} failed in its namespaces");
    false
}

/// Names of namespaces are the test's own, and so are loopback and the identifiers of processes.
const UNSHARED: [&str; 3] = ["-mnpf", "--mount-proc", "--kill-child"];

/// Set for the run inside of the namespaces.
const INSIDE: &str = "ANABRANCH_INSIDE";

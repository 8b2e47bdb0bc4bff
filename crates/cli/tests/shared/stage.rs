//! What the stages of several tests have in common.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

#[path = "folder.rs"]
mod place;

pub(crate) use place::folder;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");

/// A new key file.
pub(crate) fn make_key(file: &Path) {
    let made = Command::new(PROGRAM).args(["key", "new"]).arg(file).output().unwrap();
    assert!(made.status.success(), "{}", text(&made));
}

/// Runs this in the namespace of an end, by a thread, and waits for it.
#[track_caller]
pub(crate) fn in_namespace<T: Send + 'static>(end: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let file = fs::File::open(format!("/run/netns/{end}")).unwrap();
    let there = std::thread::spawn(move || {
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).unwrap();
        act()
    });
    there.join().unwrap()
}

/// A process that prints lines of JSON, and is killed at the end.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }
}

impl Drop for Running {
    /// `timeout` passes SIGKILL on to nobody, so what it runs is killed before.
    fn drop(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = fs::read_to_string(children).unwrap_or_default();
        for child in children.split_whitespace() {
            _ = Command::new("kill").args(["-9", child]).status();
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
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

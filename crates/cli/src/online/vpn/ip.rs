//! The command `ip` of iproute2. Its arguments are made here, of checked types, and no shell sees them.

use std::io;
use std::process::{Command, Output};

use crate::failure::{Failure, Outcome};

/// Arguments of `ip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ip(Vec<String>);

impl Ip {
    /// Words for IPv4 or IPv6.
    pub(super) fn of(is_ipv4: bool, words: &str) -> Self {
        let family = if is_ipv4 { "-4" } else { "-6" };
        Self(std::iter::once(family).chain(words.split_ascii_whitespace()).map(str::to_owned).collect())
    }

    /// Words for both.
    pub(super) fn new(words: &str) -> Self {
        Self(words.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Runs the command.
    pub(super) fn run(&self) -> Outcome {
        let output = self.output().map_err(missing)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::failed(format!("`ip {}` failed: {}", self.0.join(" "), said.trim())))
    }

    /// What the command prints; nothing if it fails, as when there is no such table.
    pub(super) fn text(&self) -> String {
        let output = self.output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    fn output(&self) -> io::Result<Output> {
        Command::new("ip").args(&self.0).output()
    }

    #[cfg(test)]
    pub(super) fn line(&self) -> String {
        self.0.join(" ")
    }
}

/// Whether there is the command.
pub(super) fn check() -> Outcome {
    Command::new("ip").arg("-V").output().map(drop).map_err(missing)
}

fn missing(error: io::Error) -> Failure {
    Failure::usage(format!(
        "the command `ip`, which sets addresses and routes, does not run ({error}): install iproute2"
    ))
}

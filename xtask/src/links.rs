//! Emulated links by `anabranch link`, and programs in their namespaces.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::run::{self, say};

/// The scenario with one path, by which several measurements go.
pub(crate) const ONE: &str = "experiments/reality/one-path.toml";

/// Emulated links, which are removed at the end in any case.
pub(crate) struct Links<'a> {
    anabranch: &'a str,
    name: &'a str,
}

impl<'a> Links<'a> {
    /// Creates the links of a scenario with these overrides.
    pub(crate) fn up(anabranch: &'a str, name: &'a str, file: &str, set: &[&str]) -> Result<Self, String> {
        Self::up_with(anabranch, name, file, set, &[])
    }

    /// The same, with more arguments of `anabranch link up`.
    pub(crate) fn up_with(
        anabranch: &'a str,
        name: &'a str,
        file: &str,
        set: &[&str],
        more: &[&str],
    ) -> Result<Self, String> {
        let mut arguments = [&["link", "up", file, "--name", name], more].concat();
        set.iter().for_each(|set| arguments.extend(["--set", *set]));
        let links = Self { anabranch, name };
        // Removes the links of an earlier run; it fails if there are none.
        _ = output(anabranch, &["link", "down", name]);
        output(anabranch, &arguments)?;
        Ok(links)
    }

    /// The counters of the links: `anabranch link status --json`.
    pub(crate) fn status(&self) -> Result<Value, String> {
        json(&output(self.anabranch, &["link", "status", self.name, "--json"])?)
    }

    /// Removes them; an error says if the machine was too slow for them.
    pub(crate) fn down(self) -> Result<(), String> {
        let unread: f64 = unread(&self.status()?);
        if unread > 0.0 {
            say(&format!("  {unread} packets were not read in time: this machine does not carry that"));
        }
        Ok(())
    }
}

impl Drop for Links<'_> {
    fn drop(&mut self) {
        _ = output(self.anabranch, &["link", "down", self.name]);
    }
}

/// Packets dropped by devices, anywhere in the status.
fn unread(status: &Value) -> f64 {
    match status {
        Value::Object(members) => members
            .iter()
            .map(
                |(key, value)| if key == "unread_packets" { value.as_f64().unwrap_or_default() } else { unread(value) },
            )
            .sum(),
        Value::Array(items) => items.iter().map(unread).sum(),
        _ => 0.0,
    }
}

/// A background program, which is stopped at the end.
pub(crate) struct Server {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Result<Self, String> {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(run::root())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, lines })
    }

    pub(crate) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|error| error.to_string())?;
        Ok(line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The output of a program, which must succeed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let line = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(run::root())
        .output()
        .map_err(|error| format!("{}: {error}", line()))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", line(), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text.trim()).map_err(|error| format!("no JSON: {error}: {text}"))
}

//! A program that a proof runs in the background. Every wait for it has a limit.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::links::{json, output};
use crate::run;

/// A program, which is killed at the end if it still runs.
pub(crate) struct Program {
    line: String,
    child: Child,
    stdin: Option<ChildStdin>,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Program {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Result<Self, String> {
        let line = format!("{program} {}", arguments.join(" "));
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(run::root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{line}: {error}"))?;
        let stdin = child.stdin.take();
        let out = lines(child.stdout.take().ok_or("no output")?);
        let err = lines(child.stderr.take().ok_or("no output")?);
        Ok(Self { line, child, stdin, out, err })
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self, within: Duration) -> Result<String, String> {
        self.out.recv_timeout(within).map_err(|_| {
            let complaint = self.complaint();
            format!("{} prints nothing within {} s: {complaint}", self.line, within.as_secs())
        })
    }

    /// The next line of its standard error.
    pub(crate) fn error_line(&mut self, within: Duration) -> Result<String, String> {
        self.err.recv_timeout(within).map_err(|_| format!("{} says nothing within {} s", self.line, within.as_secs()))
    }

    /// The next line, if it has been printed already.
    pub(crate) fn line_there(&self) -> Option<String> {
        self.out.try_recv().ok()
    }

    /// The same as [`Program::line`], as JSON.
    pub(crate) fn json(&mut self, within: Duration) -> Result<Value, String> {
        json(&self.line(within)?)
    }

    /// Its standard error since the last call.
    pub(crate) fn complaint(&mut self) -> String {
        self.err.try_iter().collect::<Vec<_>>().join(" ")
    }

    /// Writes a line to its input.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("it hears nothing more")?;
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).map_err(|error| format!("{}: {error}", self.line))
    }

    /// Ends its input.
    pub(crate) fn tell_end(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, within: Duration) -> Result<ExitStatus, String> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(|error| format!("{}: {error}", self.line))? {
                // Its last output may not have been read yet.
                std::thread::sleep(Duration::from_millis(50));
                return Ok(status);
            }
            if begin.elapsed() > within {
                return Err(format!("{} has not ended after {} s", self.line, within.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for its end, which must be a success.
    pub(crate) fn succeed(&mut self, within: Duration) -> Result<(), String> {
        let status = self.wait(within)?;
        let complaint = self.complaint();
        if status.success() { Ok(()) } else { Err(format!("{}: {status}: {complaint}", self.line)) }
    }

    /// Sends Ctrl-C, and waits for a successful end.
    pub(crate) fn interrupt(&mut self, within: Duration) -> Result<(), String> {
        output("kill", &["-INT", &self.id().to_string()])?;
        self.succeed(within)
    }

    /// Stops it: it does nothing more, as if the computer had lost its power, but is still there.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        output("kill", &["-STOP", &self.id().to_string()]).map(drop)
    }

    /// Sends SIGKILL, as if the computer lost its power.
    pub(crate) fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Its resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.id());
        let told = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>();
        kilobytes.map(|kilobytes| kilobytes << 10).map_err(|error| error.to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The lines of a stream, read by a thread, so that the program never waits for us.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

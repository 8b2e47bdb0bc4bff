//! Runs a program of tests, and ends it when one of its tests takes too long, by name. Cargo starts it as the runner of `cargo xtask test`.
//!
//! Some tests measure time on the machine that runs them, which may pause. One that fails runs once more, alone; that it passed only then is
//! printed. A fault that does not depend on time fails twice.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run;

/// The time that a test may take: most of what all tests together take of processor time, so that a busy machine ends none.
const LIMIT: Duration = Duration::from_secs(180);

/// libtest tells after this time that a test still runs (its `TEST_WARN_TIMEOUT_S`).
const TOLD_AFTER: Duration = Duration::from_secs(60);

/// So many tests of a program run again: more of them do not fail by chance.
const AGAIN_MAX: usize = 3;

/// Cargo's setting that runs each program of tests by this one.
pub(crate) fn setting() -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    Ok(format!("target.'cfg(all())'.runner = [{:?}, \"limit\"]", own.to_string_lossy()))
}

/// Runs a program of tests with its arguments.
///
/// # Errors
/// If a test fails twice, more than [`AGAIN_MAX`] fail, or one takes longer than [`LIMIT`].
pub(crate) fn run(command: &[String]) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("no program of tests is given")?;
    // A quiet libtest prints dots, without names.
    let arguments = arguments.iter().map(String::as_str).filter(|argument| *argument != "--quiet");
    run_twice(program, &arguments.collect::<Vec<_>>())
}

fn run_twice(program: &str, arguments: &[&str]) -> Result<(), String> {
    let (status, failed) = watch(program, arguments, LIMIT)?;
    if status.success() {
        return Ok(());
    }
    if failed.is_empty() || failed.len() > AGAIN_MAX {
        return Err(format!("tests of `{program}` failed: {status}"));
    }
    for name in &failed {
        let alone = [arguments, &["--exact", name]].concat();
        if !watch(program, &alone, LIMIT)?.0.success() {
            return Err(format!("`{name}` of `{program}` failed twice"));
        }
        run::say(&format!("warning: `{name}` of `{program}` passed only when it ran again, alone"));
    }
    Ok(())
}

/// Runs a program of tests to its end; returns how it ended, and the tests that failed.
fn watch(program: &str, arguments: &[&str], limit: Duration) -> Result<(ExitStatus, Vec<String>), String> {
    let failed = |error| format!("cannot run `{program}`: {error}");
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let (lines, received) = mpsc::channel();
    thread::spawn(move || output.split(b'\n').map_while(Result::ok).all(|line| lines.send(line).is_ok()));
    let mut running = Running::new(program, Instant::now(), limit);
    loop {
        let wait = running.deadline().map_or(limit, |at| at.saturating_duration_since(Instant::now()));
        match received.recv_timeout(wait) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                if running.read(&line, Instant::now()) {
                    run::say(&line);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(name) = running.overdue(Instant::now()) {
                    child.kill().map_err(failed)?;
                    child.wait().map_err(failed)?;
                    return Err(format!("`{name}` takes longer than {} s and was ended", limit.as_secs_f64()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(failed)?;
    Ok((status, running.failed))
}

/// The tests that run for long, by what libtest prints.
struct Running {
    /// Names, and when each must have ended. The first is the program, until it has begun to run tests; if it has but one, until that ends.
    late: Vec<(String, Instant)>,
    failed: Vec<String>,
    limit: Duration,
}

impl Running {
    fn new(program: &str, now: Instant, limit: Duration) -> Self {
        let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
        Self { late: vec![(name.into_owned(), now + limit)], failed: Vec::new(), limit }
    }

    /// Reads a line. Returns whether it is worth printing: a test that passes is not.
    fn read(&mut self, line: &str, now: Instant) -> bool {
        if line.starts_with("running ") && line != "running 1 test" {
            self.late.clear();
        }
        let Some(test) = line.strip_prefix("test ") else { return !line.is_empty() };
        if let Some((name, _)) = test.split_once(" has been running for over ") {
            self.late.push((name.to_owned(), now + self.limit.saturating_sub(TOLD_AFTER)));
            return false;
        }
        let Some((test, result)) = test.rsplit_once(" ... ") else { return true };
        // A test that must panic has that behind its name.
        let test = test.split_once(" - ").map_or(test, |(name, _)| name);
        self.late.retain(|(name, _)| name != test);
        if result == "FAILED" {
            self.failed.push(test.to_owned());
        }
        result != "ok"
    }

    /// When the next test must have ended.
    fn deadline(&self) -> Option<Instant> {
        self.late.iter().map(|(_, until)| *until).min()
    }

    /// A test that should have ended.
    fn overdue(&self, now: Instant) -> Option<&str> {
        self.late.iter().find(|(_, until)| *until <= now).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libtest tells of `a` and `b` after a minute; two more later `b` alone has not ended.
    #[test]
    fn test_that_does_not_end_is_overdue_after_three_minutes() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut running = Running::new("target/debug/deps/tests-1", begin, LIMIT);
        running.read("running 3 tests", begin);
        running.read("test a has been running for over 60 seconds", after(60));
        running.read("test b has been running for over 60 seconds", after(61));
        assert!(
            running.read("test c ... FAILED", after(70)) && !running.read("test a - should panic ... ok", after(170))
        );
        assert_eq!((running.deadline(), running.overdue(after(180))), (Some(after(181)), None));
        assert_eq!(running.overdue(after(181)), Some("b"));
    }

    /// A name that begins with another one is another test's.
    #[test]
    fn test_with_a_longer_name_is_another_one() {
        let begin = Instant::now();
        let mut running = Running::new("tests-1", begin, LIMIT);
        running.read("running 2 tests", begin);
        running.read("test part::a has been running for over 60 seconds", begin);
        running.read("test part::a_b ... ok", begin);
        assert_eq!(running.overdue(begin + LIMIT), Some("part::a"));
    }

    #[test]
    fn program_that_hangs_is_ended_by_name() {
        let script = "echo running 1 test; echo test a has been running for over 60 seconds; exec sleep 100";
        let begin = Instant::now();
        let error = watch("sh", &["-c", script], Duration::from_millis(60_200)).unwrap_err();
        assert_eq!(error, "`a` takes longer than 60.2 s and was ended");
        assert!(begin.elapsed() < Duration::from_secs(50));
        let error = watch("sh", &["-c", "exec sleep 100"], Duration::from_millis(100)).unwrap_err();
        assert_eq!(error, "`sh` takes longer than 0.1 s and was ended");
    }

    #[test]
    fn program_fails_as_its_tests_do() {
        assert_eq!(run_twice("sh", &["-c", "echo running 1 test; echo test a ... ok"]), Ok(()));
        assert!(run_twice("sh", &["-c", "exit 101"]).unwrap_err().contains("101"));
    }

    /// The first run has no names behind the script; `$2` of the second is the test that failed.
    #[test]
    fn test_that_fails_runs_once_more_alone() {
        let first = "[ $# = 0 ] && { echo running 9 tests; echo test a - should panic ... FAILED; exit 101; };";
        let passes = format!("{first} [ \"$1 $2 $#\" = '--exact a 2' ]");
        assert_eq!(run_twice("sh", &["-c", &passes, "sh"]), Ok(()));
        let error = run_twice("sh", &["-c", &format!("{first} exit 101"), "sh"]).unwrap_err();
        assert_eq!(error, "`a` of `sh` failed twice");
    }

    #[test]
    fn many_tests_that_fail_do_not_run_again() {
        let four = "[ $# = 0 ] && { for test in a b c d; do echo test $test ... FAILED; done; exit 101; }; exit 0";
        assert!(run_twice("sh", &["-c", four, "sh"]).unwrap_err().contains("101"));
    }
}

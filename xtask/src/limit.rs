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

/// The exit code of libtest when all tests have run and some have failed.
const TESTS_FAILED: i32 = 101;

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
    let first = watch(program, arguments, LIMIT)?;
    if first.status.success() {
        return Ok(());
    }
    // A program that was ended by a signal has not run all of its tests.
    if first.status.code() != Some(TESTS_FAILED) || !(1..=AGAIN_MAX).contains(&first.failed.len()) {
        return Err(format!("tests of `{program}` failed: {}", first.status));
    }
    for name in &first.failed {
        let alone = watch(program, &[arguments, &["--exact", name]].concat(), LIMIT)?;
        if !alone.status.success() || alone.passed != 1 {
            return Err(format!("`{name}` of `{program}` failed twice"));
        }
        run::say(&format!("warning: `{name}` of `{program}` passed only when it ran again, alone"));
    }
    Ok(())
}

/// How a program of tests ended.
#[derive(Debug)]
struct Outcome {
    status: ExitStatus,
    passed: usize,
    /// The tests that failed, by name.
    failed: Vec<String>,
}

/// Runs a program of tests to its end.
fn watch(program: &str, arguments: &[&str], limit: Duration) -> Result<Outcome, String> {
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
    Ok(Outcome { status, passed: running.passed, failed: running.failed })
}

/// The tests that run for long, by what libtest prints.
struct Running {
    /// When the program must have begun to run its tests; if it has but one, when that must have ended, until libtest tells that it runs.
    program: Option<(String, Instant)>,
    /// Names of tests, and when each must have ended.
    late: Vec<(String, Instant)>,
    passed: usize,
    failed: Vec<String>,
    limit: Duration,
}

impl Running {
    fn new(program: &str, now: Instant, limit: Duration) -> Self {
        let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
        Self { program: Some((name.into_owned(), now + limit)), late: Vec::new(), passed: 0, failed: Vec::new(), limit }
    }

    /// Reads a line. Returns whether it is worth printing: a test that passes is not.
    fn read(&mut self, line: &str, now: Instant) -> bool {
        if line.starts_with("running ") && line != "running 1 test" {
            self.program = None;
        }
        let Some(test) = line.strip_prefix("test ") else { return !line.is_empty() };
        if let Some((name, _)) = test.split_once(" has been running for over ") {
            self.program = None;
            self.late.push((name.to_owned(), now + self.limit.saturating_sub(TOLD_AFTER)));
            return false;
        }
        let Some((test, result)) = test.rsplit_once(" ... ") else { return true };
        // A test that must panic has that behind its name.
        let test = test.split_once(" - ").map_or(test, |(name, _)| name);
        self.late.retain(|(name, _)| name != test);
        match result {
            "ok" => self.passed += 1,
            "FAILED" => self.failed.push(test.to_owned()),
            _ => {}
        }
        result != "ok"
    }

    /// When the next test must have ended.
    fn deadline(&self) -> Option<Instant> {
        self.program.iter().chain(&self.late).map(|(_, until)| *until).min()
    }

    /// A test that should have ended.
    fn overdue(&self, now: Instant) -> Option<&str> {
        self.program.iter().chain(&self.late).find(|(_, until)| *until <= now).map(|(name, _)| name.as_str())
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

    /// Runs a script in place of a program of tests: `first` without arguments, `second` with those of one test.
    fn scripted(first: &str, second: &str) -> Result<(), String> {
        let script = format!("if [ $# = 0 ]; then {first}; fi; [ \"$*\" = '--exact a' ] || exit 2; {second}");
        run_twice("sh", &["-c", &script, "sh"])
    }

    const FAILS: &str = "echo running 9 tests; echo test a - should panic ... FAILED; exit 101";

    #[test]
    fn test_that_fails_runs_once_more_alone() {
        assert_eq!(scripted(FAILS, "echo running 1 test; echo test a - should panic ... ok"), Ok(()));
        let error =
            scripted(FAILS, "echo running 1 test; echo test a - should panic ... FAILED; exit 101").unwrap_err();
        assert_eq!(error, "`a` of `sh` failed twice");
        let error = scripted(FAILS, "echo running 0 tests").unwrap_err();
        assert_eq!(error, "`a` of `sh` failed twice", "it did not run");
    }

    /// Four are too many; a signal ends the program before all have run.
    #[test]
    fn other_failures_do_not_run_again() {
        let passes = "echo running 1 test; echo test a ... ok";
        let four = "for test in a b c d; do echo test $test ... FAILED; done; exit 101";
        assert!(scripted(four, passes).unwrap_err().contains("101"));
        let killed = "echo test a ... FAILED; kill -ABRT $$";
        assert!(scripted(killed, passes).unwrap_err().contains("signal: 6"));
    }

    /// The only test of a program is named once libtest has told that it runs.
    #[test]
    fn only_test_of_a_program_is_overdue_by_its_name() {
        let begin = Instant::now();
        let mut running = Running::new("target/debug/deps/tests-1", begin, LIMIT);
        running.read("running 1 test", begin);
        assert_eq!(running.overdue(begin + LIMIT), Some("tests-1"));
        let told = begin + TOLD_AFTER;
        running.read("test a has been running for over 60 seconds", told);
        assert_eq!(running.overdue(begin + LIMIT), Some("a"));
    }
}

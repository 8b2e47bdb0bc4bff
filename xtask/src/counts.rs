//! `cargo xtask counts`: counts the instructions of the benchmarks, a measure of speed that the machine's load does not change.

use std::fs;
use std::process::Command;

use crate::run;

/// The counted programs, with arguments that shorten them to some seconds under callgrind. The counts hold for exactly these commands.
const MEASURED: &[(&str, Program, &[&str])] = &[
    (
        "highspeed",
        Program::Anabranch,
        &["sim", "run", "experiments/speed/highspeed.toml", "--json", "--set", "duration=5s"],
    ),
    ("small", Program::Anabranch, &["sim", "run", "experiments/speed/small.toml", "--json"]),
    (
        "background with the clock of ns-2",
        Program::Anabranch,
        &["sim", "run", "experiments/speed/background.toml", "--json"],
    ),
    ("fifty flows of the transport", Program::Anabranch, &["sim", "run", "experiments/speed/fifty.toml", "--json"]),
    ("engine, 1 stream", Program::Engine, &["1", "200000"]),
    ("engine, 200 streams", Program::Engine, &["200", "200000"]),
    ("engine, 200 streams, 2 paths", Program::Engine, &["200", "200000", "2"]),
    // With the ACK policy of the library.
    ("engine, 1 stream, an ACK for two", Program::Engine, &["1", "200000", "1", "0", "2"]),
    ("engine, 1 stream, an ACK for 32", Program::Engine, &["1", "200000", "1", "0", "32"]),
    ("engine, 200 streams, 0.1 % lost", Program::Engine, &["200", "200000", "1", "1000"]),
    ("sealed, 1 stream, an ACK for two", Program::Sealed, &["aes-128-gcm", "1", "200", "2"]),
    ("sealed with AEGIS-128L, an ACK for two", Program::Sealed, &["aegis-128l", "1", "200", "2"]),
    ("a hundred handshakes", Program::Handshakes, &["100"]),
];

/// The program to run.
#[derive(Clone, Copy)]
enum Program {
    /// The command.
    Anabranch,
    /// Two engines of the transport back to back: an example of `anabranch-proto`.
    Engine,
    /// Two endpoints back to back, with real bytes in sealed datagrams: another example of it.
    Sealed,
    /// Handshakes of two ends: a third example of it.
    Handshakes,
}

/// The examples of `anabranch-proto`.
const ENGINE: &str = "back_to_back";
const SEALED: &str = "sealed_back_to_back";
const HANDSHAKES: &str = "handshakes";

/// The recorded counts.
const COUNTS: &str = "xtask/counts.toml";

/// The allowed difference from the recorded count, in percent. Inlining differs a little between builds.
const MARGIN_PERCENT: f64 = 5.0;

pub(crate) fn run(write: bool) -> Result<(), String> {
    if !run::is_installed("valgrind") {
        return Err("valgrind is missing: type `apt-get install valgrind`".to_owned());
    }
    run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
    let examples = ["--package", "anabranch-proto", "--example", ENGINE, "--example", SEALED, "--example", HANDSHAKES];
    run::run("cargo", &[&["build", "--release", "--locked", "--quiet"], &examples[..]].concat(), &[])?;
    let path = run::root().join(COUNTS);
    let mut text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut problems = vec![];
    for (name, program, arguments) in MEASURED {
        let count = instructions(*program, arguments)?;
        let recorded = row(&text, name).ok_or_else(|| format!("{COUNTS} has no line of `{name}`"))?;
        let (line, before) = recorded;
        let drift = (count as f64 / before as f64 - 1.0) * 100.0;
        run::say(&format!("{name}: {count} instructions, {before} recorded, {drift:+.2} %"));
        if write {
            text = text.replacen(&line, &format!("\"{name}\" = {count}"), 1);
        } else if drift.abs() > MARGIN_PERCENT {
            problems.push(format!(
                "{name} takes {count} instructions, {drift:+.1} % of the {before} in {COUNTS}; find the reason, then \
                 run `cargo xtask counts --write` and tell it in the commit"
            ));
        }
    }
    if write {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn instructions(program: Program, arguments: &[&str]) -> Result<u64, String> {
    let program = match program {
        Program::Anabranch => run::anabranch()?,
        Program::Engine => run::example(ENGINE)?,
        Program::Sealed => run::example(SEALED)?,
        Program::Handshakes => run::example(HANDSHAKES)?,
    };
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &program])
        .args(arguments)
        .current_dir(run::root())
        .output()
        .map_err(|error| format!("cannot start valgrind: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let collected = log.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    match collected.and_then(|count| count.parse().ok()) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("callgrind of `{program} {}` failed:\n{log}", arguments.join(" "))),
    }
}

/// The line that records `name`, and the count in it.
fn row(text: &str, name: &str) -> Option<(String, u64)> {
    let start = format!("\"{name}\" = ");
    let line = text.lines().find(|line| line.starts_with(&start))?;
    Some((line.to_owned(), line.strip_prefix(&start)?.parse().ok()?))
}

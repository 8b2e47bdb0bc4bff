//! `cargo xtask oracle`: runs random small topologies in ns-2 and here and compares every packet.

mod case;
mod sctp;
mod trace;
mod world;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_sim::{BuildError, Substreams};
use clap::Args;

use crate::run;
use case::{AGENTS, Case, Clock};
use trace::Trace;

/// The cases to compare.
#[derive(Args)]
pub(crate) struct Options {
    /// Cases per agent.
    #[arg(long, default_value_t = 50)]
    cases: u64,
    /// Seed of the first case; the clock's if absent. It is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Only this agent.
    #[arg(long, value_parser = agent_names())]
    agent: Option<String>,
    /// Make an error on our side, to see that a difference is found: the bottleneck's queue is one packet longer.
    #[arg(long, hide = true)]
    sabotage: bool,
}

impl Options {
    /// The cases of the test command: ten for each agent, always the same.
    pub(crate) fn quick() -> Self {
        Self { cases: 10, seed: Some(1), agent: None, sabotage: false }
    }
}

fn agent_names() -> clap::builder::PossibleValuesParser {
    agents().collect::<Vec<_>>().into()
}

/// The names of all agents that must agree with ns-2.
fn agents() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().map(|(name, _)| *name).chain(sctp::AGENTS)
}

/// A case of either family.
enum Drawn {
    Tcp(Case),
    Sctp(sctp::Case),
}

impl Drawn {
    fn new(agent: &'static str, seed: u64) -> Self {
        let mut random = Substreams::new(seed).stream(&format!("oracle.{agent}"));
        if sctp::AGENTS.contains(&agent) {
            return Self::Sctp(sctp::Case::draw(agent, &mut random));
        }
        let clock = if seed.is_multiple_of(2) { Clock::Lattice } else { Clock::Floats };
        Self::Tcp(Case::draw(agent, clock, &mut random))
    }

    fn clock(&self) -> Clock {
        match self {
            Self::Tcp(case) => case.clock,
            // Its timeouts are sums of measured times, so they are on no lattice.
            Self::Sctp(_) => Clock::Floats,
        }
    }

    fn script(&self, trace: &str) -> String {
        match self {
            Self::Tcp(case) => case.script(trace),
            Self::Sctp(case) => case.script(trace),
        }
    }

    fn run(&self, sabotage: bool) -> Result<Trace, BuildError> {
        match self {
            Self::Tcp(case) => world::run(case, sabotage),
            Self::Sctp(case) => sctp::run(case, sabotage),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    if !run::is_installed("ns") {
        return Err("ns-2 is missing: the command `ns` of Debian's package `ns2` is what this compares with".to_owned());
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let first = options.seed.unwrap_or_else(clock);
    run::say(&format!("oracle: {} cases per agent, seeds from {first}", options.cases));
    let folder = run::target()?.join("oracle");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut problems = vec![];
    for agent in agents().filter(|name| options.agent.as_deref().is_none_or(|agent| agent == *name)) {
        let (mut exact, mut events) = (0, 0);
        for seed in first..first + options.cases {
            match compare(&Drawn::new(agent, seed), &format!("{agent}-{seed}"), &folder, options.sabotage)? {
                Ok(count) => {
                    exact += 1;
                    events += count;
                }
                Err(difference) => problems.push(format!("{agent}, seed {seed}: {difference}")),
            }
        }
        run::say(&format!("{agent}: {exact} of {} exact, {events} events at links", options.cases));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("{}\nthe scripts and traces of these cases are in {}", problems.join("\n"), folder.display()))
    }
}

/// Runs one case on both sides. The inner result is the number of equal events, or the first difference.
fn compare(case: &Drawn, stem: &str, folder: &Path, sabotage: bool) -> Result<Result<usize, String>, String> {
    let (script, output) = (folder.join(format!("{stem}.tcl")), folder.join(format!("{stem}.tr")));
    let fail = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::write(&script, case.script(&output.to_string_lossy())).map_err(|error| fail(&script, error))?;
    // With an error in a script, or one in ns-2, it may write a trace for ever at one time.
    let guarded = format!("ulimit -f {TRACE_BLOCKS_MAX} && exec timeout {SECONDS_MAX} ns \"$0\"");
    let ns = Command::new("sh").arg("-c").arg(guarded).arg(&script).output();
    let ns = ns.map_err(|error| format!("cannot start `ns`: {error}"))?;
    if !ns.status.success() {
        return Err(format!("ns-2 failed on {}: {}", script.display(), String::from_utf8_lossy(&ns.stderr)));
    }
    let text = fs::read_to_string(&output).map_err(|error| fail(&output, error))?;
    let theirs = trace::parse(&text, case.clock()).map_err(|problem| format!("{}: {problem}", output.display()))?;
    let ours = case.run(sabotage).map_err(|error| format!("{stem}: {error}"))?;
    if let Some(difference) = trace::first_difference(&theirs, &ours, case.clock()) {
        return Ok(Err(difference));
    }
    for path in [&script, &output] {
        fs::remove_file(path).map_err(|error| fail(path, error))?;
    }
    Ok(Ok(theirs.values().map(Vec::len).sum()))
}

/// The limit of a trace in blocks of 512 bytes: some hundred times the need of a case.
const TRACE_BLOCKS_MAX: u32 = 2_000_000;
/// The limit of ns-2's run time in seconds: a case needs less than one.
const SECONDS_MAX: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// A difference makes the comparison fail.
    #[test]
    fn a_changed_packet_is_found() {
        let line = "+ 1.5 0 1 tcp 1040 ------- 0 0.0 2.0 7 9\n";
        let parse = |text: &str| trace::parse(text, Clock::Lattice).expect("the line is of ns-2's form");
        let theirs = parse(line);
        assert_eq!(trace::first_difference(&theirs, &parse(line), Clock::Lattice), None);
        for changed in [line.replace("1.5", "1.50002"), line.replace(" 7 ", " 8 "), line.replace("tcp", "ack")] {
            assert!(trace::first_difference(&theirs, &parse(&changed), Clock::Lattice).is_some(), "{changed}");
        }
        assert!(trace::first_difference(&theirs, &Trace::new(), Clock::Lattice).is_some());
    }
}

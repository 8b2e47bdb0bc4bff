//! What can be typed.

pub(crate) mod link;
pub(crate) mod network;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_lab::sweep::Shard;
use clap::{Args, Parser, Subcommand};

/// One transport, and the laboratory that proves it.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 good, 1 failed, 2 usage or bad input, 3 a claim or an --assert missed.")]
pub(crate) struct Anabranch {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the experiments of all papers, or of some, and hold them against what is published.
    Reproduce(Reproduce),
    /// Simulate scenarios.
    #[command(subcommand)]
    Sim(Sim),
    /// Bundle experiments and their outcome in one file, for others to check.
    #[command(subcommand)]
    Artifact(Artifact),
    /// Congestion laws: what there is and what can be set.
    #[command(subcommand)]
    Cc(Cc),
    /// Send files and folders to who has made this ticket. Send again after an interruption: it goes on where it stopped.
    Send(network::Send),
    /// Receive files and folders: print a ticket for the sender, and wait.
    Recv(network::Recv),
    /// Measure a network with the transport: rate, RTT, window, losses.
    Bench(network::Bench),
    /// Forward TCP ports, as `ssh -L`, `-R` and `-D` do: each TCP connection is a stream that waits for no other.
    Tunnel(network::Tunnel),
    /// Watch a transfer, a measurement or a tunnel that runs: rate, RTT, window, queue of each path, and what limits it.
    Watch(network::Watch),
    /// Look at what this machine can do for the transport and the emulator, and say what to do about what it cannot.
    Doctor(Doctor),
    /// Emulate the links of a scenario between network namespaces of this machine, for real programs (Linux, root).
    #[command(subcommand)]
    Link(link::Link),
    /// Keys: make one, show whose name it proves.
    #[command(subcommand)]
    Key(network::Key),
    /// Write what is made from this program: completions, man pages, the reference of scenario files.
    #[command(subcommand)]
    Generate(Generate),
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// How to print the outcome.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
    /// Print one JSON document: --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print every table with its numbers, reasons and remarks, and not a screen a paper.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Write the report (report.html) and the outcome (outcome.json, outcome.csv, outcome.md) into this folder. Without it,
    /// the text format writes reproduction/report.html, and the others write nothing.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Which experiments are run, and how.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Keys of papers, such as ctcp-2019; all if there is none.
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Seeds of each variant with chance in it, instead of the experiments' own number. With fewer than ten,
    /// intervals are so wide that hardly anything is missed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    #[command(flatten)]
    pub(crate) experiments: Experiments,
}

/// How an outcome is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Tables for a terminal.
    Text,
    /// Tables for a page.
    Markdown,
    /// One document with everything in it.
    Json,
    /// One row a claim.
    Csv,
}

impl Reproduce {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Runs at once; one a core if absent.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    pub(crate) fn count(&self) -> NonZeroUsize {
        self.jobs.unwrap_or_else(anabranch_lab::parallel::jobs_default)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Experiments {
    /// The folder that holds the experiments, one folder a paper.
    #[arg(long = "experiments", value_name = "DIR", default_value = "experiments")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Artifact {
    /// Run experiments, and pack them with their seeds, their outcome and a SHA-256 of everything.
    Pack(Pack),
    /// Run the experiments of an artifact again, draw every file from what comes out, and compare byte by byte.
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The file to write.
    #[arg(value_name = "OUT.zip")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The artifact.
    #[arg(value_name = "FILE.zip")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Run one scenario and tell what was measured.
    Run(Run),
    /// Run every combination of a scenario's axes with several seeds; write mean, sd and 95 % interval of everything as CSV.
    Sweep(Sweep),
    /// Run our transport over random networks with random faults, and check that nothing is lost, doubled or stuck.
    Swarm(Swarm),
    /// Measure the simulator itself on experiments/bench.
    Bench(Bench),
}

#[derive(Debug, Args)]
pub(crate) struct Overrides {
    /// Override a key: flow.f0.cc.alpha=5. Elements of a list are named by their id, or counted from 0.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of every random number; the scenario's if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) seed: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a table of each flow (flow.ID.csv) and link (link.ID.csv) into this folder, a row at each change.
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Write every packet that enters a link into this file (pcap-ng, headers only), for Wireshark or tcpdump.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Exit with code 3 unless this holds: "flow.f0.dropped_packets == 0".
    #[arg(long = "assert", value_name = "EXPRESSION")]
    pub(crate) asserts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// The scenario, with its axes.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Seeds of each point, counted up from the scenario's.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: u32,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Run one of several equal parts of the grid: 1/3 is the first of three.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,
    /// Write the table into this file instead of printing it.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Swarm {
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many seeds, counted up from the first.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) seeds: u32,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Write the scenario of each seed that fails into this folder (swarm-SEED.toml), to be run by itself.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) experiments: Experiments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cc {
    /// List all laws.
    List {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Show one law and its parameters.
    Show {
        /// The law.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages, one a command.
    Man {
        /// Where to.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write scenario.md, measures.md and scenario.schema.json.
    Reference {
        /// Where to.
        #[arg(value_name = "DIR", default_value = "docs/reference")]
        folder: PathBuf,
        /// Write nothing; exit with code 1 if what is there is out of date.
        #[arg(long)]
        check: bool,
    },
}

//! Command-line arguments.

pub(crate) mod kernel;
pub(crate) mod link;
pub(crate) mod online;
mod rate;
pub(crate) mod relay;
pub(crate) mod tcp;
pub(crate) mod ticket;
pub(crate) mod transfer;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_lab::sweep::Shard;
use anabranch_units::Span;
use clap::{Args, Parser, Subcommand};

/// A transport protocol over UDP, and the laboratory that tests it.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage or input, 3 a claim, a criterion or an --assert does not hold."
)]
pub(crate) struct Anabranch {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the papers' experiments, all or some, and compare with the published numbers.
    Reproduce(Reproduce),
    /// Evaluate a congestion law by the criteria of RFC 9743: alone, beside other laws, and on difficult paths.
    Eval(Eval),
    /// Simulate scenarios.
    #[command(subcommand)]
    Sim(Sim),
    /// Run scenarios, and compare their numbers, distributions and curves in one report.
    Compare(Compare),
    /// Open the simulator in a browser: a page with sliders, live curves, moving packets, and a guided tour for each paper.
    Playground(Playground),
    /// Pack experiments and their outcome into one file, for others to verify.
    #[command(subcommand)]
    Artifact(Artifact),
    /// List congestion laws and their settings.
    #[command(subcommand)]
    Cc(Cc),
    /// Send files and folders, the standard input or a text to the receiver that printed this ticket, or to several at once. After an interruption the
    /// same command resumes.
    Send(Box<transfer::Send>),
    /// Receive files and folders: print a ticket for the sender, and wait; or come to a sender that waits, with its code or ticket.
    Recv(Box<transfer::Recv>),
    /// Measure a network path: rate, RTT, window, losses.
    Bench(Box<online::Bench>),
    /// Serve a relay, through which ends behind NATs reach each other.
    #[command(subcommand)]
    Relay(relay::Relay),
    /// Forward TCP ports, as `ssh -L`, `-R` and `-D` do. Each TCP connection is an independent stream.
    Tunnel(Box<online::Tunnel>),
    /// Watch a running transfer, measurement or tunnel: rate, RTT, window, queue and limit of each path.
    Watch(online::Watch),
    /// Test which features this machine has for the transport and the emulator, and print remedies.
    Doctor(Doctor),
    /// Emulate the links of a scenario between network namespaces of this machine, for real programs (Linux; root, or `link sandbox`).
    #[command(subcommand)]
    Link(link::Link),
    /// Load congestion laws into the kernel, for the TCP connections of any program (Linux 6.4, root).
    #[command(subcommand)]
    Kernel(kernel::Kernel),
    /// Speak TCP with any peer by our own TCP instead of the kernel's, over a TUN device (Linux, root).
    #[command(subcommand)]
    Tcp(tcp::Tcp),
    /// Create a key, or show its public key.
    #[command(subcommand)]
    Key(online::Key),
    /// Generate completions, man pages, or the reference of scenario files.
    #[command(subcommand)]
    Generate(Generate),
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// The format of the outcome.
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
    /// Print one JSON document; the same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print every table with its numbers, reasons and remarks, instead of a summary of each paper.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Write the report (report.html) and the outcome (outcome.json, outcome.csv, outcome.md) into this folder. By default the text
    /// format writes reproduction/report.html, and the other formats write nothing.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The selection of experiments.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Keys of papers, such as ctcp-2019, or of what is checked besides, such as law; the default is all papers.
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Also what is checked besides the papers: rivals, the default law, derivations, real links.
    #[arg(long, conflicts_with = "keys")]
    pub(crate) all: bool,
    /// Seeds of each variant that involves chance; the default is each experiment's own number. With fewer than ten, intervals are
    /// so wide that few claims can fail.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    #[command(flatten)]
    pub(crate) experiments: Experiments,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The law under test: any of `anabranch cc list`, with settings of `anabranch cc show` behind commas; or the file of a WASM module, which has
    /// settings of its own.
    #[arg(long, value_name = "NAME[,KEY=VALUE]...")]
    pub(crate) cc: String,
    /// The rival laws, separated by commas, each with its settings behind it; cubic, bbr and reno if absent.
    #[arg(long, value_name = "NAME[,KEY=VALUE]...[,NAME...]")]
    pub(crate) against: Option<Vec<String>>,
    /// Run a part of the suite, each scenario once: enough to find gross errors.
    #[arg(long, conflicts_with = "field")]
    pub(crate) quick: bool,
    /// Run the law and the rivals on random networks, drawn from a seed, in place of the suite: quantiles of each family, and the worst draws.
    #[arg(long)]
    pub(crate) field: bool,
    /// Search, in the ranges of --field, for the networks on which the law does worst: random ones, and then what is near the worst. Ctrl-C ends the
    /// search with the worst so far.
    #[arg(long, conflicts_with_all = ["field", "quick", "seeds"])]
    pub(crate) attack: bool,
    /// What the law is to do worst by, separated by commas; all if absent: use, delay, share, starvation. Only with --attack.
    #[arg(long, value_name = "AIM[,AIM...]", requires = "attack", value_delimiter = ',')]
    pub(crate) by: Option<Vec<String>>,
    /// Networks to try for each aim; 200 if absent. The same number finds the same. Only with --attack.
    #[arg(long, value_name = "N", requires = "attack", value_parser = clap::value_parser!(u32).range(1..=i64::from(anabranch_lab::field::attack::STEPS_MAX)))]
    pub(crate) steps: Option<u32>,
    /// How long to search, over all aims, such as 60s, in place of a number of networks. Only with --attack.
    #[arg(long = "for", value_name = "SPAN", requires = "attack", conflicts_with = "steps")]
    pub(crate) long: Option<Span>,
    /// Random networks of each family; 20 if absent. Only with --field.
    #[arg(long, value_name = "N", requires = "field", value_parser = clap::value_parser!(u32).range(1..=i64::from(anabranch_lab::field::DRAWS_MAX)))]
    pub(crate) draws: Option<u32>,
    /// The seed of the random networks; 1 if absent. Only with --field or --attack.
    #[arg(long, value_name = "S", conflicts_with = "quick")]
    pub(crate) seed: Option<u64>,
    /// Families of networks, separated by commas; all if absent: alone, kind, beside, short, route, radio, policer, host, silence. Only with --field or --attack.
    #[arg(long, value_name = "NAME[,NAME...]", conflicts_with = "quick", value_delimiter = ',')]
    pub(crate) family: Option<Vec<String>>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report (report.html), the evaluation (evaluation.json), its claims (claims.csv) and the scenarios (experiments/eval) into
    /// this folder.
    /// Without it, evaluation/report.html is written, and nothing with --json.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seeds of each variant that involves chance, instead of the suite's own number.
    #[arg(long, conflicts_with = "field", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// The format of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Tables for a terminal.
    Text,
    /// Tables for a page.
    Markdown,
    /// One complete document.
    Json,
    /// One row for each claim.
    Csv,
}

impl Reproduce {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Runs in parallel; the default is the number of cores.
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
    /// The folder of experiments, with a folder for each paper.
    #[arg(long = "experiments", value_name = "DIR", default_value = "experiments")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Playground {
    /// The port on which this computer serves the page to itself; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Write the page into this file instead. It needs neither a server nor a network.
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Artifact {
    /// Run experiments, and pack them with their seeds, their outcome and SHA-256 hashes.
    Pack(Pack),
    /// Run the experiments of an artifact again, and compare every file byte by byte.
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The artifact to write.
    #[arg(value_name = "OUT.zip")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The artifact to verify.
    #[arg(value_name = "FILE.zip")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Run one scenario and print its measurements.
    Run(Run),
    /// Run every combination of a scenario's axes with several seeds; write mean, sd and 95 % interval of each measure as CSV.
    Sweep(Sweep),
    /// Join the rows that shards of a sweep have kept to what a sweep of the whole grid gives. Nothing is run.
    Merge(Merge),
    /// Run the transport over random networks with random faults, and check that no data is lost, duplicated or stuck.
    Swarm(Swarm),
    /// Measure the simulator's speed on experiments/speed.
    Bench(SimBench),
}

#[derive(Debug, Args)]
pub(crate) struct Overrides {
    /// Override a key, such as flow.f0.cc.alpha=5. Elements of a list are addressed by id, or by position from 0.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The seed of all random numbers; the default is the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) seed: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a table for each flow (flow.ID.csv) and link (link.ID.csv) into this folder, with a row for each change.
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Write every packet that enters a link into this file (pcap-ng, headers only), for Wireshark or tcpdump.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write a report with the network, all numbers, windows, RTTs, queues and goodputs over time and their distributions (HTML).
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with code 3 unless this holds, such as "flow.f0.dropped_packets == 0".
    #[arg(long = "assert", value_name = "EXPRESSION")]
    pub(crate) asserts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// The scenario file, with its axes.
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
    #[command(flatten)]
    pub(crate) outputs: SweepOutputs,
    /// Keep the numbers of each run in this file (CSV), and run only what is missing there. So a stopped sweep can be resumed, and
    /// shards can use one file, one after the other. Runs of another version of the simulator are not used.
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepOutputs {
    /// Write the table into this file instead of printing it.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a report with a small picture for each measure, or for each gauge that changes (HTML).
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The scenario file that was swept.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What the shards have kept (`sim sweep --rows`), one file each or several in one.
    #[arg(value_name = "ROWS", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// Seeds of each point, as the shards were given.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: u32,
    #[command(flatten)]
    pub(crate) outputs: SweepOutputs,
    /// Write the numbers of all runs into this file (CSV), as a sweep of the whole grid keeps them.
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The scenarios, two to four of them.
    #[arg(value_name = "FILE", num_args = 2..=4, required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// The file of the report (HTML).
    #[arg(long, value_name = "FILE", default_value = "comparison.html")]
    pub(crate) report: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Swarm {
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The number of seeds, counted up from the first.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) seeds: u32,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Write the scenario of each failing seed into this folder (swarm-SEED.toml), to be run alone.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimBench {
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
    /// Show one law and its settings.
    Show {
        /// The name of the law.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Write a small project for a controller of your own.
    New(CcNew),
    /// Hold a controller of your own to what every law must do.
    Check(CcCheck),
}

#[derive(Debug, Args)]
pub(crate) struct CcNew {
    /// The folder to write; its last part is the name of the controller.
    #[arg(value_name = "NAME")]
    pub(crate) name: PathBuf,
    /// The language to write it in.
    #[arg(long, value_enum, default_value_t = LanguageArg::Rust)]
    pub(crate) language: LanguageArg,
}

/// The language of a controller.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LanguageArg {
    /// A WASM module in Rust; needs cargo and rustup.
    Rust,
    /// A WASM module in C; needs clang, lld and make.
    C,
    /// A class for the Python module.
    Python,
}

#[derive(Debug, Args)]
pub(crate) struct CcCheck {
    /// The WASM module.
    #[arg(value_name = "FILE.wasm")]
    pub(crate) file: PathBuf,
    /// Set one of its settings.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Which losses by duplicate ACKs shrink the window.
    #[arg(long, value_enum, default_value_t = LossArg::Shrinks)]
    pub(crate) loss: LossArg,
    /// A window of so many segments need not shrink.
    #[arg(long, value_name = "SEGMENTS", default_value_t = 2.0)]
    pub(crate) shrinks_above: f64,
    /// The largest window after a timeout.
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1.0)]
    pub(crate) timeout_window_max: f64,
    /// The number of random stories.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) cases: u32,
}

/// Which losses by duplicate ACKs shrink the window.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LossArg {
    /// All of them.
    Shrinks,
    /// All but those classified as random, which leave it as it is.
    ShrinksUnlessRandom,
    /// It depends.
    MayHold,
    /// None.
    Holds,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print completions for a shell.
    Completions {
        /// The shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Write man pages, one for each command.
    Man {
        /// The folder to write to.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write scenario.md, measures.md and scenario.schema.json.
    Reference {
        /// The folder to write to.
        #[arg(value_name = "DIR", default_value = "docs/reference")]
        folder: PathBuf,
        /// Write nothing; exit with code 1 if the files are out of date.
        #[arg(long)]
        check: bool,
    },
}

#[cfg(test)]
mod tests;

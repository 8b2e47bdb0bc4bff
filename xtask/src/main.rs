//! `cargo xtask`: everything that checks, measures or generates.

mod counts;
mod demo;
mod dist;
mod drill;
mod field;
mod generate;
mod law_table;
mod limit;
mod links;
mod machine;
mod module;
mod ns3;
mod object;
mod oracle;
mod packages;
mod platforms;
mod proofs;
mod python;
mod reality;
mod run;
mod screenshot;
mod sensitivity;
mod site;
mod soak;
mod steps;
mod test;
mod tidy;
mod tools;
mod zig;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Everything that checks, measures or generates.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that CI runs, in order; stops at the first failure.
    Test,
    /// Checks the crate graph, the purity of crates, circles of modules, lengths of files, docs of public items, features of dependencies, and that
    /// the tests that docs/rfc-9293.md names exist.
    Tidy,
    /// Writes the generated documents, or checks that they are up to date.
    Generate {
        /// Only compare, and fail if a document is stale.
        #[arg(long)]
        check: bool,
    },
    /// Builds docs/ as a book with the playground, the report, the commands' help and the libraries' API, and checks every link; `--quick` leaves out
    /// what takes minutes.
    Site(site::Options),
    /// Compiles the simulator to the playground's WASM module, if a source of it has changed; 2 minutes.
    Playground,
    /// Takes the picture of the playground that README.md shows, in Chromium.
    Screenshot,
    /// Compares every packet of random small topologies with ns-2 (Debian's package `ns2`).
    Oracle(oracle::Options),
    /// Runs laws of ns-3 and ours of the same names on the same networks, side by side (Debian's packages `libns3-dev`, `g++`); 3 minutes.
    Ns3(ns3::Options),
    /// Changes each input of the papers' experiments by a fifth, and writes the claims that no change flips; 20 minutes.
    Sensitivity(sensitivity::Options),
    /// Compares ten simulated transfers with real ones over emulated links (Linux, root); 5 minutes.
    Reality(reality::Options),
    /// Measures the promises of the transport by real transfers, faults and attacks over emulated links (Linux, root).
    Proofs(proofs::Options),
    /// Runs all functions of the library at once for half an hour, over links with losses, and checks that no resource grows (Linux, root).
    Soak(soak::Options),
    /// Shows the transport at work over two emulated paths, one of which fails (Linux); a minute.
    Demo(demo::Options),
    /// Plays a folder of packetdrill scripts against our TCP, and prints a table of what holds and what does not; seconds.
    Drill(drill::Options),
    /// Builds the Python module, installs it in a virtual environment, and runs its tests, the code of docs/python.md and the examples.
    Python(python::Options),
    /// Makes what users install, of the newest commit, into `dist/`: static programs, Debian packages, wheel, list of components, sums; checks the crates for
    /// crates.io. 40 minutes of processor time.
    Dist(dist::Options),
    /// Checks whether the libraries and the command compile for Windows and macOS (rustup, mingw, zig).
    Platforms,
    /// Writes the outcome of `anabranch reproduce law --json` into the table of docs/law.md.
    LawTable(law_table::Options),
    /// Judges the default law on a small field of random networks, and on what an attack found, by the bounds of experiments/field; half a
    /// minute.
    Field(field::Options),
    /// Runs a program of tests and ends it, by the test's name, when one takes longer than three minutes: cargo's runner in `test`.
    #[command(hide = true)]
    Limit {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Counts the instructions of the benchmark scenarios under callgrind and compares with xtask/counts.toml.
    Counts {
        /// Write the counts into xtask/counts.toml instead of comparing.
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Tidy => tidy::run(),
        Task::Generate { check } => generate::run(check),
        Task::Site(options) => site::run(&options),
        Task::Playground => module::make(),
        Task::Screenshot => screenshot::run(),
        Task::Oracle(options) => oracle::run(&options),
        Task::Ns3(options) => ns3::run(&options),
        Task::Sensitivity(options) => sensitivity::run(&options),
        Task::Reality(options) => reality::run(&options),
        Task::Proofs(options) => proofs::run(&options),
        Task::Demo(options) => demo::run(&options),
        Task::Drill(options) => drill::run(&options),
        Task::Python(options) if options.quick => python::quick(),
        Task::Python(options) => python::test(&options),
        Task::Dist(options) => dist::run(&options),
        Task::Platforms => platforms::run(),
        Task::Soak(options) => soak::run(&options),
        Task::LawTable(options) => law_table::run(&options),
        Task::Field(options) => field::run(&options),
        Task::Limit { command } => limit::run(&command),
        Task::Counts { write } => counts::run(write),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            run::say(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

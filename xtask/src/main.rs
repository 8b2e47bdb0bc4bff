//! `cargo xtask`: everything that checks, measures or generates.

mod counts;
mod oracle;
mod run;
mod test;
mod tidy;

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
    /// The crate graph: who may depend on whom, and which crates stay pure.
    Tidy,
    /// Compares every packet of random small topologies with ns-2 (Debian's package `ns2`).
    Oracle(oracle::Options),
    /// Counts the instructions of the benchmark scenarios under callgrind and compares with CONTRIBUTING.md.
    Counts {
        /// Write the counts into CONTRIBUTING.md instead of comparing.
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Tidy => tidy::run(),
        Task::Oracle(options) => oracle::run(&options),
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

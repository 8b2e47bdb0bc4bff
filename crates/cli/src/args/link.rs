//! Arguments of `anabranch link`.

use std::path::PathBuf;

use anabranch_units::{Rate, SimSpan};
use clap::{Args, Subcommand};

use super::Overrides;

#[derive(Debug, Subcommand)]
pub(crate) enum Link {
    /// Create a network namespace for each end of a scenario's flows, and emulate the links between them.
    Up(Up),
    /// Stop the programs in the namespaces and remove everything, also after a crash.
    Down(Down),
    /// Run a program at a host. Its /etc/hosts has the names of hosts: h1, h1.LINK, h1.v6.
    Exec(Exec),
    /// Restart the scenario's clock, random numbers and counters. Packets in flight are lost.
    Restart(Named),
    /// Print the counters of the links.
    Status(Named),
    /// Run a program, or a shell, in which links need no root. All that it creates is gone at its end.
    Sandbox(Sandbox),
    /// Measure the lateness of links on this machine, and say which rates and delays it sustains.
    Check(Check),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 up, 1 failure, 2 wrong usage or input, or not root.")]
pub(crate) struct Up {
    /// The scenario file. Its flows only determine which nodes are hosts.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// The name of the emulator, so that several can be up; the default is the file's name without .toml.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The MTU in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
    pub(crate) mtu: u16,
    /// The kernel's default congestion control in the namespaces.
    #[arg(long, value_name = "NAME", default_value = "reno")]
    pub(crate) congestion_control: String,
    /// Join simultaneous packets into one, as network cards with receive offload (GRO) do.
    #[arg(long)]
    pub(crate) offload: bool,
    /// Drop packets that are longer than a link's MTU silently, as where a firewall discards ICMP; by default the router answers.
    #[arg(long)]
    pub(crate) black_holes: bool,
    /// Stay in the foreground; an interrupt takes the links down.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Internal: started by another process, which has claimed the name.
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Only what `anabranch link up` has made is removed.\n\n\
    Exit codes: 0 removed, or no name was given and nothing was up; 1 nothing was up as NAME, or failure; 2 wrong usage, or not root.")]
pub(crate) struct Down {
    /// The name of the emulator, or its scenario file; optional if only one is up.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// All emulators.
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: those of the program; 127 if there is no such program, 2 wrong usage.")]
pub(crate) struct Exec {
    /// The host: a node of the scenario.
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// The name of the emulator; optional if only one is up.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Restart first: see anabranch link restart.
    #[arg(long)]
    pub(crate) restart: bool,
    /// The program and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The program is root in user, network, mount and process namespaces of its own; nothing of the machine belongs to that root. \
    It reaches no network but its links, and /run is empty. Packets are later than with root, which has real-time priority.\n\n\
    Exit codes: those of the program; 1 if this system does not allow it."
)]
pub(crate) struct Sandbox {
    /// The program and its arguments; the default is your shell.
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The name of the emulator, or its scenario file; optional if only one is up.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 measured, 1 failure, 2 wrong usage, or not root.")]
pub(crate) struct Check {
    /// A rate to measure; repeatable.
    #[arg(long = "rate", value_name = "RATE", default_values = ["10Mbit/s", "50Mbit/s", "100Mbit/s", "200Mbit/s", "500Mbit/s"])]
    pub(crate) rates: Vec<Rate>,
    /// A delay to measure with each rate; repeatable.
    #[arg(long = "delay", value_name = "SPAN", default_values = ["5ms", "100ms"])]
    pub(crate) delays: Vec<SimSpan>,
    /// The duration of each measurement in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

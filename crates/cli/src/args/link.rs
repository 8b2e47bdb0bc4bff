//! What can be typed to emulate links.

use std::path::PathBuf;

use anabranch_units::{Rate, SimSpan};
use clap::{Args, Subcommand};

use super::Overrides;

#[derive(Debug, Subcommand)]
pub(crate) enum Link {
    /// Make a network namespace for each end of a scenario's flows, and emulate its links between them.
    Up(Up),
    /// Stop the programs in the namespaces and remove these, also after a crash. Where there is nothing, nothing is done.
    Down(Down),
    /// Run a program at a host. Names of hosts are in its /etc/hosts: h1, h1.LINK, h1.v6.
    Exec(Exec),
    /// Begin again: the clock of the scenario, its chance and all counts. What is under way is lost.
    Restart(Named),
    /// Say what has happened on the links.
    Status(Named),
    /// Measure how late links of some rates and delays are on this machine, and say which it can carry.
    Check(Check),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 up, 1 failed, 2 usage, bad input or not root.")]
pub(crate) struct Up {
    /// The scenario. Its flows only tell which nodes are hosts.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// What to call it, so that several can be up; the file's name without .toml if absent.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The longest IP packet in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
    pub(crate) mtu: u16,
    /// The kernel's congestion control of sockets that do not choose.
    #[arg(long, value_name = "NAME", default_value = "reno")]
    pub(crate) congestion_control: String,
    /// Hand packets over as one that come at once, as network cards with receive offload (GRO) do.
    #[arg(long)]
    pub(crate) offload: bool,
    /// Stay in the foreground; interrupting takes the links down.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Started by another process, which has taken the name.
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// What it is called, or the file of its scenario; not needed if one is up.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// All of them.
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: those of the program; 1 it could not be started, 2 usage.")]
pub(crate) struct Exec {
    /// The host: a node of the scenario.
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// What the links are called; not needed if one is up.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Begin again first: see anabranch link restart.
    #[arg(long)]
    pub(crate) restart: bool,
    /// The program and what to tell it.
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// What the links are called, or the file of their scenario; not needed if one is up.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 measured, 1 failed, 2 usage or not root.")]
pub(crate) struct Check {
    /// A rate to try; may be repeated.
    #[arg(long = "rate", value_name = "RATE", default_values = ["10Mbit/s", "50Mbit/s", "100Mbit/s", "200Mbit/s", "500Mbit/s"])]
    pub(crate) rates: Vec<Rate>,
    /// A delay to try with each rate; may be repeated.
    #[arg(long = "delay", value_name = "SPAN", default_values = ["5ms", "100ms"])]
    pub(crate) delays: Vec<SimSpan>,
    /// For how long packets are sent, each time.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

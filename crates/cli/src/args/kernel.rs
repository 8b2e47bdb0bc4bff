//! Arguments of `anabranch kernel`.

use std::ffi::OsString;

use anabranch_bpf::Law;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage, not root, or a kernel without what is needed."
)]
pub(crate) enum Kernel {
    /// Load a law. It stays until `unload`. Programs choose it by its name: iperf3 -C anabranch.
    Load(Load),
    /// Remove laws. Connections that have one keep it.
    Unload(Unload),
    /// Print the loaded laws, their settings, and the connections that have them.
    Status(Status),
    /// Change settings of loaded laws, also for existing connections.
    Set(Set),
    /// Make a loaded law the default of this network namespace, or of all of this host.
    Default(Default),
    /// Run a program whose TCP connections have a loaded law.
    Run(Run),
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The law: anabranch, fast, emfast, rrfast, composite.
    pub(crate) law: Law,
    /// Its settings, as in `anabranch cc show LAW`, such as alpha=100.
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct Unload {
    /// The laws; without any, all that are loaded.
    #[arg(value_name = "LAW")]
    pub(crate) laws: Vec<Law>,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The law; without it, every loaded law.
    #[arg(long)]
    pub(crate) law: Option<Law>,
    /// What to change, such as alpha=200.
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = pair)]
    pub(crate) settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct Default {
    /// In every network namespace of this host, those of containers, too; one that is made later begins with the default of process 1.
    #[arg(long)]
    pub(crate) host: bool,
    /// The law.
    pub(crate) law: Law,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Make its TCP sockets MPTCP sockets, each of whose subflows has the law. It needs the program mptcpize.
    #[arg(long)]
    pub(crate) multipath: bool,
    /// The law.
    pub(crate) law: Law,
    /// The program and its arguments, after `--`.
    #[arg(value_name = "PROGRAM", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}

/// `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a setting is KEY=VALUE".to_owned()),
    }
}

//! What can be typed to move bytes over a network.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch::units::{ParseError, Rate};
use anabranch::{PublicKey, Ticket};
use anabranch_tunnel::{ListenAt, PortForward, Target};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all arrived, 1 something did not, 2 usage.")]
pub(crate) struct Send {
    /// Files and folders. A folder is sent with all that is in it, but for symbolic links.
    #[arg(value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) paths: Vec<PathBuf>,
    /// What `anabranch recv` has printed.
    #[arg(value_name = "TICKET")]
    pub(crate) ticket: Ticket,
    /// Who to be: a file of `anabranch key new`. Without it a new key for this time.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Use all interfaces of this computer at once: a path by each.
    #[arg(long)]
    pub(crate) multipath: bool,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 with --once, all arrived; 1 something did not; 2 usage.")]
pub(crate) struct Recv {
    /// The folder to write into; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) listen: Listen,
    /// Let in only who proves this key, and may be repeated. Without it, whoever has the ticket.
    #[arg(long = "allow", value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// Replace files that are there and differ. Without it they stay, and what has their name is refused.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// End after one transfer that was not interrupted.
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, a document a line: the ticket, then each transfer.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is kept of connections.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Write a log of each connection into this folder, in qlog 0.3, for qvis and other tools. It is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Say on standard error what becomes of connections, at `info`; of their paths, too, at `debug`; and of streams, at `trace`.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<Level>,
}

/// How much to say.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    /// What is wrong.
    Warn,
    /// Connections that begin and end.
    Info,
    /// Paths.
    Debug,
    /// Streams.
    Trace,
}

/// Where and as whom to wait for others.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Wait at this address and port. Without it, at all addresses and any port.
    #[arg(long = "listen", value_name = "ADDRESS")]
    pub(crate) address: Option<SocketAddr>,
    /// Who to be: a file of `anabranch key new`. Without it a new key, and so a new ticket, each time.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Show the ticket as a QR code, too. Whoever sees it has the ticket.
    #[arg(long, conflicts_with = "json")]
    pub(crate) qr: bool,
    /// Answer Prometheus here: `GET /metrics`, for this computer alone if there is no address. Whoever reaches it reads who talks to whom.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) metrics: Option<ListenAt>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) serve: Option<BenchServer>,
    /// What `anabranch bench serve` has printed.
    #[arg(value_name = "TICKET", required = true)]
    pub(crate) ticket: Option<Ticket>,
    /// Seconds to send.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) time: u32,
    /// Streams to send on at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) streams: u8,
    /// Let the other end send.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Send in both directions at once.
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) bidir: bool,
    /// The most that each end which sends writes, all streams together, such as 10Mbit/s.
    #[arg(long, value_name = "RATE", value_parser = capped)]
    pub(crate) rate: Option<Rate>,
    /// The congestion law, of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
    /// Use all interfaces of this computer at once: a path by each.
    #[arg(long)]
    pub(crate) multipath: bool,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON, a document a line: each second, then what --json prints.
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,
}

/// A rate at which something arrives.
fn capped(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseError| error.to_string())?;
    if rate.bits_per_second() < 8_000 {
        return Err("a rate below 8kbit/s is none to measure with".to_owned());
    }
    Ok(rate)
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchServer {
    /// Wait for others to measure with.
    Serve {
        #[command(flatten)]
        listen: Listen,
        /// The congestion law of what this end sends, of `anabranch cc list`.
        #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
        law: String,
        #[command(flatten)]
        log: Log,
        /// Print JSON, a document a line: the ticket.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(
    after_help = "Addresses of IPv6 stand in brackets. Without an address, ports are opened for this computer alone.\n\n\
    Exit codes: 0 stopped by Ctrl-C, 1 something does not work, 2 usage."
)]
pub(crate) struct Tunnel {
    #[command(subcommand)]
    pub(crate) serve: Option<TunnelServer>,
    /// What `anabranch tunnel serve` has printed.
    #[arg(value_name = "TICKET", required = true)]
    pub(crate) ticket: Option<Ticket>,
    /// Open a port here that leads to a host and port of the other end; may be repeated.
    #[arg(short = 'L', long, value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) local: Vec<PortForward>,
    /// Have the other end open a port that leads to a host and port of this end; may be repeated.
    #[arg(short = 'R', long, value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) remote: Vec<PortForward>,
    /// Open a port here where programs say by SOCKS5 where the other end is to connect to; may be repeated.
    #[arg(short = 'D', long, value_name = "[ADDRESS:]PORT")]
    pub(crate) socks: Vec<ListenAt>,
    /// Who to be: a file of `anabranch key new`. Without it a new key for this time.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Use all interfaces of this computer at once: a path by each.
    #[arg(long)]
    pub(crate) multipath: bool,
    /// The congestion law, of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, a document a line: each port, each connection, each loss.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TunnelServer {
    /// Wait for others, and connect for them.
    Serve(TunnelServe),
}

#[derive(Debug, Args)]
pub(crate) struct TunnelServe {
    #[command(flatten)]
    pub(crate) listen: Listen,
    /// Let in only who proves this key, and may be repeated. Without it, whoever has the ticket.
    #[arg(long = "allow", value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// Connect others to this host and port, and may be repeated.
    #[arg(long = "to", value_name = "HOST:PORT")]
    pub(crate) targets: Vec<Target>,
    /// Connect others wherever they want, this computer's own ports included. SOCKS5 is of little use without it.
    #[arg(long)]
    pub(crate) anywhere: bool,
    /// Let others open ports of this computer.
    #[arg(long)]
    pub(crate) listens: bool,
    /// The congestion law of what this end sends, of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, a document a line: the ticket.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A running send, recv, bench or tunnel has a Unix socket of its own in XDG_RUNTIME_DIR or the folder for temporary files.\n\
    Only those of this user are looked at.\n\n\
    Exit codes: 0 seen, 1 there is nothing to be seen, 2 usage."
)]
pub(crate) struct Watch {
    /// Its process id. Without it, the only one that runs is watched, or all are listed.
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Print as text what there is now, and end. Where the output is no terminal and this is not given, text is printed every two seconds.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Write a new key into a file that only you may read, and print the name that it proves.
    New {
        /// The file; nothing is written over.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the name that a key proves.
    Show {
        /// The file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

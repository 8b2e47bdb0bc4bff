//! Arguments of `send` and `recv`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anabranch::units::Rate;
use anabranch::{Code, PublicKey, Ticket};
use clap::Args;

use super::online::{Listen, Log};
use super::relay::RelayName;
use super::{rate, ticket};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 every file arrived (or is there, with --verify), 1 a file did not, 2 wrong usage."
)]
pub(crate) struct Send {
    /// Files and folders, or - for the standard input. Behind them the ticket that `anabranch recv` has printed, or the tickets of several receivers; or where
    /// they are: @FILE, env:VARIABLE, or - for standard input. With --relay or --wait there is no ticket. A folder is sent with its content; for
    /// symbolic links see --links.
    #[arg(value_name = "PATH... TICKET", required_unless_present = "text", num_args = 1..)]
    pub(crate) items: Vec<OsString>,
    /// Send this text, which the other end shows.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// The name of the file that the receiver makes of the standard input.
    #[arg(long, value_name = "NAME", default_value = "stdin")]
    pub(crate) name: String,
    /// Print a short code, and wait at this relay until it is typed at the other end: `anabranch recv CODE`. The relay is HOST[:PORT] or
    /// KEY@HOST[:PORT]; the variable ANABRANCH_RELAY of the environment names one, too.
    #[arg(long, value_name = "RELAY")]
    pub(crate) relay: Option<RelayName>,
    /// Print a ticket, and send to everyone who comes with it, also to several at once: `anabranch recv TICKET`. With --relay the ticket names the
    /// relay, and there is no code.
    #[arg(long)]
    pub(crate) wait: bool,
    /// The address and port to wait at; the default is all addresses and any free port.
    #[arg(long, value_name = "ADDRESS", requires = "wait")]
    pub(crate) listen: Option<SocketAddr>,
    /// Send only to the one with this key; repeatable. The default is everyone with the ticket.
    #[arg(long = "allow", value_name = "KEY", requires = "wait")]
    pub(crate) allow: Vec<PublicKey>,
    /// How many receive: with --wait the command ends after so many complete transfers (the default is never), else it prints so many codes (the default
    /// is one).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) receivers: Option<u8>,
    /// A key file of `anabranch key new`; the default is a new key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Compare files that are there by their content. By default a file of the same size and time counts as the same, and content
    /// decides if only the size is the same.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Send nothing: compare, by their content, the files that lie at the receiver with those here, and name what differs or is missing.
    #[arg(long, conflicts_with_all = ["checksum", "text"])]
    pub(crate) verify: bool,
    /// Send symbolic links that stay inside of their transferred folder as links. By default links are not sent, and are reported.
    #[arg(long)]
    pub(crate) links: bool,
    /// Keep more of each file: --links, files with several names as one file (hard links), and extended attributes of users (user.*). What cannot be kept
    /// is said. Owners, and attributes of the system, are never sent.
    #[arg(long)]
    pub(crate) archive: bool,
    /// The largest rate at which this end sends, such as 20Mbit/s, in bytes of IP packets: on a connection, all its paths together.
    #[arg(long, value_name = "RATE", value_parser = rate::limit)]
    pub(crate) rate: Option<Rate>,
    /// Use all interfaces of this computer at once, with a path for each.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) multipath: bool,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print one JSON document; for several receivers, or with --wait, one a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 with --once, every file arrived; 1 a file did not; 2 wrong usage.")]
pub(crate) struct Recv {
    /// What `anabranch send` has printed: a code, such as 7-guitar-ocean, which needs a relay, or the ticket of `send --wait`; or where that is: @FILE or
    /// env:VARIABLE. Then one transfer is received.
    #[arg(value_name = "CODE|TICKET")]
    pub(crate) sender: Option<Sender>,
    /// The folder to write into; created if necessary.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) to: PathBuf,
    /// Write one file, text or standard input of the sender to the standard output, and all else to standard error. One transfer is received. On a
    /// terminal, control characters are shown, not obeyed.
    #[arg(long, conflicts_with_all = ["to", "overwrite", "json"])]
    pub(crate) stdout: bool,
    #[command(flatten)]
    pub(crate) listen: Listen,
    /// Admit only this key; repeatable. The default admits everyone with the ticket.
    #[arg(long = "allow", value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// The largest rate at which each sender sends to this end, such as 20Mbit/s, in bytes of IP packets. The sender is asked, and keeps it.
    #[arg(long, value_name = "RATE", value_parser = rate::limit)]
    pub(crate) rate: Option<Rate>,
    /// Replace existing files that differ. By default they stay, and the new ones are refused.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Exit after one complete transfer.
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, one document a line: the ticket, then each transfer.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A sender that waits.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    Code(Code),
    Ticket(Box<Ticket>),
}

impl FromStr for Sender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if ticket::is_one(text) {
            return Ok(Self::Ticket(Box::new(ticket::read(text)?)));
        }
        text.parse().map(Self::Code).map_err(|error| error.to_string())
    }
}

//! Arguments of the commands that use a network.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use anabranch::measure::SIZE_MAX;
use anabranch::units::{ParseError, Rate};
use anabranch::{Cipher, PublicKey, Scheduling, Ticket};
use anabranch_tunnel::vpn::IpNetwork;
use anabranch_tunnel::{ListenAt, PortForward, Target};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use super::relay::RelayName;
use super::{rate, ticket};

/// Logging options.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Write a log of each connection into this folder, in qlog 0.3, for qvis and other tools. The folder is created if necessary.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Print events of connections to standard error: at `debug` those of paths, too, at `trace` those of streams.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<Level>,
}

/// The level of events.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    /// Errors only.
    Warn,
    /// The begin and end of connections.
    Info,
    /// Changes of paths.
    Debug,
    /// The ends of streams.
    Trace,
}

/// Address and key of a listening command.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// The address and port to listen at; the default is all addresses and any free port.
    #[arg(long = "listen", value_name = "ADDRESS")]
    pub(crate) address: Option<SocketAddr>,
    /// A key file of `anabranch key new`. The default is a new key, and so a new ticket, each time.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Also show the ticket as a QR code. Everyone who sees it has the ticket.
    #[arg(long, conflicts_with = "json")]
    pub(crate) qr: bool,
    /// A relay through which this end can be reached, too, as behind a NAT: HOST[:PORT], KEY@HOST[:PORT], or what `anabranch relay serve --json` has
    /// printed as its ticket. Both ends then look for a direct way.
    #[arg(long, value_name = "RELAY")]
    pub(crate) relay: Option<RelayName>,
    /// Serve Prometheus metrics at `GET /metrics`. The default address is loopback. Everyone who reaches it can read the peers'
    /// addresses and keys.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) metrics: Option<ListenAt>,
}

/// How an end of a tunnel sends.
#[derive(Debug, Args)]
pub(crate) struct Sending {
    /// The largest rate at which this end sends, such as 20Mbit/s, in bytes of IP packets: on a connection, all its paths together.
    #[arg(long, value_name = "RATE", value_parser = rate::limit)]
    pub(crate) rate: Option<Rate>,
    /// How this end distributes its data over several paths: with `backup` one path carries all that it can, `latency` and `redundant` send some or all of it
    /// twice, on two of them.
    #[arg(long, value_name = "NAME", default_value = "min_rtt", value_parser = scheduling())]
    pub(crate) scheduling: Scheduling,
    /// The congestion law for this end's sending, one of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) serve: Option<BenchServer>,
    /// The ticket that `anabranch bench serve` has printed; or where it is: @FILE, env:VARIABLE, or - for standard input.
    #[arg(value_name = "TICKET", required = true, value_parser = ticket::read)]
    pub(crate) ticket: Option<Ticket>,
    /// The duration in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) time: u32,
    /// Connections at the same time. RTT, window and limits are those of the first one.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) connections: u8,
    /// Concurrent streams of each connection.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) streams: u8,
    /// Measure unreliable datagrams in the place of streams: how many arrive, and how evenly. Without --rate, as many are sent as congestion control
    /// lets through.
    #[arg(long, group = "sized", conflicts_with_all = ["connections", "streams"])]
    pub(crate) datagrams: bool,
    /// The system clocks of both ends agree (the same computer, PTP, good NTP): with --datagrams, show how long they were on their way, too.
    #[arg(long, requires = "datagrams")]
    pub(crate) clocks_agree: bool,
    /// Measure round trips in the place of a rate: on each stream a request, its answer of the same size, and then the next request.
    #[arg(long, group = "sized", conflicts_with_all = ["connections", "rate", "reverse", "bidir"])]
    pub(crate) ping_pong: bool,
    /// Measure in the place of a rate how long connections take to be set up: connect, wait for the first answer, close, and again; --connections at the same
    /// time, and at most 20 a second.
    #[arg(long, conflicts_with_all = ["datagrams", "ping_pong", "streams", "rate", "reverse", "bidir", "beside", "multipath", "size"])]
    pub(crate) set_up: bool,
    /// The size in bytes of a datagram, 16 to 8900 (the default is 1000), or of a request, 1 to 1048576 (the default is 64).
    #[arg(long, value_name = "BYTES", requires = "sized", value_parser = clap::value_parser!(u32).range(1..=i64::from(SIZE_MAX)))]
    pub(crate) size: Option<u32>,
    /// Let the other end send.
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Send in both directions at once.
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) bidir: bool,
    /// First measure the kernel's TCP to the same computer for the same time, and at last both at once. Its congestion law is the kernel's default, or LAW.
    /// The other end opens a TCP port for this.
    #[arg(long, value_name = "tcp[:LAW]", value_parser = beside, conflicts_with_all = ["sized", "bidir", "rate"])]
    pub(crate) beside: Option<Rival>,
    /// The largest packet that path MTU discovery looks for, in bytes; the other end must allow it, too.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9_000))]
    pub(crate) packet_max: u32,
    /// The cipher, if the other end supports it; without it AES-128-GCM where both machines have instructions for it.
    #[arg(long, value_name = "NAME", value_parser = cipher())]
    pub(crate) cipher: Option<Cipher>,
    /// The rate limit of each sending end, all connections and streams together, such as 10Mbit/s.
    #[arg(long, value_name = "RATE", value_parser = capped)]
    pub(crate) rate: Option<Rate>,
    /// The congestion law, one of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
    /// Use all interfaces of this computer at once, with a path for each.
    #[arg(long)]
    pub(crate) multipath: bool,
    /// How this end distributes its data over several paths; `latency` and `redundant` send some or all of it twice, on two of them.
    #[arg(long, value_name = "NAME", default_value = "min_rtt", value_parser = scheduling())]
    pub(crate) scheduling: Scheduling,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON, one document a line: each second, then the document of --json.
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,
}

/// The kernel's TCP, with this congestion law or the default.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    pub(crate) law: Option<String>,
}

fn beside(text: &str) -> Result<Rival, String> {
    let law = match text.split_once(':') {
        None if text == "tcp" => None,
        Some(("tcp", law)) if (1..16).contains(&law.len()) => Some(law.to_owned()),
        _ => return Err("it is `tcp`, or `tcp:` and a congestion law of the kernel, such as tcp:cubic".to_owned()),
    };
    Ok(Rival { law })
}

/// A cipher, by its name.
fn cipher() -> impl TypedValueParser<Value = Cipher> {
    let names = PossibleValuesParser::new(Cipher::ALL.map(Cipher::name));
    names.map(|name| Cipher::from_name(&name).expect("it is one of these"))
}

/// A rate limit that is not too low to measure.
fn capped(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseError| error.to_string())?;
    if rate.bits_per_second() < 8_000 {
        return Err("the rate is below 8kbit/s".to_owned());
    }
    Ok(rate)
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchServer {
    /// Wait for other computers to measure with.
    Serve {
        #[command(flatten)]
        listen: Listen,
        /// The congestion law for this end's sending, one of `anabranch cc list`.
        #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
        law: String,
        /// The largest packet that path MTU discovery looks for, in bytes; the other end must allow it, too.
        #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9_000))]
        packet_max: u32,
        #[command(flatten)]
        log: Log,
        /// Print JSON, one document a line: the ticket.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "IPv6 addresses are in brackets. Without an address, a port is opened on loopback only.\n\n\
    Exit codes: 0 stopped by Ctrl-C, 1 failure, 2 wrong usage.")]
pub(crate) struct Tunnel {
    #[command(subcommand)]
    pub(crate) serve: Option<TunnelServer>,
    /// The ticket that `anabranch tunnel serve` has printed; or where it is: @FILE, env:VARIABLE, or - for standard input.
    #[arg(value_name = "TICKET", required = true, value_parser = ticket::read)]
    pub(crate) ticket: Option<Ticket>,
    /// Open a port here, forwarded to a host and port at the other end; repeatable.
    #[arg(short = 'L', long, value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) local: Vec<PortForward>,
    /// Open a UDP port here, whose packets go to a host and port at the other end, and the answers back; repeatable.
    #[arg(long, value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) local_udp: Vec<PortForward>,
    /// Open a port at the other end, forwarded to a host and port at this end; repeatable.
    #[arg(short = 'R', long, value_name = "[ADDRESS:]PORT:HOST:PORT")]
    pub(crate) remote: Vec<PortForward>,
    /// Open a SOCKS5 port here: each connection, or packet of UDP, names a target for the other end; repeatable.
    #[arg(short = 'D', long, value_name = "[ADDRESS:]PORT")]
    pub(crate) socks: Vec<ListenAt>,
    /// A key file of `anabranch key new`; the default is a new key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Use all interfaces of this computer at once, with a path for each.
    #[arg(long)]
    pub(crate) multipath: bool,
    #[command(flatten)]
    pub(crate) sending: Sending,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, one document a line: each port, each connection, each loss of the connection.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TunnelServer {
    /// Wait for the other end, and connect to targets for it.
    Serve(TunnelServe),
    /// Carry IP packets of this computer to the other end's network, for all programs (Linux, root).
    Vpn(TunnelVpn),
}

#[derive(Debug, Args)]
#[command(after_help = "Everything that the command adds to the system goes away at its end; it changes no file.\n\n\
    Exit codes: 0 stopped by Ctrl-C, 1 failure, 2 wrong usage, or the system lacks what is needed.")]
pub(crate) struct TunnelVpn {
    /// The ticket that `anabranch tunnel serve --vpn` has printed; or where it is: @FILE, env:VARIABLE, or - for standard input.
    #[arg(value_name = "TICKET", value_parser = ticket::read)]
    pub(crate) ticket: Ticket,
    /// A network that is reached through the tunnel, besides that of the VPN itself, such as 10.0.0.0/8; or `default`, for everything that this computer
    /// has no other route for; repeatable.
    #[arg(long = "route", value_name = "NETWORK")]
    pub(crate) routes: Vec<VpnRoute>,
    /// Let systemd-resolved ask this name server for all names, as long as the command runs; repeatable. Without this, names are resolved as before.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dns: Vec<IpAddr>,
    /// The name of the TUN device; the default is anabranch0, or the next number that is free.
    #[arg(long, value_name = "NAME", default_value = VPN_DEVICE, hide_default_value = true, value_parser = device)]
    pub(crate) device: String,
    /// A key file of `anabranch key new`, by which the server knows this end and gives it the same address again; the default is a new key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Use all interfaces of this computer at once, with a path for each.
    #[arg(long)]
    pub(crate) multipath: bool,
    #[command(flatten)]
    pub(crate) sending: Sending,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, one document a line: each connection with its addresses, each loss of the connection.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is reached through a VPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VpnRoute {
    Default,
    To(IpNetwork),
}

impl FromStr for VpnRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Default),
            _ => {
                let network: IpNetwork = text.parse().map_err(|error| format!("{error}; or it is `default`"))?;
                let first = network.first();
                match network.len {
                    0 => Err("for all addresses, write `default`".to_owned()),
                    _ if first != network => Err(format!("the network of that address is {first}")),
                    _ => Ok(Self::To(network)),
                }
            }
        }
    }
}

/// The name of a device, which the system gives if there is a `%d`.
pub(crate) const VPN_DEVICE: &str = "anabranch%d";

/// A name that Linux takes for a device.
fn device(text: &str) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_good = (1..=15).contains(&text.len()) && text.bytes().all(is_letter) && !text.starts_with(['.', '-']);
    if is_good || text == VPN_DEVICE {
        Ok(text.to_owned())
    } else {
        Err("it has 1 to 15 letters, digits, or any of - _ .".to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct TunnelServe {
    #[command(flatten)]
    pub(crate) listen: Listen,
    /// Admit only this key; repeatable. The default admits everyone with the ticket.
    #[arg(long = "allow", value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// Allow connections to this host and port; repeatable.
    #[arg(long = "to", value_name = "HOST:PORT")]
    pub(crate) targets: Vec<Target>,
    /// Allow packets of UDP to this host and port; repeatable.
    #[arg(long = "to-udp", value_name = "HOST:PORT")]
    pub(crate) udp: Vec<Target>,
    /// Allow connections and packets of UDP to every target, this computer's own ports included. SOCKS5 needs it.
    #[arg(long)]
    pub(crate) anywhere: bool,
    /// Allow the other end to open ports on this computer.
    #[arg(long)]
    pub(crate) listens: bool,
    /// Allow clients to join a virtual network by `anabranch tunnel vpn`, in which this computer has this private address, such as 10.90.0.1/24; repeatable
    /// once, for one of IPv6 (Linux, root). They reach this computer's ports, and where the system forwards to.
    #[arg(long, value_name = "ADDRESS/LENGTH")]
    pub(crate) vpn: Vec<IpNetwork>,
    /// The name of the TUN device for --vpn; the default is anabranch0, or the next number that is free.
    #[arg(long, value_name = "NAME", requires = "vpn", default_value = VPN_DEVICE, hide_default_value = true, value_parser = device)]
    pub(crate) vpn_device: String,
    /// The most connections of clients. At the limit, the address that has most gives up its idlest one for a new client. The default
    /// is one for each 4 MiB of memory that a container or the computer has, 256 to 16384.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// The most connections of one client key. At the limit, one that was idle for 30 s gives way, or the new one is refused.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections_per_key: u32,
    /// The same for one IPv4 address, or the first 64 bits of an IPv6 address.
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections_per_address: u32,
    #[command(flatten)]
    pub(crate) sending: Sending,
    #[command(flatten)]
    pub(crate) log: Log,
    /// Print JSON, one document a line: the ticket.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A running send, recv, bench or tunnel has a Unix socket in XDG_RUNTIME_DIR, or in the folder for temporary files.\n\
    Only sockets of this user are used.\n\n\
    Exit codes: 0 success, 1 there is nothing to watch, 2 wrong usage."
)]
pub(crate) struct Watch {
    /// The process id. By default the only running command is watched; several are listed.
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Show the TCP connections that have a law of `anabranch kernel` (Linux, root).
    #[arg(long, conflicts_with = "pid")]
    pub(crate) kernel: bool,
    /// Print the present state as text, and exit. Without a terminal, text is printed every two seconds.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Write a new key into a file that only you may read, and print its public key.
    New {
        /// The file to create; an existing file is never overwritten.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the public key of a key file.
    Show {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// A scheduler by its name.
fn scheduling() -> impl TypedValueParser<Value = Scheduling> {
    let names = PossibleValuesParser::new(Scheduling::ALL.map(Scheduling::name));
    names.map(|name| Scheduling::from_name(&name).expect("it is one of these"))
}

//! Arguments of the relay, and the name of a relay in other commands.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use anabranch::units::Rate;
use anabranch::{PublicKey, Ticket};
use anabranch_tunnel::ListenAt;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Relay {
    /// Serve a relay: ends that cannot reach each other meet here. It forwards what they have encrypted, and cannot read it.
    Serve(RelayServe),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 stopped by Ctrl-C, 1 failure, 2 wrong usage.")]
pub(crate) struct RelayServe {
    /// The address and UDP port to listen at; the default is all addresses, and port 4477.
    #[arg(long = "listen", value_name = "ADDRESS")]
    pub(crate) address: Option<SocketAddr>,
    /// Take members over TCP, too (WebSocket in TLS), whose network blocks UDP. Without a value at port 443, which most networks let through
    /// and which needs a right of the system; the address is that of --listen, or all.
    #[arg(long, value_name = "[ADDRESS:]PORT", num_args = 0..=1, default_missing_value = "443")]
    pub(crate) tcp: Option<TcpAt>,
    /// The certificate for TLS, and what has signed it, as PEM. The default is one that the relay makes and signs itself: members check its key,
    /// and no certificate.
    #[arg(long, value_name = "FILE", requires_all = ["tcp", "tls_key"])]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The address of a web server in front of --tcp, such as nginx; repeatable. The relay believes its `X-Forwarded-For`, and tells members to
    /// come to port 443.
    #[arg(long, value_name = "ADDRESS", requires = "tcp")]
    pub(crate) tcp_proxy: Vec<IpAddr>,
    /// A key file of `anabranch key new`. The default is a new key each time.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Admit only this key; repeatable. The default admits everyone.
    #[arg(long = "allow", value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// The rate at which each member may send through the relay, such as 20Mbit/s.
    #[arg(long, value_name = "RATE", default_value = "100Mbit/s", value_parser = super::rate::limit)]
    pub(crate) rate: Rate,
    /// The most members. At the limit, the address that has most gives up its idlest one.
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) members: u32,
    /// The same for one IPv4 address, or the first 64 bits of an IPv6 address.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) members_per_address: u32,
    /// Serve Prometheus metrics of the members' connections at `GET /metrics`. The default address is loopback.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(crate) metrics: Option<ListenAt>,
    /// Print JSON, one document a line: the addresses and the key, then counts each minute.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a relay listens on TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpAt {
    /// That of the UDP socket if there is none.
    pub(crate) ip: Option<IpAddr>,
    pub(crate) port: u16,
}

impl FromStr for TcpAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let with_address =
            text.parse().map(|address: SocketAddr| Self { ip: Some(address.ip()), port: address.port() });
        with_address
            .or_else(|_| text.parse().map(|port| Self { ip: None, port }))
            .map_err(|_| "it is PORT or ADDRESS:PORT, as in 443, 192.0.2.1:443 or [::1]:8443".to_owned())
    }
}

/// The name of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelayName {
    /// Host and port, and its key if that is given.
    Host(String, Option<PublicKey>),
    /// A ticket of the relay.
    Ticket(Ticket),
}

impl RelayName {
    /// The relay that an option names, or else the environment.
    ///
    /// # Errors
    /// If the variable holds no name of a relay.
    pub(crate) fn or_of_environment(named: Option<&Self>) -> Result<Option<Self>, String> {
        let text = if named.is_some() { None } else { std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) };
        let read = text
            .map(|text| text.parse().map_err(|error| format!("the variable {VARIABLE} of the environment: {error}")));
        Ok(named.cloned().or(read.transpose()?))
    }
}

impl fmt::Display for RelayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host, Some(key)) => write!(f, "{key}@{host}"),
            Self::Host(host, None) => f.write_str(host),
            Self::Ticket(ticket) => ticket.fmt(f),
        }
    }
}

impl FromStr for RelayName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ticket) = text.parse() {
            return Ok(Self::Ticket(ticket));
        }
        let (key, host) = match text.split_once('@') {
            Some((key, host)) => {
                (Some(key.parse().map_err(|error| format!("the key before @ is none: {error}"))?), host)
            }
            None => (None, text),
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_bare_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
        let has_port = bare.is_none() && !is_bare_v6 && host.contains(':');
        if host.is_empty() || host.chars().any(char::is_whitespace) || host.starts_with(':') {
            return Err("a relay is HOST, HOST:PORT, KEY@HOST:PORT, or the ticket that it has printed".to_owned());
        }
        if let Some((_, port)) = host.rsplit_once(':').filter(|_| has_port)
            && port.parse::<u16>().is_ok_and(|port| port > 0)
        {
            return Ok(Self::Host(host.to_owned(), key));
        }
        if has_port {
            return Err(format!("{host}: the port is not a number from 1 to 65535"));
        }
        let host = if is_bare_v6 { format!("[{host}]") } else { host.to_owned() };
        Ok(Self::Host(format!("{host}:{PORT}"), key))
    }
}

/// The port of a relay that names none. It is in no list of registered ports.
pub(crate) const PORT: u16 = 4477;

/// Names a relay for codes.
const VARIABLE: &str = "ANABRANCH_RELAY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_has_a_port_and_may_have_an_address() {
        assert_eq!("443".parse(), Ok(TcpAt { ip: None, port: 443 }));
        assert_eq!("[::1]:8443".parse(), Ok(TcpAt { ip: Some("::1".parse().unwrap()), port: 8443 }));
        for wrong in ["", "relay.example", "192.0.2.1", "::1:443", "65536"] {
            assert!(wrong.parse::<TcpAt>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn relay_has_a_host_and_may_have_port_and_key() {
        let host = |text: &str| match text.parse() {
            Ok(RelayName::Host(host, key)) => (host, key.is_some()),
            other => panic!("{text}: {other:?}"),
        };
        let key = PublicKey::new([7; 32]);
        assert_eq!(host("relay.example"), ("relay.example:4477".to_owned(), false));
        assert_eq!(host("192.0.2.1:9"), ("192.0.2.1:9".to_owned(), false));
        assert_eq!(host("2001:db8::1"), ("[2001:db8::1]:4477".to_owned(), false));
        assert_eq!(host("[2001:db8::1]"), ("[2001:db8::1]:4477".to_owned(), false));
        assert_eq!(host("[2001:db8::1]:9"), ("[2001:db8::1]:9".to_owned(), false));
        assert_eq!(host(&format!("{key}@relay.example:9")), ("relay.example:9".to_owned(), true));
        let ticket = Ticket::new(key, vec!["192.0.2.1:9".parse().unwrap()]).unwrap();
        assert_eq!(ticket.to_string().parse(), Ok(RelayName::Ticket(ticket)));
        for wrong in ["", ":9", "relay.example:0", "relay.example:x", "a b", "key@relay.example:9", "@relay"] {
            assert!(wrong.parse::<RelayName>().is_err(), "{wrong}");
        }
    }
}

//! Arguments of the relay, and the name of a relay in other commands.

use std::fmt;
use std::net::SocketAddr;
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

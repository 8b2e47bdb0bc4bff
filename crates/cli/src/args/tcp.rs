//! Arguments of `anabranch tcp`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage, not root, or no TUN device.")]
pub(crate) enum Tcp {
    /// Wait for one connection. Standard input goes to the peer, and what it sends to standard output.
    Listen(Listen),
    /// Open a connection. Standard input goes to the peer, and what it sends to standard output.
    Connect(Connect),
    /// Pass connections on between the kernel's TCP and ours.
    Proxy(Proxy),
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// The port at our addresses.
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) device: Device,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// The peer, such as 10.99.0.1:80.
    #[arg(value_name = "ADDRESS:PORT")]
    pub(crate) peer: SocketAddr,
    #[command(flatten)]
    pub(crate) device: Device,
}

#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// Where connections come from: ADDRESS:PORT of the kernel, or tcp:PORT of ours. With socks:ADDRESS:PORT each names its target as SOCKS5 does; with
    /// redirect:ADDRESS:PORT it goes where it was going before nftables redirected it here.
    #[arg(long, value_name = "FROM")]
    pub(crate) from: From,
    /// Where they go: HOST:PORT by the kernel, or tcp:ADDRESS:PORT by ours; tcp alone goes by ours to the target that each has.
    #[arg(long, value_name = "TO")]
    pub(crate) to: To,
    /// The largest number of connections at a time; others wait.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: u32,
    /// After so many seconds in which nothing moves in either direction, a connection is reset on both sides.
    #[arg(long, value_name = "SECONDS", default_value_t = IDLE, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) idle: u32,
    #[command(flatten)]
    pub(crate) device: Device,
}

/// [rfc-5382] REQ-5: the least idle time of an established connection, 2 hours and 4 minutes, after which a translator of addresses may forget it.
const IDLE: u32 = 7440;

/// The TUN device, the addresses at both of its ends, and the law.
#[derive(Debug, Args)]
pub(crate) struct Device {
    /// The TUN device. If it does not exist, it is made, and is gone with this program.
    #[arg(long, value_name = "NAME", default_value = "anabranch-tcp")]
    pub(crate) device: DeviceName,
    /// Our address, which the kernel does not have; one for each family, or several with --paths.
    #[arg(long = "address", value_name = "ADDRESS", default_value = "10.99.0.2")]
    pub(crate) addresses: Vec<IpAddr>,
    /// The kernel's address at the device, with the length of the prefix that leads to it; one for each family.
    #[arg(long = "kernel", value_name = "ADDRESS/LENGTH", default_value = "10.99.0.1/24")]
    pub(crate) kernel: Vec<Prefix>,
    /// Use the device as it is: up, with the kernel's addresses.
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) as_is: bool,
    /// Bytes of the longest packet: the MTU that the device gets, and by which our segments are cut.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
    pub(crate) mtu: u16,
    /// The congestion law of what we send, one of `anabranch cc list`.
    #[arg(long = "cc", value_name = "NAME", default_value = "anabranch")]
    pub(crate) law: String,
    /// Connections to the same port that may share one, as its streams, if the peer is of ours, too; 0 shares none.
    #[arg(long, value_name = "COUNT", default_value_t = 255)]
    pub(crate) streams: u8,
    /// Paths that a connection with streams may have, if the peer allows several, too. One that we open uses all our addresses of its family.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) paths: u8,
}

/// The name of a network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceName(String);

/// An address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    pub(crate) len: u8,
}

/// Where connections come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Ours(u16),
    Kernel(SocketAddr),
    /// Of the kernel, where clients speak SOCKS5.
    Socks(SocketAddr),
    /// Of the kernel, where nftables redirects connections.
    Redirect(SocketAddr),
}

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Ours(SocketAddr),
    /// By ours, to the target that the connection has.
    OursAsAsked,
    /// A host and its port, for the kernel's resolver.
    Kernel(String),
}

impl DeviceName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeviceName {
    type Err = String;

    /// As the kernel has them: 1 to 15 bytes, no slash, no space; here only letters, digits, `-`, `_` and `.`, and no dash first.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = (1..=15).contains(&text.len()) && text.chars().all(is_usual);
        if !is_name || text.starts_with(['-', '.']) {
            return Err("a device has a name of 1 to 15 letters, digits, `-`, `_` and `.`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no address with the length of its prefix, such as 10.99.0.1/24");
        let (address, len) = text.split_once('/').ok_or_else(bad)?;
        let (address, len): (IpAddr, u8) = (address.parse().map_err(|_| bad())?, len.parse().map_err(|_| bad())?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        if len == 0 || len > most {
            return Err(bad());
        }
        Ok(Self { address, len })
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "`{text}` is no origin: write ADDRESS:PORT of the kernel, socks:ADDRESS:PORT, redirect:ADDRESS:PORT, or tcp:PORT of ours"
            )
        };
        let address = |text: &str| text.parse().map_err(|_| bad());
        match text.split_once(':') {
            Some(("tcp", port)) => port.parse().ok().filter(|&port| port > 0).map(Self::Ours).ok_or_else(bad),
            Some(("socks", at)) => address(at).map(Self::Socks),
            Some(("redirect", at)) => address(at).map(Self::Redirect),
            _ => address(text).map(Self::Kernel),
        }
    }
}

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is neither HOST:PORT for the kernel nor tcp:ADDRESS:PORT or tcp for ours");
        if text == "tcp" {
            return Ok(Self::OursAsAsked);
        }
        if let Some(peer) = text.strip_prefix("tcp:") {
            return peer.parse().map(Self::Ours).map_err(|_| bad());
        }
        let port = text.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then(|| port.parse::<u16>()));
        if !matches!(port, Some(Ok(1..))) {
            return Err(bad());
        }
        Ok(Self::Kernel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_name_that_could_be_an_option_or_path_is_refused() {
        for name in ["", "-all", "..", "a/b", "a b", "sixteen-letters-", "tün"] {
            assert!(name.parse::<DeviceName>().is_err(), "{name}");
        }
        assert_eq!("anabranch-tcp".parse::<DeviceName>().unwrap().as_str(), "anabranch-tcp");
    }

    #[test]
    fn ends_of_a_proxy_are_read() {
        assert_eq!("tcp:80".parse(), Ok(From::Ours(80)));
        assert_eq!("127.0.0.1:80".parse(), Ok(From::Kernel(([127, 0, 0, 1], 80).into())));
        assert_eq!("socks:127.0.0.1:80".parse(), Ok(From::Socks(([127, 0, 0, 1], 80).into())));
        assert_eq!("redirect:[::1]:80".parse(), Ok(From::Redirect("[::1]:80".parse().unwrap())));
        assert_eq!("tcp".parse(), Ok(To::OursAsAsked));
        assert_eq!("tcp:[::1]:80".parse(), Ok(To::Ours("[::1]:80".parse().unwrap())));
        assert_eq!("example.org:80".parse(), Ok(To::Kernel("example.org:80".to_owned())));
        for text in ["tcp:", "tcp:0", "80", "tcp:x", "socks:80", "socks:tcp:80", "redirect:", "redirect:a:80"] {
            assert!(text.parse::<From>().is_err(), "{text}");
        }
        for text in ["tcp:80", "example.org", ":80", "a:0", "a:99999"] {
            assert!(text.parse::<To>().is_err(), "{text}");
        }
        for text in ["10.0.0.1", "10.0.0.1/0", "10.0.0.1/33", "x/8"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}

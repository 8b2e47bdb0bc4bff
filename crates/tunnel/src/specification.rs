//! The values of forwarding options, as for `ssh`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use crate::target::{ParseTargetError, Target};

/// A listener and its target: `[ADDRESS:]PORT:HOST:PORT`. The default address is loopback, which other computers cannot reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortForward {
    /// The address to listen on; port 0 is any free port.
    pub listen: SocketAddr,
    /// The target to which its connections are forwarded.
    pub target: Target,
}

/// An address to listen on: `[ADDRESS:]PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAt(pub SocketAddr);

/// Why an option's value is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseForwardError {
    /// There are too few parts, or too many.
    Parts,
    /// The address is invalid.
    Address,
    /// The port to listen on is invalid.
    Port,
    /// The target is invalid.
    Target(ParseTargetError),
}

impl FromStr for PortForward {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let parts = parts(text);
        let [listen @ .., host, target_port] = parts.as_slice() else { return Err(ParseForwardError::Parts) };
        let target = format!("{host}:{target_port}").parse().map_err(ParseForwardError::Target)?;
        Ok(Self { listen: address(listen)?, target })
    }
}

impl FromStr for ListenAt {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        address(&parts(text)).map(Self)
    }
}

impl fmt::Display for ParseForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts => {
                f.write_str("it is [ADDRESS:]PORT:HOST:PORT, as in 8080:example.org:80, addresses of IPv6 in brackets")
            }
            Self::Address => f.write_str("the address to listen at is invalid: write 127.0.0.1 or [::1], for example"),
            Self::Port => f.write_str("the port to listen at is a number from 0 (any) to 65535"),
            Self::Target(error) => write!(f, "the target: {error}"),
        }
    }
}

impl std::error::Error for ParseForwardError {}

/// Splits at colons that are not inside brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ':' && depth == 0
    })
    .collect()
}

fn address(parts: &[&str]) -> Result<SocketAddr, ParseForwardError> {
    let (ip, port) = match parts {
        [port] => (IpAddr::from(Ipv4Addr::LOCALHOST), port),
        [ip, port] => {
            let inner = ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).unwrap_or(ip);
            (inner.parse().map_err(|_| ParseForwardError::Address)?, port)
        }
        _ => return Err(ParseForwardError::Parts),
    };
    Ok(SocketAddr::new(ip, port.parse().map_err(|_| ParseForwardError::Port)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read() {
        let read =
            |text: &str| text.parse::<PortForward>().map(|f| (f.listen.to_string(), f.target.to_string())).unwrap();
        let pair = |listen: &str, target: &str| (listen.to_owned(), target.to_owned());
        assert_eq!(read("8080:example.org:80"), pair("127.0.0.1:8080", "example.org:80"));
        assert_eq!(read("0.0.0.0:0:10.1.2.3:22"), pair("0.0.0.0:0", "10.1.2.3:22"));
        assert_eq!(read("[::1]:1:[2001:db8::1]:2"), pair("[::1]:1", "[2001:db8::1]:2"));
        assert_eq!("1080".parse::<ListenAt>().unwrap().0.to_string(), "127.0.0.1:1080");
        assert_eq!("[::]:1080".parse::<ListenAt>().unwrap().0.to_string(), "[::]:1080");
    }

    #[test]
    fn invalid_forward_is_refused() {
        use ParseForwardError::{Address, Parts, Port, Target};
        let refused = |text: &str| text.parse::<PortForward>().unwrap_err();
        assert_eq!((refused("80"), refused("host:80"), refused("a:b:c:d:5")), (Parts, Parts, Parts));
        assert_eq!((refused("x:1:host:80"), refused("99999:host:80"), refused(":host:80")), (Address, Port, Port));
        assert!(matches!(refused("1:host:0"), Target(ParseTargetError::Port)));
        assert!(matches!(refused("1::80"), Target(ParseTargetError::Host)));
    }
}

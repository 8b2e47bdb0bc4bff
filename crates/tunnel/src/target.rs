//! Targets of TCP connections and packets.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    host: String,
    port: u16,
}

/// Why a text is not a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseTargetError {
    /// There is no `:PORT` at the end, or it is not a number from 1 to 65535.
    Port,
    /// The host is missing, has more than 255 bytes, or has a character that is not allowed in a host name.
    Host,
}

impl Target {
    /// A target from a host and a port.
    ///
    /// # Errors
    /// If the host is not a valid name or address.
    pub fn new(host: &str, port: u16) -> Result<Self, ParseTargetError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        let is_address = host.parse::<Ipv6Addr>().is_ok();
        let is_name = !host.is_empty() && host.len() <= HOST_MAX && host.bytes().all(is_letter) && !host.contains(':');
        if port == 0 {
            Err(ParseTargetError::Port)
        } else if is_address || is_name {
            Ok(Self { host: host.to_ascii_lowercase(), port })
        } else {
            Err(ParseTargetError::Host)
        }
    }

    /// The host; an IPv6 address is without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of the target.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(ParseTargetError::Port)?;
        let port = port.parse().map_err(|_| ParseTargetError::Port)?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']').ok_or(ParseTargetError::Host)?,
            None if host.contains(':') => return Err(ParseTargetError::Host),
            None => host,
        };
        Self::new(host, port)
    }
}

impl fmt::Display for ParseTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "it ends in a port from 1 to 65535, as in example.org:80",
            Self::Host => "it begins with a host's name or address, one of IPv6 in brackets: [2001:db8::1]:80",
        })
    }
}

impl std::error::Error for ParseTargetError {}

/// The length limit of domain names ([rfc-1035] sec. 2.3.4).
const HOST_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_printed() {
        for text in ["example.org:80", "10.0.0.1:1", "[2001:db8::1]:65535"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!("EXAMPLE.org:80".parse::<Target>().unwrap().host(), "example.org");
    }

    #[test]
    fn invalid_target_is_refused() {
        use ParseTargetError::{Host, Port};
        let cases =
            [("", Port), ("host", Port), ("host:", Port), ("host:0", Port), ("host:65536", Port), (":80", Host)];
        let more = [("2001:db8::1:80", Host), ("[::1:80", Host), ("a b:80", Host), ("a\n:80", Host), ("a/b:80", Host)];
        for (text, error) in cases.into_iter().chain(more) {
            assert_eq!(text.parse::<Target>(), Err(error), "{text:?}");
        }
        assert_eq!(Target::new(&"a".repeat(256), 1), Err(Host));
    }
}

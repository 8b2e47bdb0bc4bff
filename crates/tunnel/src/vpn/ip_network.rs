//! IP networks: an address with the length of its prefix.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address, and how many of its first bits are those of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpNetwork {
    /// The address of a host in the network, or the first one.
    pub address: IpAddr,
    /// The length of the prefix in bits; at most that of the address.
    pub len: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseIpNetworkError {
    /// The address is invalid.
    Address,
    /// The length of the prefix is missing or too large.
    Len,
}

impl IpNetwork {
    /// A network; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        (len <= bits(address)).then_some(Self { address, len })
    }

    /// All addresses of IPv4, or of IPv6.
    pub fn all(is_ipv4: bool) -> Self {
        let address = if is_ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        Self { address, len: 0 }
    }

    /// The network with its first address.
    #[must_use]
    pub fn first(self) -> Self {
        Self { address: self.with(0), ..self }
    }

    /// Whether an address is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        // A prefix of IPv6 may be longer than an address of IPv4.
        address.is_ipv4() == self.is_ipv4() && Self { address, len: self.len }.first() == self.first()
    }

    /// Whether it is one of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether all of its addresses are ones that the Internet does not route: [rfc-1918], [rfc-6598], [rfc-4193].
    pub fn is_private(&self) -> bool {
        PRIVATE.iter().any(|(address, len)| {
            let of = Self { address: *address, len: *len };
            self.len >= *len && of.has(self.address)
        })
    }

    /// How many addresses follow the first one, the last one of IPv4 excepted, which means all of them.
    pub(crate) fn hosts(&self) -> u128 {
        match bits(self.address) - self.len {
            128.. => u128::MAX,
            free => ((1_u128 << free) - 1).saturating_sub(self.is_ipv4().into()),
        }
    }

    /// The address with this number after the first one.
    pub(crate) fn with(&self, number: u128) -> IpAddr {
        let free = u32::from(bits(self.address) - self.len);
        let mask = 1_u128.checked_shl(free).map_or(u128::MAX, |end| end - 1);
        match self.address {
            IpAddr::V4(address) => {
                Ipv4Addr::from((u128::from(address.to_bits()) & !mask | number & mask) as u32).into()
            }
            IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() & !mask | number & mask).into(),
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for IpNetwork {
    type Err = ParseIpNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseIpNetworkError> {
        let (address, len) = text.split_once('/').ok_or(ParseIpNetworkError::Len)?;
        let address = address.parse().map_err(|_| ParseIpNetworkError::Address)?;
        let is_plain = !len.is_empty() && len.bytes().all(|byte| byte.is_ascii_digit());
        let len = len.parse().ok().filter(|_| is_plain).ok_or(ParseIpNetworkError::Len)?;
        Self::new(address, len).ok_or(ParseIpNetworkError::Len)
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl fmt::Display for ParseIpNetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "it begins with an address, as in 10.0.0.0/8 or fd90::/64",
            Self::Len => {
                "it ends in a / and the length of the prefix, at most 32 with IPv4 and 128 with IPv6, as in 10.0.0.0/8"
            }
        })
    }
}

impl std::error::Error for ParseIpNetworkError {}

const PRIVATE: [(IpAddr, u8); 5] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> IpNetwork {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_read_and_printed() {
        for text in ["10.90.0.1/24", "0.0.0.0/0", "fd90::1/64", "::/0", "192.0.2.7/32"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("10.90.7.1/16").first().to_string(), "10.90.0.0/16");
        assert_eq!(network("fd90::7:1/64").first().to_string(), "fd90::/64");
    }

    #[test]
    fn invalid_network_is_refused() {
        use ParseIpNetworkError::{Address, Len};
        let cases =
            [("10.0.0.0", Len), ("10.0.0.0/33", Len), ("::/129", Len), ("10.0.0.0/", Len), ("10.0.0.0/+8", Len)];
        for (text, error) in cases.into_iter().chain([("10.0.0/8", Address), ("/8", Address), ("host/8", Address)]) {
            assert_eq!(text.parse::<IpNetwork>(), Err(error), "{text}");
        }
    }

    #[test]
    fn network_has_its_addresses_only() {
        let has = |of: &str, address: &str| network(of).has(address.parse().unwrap());
        assert!(has("10.90.0.1/24", "10.90.0.255") && !has("10.90.0.1/24", "10.90.1.0"));
        assert!(has("0.0.0.0/0", "192.0.2.1") && !has("0.0.0.0/0", "fd90::1") && !has("::/0", "192.0.2.1"));
        assert!(!has("fd90::/64", "10.90.0.1") && !has("10.90.0.0/24", "::"), "another family");
        assert!(has("fd90::/64", "fd90::ffff") && !has("fd90::/64", "fd90:0:0:1::"));
    }

    #[test]
    fn private_networks_are_told_from_public_ones() {
        for text in ["10.0.0.0/8", "172.31.0.0/16", "192.168.0.1/24", "100.64.0.0/10", "fd90::/64"] {
            assert!(network(text).is_private(), "{text}");
        }
        for text in ["10.0.0.0/7", "172.32.0.0/16", "8.8.8.8/24", "0.0.0.0/0", "2001:db8::/32", "::/0"] {
            assert!(!network(text).is_private(), "{text}");
        }
    }

    #[test]
    fn hosts_are_counted_and_numbered() {
        let hosts = |text: &str| network(text).hosts();
        assert_eq!(
            (hosts("10.90.0.1/24"), hosts("10.0.0.0/30"), hosts("10.0.0.0/31"), hosts("10.0.0.0/32")),
            (254, 2, 0, 0)
        );
        assert_eq!((hosts("fd90::/126"), hosts("fd90::/128"), hosts("::/0")), (3, 0, u128::MAX));
        assert_eq!(network("10.90.7.1/16").with(257).to_string(), "10.90.1.1");
        assert_eq!(network("fd90::7/64").with(2).to_string(), "fd90::2");
    }
}

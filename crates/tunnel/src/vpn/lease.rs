//! What a server tells a client of its place in the virtual network.
//!
//! ```text
//! lease    length 1 | addresses
//! address  04 or 06 | prefix length 1 | the client's | the server's
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch::RecvStream;

use super::ip_network::IpNetwork;

/// A client's addresses: one of IPv4, one of IPv6, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The addresses, at most one of a family.
    pub addresses: Vec<Address>,
}

/// The client's and the server's address in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The client's address, with the prefix of the network.
    pub own: IpNetwork,
    /// The server's address in the same network.
    pub server: IpAddr,
}

impl Lease {
    /// Whether this is an address of the client.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|of| of.own.address == address)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0];
        for Address { own, server } in &self.addresses {
            bytes.extend([if own.is_ipv4() { 4 } else { 6 }, own.len]);
            for address in [own.address, *server] {
                match address {
                    IpAddr::V4(address) => bytes.extend(address.octets()),
                    IpAddr::V6(address) => bytes.extend(address.octets()),
                }
            }
        }
        // Two addresses take 44 bytes.
        bytes[0] = (bytes.len() - 1) as u8;
        bytes
    }

    /// Reads a lease from the start of a stream. `None` as with [`Self::read`], or if the stream fails.
    pub(crate) async fn receive(stream: &mut RecvStream) -> Option<Self> {
        let mut len = [0];
        stream.read_exact(&mut len).await.ok()?;
        let mut bytes = vec![0; len[0].into()];
        stream.read_exact(&mut bytes).await.ok()?;
        Self::read(&bytes)
    }

    /// Reads what follows the length. `None` if it is malformed, or names what no server may give: addresses of the Internet, or those of other networks
    /// than its own.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut addresses: Vec<Address> = vec![];
        while let [family, len, rest @ ..] = bytes {
            let size = match family {
                4 => 4,
                6 => 16,
                _ => return None,
            };
            let (own, rest) = rest.split_at_checked(size)?;
            let (server, rest) = rest.split_at_checked(size)?;
            bytes = rest;
            let own = IpNetwork::new(address(own)?, *len)?;
            let given = Address { own, server: address(server)? };
            let is_known = addresses.iter().any(|of| of.own.is_ipv4() == own.is_ipv4());
            if is_known || !own.is_private() || !own.has(given.server) || own.address == given.server {
                return None;
            }
            addresses.push(given);
        }
        (bytes.is_empty() && !addresses.is_empty()).then_some(Self { addresses })
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(of: &[(&str, &str)]) -> Lease {
        let address =
            |(own, server): &(&str, &str)| Address { own: own.parse().unwrap(), server: server.parse().unwrap() };
        Lease { addresses: of.iter().map(address).collect() }
    }

    #[test]
    fn lease_is_read_as_it_was_written() {
        let of_both = lease(&[("10.90.0.2/24", "10.90.0.1"), ("fd90::2/64", "fd90::1")]);
        let bytes = of_both.to_bytes();
        assert_eq!((bytes[0], bytes.len()), (44, 45));
        assert_eq!(Lease::read(&bytes[1..]), Some(of_both));
        for len in [1, 5, 9, 11, 43] {
            assert_eq!(Lease::read(&bytes[1..=len]), None, "{len}");
        }
        assert!(Lease::read(&bytes[1..11]).is_some(), "IPv4 alone");
    }

    /// A server takes no address of the Internet or of another network from its client.
    #[test]
    fn lease_of_what_is_not_the_servers_is_refused() {
        let cases = [
            &[("8.8.8.8/24", "8.8.8.9")][..],
            &[("10.0.0.2/7", "10.0.0.1")],
            &[("10.90.0.2/24", "10.91.0.1")],
            &[("10.90.0.2/24", "10.90.0.2")],
            &[("10.90.0.2/24", "10.90.0.1"), ("10.91.0.2/24", "10.91.0.1")],
            &[("2001:db8::2/64", "2001:db8::1")],
            &[],
        ];
        for of in cases {
            assert_eq!(Lease::read(&lease(of).to_bytes()[1..]), None, "{of:?}");
        }
        assert_eq!(Lease::read(&[4, 33, 10, 90, 0, 2, 10, 90, 0, 1]), None);
        assert_eq!(Lease::read(&[5, 24, 10, 90, 0, 2, 10, 90, 0, 1]), None);
    }
}

//! Conversion between socket addresses and the engine's addresses.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use anabranch_proto::Address;

/// The engine's address; IPv4 is mapped into IPv6.
pub(crate) fn of(address: SocketAddr) -> Address {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    Address { address: ip.to_bits(), port: address.port() }
}

/// The socket address; a mapped address becomes IPv4.
pub(crate) fn plain(address: Address) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from_bits(address.address).to_canonical(), address.port)
}

/// The socket address for a socket of this family: an IPv6 socket needs IPv4 mapped.
pub(crate) fn for_family(address: Address, is_ipv6: bool) -> SocketAddr {
    if is_ipv6 {
        SocketAddrV6::new(Ipv6Addr::from_bits(address.address), address.port, 0, 0).into()
    } else {
        plain(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back() {
        for text in ["127.0.0.1:7", "[::1]:9", "[2001:db8::5]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(plain(of(address)), address);
        }
        let mapped = for_family(of("10.0.0.1:7".parse().unwrap()), true);
        assert_eq!(mapped, "[::ffff:10.0.0.1]:7".parse().unwrap());
        assert_eq!(plain(of(mapped)), "10.0.0.1:7".parse().unwrap());
    }
}

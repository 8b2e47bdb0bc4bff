//! Addresses of interfaces: `10.77.HOST.INTERFACE` and `fd77::HOST:INTERFACE`, both counted from 1. They are inside namespaces,
//! so they do not conflict with the machine's own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface of a host, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interface {
    /// The index of the host in [`Topology::hosts`](anabranch_sim::Topology::hosts).
    pub host: usize,
    /// The index of the interface at the host, from 0.
    pub number: usize,
}

impl Interface {
    /// The IPv4 address of the interface.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.host as u8 + 1, self.number as u8 + 1)
    }

    /// The IPv6 address of the interface.
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, self.host as u16 + 1, self.number as u16 + 1)
    }

    /// The interface with this address, if the address has this form.
    pub(crate) fn of(address: IpAddr) -> Option<Self> {
        let (host, number) = match address {
            IpAddr::V4(address) => match address.octets() {
                [10, 77, host, number] => (u16::from(host), u16::from(number)),
                _ => return None,
            },
            IpAddr::V6(address) => match address.segments() {
                [0xfd77, 0, 0, 0, 0, 0, host, number] => (host, number),
                _ => return None,
            },
        };
        Some(Self { host: usize::from(host.checked_sub(1)?), number: usize::from(number.checked_sub(1)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let interface = Interface { host: 63, number: 1 };
        assert_eq!(interface.ipv4().to_string(), "10.77.64.2");
        assert_eq!(interface.ipv6().to_string(), "fd77::40:2");
        for address in [interface.ipv4().into(), interface.ipv6().into()] {
            assert_eq!(Interface::of(address), Some(interface));
        }
    }

    #[test]
    fn addresses_of_nobody_are_nobodys() {
        for address in ["10.77.0.1", "10.77.1.0", "10.78.1.1", "224.0.0.22", "ff02::2", "fd77::1", "fe80::1:1"] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(Interface::of(address), None, "{address}");
        }
    }
}

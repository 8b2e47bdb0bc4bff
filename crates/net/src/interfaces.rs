//! The addresses of this computer, and which of them to pair with which of a peer's.

use std::net::{IpAddr, SocketAddr};

/// An address of one of the computer's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) ip: IpAddr,
    /// How many of its bits are its network's.
    pub(crate) prefix: u8,
}

impl Interface {
    /// All that can be called from elsewhere: not the computer's own, and none that is good for a single wire.
    pub(crate) fn all() -> Vec<Self> {
        // Without the list, an endpoint has the addresses that it was bound to, and those that the system chooses for it.
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let of = |interface: if_addrs::Interface| {
            let prefix = match &interface.addr {
                if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                if_addrs::IfAddr::V6(v6) => v6.prefixlen,
            };
            let is_good = !interface.is_loopback() && !interface.is_link_local();
            is_good.then_some(Self { ip: interface.ip(), prefix })
        };
        interfaces.into_iter().filter_map(of).collect()
    }

    /// Whether an address is in its network.
    fn has_near(&self, other: IpAddr) -> bool {
        match (self.ip, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

/// Which addresses of ours may reach which of the peer's, the peer's first one first: where one is in the network of some of ours, only those;
/// from elsewhere all of its family.
pub(crate) fn pairs(own: &[Interface], remotes: &[SocketAddr]) -> Vec<(IpAddr, SocketAddr)> {
    let mut pairs = vec![];
    for remote in remotes {
        let ip = remote.ip().to_canonical();
        let near = own.iter().filter(|interface| interface.has_near(ip));
        let is_near = near.clone().next().is_some();
        let family = own.iter().filter(|interface| !is_near && interface.ip.is_ipv4() == ip.is_ipv4());
        pairs.extend(near.chain(family).map(|interface| (interface.ip, SocketAddr::new(ip, remote.port()))));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(text: &str) -> Interface {
        let (ip, prefix) = text.split_once('/').unwrap();
        Interface { ip: ip.parse().unwrap(), prefix: prefix.parse().unwrap() }
    }

    fn paired(own: &[&str], remotes: &[&str]) -> Vec<(String, String)> {
        let own: Vec<_> = own.iter().map(|text| interface(text)).collect();
        let remotes: Vec<_> = remotes.iter().map(|text| text.parse().unwrap()).collect();
        pairs(&own, &remotes).iter().map(|(own, remote)| (own.to_string(), remote.to_string())).collect()
    }

    fn text(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(own, remote)| ((*own).to_owned(), (*remote).to_owned())).collect()
    }

    /// Two cables between two computers: the first ends at the first, the second at the second.
    #[test]
    fn neighbours_are_paired_by_their_networks() {
        let pairs = paired(&["10.0.1.1/24", "10.0.2.1/24"], &["10.0.1.2:7", "10.0.2.2:7"]);
        assert_eq!(pairs, text(&[("10.0.1.1", "10.0.1.2:7"), ("10.0.2.1", "10.0.2.2:7")]));
    }

    /// A telephone with two networks, and a server far away.
    #[test]
    fn who_is_far_is_reached_from_everywhere() {
        let pairs = paired(&["192.168.1.5/24", "10.7.0.3/16", "2001:db8::5/64"], &["203.0.113.9:7"]);
        assert_eq!(pairs, text(&[("192.168.1.5", "203.0.113.9:7"), ("10.7.0.3", "203.0.113.9:7")]));
    }

    #[test]
    fn families_are_not_mixed() {
        let pairs = paired(&["192.168.1.5/24", "2001:db8::5/64"], &["[2001:db8:9::1]:7"]);
        assert_eq!(pairs, text(&[("2001:db8::5", "[2001:db8:9::1]:7")]));
        assert_eq!(paired(&["192.168.1.5/24"], &["[2001:db8:9::1]:7"]), []);
    }
}

//! The addresses of this computer, and their pairing with a peer's addresses.

use std::net::{IpAddr, SocketAddr};

/// An address of an interface of this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The name of the interface, which may have several addresses.
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
    /// The length of the network prefix in bits.
    pub(crate) prefix: u8,
}

impl Interface {
    /// All addresses that other computers can reach: neither loopback nor link-local ones.
    pub(crate) fn all() -> Vec<Self> {
        // If the list is not available, an endpoint has the addresses to which it was bound and those that the system chooses.
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let of = |interface: if_addrs::Interface| {
            let prefix = match &interface.addr {
                if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                if_addrs::IfAddr::V6(v6) => v6.prefixlen,
            };
            let is_good = !interface.is_loopback() && !interface.is_link_local();
            is_good.then(|| Self { ip: interface.ip(), prefix, name: interface.name })
        };
        interfaces.into_iter().filter_map(of).collect()
    }

    /// Whether an address is in this interface's network.
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

/// The paths to add: one for each interface that has no path. The destination is an address of the peer in the interface's
/// network, else one outside of all our networks. Preferred are addresses without a path, then those of the first path's family,
/// so that an interface of the peer with both families counts once.
pub(crate) fn pairs(
    own: &[Interface],
    remotes: &[SocketAddr],
    paths: &[(IpAddr, SocketAddr)],
) -> Vec<(IpAddr, SocketAddr)> {
    let remotes: Vec<_> = remotes.iter().map(|it| SocketAddr::new(it.ip().to_canonical(), it.port())).collect();
    let mut used: Vec<&str> =
        own.iter().filter(|it| paths.iter().any(|(local, _)| *local == it.ip)).map(|it| it.name.as_str()).collect();
    let mut reached: Vec<SocketAddr> = paths.iter().map(|(_, remote)| *remote).collect();
    let mut pairs = vec![];
    for interface in own {
        let name = interface.name.as_str();
        if used.contains(&name) {
            continue;
        }
        let choices = own.iter().filter(|it| it.name == name).flat_map(|it| remotes.iter().map(move |to| (it, *to)));
        let may = |(it, to): &(&Interface, SocketAddr)| {
            let is_elsewhere = !own.iter().any(|other| other.has_near(to.ip()));
            it.has_near(to.ip()) || is_elsewhere && it.ip.is_ipv4() == to.is_ipv4()
        };
        let is_other_kind = |to: &SocketAddr| paths.first().is_some_and(|(_, first)| first.is_ipv4() != to.is_ipv4());
        let rank =
            |(it, to): &(&Interface, SocketAddr)| (!it.has_near(to.ip()), reached.contains(to), is_other_kind(to));
        let best = choices.filter(may).min_by_key(rank);
        if let Some((it, to)) = best {
            used.push(name);
            reached.push(to);
            pairs.push((it.ip, to));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(text: &str) -> Interface {
        let (name, address) = text.split_once(' ').unwrap();
        let (ip, prefix) = address.split_once('/').unwrap();
        Interface { name: name.to_owned(), ip: ip.parse().unwrap(), prefix: prefix.parse().unwrap() }
    }

    fn paired(own: &[&str], remotes: &[&str], first: (&str, &str)) -> Vec<(String, String)> {
        let own: Vec<_> = own.iter().map(|text| interface(text)).collect();
        let remotes: Vec<_> = remotes.iter().map(|text| text.parse().unwrap()).collect();
        let first = (first.0.parse().unwrap(), first.1.parse().unwrap());
        pairs(&own, &remotes, &[first]).iter().map(|(own, remote)| (own.to_string(), remote.to_string())).collect()
    }

    fn text(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(own, remote)| ((*own).to_owned(), (*remote).to_owned())).collect()
    }

    /// Two cables between two computers: they are paired by network, whatever the order of the ticket's addresses.
    #[test]
    fn neighbours_are_paired_by_their_networks() {
        let own = ["e0 10.0.1.1/24", "e1 10.0.2.1/24"];
        let pairs = paired(&own, &["10.0.1.2:7", "10.0.2.2:7"], ("10.0.1.1", "10.0.1.2:7"));
        assert_eq!(pairs, text(&[("10.0.2.1", "10.0.2.2:7")]));
        let pairs = paired(&own, &["10.0.1.2:7", "10.0.2.2:7"], ("10.0.2.1", "10.0.2.2:7"));
        assert_eq!(pairs, text(&[("10.0.1.1", "10.0.1.2:7")]));
    }

    /// A telephone with two networks, one of them with both address families, and a distant server.
    #[test]
    fn distant_peer_gets_one_path_per_interface() {
        let own = ["wlan 192.168.1.5/24", "wlan 2001:db8::5/64", "wwan 10.7.0.3/16"];
        let pairs = paired(&own, &["203.0.113.9:7", "[2001:db8:9::1]:7"], ("2001:db8::5", "[2001:db8:9::1]:7"));
        assert_eq!(pairs, text(&[("10.7.0.3", "203.0.113.9:7")]));
    }

    /// Both ends have two addresses: each of the peer's addresses gets a path.
    #[test]
    fn addresses_that_no_path_leads_to_come_first() {
        let own = ["e0 10.1.0.1/32", "e1 10.1.0.2/32"];
        let pairs = paired(&own, &["10.2.0.1:7", "10.2.0.2:7"], ("10.1.0.1", "10.2.0.1:7"));
        assert_eq!(pairs, text(&[("10.1.0.2", "10.2.0.2:7")]));
    }

    /// Each interface has both families, at both ends.
    #[test]
    fn an_interface_with_two_addresses_is_one() {
        let own = ["e0 10.1.0.1/32", "e0 fd77::1:1/128", "e1 10.1.0.2/32", "e1 fd77::1:2/128"];
        let remotes = ["10.2.0.1:7", "[fd77::2:1]:7", "10.2.0.2:7", "[fd77::2:2]:7"];
        let pairs = paired(&own, &remotes, ("fd77::1:1", "[fd77::2:1]:7"));
        assert_eq!(pairs, text(&[("fd77::1:2", "[fd77::2:2]:7")]));
        let pairs = paired(&own, &remotes, ("10.1.0.1", "10.2.0.1:7"));
        assert_eq!(pairs, text(&[("10.1.0.2", "10.2.0.2:7")]));
    }

    #[test]
    fn families_are_not_mixed() {
        let pairs = paired(&["e0 192.168.1.5/24", "e1 192.168.2.5/24"], &["[2001:db8:9::1]:7"], ("::1", "[::1]:7"));
        assert_eq!(pairs, []);
    }
}

//! Which packets go to the tunnel: rules of policy routing, and a table of their own.
//!
//! ```text
//! 6000  to PEER ipproto udp dport PORT    goto 6199                        the tunnel's own datagrams: as if there was no tunnel; TCP for a relay
//! 6064  to 10.0.0.0/8                     main, unless the route is as wide  what the system knows more closely stays as it is
//! 6065  to 10.0.0.0/8                     the table of the tunnel
//! 6199                                    nothing
//! ```
//!
//! A host route to the peer would do, too, until the network behind it changes, and it would remain after SIGKILL and mislead. These rules follow the system's
//! own routes, and those that remain after SIGKILL change nothing: the table is empty, as its routes go with the device. The next start removes them, if they read as
//! ours do; where another program has rules of these priorities, the next place is taken.
//!
//! The longest prefix wins as in a single table; among equals, the tunnel does, but not for the network that the server names, which might be one of ours.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anabranch_tunnel::vpn::{IpNetwork, Lease};

use super::ip::Ip;
use crate::failure::{Failure, Outcome};

/// The routes of a tunnel. They are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Routes {
    place: RoutingTable,
    lease: Lease,
    peers: BTreeSet<Outer>,
    /// What removes the rules that were added.
    added: Vec<Ip>,
}

/// Where the tunnel's own packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outer {
    pub(super) protocol: Protocol,
    pub(super) address: SocketAddr,
}

/// What carries them: TCP only to a relay that does not answer over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Udp,
    Tcp,
}

/// The table and the priorities of one tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoutingTable(u32);

impl RoutingTable {
    fn table(self) -> u32 {
        TABLE + self.0
    }

    fn base(self) -> u32 {
        BASE + WIDTH * self.0
    }

    fn end(self) -> u32 {
        self.base() + WIDTH - 1
    }

    /// A place that no running tunnel has, and no other program. Rules that a killed tunnel has left are removed.
    fn find() -> Result<Self, Failure> {
        for place in (0..PLACES).map(Self) {
            let has_routes = |is_ipv4| {
                let routes = Ip::of(is_ipv4, &format!("route show table {}", place.table()));
                !routes.text().trim().is_empty()
            };
            let left = [true, false].map(|is_ipv4| place.left(&Ip::of(is_ipv4, "rule show").text()));
            let [Some(of_ipv4), Some(of_ipv6)] = left else { continue };
            if has_routes(true) || has_routes(false) {
                continue;
            }
            for (is_ipv4, left) in [(true, of_ipv4), (false, of_ipv6)] {
                left.iter().try_for_each(|priority| Ip::of(is_ipv4, &format!("rule del pref {priority}")).run())?;
            }
            return Ok(place);
        }
        Err(Failure::failed(format!(
            "{PLACES} tunnels, or other programs, have rules of routing here already: `ip rule show`"
        )))
    }

    /// The priorities of this place in the text of `ip rule show`; `None` if a rule of another program is among them.
    fn left(self, text: &str) -> Option<Vec<u32>> {
        let rule = |line: &'_ str| {
            let (priority, what) = line.split_once(':')?;
            Some((priority.trim().parse::<u32>().ok()?, what.trim().to_owned()))
        };
        let here = text.lines().filter_map(rule).filter(|(priority, _)| (self.base()..=self.end()).contains(priority));
        here.map(|(priority, what)| self.is_ours(&what).then_some(priority)).collect()
    }

    /// Whether a tunnel at this place adds such a rule.
    fn is_ours(self, what: &str) -> bool {
        let Some(what) = what.strip_prefix("from all ") else { return false };
        let (table, end) = (format!("lookup {}", self.table()), format!(" goto {}", self.end()));
        // A network of all addresses is not shown, and a target may be missing.
        let what = what.trim_end_matches("[unresolved]").trim_end();
        let action = what.split_once(' ').filter(|(word, _)| *word == "to").and_then(|(_, rest)| rest.split_once(' '));
        let action = action.map_or(what, |(_, action)| action);
        action == "nop"
            || action == table
            || action.starts_with("lookup main suppress_prefixlength ")
            || ["udp", "tcp"].iter().any(|of| action.starts_with(&format!("ipproto {of} dport ")))
                && action.ends_with(&end)
    }
}

/// A rule or a route to add.
#[derive(Debug)]
struct Step {
    add: Ip,
    /// What removes it, if it is a rule: a rule with other words is another program's, whatever its priority.
    remove: Option<Ip>,
}

impl Step {
    fn rule(is_ipv4: bool, priority: u32, words: &str) -> Self {
        let command = |verb: &str| Ip::of(is_ipv4, &format!("rule {verb} pref {priority} {words}"));
        Self { add: command("add"), remove: Some(command("del")) }
    }
}

impl Routes {
    /// Routes these networks, and that of the lease, to a device, except for the datagrams to `peers`.
    pub(super) fn add(
        device: &str,
        lease: &Lease,
        routes: &[IpNetwork],
        peers: &BTreeSet<Outer>,
    ) -> Result<Self, Failure> {
        let place = RoutingTable::find()?;
        let mut added = Self { place, lease: lease.clone(), peers: BTreeSet::new(), added: vec![] };
        let steps = plan(place, device, lease, routes);
        let (table, rules): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| step.remove.is_none());
        // The table first, by which others see that this place is taken; the peers before what would catch them.
        table.into_iter().try_for_each(|step| added.step(step))?;
        added.except(peers)?;
        rules.into_iter().try_for_each(|step| added.step(step))?;
        Ok(added)
    }

    /// Keeps the datagrams to further addresses of the peer out of the tunnel.
    pub(super) fn except(&mut self, peers: &BTreeSet<Outer>) -> Outcome {
        for peer in peers {
            let number = self.peers.len() as u32;
            if number < PEERS_MAX && self.has(peer.address.is_ipv4()) && !self.peers.contains(peer) {
                self.peers.insert(*peer);
                let step = exception(self.place, number, peer);
                self.step(step)?;
            }
        }
        Ok(())
    }

    fn has(&self, is_ipv4: bool) -> bool {
        self.lease.addresses.iter().any(|address| address.own.is_ipv4() == is_ipv4)
    }

    fn step(&mut self, step: Step) -> Outcome {
        step.add.run()?;
        self.added.extend(step.remove);
        Ok(())
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for remove in self.added.drain(..).rev() {
            // Someone may have removed it.
            _ = remove.run();
        }
        for address in &self.lease.addresses {
            _ = Ip::of(address.own.is_ipv4(), &format!("route flush table {}", self.place.table())).run();
        }
    }
}

/// What is added for these routes.
fn plan(place: RoutingTable, device: &str, lease: &Lease, routes: &[IpNetwork]) -> Vec<Step> {
    let mut steps = vec![];
    for address in &lease.addresses {
        let is_ipv4 = address.own.is_ipv4();
        let mut rule = |priority: u32, words: &str| steps.push(Step::rule(is_ipv4, priority, words));
        rule(place.end(), "nop");
        let of_lease = address.own.first();
        let mut networks: Vec<_> =
            routes.iter().filter(|network| network.is_ipv4() == is_ipv4 && **network != of_lease).collect();
        networks.push(&of_lease);
        networks.sort_by_key(|network| (std::cmp::Reverse(network.len), network.address));
        networks.dedup();
        for (number, network) in networks.iter().enumerate() {
            let priority = place.base() + PEERS_MAX + 2 * number as u32;
            // The network that the server names gives way to an equal one of ours, unless the user has named it.
            let gives_way = **network == of_lease && !routes.contains(network);
            let widest = network.len - u8::from(gives_way);
            rule(priority, &format!("to {network} lookup main suppress_prefixlength {widest}"));
            rule(priority + 1, &format!("to {network} lookup {}", place.table()));
        }
        for network in networks {
            let words = format!("route add {network} dev {device} src {} table {}", address.own.address, place.table());
            steps.push(Step { add: Ip::of(is_ipv4, &words), remove: None });
        }
    }
    steps
}

/// The rule for the datagrams to an address of the peer.
fn exception(place: RoutingTable, number: u32, Outer { address, protocol }: &Outer) -> Step {
    let (priority, ip, port) = (place.base() + number, address.ip(), address.port());
    let protocol = match protocol {
        Protocol::Udp => "udp",
        Protocol::Tcp => "tcp",
    };
    Step::rule(address.is_ipv4(), priority, &format!("to {ip} ipproto {protocol} dport {port} goto {}", place.end()))
}

/// Tables and priorities that others do not use, as far as is known; Tailscale's rules have 5,210 to 5,270.
const TABLE: u32 = 5300;
const BASE: u32 = 6000;
const WIDTH: u32 = 200;

/// The tunnels of a computer.
const PLACES: u32 = 16;

/// Addresses of the peer and of its relay: a ticket has a few, and each place where the peer was has one.
const PEERS_MAX: u32 = 64;

/// The networks that are routed at most: two rules each.
pub(super) const ROUTES_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use anabranch_tunnel::vpn::Address;

    use super::*;

    fn lease() -> Lease {
        let own = Address { own: "10.90.0.2/24".parse().unwrap(), server: "10.90.0.1".parse().unwrap() };
        Lease { addresses: vec![own] }
    }

    fn planned(routes: &[&str]) -> Vec<String> {
        let routes: Vec<_> = routes.iter().map(|text| text.parse().unwrap()).collect();
        plan(RoutingTable(0), "t", &lease(), &routes).iter().map(|step| step.add.line()).collect()
    }

    #[test]
    fn longer_prefixes_are_looked_up_first() {
        let expected = [
            "-4 rule add pref 6199 nop",
            "-4 rule add pref 6064 to 10.90.0.0/24 lookup main suppress_prefixlength 23",
            "-4 rule add pref 6065 to 10.90.0.0/24 lookup 5300",
            "-4 rule add pref 6066 to 10.0.0.0/8 lookup main suppress_prefixlength 8",
            "-4 rule add pref 6067 to 10.0.0.0/8 lookup 5300",
            "-4 rule add pref 6068 to 0.0.0.0/0 lookup main suppress_prefixlength 0",
            "-4 rule add pref 6069 to 0.0.0.0/0 lookup 5300",
            "-4 route add 10.90.0.0/24 dev t src 10.90.0.2 table 5300",
            "-4 route add 10.0.0.0/8 dev t src 10.90.0.2 table 5300",
            "-4 route add 0.0.0.0/0 dev t src 10.90.0.2 table 5300",
        ];
        assert_eq!(planned(&["0.0.0.0/0", "::/0", "10.0.0.0/8", "10.0.0.0/8"]), expected);
    }

    /// Who names the VPN's own network wants it to win.
    #[test]
    fn named_network_of_the_lease_does_not_give_way() {
        let planned = planned(&["10.90.0.0/24"]);
        assert!(planned.iter().any(|line| line.ends_with("suppress_prefixlength 24")), "{planned:?}");
        assert_eq!(planned.len(), 4);
    }

    #[test]
    fn datagrams_to_the_peer_skip_the_rules() {
        let of =
            |protocol, peer: &str| exception(RoutingTable(1), 3, &Outer { protocol, address: peer.parse().unwrap() });
        let step = |peer| of(Protocol::Udp, peer).add.line();
        assert_eq!(step("192.0.2.1:4433"), "-4 rule add pref 6203 to 192.0.2.1 ipproto udp dport 4433 goto 6399");
        assert_eq!(step("[2001:db8::1]:1"), "-6 rule add pref 6203 to 2001:db8::1 ipproto udp dport 1 goto 6399");
        let relay = of(Protocol::Tcp, "192.0.2.9:443").add.line();
        assert_eq!(relay, "-4 rule add pref 6203 to 192.0.2.9 ipproto tcp dport 443 goto 6399");
        let left = "6203:\tfrom all to 192.0.2.9 ipproto tcp dport 443 goto 6399\n";
        assert_eq!(RoutingTable(1).left(left), Some(vec![6203]));
    }

    #[test]
    fn rules_of_a_killed_tunnel_are_recognised() {
        let text = "0:\tfrom all lookup local\n6000:\tfrom all to 192.0.2.1 ipproto udp dport 9 goto 6199\n6064:\tfrom all to 10.90.0.0/24 lookup main suppress_prefixlength 23\n\
             6065:\tfrom all to 10.90.0.0/24 lookup 5300\n6067:\tfrom all lookup 5300\n6199:\tfrom all nop\n6200:\tfrom all to 192.0.2.1 ipproto udp dport 9 goto 6399 [unresolved]\n\
             32766:\tfrom all lookup main\n";
        assert_eq!(RoutingTable(0).left(text), Some(vec![6000, 6064, 6065, 6067, 6199]));
        assert_eq!(RoutingTable(1).left(text), Some(vec![6200]));
        assert_eq!(RoutingTable(2).left(text), Some(vec![]));
    }

    /// What another program has at priorities of ours is not removed: its place is not taken.
    #[test]
    fn rules_of_others_are_left_alone() {
        for what in [
            "from all fwmark 0x80000/0xff0000 lookup main",
            "from all lookup 52",
            "from 10.0.0.1 nop",
            "from all to 10.0.0.0/8 lookup 5301",
        ] {
            let text = format!("6010:\t{what}\n6199:\tfrom all nop\n");
            assert_eq!((RoutingTable(0).left(&text), RoutingTable(1).left(&text)), (None, Some(vec![])), "{what}");
        }
    }

    /// All rules of a place have priorities of their own.
    #[test]
    fn places_have_room_for_all_rules() {
        let last = RoutingTable(0).base() + PEERS_MAX + 2 * (ROUTES_MAX as u32 + 1) + 1;
        assert!(last < RoutingTable(0).end() && RoutingTable(PLACES - 1).end() < 32_766, "{last}");
    }
}

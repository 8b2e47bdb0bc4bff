//! The plan of what must be created for a network, as text: names, addresses, settings of namespaces, commands for `ip`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::address::Interface;
use crate::emulation::Emulation;
use crate::interfaces::{Refusal, attachments};
use crate::name::{Name, Namespace};
use anabranch_sim::Topology;

/// Everything that is created for an emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The name of the emulator.
    pub name: Name,
    /// The namespaces, one for each host.
    pub hosts: Vec<HostPlan>,
}

/// A host: a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The name of the node.
    pub name: String,
    /// The name of the namespace.
    pub namespace: Namespace,
    /// The interfaces, in the order of their sending links.
    pub interfaces: Vec<InterfacePlan>,
    /// The input of `ip -4 -batch` in the namespace.
    pub ipv4_commands: String,
    /// The input of `ip -6 -batch` in the namespace.
    pub ipv6_commands: String,
}

/// An interface: a TUN device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfacePlan {
    /// The name of the device.
    pub device: String,
    /// The scenario's name of the sending link. Both ends of a duplex link have the same name.
    pub link: String,
    /// The IPv4 address of the interface.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address of the interface.
    pub ipv6: Ipv6Addr,
}

/// The user's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The MTU in bytes.
    pub mtu: u16,
    /// The kernel's default congestion control. It is Linux' `reno`, not the machine's default: if that is `bbr`, its pacing
    /// remains on a socket that changes to another law.
    pub congestion_control: String,
    /// Whether packets that arrive at the same time are joined, as network cards with receive offload (GRO) do.
    pub offload: bool,
    /// Whether routers say nothing of packets that are longer than a link's MTU, instead of answering by ICMP.
    pub black_holes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mtu: 1500, congestion_control: "reno".to_owned(), offload: false, black_holes: false }
    }
}

/// The queue of a device towards the emulator, in packets. TUN drops further packets without informing the sender. With the
/// kernel's default of 500, a burst that fits a socket buffer lost 321 packets.
const DEVICE_QUEUE: u32 = 20_000;

/// The largest TCP socket buffer in bytes, in both directions: four times the bandwidth-delay product of 200 Mbit/s and 300 ms.
/// The kernel's default of 6 MB is below that product.
const SOCKET_BUFFER_MAX: u32 = 32 << 20;

/// The first routing table of an interface. The system uses the numbers 0 and 253 to 255.
const TABLE_FIRST: usize = 1000;

/// The longest name of a device (IFNAMSIZ without the terminating zero).
const DEVICE_NAME_MAX: usize = 15;

impl Plan {
    /// The plan for `network` under this name.
    ///
    /// # Errors
    /// If the network cannot be emulated.
    pub fn new(name: &Name, network: &Topology, settings: &Settings) -> Result<Self, Refusal> {
        let emulation = Emulation::new(network)?;
        let attachments = attachments(network)?;
        let mut hosts = vec![];
        for (host, interfaces) in attachments.iter().enumerate() {
            let links = interfaces.iter().map(|interface| both_ways(&network.wires[interface.out].id));
            let devices = devices(links.clone());
            let interfaces = (0..).zip(links).zip(devices).map(|((number, link), device)| {
                let interface = Interface { host, number };
                InterfacePlan { device, link: link.to_owned(), ipv4: interface.ipv4(), ipv6: interface.ipv6() }
            });
            let name_of_host = network.nodes[network.hosts[host]].clone();
            hosts.push(HostPlan {
                namespace: Namespace::new(name, &name_of_host).map_err(Refusal::HostName)?,
                name: name_of_host,
                interfaces: interfaces.collect(),
                ipv4_commands: String::new(),
                ipv6_commands: String::new(),
            });
        }
        let mut plan = Self { name: name.clone(), hosts };
        for host in 0..plan.hosts.len() {
            plan.hosts[host].ipv4_commands = plan.commands(host, &emulation, settings, Family::V4);
            plan.hosts[host].ipv6_commands = plan.commands(host, &emulation, settings, Family::V6);
        }
        Ok(plan)
    }

    /// `/etc/hosts` of the namespaces: `h1` is the first IPv4 address of host `h1`, `h1.LINK` the address of its interface on a
    /// link, and `h1.v6` the first IPv6 address. Each name has one address, so that programs have no choice.
    pub fn hosts_file(&self) -> String {
        let mut file = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for host in &self.hosts {
            for (number, InterfacePlan { link, ipv4, ipv6, .. }) in host.interfaces.iter().enumerate() {
                let name = &host.name;
                let (plain, plain_v6) =
                    if number == 0 { (format!(" {name}"), format!(" {name}.v6")) } else { Default::default() };
                // Writing to a string cannot fail.
                _ = writeln!(file, "{ipv4}{plain} {name}.{link}");
                _ = writeln!(file, "{ipv6}{plain_v6} {name}.{link}.v6");
            }
        }
        file
    }

    /// Files below `/proc/sys/net` with their values in every namespace. They are written before the namespace has devices.
    pub fn sysctls(settings: &Settings) -> Vec<(&'static str, String)> {
        let off = || "0".to_owned();
        vec![
            ("ipv4/tcp_congestion_control", settings.congestion_control.clone()),
            // A connection must not inherit path metrics from an earlier one.
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("ipv4/tcp_rmem", format!("4096 131072 {SOCKET_BUFFER_MAX}")),
            ("ipv4/tcp_wmem", format!("4096 16384 {SOCKET_BUFFER_MAX}")),
            // Packets of the two directions may use different interfaces.
            ("ipv4/conf/all/rp_filter", off()),
            ("ipv4/conf/default/rp_filter", off()),
            // Nothing answers these packets, and each would occupy a link.
            ("ipv6/conf/default/accept_dad", off()),
            ("ipv6/conf/default/accept_ra", off()),
            ("ipv6/conf/default/router_solicitations", off()),
            ("ipv6/conf/default/addr_gen_mode", "1".to_owned()),
        ]
    }

    fn commands(&self, host: usize, emulation: &Emulation, settings: &Settings, family: Family) -> String {
        let own = &self.hosts[host].interfaces;
        let mut lines = vec![];
        if family == Family::V4 {
            lines.push("link set dev lo up".to_owned());
            for InterfacePlan { device, .. } in own {
                lines.push(format!("link set dev {device} mtu {} txqueuelen {DEVICE_QUEUE} up", settings.mtu));
            }
        }
        for interface in own {
            lines.push(format!("addr add {} dev {}{}", family.prefix(interface), interface.device, family.no_dad()));
        }
        for (peer, HostPlan { interfaces, .. }) in self.hosts.iter().enumerate().filter(|(peer, _)| *peer != host) {
            for (number, interface) in interfaces.iter().enumerate() {
                if let Some(nearest) = emulation.nearest(host, Interface { host: peer, number }) {
                    let (to, out) = (family.prefix(interface), &own[nearest]);
                    lines.push(format!("route add {to} dev {} src {}", out.device, family.address(out)));
                }
            }
        }
        // The source address selects the interface. With one interface there is no choice.
        if own.len() > 1 {
            for (number, interface) in own.iter().enumerate() {
                let table = TABLE_FIRST + number;
                lines.push(format!("route add default dev {} table {table}", interface.device));
                lines.push(format!("rule add from {} table {table}", family.prefix(interface)));
            }
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// An IP version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn address(self, interface: &InterfacePlan) -> String {
        match self {
            Self::V4 => interface.ipv4.to_string(),
            Self::V6 => interface.ipv6.to_string(),
        }
    }

    /// The address as a prefix of full length.
    fn prefix(self, interface: &InterfacePlan) -> String {
        let bits = if self == Self::V4 { 32 } else { 128 };
        format!("{}/{bits}", self.address(interface))
    }

    /// Disables duplicate address detection.
    fn no_dad(self) -> &'static str {
        if self == Self::V4 { "" } else { " nodad" }
    }
}

/// The name of the link of a direction.
fn both_ways(id: &str) -> &str {
    id.strip_suffix(".reverse").unwrap_or(id)
}

/// A device per link, with the link's name if that is valid as a device name, else with a number.
fn devices<'a>(links: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::from(["lo".to_owned()]);
    let mut devices = vec![];
    for (number, link) in links.enumerate() {
        let numbers = (number..).map(|number| format!("link{number}"));
        let fits = |name: &String| name.len() <= DEVICE_NAME_MAX && !taken.contains(name);
        let device = std::iter::once(link.to_owned()).chain(numbers).find(fits).expect("numbers do not end");
        taken.insert(device.clone());
        devices.push(device);
    }
    devices
}

#[cfg(test)]
mod tests;

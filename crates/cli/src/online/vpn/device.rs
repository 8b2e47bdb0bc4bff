//! The TUN device.

use std::fs;
use std::io;
use std::net::IpAddr;

use anabranch_tunnel::vpn::{Device, IpNetwork, MTU_MIN};
use tun_rs::{AsyncDevice, DeviceBuilder};

use super::ip::{self, Ip};
use crate::failure::{Failure, Outcome};

/// A TUN device. It vanishes with this process, and with it its addresses and routes.
pub(super) struct Tun {
    device: AsyncDevice,
    name: String,
}

impl Tun {
    /// Makes a device of this name. The runtime must have I/O.
    ///
    /// # Errors
    /// If the system has none, or does not let this user.
    pub(super) fn open(name: &str) -> Result<Self, Failure> {
        ip::check()?;
        let opened = DeviceBuilder::new().name(name).inherit_enable_state().build_async();
        let named = opened.and_then(|device| Ok(Self { name: device.name()?, device }));
        let tun = named.map_err(|error| Failure::usage(refusal(name, &error)))?;
        tun.set_mtu(MTU_MIN);
        Ok(tun)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Gives it these addresses, in the place of others, and sets it up.
    pub(super) fn set_addresses(&self, addresses: &[IpNetwork]) -> Outcome {
        let name = &self.name;
        Ip::new(&format!("address flush dev {name}")).run()?;
        for address in addresses {
            // Nobody else has the address, so nothing has to be asked.
            let words = if address.is_ipv4() { "" } else { "nodad" };
            Ip::of(address.is_ipv4(), &format!("address add {address} dev {name} {words}")).run()?;
        }
        Ip::new(&format!("link set dev {name} up")).run()
    }
}

impl Device for Tun {
    async fn recv(&self, packet: &mut [u8]) -> io::Result<usize> {
        self.device.recv(packet).await
    }

    async fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).await.map(drop)
    }

    fn set_mtu(&self, mtu: u16) {
        // If the device is gone, reading it tells.
        _ = self.device.set_mtu(mtu);
    }
}

/// The networks of the other devices, by their addresses.
pub(super) fn networks_besides(device: &str) -> Vec<(String, IpNetwork)> {
    listed(&Ip::new("-o address show").text()).filter(|(name, _)| name != device).collect()
}

/// What `ip -o address show` lists, without addresses that only this computer sees.
fn listed(text: &str) -> impl Iterator<Item = (String, IpNetwork)> {
    text.lines().filter_map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, name, "inet" | "inet6", address, rest @ ..] = &words[..] else { return None };
        // `ADDRESS peer NETWORK`, or the address with its prefix.
        let network = if let ["peer", peer, ..] = rest { peer } else { address };
        let network: IpNetwork = network.parse().ok()?;
        let is_link_local = matches!(network.address, IpAddr::V6(address) if address.is_unicast_link_local());
        (!is_link_local && !network.address.is_loopback()).then(|| ((*name).to_owned(), network))
    })
}

pub(super) fn host(address: IpAddr) -> IpNetwork {
    IpNetwork { address, len: if address.is_ipv4() { 32 } else { 128 } }
}

/// Why there is no device, and what to do.
fn refusal(name: &str, error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied => "a virtual network needs root, or CAP_NET_ADMIN: run the command by sudo",
        io::ErrorKind::NotFound => {
            "there is no /dev/net/tun: load the module (modprobe tun); a container needs --device /dev/net/tun"
        }
        io::ErrorKind::ResourceBusy => return format!("another program has the device {name}: choose another name"),
        _ => return format!("the device {} cannot be made: {error}", name.replace("%d", "")),
    };
    text.to_owned()
}

/// Whether the system forwards packets of this family.
pub(super) fn does_forward(is_ipv4: bool) -> bool {
    let file = if is_ipv4 { "/proc/sys/net/ipv4/ip_forward" } else { "/proc/sys/net/ipv6/conf/all/forwarding" };
    fs::read_to_string(file).is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_devices_are_read() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n2: eth0    inet 192.168.1.5/24 brd 192.168.1.255 scope global eth0\n\
            2: eth0    inet6 fd77::5/64 scope global \\   valid_lft forever\n2: eth0    inet6 fe80::1/64 scope link\n\
            3: tun0    inet 10.8.0.6 peer 10.8.0.5/32 scope global tun0\nnonsense\n";
        let read: Vec<_> = listed(text).map(|(name, network)| format!("{name} {network}")).collect();
        assert_eq!(read, ["eth0 192.168.1.5/24", "eth0 fd77::5/64", "tun0 10.8.0.5/32"]);
    }
}

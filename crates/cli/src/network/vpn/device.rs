//! The TUN device.

use std::fs;
use std::io;
use std::net::IpAddr;

use anabranch_tunnel::vpn::{Device, MTU_MIN, Network};
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
    pub(super) fn set_addresses(&self, addresses: &[Network]) -> Outcome {
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

/// The address of one host.
pub(super) fn host(address: IpAddr) -> Network {
    Network { address, len: if address.is_ipv4() { 32 } else { 128 } }
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

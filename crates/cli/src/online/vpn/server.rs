//! The virtual network of `anabranch tunnel serve`.

use std::io::Write as _;

use anabranch_tunnel::vpn::{Hub, IpNetwork};
use serde::Serialize;

use super::device::{Tun, does_forward};
use crate::args::online::TunnelServe;
use crate::failure::{Failure, Outcome};

/// A network whose device is made, and has no address yet.
pub(in crate::online) struct Server {
    hub: Hub,
    tun: Tun,
    own: Vec<IpNetwork>,
}

/// The document of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum VpnServerEvent<'a> {
    Network { device: &'a str, addresses: Vec<String> },
}

impl Server {
    /// Makes the device, if there is to be a network.
    pub(in crate::online) fn open(args: &TunnelServe) -> Result<Option<Self>, Failure> {
        if args.vpn.is_empty() {
            return Ok(None);
        }
        let hub = Hub::new(&args.vpn).ok_or_else(|| {
            Failure::usage(
                "--vpn is this computer's address in a private network with room for clients, such as 10.90.0.1/24, and if there is one of IPv6, too, it \
                 has the same number: fd90::1/64",
            )
        })?;
        let tun = Tun::open(&args.vpn_device)?;
        Ok(Some(Self { hub, tun, own: args.vpn.clone() }))
    }

    /// Gives the device its addresses. The future serves clients.
    pub(in crate::online) fn begin(self, json: bool) -> Result<(Hub, impl Future<Output = Outcome>), Failure> {
        let Self { hub, tun, own } = self;
        tun.set_addresses(&own)?;
        if json {
            let addresses = own.iter().map(IpNetwork::to_string).collect();
            crate::online::print_line(&VpnServerEvent::Network { device: tun.name(), addresses })?;
        } else {
            let mut out = anstream::stderr();
            let list: Vec<_> = own.iter().map(IpNetwork::to_string).collect();
            writeln!(
                out,
                "clients of {} join by `anabranch tunnel vpn TICKET`; the device is {}",
                list.join(" and "),
                tun.name()
            )?;
            for network in own.iter().filter(|network| !does_forward(network.is_ipv4())) {
                writeln!(out, "{}", advice(network, tun.name()))?;
            }
        }
        let serving = hub.clone();
        let run = async move {
            let ended = serving.run(&tun).await;
            let reason = ended.err().map_or_else(String::new, |error| format!(": {error}"));
            Err(Failure::failed(format!("the device {} is gone{reason}", tun.name())))
        };
        Ok((hub, run))
    }
}

/// What to do so that clients reach what is behind this computer, which forwards nothing.
fn advice(network: &IpNetwork, device: &str) -> String {
    let (family, setting, of) = if network.is_ipv4() {
        ("IPv4", "net.ipv4.ip_forward", "ip")
    } else {
        ("IPv6", "net.ipv6.conf.all.forwarding", "ip6")
    };
    let first = network.first();
    format!(
        "This computer forwards no {family}, so clients reach it alone. To let them go on in its name:\n\n  sysctl -w {setting}=1 && nft 'table {of} anabranch \
         {{ chain nat {{ type nat hook postrouting priority 100; {of} saddr {first} oifname != {device} masquerade; }}; }}'\n"
    )
}

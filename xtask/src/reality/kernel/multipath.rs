//! A flow of several paths as a connection of MPTCP.

use std::net::Ipv4Addr;

use super::flow::Flow;
use crate::links::{json, output};

/// The port at which the destination offers a second subflow over the same link.
const PORT: &str = "6001";

/// What makes a program's TCP sockets MPTCP sockets.
pub(super) fn wrapper(flow: &Flow) -> &'static [&'static str] {
    if flow.paths.is_empty() { &[] } else { &["mptcpize", "run"] }
}

/// Lets both ends make a subflow for each path of the flow.
pub(super) fn prepare(anabranch: &str, name: &str, flow: &Flow) -> Result<(), String> {
    let Some((first, others)) = flow.paths.split_first() else { return Ok(()) };
    let at = |host: &str, words: &[&str]| {
        output(anabranch, &[&["link", "exec", host, "--name", name, "--", "ip"], words].concat())
    };
    for host in [&flow.from, &flow.to] {
        at(host, &["mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"])?;
        at(host, &["mptcp", "endpoint", "flush"])?;
    }
    for link in others {
        let address = |host: &str| -> Result<String, String> {
            let shown = json(&at(host, &["-4", "-j", "address", "show", "dev", link])?)?;
            let address = shown[0]["addr_info"][0]["local"].as_str().ok_or("a device without an address")?;
            let address: Ipv4Addr = address.parse().map_err(|_| format!("`{address}` is no address"))?;
            Ok(address.to_string())
        };
        let add = |host: &str, words: &[&str]| -> Result<(), String> {
            at(host, &[&["mptcp", "endpoint", "add", &address(host)?], words].concat()).map(drop)
        };
        if link == first {
            add(&flow.to, &["port", PORT, "signal"])?;
        } else {
            add(&flow.from, &["subflow"])?;
            add(&flow.to, &["signal"])?;
        }
    }
    Ok(())
}

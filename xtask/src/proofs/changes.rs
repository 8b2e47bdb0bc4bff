//! The path changes in the middle of a transfer: its MTU falls, it loses ECN-capable packets, or the sender gets another address.
//! And a path whose way back is narrow.

use std::thread::sleep;
use std::time::Duration;

use super::arrivals::{Arrivals, Running, unix_now};
use super::program::Program;
use super::{Bench, NAME, ONE, SOON, Table};
use crate::links::{Links, output};

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    for mtu in [1400, 1280] {
        narrower(bench, table, mtu)?;
    }
    another_address(bench, table)?;
    own_address(bench, table)?;
    without_ecn(bench, table)?;
    narrow_way_back(bench, table)
}

/// The time of the change, in seconds since the links began.
const CHANGE: f64 = 8.0;
/// The duration of a transfer in seconds.
const SECONDS: u32 = 20;

/// The MTU of the link falls from 1500 bytes to `mtu`, without an ICMP message.
fn narrower(bench: &Bench, table: &mut Table, mtu: u32) -> Result<(), String> {
    let change = format!("link.there.mtu_changes=[{{ at = \"{CHANGE}s\", mtu = \"{mtu}B\" }}]");
    let links = Links::up_with(&bench.anabranch, NAME, ONE, &[&change], &["--black-holes"])?;
    output(&bench.anabranch, &["link", "restart", NAME])?;
    let begin = unix_now();
    let arrivals = Running::begin(bench, SECONDS, 4, false)?.end()?;
    let lost = links.status()?["links"][0]["dropped_packets"].as_u64().unwrap_or_default();
    links.down()?;
    table.row(&format!("path MTU to {mtu}, too long"), "some packets", &format!("{lost} packets dropped"), lost > 0);
    let (is_equal, content) = arrivals.content();
    table.row(&format!("path MTU to {mtu}, content"), "all of it", &content, is_equal);
    let at = arrivals.at(begin + CHANGE);
    table.note(&format!("path MTU to {mtu}, cost"), &cost(&arrivals, at));
    Ok(())
}

const BESIDE: &str = "xtask/src/proofs/two.toml";

/// A NAT at the sender's side loses its state: from then on the receiver sees another address and port, over another link.
fn another_address(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let links = Links::up(&bench.anabranch, NAME, BESIDE, &[])?;
    let (arrivals, middle) = (bench.example("arrivals")?, bench.example("middle")?);
    let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&arrivals, "serve", "[::]:0"]))?;
    let ticket = server.line(SOON)?;
    let mut translator =
        Program::start(&bench.anabranch, &bench.at("a", &[&middle, "127.0.0.1:0", "10.77.1.1", &ticket]))?;
    let ticket = translator.line(SOON)?;
    let running = Running::call(bench, server, &ticket, SECONDS, 4, false)?;
    sleep(Duration::from_secs_f64(CHANGE));
    let changed = unix_now();
    translator.tell("rebind 10.77.1.2")?;
    let arrivals = running.end()?;
    links.down()?;
    let (is_equal, content) = arrivals.content();
    table.row("another address and port, content", "all of it", &content, is_equal);
    let at = arrivals.at(changed);
    table.note("another address and port, cost", &cost(&arrivals, at));
    Ok(())
}

/// The sender's address is removed, and the system has a route from another one: the transfer moves there within a second.
fn own_address(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let links = Links::up(&bench.anabranch, NAME, BESIDE, &[])?;
    let arrivals = bench.example("arrivals")?;
    let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&arrivals, "serve", "0.0.0.0:0"]))?;
    let ticket = server.line(SOON)?;
    let running = Running::call(bench, server, &ticket, SECONDS, 4, false)?;
    sleep(Duration::from_secs_f64(CHANGE));
    let host = format!("anabranch.{NAME}.a");
    let changed = unix_now();
    output("ip", &["-n", &host, "route", "replace", "10.77.2.1", "dev", "second", "src", "10.77.1.2"])?;
    output("ip", &["-n", &host, "address", "delete", "10.77.1.1/32", "dev", "first"])?;
    let arrivals = running.end()?;
    links.down()?;
    goes_on(table, "own address removed", &arrivals, arrivals.at(changed));
    Ok(())
}

/// From the change on, the receiver's host drops all ECN-capable packets.
fn without_ecn(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let links = Links::up(&bench.anabranch, NAME, ONE, &[])?;
    let host = format!("anabranch.{NAME}.b");
    let rule = |arguments: &[&str]| output("ip", &[&["netns", "exec", &host, "nft"], arguments].concat());
    if rule(&["add", "table", "inet", "proof"]).is_err() {
        table.not_run("ECN-capable packets dropped: install nftables");
        return links.down();
    }
    rule(&["add", "chain", "inet", "proof", "input", "{ type filter hook input priority 0; }"])?;
    let running = Running::begin(bench, SECONDS, 4, false)?;
    sleep(Duration::from_secs_f64(CHANGE));
    let changed = unix_now();
    rule(&["add", "rule", "inet", "proof", "input", "ip", "ecn", "!=", "not-ect", "drop"])?;
    rule(&["add", "rule", "inet", "proof", "input", "ip6", "ecn", "!=", "not-ect", "drop"])?;
    let arrivals = running.end()?;
    links.down()?;
    goes_on(table, "ECN-capable packets dropped", &arrivals, arrivals.at(changed));
    Ok(())
}

/// The content arrives, and after the change no gap is longer than a second.
fn goes_on(table: &mut Table, what: &str, arrivals: &Arrivals, at: f64) {
    let (is_equal, content) = arrivals.content();
    table.row(&format!("{what}, content"), "all of it", &content, is_equal);
    let is_soon = arrivals.longest_gap(at - 0.2, at + 5.0) <= 1.0;
    table.row(&format!("{what}, cost"), "no gap above 1 s", &cost(arrivals, at), is_soon);
}

/// [rfc-3449]: 50 Mbit/s one way, and so little the other way that an ACK for each second segment does not pass.
fn narrow_way_back(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let there = ["link.there.rate=50Mbit/s", "link.there.delay=20ms", "link.there.queue.packets=160"];
    for (back, least) in [("1Mbit/s", 44e6), ("500kbit/s", 40e6)] {
        let narrow =
            format!("link.there.reverse={{ rate = \"{back}\", queue = {{ kind = \"drop_tail\", packets = 50 }} }}");
        let links = Links::up(&bench.anabranch, NAME, ONE, &[&there[..], &[&narrow]].concat())?;
        let arrivals = Running::begin(bench, SECONDS, 1, false)?.end()?;
        links.down()?;
        let rate = arrivals.rate(4.0, f64::from(SECONDS));
        let (aim, measured) = (format!("{:.0} Mbit/s", least / 1e6), format!("{:.1} Mbit/s from 4 s on", rate / 1e6));
        table.row(&format!("50 Mbit/s, {back} back"), &aim, &measured, rate >= least);
    }
    Ok(())
}

/// The cost of a change at this time.
fn cost(arrivals: &Arrivals, at: f64) -> String {
    format!(
        "longest gap {:.0} ms; {:.1} Mbit/s before, {:.1} from 3 s after it",
        arrivals.longest_gap(at - 0.2, at + 3.0) * 1e3,
        arrivals.rate(at - 3.0, at) / 1e6,
        arrivals.rate(at + 3.0, at + 10.0) / 1e6
    )
}

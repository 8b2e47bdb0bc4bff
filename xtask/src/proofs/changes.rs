//! The path changes in the middle of a transfer: its MTU falls, or the sender gets another address.

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
    another_address(bench, table)
}

/// The time of the change, in seconds since the links began.
const CHANGE: f64 = 8.0;
/// The duration of a transfer in seconds.
const SECONDS: u32 = 20;

/// The MTU of the link falls from 1500 bytes to `mtu`, without an ICMP message.
fn narrower(bench: &Bench, table: &mut Table, mtu: u32) -> Result<(), String> {
    let change = format!("link.there.mtu_changes=[{{ at = \"{CHANGE}s\", mtu = \"{mtu}B\" }}]");
    let links = Links::up(&bench.anabranch, NAME, ONE, &[&change])?;
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

/// The cost of a change at this time.
fn cost(arrivals: &Arrivals, at: f64) -> String {
    format!(
        "longest gap {:.0} ms; {:.1} Mbit/s before, {:.1} from 3 s after it",
        arrivals.longest_gap(at - 0.2, at + 3.0) * 1e3,
        arrivals.rate(at - 3.0, at) / 1e6,
        arrivals.rate(at + 3.0, at + 10.0) / 1e6
    )
}

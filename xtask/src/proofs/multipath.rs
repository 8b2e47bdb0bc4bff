//! Two paths at once: the sum of their rates, and the cost of a path failure.

use std::thread::sleep;
use std::time::Duration;

use super::arrivals::{Running, unix_now};
use super::{Bench, NAME, Table};
use crate::links::{Links, output};

const TWO: &str = "xtask/src/proofs/two.toml";

/// The rate of both paths together, headers included, in bits a second.
const SUM: f64 = 100e6;

/// The settings of the links, and the target as a share of the sum.
const PAIRS: [(&str, &[&str], f64); 2] = [
    ("50 and 50 ms", &[], 0.94),
    (
        "20 and 200 ms",
        &[
            "link.first.delay=10ms",
            "link.first.queue.packets=200",
            "link.second.delay=100ms",
            "link.second.queue.packets=833",
        ],
        0.90,
    ),
];

/// The time after which slow start is over.
const FROM: f64 = 8.0;
const UNTIL: f64 = 28.0;

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    for (name, set, aim) in PAIRS {
        for streams in [1, 8] {
            let links = Links::up(&bench.anabranch, NAME, TWO, set)?;
            let arrivals = Running::begin(bench, UNTIL as u32 + 1, streams, true)?.end()?;
            links.down()?;
            let what = format!("{name}, {streams} streams");
            let (is_equal, content) = arrivals.content();
            table.row(&format!("{what}, content"), "all of it", &content, is_equal);
            let rate = arrivals.rate(FROM, UNTIL);
            let measured = format!(
                "{:.2} Mbit/s, {:.1} % from {FROM} to {UNTIL} s; segments {:?}",
                rate / 1e6,
                rate / SUM * 100.0,
                arrivals.segments
            );
            let aim_text = format!("{:.0} % of the sum", aim * 100.0);
            table.row(&format!("{what}, goodput"), &aim_text, &measured, rate / SUM >= aim);
        }
    }
    for death in [Death::Cut, Death::Down] {
        for dying in ["first", "second"] {
            kill(bench, table, death, dying)?;
        }
    }
    Ok(())
}

/// The kind of a path failure.
#[derive(Clone, Copy)]
enum Death {
    /// The link is cut, and the hosts are not notified.
    Cut,
    /// The sender's interface is taken down.
    Down,
}

/// The time of the failure, in seconds since the links began.
const DEATH: f64 = 10.0;

fn kill(bench: &Bench, table: &mut Table, death: Death, dying: &str) -> Result<(), String> {
    let outage = format!("link.{dying}.outages=[{{ from = \"{DEATH}s\", until = \"1000s\" }}]");
    let set = if let Death::Cut = death { vec![outage.as_str()] } else { vec![] };
    let links = Links::up(&bench.anabranch, NAME, TWO, &set)?;
    output(&bench.anabranch, &["link", "restart", NAME])?;
    let begin = unix_now();
    let running = Running::begin(bench, 20, 8, true)?;
    if let Death::Down = death {
        sleep(Duration::from_secs_f64((DEATH - (unix_now() - begin)).max(0.0)));
        output("ip", &["-n", &format!("anabranch.{NAME}.a"), "link", "set", "dev", dying, "down"])?;
    }
    let at = if let Death::Down = death { unix_now() } else { begin + DEATH };
    let arrivals = running.end()?;
    links.down()?;
    let what = format!("{dying} path {}", if let Death::Cut = death { "cut" } else { "down" });
    let (is_equal, content) = arrivals.content();
    table.row(&format!("{what}, content"), "all of it", &content, is_equal);
    let at = arrivals.at(at);
    let cost = arrivals.cost(at);
    let gap = arrivals.longest_gap(at - 0.2, at + 2.0);
    let measured = format!(
        "{:.0} ms of the other's rate; longest gap {:.0} ms; {:.1}, then {:.1} Mbit/s",
        cost * 1e3,
        gap * 1e3,
        arrivals.rate(at - 3.0, at) / 1e6,
        arrivals.rate(at + 2.0, at + 6.0) / 1e6
    );
    table.row(&format!("{what}, cost"), "under 300 ms", &measured, cost < 0.3 && gap < 0.3);
    Ok(())
}

//! Real clocks: the pacing rate, the baseRTT and the queue of one flow equal those of the simulator, whose clocks are exact.
//!
//! Each is measured in three modes: on links that deliver packet by packet; on links with batches that the kernel joins (GRO); and with another program
//! that uses a core. A `hold` of the link makes the batches, like a network card that interrupts once for several packets. The simulated link has the
//! same hold.

use std::fs;

use super::arrivals::Running;
use super::attacks::udp_count;
use super::program::Program;
use super::{Bench, NAME, ONE, Table};
use crate::links::{Links, json, output};

/// The conditions beside the flow.
struct Mode {
    name: &'static str,
    /// Whether packets come in batches and are joined.
    joins: bool,
    is_busy: bool,
}

const MODES: [Mode; 3] = [
    Mode { name: "GRO off", joins: false, is_busy: false },
    Mode { name: "GRO on", joins: true, is_busy: false },
    Mode { name: "a busy core", joins: false, is_busy: true },
];

/// A link, in Mbit/s and ms of RTT, with a queue of a bandwidth-delay product of packets of 1500 bytes.
struct Cell {
    megabits: u32,
    rtt_ms: u32,
    packets: u32,
}

const CELLS: [Cell; 3] = [
    Cell { megabits: 10, rtt_ms: 50, packets: 42 },
    Cell { megabits: 100, rtt_ms: 50, packets: 417 },
    Cell { megabits: 500, rtt_ms: 20, packets: 833 },
];

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    timestamps(bench, table)?;
    for mode in &MODES {
        let _busy = mode.is_busy.then(|| Program::start("sh", &["-c", "while :; do :; done"])).transpose()?;
        for cell in &CELLS {
            pace(bench, table, mode, cell.megabits)?;
        }
        for cell in &CELLS {
            delays(bench, table, mode, cell)?;
        }
    }
    Ok(())
}

/// Whether the kernel gives receive timestamps.
fn timestamps(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let told = json(&output(&bench.anabranch, &["doctor", "--json"])?)?;
    let mut findings = told.as_array().ok_or("what doctor tells is not understood")?.iter();
    let finding = findings
        .find(|finding| finding["what"] == "receive timestamps")
        .ok_or("doctor reports no receive timestamps")?;
    let has_times = finding["found"] == "yes";
    table.row("receive timestamps", "the kernel's", if has_times { "the kernel's" } else { "our own" }, has_times);
    Ok(())
}

/// The seconds of a transfer.
const PACED: u32 = 6;

/// The second from which its pace is measured, after the slow start.
const PACED_FROM: u32 = 1;

/// The second until which its pace is measured.
const PACED_UNTIL: u32 = 5;

/// The pacer alone limits the rate: the window and the link have room.
fn pace(bench: &Bench, table: &mut Table, mode: &Mode, megabits: u32) -> Result<(), String> {
    let links = up(bench, mode, &["link.there.rate=1Gbit/s", "link.there.delay=5ms", "link.there.queue.packets=5000"])?;
    let arrivals = Running::paced(bench, PACED, megabits)?.end()?;
    let joined = joined(bench, &links)?;
    links.down()?;
    let (is_equal, content) = arrivals.content();
    let what = format!("{megabits} Mbit/s, {}", mode.name);
    if !is_equal {
        table.row(&format!("{what}, content"), "all of it", &content, false);
    }
    // The pacer also counts stream headers.
    let pace = |from: u32, until: u32| arrivals.rate(from.into(), until.into()) * arrivals.acknowledged_share();
    let off = |pace: f64| 100.0 * (pace / (1e6 * f64::from(megabits)) - 1.0);
    let whole = off(pace(PACED_FROM, PACED_UNTIL));
    let seconds: Vec<f64> = (PACED_FROM..PACED_UNTIL).map(|second| off(pace(second, second + 1))).collect();
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = seconds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let share = |name: &str| 100.0 * arrivals.limits[name].as_f64().unwrap_or_default();
    let measured = format!(
        "{whole:+.2} % from {PACED_FROM} to {PACED_UNTIL} s; its seconds {least:+.2} to {most:+.2} %; {joined:.1} datagrams a message; kept by the pacer for {:.0} % of the time, by the host for {:.0} %, by the application for {:.0} %",
        share("pacing"),
        share("host"),
        share("application"),
    );
    table.row(&format!("{what}, pace"), "within 2 %", &measured, whole.abs() <= 2.0);
    Ok(())
}

/// The seconds of a transfer whose delays are measured, and of its simulation.
const SECONDS: u32 = 12;

/// The measurements of a flow.
struct Seen {
    /// The baseRTT in ms.
    rtt_base: f64,
    rtt_mean: f64,
    megabits: f64,
}

fn delays(bench: &Bench, table: &mut Table, mode: &Mode, cell: &Cell) -> Result<(), String> {
    let set = [
        format!("link.there.rate={}Mbit/s", cell.megabits),
        format!("link.there.delay={}us", cell.rtt_ms * 500),
        format!("link.there.queue.packets={}", cell.packets),
    ];
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let simulated = simulated(bench, &held(mode, &set))?;
    let links = up(bench, mode, &set)?;
    let ping = ping(bench)?;
    let real = real(bench)?;
    let joined = joined(bench, &links)?;
    links.down()?;
    let truth = simulated.rtt_base;
    let what = format!("{} Mbit/s, {} ms, {}", cell.megabits, cell.rtt_ms, mode.name);
    let off = real.rtt_base - truth;
    let measured = format!(
        "{:.3} ms, {off:+.3}; simulated {truth:.3}; an empty link has {:.3}, and ping {:+.3} more than such a one",
        real.rtt_base,
        cell.empty_ms(1500, 100),
        ping - cell.empty_ms(PING, PING),
    );
    table.row(&format!("{what}, baseRTT"), "within 0.2 ms of the truth", &measured, off.abs() <= 0.2);
    let queues = [&real, &simulated].map(|seen| seen.rtt_mean - truth);
    let ratio = queues[0] / queues[1];
    let measured = format!(
        "{:.2} ms, simulated {:.2}: {:+.0} %; {:.1} Mbit/s, simulated {:.1}; {joined:.1} datagrams a message",
        queues[0],
        queues[1],
        100.0 * (ratio - 1.0),
        real.megabits,
        simulated.megabits,
    );
    table.row(&format!("{what}, queue"), "within 20 %", &measured, (0.8..=1.2).contains(&ratio));
    Ok(())
}

impl Cell {
    /// The RTT in ms over the empty link without a hold, for packets of these bytes in the two directions.
    fn empty_ms(&self, there: u32, back: u32) -> f64 {
        f64::from(self.rtt_ms) + f64::from(8 * (there + back)) / (1e3 * f64::from(self.megabits))
    }
}

/// The same settings, and the hold if there are batches.
fn held<'a>(mode: &Mode, set: &[&'a str]) -> Vec<&'a str> {
    let hold = mode.joins.then_some(HOLD);
    set.iter().copied().chain(hold).collect()
}

/// The time of a batch, as of network cards that wait for more packets before they interrupt. At 500 Mbit/s ten packets arrive in
/// this time, at 100 Mbit/s two, at 10 Mbit/s one.
const HOLD: &str = "link.there.hold={ kind = \"gather\", span = \"0.25ms\" }";

fn up<'a>(bench: &'a Bench, mode: &Mode, set: &[&str]) -> Result<Links<'a>, String> {
    let offload = if mode.joins { &["--offload"][..] } else { &[] };
    Links::up_with(&bench.anabranch, NAME, ONE, &held(mode, set), offload)
}

/// The mean number of datagrams in a message that a socket of the receiver has read.
fn joined(bench: &Bench, links: &Links<'_>) -> Result<f64, String> {
    let delivered = links.status()?["links"][0]["delivered_packets"].as_f64().ok_or("no delivered_packets")?;
    Ok(delivered / udp_count(bench, "b", "InDatagrams")? as f64)
}

fn simulated(bench: &Bench, set: &[&str]) -> Result<Seen, String> {
    let (folder, duration) = (bench.folder("trace")?, format!("duration={SECONDS}s"));
    let (trace, mut arguments) = (folder.to_string_lossy(), vec!["sim", "run", ONE, "--json", "--set", &duration]);
    set.iter().for_each(|set| arguments.extend(["--set", *set]));
    arguments.extend(["--trace", &trace]);
    let outcome = json(&output(&bench.anabranch, &arguments)?)?;
    let flow = &outcome["flows"][0];
    let path = folder.join("flow.f0.csv");
    let table = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rtt_base = last_of(&table, "base_rtt_s").ok_or("the trace of the flow has no base_rtt_s")?;
    let number = |key: &str| flow[key].as_f64().ok_or_else(|| format!("no {key} of the flow"));
    Ok(Seen { rtt_base: rtt_base * 1e3, rtt_mean: number("rtt_mean_s")? * 1e3, megabits: number("goodput_bps")? / 1e6 })
}

/// The last number of a column.
fn last_of(table: &str, column: &str) -> Option<f64> {
    let mut lines = table.lines();
    let place = lines.next()?.split(',').position(|name| name == column)?;
    lines.filter_map(|line| line.split(',').nth(place)?.parse().ok()).next_back()
}

fn real(bench: &Bench) -> Result<Seen, String> {
    let arrivals = Running::begin(bench, SECONDS, 1, false)?.end()?;
    if let (false, content) = arrivals.content() {
        return Err(content);
    }
    Ok(Seen {
        rtt_base: arrivals.rtt_base_ms.ok_or("no baseRTT")?,
        rtt_mean: arrivals.rtt_mean_ms.ok_or("no RTT")?,
        megabits: arrivals.rate(0.0, SECONDS.into()) / 1e6,
    })
}

/// Bytes of the IP packet of a default ping.
const PING: u32 = 84;

/// The least of twenty round trips, in ms.
fn ping(bench: &Bench) -> Result<f64, String> {
    let told = output(&bench.anabranch, &bench.at("a", &["ping", "-q", "-n", "-c", "20", "-i", "0.02", "b"]))?;
    let least = told.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next());
    least.and_then(|least| least.parse().ok()).ok_or_else(|| format!("what ping prints is not understood: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_column_may_stand_above_empty_ones() {
        let table = "time_s,base_rtt_s,in_flight\n0,,10\n1,0.5,20\n2,0.25,1\n3,,0\n";
        assert_eq!(last_of(table, "base_rtt_s"), Some(0.25));
        assert_eq!(last_of(table, "window"), None);
    }

    /// 1500 bytes take 1.2 ms at 10 Mbit/s, and 100 bytes 0.08.
    #[test]
    fn an_empty_link_takes_the_delay_and_what_packets_take() {
        let cell = Cell { megabits: 10, rtt_ms: 50, packets: 42 };
        assert!((cell.empty_ms(1500, 100) - 51.28).abs() < 1e-9);
    }
}

//! Packets of an attacker change no transfer and make no end allocate memory; and the memory of many connections.

use std::thread::sleep;
use std::time::Duration;

use super::arrivals::{Running, unix_now};
use super::program::Program;
use super::{Bench, NAME, ONE, SOON, Table};
use crate::links::{Links, output};

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    for order in ["replay", "truncate", "forge", "reorder"] {
        datagrams(bench, table, order)?;
    }
    Ok(())
}

const DATAGRAMS: u32 = 100_000;
/// The time after which slow start is over.
const START: Duration = Duration::from_secs(6);

/// An attacker in front of the receiver sends datagrams.
fn datagrams(bench: &Bench, table: &mut Table, order: &str) -> Result<(), String> {
    let links = Links::up(&bench.anabranch, NAME, ONE, &[])?;
    let (arrivals, middle) = (bench.example("arrivals")?, bench.example("middle")?);
    let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&arrivals, "serve", "0.0.0.0:0"]))?;
    let ticket = server.line(SOON)?;
    let stand = [middle.as_str(), "10.77.2.1:0", "127.0.0.1", &ticket];
    let mut between = Program::start(&bench.anabranch, &bench.at("b", &stand))?;
    let ticket = between.line(SOON)?;
    let running = Running::call(bench, server, &ticket, 30, 4, false)?;
    sleep(START);
    let (memory, begin) = (running.server().resident()?, unix_now());
    between.tell(&format!("{order} {DATAGRAMS}"))?;
    between.line(Duration::from_secs(30))?;
    let (held, end) = (running.server().resident()?, unix_now());
    let arrivals = running.end()?;
    links.down()?;
    let (is_equal, content) = arrivals.content();
    table.row(&format!("{order}, content"), "all of it", &content, is_equal);
    let (begin, end) = (arrivals.at(begin), arrivals.at(end));
    let rates = [(begin - 3.0, begin), (begin, end), (end, end + 3.0)].map(|(from, until)| arrivals.rate(from, until));
    table.note(
        &format!("{order}, goodput"),
        &format!(
            "{:.1} Mbit/s before, {:.1} in these {:.0} s, {:.1} after; {:+.1} MB",
            rates[0] / 1e6,
            rates[1] / 1e6,
            end - begin,
            rates[2] / 1e6,
            (held as f64 - memory as f64) / 1e6
        ),
    );
    Ok(())
}

/// Initial datagrams of handshakes: a second, and in all. The second row is the rate that one core of a small computer can send.
const FLOODS: [(u32, u32); 2] = [(10_000, 200_000), (40_000, 800_000)];

/// A million handshakes from forged addresses, sent at the receiver's side of the link, so that they take none of its capacity.
pub(super) fn handshakes(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let links = Links::up(&bench.anabranch, NAME, ONE, &[])?;
    let (arrivals, flood) = (bench.example("arrivals")?, bench.example("flood")?);
    let mut server = Program::start(&bench.anabranch, &bench.at("b", &[&arrivals, "serve", "0.0.0.0:0"]))?;
    let to = server.line(SOON)?;
    let mut floods = vec![];
    for (rate, count) in FLOODS.map(|(rate, count)| (rate.to_string(), count.to_string())) {
        let mut flood = Program::start(&bench.anabranch, &bench.at("b", &[&flood, &to, &count, &rate]))?;
        flood.line(Duration::from_secs(120))?;
        floods.push(flood);
    }
    let running = Running::call(bench, server, &to, 90, 4, false)?;
    sleep(START + Duration::from_secs(6));
    let mut found = vec![];
    for flood in &mut floods {
        let (memory, dropped, begin) =
            (running.server().resident()?, udp_count(bench, "b", "RcvbufErrors")?, unix_now());
        flood.tell("go")?;
        let told = flood.line(Duration::from_secs(180))?;
        let more = running.server().resident()? as f64 - memory as f64;
        found.push((begin, unix_now(), more, udp_count(bench, "b", "RcvbufErrors")? - dropped, told));
        sleep(Duration::from_secs(1));
    }
    let arrivals = running.end()?;
    links.down()?;
    let (is_equal, content) = arrivals.content();
    table.row("content", "all of it", &content, is_equal);
    let first = arrivals.at(found[0].0);
    let before = arrivals.rate(first - 6.0, first);
    for ((rate, _), (begin, end, more, dropped, told)) in FLOODS.iter().zip(found) {
        let meanwhile = arrivals.rate(arrivals.at(begin), arrivals.at(end));
        let measured = format!(
            "{:.1} Mbit/s before, then {:.1}; {told}; the socket was full for {dropped}",
            before / 1e6,
            meanwhile / 1e6
        );
        table.row(&format!("{rate} a second, goodput"), "at most 10 % less", &measured, meanwhile >= 0.9 * before);
        let measured = format!("{:+.1} MB", more / 1e6);
        if *rate == FLOODS[0].0 {
            // Half-open connections, timestamps and tokens, each up to its limit.
            table.note(&format!("{rate} a second, memory"), &measured);
        } else {
            table.row(&format!("{rate} a second, memory"), "not more than 1 MB more", &measured, more < 1e6);
        }
    }
    Ok(())
}

/// A UDP counter of a host's kernel: `RcvbufErrors` are datagrams dropped because a socket buffer was full, `InDatagrams` the read
/// ones.
pub(super) fn udp_count(bench: &Bench, host: &str, name: &str) -> Result<u64, String> {
    let told = output(&bench.anabranch, &bench.at(host, &["cat", "/proc/net/snmp"]))?;
    let mut lines = told.lines().filter(|line| line.starts_with("Udp:")).map(str::split_whitespace);
    let (names, values) = lines.next().zip(lines.next()).ok_or("no counts of UDP")?;
    let mut counts = names.zip(values);
    let (_, count) = counts.find(|(counted, _)| *counted == name).ok_or_else(|| format!("no {name}"))?;
    count.parse().map_err(|_| format!("{name} is {count}"))
}

/// A thousand connections of ten streams each, open at once.
pub(super) fn crowd(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let arrivals = bench.example("arrivals")?;
    let mut server = Program::start(&arrivals, &["serve", "127.0.0.1:0"])?;
    let ticket = server.line(SOON)?;
    let before = server.resident()?;
    let mut crowd = Program::start(&arrivals, &["crowd", &ticket, "1000", "10"])?;
    let told = crowd.line(Duration::from_secs(120))?;
    sleep(Duration::from_secs(1));
    let (here, there) = (server.resident()?, crowd.resident()?);
    crowd.tell_end();
    crowd.succeed(Duration::from_secs(60))?;
    let mut whole = 0;
    for _ in 0..1000 {
        let record = server.json(SOON)?;
        whole += u32::from(record["is_whole"] == true && record["wrong_bytes"] == 0 && record["bytes"] == 10_000);
    }
    table.row("all of 10,000 streams", "1000 connections whole", &format!("{whole} of 1000"), whole == 1000);
    let measured = format!(
        "server {:.1} MB ({:.1} before), callers {:.1} MB; {told}",
        here as f64 / 1e6,
        before as f64 / 1e6,
        there as f64 / 1e6
    );
    table.note("memory while all are open", &measured);
    Ok(())
}

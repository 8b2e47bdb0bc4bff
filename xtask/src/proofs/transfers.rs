//! A file over a link that loses packets arrives unchanged and fast.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::program::Program;
use super::{Bench, NAME, ONE, SOON, Table, is_equal};
use crate::links::Links;

/// Loss rates and target goodputs, as shares.
const CELLS: [(&str, f64); 3] = [("0", 0.94), ("0.001", 0.93), ("0.01", 0.91)];

/// The rate of the link in bit/s, headers included.
const RATE: f64 = 100e6;

/// 48 s at that rate, so that slow start is a small part.
const BYTES: u64 = 600_000_000;

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("payload", BYTES)?;
    for (loss, aim) in CELLS {
        let to = bench.folder("received")?;
        let links = Links::up(&bench.anabranch, NAME, ONE, &[&format!("link.there.error.rate={loss}")])?;
        let came = transfer(bench, &payload, &to)?;
        let carried = links.status()?["links"][0]["delivered_bytes"].as_f64().ok_or("no delivered_bytes")?;
        links.down()?;
        let what = format!("loss {} %", loss.parse::<f64>().unwrap_or_default() * 100.0);
        let equal = is_equal(&payload, &to.join("payload"))?;
        table.row(&format!("{what}, content"), "equal", if equal { "equal" } else { "different" }, equal);
        let later = format!("{:.1} s after the sender", came.later);
        table.row(&format!("{what}, end of the receiver"), "at most 5 s after it", &later, came.later <= 5.0);
        let (whole, steady) = (came.whole / RATE, came.steady / RATE);
        let measured = format!(
            "{:.2} Mbit/s, {:.1} %; {:.1} % after {} s; {:.1} % of what it carried is payload; longest pause {:.2} s, at {:.1}",
            came.whole / 1e6,
            whole * 100.0,
            steady * 100.0,
            START.as_secs(),
            BYTES as f64 / carried * 100.0,
            came.stall.0,
            came.stall.1
        );
        table.row(&format!("{what}, goodput"), &format!("{:.0} % of the link", aim * 100.0), &measured, whole >= aim);
    }
    Ok(())
}

/// Goodputs of a transfer, in bits a second.
struct Came {
    /// The goodput over the whole time, the handshake included.
    whole: f64,
    /// The goodput after [`START`].
    steady: f64,
    /// The longest time from one chunk to the next, in seconds, and when it ended.
    stall: (f64, f64),
    /// The time between the end of the sender and that of the receiver, in seconds.
    later: f64,
}

fn transfer(bench: &Bench, payload: &Path, to: &Path) -> Result<Came, String> {
    let (folder, file) = (to.to_string_lossy(), payload.to_string_lossy());
    let recv = [&bench.anabranch, "recv", "--to", &folder, "--json", "--once"];
    let mut receiver = Program::start(&bench.anabranch, &bench.at("b", &recv))?;
    let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let send = [&bench.anabranch, "send", &file, &ticket, "--json"];
    let begin = Instant::now();
    let mut sender = Program::start(&bench.anabranch, &bench.at("a", &send))?;
    let mut samples = vec![];
    while !sender.has_ended() && begin.elapsed() < MOST {
        std::thread::sleep(Duration::from_millis(20));
        let len = part_len(to);
        if len > 0 && samples.last().is_none_or(|&(_, last)| len > last) {
            samples.push((begin.elapsed().as_secs_f64(), len));
        }
    }
    sender.succeed(SOON)?;
    let ended = Instant::now();
    // Longer than the idle timeout.
    receiver.succeed(Duration::from_secs(40))?;
    let later = ended.elapsed().as_secs_f64();
    let wall = sender.json(SOON)?["wall_seconds"].as_f64().ok_or("no wall_seconds")?;
    let first = samples.iter().find(|(at, _)| *at >= START.as_secs_f64()).ok_or("it was over too soon")?;
    let last = samples.last().ok_or("nothing was seen")?;
    let steady = 8.0 * (last.1 - first.1) as f64 / (last.0 - first.0);
    let pauses = samples.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].0));
    let stall = pauses.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default();
    Ok(Came { whole: 8.0 * BYTES as f64 / wall, steady, stall, later })
}

/// Bytes of the file that is being received.
pub(super) fn part_len(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder.join(".anabranch")) else { return 0 };
    let parts = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "part"));
    parts.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// The time after which slow start and its losses are over.
const START: Duration = Duration::from_secs(5);
/// The limit of a transfer.
const MOST: Duration = Duration::from_secs(300);

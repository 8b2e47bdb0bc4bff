//! Both ends as processes at the hosts of an emulated link: 100 Mbit/s, an RTT of 100 ms if nothing else is asked for, a queue of one bandwidth-delay product,
//! and random losses in the forward direction. Linux, as root.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::loopback::run_end;
use crate::rivals::Rival;
use crate::table::{self, Column};
use crate::transport::Failed;
use crate::work::{Measured, Work};

/// The measurements and their loss rates.
const CELLS: &[(&str, &str, Kind)] = &[
    ("goodput", "0", Kind::Bulk),
    ("goodput", "0.001", Kind::Bulk),
    ("goodput", "0.01", Kind::Bulk),
    ("goodput", "0.03", Kind::Bulk),
    ("100 messages of 100 kB at once", "0.01", Kind::Messages { count: 100, bytes: 100_000, every: Duration::ZERO }),
    ("beside quinn's CUBIC", "0", Kind::Beside),
    (
        "a message of 1 kB every 20 ms",
        "0.01",
        Kind::Messages { count: 500, bytes: 1_000, every: Duration::from_millis(20) },
    ),
];

#[derive(Clone, Copy)]
enum Kind {
    Bulk,
    /// A connection of quinn under CUBIC began 5 s before. Both measure at the same time, from 10 s on.
    Beside,
    Messages {
        count: u32,
        bytes: usize,
        every: Duration,
    },
}

/// Measures all cells whose name and loss contain `cell`, and prints a table for each.
pub fn run(rivals: &[Rival], rounds: u32, seconds: u32, path: &Asked<'_>) -> Result<(), Failed> {
    let &Asked { cell, rtt, anabranch } = path;
    let name = |what: &str, loss: &str| format!("{what}, {} % lost", loss.parse::<f64>().unwrap_or_default() * 100.0);
    for (what, loss, kind) in CELLS.iter().filter(|(what, loss, _)| name(what, loss).contains(cell)) {
        let (work, columns) = match *kind {
            Kind::Bulk => {
                let work = Work::Bulk { streams: 1, warm: Duration::ZERO, time: Duration::from_secs(seconds.into()) };
                (work, vec![Column::new("Mbit/s", 1)])
            }
            Kind::Beside => {
                let time = Duration::from_secs(seconds.into());
                let work = Work::Bulk { streams: 1, warm: ALONE.saturating_mul(2), time };
                (work, vec![Column::new("Mbit/s", 1), Column::new("CUBIC, Mbit/s", 1)])
            }
            Kind::Messages { count, bytes, every } => {
                let columns = vec![Column::new("p50 ms", 1), Column::new("p99 ms", 1)];
                (Work::Messages { count, bytes, every }, columns)
            }
        };
        let mut rows: Vec<(Rival, Vec<Vec<f64>>)> = rivals.iter().map(|rival| (*rival, vec![])).collect();
        for round in 1..=rounds {
            for (rival, row) in &mut rows {
                let links = Links::up(anabranch, loss, rtt, round)?;
                if let (Kind::Beside, Work::Bulk { warm, time, .. }) = (kind, work) {
                    match links.measure_beside(*rival, warm, time)? {
                        Ok(rates) => row.push(rates.to_vec()),
                        Err(error) => println!("round {round} failed: {}: {error}", rival.name()),
                    }
                    links.check()?;
                    continue;
                }
                match links.measure(*rival, work)? {
                    Ok(Measured::Bulk { gigabits, .. }) => row.push(vec![gigabits * 1e3]),
                    Ok(times) => row.push([0.5, 0.99].map(|part| times.quantile(part) * 1e3).to_vec()),
                    // A rival's defect is a result, too.
                    Err(error) => println!("round {round} failed: {}: {error}", rival.name()),
                }
                links.check()?;
            }
        }
        println!("{}:\n", name(what, loss));
        table::print(&rows, &columns);
        println!();
    }
    Ok(())
}

/// What is measured, and where.
pub struct Asked<'a> {
    /// A part of the names of cells.
    pub cell: &'a str,
    /// The RTT without a queue in milliseconds; the queue holds what the link carries in it.
    pub rtt: u32,
    /// The command that emulates the links.
    pub anabranch: &'a Path,
}

/// Runs one end in its own process. It prints its hello or has it as argument, and prints its measurement.
pub fn end(rival: Rival, work: Work, hello: Option<&str>) -> Result<(), Failed> {
    let say = |line: &str| -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    };
    match run_end(rival, work, hello, HOST, say) {
        Ok(Some(measured)) => say(&measured.to_string())?,
        Ok(None) => {}
        Err(error) => say(&format!("failed {error}"))?,
    }
    Ok(())
}

/// Emulated links, which are removed at the end in any case.
struct Links<'a> {
    anabranch: &'a Path,
}

impl<'a> Links<'a> {
    fn up(anabranch: &'a Path, loss: &str, rtt: u32, seed: u32) -> Result<Self, Failed> {
        let links = Self { anabranch };
        // Removes the links of an earlier run; it fails if there are none.
        _ = links.output(&["link", "down", NAME]);
        let (loss, seed) = (format!("link.there.error.rate={loss}"), format!("seed={seed}"));
        // Packets of 1,500 bytes at 100 Mbit/s: 8.33 in a millisecond.
        let queue = format!("link.there.queue.packets={}", u64::from(rtt) * 100_000 / 12_000);
        let delay = format!("link.there.delay={}us", rtt * 500);
        let sets = [&loss, &seed, &queue, &delay].map(|set| ["--set", set]);
        links.output(&[&["link", "up", SCENARIO, "--name", NAME][..], sets.as_flattened()].concat())?;
        Ok(links)
    }

    /// The measurement, or the reason of its failure.
    fn measure(&self, rival: Rival, work: Work) -> Result<Result<Measured, Failed>, Failed> {
        let mut here = End::start(self.anabranch, "b", rival, work, None)?;
        let hello = here.line()?;
        let mut there = End::start(self.anabranch, "a", rival, work, Some(&hello))?;
        let told = if work.is_measured_by_caller() { there.line()? } else { here.line()? };
        Ok(told.strip_prefix("failed ").map_or_else(|| told.parse(), |error| Err(error.into())))
    }

    /// The rates of a rival and of quinn's CUBIC in Mbit/s, or why there are none.
    fn measure_beside(&self, rival: Rival, warm: Duration, time: Duration) -> Result<Result<[f64; 2], Failed>, Failed> {
        let work = |warm| Work::Bulk { streams: 1, warm, time };
        let before = work(warm + ALONE);
        let mut cubic = End::start(self.anabranch, "b", Rival::Quinn, before, None)?;
        let hello = cubic.line()?;
        let _sending = End::start(self.anabranch, "a", Rival::Quinn, before, Some(&hello))?;
        std::thread::sleep(ALONE);
        let own = self.measure(rival, work(warm))?;
        let beside = cubic.line()?;
        let megabits = |told: Result<Measured, Failed>| match told? {
            Measured::Bulk { gigabits, .. } => Ok(gigabits * 1e3),
            Measured::Times { .. } => Err("it measured something else".into()),
        };
        let beside = beside.strip_prefix("failed ").map_or_else(|| beside.parse(), |error| Err(error.into()));
        Ok(megabits(own).and_then(|own| Ok([own, megabits(beside)?])))
    }

    /// Whether the machine was fast enough for the links.
    fn check(&self) -> Result<(), Failed> {
        let status = self.output(&["link", "status", NAME, "--json"])?;
        let status: serde_json::Value = serde_json::from_str(&status)?;
        let unread = unread(&status);
        if unread > 0.0 {
            println!(
                "{unread} packets were not read in time: this machine does not carry that, and the round is worth nothing"
            );
        }
        Ok(())
    }

    fn output(&self, arguments: &[&str]) -> Result<String, Failed> {
        let output = Command::new(self.anabranch).args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", self.anabranch.display()))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("anabranch {}: {error}", arguments.join(" ")).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Links<'_> {
    fn drop(&mut self) {
        _ = self.output(&["link", "down", NAME]);
    }
}

/// Packets dropped by devices, anywhere in the status.
fn unread(status: &serde_json::Value) -> f64 {
    use serde_json::Value;

    match status {
        Value::Object(members) => {
            let own = members.get("unread_packets").and_then(Value::as_f64).unwrap_or_default();
            own + members.values().map(unread).sum::<f64>()
        }
        Value::Array(items) => items.iter().map(unread).sum(),
        _ => 0.0,
    }
}

/// A process of this program, which is killed at the end.
struct End {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl End {
    fn start(anabranch: &Path, host: &str, rival: Rival, work: Work, hello: Option<&str>) -> Result<Self, Failed> {
        let own = std::env::current_exe()?;
        let mut command = Command::new(anabranch);
        command.args(["link", "exec", host, "--name", NAME, "--"]).arg(own);
        command.args(["end", &rival.word().ok_or("it has no name")?, &work.to_string()]).args(hello);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, lines })
    }

    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.ends_with('\n') { Ok(line.trim_end().to_owned()) } else { Err("an end has stopped".into()) }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// How long CUBIC is alone.
const ALONE: Duration = Duration::from_secs(5);

/// The name of the emulator.
const NAME: &str = "side-by-side";

/// The listening host, by the name in its own /etc/hosts.
const HOST: &str = "b:0";

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments/reality/one-path.toml");

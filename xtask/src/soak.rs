//! `cargo xtask soak`: runs all functions of the library at once for a long time and checks that no resource grows.
//!
//! The example `soak` runs at both ends of two emulated links that lose packets; the second link is cut now and then. Connections, streams, messages,
//! resets and paths come and go, and every byte is checked. In parallel, one `anabranch recv` receives a file again and again. The memory, open files
//! and tasks of the long-running processes are sampled each second. They must not grow after the first third of the run, and at its end no connection may leave anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::links::{Links, json, output};
use crate::proofs::program::Program;
use crate::proofs::{Bench, SOON, Table, is_equal};

/// The options of a soak test.
#[derive(Args)]
pub(crate) struct Options {
    /// Duration of the test.
    #[arg(long, value_name = "MINUTES", default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=10_080))]
    minutes: u32,
    /// Folder `release` of a target, with the command and the examples; built here if absent.
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// Folder for temporary files of 20 MB; the system's if absent.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// The name of the links.
const NAME: &str = "soak";
const TWO: &str = "xtask/src/proofs/two.toml";
/// The loss of packets on each link in each direction.
const LOSS: &str = "{ kind = \"uniform\", rate = 0.005 }";
/// The interval and the duration of the cuts of the second link, in seconds.
const CUT_EVERY: u32 = 20;
const CUT: u32 = 3;
/// A file that is sent again and again, in bytes.
const FILE: u64 = 8_000_000;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    crate::proofs::can_run()?;
    let bench = Bench::new(options.release.as_deref(), options.folder.as_deref())?;
    let time = Duration::from_secs(u64::from(options.minutes) * 60);
    let cuts = (1..=options.minutes * 60 / CUT_EVERY)
        .map(|cut| format!("{{ from = \"{}s\", until = \"{}s\" }}", cut * CUT_EVERY, cut * CUT_EVERY + CUT));
    let outages = format!("link.second.outages=[{}]", cuts.collect::<Vec<_>>().join(", "));
    let loss = ["first", "second"].map(|link| format!("link.{link}.error={LOSS}"));
    let links = Links::up(&bench.anabranch, NAME, TWO, &[&outages, &loss[0], &loss[1]])?;
    let mut table = Table::begin("soak");
    let soaked = soak(&bench, time)?;
    links.down()?;
    soaked.judge(&mut table);
    table.verdict()
}

/// The samples of a long-running program.
struct Watched {
    name: &'static str,
    program: Program,
    samples: Vec<Sample>,
    /// Its latest report, if it reports.
    told: Value,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    resident: u64,
    /// The bytes allocated and not freed, by its own report.
    heap: Option<u64>,
    files: u64,
    tasks: Option<u64>,
}

struct Soaked {
    watched: Vec<Watched>,
    time: Duration,
    /// The samples after the end of all work.
    after: Vec<Sample>,
    files_sent: u32,
    files_wrong: u32,
    complaints: Vec<String>,
}

fn at<'a>(host: &'a str, program: &[&'a str]) -> Vec<&'a str> {
    [&["link", "exec", host, "--name", NAME, "--"], program].concat()
}

fn soak(bench: &Bench, time: Duration) -> Result<Soaked, String> {
    let (anabranch, soak) = (bench.anabranch.as_str(), bench.example("soak")?);
    let mut server = Program::start(anabranch, &at("b", &[&soak, "serve"]))?;
    let ticket = server.line(SOON)?;
    let (payload, to) = (bench.payload("payload", FILE)?, bench.folder("received")?);
    let (file, folder) = (payload.to_string_lossy(), to.to_string_lossy());
    let mut receiver = Program::start(anabranch, &at("b", &[anabranch, "recv", "--to", &folder, "--json"]))?;
    let at_receiver = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    output(anabranch, &["link", "restart", NAME])?;
    let seconds = time.as_secs().to_string();
    let client = Program::start(anabranch, &at("a", &[&soak, "call", &ticket, &seconds]))?;
    let named = [("server", server), ("client", client), ("recv", receiver)];
    let mut watched = named.map(|(name, program)| Watched { name, program, samples: vec![], told: Value::Null });
    let (begin, mut complaints) = (Instant::now(), vec![]);
    let (mut files_sent, mut files_wrong, mut sender) = (0, 0, None);
    while begin.elapsed() < time {
        sleep(Duration::from_secs(1));
        for one in &mut watched {
            one.look(begin.elapsed())?;
            complaints.extend(one.complaints());
        }
        // The next transfer begins as soon as one has ended.
        let running = match &mut sender {
            Some(running) => running,
            none => none.insert(Program::start(anabranch, &at("a", &[anabranch, "send", &file, &at_receiver]))?),
        };
        if running.has_ended() {
            let is_right = running.succeed(SOON).is_ok() && is_equal(&payload, &to.join("payload"))?;
            files_sent += 1;
            files_wrong += u32::from(!is_right);
            empty(&to)?;
            sender = None;
        }
    }
    if let Some(mut running) = sender {
        running.succeed(MOST)?;
    }
    let end = Instant::now();
    while !watched[1].program.has_ended() && end.elapsed() < MOST {
        sleep(Duration::from_secs(1));
    }
    watched[1].program.succeed(MOST)?;
    watched[1].hear();
    // Longer than ended connections are remembered, and than the idle timeout of a connection whose peer is gone.
    sleep(Duration::from_secs(40));
    watched[0].hear();
    let after = [0, 2].map(|place| watched[place].sample(begin.elapsed()));
    complaints.extend(watched.iter_mut().flat_map(|one| one.complaints().collect::<Vec<_>>()));
    let after = after.into_iter().collect::<Result<_, _>>()?;
    Ok(Soaked { watched: watched.into(), time, after, files_sent, files_wrong, complaints })
}

/// The limit for the end of all begun work.
const MOST: Duration = Duration::from_secs(200);

/// Removes the content of a folder.
fn empty(folder: &Path) -> Result<(), String> {
    let remove = || {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        Ok(())
    };
    remove().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))
}

impl Watched {
    /// Reads its output; the last line counts.
    fn hear(&mut self) {
        while let Some(line) = self.program.line_there() {
            self.told = json(&line).unwrap_or(Value::Null);
        }
    }

    /// Its new complaints, with its name.
    fn complaints(&mut self) -> impl Iterator<Item = String> + use<> {
        let (name, complaint) = (self.name, self.program.complaint());
        (!complaint.is_empty()).then(|| format!("{name}: {complaint}")).into_iter()
    }

    fn look(&mut self, at: Duration) -> Result<(), String> {
        self.hear();
        // A program without work may end a little early.
        if !self.program.has_ended() {
            let sample = self.sample(at)?;
            self.samples.push(sample);
        }
        Ok(())
    }

    fn sample(&self, at: Duration) -> Result<Sample, String> {
        let folder = format!("/proc/{}/fd", self.program.id());
        let files = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?.count() as u64;
        let told = |name: &str| self.told[name].as_u64();
        Ok(Sample { at, resident: self.program.resident()?, heap: told("heap"), files, tasks: told("tasks") })
    }
}

impl Soaked {
    fn judge(&self, table: &mut Table) {
        let [server, client] = [0, 1].map(|end| &self.watched[end].told);
        let count = |told: &Value, name: &str| told[name].as_u64().unwrap_or_default();
        let wrong = count(server, "wrong") + count(client, "wrong");
        let complaints = self.complaints.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
        table.row("content and ends", "all as it should be", &format!("{wrong} wrong {complaints}"), wrong == 0);
        let measured = format!("{} of {} files wrong", self.files_wrong, self.files_sent);
        table.row("files", "all equal", &measured, self.files_wrong == 0 && self.files_sent > 0);
        let done = [
            "connections",
            "streams",
            "messages",
            "resets",
            "stops",
            "stalls",
            "aborts",
            "paths_added",
            "paths_removed",
        ];
        let done: Vec<String> = done.iter().map(|name| format!("{name} {}", count(client, name))).collect();
        let bytes = count(server, "bytes") + count(client, "bytes");
        table.note("done", &format!("{}; {:.0} MB", done.join(", "), bytes as f64 / 1e6));
        let worked = WORK.iter().all(|name| count(client, name) > 0);
        table.row("work", "some of each", if worked { "some of each" } else { "not of each" }, worked);
        for one in &self.watched {
            self.growth(table, one);
        }
        for (place, after) in [0, 2].into_iter().zip(&self.after) {
            let one = &self.watched[place];
            let Some(first) = one.samples.first() else { continue };
            let measured = format!(
                "{:.1} MB, heap {:.1}, {} files, tasks {}; in the beginning {:.1}, {}",
                after.resident as f64 / 1e6,
                after.heap.unwrap_or_default() as f64 / 1e6,
                after.files,
                after.tasks.map_or_else(|| "?".to_owned(), |tasks| tasks.to_string()),
                first.resident as f64 / 1e6,
                first.files
            );
            // The tasks of the endpoint, of accepting and of reporting stay.
            let holds = after.files <= first.files && count(&one.told, "tasks") <= TASKS_LEFT;
            table.row(&format!("{} when all is over", one.name), "no file, no task more", &measured, holds);
        }
    }

    /// Checks that nothing has grown from the second third to the last. Memory is the heap if it is reported: a process does not return memory to the
    /// system, so its resident memory only shows the largest use.
    fn growth(&self, table: &mut Table, one: &Watched) {
        let third = |from: u32| {
            let [from, until] = [from, from + 1].map(|third| self.time * third / 3);
            let of = |of: &dyn Fn(&Sample) -> Option<u64>| {
                let within = one.samples.iter().filter(|sample| sample.at >= from && sample.at < until);
                median(within.filter_map(of).collect())
            };
            Third {
                resident: of(&|sample| Some(sample.resident)),
                heap: of(&|sample| sample.heap),
                files: of(&|sample| Some(sample.files)),
                tasks: of(&|sample| sample.tasks),
            }
        };
        let thirds = [0, 1, 2].map(third);
        let [_, second, last] = &thirds;
        let memory = |third: &Third| if third.heap > 0 { third.heap } else { third.resident };
        let does_memory = memory(last) <= memory(second) + MEMORY_MORE.max(memory(second) / 10);
        let does = |of: &dyn Fn(&Third) -> u64| of(last) <= of(second) + of(second).max(MORE) / 4;
        let holds = does_memory && does(&|third| third.files) && does(&|third| third.tasks);
        let text = |number: &dyn Fn(&Third) -> String| thirds.iter().map(number).collect::<Vec<_>>().join(", ");
        let measured = format!(
            "{} MB, heap {}; files {}; tasks {}",
            text(&|third| format!("{:.1}", third.resident as f64 / 1e6)),
            text(&|third| format!("{:.1}", third.heap as f64 / 1e6)),
            text(&|third| third.files.to_string()),
            text(&|third| third.tasks.to_string())
        );
        let name = format!("{}, medians of thirds", one.name);
        table.row(&name, "4 MB or 10 % more, 1/4", &measured, holds);
    }
}

/// The medians of a third of the time.
struct Third {
    resident: u64,
    /// Zero if it is not reported.
    heap: u64,
    files: u64,
    tasks: u64,
}

/// The allowed growth of the heap, which varies with the work.
const MEMORY_MORE: u64 = 4_000_000;
/// The allowed growth is a quarter of the number, or of this number if there are fewer.
const MORE: u64 = 8;
/// The drivers of the endpoint's two shards, and the reporting task.
const TASKS_LEFT: u64 = 3;
const WORK: [&str; 9] =
    ["connections", "streams", "messages", "resets", "stops", "stalls", "aborts", "paths_added", "paths_removed"];

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![]), 0);
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![1, 2]), 2);
    }
}

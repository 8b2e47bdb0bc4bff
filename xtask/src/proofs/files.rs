//! Faults of files, folders and keys during a transfer: each gives a clear message and the documented exit code, and loses no data.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::program::Program;
use super::transfers::part_len;
use super::{Bench, NAME, ONE, SOON, Table, is_equal};
use crate::links::{Links, output};

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    full_disk(bench, table)?;
    read_only(bench, table)?;
    changing_file(bench, table)?;
    wrong_key(bench, table)?;
    small_files(bench, table)
}

const BYTES: u64 = 40_000_000;

/// A disk with 16 MB of room for a file of 40 MB; later there is more.
fn full_disk(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("payload", BYTES)?;
    let disk = Mount::tmpfs(&bench.folder("disk")?, "size=16m")?;
    let ended = transfer(bench, &payload, &disk.at, &[])?;
    ended.rows(table, "full disk", &["No space left", "correct this, then send again"]);
    let is_named = disk.at.join("payload").exists();
    table.row("full disk, final name", "not taken", if is_named { "taken" } else { "not taken" }, !is_named);
    disk.remount("size=200m")?;
    let kept = part_len(&disk.at);
    let ended = transfer(bench, &payload, &disk.at, &[])?;
    let equal = ended.codes == (Some(0), Some(0)) && is_equal(&payload, &disk.at.join("payload"))?;
    let measured = format!("{}, {} of {kept} B were not sent again", ended.told(), ended.kept);
    table.row("full disk, with more room", "equal, resumed", &measured, equal && ended.kept > 0);
    Ok(())
}

fn read_only(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("payload", BYTES)?;
    let disk = Mount::tmpfs(&bench.folder("disk")?, "size=200m,ro")?;
    let ended = transfer(bench, &payload, &disk.at, &[])?;
    ended.rows(table, "read-only folder", &["Read-only file system"]);
    disk.remount("rw")?;
    let ended = transfer(bench, &payload, &disk.at, &[])?;
    let equal = ended.codes == (Some(0), Some(0)) && is_equal(&payload, &disk.at.join("payload"))?;
    table.row("read-only folder, made writable", "equal", &ended.told(), equal);
    Ok(())
}

/// A file of 400 MB grows while it is sent; it replaces an older one.
fn changing_file(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("payload", 10 * BYTES)?;
    let to = bench.folder("received")?;
    let (old, there) = (bench.payload("old", 1000)?, to.join("payload"));
    fs::copy(&old, &there).map_err(|error| error.to_string())?;
    let (mut receiver, mut sender) = begin(bench, &payload, &to, &["--overwrite"])?;
    while part_len(&to) < BYTES && !sender.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let grow = || OpenOptions::new().append(true).open(&payload)?.write_all(b"and so on");
    grow().map_err(|error| error.to_string())?;
    let ended = Ended::of(&mut receiver, &mut sender)?;
    ended.rows(table, "a file that changes", &["has changed since the start of the transfer; send it again"]);
    let is_old = is_equal(&old, &there)?;
    table.row(
        "a file that changes, what was there",
        "is still there",
        if is_old { "it is" } else { "it is not" },
        is_old,
    );
    let ended = transfer(bench, &payload, &to, &["--overwrite"])?;
    let equal = ended.codes == (Some(0), Some(0)) && is_equal(&payload, &there)?;
    table.row("a file that changes, sent again", "equal", &ended.told(), equal);
    Ok(())
}

/// Another key at the address of the ticket, and a sender that is not on the receiver's list.
fn wrong_key(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let payload = bench.payload("payload", 1000)?;
    let to = bench.folder("received")?;
    let folder = to.to_string_lossy();
    let recv = |more: &[&str]| {
        let arguments = [&["recv", "--to", &folder, "--json", "--once"], more].concat();
        let mut receiver = Program::start(&bench.anabranch, &arguments)?;
        let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
        Ok::<_, String>((receiver, ticket))
    };
    let (mut first, ticket) = recv(&["--listen", "127.0.0.1:47113"])?;
    first.kill();
    let other = recv(&["--listen", "127.0.0.1:47113"])?;
    refused(bench, table, "another key at the ticket's address", &payload, &ticket)?;
    drop(other);
    let key = bench.folder("keys")?.join("somebody");
    let known = output(&bench.anabranch, &["key", "new", &key.to_string_lossy()])?;
    let (_receiver, ticket) = recv(&["--listen", "127.0.0.1:0", "--allow", known.trim()])?;
    refused(bench, table, "a sender who is not on the list", &payload, &ticket)?;
    let is_there = to.join("payload").exists();
    table.row("wrong keys, what has arrived", "nothing", if is_there { "the file" } else { "nothing" }, !is_there);
    Ok(())
}

fn refused(bench: &Bench, table: &mut Table, what: &str, payload: &Path, ticket: &str) -> Result<(), String> {
    let mut sender = Program::start(&bench.anabranch, &["send", &payload.to_string_lossy(), ticket])?;
    let status = sender.wait(SOON)?;
    let complaint = sender.complaint();
    table.row(
        what,
        "exit code 1, and a message",
        &format!("{status}: {complaint}"),
        status.code() == Some(1) && complaint.contains("key"),
    );
    Ok(())
}

/// 10,000 files of 1 kB over 100 Mbit/s and 100 ms.
fn small_files(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let (from, to) = (bench.folder("small")?, bench.folder("received")?);
    for number in 0..SMALL_FILES {
        bench.payload(&format!("small/{number}"), 1000)?;
    }
    let links = Links::up(&bench.anabranch, NAME, ONE, &[])?;
    let (file, folder) = (from.to_string_lossy(), to.to_string_lossy());
    let recv = [&bench.anabranch, "recv", "--to", &folder, "--json", "--once"];
    let mut receiver = Program::start(&bench.anabranch, &bench.at("b", &recv))?;
    let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    let begin = Instant::now();
    let send = [&bench.anabranch, "send", &file, &ticket, "--json"];
    let mut sender = Program::start(&bench.anabranch, &bench.at("a", &send))?;
    let told = sender.json(Duration::from_secs(100))?;
    let result = begin.elapsed().as_secs_f64();
    sender.succeed(SOON)?;
    let ended = begin.elapsed().as_secs_f64();
    receiver.succeed(SOON)?;
    links.down()?;
    let mut whole = 0;
    for number in 0..SMALL_FILES {
        let name = number.to_string();
        whole += u32::from(is_equal(&from.join(&name), &to.join("small").join(&name)).unwrap_or(false));
    }
    table.row("10,000 files of 1 kB", "all, equal", &format!("{whole}; {}", told["files"]), whole == SMALL_FILES);
    table.row("10,000 files of 1 kB, result", "within 10 s", &format!("{result:.1} s"), result <= 10.0);
    // A round trip, and the start and end of a program.
    let after = format!("{:.2} s after it", ended - result);
    table.row("10,000 files of 1 kB, end of the sender", "within 0.5 s", &after, ended - result <= 0.5);
    Ok(())
}

const SMALL_FILES: u32 = 10_000;

/// The outcome of both commands.
struct Ended {
    /// The exit codes of the receiver and of the sender.
    codes: (Option<i32>, Option<i32>),
    complaints: (String, String),
    /// Bytes that did not have to be sent.
    kept: u64,
}

impl Ended {
    fn of(receiver: &mut Program, sender: &mut Program) -> Result<Self, String> {
        let sent = sender.wait(Duration::from_secs(60))?;
        let received = receiver.wait(SOON)?;
        // Before a line is read that may be missing: the complaint would be in that error.
        let complaints = (receiver.complaint(), sender.complaint());
        let told = sender.json(Duration::from_millis(10)).ok();
        let kept = told.and_then(|told| told["bytes_there"].as_u64()).unwrap_or_default();
        Ok(Self { codes: (received.code(), sent.code()), complaints, kept })
    }

    /// Adds rows: both have exited with 1, with these words in their messages.
    fn rows(&self, table: &mut Table, what: &str, words: &[&str]) {
        for (end, code, said) in
            [("recv", self.codes.0, &self.complaints.0), ("send", self.codes.1, &self.complaints.1)]
        {
            let holds = code == Some(1) && words.iter().all(|word| said.contains(word));
            table.row(&format!("{what}, {end}"), "exit code 1, and why", &format!("{code:?}: {said}"), holds);
        }
    }

    fn told(&self) -> String {
        format!("exit codes {:?} {:?}{}{}", self.codes.0, self.codes.1, self.complaints.0, self.complaints.1)
    }
}

fn begin(bench: &Bench, payload: &Path, to: &Path, recv: &[&str]) -> Result<(Program, Program), String> {
    let (file, folder) = (payload.to_string_lossy(), to.to_string_lossy());
    let arguments = [&["recv", "--to", &folder, "--json", "--once", "--listen", "127.0.0.1:0"], recv].concat();
    let mut receiver = Program::start(&bench.anabranch, &arguments)?;
    let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
    Ok((receiver, Program::start(&bench.anabranch, &["send", &file, &ticket, "--json"])?))
}

fn transfer(bench: &Bench, payload: &Path, to: &Path, recv: &[&str]) -> Result<Ended, String> {
    let (mut receiver, mut sender) = begin(bench, payload, to, recv)?;
    Ended::of(&mut receiver, &mut sender)
}

/// A file system, which is unmounted at the end.
struct Mount {
    at: PathBuf,
}

impl Mount {
    fn tmpfs(at: &Path, options: &str) -> Result<Self, String> {
        output("mount", &["-t", "tmpfs", "-o", options, "proofs", &at.to_string_lossy()])?;
        Ok(Self { at: at.to_owned() })
    }

    fn remount(&self, options: &str) -> Result<(), String> {
        output("mount", &["-o", &format!("remount,{options}"), &self.at.to_string_lossy()]).map(drop)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        _ = output("umount", &["--lazy", &self.at.to_string_lossy()]);
    }
}

//! A power cut at the receiver: what it has confirmed is there afterwards, each name stands for a whole file, and the transfer goes on.
//!
//! The receiver writes on an ext4 file system on a loop device, in a mount namespace of its own. A copy of the device's image is what a disk would hold after
//! a power cut: all that was written to the device, and nothing of what is only in memory. The copy is mounted in another namespace, and compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::program::Program;
use super::{Bench, SOON, Table, is_equal};
use crate::links::output;

pub(super) fn run(bench: &Bench, table: &mut Table) -> Result<(), String> {
    let from = bench.folder("cut")?;
    for number in 0..SMALL {
        bench.payload(&format!("cut/{number}"), 1000)?;
    }
    for number in 0..LARGE {
        bench.payload(&format!("cut/large{number}"), 10_000_000)?;
    }
    after_the_result(bench, table, &from)?;
    while_receiving(bench, table, &from)
}

/// So many files take some syncs.
const SMALL: u32 = 4000;
const LARGE: u32 = 4;

fn after_the_result(bench: &Bench, table: &mut Table, from: &Path) -> Result<(), String> {
    let (disk, cut) = (bench.folder("disk")?, bench.folder("copy")?);
    let image = new_image(&disk)?;
    let mut receiver = Receiver::start(bench, &image, &disk)?;
    let told = send(bench, from, &receiver.ticket)?.json(LONG)?;
    let copy = copied(&image, &cut)?;
    receiver.program.kill();
    let after = Receiver::start(bench, &copy, &cut)?;
    let (whole, short) = compared(from, &after.folder("cut"));
    let measured = format!("{} confirmed; {whole} whole, {short} not", told["files"]);
    table.row("power cut after the result", "all files whole", &measured, whole == SMALL + LARGE && short == 0);
    Ok(())
}

fn while_receiving(bench: &Bench, table: &mut Table, from: &Path) -> Result<(), String> {
    let (disk, cut) = (bench.folder("disk")?, bench.folder("copy")?);
    let image = new_image(&disk)?;
    let mut receiver = Receiver::start(bench, &image, &disk)?;
    let mut sender = send(bench, from, &receiver.ticket)?;
    let begin = Instant::now();
    let names = |receiver: &Receiver| fs::read_dir(receiver.folder("cut")).map_or(0, Iterator::count);
    while names(&receiver) < SMALL as usize / 4 && begin.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    receiver.program.stop()?;
    // A sync in progress ends, so that the copy is of one moment.
    std::thread::sleep(Duration::from_millis(500));
    let copy = copied(&image, &cut)?;
    sender.kill();
    receiver.program.kill();
    let mut after = Receiver::start(bench, &copy, &cut)?;
    let (whole, short) = compared(from, &after.folder("cut"));
    let measured = format!("{whole} names for whole files, {short} for others");
    table.row("power cut while receiving", "whole files only", &measured, short == 0 && whole > 0);
    let mut again = send(bench, from, &after.ticket)?;
    let status = again.wait(LONG)?;
    let (whole, short) = compared(from, &after.folder("cut"));
    let measured = format!("{status}; {whole} whole, {short} not: {}", again.complaint());
    let is_whole = status.success() && whole == SMALL + LARGE && short == 0;
    table.row("power cut, sent again", "exit code 0, all whole", &measured, is_whole);
    after.program.kill();
    Ok(())
}

const LONG: Duration = Duration::from_secs(60);

/// A receiver that writes on the file system of an image.
struct Receiver {
    program: Program,
    ticket: String,
    /// Where the image is mounted, in the receiver's namespace.
    at: PathBuf,
}

impl Receiver {
    fn start(bench: &Bench, image: &Path, folder: &Path) -> Result<Self, String> {
        let at = folder.join("mounted");
        fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        // The journal is written only when a program asks for it, so that nothing is durable by chance.
        let script =
            "mount -o loop,commit=600 \"$1\" \"$2\" && exec \"$0\" recv --to \"$2/in\" --json --listen 127.0.0.1:0";
        let (image, place) = (image.to_string_lossy(), at.to_string_lossy());
        let arguments = ["--mount", "sh", "-c", script, &bench.anabranch, &image, &place];
        let mut program = Program::start("unshare", &arguments)?;
        let ticket = program.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
        Ok(Self { program, ticket, at })
    }

    /// A folder that it has received, seen from here.
    fn folder(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.program.id()));
        let at = self.at.strip_prefix("/").unwrap_or(&self.at);
        root.join(at).join("in").join(name)
    }
}

fn new_image(folder: &Path) -> Result<PathBuf, String> {
    let image = folder.join("image");
    let path = image.to_string_lossy();
    output("truncate", &["--size", "256M", &path])?;
    output("mkfs.ext4", &["-q", &path])?;
    Ok(image)
}

fn copied(image: &Path, folder: &Path) -> Result<PathBuf, String> {
    let copy = folder.join("image");
    output("cp", &["--sparse=always", &image.to_string_lossy(), &copy.to_string_lossy()])?;
    Ok(copy)
}

fn send(bench: &Bench, from: &Path, ticket: &str) -> Result<Program, String> {
    Program::start(&bench.anabranch, &["send", &from.to_string_lossy(), ticket, "--json"])
}

/// The number of files that are there and equal, and of those that are there and differ.
fn compared(from: &Path, to: &Path) -> (u32, u32) {
    let names = fs::read_dir(from).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let there = names.filter(|name| to.join(name).exists());
    there.fold((0, 0), |(whole, short), name| match is_equal(&from.join(&name), &to.join(&name)) {
        Ok(true) => (whole + 1, short),
        _ => (whole, short + 1),
    })
}

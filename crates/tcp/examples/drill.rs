//! Plays packetdrill scripts against our TCP: `cargo run --release -p anabranch-tcp --example drill -- FOLDER [LAW [push]]`.
//!
//! It prints a table of what holds and what does not, with the reason. With `push`, a flag PSH that is missing is a difference. The scripts are read as data; none is part of this project.

#![expect(clippy::print_stdout, reason = "it prints a table")]

#[path = "../tests/drill/calls.rs"]
mod calls;
#[path = "../tests/drill/packet.rs"]
mod packet;
#[path = "../tests/drill/player.rs"]
mod player;
#[path = "../tests/drill/script.rs"]
mod script;
#[path = "../tests/drill/text.rs"]
mod text;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::player::{Push, Verdict, play};

fn main() -> Result<(), String> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: drill FOLDER [LAW [push]]")?;
    let law = arguments.next().unwrap_or("cubic".to_owned());
    let push = if arguments.next().as_deref() == Some("push") { Push::Judged } else { Push::MayMiss };
    let mut scripts = vec![];
    find(Path::new(&folder), &mut scripts).map_err(|error| format!("{folder}: {error}"))?;
    scripts.sort();
    if scripts.is_empty() {
        return Err(format!(
            "{folder}: no file below it ends in .pkt; packetdrill's are in gtests/net/tcp of its sources"
        ));
    }
    let (mut holds, mut fails, mut unplayable) = (0, 0, 0);
    println!("| script | verdict | reason |\n| --- | --- | --- |");
    for path in &scripts {
        let name = path.strip_prefix(&folder).unwrap_or(path).display();
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        match play(&text, &law, push) {
            Verdict::Holds { skipped } => {
                holds += 1;
                let note =
                    if skipped > 0 { format!("{skipped} steps for the kernel are skipped") } else { String::new() };
                println!("| {name} | holds | {note} |");
            }
            Verdict::Fails(wrong) => {
                fails += 1;
                println!("| {name} | fails | {wrong} |");
            }
            Verdict::Unplayable(wrong) => {
                unplayable += 1;
                println!("| {name} | not played | {wrong} |");
            }
        }
    }
    println!("\n{} scripts: {holds} hold, {fails} fail, {unplayable} are not played.", scripts.len());
    Ok(())
}

/// The scripts in a folder and below it.
fn find(folder: &Path, scripts: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(&path, scripts)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            scripts.push(path);
        }
    }
    Ok(())
}

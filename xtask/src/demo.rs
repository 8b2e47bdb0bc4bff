//! `cargo xtask demo`: what the transport does, shown on two emulated paths that lose packets: a file goes over both, and one path fails.
//!
//! All commands run in `anabranch link sandbox`: they need no root, and leave nothing. Each is printed as a user types it. What is shown is also checked.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;

use crate::links::{json, output};
use crate::proofs::program::Program;
use crate::proofs::{SOON, is_equal};
use crate::run::{self, say};

/// How long the demonstration is.
#[derive(Args)]
pub(crate) struct Options {
    /// A small file: fifteen seconds.
    #[arg(long)]
    quick: bool,
    /// The command and the folder with the file, for the run inside of the sandbox.
    #[arg(long, hide = true, num_args = 2, value_names = ["PROGRAM", "FOLDER"])]
    inside: Option<Vec<String>>,
}

/// The links.
const FILE: &str = "docs/demo.toml";

/// The folder in cargo's target folder.
const FOLDER: &str = "demo";

/// Builds the command, makes the file, and starts this program again in a sandbox.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let stage = if options.quick { &QUICK } else { &LONG };
    if let Some([anabranch, folder]) = options.inside.as_deref() {
        return Demo { anabranch, folder: Path::new(folder), stage }.run();
    }
    run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
    let anabranch = run::anabranch()?;
    run::remove_in_target(FOLDER)?;
    let folder = run::target()?.join(FOLDER);
    make(&folder, stage.bytes)?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let (this, place) = (this.to_string_lossy(), folder.to_string_lossy());
    let mut arguments = vec!["link", "sandbox", "--", &*this, "demo", "--inside", &anabranch, &place];
    arguments.extend(options.quick.then_some("--quick"));
    let done = run::run(&anabranch, &arguments, &[]);
    run::remove_in_target(FOLDER)?;
    done
}

/// The same as a check: where the system lets nobody emulate links, it says so and passes.
pub(crate) fn check() -> Result<(), String> {
    let anabranch = run::anabranch()?;
    if let Err(problem) = output(&anabranch, &["link", "sandbox", "--", &anabranch, "link", "up", FILE]) {
        say(&format!("skipped: {problem}"));
        return Ok(());
    }
    run(&Options { quick: true, inside: None })
}

/// A file of bytes that nobody can compress.
fn make(folder: &Path, bytes: u64) -> Result<PathBuf, String> {
    use std::io::Read as _;
    let path = folder.join("film");
    let make = || {
        std::fs::create_dir_all(folder)?;
        let mut random = std::fs::File::open("/dev/urandom")?.take(bytes);
        std::io::copy(&mut random, &mut std::fs::File::create(&path)?)
    };
    make().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// The sizes of a demonstration.
struct Stage {
    bytes: u64,
    /// How long both paths are there, and then one.
    both: Duration,
    one: Duration,
}

/// 66 s, as measured once.
const LONG: Stage = Stage { bytes: 80_000_000, both: Duration::from_secs(15), one: Duration::from_secs(10) };
/// The file is not over when what is left of the paths is looked at.
const QUICK: Stage = Stage { bytes: 16_000_000, both: Duration::from_millis(1200), one: Duration::from_secs(2) };

/// More than any transfer takes.
const AT_MOST: Duration = Duration::from_secs(150);

/// A demonstration inside of the sandbox.
struct Demo<'a> {
    anabranch: &'a str,
    folder: &'a Path,
    stage: &'a Stage,
}

impl Demo<'_> {
    fn run(&self) -> Result<(), String> {
        say(
            "\nTwo paths between two hosts, 20 Mbit/s with 50 ms and 10 Mbit/s with 80 ms. Each loses one packet in a hundred.\n",
        );
        self.shown(&["link", "up", FILE])?;
        let (film, received) = (self.folder.join("film"), self.folder.join("received"));
        let (from, to) = (film.to_string_lossy(), received.to_string_lossy());

        say("The receiver prints a ticket, the sender uses it.\n");
        let mut receiver =
            self.started(&["link", "exec", "h1", "--", "anabranch", "recv", "--once", "--json", "--to", &to])?;
        let ticket = receiver.json(SOON)?["ticket"].as_str().ok_or("no ticket")?.to_owned();
        say(&format!("  {ticket}"));
        let mut sender =
            self.started(&["link", "exec", "h0", "--", "anabranch", "send", "--multipath", &from, &ticket, "--json"])?;
        sleep(self.stage.both);
        let watched = sender.id().to_string();
        self.shown(&["watch", "--once", &watched])?;
        let both = self.carried()?;
        if both.contains(&0.0) {
            return Err(format!("not both paths carry data: {both:?} bytes"));
        }

        say("The faster path fails.\n");
        self.shown(&["link", "exec", "h0", "--", "ip", "link", "set", "dev", "wan", "down"])?;
        // What is on the link still arrives.
        sleep(Duration::from_millis(500));
        let before = self.carried()?;
        sleep(self.stage.one);
        self.shown(&["watch", "--once", &watched])?;
        let after = self.carried()?;
        if after[0] > before[0] || after[1] <= before[1] {
            return Err(format!("the other path does not carry on: {before:?} bytes, then {after:?}"));
        }
        say("The transfer goes on to its end.\n");
        let told = sender.json(AT_MOST)?;
        sender.succeed(SOON)?;
        receiver.succeed(SOON)?;
        let seconds = told["wall_seconds"].as_f64().ok_or("send tells no time")?;
        if !is_equal(&film, &received.join("film"))? {
            return Err("what arrived is not what was sent".to_owned());
        }
        let rate = 8.0 * self.stage.bytes as f64 / seconds / 1e6;
        say(&format!(
            "  {} bytes in {seconds:.1} s, {rate:.1} Mbit/s; sent and received are equal\n",
            self.stage.bytes
        ));

        say("What the links did; then they are removed.\n");
        self.shown(&["link", "status"])?;
        self.shown(&["link", "down"])?;
        let left = output("ip", &["netns", "list"])?;
        if left.trim().is_empty() { Ok(()) } else { Err(format!("namespaces are left: {left}")) }
    }

    /// The bytes that each of the two links has delivered from the sender to the receiver.
    fn carried(&self) -> Result<[f64; 2], String> {
        let status = json(&output(self.anabranch, &["link", "status", "--json"])?)?;
        let of = |id: &str| {
            let links = status["links"].as_array()?;
            links.iter().find(|link| link["id"] == id)?["delivered_bytes"].as_f64()
        };
        Ok([of("wan").ok_or("no link wan")?, of("backup").ok_or("no link backup")?])
    }

    /// Runs a command and prints it with its output.
    fn shown(&self, words: &[&str]) -> Result<(), String> {
        print(words);
        let told = output(self.anabranch, &self.replaced(words))?;
        told.lines().for_each(|line| say(&format!("  {line}")));
        say("");
        Ok(())
    }

    /// Prints a command and starts it.
    fn started(&self, words: &[&str]) -> Result<Program, String> {
        print(words);
        Program::start(self.anabranch, &self.replaced(words))
    }

    /// The words with the command that was built in place of its name.
    fn replaced<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        words.iter().map(|word| if *word == "anabranch" { self.anabranch } else { word }).collect()
    }
}

fn print(words: &[&str]) {
    say(&format!("$ anabranch {}", words.join(" ")));
}

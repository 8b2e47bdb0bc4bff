//! `cargo xtask proofs`: measures each promise of the transport on real sockets and prints the target beside the result.
//!
//! Programs of the release run in network namespaces, connected by `anabranch link`, or on loopback. Each proof prints rows of a table. A proof that does
//! not run to its end is missed, and the others go on.

mod arrivals;
mod attacks;
mod changes;
mod clocks;
mod cuts;
mod files;
mod kills;
mod multipath;
pub(crate) mod page;
pub(crate) mod program;
mod transfers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::machine::Machine;
use crate::run::{self, say};

/// The proofs to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Run the proofs whose names begin with one of these; all if absent.
    names: Vec<String>,
    /// The folder `release` of a target, with the command and the examples. Without it they are built here.
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// The folder for temporary files of at most 4 GB; the system's if absent.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only print the names.
    #[arg(long)]
    list: bool,
}

/// A proof and its name.
struct Proof {
    name: &'static str,
    run: fn(&Bench, &mut Table) -> Result<(), String>,
}

const PROOFS: &[Proof] = &[
    Proof { name: "transfers", run: transfers::run },
    Proof { name: "clocks", run: clocks::run },
    Proof { name: "multipath", run: multipath::run },
    Proof { name: "changes", run: changes::run },
    Proof { name: "kills", run: kills::run },
    Proof { name: "files", run: files::run },
    Proof { name: "cuts", run: cuts::run },
    Proof { name: "attacks", run: attacks::run },
    Proof { name: "handshakes", run: attacks::handshakes },
    Proof { name: "crowd", run: attacks::crowd },
    Proof { name: "page", run: page::run },
];

pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.list {
        PROOFS.iter().for_each(|proof| say(proof.name));
        return Ok(());
    }
    let is_known = |name: &&String| !PROOFS.iter().any(|proof| proof.name.starts_with(name.as_str()));
    if let Some(unknown) = options.names.iter().find(is_known) {
        return Err(format!("there is no proof `{unknown}`; `cargo xtask proofs --list` prints all"));
    }
    can_run()?;
    let bench = Bench::new(options.release.as_deref(), options.folder.as_deref())?;
    let mut table = Table::begin("");
    for proof in PROOFS {
        if !options.names.is_empty() && !options.names.iter().any(|name| proof.name.starts_with(name.as_str())) {
            continue;
        }
        table.proof = proof.name;
        if let Err(problem) = (proof.run)(&bench, &mut table) {
            table.row("to its end", "no error", &problem, false);
        }
    }
    table.verdict()?;
    // A proof that was selected by name must not seem to hold if it could not run.
    if table.not_run > 0 && !options.names.is_empty() { Err("not all of it could run".into()) } else { Ok(()) }
}

/// Checks that proofs can run on this machine by this user.
pub(crate) fn can_run() -> Result<(), String> {
    match cfg!(target_os = "linux") && run::is_root() {
        true => Ok(()),
        false => Err("this makes network namespaces and mounts file systems: run it on Linux, as root".into()),
    }
}

/// The programs and folders of proofs.
pub(crate) struct Bench {
    pub(crate) anabranch: String,
    release: PathBuf,
    folder: PathBuf,
}

impl Bench {
    /// With the programs in the folder `release`, or built now, and with files in a new folder within `folder`.
    pub(crate) fn new(release: Option<&Path>, folder: Option<&Path>) -> Result<Self, String> {
        let release = match release {
            Some(release) => {
                std::fs::canonicalize(release).map_err(|error| format!("{}: {error}", release.display()))?
            }
            None => {
                run::run("cargo", &["build", "--release", "--locked", "--quiet"], &[])?;
                let examples = ["build", "--release", "--locked", "--quiet", "--package", "anabranch", "--examples"];
                run::run("cargo", &examples, &[])?;
                run::target()?.join("release")
            }
        };
        let parent = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        let folder = parent.join(format!("anabranch-proofs-{}", std::process::id()));
        // It is removed at the end, so it must be a new one.
        let made = std::fs::create_dir_all(&parent).and_then(|()| std::fs::create_dir(&folder));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { anabranch: program(&release, "anabranch")?, release, folder })
    }

    /// An example of the library.
    pub(crate) fn example(&self, name: &str) -> Result<String, String> {
        program(&self.release.join("examples"), name)
    }

    /// A new empty folder.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// A file of `bytes` random bytes.
    pub(crate) fn payload(&self, name: &str, bytes: u64) -> Result<PathBuf, String> {
        use std::io::Read as _;
        let path = self.folder.join(name);
        let make = || {
            let mut random = std::fs::File::open("/dev/urandom")?.take(bytes);
            std::io::copy(&mut random, &mut std::fs::File::create(&path)?)
        };
        make().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// The arguments of `anabranch` that run a program at a host of the links.
    pub(crate) fn at<'a>(&self, host: &'a str, program: &[&'a str]) -> Vec<&'a str> {
        [&["link", "exec", host, "--name", NAME, "--"], program].concat()
    }
}

fn program(folder: &Path, name: &str) -> Result<String, String> {
    let path = folder.join(name);
    if path.is_file() {
        Ok(path.to_string_lossy().into_owned())
    } else {
        Err(format!("there is no {}", path.display()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The results of a proof; rows are printed at once.
#[derive(Default)]
pub(crate) struct Table {
    proof: &'static str,
    rows: u32,
    missed: u32,
    not_run: u32,
    machine: Machine,
}

impl Table {
    /// An empty table of this proof, whose head is printed.
    pub(crate) fn begin(proof: &'static str) -> Self {
        say(&line("proof", "aim", "measured", "load, stolen", "verdict"));
        Self { proof, machine: Machine::new(), ..Self::default() }
    }

    /// Whether all targets were reached.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        match self.missed {
            0 => Ok(()),
            missed => Err(format!("{missed} of {} aims were missed", self.rows)),
        }
    }

    pub(crate) fn row(&mut self, what: &str, aim: &str, measured: &str, holds: bool) {
        self.rows += 1;
        self.missed += u32::from(!holds);
        let name = format!("{}: {what}", self.proof);
        let load = self.machine.load_and_stolen();
        say(&line(&name, aim, measured, &load, if holds { "holds" } else { "MISSED" }));
    }

    /// Notes that the proof cannot run on this machine.
    pub(crate) fn not_run(&mut self, remedy: &str) {
        self.not_run += 1;
        let load = self.machine.load_and_stolen();
        say(&line(self.proof, "-", remedy, &load, "not run"));
    }

    /// Adds a measurement without a target.
    pub(crate) fn note(&mut self, what: &str, measured: &str) {
        let load = self.machine.load_and_stolen();
        say(&line(&format!("{}: {what}", self.proof), "-", measured, &load, "-"));
    }
}

fn line(proof: &str, aim: &str, measured: &str, load: &str, verdict: &str) -> String {
    format!("{proof:<44} | {aim:<26} | {measured:<60} | {load:>12} | {verdict}")
}

/// Whether two files have the same bytes.
pub(crate) fn is_equal(one: &Path, other: &Path) -> Result<bool, String> {
    use std::io::Read as _;
    let open = |path: &Path| std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()));
    let (mut one, mut other) = (open(one)?, open(other)?);
    let (mut left, mut right) = (vec![], vec![]);
    loop {
        left.clear();
        right.clear();
        (&mut one).take(1 << 20).read_to_end(&mut left).map_err(|error| error.to_string())?;
        (&mut other).take(1 << 20).read_to_end(&mut right).map_err(|error| error.to_string())?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

/// The name of the emulator.
pub(crate) const NAME: &str = "proofs";
/// One path of 100 Mbit/s and 100 ms.
pub(crate) use crate::links::ONE;
/// The limit for a program that should answer at once.
pub(crate) const SOON: Duration = Duration::from_secs(30);

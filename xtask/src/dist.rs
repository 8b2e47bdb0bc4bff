//! `cargo xtask dist`: what a user installs, made of the newest commit into `dist/`.
//!
//! Everything is made of the files of the commit, which are copied to `dist/source` in cargo's target folder, never of the work tree. What goes to `dist/` has
//! the time of the commit, no owner and no path of this machine, so that the same commit gives the same bytes.

mod archive;
mod binary;
mod components;
mod container;
mod crates;
mod deb;
mod elf;
mod licences;
mod name;
mod output;
mod pages;
mod release;
mod wheel;

use clap::{Args, ValueEnum};

use crate::tools;
use crate::{run, run::say};
use output::Output;
use release::Release;

#[derive(Args)]
pub(crate) struct Options {
    /// Make only these parts.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Only install the tools, in cargo's target folder.
    #[arg(long, conflicts_with = "only")]
    tools: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Static programs for Linux in archives, with man pages, completions, systemd's unit and licences.
    Archive,
    /// Debian packages of the same.
    Deb,
    /// A wheel for any Python from 3.9 on, and its sources.
    Wheel,
    /// The list of components of the program (CycloneDX).
    Components,
    /// A container of the archive, built and run if there is a container runtime.
    Container,
    /// The crates that others may use, packed as for crates.io, and checked with the oldest compiler that they promise.
    Crates,
}

const ALL: [Part; 6] = [Part::Archive, Part::Deb, Part::Wheel, Part::Components, Part::Container, Part::Crates];

/// What could not be made, or not be tested, and why.
#[derive(Default)]
struct Missing {
    parts: Vec<String>,
    tests: Vec<String>,
}

impl Missing {
    /// Notes the failure of a part, and goes on with the next.
    fn part<T>(&mut self, name: &str, made: Result<T, String>) -> Option<T> {
        made.map_err(|problem| {
            say(&format!("{name}: {problem}"));
            self.parts.push(format!("{name}: {problem}"));
        })
        .ok()
    }

    /// Notes that a part was made but not tested.
    fn test(&mut self, name: &str, why: &str) {
        self.tests.push(format!("{name}: {why}"));
    }
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.tools {
        for tool in [&tools::DEB, &tools::CYCLONEDX] {
            say(&tools::cargo(tool)?);
        }
        say(&tools::python()?);
        return Ok(());
    }
    let is_wanted = |part| options.only.is_empty() || options.only.contains(&part);
    let release = Release::of_commit()?;
    let output = Output::open(&run::root().join("dist"), &release.commit)?;
    let mut missing = Missing::default();
    if [Part::Archive, Part::Deb, Part::Container].into_iter().any(is_wanted) {
        binaries(&release, &output, &mut missing, is_wanted)?;
    }
    for part in ALL.into_iter().filter(|&part| is_wanted(part)) {
        match part {
            Part::Archive | Part::Deb | Part::Container => {}
            Part::Wheel => {
                missing.part("wheel", wheel::make(&release, &output));
            }
            Part::Components => {
                missing.part("components", components::make(&release, &output));
            }
            Part::Crates => {
                missing.part("crates", crates::check(&release));
                missing.part("oldest compiler", crates::check_oldest_compiler(&release));
            }
        }
    }
    for line in output.seal()? {
        say(&line);
    }
    say(&format!("made of commit {} in {}", release.commit, output.folder().display()));
    for problem in &missing.tests {
        say(&format!("not tested: {problem}"));
    }
    match missing.parts.is_empty() {
        true => Ok(()),
        false => Err(format!("not made:\n  {}", missing.parts.join("\n  "))),
    }
}

/// The program for each target, and what contains it.
fn binaries(
    release: &Release,
    output: &Output,
    missing: &mut Missing,
    is_wanted: impl Fn(Part) -> bool,
) -> Result<(), String> {
    let mut pages = None;
    for target in binary::targets() {
        let triple = target.triple;
        let Some(program) = missing.part(triple, binary::build(release, &target)) else { continue };
        match binary::runner(&target) {
            Ok(runner) => {
                if missing.part(triple, binary::try_out(release, &runner, &program)).is_none() {
                    continue;
                }
                if pages.is_none() {
                    pages = Some(pages::write(release, &runner, &program)?);
                }
            }
            Err(why) => missing.test(triple, &why),
        }
        let Some(pages) = &pages else {
            missing.part(triple, Err::<(), _>("no program runs here that writes man pages".to_owned()));
            continue;
        };
        let licences = licences::text(release, triple)?;
        let archive = archive::of_program(release, triple, &program, pages, &licences)?;
        let file = name::Name::new(&format!("anabranch-{}-{triple}.tar.gz", release.version))?;
        if is_wanted(Part::Archive) {
            output.write(&file, &archive)?;
        }
        if is_wanted(Part::Deb) {
            let made = deb::make(release, &target, pages, &licences, output);
            if let Some(package) = missing.part(&format!("Debian package of {triple}"), made) {
                deb::try_out(&package, &target, missing)?;
            }
        }
        if is_wanted(Part::Container) && target.is_native() {
            match container::runtime() {
                Ok(runtime) => {
                    missing.part("container", container::try_out(release, runtime, &archive));
                }
                Err(why) => missing.test("container", &why),
            }
        }
    }
    Ok(())
}

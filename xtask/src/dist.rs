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

use crate::{run, run::say, tools};
use binary::Target;
use name::Name;
use output::Output;
use pages::Pages;
use release::Release;

#[derive(Args)]
pub(crate) struct Options {
    /// Make only these parts.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Make programs, and what contains them, only for these of Rust's targets.
    #[arg(long, value_parser = binary::TARGETS.map(|target| target.triple))]
    target: Vec<String>,
    /// Only install the tools, in cargo's target folder.
    #[arg(long, conflicts_with_all = ["only", "target"])]
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
        let is_target =
            |target: &Target| options.target.is_empty() || options.target.iter().any(|it| it == target.triple);
        binaries(&release, &output, &mut missing, is_wanted, is_target);
    }
    if is_wanted(Part::Wheel) {
        missing.part("wheel", wheel::make(&release, &output));
    }
    if is_wanted(Part::Crates) {
        missing.part("crates", crates::check(&release));
        missing.part("oldest compiler", crates::check_oldest_compiler(&release));
    }
    // After the crates: it is written beside their manifests, and must not get into them.
    if is_wanted(Part::Components) {
        missing.part("components", components::make(&release, &output));
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
    is_target: impl Fn(&Target) -> bool,
) {
    let mut pages = None;
    for target in binary::targets().into_iter().filter(is_target) {
        let made = binary(release, output, missing, &is_wanted, &target, &mut pages);
        missing.part(target.triple, made);
    }
}

/// The program for a target, and what contains it. The first program that runs here writes the pages for all.
fn binary(
    release: &Release,
    output: &Output,
    missing: &mut Missing,
    is_wanted: impl Fn(Part) -> bool,
    target: &Target,
    pages: &mut Option<Pages>,
) -> Result<(), String> {
    let triple = target.triple;
    let program = binary::build(release, target)?;
    match binary::runner(target) {
        Ok(runner) => {
            binary::try_out(release, &runner, &program)?;
            if pages.is_none() {
                *pages = Some(pages::write(release, &runner, &program)?);
            }
        }
        Err(why) => missing.test(triple, &why),
    }
    let pages = pages.as_ref().ok_or("no program runs here that writes man pages")?;
    let licences = licences::text(release, triple)?;
    let archive = archive::of_program(release, triple, &program, pages, &licences)?;
    if is_wanted(Part::Archive) {
        output.write(&Name::new(&format!("anabranch-{}-{triple}.tar.gz", release.version))?, &archive)?;
    }
    if is_wanted(Part::Deb) {
        let package = deb::make(release, target, pages, &licences);
        let tested = package.and_then(|package| {
            deb::try_out(&package, target, missing)?;
            output.take(&package)
        });
        missing.part(&format!("Debian package of {triple}"), tested);
    }
    if is_wanted(Part::Container) && target.is_native() {
        match container::runtime() {
            Ok(runtime) => {
                missing.part("container", container::try_out(release, runtime, &archive));
            }
            Err(why) => missing.test("container", &why),
        }
    }
    Ok(())
}

//! `anabranch eval --attack`: the networks on which a law does worst.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_lab::evaluation;
use anabranch_lab::field::attack::{self, Aim, Found, Request, STEPS, STEPS_MAX};

use super::field::families;
use crate::args::Eval;
use crate::failure::{Failure, Outcome};
use crate::files::{Folder, Inputs};
use crate::terminal::{BOLD, DIM, Progress, named};

/// Whether Ctrl-C was pressed.
static STOPPED: AtomicBool = AtomicBool::new(false);

pub(super) fn attack(args: &Eval) -> Outcome {
    let aims = aims(args)?;
    let requested = evaluation::Request::new(&args.cc, args.against.as_deref(), args.jobs.count())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let families = families(args)?;
    // The first Ctrl-C ends the search, a second one the command. Without a handler the first does.
    _ = ctrlc::set_handler(|| {
        if STOPPED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    });
    let seed = args.seed.unwrap_or(1);
    let progress = Progress::of_runs();
    let mut found = Vec::new();
    for (index, &aim) in aims.iter().enumerate() {
        let request = Request {
            law: requested.law.clone(),
            against: requested.against.clone(),
            aim,
            families: families.clone(),
            seed,
            steps: args.steps.unwrap_or(if args.long.is_some() { STEPS_MAX } else { STEPS }),
            jobs: requested.jobs,
        };
        let (begin, limit) =
            (Instant::now(), args.long.map(|long| Duration::from_nanos(long.ticks()) / aims.len() as u32));
        let worst = attack::run(&request, |steps, _| {
            if let Some(limit) = limit {
                let done = begin.elapsed().as_millis() as usize + index * limit.as_millis() as usize;
                progress.set(done, aims.len() * limit.as_millis() as usize);
            } else {
                progress.set(index * request.steps as usize + steps as usize, aims.len() * request.steps as usize);
            }
            let is_over = limit.is_some_and(|limit| begin.elapsed() >= limit) || STOPPED.load(Ordering::Relaxed);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        found.extend(worst);
        if STOPPED.load(Ordering::Relaxed) {
            break;
        }
    }
    drop(progress);
    if found.is_empty() {
        return Err(Failure::usage(
            "no family has this figure; `use` and `delay` need any, `share` `beside`, and `starvation` `kind`",
        ));
    }
    let path = args.out.as_deref().unwrap_or(Path::new(FOLDER));
    if args.out.is_some() || !args.json {
        let folder = Folder::create(path, [], &Inputs::default())?;
        for one in &found {
            let text = one.file(&command(args, seed, one));
            folder.write(&file(one), |out| out.write_all(text.as_bytes()))?;
        }
    }
    let mut out = anstream::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &found).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    for one in &found {
        let unit = if one.figure.unit.is_empty() { String::new() } else { format!(" {}", one.figure.unit) };
        let facts: Vec<String> = one.facts.iter().map(|fact| format!("{} {}", fact.name, fact.value)).collect();
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}: {} {:.3}{unit}, family {}, after {} networks\n  {}\n  anabranch sim run {}\n  {DIM}{}{DIM:#}",
            one.aim.name(),
            one.figure.name,
            one.value,
            one.family,
            one.steps,
            facts.join(", "),
            named(path.join(file(one))),
            command(args, seed, one),
        )?;
    }
    Ok(())
}

fn aims(args: &Eval) -> Result<Vec<Aim>, Failure> {
    let Some(names) = &args.by else { return Ok(Aim::ALL.to_vec()) };
    let find = |name: &String| {
        Aim::find(name).ok_or_else(|| {
            let names: Vec<&str> = Aim::ALL.into_iter().map(Aim::name).collect();
            Failure::usage(format!("there is no aim `{name}`; the aims are {}", names.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

/// The command that finds the same again.
fn command(args: &Eval, seed: u64, found: &Found) -> String {
    let mut command = format!("anabranch eval --attack --cc {}", args.cc);
    if let Some(against) = &args.against {
        command += &format!(" --against {}", against.join(","));
    }
    if let Some(family) = &args.family {
        command += &format!(" --family {}", family.join(","));
    }
    command + &format!(" --by {} --seed {seed} --steps {}", found.aim.name(), found.steps)
}

fn file(found: &Found) -> String {
    format!("{}.toml", found.aim.name())
}

/// The exit code after an interrupt, as in shells.
const INTERRUPTED: i32 = 130;

/// The default folder.
const FOLDER: &str = "attack";

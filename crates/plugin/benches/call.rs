//! What a call of `on_ack` costs: Reno of the registry, and the Reno of the templates as a module, in turns.
//!
//! All get the same events and compute the same windows. The least of some rounds counts, because other programs use the processor, too. A controller that
//! does nothing is measured as well: what the events of this loop and a call through the trait cost, which is subtracted from the others. A template whose
//! compiler is missing is left out, and the table says so.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anabranch_cc::{Ack, Cause, Controller, Departure, Loss, PathView, Progress, Settings, Signal, Supply, registry};
use anabranch_plugin::template::{Language, project};
use anabranch_plugin::{Faults, Law, Module};
use anabranch_units::{Bytes, Span, Time};

const ROUNDS: usize = 25;

const ACKS: u64 = 100_000;

/// The ACKs between two losses, which keep the window that of a path.
const ACKS_TO_LOSS: u64 = 1000;

/// A controller that does nothing.
#[derive(Debug)]
struct Nothing;

impl Controller for Nothing {
    fn on_ack(&mut self, _path: &PathView, _ack: &Ack) {}

    fn on_loss(&mut self, _path: &PathView, _loss: &Loss) {}

    fn window(&self) -> f64 {
        1.0
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark talks to its terminal")]
fn main() {
    let faults = Faults::default();
    let reno = registry::find("reno").expect("the registry has Reno");
    let native = reno.build(&Settings::default_for(reno));
    let mut laws: Vec<(&str, Box<dyn Controller>)> = vec![("nothing", Box::new(Nothing)), ("native", native)];
    for (name, language) in [("module in C", Language::C), ("module in Rust", Language::Rust)] {
        match module(language) {
            Ok(module) => {
                let settings = Law::new(Arc::new(module)).settings("", &faults);
                laws.push((name, settings.row().build(&settings)));
            }
            Err(problem) => println!("{name}: not measured: {problem}"),
        }
    }
    let mut least = vec![f64::INFINITY; laws.len()];
    for _ in 0..ROUNDS {
        for ((_, law), least) in laws.iter_mut().zip(&mut least) {
            *least = least.min(nanoseconds(&mut **law));
        }
    }
    assert_eq!(faults.first(), None);
    let windows = || laws.iter().skip(1).map(|(_, law)| law.window().to_bits());
    assert!(windows().all(|window| Some(window) == windows().next()), "all compute the same windows");
    println!("{:<16}{:>14}{:>22}{:>16}", "Reno", "ns a call", "without the loop's", "times native");
    println!("{:<16}{:>14.1}", laws[0].0, least[0]);
    let native = least[1] - least[0];
    for ((name, _), cost) in laws.iter().zip(&least).skip(1) {
        let own = cost - least[0];
        println!("{name:<16}{cost:>14.1}{own:>22.1}{:>16.1}", own / native);
    }
}

/// The cost of an `on_ack`, from a round.
fn nanoseconds(law: &mut dyn Controller) -> f64 {
    let (mut view, mut ack) = (view(), ack());
    let loss = Loss { signal: Signal::DupAcks, cause: Cause::Congestion, lost: 1.0, departure: ack.departure };
    let begin = Instant::now();
    for count in 1..=ACKS {
        view.now = Time::from_ticks(view.now.ticks() + 1000);
        (view.progress.delivered, ack.arrival) = (view.progress.delivered + 1.0, view.now);
        law.on_ack(black_box(&view), black_box(&ack));
        black_box(law.window());
        if count.is_multiple_of(ACKS_TO_LOSS) {
            law.on_loss(&view, &loss);
        }
    }
    begin.elapsed().as_secs_f64() * 1e9 / ACKS as f64
}

/// The module of a template, built as the template says.
fn module(language: Language) -> Result<Module, String> {
    let project = project("law", language)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("call-{language:?}"));
    for file in &project.files {
        let path: PathBuf = folder.join(&file.name);
        let parent = path.parent().expect("a file is in a folder");
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, &file.text)).map_err(|error| error.to_string())?;
    }
    let build = project.commands.iter().find(|command| command.starts_with("cargo ") || command.starts_with("make"));
    let words: Vec<&str> = build.map(|build| build.split(' ').collect()).unwrap_or_default();
    let mut command = Command::new(words[0]);
    // What cargo says to this benchmark is not meant for the project.
    command.args(&words[1..]).current_dir(&folder).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    let output = command.output().map_err(|error| format!("{}: {error}", words[0]))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let file = folder.join(project.module.expect("a module is built"));
    let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Module::new("law.wasm", bytes).map_err(|error| error.to_string())
}

fn view() -> PathView {
    let (now, mss) = (Time::from_ticks(1_500_000_000), Bytes::new(1448));
    let view = PathView { now, flight: 100.0, mss, progress: progress(), ..PathView::default() };
    PathView { rtt_smoothed: Some(Span::from_millis(20)), rtt_min: Some(Span::from_millis(19)), ..view }
}

fn ack() -> Ack {
    Ack {
        newly_acked: 1.0,
        rtt: Some(Span::from_millis(20)),
        size: Bytes::new(1448),
        arrival: Time::from_ticks(1_500_000_000),
        departure: Departure {
            time: Time::from_ticks(1_480_000_000),
            window: 100.0,
            flight: 100.0,
            progress: progress(),
            supply: Supply::Enough,
        },
        ..Ack::default()
    }
}

fn progress() -> Progress {
    Progress {
        delivered: 1000.0,
        lost: 2.0,
        delivered_at: Time::from_ticks(1_499_000_000),
        departed: Time::from_ticks(1_479_000_000),
    }
}

//! The same law twice is the same law: the Rust of [`anabranch_cc`] and the C of `c/law.h` or `c/anabranch/law.h` get the same events, and their windows agree within
//! one segment or 0.5 %. Events are drawn from a seed, or recorded from simulated flows: on the networks of the papers, and on random networks.
//! `ANABRANCH_EVENTS=1000000` draws more of them, `ANABRANCH_SEED` others, `ANABRANCH_NETWORKS=10` records on ten networks of each
//! family, and in twenty variants of each experiment.
#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "a run shows how close the windows are")]

mod drawn;
mod host;
mod recorded;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::str::FromStr;

use anabranch_bpf::{Event, Kind, Law, Settings, segments};

use crate::drawn::Flow;

/// The events of one law in the test command. A long run has a million.
const EVENTS: usize = 100_000;

/// Events of one flow; then another one begins, on another path. The default law needs longer ones: it drains every 5 s.
const fn flow_len(law: Law) -> usize {
    match law {
        Law::Anabranch => 20_000,
        Law::Fast | Law::Emfast | Law::Rrfast | Law::Composite => 4_000,
    }
}

const SEED: u64 = 36;

/// Each of its modes lasts for a two-hundredth of the events or more.
#[test]
fn anabranch_in_c_has_the_windows_of_rust() {
    let flow = drawn(Law::Anabranch, &Settings::of(Law::Anabranch), events());
    println!("ACKs in grow, cruise, drain, compete: {:?}", flow.modes);
    assert!(flow.modes.iter().all(|&count| count > flow.trace.len() as u64 / 200), "{:?}", flow.modes);
    compare(Law::Anabranch, &[]);
}

/// Five times as many drains, a law that yields, and other numbers.
#[test]
fn anabranch_with_other_numbers_has_the_windows_of_rust() {
    compare(Law::Anabranch, &[("drain_interval", "1s"), ("alpha", "40"), ("decrease", "0.3"), ("ours", "0.7")]);
    compare(Law::Anabranch, &[("drain_interval", "2s"), ("rival", "yield"), ("drain_part", "0.5")]);
}

#[test]
fn fast_in_c_has_the_windows_of_rust() {
    compare(Law::Fast, &[]);
}

#[test]
fn emfast_in_c_has_the_windows_of_rust() {
    compare(Law::Emfast, &[]);
}

#[test]
fn rrfast_in_c_has_the_windows_of_rust() {
    compare(Law::Rrfast, &[]);
}

#[test]
fn composite_in_c_has_the_windows_of_rust() {
    compare(Law::Composite, &[]);
}

/// The loss policy of ctcp-2019 on FAST with both other parts, a dead band, and other numbers.
#[test]
fn combined_parts_in_c_have_the_windows_of_rust() {
    let parts = [("loss", "composite"), ("refill", "ccafr"), ("base_rtt", "reroute")];
    let numbers = [("gamma", "0.3"), ("alpha", "50"), ("beta", "60"), ("average_weight", "0.25")];
    compare(Law::Fast, &[&parts[..], &numbers[..]].concat());
}

/// A tenth more alpha is another law, and the harness sees it.
#[test]
fn another_alpha_in_c_has_other_windows() {
    for (law, alpha) in [(Law::Fast, "22"), (Law::Anabranch, "22")] {
        let mut other = Settings::of(law);
        other.set("alpha", alpha).expect("in range");
        let worst = worst(law, &trace(law, &Settings::of(law), EVENTS), &other);
        assert!(worst.excess > 1.0, "{law}: {worst:?}");
    }
}

#[test]
fn anabranch_in_c_has_the_windows_of_recorded_runs() {
    compare_recorded(Law::Anabranch);
}

#[test]
fn fast_in_c_has_the_windows_of_recorded_runs() {
    compare_recorded(Law::Fast);
}

#[test]
fn emfast_in_c_has_the_windows_of_recorded_runs() {
    compare_recorded(Law::Emfast);
}

#[test]
fn rrfast_in_c_has_the_windows_of_recorded_runs() {
    compare_recorded(Law::Rrfast);
}

#[test]
fn composite_in_c_has_the_windows_of_recorded_runs() {
    compare_recorded(Law::Composite);
}

/// The engine drives the Rust law over the networks of the papers and over random ones. C gets the events of these runs, on the host and in the kernel.
#[track_caller]
fn compare_recorded(law: Law) {
    let networks = from_environment("ANABRANCH_NETWORKS").unwrap_or(1);
    let settings = Settings::of(law);
    let built = settings.decode();
    for (place, traces) in
        [("papers", recorded::papers(&settings, networks)), ("field", recorded::field(&settings, networks, seed()))]
    {
        let recorded = traces.concat();
        assert!(replayed(&built, &recorded) == recorded, "{law}, {place}: events hold what the law responds to");
        let trace = replayed(&built, &recorded::read_late(&recorded, seed()));
        let count = |kind| trace.iter().filter(|(event, _)| event.kind == kind).count();
        let (losses, timeouts) = (count(Kind::DupAcks), count(Kind::Timeout));
        println!("{law}, {place}: {} paths, {losses} losses, {timeouts} timeouts", traces.len());
        assert!(losses > 10, "{law}, {place}: there are losses");
        let worst = worst(law, &trace, &settings);
        assert!(worst.excess <= 1.0, "{law}, {place}, {} events, seed {}: {worst:?}", trace.len(), seed());
        in_the_kernel(law, &settings, &trace);
    }
}

/// The events with the windows of the Rust law after them.
fn replayed(law: &anabranch_cc::Settings, trace: &[(Event, f64)]) -> Vec<(Event, f64)> {
    let mut controller = law.row().build(law);
    let after = |&(event, _): &(Event, f64)| {
        drawn::tell(&mut *controller, &event);
        (event, controller.window())
    };
    trace.iter().map(after).collect()
}

#[track_caller]
fn compare(law: Law, pairs: &[(&str, &str)]) {
    let mut settings = Settings::of(law);
    for (key, value) in pairs {
        settings.set(key, value).expect("the C law has it");
    }
    let trace = trace(law, &settings, events());
    let kinds: BTreeSet<u32> = trace.iter().map(|(event, _)| event.kind as u32).collect();
    let last = if law == Law::Anabranch { Kind::Share } else { Kind::PathChanged };
    assert_eq!(kinds.len(), last as usize + 1, "every kind of event happens");
    let worst = worst(law, &trace, &settings);
    assert!(worst.excess <= 1.0, "{law}, {} events, seed {}: {worst:?}", trace.len(), seed());
}

fn events() -> usize {
    from_environment("ANABRANCH_EVENTS").unwrap_or(EVENTS)
}

fn from_environment<N: FromStr<Err: Debug>>(name: &str) -> Option<N> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn trace(law: Law, settings: &Settings, count: usize) -> Vec<(Event, f64)> {
    drawn(law, settings, count).trace
}

fn drawn(law: Law, settings: &Settings, count: usize) -> Flow {
    let (mut flow, len) = (Flow::new(law, settings, seed()), flow_len(law));
    while flow.trace.len() < count {
        if flow.trace.len() % len == len - 1 { flow.begin_anew() } else { flow.step() }
    }
    flow
}

fn seed() -> u64 {
    from_environment("ANABRANCH_SEED").unwrap_or(SEED)
}

/// The event after which the two windows differ most.
#[derive(Clone, Copy, Debug, Default)]
#[expect(dead_code, reason = "a failure prints the fields")]
struct Worst {
    /// The first event after which they differ by more than what is allowed.
    first: Option<usize>,
    /// The difference over what is allowed: one segment or 0.5 %, whichever is more.
    excess: f64,
    index: usize,
    rust: f64,
    c: f64,
}

fn worst(law: Law, trace: &[(Event, f64)], settings: &Settings) -> Worst {
    compared(trace, host::windows(law, settings, trace.iter().map(|(event, _)| *event)))
}

fn compared(trace: &[(Event, f64)], got: Vec<u64>) -> Worst {
    assert_eq!(got.len(), trace.len(), "one window an event");
    let mut worst = Worst::default();
    for (index, (&(_, rust), c)) in trace.iter().zip(got).enumerate() {
        let c = segments(c);
        let excess = (rust - c).abs() / 1.0_f64.max(0.005 * rust);
        if excess > worst.excess {
            worst = Worst { excess, index, rust, c, ..worst };
        }
        if excess > 1.0 {
            worst.first.get_or_insert(index);
        }
    }
    println!("{} events, the worst: {worst:?}", trace.len());
    worst
}

/// The kernel's verifier has accepted the programs: `BPF_PROG_TEST_RUN` of the C that the sockets run.
#[test]
fn laws_in_the_kernel_have_the_windows_of_rust() {
    for law in Law::ALL {
        let settings = Settings::of(law);
        in_the_kernel(law, &settings, &trace(law, &settings, events()));
    }
}

/// Compares the windows of the kernel, if it can run the law.
#[cfg(target_os = "linux")]
#[track_caller]
fn in_the_kernel(law: Law, settings: &Settings, trace: &[(Event, f64)]) {
    use anabranch_bpf::kernel::{Steps, check};
    if let Err(lack) = check(law) {
        println!("skipped in the kernel: {lack}");
        return;
    }
    let mut steps = Steps::load(law, settings).expect("the kernel takes the program");
    let begin = Event::new(Kind::PathChanged, 0);
    assert_eq!(steps.window(&begin).expect("it runs"), 10 << 24, "the first window of {law}");
    let got = trace.iter().map(|(event, _)| steps.window(event).expect("it runs")).collect();
    let worst = compared(trace, got);
    assert!(worst.excess <= 1.0, "{law} in the kernel, {} events, seed {}: {worst:?}", trace.len(), seed());
}

#[cfg(not(target_os = "linux"))]
fn in_the_kernel(_law: Law, _settings: &Settings, _trace: &[(Event, f64)]) {
    println!("skipped in the kernel: it is not Linux");
}

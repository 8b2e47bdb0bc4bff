//! Answers requests: opens files, and runs scenarios in slices.

use std::sync::Arc;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::{Experiment, Variant};
use anabranch_lab::live::{self, Curve, Hop, Live, PANELS};
use anabranch_lab::own::{Given, Module, Own};
use anabranch_lab::scenario::Scenario;
use anabranch_units::{SimSpan, SimTime};
use serde_json::{Value, json};

use crate::about::{about, law};
use crate::limits::{self, EVENTS_MAX, TEXT_MAX};
use crate::request::{File, Request, Run};

/// Gives the law that is the module of this name, or says why it is none.
pub type Modules<'a> = dyn FnMut(&str) -> Result<Module, String> + 'a;

/// Takes an answer: what becomes a JSON text, and the numbers of its `points`, of which the text has how many each curve has. They are the times of a curve,
/// its values, and those of the next curve.
pub type Emit<'a> = dyn FnMut(&Value, &[f64]) + 'a;

/// Answers a request, as `request` describes it, by one or several answers. A run gives a beginning, parts, and an end; what fails gives an error last.
/// `modules` gives the laws that a request names and the registry has not.
pub fn answer(request: &[u8], modules: &mut Modules<'_>, emit: &mut Emit<'_>) {
    let answered = parse(request).and_then(|request| match request {
        Request::About => {
            emit(&about(), &[]);
            Ok(())
        }
        Request::Law { name } => modules(&name).map(|module| emit(&law(&module), &[])),
        Request::Open { file } => picked(file, &[], modules).map(|(experiment, ..)| emit(&axes(&experiment), &[])),
        Request::Run(run) => {
            let Run { file, opens, variant, seed, packets, view } = *run;
            let (experiment, variant, mut scenario) = picked(file, &variant, modules)?;
            if opens {
                emit(&axes(&experiment), &[]);
            }
            scenario.seed = seed.unwrap_or(scenario.seed);
            let toml = experiment.written(&variant, scenario.seed).map_err(|error| error.to_string())?;
            run_parts(&experiment, &scenario, &toml, Parts { packets, view }, emit)
        }
    });
    if let Err(message) = answered {
        emit(&json!({ "kind": "error", "message": message }), &[]);
    }
}

fn parse(request: &[u8]) -> Result<Request, String> {
    if request.len() > REQUEST_MAX {
        return Err(format!("a request of more than {} MiB is too large", REQUEST_MAX >> 20));
    }
    Request::read(request).map_err(|error| format!("no request: {error}"))
}

/// The experiment of a file, and the scenario of a variant: of the first one without labels.
fn picked(
    File { name, text, bases, set, laws }: File,
    labels: &[String],
    modules: &mut Modules<'_>,
) -> Result<(Experiment, Variant, Scenario), String> {
    if laws.len() > LAWS_MAX {
        return Err(format!("{name} names {} laws of its own; here are at most {LAWS_MAX}", laws.len()));
    }
    if text.len() > TEXT_MAX {
        return Err(format!("{name} has more than {} MiB", TEXT_MAX >> 20));
    }
    let mut base = |wanted: &str| bases.get(wanted).cloned().ok_or_else(|| "it is not there".to_owned());
    let mut given = Given::new();
    for law in laws {
        let module = modules(&law)?;
        given.insert(law, Own::Module(Arc::new(module)));
    }
    let mut document = Document::parse_given(&name, &text, &mut base, &given).map_err(|error| error.to_string())?;
    set.iter().try_for_each(|set| document.set(set)).map_err(|error| error.to_string())?;
    let experiment = Experiment::parse(document).map_err(|error| error.to_string())?;
    let variants = experiment.variants();
    let variant = match labels {
        [] => variants.first(),
        labels => variants.iter().find(|variant| experiment.labels(variant) == labels),
    };
    let variant = variant.cloned().ok_or_else(|| format!("{name} has no variant {}", labels.join(", ")))?;
    let scenario = experiment.scenario(&variant).map_err(|error| error.to_string())?;
    limits::check(&scenario)?;
    Ok((experiment, variant, scenario))
}

fn axes(experiment: &Experiment) -> Value {
    let variants = experiment.variants();
    let shown = &variants[..variants.len().min(VARIANTS_MAX)];
    let labels: Vec<Vec<&str>> = shown.iter().map(|variant| experiment.labels(variant)).collect();
    json!({ "kind": "opened", "question": experiment.question(), "variants": labels })
}

/// Parts of a run, in seconds: the one whose packets are wanted, and the one that is drawn.
struct Parts {
    packets: Option<(f64, f64)>,
    view: Option<(f64, f64)>,
}

fn run_parts(
    experiment: &Experiment,
    scenario: &Scenario,
    toml: &str,
    parts: Parts,
    emit: &mut Emit<'_>,
) -> Result<(), String> {
    let curves = live::curves(scenario);
    let (links, flows) = live::names(scenario);
    let end = scenario.duration.as_secs_f64();
    let of_curve = |curve: &Curve| json!({ "panel": curve.panel, "name": curve.name, "colour": curve.colour, "steps": curve.is_steps });
    emit(
        &json!({
            "kind": "begin",
            "question": experiment.question(),
            "end": end,
            "seed": scenario.seed,
            "toml": (toml.len() <= TEXT_MAX).then_some(toml),
            "random": scenario.is_random(),
            "network": live::network(scenario),
            "links": links,
            "flows": flows,
            "panels": PANELS,
            "curves": curves.iter().map(of_curve).collect::<Vec<_>>(),
        }),
        &[],
    );
    let packets = parts.packets.map(|(from, to)| (time(from), time(to)));
    let mut live = Live::start(scenario, &curves, Some(experiment), packets);
    let view = parts
        .view
        .map(|(from, to)| (time(from).min(live.end()), time(to).min(live.end())))
        .filter(|(from, to)| from < to);
    if let Some((from, to)) = view {
        live.draw_in_detail(to.since(from).as_secs_f64());
    }
    let (from, to) = view.unwrap_or((SimTime::ZERO, live.end()));
    let (mut shown, mut span) = (SimTime::ZERO, scenario.duration / SLICES);
    let part = scenario.duration / PARTS;
    let (mut now, mut told) = (SimTime::ZERO, 0);
    while now < live.end() {
        let events = live.events();
        now = now.saturating_add(span).min(live.end());
        live.run_until(now).map_err(|failed| failed.to_string())?;
        if live.events() > EVENTS_MAX {
            return Err(format!(
                "the run was ended at {} s after {EVENTS_MAX} events; make it shorter or slower, or use `anabranch sim run`",
                now.as_secs_f64()
            ));
        }
        // Slices of about equal work, so that a limit is noticed in time.
        let handled = live.events() - events;
        if handled < SLICE_EVENTS / 2 {
            span = span.saturating_add(span).min(part);
        } else if handled > 2 * SLICE_EVENTS {
            span = (span / 2).max(SimSpan::from_ticks(1));
        }
        let rest = live.events() as f64 * live.end().since(now).as_secs_f64() / now.as_secs_f64();
        let is_due = now.since(shown) >= part && live.events() - told >= PART_EVENTS && rest >= PART_EVENTS as f64;
        if is_due && view.is_none() {
            let Points { counts, numbers } = points(&live, &curves, shown, now, PART_POINTS);
            let part = json!({ "kind": "part", "at": now.as_secs_f64(), "events": live.events(), "points": counts });
            emit(&part, &numbers);
            (shown, told) = (now, live.events());
        }
    }
    let report = live.report();
    let Points { counts, numbers } = points(&live, &curves, from, to, END_POINTS);
    let end = json!({
        "kind": "end",
        "hash": report.hash,
        "events": report.events,
        "measures": live.measures(experiment, &report),
        "points": counts,
        "hops": live.packets().iter().map(hop).collect::<Vec<_>>(),
        "coarsened": live.coarsened().map(|span| span.to_string()),
        "report": report,
    });
    emit(&end, &numbers);
    Ok(())
}

/// The points of curves: how many each has, and the times and values of one after the other.
struct Points {
    counts: Vec<usize>,
    numbers: Vec<f64>,
}

fn points(live: &Live<'_>, curves: &[Curve], from: SimTime, to: SimTime, most: usize) -> Points {
    let mut numbers = Vec::new();
    let counts = curves.iter().map(|curve| {
        let points = live.points(curve, from, to, most);
        numbers.extend(points.iter().map(|&(time, _)| time));
        numbers.extend(points.iter().map(|&(_, value)| value));
        points.len()
    });
    Points { counts: counts.collect(), numbers }
}

/// Link, flow, direction, the times in seconds, and whether it was lost.
fn hop(hop: &Hop) -> Value {
    let seconds = |time: Option<SimTime>| time.map(SimTime::as_secs_f64);
    json!([
        hop.link,
        hop.flow,
        hop.is_answer,
        seconds(Some(hop.came)),
        seconds(hop.left),
        seconds(hop.gone),
        hop.is_lost
    ])
}

/// A time of a request.
fn time(seconds: f64) -> SimTime {
    // A cast of a float is saturating: neither infinity nor NaN is a mistake here.
    SimTime::ZERO.saturating_add(SimSpan::from_micros((seconds.clamp(0.0, 1e6) * 1e6) as u64))
}

/// A file with all that it may extend.
const REQUEST_MAX: usize = 8 << 20;

/// The limit of laws of a file that the registry has not.
const LAWS_MAX: usize = 16;

/// The limit of variants that a list shows.
const VARIANTS_MAX: usize = 500;

/// The first slice is so small that even the fastest link does little in it.
const SLICES: u64 = 1_000_000;

/// The events that a slice should have: some tens of milliseconds.
const SLICE_EVENTS: u64 = 100_000;

/// The limit of parts of a run, each with a message to the page.
const PARTS: u64 = 40;

/// The events that a part has at least, and that are to come after it: what is simulated within a tenth of a second is drawn at once.
const PART_EVENTS: u64 = 100_000;

/// The points of a curve in a part, and in the whole run: a screen has fewer columns.
const PART_POINTS: usize = 60;
const END_POINTS: usize = 1600;

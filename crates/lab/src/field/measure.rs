//! What is measured in a run: at few times, from counters, so that a run need not record anything.

use anabranch_sim::QueueLengths;
use anabranch_units::{SimSpan, SimTime};

use crate::world::Simulation;

/// A measure of a run. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// The mean goodput of a flow in Mbit/s.
    Goodput { flow: usize, from: f64, to: f64 },
    /// The mean queue of the bottleneck in packets, the one in service included.
    Queue { from: f64, to: f64 },
    /// Packets that the bottleneck lost.
    Drops { from: f64, to: f64 },
    /// The time from `from` on until the first flow has delivered so many bytes, or until `to`. The run ends with it.
    Completion { bytes: u64, from: f64, to: f64 },
}

impl Measure {
    /// The same in a scenario. A series has the scenario's resolution, so a short queue differs a little.
    pub(super) fn expression(&self) -> String {
        match *self {
            Self::Goodput { flow, from, to } => format!("mean(flow.f{flow}.goodput, {from:.0}, {to:.0}) / 1e6"),
            Self::Queue { from, to } => format!("mean(link.bn.queue, {from:.0}, {to:.0})"),
            Self::Drops { from, to } => format!("count(link.bn.drops, {from:.0}, {to:.0})"),
            Self::Completion { to, .. } => format!("sum(flow.f0.delay, 0, {to:.0})"),
        }
    }

    /// The same as a term that a list repeats for each flow.
    pub(super) fn of_each(&self) -> String {
        match *self {
            Self::Goodput { flow, .. } => self.expression().replacen(&format!("flow.f{flow}."), "flow.#.", 1),
            _ => self.expression(),
        }
    }

    /// Its first and last time.
    fn times(&self) -> [f64; 2] {
        match *self {
            Self::Goodput { from, to, .. }
            | Self::Queue { from, to }
            | Self::Drops { from, to }
            | Self::Completion { from, to, .. } => [from, to],
        }
    }
}

/// The bottleneck is the first link of every scenario.
const BOTTLENECK: usize = 0;

/// The counters of a run at a time.
struct Snapshot {
    time: f64,
    /// Bytes by flow.
    read: Vec<u64>,
    queue: QueueLengths,
    dropped: u64,
}

impl Snapshot {
    fn of(simulation: &Simulation<'_>, time: f64, flows: usize) -> Self {
        Self {
            time,
            read: (0..flows).map(|flow| simulation.read(flow)).collect(),
            queue: simulation.queue_lengths(BOTTLENECK),
            dropped: simulation.dropped(BOTTLENECK),
        }
    }
}

/// Runs until the last measure has its value, or a controller has failed; returns the values in the order of the measures.
pub(super) fn run(simulation: &mut Simulation<'_>, measures: &[(String, Measure)]) -> Vec<f64> {
    let flows = simulation.flows();
    let mut times: Vec<f64> = measures.iter().flat_map(|(_, measure)| measure.times()).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let mut snapshots = Vec::with_capacity(times.len());
    for &time in &times {
        let completion = measures.iter().find_map(|(_, measure)| match *measure {
            Measure::Completion { bytes, from, to } if to.total_cmp(&time).is_eq() => Some((bytes, from)),
            _ => None,
        });
        if let Some((bytes, from)) = completion {
            return vec![complete(simulation, bytes, at(time)).since(at(from)).as_secs_f64()];
        }
        if !simulation.run_checked(at(time)) {
            // The values of a failed run have no meaning.
            return vec![f64::NAN; measures.len()];
        }
        snapshots.push(Snapshot::of(simulation, time, flows));
    }
    let find = |time: f64| {
        let found = snapshots.iter().find(|snapshot| snapshot.time.total_cmp(&time).is_eq());
        found.expect("there is a snapshot at each time of a measure")
    };
    let value = |(_, measure): &(String, Measure)| {
        let [before, after] = measure.times().map(find);
        match *measure {
            Measure::Goodput { flow, .. } => {
                let bytes = after.read[flow] - before.read[flow];
                8.0 * bytes as f64 / (after.time - before.time) / 1e6
            }
            Measure::Queue { .. } => after.queue.mean_since(&before.queue),
            Measure::Drops { .. } => (after.dropped - before.dropped) as f64,
            Measure::Completion { to, from, .. } => to - from,
        }
    };
    measures.iter().map(value).collect()
}

/// Runs until the first flow has delivered so many bytes, or until `end`; returns when.
fn complete(simulation: &mut Simulation<'_>, bytes: u64, end: SimTime) -> SimTime {
    while simulation.read(0) < bytes {
        let next = simulation.world.next_at();
        if next > end || simulation.fault().is_some() {
            return end;
        }
        simulation.run_until(next);
    }
    simulation.world.now()
}

fn at(seconds: f64) -> SimTime {
    SimTime::ZERO.saturating_add(SimSpan::from_secs_f64(seconds))
}

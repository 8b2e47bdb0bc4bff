//! A run that its caller moves on part by part, and looks at in between: for a page that draws while it runs.
//!
//! It reads no clock, so that it also runs where there is none.

use anabranch_sim::Observed;
use anabranch_units::{SimSpan, SimTime};

use crate::experiment::Experiment;
use crate::expression::{ExpressionError, Found};
use crate::html;
use crate::picture::{self, DRAWN_MAX};
use crate::report::{MeasureReport, Report};
use crate::reproduce::DescribedNetwork;
use crate::run::{ControllerFailed, measures};
use crate::scenario::Scenario;
use crate::series::{Kind, Series};
use crate::trace::{PacketTrace, Watch};
use crate::world::{CHECKED, Recording, Simulation};

pub use crate::trace::Hop;

/// A curve that a run draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The panel that it belongs to: one of [`PANELS`].
    pub panel: usize,
    /// Its name in the legend: a flow, a stream or path of one, or a link.
    pub name: String,
    /// The position of its flow or, for a queue, of its link among those that are drawn; curves with equal numbers have the same colour.
    pub colour: usize,
    /// Whether a value holds until the next; otherwise points are events.
    pub is_steps: bool,
    series: String,
    scale: f64,
}

/// The panels: title and unit.
pub const PANELS: [(&str, &str); 9] = [
    ("Goodput", "Mbit/s"),
    ("Window", "packets"),
    ("In flight", "packets"),
    ("RTT", "ms"),
    ("Queue", "packets"),
    ("Window of each path", "packets"),
    ("Goodput of each stream", "Mbit/s"),
    ("Held for a missing packet", "packets"),
    ("Delay of messages", "ms"),
];

/// The limit of streams that are drawn.
const STREAMS_MAX: u8 = 8;

/// The curves of a scenario. Not every transport has every one; what a run does not record has no points.
pub fn curves(scenario: &Scenario) -> Vec<Curve> {
    let mut curves = Vec::new();
    let mut add = |panel, name: &str, colour, series, scale, is_steps| {
        curves.push(Curve { panel, name: name.to_owned(), colour, is_steps, series, scale });
    };
    for (index, flow) in scenario.flows.iter().enumerate().take(DRAWN_MAX) {
        let id = &flow.id;
        add(0, id, index, format!("flow.{id}.goodput"), 1e-6, true);
        add(1, id, index, format!("flow.{id}.window"), 1.0, true);
        add(2, id, index, format!("flow.{id}.in_flight"), 1.0, true);
        add(RTT, id, index, format!("flow.{id}.rtt"), 1e3, true);
        add(7, id, index, format!("flow.{id}.held"), 1.0, true);
        add(8, id, index, format!("flow.{id}.delay"), 1e3, false);
        if flow.paths.len() > 1 {
            for path in 1..=flow.paths.len().min(DRAWN_MAX) {
                let series = format!("flow.{id}.path.{path}.window");
                add(5, &format!("{id} path {path}"), index + path - 1, series, 1.0, true);
            }
        }
        if flow.transport.has_stream(2) {
            for stream in (1..=STREAMS_MAX).take_while(|&stream| flow.transport.has_stream(stream)) {
                let series = format!("flow.{id}.stream.{stream}.goodput");
                add(6, &format!("{id} stream {stream}"), index + usize::from(stream) - 1, series, 1e-6, true);
            }
        }
    }
    for (index, link) in picture::links(scenario).into_iter().enumerate() {
        add(4, link, index, format!("link.{link}.queue"), 1.0, true);
    }
    curves
}

/// The drawing of a scenario's network as SVG, if it is small enough. Each link is a path with its name in `data-link`, its ends in `data-from` and
/// `data-to`, and the node at which the path begins in `data-begin`.
pub fn network(scenario: &Scenario) -> Option<String> {
    html::drawn_network(&DescribedNetwork::of(scenario))
}

/// The names of a scenario's directions of links, and of its flows, in the order of [`Hop`]'s positions.
pub fn names(scenario: &Scenario) -> (Vec<&str>, Vec<&str>) {
    let links = scenario.links.iter().map(|link| link.id.as_str()).collect();
    (links, scenario.flow_names().collect())
}

/// A run under way.
pub struct Live<'a> {
    simulation: Simulation<'a>,
    scenario: &'a Scenario,
    packets: Option<Observed<PacketTrace>>,
    /// The width of a bin of goodput, in seconds.
    bin: f64,
}

impl<'a> Live<'a> {
    /// Builds the world of a scenario, to record these curves and the series of these measures. `packets` is a part of the run whose packets are recorded.
    pub fn start(
        scenario: &'a Scenario,
        curves: &[Curve],
        measured: Option<&Experiment>,
        packets: Option<(SimTime, SimTime)>,
    ) -> Self {
        let measured = measured.map(Experiment::series).unwrap_or_default();
        let drawn: Vec<String> = curves.iter().map(|curve| curve.series.clone()).collect();
        let recording = Recording::Live { drawn: &drawn, measured: &measured };
        let (simulation, packets) = match packets {
            None => (Simulation::build(scenario, recording).expect(CHECKED), None),
            Some((from, to)) => {
                let watch = Watch { from, to };
                let (simulation, trace) = Simulation::build_watching(scenario, recording, watch).expect(CHECKED);
                (simulation, Some(trace))
            }
        };
        Self { simulation, scenario, packets, bin: picture::bin(scenario.duration.as_secs_f64()) }
    }

    /// Runs until `until`, or to the end of the scenario if that comes first.
    ///
    /// # Errors
    /// If a controller of a flow's own fails.
    pub fn run_until(&mut self, until: SimTime) -> Result<(), ControllerFailed> {
        let is_well = self.simulation.run_checked(until.min(self.end()));
        if is_well { Ok(()) } else { Err(ControllerFailed(self.simulation.fault().unwrap_or_default().to_owned())) }
    }

    /// Makes bins of goodput for a drawing of `span` seconds; without it, of the whole run.
    pub fn draw_in_detail(&mut self, span: f64) {
        self.bin = picture::bin(span);
    }

    /// The end of the scenario.
    pub fn end(&self) -> SimTime {
        self.simulation.end()
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.simulation.world.events()
    }

    /// The points of a curve from `from` to `to`, in seconds and the unit of its panel: at most about `most`, without losing a spike.
    pub fn points(&self, curve: &Curve, from: SimTime, to: SimTime, most: usize) -> Vec<(f64, f64)> {
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        let Ok(mut series) = self.simulation.series(&curve.series) else { return Vec::new() };
        if series.kind == Kind::Events && curve.is_steps {
            // Bins that have ended.
            let ended = (to / self.bin + 1e-9).floor() * self.bin;
            let within = Series::events(series.points().iter().copied().filter(|&(at, _)| at < ended));
            let Ok(bins) = within.bins(self.bin, ended) else { return Vec::new() };
            series = bins;
        } else if curve.panel == RTT {
            // A round trip of zero was not measured yet.
            series = Series::variable(series.points().iter().copied().filter(|&(_, rtt)| rtt > 0.0));
        }
        series.drawn_in(from, to, most).into_iter().map(|(time, value)| (time, value * curve.scale)).collect()
    }

    /// The packets of the part to watch.
    pub fn packets(&self) -> Vec<Hop> {
        self.packets.as_ref().map(|trace| trace.borrow().hops()).unwrap_or_default()
    }

    /// The report; its wall time is 0.
    pub fn report(&self) -> Report {
        self.simulation.report()
    }

    /// The values of the measures of `experiment`, in the order of the file.
    pub fn measures(&self, experiment: &Experiment, report: &Report) -> Vec<MeasureReport> {
        let end = self.scenario.duration.as_secs_f64();
        measures(experiment, report, |name| {
            let series = self.simulation.series(name).map_err(ExpressionError)?;
            Ok(Found { series: Some(series), end })
        })
    }

    /// The resolution of the records, if memory made it coarser than the scenario's.
    pub fn coarsened(&self) -> Option<SimSpan> {
        self.simulation.coarsened()
    }
}

/// The position of the panel of round trips.
const RTT: usize = 3;

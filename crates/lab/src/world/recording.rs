//! The records of a run besides its counters, and their memory.

use anabranch_sim::Detail;

use crate::names::SeriesPlace;
use crate::scenario::Scenario;
use crate::scenario::transport::Transport;

/// The records besides the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recording<'a> {
    /// Nothing.
    Counters,
    /// Everything.
    #[cfg(test)]
    Trace,
    /// The data for these series, by their names.
    Series(&'a [String]),
    /// The data for series that are drawn alone, and for others that are measured, by their names.
    Live { drawn: &'a [String], measured: &'a [String] },
}

/// The rows of a link that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rows {
    Nothing,
    /// Those at which its queue changes, for a drawing of that alone. A measure has all rows, as its sums depend on them in the last bit.
    Queue,
    All,
}

/// What is recorded, by the position of the flow or the link.
pub(super) struct Wanted {
    /// Flows whose source records its variables.
    pub(super) sources: Vec<bool>,
    /// Flows whose sink records what it delivers.
    pub(super) sinks: Vec<bool>,
    /// Flows whose packets are observed where they arrive, at both ends.
    pub(super) arrivals: Vec<bool>,
    pub(super) links: Vec<Rows>,
}

impl Wanted {
    pub(super) fn new(scenario: &Scenario, recording: Recording<'_>) -> Self {
        let (drawn, measured, all) = match recording {
            Recording::Counters => (&[][..], &[][..], false),
            #[cfg(test)]
            Recording::Trace => (&[][..], &[][..], true),
            Recording::Series(names) => (&[][..], names, false),
            Recording::Live { drawn, measured } => (drawn, measured, false),
        };
        let flows = vec![all; scenario.flows.len()];
        let links = vec![if all { Rows::All } else { Rows::Nothing }; scenario.links.len()];
        let mut wanted = Self { sources: flows.clone(), sinks: flows.clone(), arrivals: flows, links };
        let drawn = drawn.iter().map(|name| (name, if name.ends_with(".queue") { Rows::Queue } else { Rows::All }));
        for (name, rows) in drawn.chain(measured.iter().map(|name| (name, Rows::All))) {
            // An unknown name is refused when it is looked up.
            for (place, index) in scenario.series_places(name).unwrap_or_default() {
                let is_one_of = |names: &[&str]| names.iter().any(|series| name.ends_with(series));
                match place {
                    SeriesPlace::Link => wanted.links[index] = wanted.links[index].max(rows),
                    SeriesPlace::Flow | SeriesPlace::Stream(_) if is_one_of(&ARRIVAL_SERIES) => {
                        wanted.arrivals[index] = true;
                    }
                    SeriesPlace::Flow | SeriesPlace::Stream(_) if is_one_of(&SINK_SERIES) => {
                        wanted.sinks[index] = true;
                        // Their sinks have no order, so what arrives is taken for goodput.
                        let is_bare =
                            matches!(scenario.flows[index].transport, Transport::Cbr(_) | Transport::OnOff(_));
                        wanted.arrivals[index] |= is_bare;
                    }
                    SeriesPlace::Flow | SeriesPlace::Stream(_) | SeriesPlace::Path(_) => wanted.sources[index] = true,
                }
            }
        }
        wanted
    }

    /// The detail of each history, which may take an equal part of [`HISTORIES_BYTES_MAX`].
    pub(super) fn detail(&self, scenario: &Scenario) -> Detail {
        let mut histories = self.links.iter().filter(|rows| **rows != Rows::Nothing).count();
        for (index, flow) in scenario.flows.iter().enumerate() {
            // The histories of a flow: rows of each path, and acknowledgements, with SCTP three more; offers, deliveries, held packets, arrivals,
            // and returning ACKs.
            let others = if matches!(flow.transport, Transport::Sctp { .. }) { 4 } else { 1 };
            let of_source = if self.sources[index] { flow.paths.len().max(1) + others } else { 0 };
            histories += of_source + if self.sinks[index] || self.arrivals[index] { 5 } else { 0 };
        }
        Detail { resolution: scenario.resolution, bytes_max: HISTORIES_BYTES_MAX / histories.max(1) }
    }
}

/// The memory for all records of a run. A growing vector takes twice as much for a moment.
const HISTORIES_BYTES_MAX: usize = 128 << 20;

/// The series that are computed from the arrivals of packets at a flow's ends.
const ARRIVAL_SERIES: [&str; 2] = [".throughput", ".ipd"];

/// The series that are computed from what a flow's sink delivers.
const SINK_SERIES: [&str; 3] = [".goodput", ".held", ".delay"];

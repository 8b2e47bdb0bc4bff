//! What is simulated: a network, its flows, and what happens to its routes.
//!
//! A [`Scenario`] is parsed once from a [`Document`] and cannot be wrong afterwards: names are indices, every flow has a way to
//! its destination and back, every window is at least one packet.

pub mod change;
mod check;
pub(crate) mod keys;
mod outside;
mod twin;
pub(crate) mod values;

use std::collections::BTreeMap;

use anabranch_sim::{DriverSpec, ErrorSpec, HoldSpec, LinkSpec, QueueSpec};
use anabranch_units::{Rate, SimSpan, SimTime};

use self::keys::ClockKeys;
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::Document;
use crate::experiment::keys::FileKeys;
use crate::expression::{ExpressionError, Found};
use crate::report;
use crate::series::{self, Kind};
use crate::transport::Transport;

/// A network and what happens in it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed of every random number in it.
    pub seed: u64,
    /// How long it runs.
    pub duration: SimSpan,
    pub(crate) clock: ClockKeys,
    /// What happens within it is one point of a series.
    pub(crate) resolution: SimSpan,
    /// Names of the nodes; [`NodeIndex`] counts in them.
    pub(crate) nodes: Vec<String>,
    /// Directions of links; a duplex link is two.
    pub(crate) links: Vec<Link>,
    pub(crate) flows: Vec<Flow>,
    /// What drives the programs at a node, where that is not the simulator itself.
    pub(crate) drivers: BTreeMap<NodeIndex, DriverSpec>,
    /// In the order of their times.
    pub(crate) routes: Vec<RouteChange>,
}

/// Position of a node in [`Scenario::nodes`].
pub(crate) type NodeIndex = usize;
/// Position of a link in [`Scenario::links`].
pub(crate) type LinkIndex = usize;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// `LINK` or `LINK.reverse`.
    pub(crate) id: String,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    /// Above zero.
    pub(crate) rate: Rate,
    pub(crate) delay: SimSpan,
    pub(crate) queue: QueueSpec,
    /// What it loses in front of its queue, one model after the other.
    pub(crate) errors: Vec<ErrorSpec>,
    pub(crate) hold: Option<HoldSpec>,
    /// Bytes of the longest packet, and from when on they are others.
    pub(crate) mtu: Option<u32>,
    pub(crate) mtu_changes: Vec<(SimTime, u32)>,
}

impl Link {
    /// The same for the simulator.
    pub(crate) fn spec(&self) -> LinkSpec {
        let spec = LinkSpec::new(self.rate, self.delay).named(&self.id).queue(self.queue.clone());
        let spec = self.errors.iter().cloned().fold(spec, LinkSpec::error);
        let spec = self.hold.into_iter().fold(spec, LinkSpec::hold);
        self.mtu.into_iter().fold(spec, LinkSpec::mtu)
    }
}

/// A source and its destination.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) start: SimTime,
    /// It starts up to so much later, by chance.
    pub(crate) start_jitter: SimSpan,
    pub(crate) stop: Option<SimTime>,
    /// As it was written, for reports.
    pub(crate) transport_name: String,
    /// Name of the congestion law, for reports.
    pub(crate) law_name: Option<String>,
    pub(crate) transport: Transport,
    /// Bytes of a data packet on the wire.
    pub(crate) packet: u64,
    /// Whether nobody has chosen the receiver's window of an agent of ns-2.
    pub(crate) is_window_default: bool,
    /// The interfaces of an association or a connection; none where packets go the shortest way.
    pub(crate) paths: Vec<Interfaces>,
}

impl Flow {
    /// Whether it begins or ends at a node.
    pub(crate) fn has_end(&self, node: NodeIndex) -> bool {
        [self.from, self.to].contains(&node)
    }
}

/// The links by which an association or a connection leaves its source and reaches its destination, and those for the way back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interfaces {
    pub(crate) first: LinkIndex,
    pub(crate) last: LinkIndex,
    pub(crate) back_first: LinkIndex,
    pub(crate) back_last: LinkIndex,
    pub(crate) loss_rate: f32,
    pub(crate) weight: u32,
}

/// From `at` on, packets for `to` leave `node` by `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteChange {
    pub(crate) at: SimTime,
    pub(crate) node: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) via: LinkIndex,
}

/// Whose series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesPlace {
    Flow,
    /// A stream of a flow, by its number.
    Stream(u8),
    /// A path of a flow, by its number.
    Path(u8),
    Link,
}

impl Scenario {
    /// Reads the scenario of a document.
    ///
    /// # Errors
    /// The first mistake in it, with its place and what to do about it.
    pub fn parse(document: &Document) -> Result<Self, Diagnostic> {
        Self::from_keys(document, &document.decode::<FileKeys>()?)
    }

    pub(crate) fn from_keys(document: &Document, keys: &FileKeys) -> Result<Self, Diagnostic> {
        check::check(document, keys)
    }

    /// Whether runs have a gauge of this name; none has labels.
    ///
    /// # Errors
    /// If not, with the nearest name.
    pub fn check_gauge(&self, name: &str, labels: &[String]) -> Result<(), ExpressionError> {
        match labels {
            [] => {
                let flows: Vec<&str> = self.flows.iter().map(|flow| flow.id.as_str()).collect();
                let links: Vec<&str> = self.links.iter().map(|link| link.id.as_str()).collect();
                report::check_gauge(&flows, &links, name).map_err(ExpressionError::new)
            }
            _ => Err(ExpressionError::new(format!("`{name}` has labels, but there is one run: leave them out"))),
        }
    }

    /// Whether runs have a series of this name.
    ///
    /// # Errors
    /// If not, with the nearest name.
    pub fn check_series(&self, name: &str) -> Result<(), ExpressionError> {
        self.series_places(name).map(|_| ()).map_err(ExpressionError::new)
    }

    /// A series of this name before anything runs: only when it will end is known.
    ///
    /// # Errors
    /// If there is none, with the nearest name.
    pub fn series_to_come(&self, name: &str) -> Result<Found, ExpressionError> {
        self.check_series(name).map(|()| Found { series: None, end: self.duration.as_secs_f64() })
    }

    /// Whose series this is, by position: of `*`, of all, whose events are added up.
    pub(crate) fn series_places(&self, name: &str) -> Result<Vec<(SeriesPlace, usize)>, String> {
        let Some((place, variable)) = name.split_once(".*.") else {
            return self.series_place(name).map(|one| vec![one]);
        };
        if series::kind(name) != Some(Kind::Events) {
            return Err(format!("`{name}` would add up variables: `*` is for events, such as {place}.*.throughput"));
        }
        match place {
            "flow" => Ok((0..self.flows.len()).map(|index| (SeriesPlace::Flow, index)).collect()),
            "link" => Ok((0..self.links.len()).map(|index| (SeriesPlace::Link, index)).collect()),
            _ => Err(format!("`{name}` is no series; write flow.*.{variable} or link.*.{variable}")),
        }
    }

    /// Whose series this is, by position. That there is such a series is known: the name was parsed as one.
    fn series_place(&self, name: &str) -> Result<(SeriesPlace, usize), String> {
        let find = |what: &str, id: &str, known: Vec<&str>| {
            let missing = || format!("no {what} is called `{id}`; {}", suggestion(id, known.iter().copied()));
            known.iter().position(|other| *other == id).ok_or_else(missing)
        };
        let flows = || self.flows.iter().map(|flow| flow.id.as_str()).collect();
        let links = || self.links.iter().map(|link| link.id.as_str()).collect();
        match name.split_once('.').and_then(|(kind, rest)| Some((kind, rest.rsplit_once('.')?.0))) {
            Some(("flow", place)) if let Some((id, number)) = series::stream(place) => {
                find("flow", id, flows()).map(|index| (SeriesPlace::Stream(number), index))
            }
            Some(("flow", place)) if let Some((id, number)) = series::path(place) => {
                find("flow", id, flows()).map(|index| (SeriesPlace::Path(number), index))
            }
            Some(("flow", id)) => find("flow", id, flows()).map(|index| (SeriesPlace::Flow, index)),
            Some(("link", id)) => find("link", id, links()).map(|index| (SeriesPlace::Link, index)),
            _ => Err(format!("`{name}` is no series; write flow.<id>.<series> or link.<id>.<series>")),
        }
    }

    /// Names of the tables that a traced run of it may have ([`Trace::files`](crate::run::Trace::files)).
    pub fn trace_files(&self) -> Vec<String> {
        let flows = self.flows.iter().map(|flow| format!("flow.{}.csv", flow.id));
        flows.chain(self.links.iter().map(|link| format!("link.{}.csv", link.id))).collect()
    }

    /// Whether another seed gives another run: some packets are lost or sent, or flows start, by chance. What the seed does besides, the phases
    /// of ns-2's clocks, every paper leaves at ns-2's default.
    pub fn is_random(&self) -> bool {
        let is_open = |p: f64| 0.0 < p && p < 1.0;
        let loses = |error: &ErrorSpec| match error {
            ErrorSpec::List(_)
            | ErrorSpec::At(_)
            | ErrorSpec::Periodic { .. }
            | ErrorSpec::Policer { .. }
            | ErrorSpec::Outage { .. }
            | ErrorSpec::Outages { .. } => false,
            &ErrorSpec::PerPacket(p) | &ErrorSpec::PerByte(p) => is_open(p),
            ErrorSpec::GilbertElliott(_) => true,
        };
        let is_held = |link: &Link| link.hold.is_some_and(HoldSpec::is_random);
        self.links.iter().any(|link| {
            link.errors.iter().any(loses)
                || matches!(link.queue, QueueSpec::Red(_) | QueueSpec::FqCoDel(_) | QueueSpec::Pie(_))
                || is_held(link)
        }) || self.drivers.values().any(|driver| driver.is_random())
            || self.flows.iter().any(|flow| flow.transport.is_random() || !flow.start_jitter.is_zero())
    }
}

#[cfg(test)]
mod tests;

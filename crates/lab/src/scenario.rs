//! What is simulated: a network, its flows, and what happens to its routes.
//!
//! A [`Scenario`] is parsed once from a [`Document`] and cannot be wrong afterwards: names are indices, every flow has a way to
//! its destination and back, every window is at least one packet.

mod check;
pub(crate) mod keys;

use anabranch_sim::{ErrorSpec, QueueSpec};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::experiment::keys::FileKeys;
use crate::expression::ExpressionError;
use crate::report;
use crate::transport::Transport;

/// A network and what happens in it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed of every random number in it.
    pub seed: u64,
    /// How long it runs.
    pub duration: SimSpan,
    /// Names of the nodes; [`NodeIndex`] counts in them.
    pub(crate) nodes: Vec<String>,
    /// Directions of links; a duplex link is two.
    pub(crate) links: Vec<Link>,
    pub(crate) flows: Vec<Flow>,
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
    pub(crate) error: Option<ErrorSpec>,
}

/// A source and its destination.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) start: SimTime,
    pub(crate) stop: Option<SimTime>,
    /// As it was written, for reports.
    pub(crate) transport_name: String,
    /// Name of the congestion law, for reports.
    pub(crate) law_name: Option<String>,
    pub(crate) transport: Transport,
}

/// From `at` on, packets for `to` leave `node` by `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteChange {
    pub(crate) at: SimTime,
    pub(crate) node: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) via: LinkIndex,
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
            [] => report::check_gauge(self, name).map_err(ExpressionError::new),
            _ => Err(ExpressionError::new(format!("`{name}` has labels, but there is one run: leave them out"))),
        }
    }

    /// Whether another seed gives another run: some packets are lost or sent by chance. What the seed does besides, the phases
    /// of ns-2's clocks, every paper leaves at ns-2's default.
    pub fn is_random(&self) -> bool {
        let is_open = |p: f64| 0.0 < p && p < 1.0;
        let loses = |error: &ErrorSpec| match error {
            ErrorSpec::List(_) | ErrorSpec::Periodic { .. } => false,
            &ErrorSpec::PerPacket(p) | &ErrorSpec::PerByte(p) => is_open(p),
            ErrorSpec::GilbertElliott(_) => true,
        };
        self.links.iter().any(|link| link.error.as_ref().is_some_and(loses) || matches!(link.queue, QueueSpec::Red(_)))
            || self.flows.iter().any(|flow| flow.transport.is_random())
    }
}

#[cfg(test)]
mod tests;

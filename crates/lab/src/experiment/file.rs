//! The keys of a file: those of a scenario, and those that make an experiment of it. Their comments are the reference.

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use super::keys::{AssignmentKeys, AxisKeys, ClaimKeys, ExperimentKeys, FigureKeys, NoteKeys, Ordered, TableKeys};
use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::load::keys::{ClockKeys, FlowKeys, HostKeys, LinkKeys, RouteKeys, TopologyKeys};
use crate::load::network::NetworkKeys;
use crate::load::values::Text;
use crate::scenario::Scenario;

/// A scenario: a network, its flows, and what happens to its routes. With `[experiment]` it is an experiment as well: what is
/// varied, what is measured, and what a paper claims.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario")]
pub(crate) struct FileKeys {
    /// Seed of every random number.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// How long the scenario runs.
    pub(crate) duration: Text<SimSpan>,
    /// How time is added up; `exact` if absent.
    #[serde(default)]
    pub(crate) clock: ClockKeys,
    /// How finely series are recorded: what happens within so much time is one point. All is recorded if absent, which is
    /// much of a long run at a high rate.
    #[serde(default)]
    pub(crate) resolution: Text<SimSpan>,
    /// Links of a network of a known shape, besides those of `[[link]]`.
    #[serde(default)]
    #[expect(dead_code, reason = "topologies are written out before the keys are read")]
    pub(crate) topology: Option<TopologyKeys>,
    /// Whether flows are spread over all ways with the fewest links, by a hash of flow and direction (ECMP); else all take the first. True if absent with a
    /// topology of the kind `fat_tree`, else false.
    #[serde(default)]
    pub(crate) multipath: bool,
    /// Links between nodes.
    #[serde(default)]
    pub(crate) link: Vec<LinkKeys>,
    /// Sources and their destinations.
    #[serde(default)]
    pub(crate) flow: Vec<FlowKeys>,
    /// What wakes up the programs at a node. Without any, nothing is late.
    #[serde(default)]
    pub(crate) host: Vec<HostKeys>,
    /// Changes of routes. Without any, packets take the way with the fewest links.
    #[serde(default)]
    pub(crate) route: Vec<RouteKeys>,
    /// What is varied: `sim sweep` and `reproduce` run every combination.
    #[serde(default)]
    pub(crate) axis: Vec<AxisKeys>,
    /// Makes an experiment of the scenario.
    #[serde(default)]
    pub(crate) experiment: Option<ExperimentKeys>,
    /// What our own transport in the place of ns-2's agents sets besides: keys of the scenario, whatever an axis sets. What
    /// counts packets, such as a list of losses, means another moment when another sender counts.
    #[serde(default)]
    pub(crate) engine: AssignmentKeys,
    /// Names for what is measured in a run: an expression such as `flow.f0.max_seq + flow.f1.max_seq`.
    #[serde(default)]
    pub(crate) measure: Ordered<String>,
    /// Claims that a paper prints as a table.
    #[serde(default)]
    pub(crate) table: Vec<TableKeys>,
    /// Claims that stand alone.
    #[serde(default)]
    pub(crate) claim: Vec<ClaimKeys>,
    /// Remarks that are printed under a table.
    #[serde(default)]
    pub(crate) note: Vec<NoteKeys>,
    /// Figures of a report.
    #[serde(default)]
    pub(crate) figure: Vec<FigureKeys>,
}

fn one() -> u64 {
    1
}

impl FileKeys {
    /// The scenario among them, checked.
    ///
    /// # Errors
    /// The first mistake in it, with its place in `document` and what to do about it.
    pub(crate) fn scenario(&self, document: &Document) -> Result<Scenario, Diagnostic> {
        NetworkKeys {
            seed: self.seed,
            duration: self.duration.0,
            clock: self.clock,
            resolution: self.resolution.0,
            is_multipath: self.multipath,
            links: &self.link,
            flows: &self.flow,
            hosts: &self.host,
            routes: &self.route,
        }
        .check(document)
    }
}

impl Scenario {
    /// Reads the scenario of a document.
    ///
    /// # Errors
    /// The first mistake in it, with its place and what to do about it.
    pub fn parse(document: &Document) -> Result<Self, Diagnostic> {
        document.decode::<FileKeys>()?.scenario(document)
    }
}

//! The keys of a file: those of a scenario, and those of an experiment. Their comments are the reference.

use std::collections::BTreeMap;

use anabranch_units::SimSpan;
use schemars::JsonSchema;

use super::keys::{
    AssignmentKeys, AxisKeys, ClaimKeys, ExperimentKeys, FigureKeys, InFileOnly, NoteKeys, Ordered, TableKeys,
};
use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::load::assembly::ScenarioKeys;
use crate::load::keys::{ClockKeys, FlowKeys, HostKeys, LinkKeys, RouteKeys, TopologyKeys};
use crate::load::values::Text;
use crate::scenario::Scenario;

/// A scenario: a network, its flows, and changes of its routes. With `[experiment]` it is also an experiment: variations, measures
/// and claims.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "scenario")]
pub(crate) struct FileKeys {
    /// The base: a file that this one extends, relative to this file's folder. A key that this file does not have is the base's. Tables merge
    /// by key; links, flows and hosts by `id`; every other list, also of claims, replaces the base's. A base may extend another one.
    #[expect(dead_code, reason = "bases are read before a file is")]
    pub(crate) extends: Option<InFileOnly<String>>,
    /// Texts that several claims, tables, notes or figures share: `because = "$name"` is the text `name`.
    #[expect(dead_code, reason = "texts are put in their places before a file is read")]
    pub(crate) text: Option<InFileOnly<BTreeMap<String, String>>>,
    /// The seed of all random numbers.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// The simulated time.
    pub(crate) duration: Text<SimSpan>,
    /// The arithmetic of time; `exact` if absent.
    #[serde(default)]
    pub(crate) clock: ClockKeys,
    /// The resolution of recorded series: changes within this time are one point. If absent every change is recorded, which takes much memory
    /// in a long run at a high rate.
    #[serde(default)]
    pub(crate) resolution: Text<SimSpan>,
    /// Links of a network of a known shape, besides those of `[[link]]`.
    #[expect(dead_code, reason = "topologies are written out before the keys are read")]
    pub(crate) topology: Option<InFileOnly<TopologyKeys>>,
    /// Whether flows are spread over all routes with the fewest links, by a hash of flow and direction (ECMP); else all take the first
    /// route. If absent: true with a topology of the kind `fat_tree`, else false.
    #[serde(default)]
    pub(crate) multipath: bool,
    /// Links between nodes.
    #[serde(default)]
    pub(crate) link: Vec<LinkKeys>,
    /// Sources and their destinations.
    #[serde(default)]
    pub(crate) flow: Vec<FlowKeys>,
    /// The delays of real machines at a node. If absent there are none.
    #[serde(default)]
    pub(crate) host: Vec<HostKeys>,
    /// Changes of routes. If absent packets take the path with the fewest links.
    #[serde(default)]
    pub(crate) route: Vec<RouteKeys>,
    /// The axes of variation: `sim sweep` and `reproduce` run every combination.
    #[serde(default)]
    pub(crate) axis: Vec<AxisKeys>,
    /// Makes the scenario an experiment.
    pub(crate) experiment: Option<ExperimentKeys>,
    /// Scenario keys that are set when our own transport replaces ns-2's agents; they override axes. A list of lost packets is an example: with
    /// another sender, the same numbers are other moments.
    #[serde(default)]
    pub(crate) engine: AssignmentKeys,
    /// Names of measures: expressions such as `flow.f0.max_seq + flow.f1.max_seq`.
    #[serde(default)]
    pub(crate) measure: Ordered<String>,
    /// Claims that a paper prints as a table.
    #[serde(default)]
    pub(crate) table: Vec<TableKeys>,
    /// Single claims.
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
    /// The checked scenario of these keys.
    ///
    /// # Errors
    /// The first mistake, with its place in `document` and its correction.
    pub(crate) fn scenario(&self, document: &Document) -> Result<Scenario, Diagnostic> {
        ScenarioKeys {
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

    /// Replaces ns-2's agents by our own transport wherever it can; returns whether a flow that starts within the run is replaced. Otherwise the
    /// run is that of the agents.
    pub(crate) fn replace_agents(&mut self) -> bool {
        let mut is_replaced = false;
        for flow in &mut self.flow {
            if let Some(twin) = flow.twin() {
                is_replaced |= twin.start.0 <= self.duration.0;
                *flow = twin;
            }
        }
        is_replaced
    }
}

impl Scenario {
    /// Reads the scenario of a document.
    ///
    /// # Errors
    /// The first mistake, with its place and its correction.
    pub fn parse(document: &Document) -> Result<Self, Diagnostic> {
        document.decode::<FileKeys>()?.scenario(document)
    }
}

//! The network of a scenario in words. [`anabranch_sim::Topology`] has its numbers; an outcome keeps what its readers are shown.

use anabranch_sim::{ErrorSpec, LinkSpec, QueueSpec, Wire};
use anabranch_units::settings::Part;

use super::{DescribedFlow, DescribedLink, DescribedNetwork};
use crate::scenario::Scenario;

impl DescribedNetwork {
    /// The network of `scenario`.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let node = |index: usize| scenario.nodes[index].clone();
        let way_back = |link: &Wire| {
            let id = format!("{}.reverse", link.id);
            scenario.links.iter().find(move |other| other.id == id)
        };
        let mut links = Vec::new();
        for link in scenario.links.iter().filter(|link| !link.id.ends_with(".reverse")) {
            let back = way_back(link);
            let show = |shown: &Wire, is_duplex| DescribedLink {
                id: shown.id.clone(),
                from: node(shown.from),
                to: node(shown.to),
                rate: shown.spec.rate.to_string(),
                delay: delay(&shown.spec),
                queue: shown.spec.queue.shown(),
                error: (!shown.spec.errors.is_empty())
                    .then(|| shown.spec.errors.iter().map(error).collect::<Vec<_>>().join("; ")),
                is_duplex,
            };
            // The default of a reverse direction.
            let is_plain = |back: &Wire| {
                let errors = outages(&link.spec);
                back.spec == LinkSpec { queue: QueueSpec::default(), errors, hold: None, ..link.spec.clone() }
            };
            match back {
                Some(back) if !is_plain(back) => links.extend([show(link, false), show(back, false)]),
                back => links.push(show(link, back.is_some())),
            }
        }
        let flows = scenario.flows.iter().map(|flow| DescribedFlow {
            id: flow.id.clone(),
            from: node(flow.from),
            to: node(flow.to),
            transport: flow.transport_name.clone(),
        });
        Self { nodes: scenario.nodes.clone(), links, flows: flows.collect() }
    }
}

/// The outages, which a link has in both directions.
fn outages(link: &LinkSpec) -> Vec<ErrorSpec> {
    link.errors
        .iter()
        .filter(|error| matches!(error, ErrorSpec::Outage { .. } | ErrorSpec::Outages { .. }))
        .cloned()
        .collect()
}

/// The delay of a link, with its hold.
fn delay(link: &LinkSpec) -> String {
    let mtu = link.mtu.map_or_else(String::new, |mtu| format!(", packets of up to {mtu} B"));
    let ecn = if link.clears_ecn { ", clears ECN" } else { "" };
    let delay = format!("{}{mtu}{ecn}", link.delay);
    match link.hold {
        None => delay,
        Some(hold) => format!("{delay}, held: {}", hold.shown()),
    }
}

fn error(spec: &ErrorSpec) -> String {
    match spec {
        ErrorSpec::Outage { from, until } => format!("everything from {from} to {until}"),
        ErrorSpec::Outages { first, length, every } => format!("everything for {length} each {every}, from {first} on"),
        other => other.shown(),
    }
}

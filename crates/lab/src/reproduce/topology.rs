//! The network of a scenario in words.

use anabranch_sim::{ErrorSpec, FqCoDelParameters, GilbertElliott, HoldSpec, QueueSpec, Threshold, Unit};

use super::{Topology, TopologyFlow, TopologyLink};
use anabranch_units::SimTime;

use crate::scenario::{Link, Scenario};

impl Topology {
    /// The network of `scenario`.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let node = |index: usize| scenario.nodes[index].clone();
        let way_back = |link: &Link| {
            let id = format!("{}.reverse", link.id);
            scenario.links.iter().find(move |other| other.id == id)
        };
        let mut links = Vec::new();
        for link in scenario.links.iter().filter(|link| !link.id.ends_with(".reverse")) {
            let back = way_back(link);
            let show = |shown: &Link, is_duplex| TopologyLink {
                id: shown.id.clone(),
                from: node(shown.from),
                to: node(shown.to),
                rate: shown.rate.to_string(),
                delay: delay(shown),
                queue: queue(&shown.queue),
                error: (!shown.errors.is_empty())
                    .then(|| shown.errors.iter().map(error).collect::<Vec<_>>().join("; ")),
                is_duplex,
            };
            // The default of a reverse direction.
            let is_plain = |back: &Link| {
                let plain = Link { queue: QueueSpec::Packets(50), errors: outages(link), hold: None, ..link.clone() };
                *back == Link { id: back.id.clone(), from: link.to, to: link.from, ..plain }
            };
            match back {
                Some(back) if !is_plain(back) => links.extend([show(link, false), show(back, false)]),
                back => links.push(show(link, back.is_some())),
            }
        }
        let flows = scenario.flows.iter().map(|flow| TopologyFlow {
            id: flow.id.clone(),
            from: node(flow.from),
            to: node(flow.to),
            transport: flow.transport_name.clone(),
        });
        Self { nodes: scenario.nodes.clone(), links, flows: flows.collect() }
    }
}

/// The outages, which a link has in both directions.
fn outages(link: &Link) -> Vec<ErrorSpec> {
    link.errors
        .iter()
        .filter(|error| matches!(error, ErrorSpec::Outage { .. } | ErrorSpec::Outages { .. }))
        .cloned()
        .collect()
}

/// The delay of a link, with its hold.
fn delay(link: &Link) -> String {
    let mtu = link.mtu.map_or_else(String::new, |mtu| format!(", packets of up to {mtu} B"));
    let ecn = if link.clears_ecn { ", clears ECN" } else { "" };
    let delay = format!("{}{mtu}{ecn}", link.delay);
    match link.hold {
        None => delay,
        Some(HoldSpec::Grid(every)) => format!("{delay}, out every {every}"),
        Some(HoldSpec::Gather(span)) => format!("{delay}, out {span} after the first"),
        Some(HoldSpec::Exponential(mean)) => format!("{delay}, out after exponential times, {mean} on average"),
        Some(HoldSpec::Uniform(most)) => format!("{delay}, out after uniform times up to {most}"),
        Some(HoldSpec::Stalls { every, most }) => format!("{delay}, with stalls of up to {most}, {every} apart"),
    }
}

fn queue(spec: &QueueSpec) -> String {
    match spec {
        QueueSpec::Unlimited => "unlimited".to_owned(),
        QueueSpec::Packets(limit) => format!("drop-tail, {limit} packets"),
        QueueSpec::Bytes(limit) => format!("drop-tail, {limit} bytes"),
        QueueSpec::Red(red) => {
            let unit = if red.unit == Unit::Packets { "packets" } else { "bytes" };
            format!("RED, {} {unit}, from {} to {}{}", red.limit, red.threshold_min, red.threshold_max, marks(red.ecn))
        }
        QueueSpec::Step(step) => {
            let threshold = match step.threshold {
                Threshold::Packets(packets) => format!("{packets} packets"),
                Threshold::Bytes(bytes) => format!("{bytes} bytes"),
                Threshold::Time(span) => span.to_string(),
            };
            format!("drop-tail, {} packets, marks above {threshold}", step.packets_max)
        }
        QueueSpec::CoDel(codel) => {
            format!("CoDel, {} packets, target {}{}", codel.packets_max, codel.target, marks(codel.ecn))
        }
        QueueSpec::FqCoDel(FqCoDelParameters { codel, .. }) => {
            format!("FQ-CoDel, {} packets, target {}{}", codel.packets_max, codel.target, marks(codel.ecn))
        }
        QueueSpec::Pie(pie) => {
            format!("PIE, {} packets, target {}{}", pie.packets_max, pie.target, marks(pie.ecn))
        }
        QueueSpec::DualPi2(dual) => {
            format!("DualPI2, {} packets, target {}{}", dual.packets_max, dual.target, marks(dual.ecn))
        }
    }
}

/// Whether a queue marks what it would drop.
fn marks(ecn: bool) -> &'static str {
    if ecn { ", marks" } else { "" }
}

fn error(spec: &ErrorSpec) -> String {
    match spec {
        ErrorSpec::List(packets) => {
            let shown: Vec<String> = packets.iter().take(LISTED_MAX).map(u64::to_string).collect();
            let more = if packets.len() > LISTED_MAX { ", …" } else { "" };
            format!("packets {}{more}", shown.join(", "))
        }
        ErrorSpec::At(times) => {
            let shown: Vec<String> = times.iter().take(LISTED_MAX).map(SimTime::to_string).collect();
            let more = if times.len() > LISTED_MAX { ", …" } else { "" };
            format!("the first packet from {} on{more}", shown.join(", "))
        }
        ErrorSpec::PerPacket(p) => format!("each packet with probability {p}"),
        ErrorSpec::PerByte(p) => format!("each byte with probability {p}"),
        ErrorSpec::GilbertElliott(GilbertElliott { to_bad, to_good, .. }) => {
            format!("bursts: Gilbert-Elliott, {to_bad} to bad, {to_good} to good")
        }
        ErrorSpec::Periodic { period, burst, .. } => format!("{burst} of every {period} packets"),
        ErrorSpec::Policer { rate, burst } => format!("what exceeds {rate} by more than {burst}"),
        ErrorSpec::Outage { from, until } => format!("everything from {from} to {until}"),
        ErrorSpec::Outages { first, length, every } => format!("everything for {length} each {every}, from {first} on"),
    }
}

/// The limit of numbers in a description.
const LISTED_MAX: usize = 8;

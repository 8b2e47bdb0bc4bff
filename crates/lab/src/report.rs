//! What a run measured, as `sim run --json` prints it.

use serde::Serialize;

use crate::diagnostic::suggestion;
use crate::scenario::Scenario;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Seed of its random numbers.
    pub seed: u64,
    /// What happened in it, in 16 hexadecimal digits: two runs with one hash were the same to the bit.
    pub hash: String,
    /// Time it took.
    pub wall_seconds: f64,
    /// Time that passed in it.
    pub simulated_seconds: f64,
    /// Events that were handled.
    pub events: u64,
    /// In the order of the file.
    pub flows: Vec<FlowReport>,
    /// In the order of the file; a duplex link is `LINK` and `LINK.reverse`.
    pub links: Vec<LinkReport>,
}

/// One flow. What a transport does not measure is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// Its name.
    pub id: String,
    /// As in the scenario.
    pub transport: String,
    /// Its congestion law.
    pub cc: Option<String>,
    /// Payload that arrived for the first time, over the time from its start to its stop or the end.
    pub goodput_bps: f64,
    /// Everything that arrived, headers included, over the same time.
    pub throughput_bps: f64,
    /// Data packets sent, again or not. An agent of ns-2 counts its SYN, packet 0, here and in what follows.
    pub sent_packets: u64,
    /// Highest sequence number sent: ns-2's `maxseq_`, which ctcp-2019 calls delivered packets.
    pub max_seq: Option<i64>,
    /// Highest sequence number acknowledged.
    pub acked_seq: Option<i64>,
    /// Data packets that arrived for the first time.
    pub delivered_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// The most packets that the receiver held at one time because one before them was missing: on the connection, or in their
    /// stream if there are streams.
    pub held_packets_max: Option<u64>,
    /// The most bytes of the receive buffer that were in use at one time, when the application had read what it could. Only
    /// `anabranch`.
    pub buffered_bytes_max: Option<u64>,
    /// Packets from the source to the sink that the network lost; acknowledgements are not among them.
    pub dropped_packets: u64,
    /// The most of these that a link lost one right after the other at its entrance: consecutive packets of this flow.
    pub dropped_in_row_max: u64,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// The most timeouts of one path one after the other, with nothing acknowledged there between two but what had timed out. Only
    /// of SCTP.
    pub timeouts_in_row_max: Option<u64>,
    /// Losses that Composite TCP took for random.
    pub random_losses: Option<u64>,
    /// Packets that arrived for the first time, and after one that was first sent later: RFC 4737, section 3.3. What was lost and
    /// sent again is among them.
    pub reordered_packets: Option<u64>,
    /// Mean of the RTTs that the sender measured.
    pub rtt_mean_s: Option<f64>,
    /// Mean time from a packet's first transmission to its arrival.
    pub one_way_delay_mean_s: Option<f64>,
    /// Congestion window at the end, in packets.
    pub window_final: Option<f64>,
    /// How often FAST with the rule of rrfast-2017 forgot its baseRTT.
    pub reset_count: Option<u64>,
    /// The paths of a connection that has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReport>,
}

/// One path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathReport {
    /// Its place in `paths`.
    pub path: usize,
    /// `live`, `validating` if nobody has answered on it yet, or `suspect` if it was silent too long.
    pub state: &'static str,
    /// Data packets sent, again or not.
    pub sent_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// What was delivered on it, stream headers included, over the time from the start of the flow to its stop or the end.
    pub delivered_bps: f64,
    /// Mean of the RTTs that the sender measured.
    pub rtt_mean_s: Option<f64>,
    /// Congestion window at the end, in packets.
    pub window_final: f64,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Its name.
    pub id: String,
    /// Packets that left it.
    pub forwarded_packets: u64,
    /// Packets that its queue or its errors dropped.
    pub dropped_packets: u64,
    /// Of these, those that its errors took, and not its queue.
    pub error_packets: u64,
    /// Time average of the packets that wait, the one in service not among them.
    pub queue_packets_mean: f64,
}

/// In the place of an id: the sum over all.
pub(crate) const ALL: &str = "*";

type Gauge<T> = (&'static str, fn(&T) -> Option<f64>);

const RUN_GAUGES: &[Gauge<Report>] =
    &[("simulated_seconds", |run| Some(run.simulated_seconds)), ("events", |run| Some(run.events as f64))];

const FLOW_GAUGES: &[Gauge<FlowReport>] = &[
    ("goodput_bps", |flow| Some(flow.goodput_bps)),
    ("throughput_bps", |flow| Some(flow.throughput_bps)),
    ("sent_packets", |flow| Some(flow.sent_packets as f64)),
    ("max_seq", |flow| flow.max_seq.map(|seq| seq as f64)),
    ("acked_seq", |flow| flow.acked_seq.map(|seq| seq as f64)),
    ("delivered_packets", |flow| Some(flow.delivered_packets as f64)),
    ("retransmitted_packets", |flow| Some(flow.retransmitted_packets as f64)),
    ("held_packets_max", |flow| flow.held_packets_max.map(|packets| packets as f64)),
    ("buffered_bytes_max", |flow| flow.buffered_bytes_max.map(|bytes| bytes as f64)),
    ("dropped_packets", |flow| Some(flow.dropped_packets as f64)),
    ("dropped_in_row_max", |flow| Some(flow.dropped_in_row_max as f64)),
    ("timeouts", |flow| flow.timeouts.map(|count| count as f64)),
    ("timeouts_in_row_max", |flow| flow.timeouts_in_row_max.map(|count| count as f64)),
    ("random_losses", |flow| flow.random_losses.map(|count| count as f64)),
    ("reordered_packets", |flow| flow.reordered_packets.map(|packets| packets as f64)),
    ("rtt_mean_s", |flow| flow.rtt_mean_s),
    ("one_way_delay_mean_s", |flow| flow.one_way_delay_mean_s),
    ("window_final", |flow| flow.window_final),
    ("reset_count", |flow| flow.reset_count.map(|count| count as f64)),
];

const LINK_GAUGES: &[Gauge<LinkReport>] = &[
    ("forwarded_packets", |link| Some(link.forwarded_packets as f64)),
    ("dropped_packets", |link| Some(link.dropped_packets as f64)),
    ("error_packets", |link| Some(link.error_packets as f64)),
    ("queue_packets_mean", |link| Some(link.queue_packets_mean)),
];

impl Report {
    /// The value of `flow.<id>.<gauge>`, `link.<id>.<gauge>`, `events` or `simulated_seconds`. With `*` for an id, the sum over
    /// all that measure it.
    ///
    /// # Errors
    /// If there is no such gauge, or the transport does not measure it.
    pub fn gauge(&self, name: &str) -> Result<f64, String> {
        let flows: Vec<&str> = self.flows.iter().map(|flow| flow.id.as_str()).collect();
        let links: Vec<&str> = self.links.iter().map(|link| link.id.as_str()).collect();
        fn value<T>(places: &[T], which: Which, gauge: fn(&T) -> Option<f64>) -> Option<f64> {
            match which {
                Which::One(index) => gauge(&places[index]),
                Which::All => places.iter().filter_map(gauge).reduce(|sum, value| sum + value),
            }
        }
        let value = match Place::find(name, &flows, &links)? {
            Place::Run(gauge) => RUN_GAUGES[gauge].1(self),
            Place::Flow(flow, gauge) => value(&self.flows, flow, FLOW_GAUGES[gauge].1),
            Place::Link(link, gauge) => value(&self.links, link, LINK_GAUGES[gauge].1),
        };
        value.ok_or_else(|| format!("`{name}` was not measured: the transport does not know it"))
    }

    /// Every gauge that was measured, by name.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        let mut gauges = Vec::new();
        for flow in &self.flows {
            let named = |&(name, value): &Gauge<FlowReport>| Some((format!("flow.{}.{name}", flow.id), value(flow)?));
            gauges.extend(FLOW_GAUGES.iter().filter_map(named));
        }
        for link in &self.links {
            let named = |&(name, value): &Gauge<LinkReport>| Some((format!("link.{}.{name}", link.id), value(link)?));
            gauges.extend(LINK_GAUGES.iter().filter_map(named));
        }
        gauges
    }
}

/// Whether runs of `scenario` have a gauge of this name.
pub(crate) fn check_gauge(scenario: &Scenario, name: &str) -> Result<(), String> {
    let flows: Vec<&str> = scenario.flows.iter().map(|flow| flow.id.as_str()).collect();
    let links: Vec<&str> = scenario.links.iter().map(|link| link.id.as_str()).collect();
    Place::find(name, &flows, &links).map(|_| ())
}

/// Where a gauge is found, by position.
enum Place {
    Run(usize),
    Flow(Which, usize),
    Link(Which, usize),
}

/// Of which flow or link.
enum Which {
    One(usize),
    All,
}

impl Place {
    fn find(name: &str, flows: &[&str], links: &[&str]) -> Result<Self, String> {
        fn names<T>(gauges: &[Gauge<T>]) -> Vec<&'static str> {
            gauges.iter().map(|(name, _)| *name).collect()
        }
        let position = |what: &str, name: &str, known: &[&str]| {
            let missing = || format!("no {what} is called `{name}`; {}", suggestion(name, known.iter().copied()));
            known.iter().position(|other| *other == name).ok_or_else(missing)
        };
        let which = |what: &str, id: &str, known: &[&str]| match id {
            ALL => Ok(Which::All),
            _ => position(what, id, known).map(Which::One),
        };
        let parts = name.split_once('.').and_then(|(kind, rest)| Some((kind, rest.rsplit_once('.')?)));
        match parts {
            Some(("flow", (id, gauge))) => {
                Ok(Self::Flow(which("flow", id, flows)?, position("gauge of a flow", gauge, &names(FLOW_GAUGES))?))
            }
            Some(("link", (id, gauge))) => {
                Ok(Self::Link(which("link", id, links)?, position("gauge of a link", gauge, &names(LINK_GAUGES))?))
            }
            Some(_) => Err(format!("`{name}` is no gauge; write flow.<id>.<gauge> or link.<id>.<gauge>")),
            None => position("measure or gauge of a run", name, &names(RUN_GAUGES)).map(Self::Run),
        }
    }
}

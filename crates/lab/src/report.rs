//! The report of a run, as `sim run --json` prints it.

use serde::{Deserialize, Serialize};

use crate::diagnostic::{nearest, suggestion};
use crate::series;

/// The report of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    /// The hash of the run, 16 hexadecimal digits: runs with equal hashes are equal to the bit.
    pub hash: String,
    /// The wall time in seconds.
    pub wall_seconds: f64,
    /// The simulated time in seconds.
    pub simulated_seconds: f64,
    /// The number of events.
    pub events: u64,
    /// The flows in the order of the file.
    pub flows: Vec<FlowReport>,
    /// The directions of links in the order of the file; a duplex link is `LINK` and `LINK.reverse`.
    pub links: Vec<LinkReport>,
    /// The classes of flows in the order of the file, each followed by its ranges of sizes: `CLASS.small`, `CLASS.medium`,
    /// `CLASS.large`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassReport>,
    /// Jain's index of the flows' goodputs.
    pub jain_index: Option<f64>,
    /// The measures of the file, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureReport>,
    /// Remarks on the numbers, such as a window that limits a flow, or a flow without traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The value of a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureReport {
    /// The name of the measure.
    pub name: String,
    /// The value, if it is defined.
    pub value: Option<f64>,
    /// Why it is not defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The report of a flow. What a transport does not measure is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// The name of the flow.
    pub id: String,
    /// The transport, as in the scenario.
    pub transport: String,
    /// The name of its congestion law.
    pub cc: Option<String>,
    /// Payload that arrived for the first time, over the time from the flow's start to its stop or the end.
    pub goodput_bps: f64,
    /// Everything that arrived, headers included, over the same time.
    pub throughput_bps: f64,
    /// Data packets sent, retransmissions included. An agent of ns-2 counts its SYN, packet 0, here and below.
    pub sent_packets: u64,
    /// Highest sequence number sent: ns-2's `maxseq_`, which ctcp-2019 calls delivered packets.
    pub max_seq: Option<i64>,
    /// Highest sequence number acknowledged.
    pub acked_seq: Option<i64>,
    /// Data packets that arrived for the first time.
    pub delivered_packets: u64,
    /// Data packets retransmitted.
    pub retransmitted_packets: u64,
    /// The largest number of packets that the receiver held above a hole: on the connection, or in their stream if there are
    /// streams.
    pub held_packets_max: Option<u64>,
    /// The largest used part of the receive buffer after the application has read, in bytes. Only `anabranch`.
    pub buffered_bytes_max: Option<u64>,
    /// Packets from the source to the sink that the network lost, without acknowledgements.
    pub dropped_packets: u64,
    /// The longest run of consecutive packets of this flow that a link lost at its entrance.
    pub dropped_in_row_max: u64,
    /// Retransmission timeouts of the sender.
    pub timeouts: Option<u64>,
    /// The largest number of consecutive timeouts on one path, without an acknowledgement of data that had not timed out. Only SCTP.
    pub timeouts_in_row_max: Option<u64>,
    /// Losses that Composite TCP classified as random.
    pub random_losses: Option<u64>,
    /// Packets that arrived for the first time after one that was first sent later (RFC 4737, section 3.3), including
    /// retransmissions.
    pub reordered_packets: Option<u64>,
    /// The mean of the sender's RTT samples in seconds.
    pub rtt_mean_s: Option<f64>,
    /// The median of the RTT samples.
    pub rtt_p50_s: Option<f64>,
    /// The 95th percentile of the RTT samples.
    pub rtt_p95_s: Option<f64>,
    /// The 99th percentile of the RTT samples.
    pub rtt_p99_s: Option<f64>,
    /// The mean time from a packet's first transmission to its first arrival.
    pub one_way_delay_mean_s: Option<f64>,
    /// The congestion window at the end, in packets.
    pub window_final: Option<f64>,
    /// How often FAST with the rule of rrfast-2017 reset its baseRTT.
    pub reset_count: Option<u64>,
    /// The paths of a connection with several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathReport>,
}

/// The report of a path of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Its position in `paths`, from 1.
    pub path: usize,
    /// `live`, `validating` if the path is not validated yet, or `suspect` if it is silent; only `anabranch`.
    pub state: Option<String>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets retransmitted.
    pub retransmitted_packets: u64,
    /// Data delivered on it, stream headers included, over the time of the flow; only `anabranch`.
    pub delivered_bps: Option<f64>,
    /// The mean of the sender's RTT samples in seconds.
    pub rtt_mean_s: Option<f64>,
    /// The congestion window at the end, in packets.
    pub window_final: f64,
}

/// The report of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The name of the direction.
    pub id: String,
    /// Packets that left it.
    pub forwarded_packets: u64,
    /// Packets dropped by its queue or lost by its error models.
    pub dropped_packets: u64,
    /// Of these, packets lost by error models.
    pub error_packets: u64,
    /// Of these, packets longer than the MTU.
    pub too_long_packets: u64,
    /// Packets that its queue marked instead of dropping them.
    pub marked_packets: u64,
    /// The share of the run in which it was sending.
    pub utilisation: f64,
    /// The time average of the packets in its queue, the one in transmission included.
    pub queue_packets_mean: f64,
    /// The median of the queue over time.
    pub queue_packets_p50: u64,
    /// The 95th percentile of the queue over time.
    pub queue_packets_p95: u64,
    /// The 99th percentile of the queue over time.
    pub queue_packets_p99: u64,
    /// The largest length of the queue.
    pub queue_packets_max: u64,
}

/// The report of a class of flows, or of its messages in a range of sizes. Times without a finished message are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// The name of the class, and of the range of sizes.
    pub id: String,
    /// Messages that were offered, or requested.
    pub messages: u64,
    /// Of these, messages that have arrived completely.
    pub finished: u64,
    /// The mean time from the offer or the request to the last byte.
    pub completion_mean_s: Option<f64>,
    /// The median of these times.
    pub completion_p50_s: Option<f64>,
    /// Their 95th percentile.
    pub completion_p95_s: Option<f64>,
    /// Their 99th percentile.
    pub completion_p99_s: Option<f64>,
    /// The mean slowdown: each time over that on an empty path.
    pub slowdown_mean: Option<f64>,
    /// The median slowdown.
    pub slowdown_p50: Option<f64>,
    /// The 95th percentile of slowdowns.
    pub slowdown_p95: Option<f64>,
    /// The 99th percentile of slowdowns.
    pub slowdown_p99: Option<f64>,
}

/// In place of an id: the sum over all.
pub(crate) const ALL: &str = "*";

/// A number of a finished run.
pub(crate) struct Gauge<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// The definition for the reference: what is counted, and from when.
    pub(crate) meaning: &'static str,
    of: fn(&T) -> Option<f64>,
}

const fn gauge<T>(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    of: fn(&T) -> Option<f64>,
) -> Gauge<T> {
    Gauge { name, unit, meaning, of }
}

fn real(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

/// Gauges of a run.
pub(crate) const RUN_GAUGES: &[Gauge<Report>] = &[
    gauge("simulated_seconds", "s", "The scenario's `duration`.", |run| Some(run.simulated_seconds)),
    gauge("events", "", "Events that the simulator handled.", |run| Some(run.events as f64)),
    gauge(
        "jain_index",
        "",
        "Jain's index of the goodputs x of all n flows: (sum of x)^2 / (n * sum of x^2). 1 if all are equal, 1/n if one flow has \
         all. Each goodput is over its flow's own time.",
        |run| run.jain_index,
    ),
];

/// Gauges of a flow.
pub(crate) const FLOW_GAUGES: &[Gauge<FlowReport>] = &[
    gauge(
        "goodput_bps",
        "bit/s",
        "Payload that arrived for the first time, over the flow's time. For `anabranch`, the bytes that the application has read. Headers, \
         stream headers and duplicates do not count.",
        |flow| Some(flow.goodput_bps),
    ),
    gauge(
        "throughput_bps",
        "bit/s",
        "All bits that arrived at the destination, headers and duplicates included, over the flow's time. \
         Acknowledgements do not count.",
        |flow| Some(flow.throughput_bps),
    ),
    gauge(
        "sent_packets",
        "packets",
        "Data packets sent, retransmissions included. An agent of ns-2 counts its SYN, packet 0, here and in the gauges below; FAST \
         multihoming has one on each path.",
        |flow| Some(flow.sent_packets as f64),
    ),
    gauge(
        "max_seq",
        "packets",
        "The highest sequence number sent: ns-2's `maxseq_`, which ctcp-2019 calls delivered packets. For SCTP the highest TSN; \
         for `anabranch` the number of first transmissions.",
        |flow| flow.max_seq.map(|seq| seq as f64),
    ),
    gauge("acked_seq", "packets", "The highest cumulatively acknowledged sequence number.", |flow| {
        flow.acked_seq.map(|seq| seq as f64)
    }),
    gauge("delivered_packets", "packets", "Data packets that arrived for the first time.", |flow| {
        Some(flow.delivered_packets as f64)
    }),
    gauge("retransmitted_packets", "packets", "Retransmitted data packets; for SCTP, chunks.", |flow| {
        Some(flow.retransmitted_packets as f64)
    }),
    gauge(
        "held_packets_max",
        "packets",
        "The largest number of packets that the receiver held for a missing earlier packet: of the connection, or of their stream if \
         there are streams.",
        |flow| real(flow.held_packets_max),
    ),
    gauge(
        "buffered_bytes_max",
        "bytes",
        "The largest use of the receive buffer, after the application has read all that is readable. Only `anabranch`.",
        |flow| real(flow.buffered_bytes_max),
    ),
    gauge(
        "dropped_packets",
        "packets",
        "Packets from the source to its destination that the network lost: by errors, queues and nodes without a route. Lost \
         acknowledgements do not count.",
        |flow| Some(flow.dropped_packets as f64),
    ),
    gauge(
        "dropped_in_row_max",
        "packets",
        "The largest number of consecutive packets of this flow that a link lost at its entrance.",
        |flow| Some(flow.dropped_in_row_max as f64),
    ),
    gauge("timeouts", "", "Retransmission timeouts.", |flow| real(flow.timeouts)),
    gauge(
        "timeouts_in_row_max",
        "",
        "The largest number of consecutive timeouts of one path, without an acknowledgement of data that had not timed out. \
         Only SCTP.",
        |flow| real(flow.timeouts_in_row_max),
    ),
    gauge("random_losses", "", "Losses that Composite TCP classified as random.", |flow| real(flow.random_losses)),
    gauge(
        "reordered_packets",
        "packets",
        "Packets that arrived for the first time, and after one that was first sent later: RFC 4737, section 3.3. Retransmissions \
         are included.",
        |flow| real(flow.reordered_packets),
    ),
    gauge(
        "rtt_mean_s",
        "s",
        "Mean of the RTT samples of the source, from the departure of a packet to its acknowledgement. A retransmitted packet \
         gives no sample, except with ns-2's agents, whose acknowledgements echo the departure time. All paths together. SCTP \
         does not measure it.",
        |flow| flow.rtt_mean_s,
    ),
    gauge(
        "rtt_p50_s",
        "s",
        "Median of the same samples, each of which counts once. Percentiles are within 0.4 %.",
        |flow| flow.rtt_p50_s,
    ),
    gauge("rtt_p95_s", "s", "95th percentile of the same samples.", |flow| flow.rtt_p95_s),
    gauge("rtt_p99_s", "s", "99th percentile of the same samples.", |flow| flow.rtt_p99_s),
    gauge(
        "one_way_delay_mean_s",
        "s",
        "Mean time from a packet's first transmission to its first arrival at the destination. A retransmitted packet counts \
         once, from its first transmission on, so the time of the loss detection is included. Packets that have not arrived do not \
         count. Waiting times before the first transmission, and at the receiver for earlier packets, do not count either.",
        |flow| flow.one_way_delay_mean_s,
    ),
    gauge("window_final", "packets", "Congestion window at the end of the run; several paths add up.", |flow| {
        flow.window_final
    }),
    gauge("reset_count", "", "How often FAST with the rule of rrfast-2017 has reset its baseRTT.", |flow| {
        real(flow.reset_count)
    }),
];

/// Gauges of a path of a flow: in the document only, without names in expressions.
pub(crate) const PATH_GAUGES: &[Gauge<PathReport>] = &[
    gauge("path", "", "Its number in `paths`, from 1.", |path| Some(path.path as f64)),
    gauge("sent_packets", "packets", "Data packets sent on it, retransmissions included.", |path| {
        Some(path.sent_packets as f64)
    }),
    gauge("retransmitted_packets", "packets", "Of these, retransmissions.", |path| {
        Some(path.retransmitted_packets as f64)
    }),
    gauge(
        "delivered_bps",
        "bit/s",
        "Data delivered on it, stream headers included, over the flow's time. Only `anabranch`.",
        |path| path.delivered_bps,
    ),
    gauge("rtt_mean_s", "s", "Mean of its RTT samples.", |path| path.rtt_mean_s),
    gauge("window_final", "packets", "Its congestion window at the end of the run.", |path| Some(path.window_final)),
];

/// Gauges of one direction of a link.
pub(crate) const LINK_GAUGES: &[Gauge<LinkReport>] = &[
    gauge("forwarded_packets", "packets", "Packets of all flows that arrived at its far end.", |link| {
        Some(link.forwarded_packets as f64)
    }),
    gauge("dropped_packets", "packets", "Packets dropped by its queue or its error models.", |link| {
        Some(link.dropped_packets as f64)
    }),
    gauge("error_packets", "packets", "Of these, packets dropped by its error models.", |link| {
        Some(link.error_packets as f64)
    }),
    gauge("too_long_packets", "packets", "Of these, packets longer than its `mtu`.", |link| {
        Some(link.too_long_packets as f64)
    }),
    gauge("marked_packets", "packets", "Packets that its queue marked instead of dropping them.", |link| {
        Some(link.marked_packets as f64)
    }),
    gauge(
        "utilisation",
        "",
        "Share of the whole run in which the link was sending: 1 is a link that is always busy. A flow that starts late or stops \
         early lowers it.",
        |link| Some(link.utilisation),
    ),
    gauge("queue_packets_mean", "packets", "Time average of the packets in its queue.", |link| {
        Some(link.queue_packets_mean)
    }),
    gauge(
        "queue_packets_p50",
        "packets",
        "Median over time: for half of the run the queue had at most this many packets. The same as \
         `quantile(link.<id>.queue, 0.5, 0, <duration>)`.",
        |link| Some(link.queue_packets_p50 as f64),
    ),
    gauge("queue_packets_p95", "packets", "95th percentile over time.", |link| Some(link.queue_packets_p95 as f64)),
    gauge("queue_packets_p99", "packets", "99th percentile over time.", |link| Some(link.queue_packets_p99 as f64)),
    gauge("queue_packets_max", "packets", "The largest length of the queue.", |link| {
        Some(link.queue_packets_max as f64)
    }),
];

/// Gauges of a class of flows.
pub(crate) const CLASS_GAUGES: &[Gauge<ClassReport>] = &[
    gauge("messages", "", "Messages that were offered, or requested, before the end of the run.", |class| {
        Some(class.messages as f64)
    }),
    gauge(
        "finished",
        "",
        "Of these, messages whose last byte the receiver has read. All other gauges count only these: compare it with \
         `messages`.",
        |class| Some(class.finished as f64),
    ),
    gauge(
        "completion_mean_s",
        "s",
        "Mean time from the offer of a message, or the request for it, to its last byte at the receiver. The handshake of a new \
         flow is included.",
        |class| class.completion_mean_s,
    ),
    gauge("completion_p50_s", "s", "Median of the same times, by nearest rank.", |class| class.completion_p50_s),
    gauge("completion_p95_s", "s", "95th percentile of the same times.", |class| class.completion_p95_s),
    gauge("completion_p99_s", "s", "99th percentile of the same times.", |class| class.completion_p99_s),
    gauge(
        "slowdown_mean",
        "",
        "Mean slowdown: each of the same times, divided by the least possible time. That is the payload at the rate of the slowest \
         link of the shortest route, and its propagation delay; for a request the propagation delay of both directions.",
        |class| class.slowdown_mean,
    ),
    gauge("slowdown_p50", "", "Median of these ratios.", |class| class.slowdown_p50),
    gauge("slowdown_p95", "", "95th percentile of these ratios.", |class| class.slowdown_p95),
    gauge("slowdown_p99", "", "99th percentile of these ratios.", |class| class.slowdown_p99),
];

impl Report {
    /// The value of `flow.<id>.<gauge>`, `link.<id>.<gauge>`, `events` or `simulated_seconds`. With `*` in place of an id, the sum over all
    /// that measure it.
    ///
    /// # Errors
    /// If there is no such gauge, or the transport does not measure it.
    pub fn gauge(&self, name: &str) -> Result<f64, String> {
        let flows: Vec<&str> = self.flows.iter().map(|flow| flow.id.as_str()).collect();
        let links: Vec<&str> = self.links.iter().map(|link| link.id.as_str()).collect();
        let classes: Vec<&str> = self.classes.iter().map(|class| class.id.as_str()).collect();
        fn value<T>(places: &[T], which: Which, gauge: fn(&T) -> Option<f64>) -> Option<f64> {
            match which {
                Which::One(index) => gauge(&places[index]),
                Which::All => places.iter().filter_map(gauge).reduce(|sum, value| sum + value),
            }
        }
        let value = match Place::find(name, &flows, &links, &classes)? {
            Place::Run(gauge) => (RUN_GAUGES[gauge].of)(self),
            Place::Flow(flow, gauge) => value(&self.flows, flow, FLOW_GAUGES[gauge].of),
            Place::Link(link, gauge) => value(&self.links, link, LINK_GAUGES[gauge].of),
            Place::Class(class, gauge) => (CLASS_GAUGES[gauge].of)(&self.classes[class]),
        };
        value.ok_or_else(|| match name.starts_with("class.") {
            true => format!("`{name}` was not measured: no such message has arrived"),
            false => format!("`{name}` was not measured: the transport does not know it"),
        })
    }

    /// All measured gauges by name: those of the run, then of each flow, link and class.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        let of_run = |gauge: &Gauge<Report>| Some((gauge.name.to_owned(), (gauge.of)(self)?));
        let mut gauges: Vec<(String, f64)> = RUN_GAUGES.iter().filter_map(of_run).collect();
        for flow in &self.flows {
            let named =
                |gauge: &Gauge<FlowReport>| Some((format!("flow.{}.{}", flow.id, gauge.name), (gauge.of)(flow)?));
            gauges.extend(FLOW_GAUGES.iter().filter_map(named));
        }
        for link in &self.links {
            let named =
                |gauge: &Gauge<LinkReport>| Some((format!("link.{}.{}", link.id, gauge.name), (gauge.of)(link)?));
            gauges.extend(LINK_GAUGES.iter().filter_map(named));
        }
        for class in &self.classes {
            let named =
                |gauge: &Gauge<ClassReport>| Some((format!("class.{}.{}", class.id, gauge.name), (gauge.of)(class)?));
            gauges.extend(CLASS_GAUGES.iter().filter_map(named));
        }
        gauges
    }
}

/// Whether a run with these flows, links and classes has a gauge of this name.
pub(crate) fn check_gauge(flows: &[&str], links: &[&str], classes: &[&str], name: &str) -> Result<(), String> {
    Place::find(name, flows, links, classes).map(|_| ())
}

/// The place of a gauge, by position.
enum Place {
    Run(usize),
    Flow(Which, usize),
    Link(Which, usize),
    Class(usize, usize),
}

/// The owner of a gauge.
enum Which {
    One(usize),
    All,
}

impl Place {
    fn find(name: &str, flows: &[&str], links: &[&str], classes: &[&str]) -> Result<Self, String> {
        fn names<T>(gauges: &[Gauge<T>]) -> Vec<&'static str> {
            gauges.iter().map(|gauge| gauge.name).collect()
        }
        let position = |what: &str, wanted: &str, known: &[&str]| {
            let missing = || format!("no {what} is called `{wanted}`; {}", suggestion(wanted, known.iter().copied()));
            known.iter().position(|other| *other == wanted).ok_or_else(missing)
        };
        // The name may be that of a series.
        let gauge_position = |what: &str, wanted: &str, known: &[&str]| {
            let meant = series::nearest(name).filter(|_| nearest(wanted, known).is_none());
            position(what, wanted, known).map_err(|missing| match meant {
                Some(meant) => format!(
                    "no {what} is called `{wanted}`; did you mean the series `{meant}`? Ask for one of its values, as \
                     value_at({meant}, 5)"
                ),
                None => missing,
            })
        };
        let which = |what: &str, id: &str, known: &[&str]| match id {
            ALL => Ok(Which::All),
            _ => position(what, id, known).map(Which::One),
        };
        let parts = name.split_once('.').and_then(|(kind, rest)| Some((kind, rest.rsplit_once('.')?)));
        match parts {
            Some(("flow", (id, gauge))) => Ok(Self::Flow(
                which("flow", id, flows)?,
                gauge_position("gauge of a flow", gauge, &names(FLOW_GAUGES))?,
            )),
            Some(("link", (id, gauge))) => Ok(Self::Link(
                which("link", id, links)?,
                gauge_position("gauge of a link", gauge, &names(LINK_GAUGES))?,
            )),
            Some(("class", (id, gauge))) => Ok(Self::Class(
                position("class", id, classes)?,
                position("gauge of a class", gauge, &names(CLASS_GAUGES))?,
            )),
            Some(_) => Err(format!("`{name}` is no gauge; write flow.<id>.<gauge> or link.<id>.<gauge>")),
            None => position("measure or gauge of a run", name, &names(RUN_GAUGES)).map(Self::Run),
        }
    }
}

/// One hash of many, in their order: FNV-1a over their digits.
pub(crate) fn combined_hash<'a>(hashes: impl Iterator<Item = &'a str>) -> String {
    let digits = hashes.flat_map(str::bytes);
    let hash =
        digits.fold(0xcbf2_9ce4_8422_2325_u64, |hash, digit| (hash ^ u64::from(digit)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

//! The report of a run, as `sim run --json` prints it.
//!
//! A number is one line of a `reported!` table: field, type, unit and meaning. From it follow the field's docs, the gauge of expressions, the row of
//! docs/reference/measures.md and the column in Python; `world/reports.rs` computes it.

use serde::{Deserialize, Serialize};

use crate::diagnostic::{nearest, suggestion};
use crate::series;

/// A number of a report: a count, a signed count or a real number, or nothing where it was not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count of things, none below zero.
    Count(Option<u64>),
    /// A count that may be below zero.
    Signed(Option<i64>),
    /// A quantity, in the unit of its gauge.
    Real(Option<f64>),
}

impl Number {
    /// Its value, if it was measured.
    pub fn real(self) -> Option<f64> {
        match self {
            Self::Count(value) => value.map(|value| value as f64),
            Self::Signed(value) => value.map(|value| value as f64),
            Self::Real(value) => value,
        }
    }
}

/// A type of field that is a number.
trait Numeric {
    /// The number of nothing measured.
    const NONE: Number;
    fn number(&self) -> Number;
}

macro_rules! numeric {
    ($($type:ty => $kind:ident),*) => {
        $(
            impl Numeric for $type {
                const NONE: Number = Number::$kind(None);
                fn number(&self) -> Number {
                    Number::$kind(Some(*self as _))
                }
            }
            impl Numeric for Option<$type> {
                const NONE: Number = Number::$kind(None);
                fn number(&self) -> Number {
                    Number::$kind(self.map(|value| value as _))
                }
            }
        )*
    };
}
numeric!(u64 => Count, usize => Count, i64 => Signed, f64 => Real);

/// A field of a report that is a number: the measure of this name.
pub struct Gauge<T: 'static> {
    /// The name of the field.
    pub name: &'static str,
    /// Its unit, or nothing.
    pub unit: &'static str,
    /// What is counted, and from when.
    pub meaning: &'static str,
    /// The number of nothing measured.
    pub none: Number,
    of: fn(&T) -> Number,
}

impl<T> Gauge<T> {
    /// Its number in a report.
    pub fn of(&self, report: &T) -> Number {
        (self.of)(report)
    }

    fn real(&self, report: &T) -> Option<f64> {
        self.of(report).real()
    }
}

/// A report and its gauges. A number has its name, type, unit and meaning once; other fields have docs and a type.
macro_rules! reported {
    (
        $(#[doc = $head:literal])*
        pub struct $name:ident, $gauges:ident, $of:literal {
            $($(#[$attribute:meta])* $field:ident: $type:ty $(= $unit:literal, $meaning:literal)?;)*
        }
    ) => {
        $(#[doc = $head])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$attribute])* $(#[doc = $meaning])? pub $field: $type,)*
        }

        #[doc = $of]
        pub const $gauges: &[Gauge<$name>] = &[$($(Gauge {
            name: stringify!($field),
            unit: $unit,
            meaning: $meaning,
            none: <$type as Numeric>::NONE,
            of: |report| report.$field.number(),
        },)?)*];
    };
}

reported! {
    /// The report of one run.
    pub struct Report, RUN_GAUGES, "Gauges of a run." {
        /// The seed of the run.
        seed: u64;
        /// The hash of the run, 16 hexadecimal digits: runs with equal hashes are equal to the bit.
        hash: String;
        /// The wall time in seconds.
        wall_seconds: f64;
        simulated_seconds: f64 = "s", "The scenario's `duration`.";
        events: u64 = "", "Events that the simulator handled.";
        /// The flows in the order of the file.
        flows: Vec<FlowReport>;
        /// The directions of links in the order of the file; a duplex link is `LINK` and `LINK.reverse`.
        links: Vec<LinkReport>;
        /// The classes of flows in the order of the file, each followed by its ranges of sizes: `CLASS.small`, `CLASS.medium`,
        /// `CLASS.large`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        classes: Vec<ClassReport>;
        jain_index: Option<f64> = "",
            "Jain's index of the goodputs x of all n flows: (sum of x)^2 / (n * sum of x^2). 1 if all are equal, 1/n if one flow has \
             all. Each goodput is over its flow's own time.";
        /// The measures of the file, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        measures: Vec<MeasureReport>;
        /// Remarks on the numbers, such as a window that limits a flow, or a flow without traffic.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>;
    }
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

reported! {
    /// The report of a flow. What a transport does not measure is `null`.
    pub struct FlowReport, FLOW_GAUGES, "Gauges of a flow." {
        /// The name of the flow.
        id: String;
        /// The transport, as in the scenario.
        transport: String;
        /// The name of its congestion law.
        cc: Option<String>;
        goodput_bps: f64 = "bit/s",
            "Payload that arrived for the first time, over the flow's time. For `anabranch`, the bytes that the application has read. Headers, \
             stream headers and duplicates do not count.";
        throughput_bps: f64 = "bit/s",
            "All bits that arrived at the destination, headers and duplicates included, over the flow's time. \
             Acknowledgements do not count.";
        sent_packets: u64 = "packets",
            "Data packets sent, retransmissions included. An agent of ns-2 counts its SYN, packet 0, here and in the gauges below; FAST \
             multihoming has one on each path.";
        max_seq: Option<i64> = "packets",
            "The highest sequence number sent: ns-2's `maxseq_`, which ctcp-2019 calls delivered packets. For SCTP the highest TSN; \
             for `anabranch` the number of first transmissions.";
        acked_seq: Option<i64> = "packets", "The highest cumulatively acknowledged sequence number.";
        delivered_packets: u64 = "packets", "Data packets that arrived for the first time.";
        retransmitted_packets: u64 = "packets", "Retransmitted data packets; for SCTP, chunks.";
        held_packets_max: Option<u64> = "packets",
            "The largest number of packets that the receiver held for a missing earlier packet: of the connection, or of their stream if \
             there are streams.";
        buffered_bytes_max: Option<u64> = "bytes",
            "The largest use of the receive buffer, after the application has read all that is readable. Only `anabranch`.";
        dropped_packets: u64 = "packets",
            "Packets from the source to its destination that the network lost: by errors, queues and nodes without a route. Lost \
             acknowledgements do not count.";
        dropped_in_row_max: u64 = "packets", "The largest number of consecutive packets of this flow that a link lost at its entrance.";
        timeouts: Option<u64> = "", "Retransmission timeouts.";
        timeouts_in_row_max: Option<u64> = "",
            "The largest number of consecutive timeouts of one path, without an acknowledgement of data that had not timed out. \
             Only SCTP.";
        random_losses: Option<u64> = "", "Losses that Composite TCP classified as random.";
        reordered_packets: Option<u64> = "packets",
            "Packets that arrived for the first time, and after one that was first sent later: RFC 4737, section 3.3. Retransmissions \
             are included.";
        rtt_mean_s: Option<f64> = "s",
            "Mean of the RTT samples of the source, from the departure of a packet to its acknowledgement. A retransmitted packet \
             gives no sample, except with ns-2's agents, whose acknowledgements echo the departure time. All paths together. SCTP \
             does not measure it.";
        rtt_p50_s: Option<f64> = "s", "Median of the same samples, each of which counts once. Percentiles are within 0.4 %.";
        rtt_p95_s: Option<f64> = "s", "95th percentile of the same samples.";
        rtt_p99_s: Option<f64> = "s", "99th percentile of the same samples.";
        one_way_delay_mean_s: Option<f64> = "s",
            "Mean time from a packet's first transmission to its first arrival at the destination. A retransmitted packet counts \
             once, from its first transmission on, so the time of the loss detection is included. Packets that have not arrived do not \
             count. Waiting times before the first transmission, and at the receiver for earlier packets, do not count either.";
        window_final: Option<f64> = "packets", "Congestion window at the end of the run; several paths add up.";
        reset_count: Option<u64> = "", "How often FAST with the rule of rrfast-2017 has reset its baseRTT.";
        /// The paths of a connection with several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<PathReport>;
    }
}

reported! {
    /// The report of a path of a flow.
    pub struct PathReport, PATH_GAUGES, "Gauges of a path of a flow: in the document only, without names in expressions." {
        path: usize = "", "Its number in `paths`, from 1.";
        /// `live`, `validating` if the path is not validated yet, or `suspect` if it is silent; only `anabranch`.
        state: Option<String>;
        sent_packets: u64 = "packets", "Data packets sent on it, retransmissions included.";
        retransmitted_packets: u64 = "packets", "Of these, retransmissions.";
        delivered_bps: Option<f64> = "bit/s", "Data delivered on it, stream headers included, over the flow's time. Only `anabranch`.";
        rtt_mean_s: Option<f64> = "s", "Mean of its RTT samples.";
        window_final: f64 = "packets", "Its congestion window at the end of the run.";
    }
}

reported! {
    /// The report of one direction of a link.
    pub struct LinkReport, LINK_GAUGES, "Gauges of one direction of a link." {
        /// The name of the direction.
        id: String;
        forwarded_packets: u64 = "packets", "Packets of all flows that arrived at its far end.";
        dropped_packets: u64 = "packets", "Packets dropped by its queue or its error models.";
        error_packets: u64 = "packets", "Of these, packets dropped by its error models.";
        too_long_packets: u64 = "packets", "Of these, packets longer than its `mtu`.";
        marked_packets: u64 = "packets", "Packets that its queue marked instead of dropping them.";
        utilisation: f64 = "",
            "Share of the whole run in which the link was sending: 1 is a link that is always busy. A flow that starts late or stops \
             early lowers it.";
        queue_packets_mean: f64 = "packets", "Time average of the packets in its queue.";
        queue_packets_p50: u64 = "packets",
            "Median over time: for half of the run the queue had at most this many packets. The same as \
             `quantile(link.<id>.queue, 0.5, 0, <duration>)`.";
        queue_packets_p95: u64 = "packets", "95th percentile over time.";
        queue_packets_p99: u64 = "packets", "99th percentile over time.";
        queue_packets_max: u64 = "packets", "The largest length of the queue.";
    }
}

reported! {
    /// The report of a class of flows, or of its messages in a range of sizes. Times without a finished message are `null`.
    pub struct ClassReport, CLASS_GAUGES, "Gauges of a class of flows." {
        /// The name of the class, and of the range of sizes.
        id: String;
        messages: u64 = "", "Messages that were offered, or requested, before the end of the run.";
        finished: u64 = "",
            "Of these, messages whose last byte the receiver has read. All other gauges count only these: compare it with \
             `messages`.";
        completion_mean_s: Option<f64> = "s",
            "Mean time from the offer of a message, or the request for it, to its last byte at the receiver. The handshake of a new \
             flow is included.";
        completion_p50_s: Option<f64> = "s", "Median of the same times, by nearest rank.";
        completion_p95_s: Option<f64> = "s", "95th percentile of the same times.";
        completion_p99_s: Option<f64> = "s", "99th percentile of the same times.";
        slowdown_mean: Option<f64> = "",
            "Mean slowdown: each of the same times, divided by the least possible time. That is the payload at the rate of the slowest \
             link of the shortest route, and its propagation delay; for a request the propagation delay of both directions.";
        slowdown_p50: Option<f64> = "", "Median of these ratios.";
        slowdown_p95: Option<f64> = "", "95th percentile of these ratios.";
        slowdown_p99: Option<f64> = "", "99th percentile of these ratios.";
    }
}

/// In place of an id: the sum over all.
pub(crate) const ALL: &str = "*";

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
        fn value<T>(places: &[T], which: Which, gauge: &Gauge<T>) -> Option<f64> {
            match which {
                Which::One(index) => gauge.real(&places[index]),
                Which::All => places.iter().filter_map(|place| gauge.real(place)).reduce(|sum, value| sum + value),
            }
        }
        let value = match GaugePlace::find(name, &flows, &links, &classes)? {
            GaugePlace::Run(gauge) => RUN_GAUGES[gauge].real(self),
            GaugePlace::Flow(flow, gauge) => value(&self.flows, flow, &FLOW_GAUGES[gauge]),
            GaugePlace::Link(link, gauge) => value(&self.links, link, &LINK_GAUGES[gauge]),
            GaugePlace::Class(class, gauge) => CLASS_GAUGES[gauge].real(&self.classes[class]),
        };
        value.ok_or_else(|| match name.starts_with("class.") {
            true => format!("`{name}` was not measured: no such message has arrived"),
            false => format!("`{name}` was not measured: the transport does not know it"),
        })
    }

    /// All measured gauges by name: those of the run, then of each flow, link and class.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        let of_run = |gauge: &Gauge<Report>| Some((gauge.name.to_owned(), gauge.real(self)?));
        let mut gauges: Vec<(String, f64)> = RUN_GAUGES.iter().filter_map(of_run).collect();
        for flow in &self.flows {
            let named =
                |gauge: &Gauge<FlowReport>| Some((format!("flow.{}.{}", flow.id, gauge.name), gauge.real(flow)?));
            gauges.extend(FLOW_GAUGES.iter().filter_map(named));
        }
        for link in &self.links {
            let named =
                |gauge: &Gauge<LinkReport>| Some((format!("link.{}.{}", link.id, gauge.name), gauge.real(link)?));
            gauges.extend(LINK_GAUGES.iter().filter_map(named));
        }
        for class in &self.classes {
            let named =
                |gauge: &Gauge<ClassReport>| Some((format!("class.{}.{}", class.id, gauge.name), gauge.real(class)?));
            gauges.extend(CLASS_GAUGES.iter().filter_map(named));
        }
        gauges
    }
}

/// Whether a run with these flows, links and classes has a gauge of this name.
pub(crate) fn check_gauge(flows: &[&str], links: &[&str], classes: &[&str], name: &str) -> Result<(), String> {
    GaugePlace::find(name, flows, links, classes).map(|_| ())
}

/// The place of a gauge, by position.
enum GaugePlace {
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

impl GaugePlace {
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
            let meant = || series::nearest(name).filter(|_| nearest(wanted, known).is_none());
            position(what, wanted, known).map_err(|missing| match meant() {
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

#[cfg(test)]
#[expect(unreachable_pub, reason = "a table makes a public report, which tests alone use here")]
mod tests {
    use super::*;

    reported! {
        /// A report of the page's line alone.
        pub struct Marks, MARKS_GAUGES, "Its gauges." {
            marked_packets: u64 = "packets", "Packets that its queue marked instead of dropping them.";
        }
    }

    /// The line of the page is a field, a gauge with its unit and meaning, and a key of the document.
    #[test]
    fn one_line_adds_field_gauge_and_key() {
        let marks = Marks { marked_packets: 3 };
        let [gauge] = MARKS_GAUGES else { panic!("one line is one gauge") };
        let meaning = "Packets that its queue marked instead of dropping them.";
        assert_eq!((gauge.name, gauge.unit, gauge.meaning), ("marked_packets", "packets", meaning));
        assert_eq!((gauge.of(&marks), gauge.none), (Number::Count(Some(3)), Number::Count(None)));
        assert_eq!(serde_json::to_string(&marks).unwrap(), r#"{"marked_packets":3}"#);
    }

    #[test]
    fn page_on_adding_measures_shows_lines_of_one() {
        let page = include_str!("../../../docs/adding-a-measure.md");
        let table = include_str!("report.rs").split("#[cfg(test)]").next().unwrap();
        let sources = [table, include_str!("world/reports.rs")];
        let lines: Vec<&str> = page.split("```rust\n").skip(1).filter_map(|rest| rest.lines().next()).collect();
        assert_eq!(lines.len(), sources.len());
        for (line, source) in lines.iter().zip(sources) {
            assert!(source.lines().any(|other| other.trim_start() == *line), "{line}");
        }
    }
}

//! The keys of a scenario file. Their comments are the reference: `docs/reference/scenario.md` and the JSON Schema are made
//! from them.

use std::collections::BTreeMap;

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use super::values::{Count, LawKeys, Name, Probability, Setting, Text, WrittenOut};

/// A link joins two nodes; nodes exist by being named. It is duplex unless `duplex = false`: the way back has the same rate and
/// delay, a drop-tail queue of 50 packets and no errors, unless `reverse` says otherwise. In reports the way back of the link
/// `a` is `a.reverse`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "link")]
pub(crate) struct LinkKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The node where it begins.
    pub(crate) from: Name,
    /// The node where it ends.
    pub(crate) to: Name,
    /// Bits per second.
    pub(crate) rate: Text<Rate>,
    /// Propagation delay.
    pub(crate) delay: Text<SimSpan>,
    /// Whether packets can go back.
    #[serde(default = "yes")]
    pub(crate) duplex: bool,
    /// Where packets wait; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// Which packets are lost in front of the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The longest packet that it takes, headers included, at least `68B`; any if absent. What is longer is lost without a word.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// When the longest packet is another one, both ways: a route inside it has changed.
    #[serde(default)]
    pub(crate) mtu_changes: Vec<MtuChangeKeys>,
    /// When packets come out at the far end; each as soon as it is there if absent. Not with a `codel` queue or `clock = "ns2"`.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
    /// When the link is cut, both ways: what comes to it then is lost.
    #[serde(default)]
    pub(crate) outages: Vec<OutageKeys>,
    /// What is different on the way back.
    #[serde(default)]
    pub(crate) reverse: Option<ReverseKeys>,
}

/// What is different on the way back of a duplex link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reverse")]
pub(crate) struct ReverseKeys {
    /// Bits per second; that of the link if absent.
    #[serde(default)]
    pub(crate) rate: Option<Text<Rate>>,
    /// Propagation delay; that of the link if absent.
    #[serde(default)]
    pub(crate) delay: Option<Text<SimSpan>>,
    /// Where packets wait; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// Which packets are lost in front of the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The longest packet; that of the link if absent.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// When packets come out; each as soon as it is there if absent.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
}

/// When what waits is let out, all of it together and in its order: frames that a radio sends together, packets that a network card
/// reports together.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "hold", tag = "kind")]
pub(crate) enum HoldKeys {
    /// At all multiples of a time, counted from the start of the scenario.
    Grid {
        /// From one release to the next.
        every: Text<SimSpan>,
    },
    /// So long after the first that waits.
    Gather {
        /// How long it waits.
        span: Text<SimSpan>,
    },
    /// At random: the times from one release to the next are exponential.
    Exponential {
        /// Their mean.
        mean: Text<SimSpan>,
    },
    /// At random: the times from one release to the next are uniform, from nothing to the longest.
    Uniform {
        /// The longest.
        most: Text<SimSpan>,
    },
    /// At once, but for stalls at random, in which all waits: a machine that has other things to do, a radio that looks for another channel.
    Stalls {
        /// From the end of one to the next, on average; the times are exponential.
        every: Text<SimSpan>,
        /// How long the longest is; uniform from nothing to this.
        most: Text<SimSpan>,
    },
}

/// How much later than it could something happens.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "delay", tag = "kind")]
pub(crate) enum DelayKeys {
    /// Always by the same time.
    Constant {
        /// How long.
        span: Text<SimSpan>,
    },
    /// By an exponential time.
    Exponential {
        /// Its mean.
        mean: Text<SimSpan>,
    },
    /// By a uniform time, from nothing to the longest.
    Uniform {
        /// The longest.
        most: Text<SimSpan>,
    },
}

/// What wakes up the programs that send and receive at a node. Without it each is told of a packet and of a deadline at the instant of either.
/// Only flows of `anabranch` have it: each end of one is a program of its own.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct HostKeys {
    /// The node.
    pub(crate) node: Name,
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// Timers ring at multiples of this; when they are due if absent.
    #[serde(default)]
    pub(crate) timer: Text<SimSpan>,
    /// When the network card tells of packets that have come; of each at once if absent.
    #[serde(default)]
    pub(crate) arrivals: Option<HoldKeys>,
    /// How much later than it could a program runs, each time that it is woken up; not at all if absent.
    #[serde(default)]
    pub(crate) delay: Option<DelayKeys>,
    /// In which order a program reads and sends; `each` if absent.
    #[serde(default)]
    pub(crate) reads: Option<ReadsKeys>,
    /// When packets are said to have come; `kernel` if absent.
    #[serde(default)]
    pub(crate) stamps: Option<StampsKeys>,
}

/// In which order a program reads and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "reads")]
pub(crate) enum ReadsKeys {
    /// It reads one packet, sends what there is to send, and reads the next.
    Each,
    /// It reads all that has come, then it sends.
    Batch,
}

/// When a packet is said to have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stamps")]
pub(crate) enum StampsKeys {
    /// When the card told of it: a kernel's time stamp.
    Kernel,
    /// When the program read it.
    Program,
}

/// A time during which a link is cut. What is in its queue or under way gets through.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "outage")]
pub(crate) struct OutageKeys {
    /// When it begins.
    pub(crate) from: Text<SimSpan>,
    /// When it ends.
    pub(crate) until: Text<SimSpan>,
}

/// From some time on, a link takes other packets.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mtu_change")]
pub(crate) struct MtuChangeKeys {
    /// From when on.
    pub(crate) at: Text<SimSpan>,
    /// The longest packet that it takes then, at least `68B`.
    pub(crate) mtu: Text<Bytes>,
}

/// How times are added up. It matters where two of them are equal on paper: in networks of round numbers, which is why the
/// experiments that are compared with ns-2 to the packet say `ns2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "clock")]
pub(crate) enum ClockKeys {
    /// In whole picoseconds.
    #[default]
    Exact,
    /// As ns-2 does, in floating-point seconds, whose last bits decide which of two packets comes first. Agents of ns-2 and
    /// `on_off` flows draw from ns-2's random stream, in turn as in ns-2.
    Ns2,
}

/// Where packets wait for a link.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "queue", tag = "kind")]
pub(crate) enum QueueKeys {
    /// First in, first out; what finds it full is dropped. One of the two limits.
    DropTail {
        /// How many packets it holds, the one in service included: ns-2's `queue-limit`. At least 2.
        #[serde(default)]
        packets: Option<Count>,
        /// How many bytes may wait; the packet in service does not.
        #[serde(default)]
        bytes: Option<Text<Bytes>>,
    },
    /// First in, first out, without a limit.
    Unlimited,
    /// Random early detection, as ns-2.35's `Queue/RED` measured in packets.
    Red {
        /// How many packets may wait.
        packets: Count,
        /// Average below which nothing is dropped, in packets; 5 if absent.
        #[serde(default)]
        threshold_min: Option<f64>,
        /// Average from which on much is dropped, in packets; 15 if absent.
        #[serde(default)]
        threshold_max: Option<f64>,
        /// Drop probability at `threshold_max`; 0.1 if absent.
        #[serde(default)]
        probability_max: Option<Probability>,
        /// Whether packets whose sender understands marks are marked where others are dropped by chance (RFC 3168); false if absent.
        #[serde(default)]
        ecn: bool,
    },
    /// Controlled delay (RFC 8289): it drops at its head what has waited for too long.
    #[serde(rename = "codel")]
    CoDel {
        /// How many packets may wait; 1000 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The standing delay that is acceptable; 5 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// About the longest round trip; 100 ms if absent.
        #[serde(default)]
        interval: Option<Text<SimSpan>>,
        /// Whether packets whose sender understands marks are marked where others are dropped at the head; false if absent.
        #[serde(default)]
        ecn: bool,
    },
}

/// ns-2's `DropTail` of 50 packets.
impl Default for QueueKeys {
    fn default() -> Self {
        Self::DropTail { packets: Some(Count(50)), bytes: None }
    }
}

/// Which packets a link loses.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "error", tag = "kind")]
pub(crate) enum ErrorKeys {
    /// None.
    #[default]
    None,
    /// These, counted from 0 in the order in which they come to the link.
    List {
        /// Their numbers.
        packets: Vec<u64>,
    },
    /// The first packet that comes at a time or later, for each of these times.
    At {
        /// The times.
        times: Vec<Text<SimSpan>>,
    },
    /// Each packet with the same probability, independently of the others.
    Uniform {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// Each byte with the same probability; a packet is lost if one of its bytes is.
    PerByte {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// A channel that is good or bad (Gilbert and Elliott); it starts good.
    GilbertElliott {
        /// Probability, per packet, that a good channel turns bad.
        to_bad: Probability,
        /// Probability, per packet, that a bad channel turns good.
        to_good: Probability,
        /// Loss while it is good; 0 if absent.
        #[serde(default)]
        loss_good: Option<Probability>,
        /// Loss while it is bad; 1 if absent.
        #[serde(default)]
        loss_bad: Option<Probability>,
    },
    /// The first `burst` of every `period` packets.
    Periodic {
        /// Packets from one loss to the next.
        period: Count,
        /// The first packet lost, counted from 0; 0 if absent.
        #[serde(default)]
        offset: u64,
        /// Packets lost in a row; 1 if absent.
        #[serde(default)]
        burst: Option<Count>,
    },
    /// What exceeds a rate, at once and without a queue: a token bucket.
    Policer {
        /// What passes in the long run.
        rate: Text<Rate>,
        /// What may pass above that at once: the depth of the bucket. Packets that are larger never pass.
        burst: Text<Bytes>,
    },
}

/// A source, its transport and its destination.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "flow")]
pub(crate) struct FlowKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The node that sends.
    pub(crate) from: Name,
    /// The node that receives.
    pub(crate) to: Name,
    /// When it begins to send; at once if absent. With `count` it may be a list, of one time for each.
    #[serde(default)]
    pub(crate) start: Text<SimSpan>,
    /// How much later it may begin: by a random time from 0 to this.
    #[serde(default)]
    pub(crate) start_jitter: Text<SimSpan>,
    /// When it stops sending; never if absent.
    #[serde(default)]
    pub(crate) stop: Option<Text<SimSpan>>,
    /// `ns2/<agent>`: a one-way TCP of ns-2.35 that always has data; agents are reno, newreno, sack, fack, vegas, fs, linux,
    /// composite, fast (the CUBIN module for ns-2), and mfast (fast with MFast's receiver: streams that are sent in turn, and 4
    /// bytes of stream header in each packet). `ns2/fast-mh`: FAST multihoming, fast on each of several paths at once. `ns2/sctp` and `ns2/sctp-cmt`: its SCTP, and concurrent multipath transfer.
    /// `anabranch`: our own transport, with streams. `cbr`: packets at a constant rate. `on_off`: exponential bursts between
    /// exponential silences.
    pub(crate) transport: String,
    /// The congestion law of a transport that lets one choose, with its parameters: `anabranch cc list`. Of `anabranch` any
    /// law; `anabranch` if absent.
    #[serde(default)]
    pub(crate) cc: Option<LawKeys>,
    /// Size of a data packet on the wire, headers included; `1040B` if absent. Of SCTP, of the largest one.
    #[serde(default = "packet_default")]
    pub(crate) packet: Text<Bytes>,
    /// The most packets in flight: ns-2's `window_`. Only one-way TCP of `ns2/*`; 20 if absent.
    #[serde(default)]
    pub(crate) window: Option<Count>,
    /// Window at the start, in packets: ns-2's `windowInit_`. Only `ns2/*`; 2 if absent.
    #[serde(default)]
    pub(crate) initial_window: Option<Count>,
    /// Least retransmission timeout: ns-2's `minrto_`. Of `anabranch` it is the least that is added to the smoothed RTT. Only these; 200 ms if absent.
    #[serde(default)]
    pub(crate) rto_min: Option<Text<SimSpan>>,
    /// The receiver. Only `ns2/*`; `sack1` if absent and the agent reads selective acknowledgements, else `plain`.
    #[serde(default)]
    pub(crate) sink: Option<SinkKeys>,
    /// What the application wants to have sent. Only `ns2/*` and `anabranch`; `bulk` if absent.
    #[serde(default)]
    pub(crate) workload: Option<WorkloadKeys>,
    /// Quirks of an agent of ns-2: `burst_max` (`maxburst_`, 0 is no limit), `precise_halving` (`precisionReduce_`), of
    /// `ns2/newreno` `impatient` (`newreno_changes1_`) and of `ns2/mfast` `streams` (1 to 255; 5 if absent), of `ns2/fast-mh` `reinject` (how long a path
    /// that times out may be silent before the others send what it has in flight, such as "2s"; never if absent). Only `ns2/*`. SCTP has others: `chunk` (bytes with its header of 16),
    /// `streams`, `receive_buffer` and `ssthresh` (bytes), `window_floor` (packets), `delayed_sack`, `sack_delay`, `burst_limit`,
    /// `missing_reports`, `unordered`, `alternate` (`never`, `always`, `timeouts`), `dormant` (`hop`, `primary`, `last`),
    /// `path_errors_max`, `association_errors_max`, `heartbeat` (seconds, 0 for none), `primary` (a path, from 1), and of CMT
    /// `split_fast_retransmit`, `window_update`, `delayed_ack`, `policy` (`asap`, `same`, `ssthresh`, `loss_rate`, `window`).
    #[serde(default)]
    pub(crate) options: Option<BTreeMap<String, Setting>>,
    /// The interfaces by which both ends of an SCTP association, of `ns2/fast-mh` or of a connection of `anabranch` can be reached;
    /// one, by the shortest way, if absent. Of the last two at most 8.
    #[serde(default)]
    pub(crate) paths: Option<Vec<PathKeys>>,
    /// Streams from the source to its destination, 0 to 255; 0 is plain TCP. Only `anabranch`; 1 if absent.
    #[serde(default)]
    pub(crate) streams: Option<u8>,
    /// How data is spread over several paths. Only `anabranch`; `min_rtt` if absent.
    #[serde(default)]
    pub(crate) scheduler: Option<SchedulerKeys>,
    /// The receive buffer; all paths of `ns2/fast-mh` share it. Only these and `anabranch`; `16MiB` if absent.
    #[serde(default)]
    pub(crate) rbuf: Option<Text<Bytes>>,
    /// How much of it one stream may take. Only `anabranch`; `whole` if absent.
    #[serde(default)]
    pub(crate) stream_buffer: Option<StreamBufferKeys>,
    /// How losses are found. Only `anabranch`; `rack` if absent.
    #[serde(default)]
    pub(crate) loss_detection: Option<LossDetectionKeys>,
    /// Where what is lost is sent again. Only `anabranch` with `paths`; `same_path` if absent.
    #[serde(default)]
    pub(crate) repair: Option<RepairKeys>,
    /// Whether other paths take over from a silent one. Only `anabranch` with `paths`; `on_silence` if absent.
    #[serde(default)]
    pub(crate) failover: Option<FailoverKeys>,
    /// How what leaves is spread over time. Only `anabranch`; `by_law` if absent, as with the agents that it is compared with. Outside of scenarios it is
    /// `always`.
    #[serde(default)]
    pub(crate) pacing: Option<PacingKeys>,
    /// How long an acknowledgement may wait for a second packet, to answer both: less than `500ms`. Only `anabranch`; each packet is
    /// answered at once if absent.
    #[serde(default)]
    pub(crate) delayed_acks: Option<Text<SimSpan>>,
    /// Whether a packet that is not full waits for more as long as something is unacknowledged: Nagle's algorithm. Only `anabranch`; false
    /// if absent.
    #[serde(default)]
    pub(crate) nagle: Option<bool>,
    /// In which form segments travel. Only `anabranch`; `tcp` if absent.
    #[serde(default)]
    pub(crate) form: Option<FormKeys>,
    /// Whether packets say when they left (RFC 7323), which takes 12 bytes of each. Only `anabranch`; false if absent.
    #[serde(default)]
    pub(crate) timestamps: Option<bool>,
    /// How long an end may hear nothing before it asks whether the other one is there; then it does every 75 s, nine times. Only
    /// `anabranch`; it never asks if absent.
    #[serde(default)]
    pub(crate) keep_alive: Option<Text<SimSpan>>,
    /// Bits per second of a `cbr`, or of the bursts of an `on_off`.
    #[serde(default)]
    pub(crate) rate: Option<Text<Rate>>,
    /// Mean length of a burst. Only `on_off`.
    #[serde(default)]
    pub(crate) on: Option<Text<SimSpan>>,
    /// Mean length of a silence. Only `on_off`.
    #[serde(default)]
    pub(crate) off: Option<Text<SimSpan>>,
}

/// In which form segments travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "form")]
pub(crate) enum FormKeys {
    /// As TCP, in packets of `packet` at most on every path.
    Tcp,
    /// In sealed datagrams over UDP and IPv6, as on a real network: each path's packets are as long as it carries, up to `packet`, which is found
    /// by probes, and routers may mark them. Nothing is encrypted in here, and keys take no time.
    Sealed,
}

/// Which path takes what is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "scheduler")]
pub(crate) enum SchedulerKeys {
    /// All, in proportion to their congestion windows, as in multihoming-2010.
    Window,
    /// The one with the least RTT that has room.
    MinRtt,
    /// All, in proportion to their weights.
    Weighted,
    /// The first; the others if it fails.
    Backup,
}

/// A pair of interfaces, one at each end. Between them packets go the shortest way.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "path")]
pub(crate) struct PathKeys {
    /// The duplex link by which packets leave the node that sends.
    pub(crate) first: Name,
    /// The duplex link by which they arrive at the node that receives.
    pub(crate) last: Name,
    /// What the policy `loss_rate` takes for the share of packets that it loses; 0 if absent. Only SCTP.
    #[serde(default)]
    pub(crate) loss_rate: Option<Probability>,
    /// How much it is to carry in proportion to others; 1 if absent. Only with the scheduler `weighted`.
    #[serde(default)]
    pub(crate) weight: Option<Count>,
}

/// How much of the receive buffer of a connection one stream may take.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stream_buffer")]
pub(crate) enum StreamBufferKeys {
    /// All of it, as in the papers: streams have no credit of their own.
    Whole,
    /// As much as leaves something for every other stream.
    Shared,
}

/// How losses are found. Of a receiver without selective acknowledgements, by duplicates in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "loss_detection")]
pub(crate) enum LossDetectionKeys {
    /// By time, learning how much the path reorders, with a probe of the tail (RFC 8985).
    Rack,
    /// By three that arrive of what left later (RFC 6675).
    DupAcks,
}

/// How what leaves is spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "pacing")]
pub(crate) enum PacingKeys {
    /// At the rate of the law where it has one, else at 1.25 windows in a smoothed RTT (RFC 9002).
    Always,
    /// At the rate of the law where it has one; else acknowledgements set the pace, as with the agents of the papers.
    ByLaw,
}

/// Where what is lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "repair")]
pub(crate) enum RepairKeys {
    /// On its own path, as in multihoming-2010, unless that has failed.
    SamePath,
    /// On any path that has room, its own or one that is faster.
    AnyPath,
}

/// Whether other paths take over from a silent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "failover")]
pub(crate) enum FailoverKeys {
    /// After about two probe timeouts without an answer: until it answers again, others send what it had in flight. They also send
    /// what keeps the receiver's window shut on a path that is much slower.
    OnSilence,
    /// Never, as in multihoming-2010: what left on a path waits for it. A path that stays dead stops the connection, which is
    /// given up when nothing has got anywhere for five minutes. Not with the scheduler `backup`.
    Never,
}

/// How a receiver of ns-2 acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "sink")]
pub(crate) enum SinkKeys {
    /// Each packet at once.
    Plain,
    /// Every other packet, or after 100 ms.
    Delayed,
    /// Each packet at once, with selective acknowledgements.
    Sack1,
    /// Every other packet, or after 100 ms, with selective acknowledgements.
    Sack1Delayed,
}

/// What an application wants to have sent, from the start of its flow on. Agents of ns-2 send whole packets: the last one of a
/// message is padded. With streams, message m goes on stream m modulo their number.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "workload", tag = "kind")]
pub(crate) enum WorkloadKeys {
    /// As much as can be sent.
    Bulk,
    /// So many bytes, at once.
    Fixed {
        /// How many.
        bytes: Text<Bytes>,
    },
    /// Messages, one after the other.
    Messages {
        /// Bytes of each.
        bytes: Text<Bytes>,
        /// How many; endless if absent.
        #[serde(default)]
        count: Option<Count>,
        /// The time from one to the next; none if absent: all at once.
        #[serde(default)]
        every: Option<Text<SimSpan>>,
        /// The mean of that time if it is random: a Poisson process.
        #[serde(default)]
        every_mean: Option<Text<SimSpan>>,
    },
}

/// From some time on, packets for a node leave another node by a given link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "route")]
pub(crate) struct RouteKeys {
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// From when on; from the start if absent.
    #[serde(default)]
    pub(crate) at: Text<SimSpan>,
    /// The node that they leave.
    pub(crate) node: Name,
    /// The node that they are for.
    pub(crate) to: Name,
    /// The link that they leave by.
    pub(crate) via: Name,
}

fn yes() -> bool {
    true
}

/// 1000 bytes of ns-2's `packetSize_` and 40 of header.
fn packet_default() -> Text<Bytes> {
    Text(Bytes::new(1040))
}

/// At 1 Tbit/s a byte takes 8 ticks of the simulator's clock.
pub(crate) const RATE_MAX: u64 = 1_000_000_000_000;

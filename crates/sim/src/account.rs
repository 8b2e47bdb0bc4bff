//! What a host says of itself to those who look on: what it has counted, and what it was told to remember.
//!
//! Nobody has to know what kind of host it is. A host without an account, such as one that only answers, says nothing.

use std::borrow::Cow;

use anabranch_ns2::Gauges;
use anabranch_proto::PathState;
use anabranch_units::{SimSpan, SimTime};

use crate::distribution::Spans;
use crate::gauges::GaugeRow;
use crate::history::Entry;

/// What a host says of itself. Asking changes nothing, and what a host does not count or was not told to remember is `None`.
pub trait Account {
    /// What it has counted so far.
    fn report(&self) -> HostReport<'_> {
        HostReport::default()
    }

    /// Its variables as a sender at each change, several paths added up.
    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        None
    }

    /// One variable over time.
    fn series(&self, _series: HostSeries) -> Option<Points<'_>> {
        None
    }

    /// What it was offered to send, message by message.
    fn offered(&self) -> Option<Portions<'_>> {
        None
    }

    /// What it has handed to its application, in order.
    fn delivered(&self) -> Option<Portions<'_>> {
        None
    }

    /// What happened within so much time is one entry of what it remembers.
    fn resolution(&self) -> Option<SimSpan> {
        None
    }

    /// The mean time in seconds from a packet's first departure here to its first arrival at `sink`, of those that have arrived.
    fn delay_mean_s(&self, sink: &dyn Account) -> Option<f64> {
        let received = sink.report().received;
        received.delay_sum.filter(|_| received.packets > 0).map(|sum| sum.as_secs_f64() / received.packets as f64)
    }

    /// What has arrived here, for a source that knows when it had left. Only of a host whose packets do not say so themselves.
    fn first_arrivals(&self) -> Option<&dyn FirstArrivals> {
        None
    }
}

/// The account of a host that has none.
pub(crate) struct NoAccount;

impl Account for NoAccount {}

/// First arrivals of segments, each of which begins at an offset of its connection.
pub trait FirstArrivals {
    /// How many there were.
    fn count(&self) -> u64;

    /// Their times added up, in picoseconds.
    fn sum(&self) -> u128;

    /// Whether the segment at `offset` is among them.
    fn has(&self, offset: u64) -> bool;
}

/// What a host has counted, in either of its parts. A part that it does not play is empty.
#[derive(Clone, Debug, Default)]
pub struct HostReport<'a> {
    /// As a sender.
    pub sent: SentReport<'a>,
    /// As a receiver.
    pub received: ReceivedReport,
}

/// What a sender has counted. Packets are its data packets; of ns-2's SCTP what is sent again is chunks.
#[derive(Clone, Debug, Default)]
pub struct SentReport<'a> {
    /// Packets sent, again or not.
    pub packets: u64,
    /// Packets, or chunks, sent again.
    pub retransmitted: u64,
    /// The highest sequence number sent.
    pub seq_max: Option<i64>,
    /// Up to which number all are acknowledged.
    pub acked_seq: Option<i64>,
    /// The number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// The most of these on one path one after the other.
    pub timeouts_in_row_max: Option<u64>,
    /// Losses that were taken for random.
    pub random_losses: Option<u64>,
    /// All samples of the RTT added up.
    pub rtt_sum: SimSpan,
    /// How many there were.
    pub rtt_samples: u64,
    /// How they are distributed.
    pub rtts: Option<&'a Spans>,
    /// The congestion window now, in packets, several paths added up.
    pub window: Option<f64>,
    /// How often a law with a baseRTT forgot it.
    pub reroutes: Option<u64>,
    /// What the receiver's window keeps from being sent, where that has a fixed number of packets.
    pub window_limit: Option<WindowLimit>,
    /// Each path, in the order of their indices; empty of a sender that has no paths.
    pub paths: Vec<SenderPath>,
}

/// One path of a sender.
#[derive(Clone, Debug)]
pub struct SenderPath {
    /// Counted from 0.
    pub index: usize,
    /// Of the transport alone.
    pub state: Option<PathState>,
    /// Packets sent, again or not.
    pub packets: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Bytes delivered on it, stream headers included; of the transport alone.
    pub delivered: Option<u64>,
    /// Its samples of the RTT added up.
    pub rtt_sum: SimSpan,
    /// How many there were.
    pub rtt_samples: u64,
    /// The congestion window now, in packets.
    pub window: f64,
}

/// How often a window of a fixed size was the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLimit {
    /// The window, in packets.
    pub window: f64,
    /// Acknowledgements at which it, and not the congestion window, was the limit.
    pub limited_acks: u64,
    /// Acknowledgements that gave a sample of the RTT.
    pub acks: u64,
}

/// What a receiver has counted. Packets are data packets; of ns-2's SCTP they are chunks.
#[derive(Clone, Debug, Default)]
pub struct ReceivedReport {
    /// Bytes of payload that came for the first time; of the transport, those that its application has read.
    pub payload: u64,
    /// Bytes on the wire that came, headers and what came again included.
    pub wire: u64,
    /// Packets that came for the first time.
    pub packets: u64,
    /// Of these, those that came after one that was first sent later (RFC 4737, section 3.3).
    pub reordered: Option<u64>,
    /// The most packets that waited at one time for one before them.
    pub held_max: Option<u64>,
    /// The most bytes of the receive buffer in use at one time.
    pub buffered_max: Option<u64>,
    /// The times from first departure to first arrival of all packets added up, where packets say when they left.
    pub delay_sum: Option<SimSpan>,
}

/// What can be asked over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSeries {
    /// The congestion window of a path, in packets. Paths count from 0.
    PathWindow(usize),
    /// The slow start threshold of a path, in packets.
    PathSsthresh(usize),
    /// Packets in flight on a path.
    PathInFlight(usize),
    /// Up to which number all are acknowledged.
    AckedSeq,
    /// The receiver's window as the sender knows it, in packets.
    PeerWindow,
    /// Packets that wait at the receiver for one before them.
    Held,
}

impl HostSeries {
    /// The path that is asked about.
    pub(crate) fn path(self) -> Option<usize> {
        match self {
            Self::PathWindow(path) | Self::PathSsthresh(path) | Self::PathInFlight(path) => Some(path),
            Self::AckedSeq | Self::PeerWindow | Self::Held => None,
        }
    }
}

/// A variable at each of its changes.
pub type Points<'a> = Box<dyn Iterator<Item = (SimTime, f64)> + 'a>;

/// Parts of one or several streams, in the order of their times.
pub type Portions<'a> = Box<dyn Iterator<Item = Portion> + 'a>;

/// Bits of one stream: offered to a source, or read by the application of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// When it was offered or read.
    pub time: SimTime,
    /// The stream, counted from 0; 0 of a connection without streams.
    pub stream: usize,
    /// How many bits of payload.
    pub bits: u64,
}

/// What one stream gets adds up.
impl Entry for Portion {
    fn time(&self) -> SimTime {
        self.time
    }

    fn joins(&self, later: &Self) -> bool {
        self.stream == later.stream
    }

    fn joined(&self, later: &Self) -> Self {
        Self { bits: self.bits + later.bits, ..*later }
    }
}

/// Whole numbers over time as points.
pub(crate) fn points<T: Copy>(entries: &[(SimTime, T)], number: fn(T) -> f64) -> Points<'_> {
    Box::new(entries.iter().map(move |&(time, value)| (time, number(value))))
}

/// One variable of a path, from what it remembered; nothing if it is none of a path's.
pub(crate) fn path_points(rows: &[GaugeRow], series: HostSeries) -> Option<Points<'_>> {
    let of: fn(&Gauges) -> f64 = match series {
        HostSeries::PathWindow(_) => |it| it.window,
        HostSeries::PathSsthresh(_) => |it| it.ssthresh,
        HostSeries::PathInFlight(_) => |it| f64::from(it.in_flight),
        HostSeries::AckedSeq | HostSeries::PeerWindow | HostSeries::Held => return None,
    };
    Some(Box::new(rows.iter().map(move |row| (row.time, of(&row.gauges)))))
}

//! The account of a host: its counters, and the variables that it records on request.
//!
//! An observer need not know the type of the host. A host without an account, such as one that only answers, has empty counters.

use std::borrow::Cow;

use anabranch_ns2::Gauges;
use anabranch_proto::PathState;
use anabranch_units::{SimSpan, SimTime};

use crate::distribution::Spans;
use crate::gauges::GaugeRow;
use crate::history::Entry;

/// The account of a host. Queries change nothing. A quantity that the host does not count or record is `None`.
pub trait Account {
    /// The counters since the start.
    fn report(&self) -> HostReport<'_> {
        HostReport::default()
    }

    /// The sender's variables at each change, summed over its paths.
    fn gauges(&self) -> Option<Cow<'_, [GaugeRow]>> {
        None
    }

    /// One variable over time.
    fn series(&self, _series: HostSeries) -> Option<Points<'_>> {
        None
    }

    /// The messages offered for sending.
    fn offered(&self) -> Option<Portions<'_>> {
        None
    }

    /// The data handed to the application, in order.
    fn delivered(&self) -> Option<Portions<'_>> {
        None
    }

    /// The resolution of the records: events within this time are one entry.
    fn resolution(&self) -> Option<SimSpan> {
        None
    }

    /// The mean time in seconds from the first departure of a packet here to its first arrival at `sink`, over the packets that
    /// have arrived.
    fn delay_mean_s(&self, sink: &dyn Account) -> Option<f64> {
        let received = sink.report().received;
        received.delay_sum.filter(|_| received.packets > 0).map(|sum| sum.as_secs_f64() / received.packets as f64)
    }

    /// The first arrivals here, for a source that knows the departures. Only for a host whose packets do not carry their departure
    /// times.
    fn first_arrivals(&self) -> Option<&dyn FirstArrivals> {
        None
    }

    /// The messages that have arrived here, if the host expects messages.
    fn messages(&self) -> Option<MessageTimes<'_>> {
        None
    }
}

/// The times of messages at the application that waits for them, in their order.
#[derive(Clone, Copy, Debug)]
pub struct MessageTimes<'a> {
    /// When each was requested; `None` if the receiver sends no requests.
    pub asked: Option<&'a [SimTime]>,
    /// When the last byte of each was read.
    pub finished: &'a [SimTime],
}

/// The account of a host that has none.
pub(crate) struct NoAccount;

impl Account for NoAccount {}

/// First arrivals of segments, identified by their offset in the connection.
pub trait FirstArrivals {
    /// The number of first arrivals.
    fn count(&self) -> u64;

    /// The sum of their times in picoseconds.
    fn sum(&self) -> u128;

    /// Whether the segment at `offset` has arrived.
    fn has(&self, offset: u64) -> bool;
}

/// The counters of a host as sender and as receiver. A role that it does not play is empty.
#[derive(Clone, Debug, Default)]
pub struct HostReport<'a> {
    /// Its counters as a sender.
    pub sent: SentReport<'a>,
    /// Its counters as a receiver.
    pub received: ReceivedReport,
}

/// The counters of a sender. Packets are data packets; for ns-2's SCTP, retransmissions are counted in chunks.
#[derive(Clone, Debug, Default)]
pub struct SentReport<'a> {
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// Packets, or chunks, retransmitted.
    pub retransmitted: u64,
    /// The highest sequence number sent.
    pub seq_max: Option<i64>,
    /// The highest cumulatively acknowledged number.
    pub acked_seq: Option<i64>,
    /// The number of retransmission timeouts.
    pub timeouts: Option<u64>,
    /// The largest number of consecutive timeouts of one path.
    pub timeouts_in_row_max: Option<u64>,
    /// Losses classified as random.
    pub random_losses: Option<u64>,
    /// The sum of all RTT samples.
    pub rtt_sum: SimSpan,
    /// The number of RTT samples.
    pub rtt_samples: u64,
    /// The distribution of RTT samples.
    pub rtts: Option<&'a Spans>,
    /// The current congestion window in packets, summed over the paths.
    pub window: Option<f64>,
    /// The number of times that a law with a baseRTT discarded it.
    pub reroutes: Option<u64>,
    /// The limit set by the receiver's window, if that is a fixed number of packets.
    pub window_limit: Option<WindowLimit>,
    /// The paths in the order of their indices; empty for a sender without paths.
    pub paths: Vec<SenderPath>,
}

/// One path of a sender.
#[derive(Clone, Debug)]
pub struct SenderPath {
    /// The index, counted from 0.
    pub index: usize,
    /// The state; the transport only.
    pub state: Option<PathState>,
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// The number of retransmitted packets.
    pub retransmitted: u64,
    /// Bytes delivered, stream headers included; the transport only.
    pub delivered: Option<u64>,
    /// The sum of its RTT samples.
    pub rtt_sum: SimSpan,
    /// The number of its RTT samples.
    pub rtt_samples: u64,
    /// The current congestion window in packets.
    pub window: f64,
}

/// How often a window of fixed size limited the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLimit {
    /// The window, in packets.
    pub window: f64,
    /// Acknowledgements at which this window was the limit, not the congestion window.
    pub limited_acks: u64,
    /// Acknowledgements that gave an RTT sample.
    pub acks: u64,
}

/// The counters of a receiver. Packets are data packets; for ns-2's SCTP they are chunks.
#[derive(Clone, Debug, Default)]
pub struct ReceivedReport {
    /// Bytes of payload received for the first time; for the transport, bytes read by the application.
    pub payload: u64,
    /// Bytes received on the wire, headers and duplicates included.
    pub wire: u64,
    /// Packets received for the first time.
    pub packets: u64,
    /// Unique packets that arrived after one that was first sent later (RFC 4737, section 3.3).
    pub reordered: Option<u64>,
    /// The largest number of packets held at one time for a missing earlier one.
    pub held_max: Option<u64>,
    /// The largest use of the receive buffer in bytes.
    pub buffered_max: Option<u64>,
    /// The sum of the times from first departure to first arrival of all packets, if packets carry their departure times.
    pub delay_sum: Option<SimSpan>,
}

/// A variable over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSeries {
    /// The congestion window of a path, in packets. Paths count from 0.
    PathWindow(usize),
    /// The slow start threshold of a path, in packets.
    PathSsthresh(usize),
    /// Packets in flight on a path.
    PathInFlight(usize),
    /// The highest cumulatively acknowledged number.
    AckedSeq,
    /// The receive window known to the sender, in packets.
    PeerWindow,
    /// Packets held at the receiver for a missing earlier one.
    Held,
}

impl HostSeries {
    /// The path of the variable.
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

/// A number of bits of one stream: offered to a source, or read by the application of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// When it was offered or read.
    pub time: SimTime,
    /// The stream, counted from 0; 0 of a connection without streams.
    pub stream: usize,
    /// How many bits of payload.
    pub bits: u64,
}

/// Portions of one stream add up.
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

/// The points of a record of integers.
pub(crate) fn points<T: Copy>(entries: &[(SimTime, T)], number: fn(T) -> f64) -> Points<'_> {
    Box::new(entries.iter().map(move |&(time, value)| (time, number(value))))
}

/// One variable of a path from its record; `None` if it is not a path's variable.
pub(crate) fn path_points(rows: &[GaugeRow], series: HostSeries) -> Option<Points<'_>> {
    let of: fn(&Gauges) -> f64 = match series {
        HostSeries::PathWindow(_) => |it| it.window,
        HostSeries::PathSsthresh(_) => |it| it.ssthresh,
        HostSeries::PathInFlight(_) => |it| f64::from(it.in_flight),
        HostSeries::AckedSeq | HostSeries::PeerWindow | HostSeries::Held => return None,
    };
    Some(Box::new(rows.iter().map(move |row| (row.time, of(&row.gauges)))))
}

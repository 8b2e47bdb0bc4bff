//! A log as text: JSON records, each after a record separator (rfc-7464).
//!
//! Values are numbers, addresses and our own names. None needs escaping.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use std::time::SystemTime;

use anabranch_proto::endpoint::{Metrics, TraceEvent, Traced, TracedSegment};
use anabranch_proto::{CloseReason, Event, Flags, FourTuple, PathId, Sid, StreamHeader};
use anabranch_units::{Span, Time};

use super::Vantage;
use crate::address;

/// The log of a connection.
pub(super) struct Text<W> {
    out: W,
    line: String,
    /// Unacknowledged segments by offset: length, path, and number on the path.
    outstanding: BTreeMap<u64, Outstanding>,
    metrics: BTreeMap<usize, Metrics>,
    /// The time of the last event, as the events of a log are in order of time.
    last: Time,
}

#[derive(Clone, Copy)]
struct Outstanding {
    end: u64,
    path: PathId,
    number: u64,
}

impl<W: Write> Text<W> {
    pub(super) fn new(out: W) -> Self {
        let (outstanding, metrics) = (BTreeMap::new(), BTreeMap::new());
        Self { out, line: String::new(), outstanding, metrics, last: Time::ZERO }
    }

    pub(super) fn header(&mut self, vantage: Vantage, epoch: SystemTime) -> io::Result<()> {
        let epoch = epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
        let vantage = vantage.name();
        self.record(format_args!(
            r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"anabranch","trace":{{"vantage_point":{{"name":"anabranch","type":"{vantage}"}},"common_fields":{{"protocol_type":["ANABRANCH"],"time_format":"relative","reference_time":{epoch:.3}}}}}}}"#
        ))
    }

    pub(super) fn started(&mut self, at: Time, tuple: FourTuple) -> io::Result<()> {
        let (local, remote) = (address::plain(tuple.local), address::plain(tuple.remote));
        let version = if local.is_ipv4() { "v4" } else { "v6" };
        let data = format_args!(
            r#"{{"ip_version":"{version}","src_ip":"{}","dst_ip":"{}","src_port":{},"dst_port":{}}}"#,
            local.ip(),
            remote.ip(),
            local.port(),
            remote.port()
        )
        .to_string();
        self.write(at, PathId::FIRST, "connectivity:connection_started", &data)
    }

    /// Logs an event that was reported to the application; events of streams are not logged.
    pub(super) fn event(&mut self, at: Time, event: Event) -> io::Result<()> {
        let path = |path: PathId, name: &'static str| (path, name, format!(r#"{{"path":{}}}"#, path.index()));
        let (path, name, data) = match event {
            Event::Established { .. } => {
                (PathId::FIRST, "connectivity:connection_state_updated", r#"{"new":"handshake_confirmed"}"#.to_owned())
            }
            Event::Closed(reason) => (PathId::FIRST, "connectivity:connection_closed", closed(reason).to_owned()),
            Event::PathValidated(id) => path(id, "anabranch:path_validated"),
            Event::PathFailed(id) => path(id, "anabranch:path_failed"),
            Event::PathRestored(id) => path(id, "anabranch:path_restored"),
            Event::PathGone(id) => path(id, "anabranch:path_gone"),
            Event::Readable(_)
            | Event::DatagramsReadable
            | Event::Writable(_)
            | Event::Finished(_)
            | Event::Stopped { .. }
            | Event::Stalled
            | Event::PeerClosed => return Ok(()),
        };
        self.write(at, path, name, &data)
    }

    pub(super) fn trace(&mut self, event: &TraceEvent) -> io::Result<()> {
        let TraceEvent { at, path, what } = *event;
        match what {
            Traced::Sent(segment) => self.sent(at, path, &segment),
            Traced::Received(segment) => self.received(at, path, &segment),
            Traced::Lost { offset, by_timeout } => {
                // A segment whose sending was dropped from the trace has no number.
                let Some(Outstanding { number, .. }) = self.outstanding.get(&offset).copied() else { return Ok(()) };
                let trigger = if by_timeout { "pto_expired" } else { "time_threshold" };
                let data =
                    format!(r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"trigger":"{trigger}"}}"#);
                self.write(at, path, "recovery:packet_lost", &data)
            }
            Traced::Metrics(metrics) => self.metrics(at, path, &metrics),
        }
    }

    /// Logs that `count` events are missing here.
    pub(super) fn dropped(&mut self, count: u64) -> io::Result<()> {
        let data = format!(r#"{{"message":"{count} events were dropped: they came faster than they were written"}}"#);
        self.write(self.last, PathId::FIRST, "loglevel:warning", &data)
    }

    /// Writes everything to the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn sent(&mut self, at: Time, path: PathId, segment: &TracedSegment) -> io::Result<()> {
        if segment.space > 0 && self.outstanding.len() < OUTSTANDING_MAX {
            let end = segment.offset + u64::from(segment.space);
            self.outstanding.insert(segment.offset, Outstanding { end, path, number: segment.number });
        }
        let mut frames = frames(segment);
        if segment.ack.is_some() && segment.space == 0 {
            frames.add(r#"{"frame_type":"ack"}"#);
        }
        self.packet(at, path, "transport:packet_sent", segment, &frames)
    }

    fn received(&mut self, at: Time, path: PathId, segment: &TracedSegment) -> io::Result<()> {
        let mut acked = self.acked(segment);
        let mut frames = frames(segment);
        if let Some(numbers) = acked.remove(&path.index()) {
            frames.add(format_args!(r#"{{"frame_type":"ack","acked_ranges":{}}}"#, Ranges(numbers)));
        }
        self.packet(at, path, "transport:packet_received", segment, &frames)?;
        for (path, numbers) in acked {
            let numbers = List(&numbers).to_string();
            let data = format!(r#"{{"packet_number_space":"application_data","packet_numbers":{numbers}}}"#);
            self.write_to(at, path, "transport:packets_acked", &data)?;
        }
        Ok(())
    }

    /// For each path, the packets that this acknowledgement is the first to acknowledge.
    fn acked(&mut self, segment: &TracedSegment) -> BTreeMap<usize, Vec<u64>> {
        let mut acked: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let Some(ack) = segment.ack else { return acked };
        let mut take = |left: u64, right: u64| {
            let places: Vec<u64> = self
                .outstanding
                .range(left..right)
                .filter(|(_, outstanding)| outstanding.end <= right)
                .map(|(place, _)| *place)
                .collect();
            for place in places {
                if let Some(Outstanding { path, number, .. }) = self.outstanding.remove(&place) {
                    acked.entry(path.index()).or_default().push(number);
                }
            }
        };
        take(0, ack);
        segment.sack.iter().filter(|(left, right)| left < right).for_each(|(left, right)| take(*left, *right));
        acked.values_mut().for_each(|numbers| numbers.sort_unstable());
        acked
    }

    fn packet(
        &mut self,
        at: Time,
        path: PathId,
        name: &str,
        segment: &TracedSegment,
        frames: &Parts,
    ) -> io::Result<()> {
        let TracedSegment { number, size, .. } = segment;
        // A path has one packet count, which includes the handshake.
        let data = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{size}}},"frames":[{}]}}"#,
            frames.0
        );
        self.write(at, path, name, &data)
    }

    fn metrics(&mut self, at: Time, path: PathId, metrics: &Metrics) -> io::Result<()> {
        let before = self.metrics.insert(path.index(), *metrics);
        let is_news = |same: fn(&Metrics, &Metrics) -> bool| before.is_none_or(|before| !same(&before, metrics));
        let mut fields = Parts::default();
        if is_news(|one, other| one.window == other.window) {
            fields.member("congestion_window", metrics.window);
        }
        if is_news(|one, other| one.flight == other.flight) {
            fields.member("bytes_in_flight", metrics.flight);
        }
        let rtts: [(&str, RttOf); 3] = [
            ("smoothed_rtt", |metrics| metrics.rtt_smoothed),
            ("latest_rtt", |metrics| metrics.rtt_latest),
            ("min_rtt", |metrics| metrics.rtt_min),
        ];
        for (name, of) in rtts {
            if let Some(rtt) = of(metrics).filter(|_| before.is_none_or(|before| of(&before) != of(metrics))) {
                fields.member(name, Ms(rtt));
            }
        }
        if let Some(pacing) = metrics.pacing.filter(|_| is_news(|one, other| one.pacing == other.pacing)) {
            fields.member("pacing_rate", pacing.bits_per_second());
        }
        if fields.0.is_empty() {
            return Ok(());
        }
        self.write(at, path, "recovery:metrics_updated", &format!("{{{}}}", fields.0))
    }

    fn write(&mut self, at: Time, path: PathId, name: &str, data: &str) -> io::Result<()> {
        self.write_to(at, path.index(), name, data)
    }

    fn write_to(&mut self, at: Time, path: usize, name: &str, data: &str) -> io::Result<()> {
        self.last = self.last.max(at);
        let time = Ms(self.last.since(Time::ZERO));
        self.record(format_args!(r#"{{"time":{time},"name":"{name}","group_id":"path-{path}","data":{data}}}"#))
    }

    fn record(&mut self, record: fmt::Arguments<'_>) -> io::Result<()> {
        self.line.clear();
        // Writing to a String cannot fail.
        _ = writeln!(self.line, "\u{1e}{record}");
        self.out.write_all(self.line.as_bytes())
    }
}

/// Selects an RTT of the metrics.
type RttOf = fn(&Metrics) -> Option<Span>;

fn closed(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished => r#"{"trigger":"clean"}"#,
        CloseReason::Aborted => r#"{"owner":"local","trigger":"application"}"#,
        CloseReason::Refused => r#"{"owner":"remote","trigger":"handshake_failed"}"#,
        CloseReason::Reset => r#"{"owner":"remote","trigger":"stateless_reset"}"#,
        CloseReason::GaveWay => r#"{"owner":"remote","trigger":"application"}"#,
        CloseReason::PortClosed => r#"{"trigger":"error"}"#,
        CloseReason::TimedOut => r#"{"trigger":"idle_timeout"}"#,
        CloseReason::Stalled => r#"{"trigger":"error"}"#,
        CloseReason::FalseAcknowledgement | CloseReason::Mangled => r#"{"owner":"local","trigger":"error"}"#,
    }
}

/// The frames of a segment, without its acknowledgement.
fn frames(segment: &TracedSegment) -> Parts {
    let mut frames = Parts::default();
    let TracedSegment { offset, space, stream, flags, .. } = *segment;
    if flags.contains(Flags::RST) {
        frames.add(r#"{"frame_type":"connection_close"}"#);
    } else if flags.contains(Flags::SYN) {
        frames.add(r#"{"frame_type":"crypto"}"#);
    } else if stream == Some(Sid::DATAGRAM.number()) {
        let length = space - StreamHeader::LEN;
        frames.add(format_args!(r#"{{"frame_type":"datagram","length":{length}}}"#));
    } else if let Some(stream) = stream {
        frames
            .add(format_args!(r#"{{"frame_type":"stream","stream_id":{stream},"offset":{offset},"length":{space}}}"#));
    } else if space > 0 {
        frames.add(format_args!(r#"{{"frame_type":"unknown","raw_frame_type":0,"raw":{{"length":{space}}}}}"#));
    }
    frames
}

/// The parts of a list or of an object, separated by commas.
#[derive(Default)]
struct Parts(String);

impl Parts {
    fn add(&mut self, part: impl Display) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        _ = write!(self.0, "{part}");
    }

    fn member(&mut self, name: &str, value: impl Display) {
        self.add(format_args!(r#""{name}":{value}"#));
    }
}

/// A time in milliseconds, with nanosecond precision.
struct Ms(Span);

impl Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = self.0.ticks();
        write!(f, "{}.{:06}", ticks / 1_000_000, ticks % 1_000_000)
    }
}

/// Sorted numbers, as inclusive ranges.
struct Ranges(Vec<u64>);

impl Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut separator = "";
        for run in self.0.chunk_by(|one, other| one + 1 == *other) {
            let (first, last) = (run[0], run[run.len() - 1]);
            write!(f, "{separator}[{first},{last}]")?;
            separator = ",";
        }
        f.write_str("]")
    }
}

struct List<'a>(&'a [u64]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(u64::to_string).collect();
        write!(f, "[{}]", numbers.join(","))
    }
}

/// A path with a log has no more segments in flight than this: 1.5 GB.
const OUTSTANDING_MAX: usize = 1 << 20;

//! The transport's engine as hosts: a source that sends on its streams, and a sink that reads all data.

mod account;
mod messages;
mod sink;

use std::collections::VecDeque;

use anabranch_ns2::Gauges;
use anabranch_proto::{
    Config, ConfigError, Connection, Content, Event, FourTuple, PathId, PathReport, Secret, SeqNumber, Sid, Virtual,
};
use anabranch_units::{SimSpan, SimTime, Span, Time};

use crate::account::{Account, Portion};
use crate::datagrams::Datagrams;
use crate::distribution::Spans;
use crate::gauges::{GaugeListener, GaugeRow, Record};
use crate::history::{Detail, remember};
use crate::host::{Arrival, Host, Input, Offer, Supply, Transmit, Way};

use self::messages::Answers;

pub use self::messages::Requests;
pub use self::sink::EngineSink;

/// The end that opens the connection and sends. When it starts, it has endless data on all streams. An offer goes to the stream
/// that the offer names.
#[derive(Debug)]
pub struct EngineSource {
    config: Config,
    datagrams: Datagrams,
    /// `None` before the start.
    connection: Option<Connection<Virtual>>,
    /// Indexed by stream of the established connection; before that, by requested stream.
    lanes: Vec<Lane>,
    supply: Supply,
    /// Whether streams have been opened.
    is_open: bool,
    ways: Vec<Way>,
    /// The weights of the paths that exist from the start, indexed by path; 1 each by default.
    weights: Vec<u32>,
    record: Option<Record>,
    listener: Option<GaugeListener>,
    rtts: Spans,
    departures: Departures,
    /// The offers, if they are recorded.
    offers: Option<Offers>,
    /// The answers to requests, for a source that answers.
    answers: Option<Answers>,
}

/// The offered messages. They are recorded completely, or not at all if they do not fit.
#[derive(Debug)]
struct Offers {
    messages: Option<Vec<Portion>>,
    messages_max: usize,
}

impl Offers {
    fn add(&mut self, message: Portion) {
        if let Some(messages) = &mut self.messages {
            messages.push(message);
        }
        self.messages.take_if(|messages| messages.len() > self.messages_max);
    }
}

/// Departures of new segments with content.
#[derive(Debug, Default)]
struct Departures {
    /// The number of departures.
    count: u64,
    /// The sum of their times in picoseconds.
    sum: u128,
    /// The offsets and times of unacknowledged ones.
    waiting: VecDeque<(u64, SimTime)>,
}

impl Departures {
    fn add(&mut self, offset: u64, now: SimTime) {
        self.count += 1;
        self.sum += picoseconds(now);
        self.waiting.push_back((offset, now));
    }

    /// Drops all entries below `acknowledged`: these have arrived.
    fn forget_until(&mut self, acknowledged: u64) {
        while self.waiting.front().is_some_and(|&(offset, _)| offset < acknowledged) {
            self.waiting.pop_front();
        }
    }
}

fn picoseconds(time: SimTime) -> u128 {
    time.since(SimTime::ZERO).ticks().into()
}

/// The waiting data of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Bytes that were offered and not written.
    bytes: u64,
    /// Whether it has endless data.
    is_endless: bool,
}

/// The addresses and ports of a path as its source sees them, derived from its number. Only the two engines use them: the simulator delivers by flow,
/// and distinguishes paths by the addresses of [`Way`].
fn tuple(path: usize) -> FourTuple {
    SOURCE.get(path).copied().unwrap_or_else(|| ends(path))
}

/// The same as the sink sees them.
fn tuple_of_sink(path: usize) -> FourTuple {
    SINK.get(path).copied().unwrap_or_else(|| ends(path).reversed())
}

/// Those of the first paths. The engine compares them for each segment, 16 bytes at once; a processor would wait for addresses that were just written in
/// halves, about as long as for ten additions.
static SOURCE: [FourTuple; 8] = first(false);
static SINK: [FourTuple; 8] = first(true);

const fn first(is_sink: bool) -> [FourTuple; 8] {
    let mut tuples = [ends(0); 8];
    let mut path = 0;
    while path < tuples.len() {
        tuples[path] = if is_sink { ends(path).reversed() } else { ends(path) };
        path += 1;
    }
    tuples
}

const fn ends(path: usize) -> FourTuple {
    const fn end(address: usize) -> anabranch_proto::Address {
        anabranch_proto::Address { address: address as u128, port: 0 }
    }
    FourTuple { local: end(2 * path + 1), remote: end(2 * path + 2) }
}

/// The number of the path whose source has this address.
fn number(source: anabranch_proto::Address) -> usize {
    (source.address as usize - 1) / 2
}

/// In a simulation the initial sequence number need not be unpredictable.
const INITIAL: SeqNumber = SeqNumber(0);

impl EngineSource {
    /// A source that has not started.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Connection::<Virtual>::connect(Time::ZERO, config.clone(), tuple(0), Secret::predictable(INITIAL))?;
        let lanes = vec![Lane::default(); usize::from(config.streams.max(1))];
        Ok(Self {
            datagrams: Datagrams::new(config.form),
            config,
            connection: None,
            lanes,
            supply: Supply::Endless,
            is_open: false,
            ways: Vec::new(),
            weights: Vec::new(),
            record: None,
            listener: None,
            rtts: Spans::default(),
            departures: Departures::default(),
            offers: None,
            answers: None,
        })
    }

    /// The same source, with data from offers only.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same source, with data only in answer to complete requests of `request` bytes. The answers have these sizes, in order.
    #[must_use]
    pub fn answering(self, request: u32, sizes: Vec<u64>) -> Self {
        Self { answers: Some(Answers::new(request, sizes)), ..self.fed() }
    }

    /// The same source with several paths. The connection is opened on the first path. The others are added once it is
    /// established, if the configuration allows as many.
    #[must_use]
    pub fn multihomed(self, ways: Vec<Way>) -> Self {
        Self { ways, ..self }
    }

    /// The same source, with weights for its paths.
    #[must_use]
    pub fn weighted(self, weights: Vec<u32>) -> Self {
        Self { weights, ..self }
    }

    /// The same source, recording its variables in this detail.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        Self { record: Some(Record::new(detail, self.ways.len().max(1))), ..self }
    }

    /// The same source, telling its variables at each change.
    #[must_use]
    pub fn heard_by(self, listener: GaugeListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// The same source, recording its offers if they fit in this much memory.
    #[must_use]
    pub fn remembering_offers(self, bytes_max: usize) -> Self {
        let offers = Offers { messages: Some(Vec::new()), messages_max: bytes_max / size_of::<Portion>() };
        Self { offers: Some(offers), ..self }
    }

    /// The offers, message by message, if they were recorded and fit in memory.
    pub fn offers(&self) -> Option<&[Portion]> {
        self.offers.as_ref()?.messages.as_deref()
    }

    /// The variables of a path at each change, if they were recorded and the path exists. `rtt_base` and `rtt_smoothed` are the
    /// law's own if it has them, else the path's.
    pub fn rows(&self, path: usize) -> Option<&[GaugeRow]> {
        self.record.as_ref()?.rows(path)
    }

    /// The number of cumulatively acknowledged segments with content, over time, if recorded.
    pub fn acked(&self) -> Option<&[(SimTime, i64)]> {
        self.record.as_ref().map(|record| record.acked.entries())
    }

    /// The distribution of RTT samples, on all paths.
    pub fn rtts(&self) -> &Spans {
        &self.rtts
    }

    /// The limit on its paths.
    pub fn paths_max(&self) -> usize {
        self.ways.len().max(1)
    }

    /// New segments with content that were sent.
    pub fn departed(&self) -> u64 {
        self.departures.count
    }

    /// Sent segments with content that are cumulatively acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.departures.count - self.departures.waiting.len() as u64
    }

    /// The first path of the connection; `None` before the start.
    pub fn path(&self) -> Option<PathReport> {
        self.connection.as_ref()?.path(PathId::FIRST)
    }

    /// Each existing path, with its number.
    pub fn paths(&self) -> impl Iterator<Item = (usize, PathReport)> + '_ {
        let reports = self.connection.iter().flat_map(Connection::path_reports);
        reports.map(|(_, report)| (number(report.tuple.local), report))
    }

    /// Segments sent as several packets, as they were too long for the path.
    pub fn fragmented(&self) -> u64 {
        self.datagrams.fragmented()
    }

    /// The connection; `None` before the start.
    pub fn connection(&self) -> Option<&Connection<Virtual>> {
        self.connection.as_ref()
    }

    fn start(&mut self, now: SimTime) {
        if self.connection.is_none() {
            let connection =
                Connection::connect(engine_time(now), self.config.clone(), tuple(0), Secret::predictable(INITIAL));
            self.connection = Some(connection.expect("the configuration was checked when the source was made"));
        }
    }

    fn offer(&mut self, now: SimTime, offer: Offer) {
        // Requested streams that were not granted share the granted ones.
        let index = offer.stream as usize % self.lanes.len();
        if let (Some(offers), Some(bytes)) = (&mut self.offers, offer.bytes) {
            offers.add(Portion { time: now, stream: index, bits: 8 * bytes });
        }
        match offer.bytes {
            Some(bytes) => self.lanes[index].bytes += bytes,
            None => self.lanes[index].is_endless = true,
        }
        self.write(index);
    }

    /// Opens the granted streams, and sets up the other paths.
    fn open(&mut self, now: SimTime, granted: Option<u16>) {
        let Some(connection) = &mut self.connection else { return };
        for path in 1..self.ways.len() {
            // If several paths were not negotiated, there is one.
            let _ = connection.paths().add(engine_time(now), tuple(path));
        }
        for (path, &weight) in self.weights.iter().enumerate() {
            if let Some(id) = connection.paths().find(&tuple(path)) {
                connection.paths().set_weight(id, weight);
            }
        }
        let count = usize::from(granted.unwrap_or(1));
        if granted.is_some() {
            for _ in 0..count {
                connection.streams().open().expect("all granted streams are free at first");
            }
        }
        // Offers on streams that were not granted move to those that were.
        for index in count..self.lanes.len() {
            let lane = self.lanes[index];
            let shared = &mut self.lanes[index % count];
            shared.bytes += lane.bytes;
            shared.is_endless |= lane.is_endless;
        }
        self.lanes.truncate(count);
        self.is_open = true;
        (0..count).for_each(|index| self.write(index));
    }

    /// Writes the waiting data of a stream, as far as the send buffer has room.
    fn write(&mut self, index: usize) {
        let (true, Some(connection)) = (self.is_open, &mut self.connection) else { return };
        let (lane, sid) = (&mut self.lanes[index], sid(index));
        loop {
            let wanted = if lane.is_endless { u64::from(u32::MAX) } else { lane.bytes };
            let mut payload = Virtual(u32::try_from(wanted).unwrap_or(u32::MAX));
            if payload.0 == 0 {
                return;
            }
            let written = connection.streams().write(sid, &mut payload).unwrap_or(0);
            lane.bytes = lane.bytes.saturating_sub(u64::from(written));
            if written == 0 || payload.0 > 0 {
                return;
            }
        }
    }

    fn record(&mut self, now: SimTime) {
        if let (Some(listener), Some(connection)) = (&mut self.listener, &self.connection) {
            let paths = connection.path_reports();
            listener.hear_paths(now, paths.map(|(_, report)| (number(report.tuple.local), gauges(&report))));
        }
        let acknowledged = self.acknowledged();
        let (Some(record), Some(connection)) = (&mut self.record, &self.connection) else { return };
        for (_, report) in connection.path_reports() {
            if let Some(rows) = record.rows.get_mut(number(report.tuple.local)) {
                GaugeRow { time: now, gauges: gauges(&report) }.remember(rows);
            }
        }
        remember(&mut record.acked, now, acknowledged as i64);
    }
}

/// The variables of a path in the form of ns-2's.
fn gauges(path: &PathReport) -> Gauges {
    let span = |span: Option<Span>| span.map_or(SimSpan::ZERO, Span::rescale);
    let seconds = |name: &str| path.gauges.value(name).filter(|value| value.is_finite() && *value > 0.0);
    let law = |name: &str| seconds(name).map(SimSpan::from_secs_f64);
    Gauges {
        window: path.window,
        ssthresh: path.gauges.value("ssthresh").unwrap_or(f64::INFINITY),
        rtt: span(path.tally.rtt_latest),
        rtt_smoothed: law("rtt_average_s").unwrap_or(span(path.rtt_smoothed)),
        rtt_base: law("rtt_base_s").or(path.rtt_min.map(Span::rescale)),
        // In whole segments, as ns-2 counts.
        in_flight: path.flight as i32,
        reroutes: path.gauges.value("reroutes").unwrap_or(0.0) as u64,
    }
}

impl Host for EngineSource {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        let came_by = Way::came_by(&self.ways, &arrival).unwrap_or(0);
        if let (Some(segment), Some(connection)) = (self.datagrams.receive(arrival.body), &mut self.connection) {
            let before = connection.rtt_sum();
            let (now, at) = (engine_time(now), engine_time(arrival.at));
            connection.handle_late(now, at, tuple(came_by), arrival.ecn, segment);
            // An ACK gives at most one sample, on the path on which it arrived.
            self.rtts.add_growth(before.rescale(), connection.rtt_sum().rescale());
            self.departures.forget_until(connection.acked());
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(engine_time(now));
        }
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start => {
                self.start(now);
                if self.supply == Supply::Endless {
                    self.lanes.iter_mut().for_each(|lane| lane.is_endless = true);
                    (0..self.lanes.len()).for_each(|index| self.write(index));
                }
            }
            Input::Stop => self.lanes.iter_mut().for_each(|lane| *lane = Lane::default()),
            Input::Offer(offer) => {
                self.start(now);
                self.offer(now, offer);
            }
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if let Some(transmit) = self.datagrams.poll() {
            return Some(transmit);
        }
        loop {
            let connection = self.connection.as_mut()?;
            let offset = connection.sent();
            if let Some(transmit) = connection.poll_transmit(engine_time(now)) {
                if connection.sent() > offset && !matches!(transmit.segment.content, Content::Nothing) {
                    self.departures.add(offset, now);
                }
                let (ways, path) = (&self.ways, number(transmit.tuple.local));
                return Some(self.datagrams.send(transmit, |packet| Way::sent_by(ways, path, packet)));
            }
            let Some(event) = self.connection.as_mut()?.poll_event() else {
                self.record(now);
                return None;
            };
            match event {
                Event::Established { streams } => self.open(now, streams),
                Event::Writable(sid) => self.write(lane(sid)),
                Event::Readable(sid) => {
                    if let (Some(answers), Some(connection)) = (&mut self.answers, &mut self.connection) {
                        self.lanes[0].bytes += answers.read(sid, connection);
                        self.write(0);
                    }
                }
                // Only requests come back, and a source neither closes nor is stopped.
                Event::Finished(_)
                | Event::DatagramsReadable
                | Event::PathValidated(_)
                | Event::PathFailed(_)
                | Event::PathRestored(_)
                | Event::PathGone(_)
                | Event::Stopped { .. }
                | Event::Stalled
                | Event::PeerClosed
                | Event::Closed(_) => {}
            }
        }
    }

    fn poll_timeout(&self) -> SimTime {
        self.connection.as_ref().map_or(SimTime::NEVER, |connection| connection.poll_timeout().rescale())
    }

    fn account(&self) -> &dyn Account {
        self
    }
}

/// The stream of a lane. Streams are opened in order; the single stream of plain TCP is the first, too.
fn sid(index: usize) -> Sid {
    // There are at most 255.
    Sid::new(index as u16 + 1)
}

/// The lane of a stream.
fn lane(sid: Sid) -> usize {
    usize::from(sid.number()) - 1
}

/// Converts to the engine's time, in nanoseconds.
fn engine_time(now: SimTime) -> Time {
    now.rescale()
}

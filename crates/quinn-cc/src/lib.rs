//! The congestion laws of `anabranch-cc` for programs that use [quinn](https://docs.rs/quinn): a [`ControllerFactory`] for its `TransportConfig`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use anabranch_quinn_cc::LawConfig;
//!
//! let mut transport = quinn::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(LawConfig::default()));
//! // Any other law of the registry, with its settings:
//! let fast = LawConfig::named("fast", [("alpha", "30")])?;
//! transport.congestion_controller_factory(Arc::new(fast));
//! # Ok::<(), anabranch_quinn_cc::cc::registry::SettingError>(())
//! ```
//!
//! The unit of the window is the first MTU of the path, as for the transport of this project. quinn gets the law's window in bytes, rounded down, but at least
//! two datagrams of the present MTU ([rfc-9002] sec. 7.2): it sends only while a datagram more stays below the window, so with one it would stop for ever.
//!
//! # What is derived
//!
//! | a law needs | quinn tells | what the law gets |
//! | --- | --- | --- |
//! | the raw RTT | a smoothed one, which is an ACK old | the time between the departure of the newest acknowledged packet and its ACK. quinn does not say how long the peer held the ACK back: up to 25 ms (`max_ack_delay`) if fewer packets than the peer waits for arrived, so a law may see a queue at the tail of a message. The least RTT is not affected |
//! | window, flight, progress at a departure | the time of the departure, with the ACK | what was recorded then. All packets of one call of `sendmsg` have the record of the last. At most 256 records are kept; beyond it only each second, fourth … departure has one, and the one before counts |
//! | flight | sent bytes, and bytes in flight with each ACK | their sum. Packets with ACKs alone count as sent until the next ACK from the peer; probes of the MTU count from then on |
//! | rounds | sending times | a round ends with the ACK of what was sent after its begin |
//! | what limits the sender | whether the application does, at an ACK | a sender is limited by its window if quinn was blocked at any ACK of this round or the last one. Data counts as short supply from that ACK on, not from the moment when the application stopped |
//! | recovery | each batch of losses | one [`Loss`] for all losses of packets that left before the first was detected; recovery ends with the ACK of a packet sent later ([rfc-9002] sec. 7.3.2) |
//! | the first lost segment | the sending time of the last | the record of the last |
//! | the cause of a loss | lost bytes | [`classify()`] with one hole if no more than one datagram was lost, else with two: adjacent losses, which are one hole, count as congestion |
//! | a timeout | persistent congestion | a loss by timeout. A timeout that loses less is never told, so a law goes on from its window |
//! | idle time | nothing | a restart when something is sent after a retransmission timeout in which nothing was in flight. quinn has already released that first batch by the old window |
//! | marked segments | that there are some | all segments of the ACK that reported them, so that a law does not send more than with their number. If the law does not respond to marks, the mark is a loss by congestion: quinn declares every path ECN-capable |
//!
//! # What is missing
//!
//! * **Losses come after their ACK**, where the contract of [`Controller`] has them before: the law grows by that ACK before it shrinks, and
//!   [`Ack::newly_lost`] comes with the next one.
//! * **The pacing rate is not used**: quinn paces by 1.25 windows in a smoothed RTT, whatever the law says. `bbr`, `bbr1` and `copa` choose their window for a path that is
//!   paced by their rate; here it alone limits them, and they fill a longer queue. [`ControllerMetrics::pacing_rate`] shows the rate.
//! * **Spurious losses are not told**: quinn forgets a packet that it takes for lost. Where packets are reordered by more than three places and an eighth of an RTT, a window shrinks for nothing.
//! * **Retransmissions are not told from first transmissions**: all count as first. `emfast` then refills without counting what was repaired.
//! * **Nothing is spread over a recovery** (PRR): quinn sends nothing until the flight is below the window.
//! * **ECT(1) is not sent**, so `prague` gets classic marks.
//! * **There is one path**: coupled laws (`lia`, `olia`, `wvegas`, `mpfast`) behave as on a single path.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use anabranch_cc as cc;
use anabranch_cc::registry::{self, SettingError, Settings};
use anabranch_cc::{
    Account, Ack, Cause, Controller, Departure, Evidence, Gauges, Loss, PathView, Phase, Restart, Rounds, Sent, Signal,
    Transmission, classify,
};
use anabranch_units::{Bytes, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};

/// A law with its settings: makes a controller for each path of a connection.
#[derive(Clone, Debug)]
pub struct LawConfig {
    settings: Settings,
}

impl LawConfig {
    /// The law called `name`, with its default settings but for these pairs of key and value.
    ///
    /// # Errors
    /// If there is no such law or key, or a value is invalid; each error lists the valid ones.
    pub fn named<'a>(name: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SettingError> {
        Ok(Self { settings: Settings::parse(registry::find(name)?, pairs)? })
    }
}

impl Default for LawConfig {
    /// `anabranch` with its default settings.
    fn default() -> Self {
        Self::named("anabranch", []).expect("it is registered")
    }
}

impl From<Settings> for LawConfig {
    /// Any law, a caller's own included ([`cc::own`]).
    fn from(settings: Settings) -> Self {
        Self { settings }
    }
}

impl ControllerFactory for LawConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(LawController::new(&self.settings, now, current_mtu))
    }
}

/// A law that controls a path of quinn. `Connection::congestion_state` returns a copy, of which [`congestion::Controller::into_any`] makes this type.
#[derive(Debug)]
pub struct LawController {
    settings: Settings,
    /// A law need not be [`Sync`]. Events come by `&mut`, so they do not wait for this lock.
    law: Mutex<Box<dyn Controller>>,
    hears_first: bool,
    responds_to_marks: bool,
    /// The first window in bytes.
    window_initial: u64,
    path: Path,
}

impl LawController {
    fn new(settings: &Settings, now: Instant, mtu: u16) -> Self {
        let path = Path::new(now, mtu);
        let law = begun(settings, &path);
        let mut controller = Self {
            settings: settings.clone(),
            hears_first: law.hears_first(),
            responds_to_marks: law.ect().is_some(),
            window_initial: 0,
            path: Path { window: law.window(), ..path },
            law: Mutex::new(law),
        };
        controller.window_initial = controller.path.window_bytes();
        controller
    }

    /// The settings of the law.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The internal variables of the law.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        self.law.lock().unwrap_or_else(PoisonError::into_inner).gauges(&mut gauges);
        gauges
    }

    /// Passes an event to the law, which may move its window.
    fn tell(&mut self, what: impl FnOnce(&mut dyn Controller, &PathView)) {
        let view = self.path.view();
        let law = self.law.get_mut().unwrap_or_else(PoisonError::into_inner);
        what(&mut **law, &view);
        self.path.window = law.window();
    }

    /// A packet of `bytes` bytes, which left at `sent`, is acknowledged.
    fn acked(&mut self, sent: Instant, bytes: u64) {
        let left = self.path.time(sent);
        let acked = self.path.acked.get_or_insert(Acked { bytes: 0, newest: left, size: bytes });
        acked.bytes = acked.bytes.saturating_add(bytes);
        if left >= acked.newest {
            (acked.newest, acked.size) = (left, bytes);
        }
    }

    fn report_ack(&mut self, acked: &Acked, app_limited: bool) {
        let path = &mut self.path;
        let Record { serial, departure } = path.record_of(acked.newest);
        let rtt = path.now.since(departure.time);
        path.rtt.on_sample(rtt);
        let newly_acked = path.segments(acked.bytes);
        path.acked_latest = newly_acked;
        path.account.on_delivered(newly_acked, path.now, departure.time);
        if app_limited {
            path.account.on_short(path.segments(path.flight));
        } else {
            path.rounds.on_window_full();
        }
        let ack = Ack {
            newly_acked,
            newly_lost: mem::take(&mut path.untold_lost),
            newly_marked: mem::take(&mut path.untold_marked),
            rtt: Some(rtt),
            size: Bytes::new(acked.size),
            arrival: path.now,
            departure,
            limit: path.rounds.limit(),
            phase: path.episode.phase(),
        };
        self.tell(|law, view| law.on_ack(view, &ack));
        if self.path.is_later(&departure) {
            self.end_episode();
        }
        let Path { now, sent, .. } = self.path;
        if let Some(round) = self.path.rounds.on_ack(now, newly_acked, Some(rtt), serial, sent) {
            self.tell(|law, view| law.on_round(view, &round));
        }
        self.path.forget(departure.time);
    }

    /// `bytes` bytes are lost; `departure` is the record of the last of them.
    fn lose(&mut self, departure: Departure, bytes: u64) {
        let is_later = self.path.is_later(&departure);
        match self.path.episode {
            Episode::Recovery { bytes: before, is_spared } if !is_later => {
                let bytes = before.saturating_add(bytes);
                let cause = self.path.cause(bytes);
                let is_still = is_spared && cause == Cause::Random;
                self.path.episode = Episode::Recovery { bytes, is_spared: is_still };
                if is_spared && !is_still {
                    self.report_loss(Signal::DupAcks, cause, bytes, departure);
                }
            }
            // The law has responded to it.
            Episode::Open | Episode::AfterTimeout if !is_later => {}
            Episode::Open | Episode::Recovery { .. } | Episode::AfterTimeout => {
                self.begin_recovery(departure, bytes, self.path.cause(bytes));
            }
        }
    }

    fn begin_recovery(&mut self, departure: Departure, bytes: u64, cause: Cause) {
        self.end_episode();
        let before = self.path.window;
        self.report_loss(Signal::DupAcks, cause, bytes, departure);
        let is_spared = cause == Cause::Random && self.path.window >= before;
        self.path.episode = Episode::Recovery { bytes, is_spared };
        self.path.began = Some(self.path.now);
    }

    /// All packets of some time are lost, `bytes` bytes; `departure` is the record of the last of them.
    fn lose_all(&mut self, departure: Departure, bytes: u64) {
        if self.path.episode == Episode::AfterTimeout {
            if !self.path.is_later(&departure) {
                return;
            }
            self.end_episode();
        }
        // It ends a recovery, too.
        self.report_loss(Signal::Timeout, Cause::Congestion, bytes, departure);
        self.path.episode = Episode::AfterTimeout;
        self.path.began = Some(self.path.now);
    }

    /// Packets were marked; `departure` is the record of the newest that the ACK acknowledged.
    fn mark(&mut self, departure: Departure) {
        let path = &mut self.path;
        path.untold_marked += path.acked_latest;
        if path.episode != Episode::Open || path.marked_at.is_some_and(|at| departure.time <= at) {
            return;
        }
        path.marked_at = Some(path.now);
        if self.responds_to_marks {
            self.report_loss(Signal::Ecn, Cause::Congestion, 0, departure);
        } else {
            path.count_lost(path.acked_latest);
            let bytes = path.acked_latest * path.mss as f64;
            self.begin_recovery(departure, bytes as u64, Cause::Congestion);
        }
    }

    fn report_loss(&mut self, signal: Signal, cause: Cause, bytes: u64, departure: Departure) {
        let lost = self.path.segments(bytes);
        self.tell(|law, view| law.on_loss(view, &Loss { signal, cause, lost, departure }));
    }

    fn end_episode(&mut self) {
        match mem::take(&mut self.path.episode) {
            Episode::Open => {}
            Episode::Recovery { .. } => self.tell(|law, view| law.on_recovered(view)),
            Episode::AfterTimeout => self.tell(|law, view| law.on_restart(view, Restart::AfterTimeout)),
        }
    }
}

impl congestion::Controller for LawController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.path.advance(now);
        if self.path.is_idle() {
            // What has been sent since were ACKs alone.
            (self.path.flight, self.path.quiet_since) = (0, self.path.now);
            self.tell(|law, view| law.on_restart(view, Restart::Idle));
        }
        self.path.record(bytes);
        if self.hears_first {
            let sent = Sent { segments: self.path.segments(bytes), transmission: Transmission::First };
            self.tell(|law, view| law.on_sent(view, &sent));
        }
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.acked(sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let path = &mut self.path;
        path.advance(now);
        (path.flight, path.is_empty, path.quiet_since) = (in_flight, in_flight == 0, path.now);
        if let Some(acked) = path.acked.take() {
            self.report_ack(&acked, app_limited);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let path = &mut self.path;
        path.advance(now);
        let Record { departure, .. } = path.record_of(path.time(sent));
        if lost_bytes == 0 {
            return self.mark(departure);
        }
        path.flight = path.flight.saturating_sub(lost_bytes);
        path.count_lost(path.segments(lost_bytes));
        if is_persistent_congestion {
            self.lose_all(departure, lost_bytes);
        } else {
            self.lose(departure, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.path.mtu = new_mtu.max(1).into();
    }

    fn window(&self) -> u64 {
        self.path.window_bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let law = self.law.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = law.pacing_rate().map(anabranch_units::Rate::bits_per_second);
        metrics
    }

    /// A law of the caller's own that cannot be copied begins anew, with what is known of the path.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        let copy = self.law.lock().unwrap_or_else(PoisonError::into_inner).copy();
        let law = copy.unwrap_or_else(|| begun(&self.settings, &self.path));
        Box::new(Self {
            settings: self.settings.clone(),
            path: Path { window: law.window(), ..self.path.clone() },
            law: Mutex::new(law),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.window_initial
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A law for a path that has just been established.
fn begun(settings: &Settings, path: &Path) -> Box<dyn Controller> {
    let mut law = settings.row().build(settings);
    law.on_restart(&path.view(), Restart::Established);
    law
}

/// What the events of a path have shown of it.
#[derive(Clone, Debug)]
struct Path {
    /// Zero of this path's clock.
    epoch: Instant,
    /// The latest event.
    now: Time,
    /// Bytes of a full segment, the unit of the window: the first MTU. Not zero.
    mss: u64,
    /// The present MTU. Not zero.
    mtu: u64,
    /// The law's window in segments.
    window: f64,
    /// Bytes in flight.
    flight: u64,
    /// Whether nothing was in flight after the latest ACK.
    is_empty: bool,
    /// When that ACK arrived, or when idle time ended since.
    quiet_since: Time,
    rtt: Rtt,
    account: Account,
    rounds: Rounds,
    episode: Episode,
    /// When the latest episode began: packets that left by then belong to it.
    began: Option<Time>,
    /// When the law last heard of marks: those of packets that left by then are no news.
    marked_at: Option<Time>,
    /// Segments that the latest ACK acknowledged.
    acked_latest: f64,
    /// Segments lost and marked of which the law hears with the next ACK.
    untold_lost: f64,
    untold_marked: f64,
    /// Departures so far.
    sent: u64,
    /// Departures by time; at most [`RECORDS_MAX`].
    records: VecDeque<Record>,
    /// The numbers of departures that have a record are multiples of it, as long as there are many.
    stride: u64,
    /// The ACK that is being told.
    acked: Option<Acked>,
}

/// A departure of one or more packets, numbered.
#[derive(Clone, Copy, Debug)]
struct Record {
    serial: u64,
    departure: Departure,
}

/// The packets that one ACK acknowledges.
#[derive(Clone, Copy, Debug)]
struct Acked {
    bytes: u64,
    /// When the newest left, and its bytes.
    newest: Time,
    size: u64,
}

/// The recovery from losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Episode {
    #[default]
    Open,
    /// So many bytes are lost. `is_spared`: they seem to be lost at random, and the law left its window alone.
    Recovery {
        bytes: u64,
        is_spared: bool,
    },
    AfterTimeout,
}

impl Episode {
    fn phase(self) -> Phase {
        match self {
            Self::Recovery { .. } => Phase::Recovery,
            Self::Open | Self::AfterTimeout => Phase::Open,
        }
    }
}

impl Path {
    fn new(epoch: Instant, mtu: u16) -> Self {
        let mtu = mtu.max(1).into();
        Self {
            epoch,
            now: Time::ZERO,
            mss: mtu,
            mtu,
            window: anabranch_cc::WINDOW_MIN,
            flight: 0,
            is_empty: true,
            quiet_since: Time::ZERO,
            rtt: Rtt::default(),
            account: Account::default(),
            rounds: Rounds::new(Time::ZERO),
            episode: Episode::Open,
            began: None,
            marked_at: None,
            acked_latest: 0.0,
            untold_lost: 0.0,
            untold_marked: 0.0,
            sent: 0,
            records: VecDeque::new(),
            stride: 1,
            acked: None,
        }
    }

    fn view(&self) -> PathView {
        PathView {
            now: self.now,
            flight: self.segments(self.flight),
            mss: Bytes::new(self.mss),
            rtt_smoothed: self.rtt.smoothed,
            rtt_min: self.rtt.least,
            progress: self.account.progress(),
        }
    }

    /// A moment on this path's clock.
    fn time(&self, at: Instant) -> Time {
        Time::ZERO.saturating_add(span(at.saturating_duration_since(self.epoch)))
    }

    /// An event at `now`; a law's clock never runs backwards.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(self.time(now));
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss as f64
    }

    /// The law's window; at least what quinn needs to send anything.
    fn window_bytes(&self) -> u64 {
        let bytes = (self.window * self.mss as f64) as u64;
        bytes.max(self.mtu * DATAGRAMS_MIN)
    }

    /// Whether nothing was in flight for longer than a retransmission timeout ([rfc-5681] sec. 4.1).
    fn is_idle(&self) -> bool {
        self.is_empty && self.now.since(self.quiet_since) > self.rtt.timeout()
    }

    /// Whether a packet left after the latest episode had begun.
    fn is_later(&self, departure: &Departure) -> bool {
        self.began.is_none_or(|began| departure.time > began)
    }

    /// `bytes` bytes leave.
    fn record(&mut self, bytes: u64) {
        if self.flight == 0 {
            self.account.on_first(self.now);
        }
        self.flight = self.flight.saturating_add(bytes);
        let departure = Departure {
            time: self.now,
            window: self.window,
            flight: self.segments(self.flight),
            progress: self.account.progress(),
            supply: self.account.supply(),
        };
        let serial = self.sent;
        self.sent += 1;
        match self.records.back_mut() {
            Some(last) if last.departure.time == self.now => last.departure = departure,
            Some(_) if !serial.is_multiple_of(self.stride) => {}
            Some(_) | None => {
                if self.records.len() >= RECORDS_MAX {
                    self.stride = self.stride.saturating_mul(2);
                    let stride = self.stride;
                    self.records.retain(|record| record.serial.is_multiple_of(stride));
                }
                self.records.push_back(Record { serial, departure });
            }
        }
    }

    /// The record of what left at `time`, or of what left last before.
    fn record_of(&self, time: Time) -> Record {
        let time = time.min(self.now);
        let after = self.records.partition_point(|record| record.departure.time <= time);
        let found = self.records.get(after.saturating_sub(1)).copied();
        let unknown = || Departure {
            time,
            window: self.window,
            flight: self.segments(self.flight),
            progress: self.account.progress(),
            supply: self.account.supply(),
        };
        let Record { serial, departure } = found.unwrap_or_else(|| Record { serial: 0, departure: unknown() });
        Record { serial, departure: Departure { time, ..departure } }
    }

    /// What left a round trip before `newest` is acknowledged or lost.
    fn forget(&mut self, newest: Time) {
        let rtt = self.rtt.smoothed.unwrap_or_default();
        while self.records.get(1).is_some_and(|next| next.departure.time.saturating_add(rtt) < newest) {
            self.records.pop_front();
        }
        while self.stride > 1 && self.records.len() < RECORDS_MAX / 4 {
            self.stride /= 2;
        }
    }

    fn count_lost(&mut self, segments: f64) {
        self.account.on_lost(segments);
        self.untold_lost += segments;
    }

    /// The cause of a loss of `bytes` bytes.
    fn cause(&self, bytes: u64) -> Cause {
        classify(&Evidence {
            holes: if bytes <= self.mtu { 1 } else { 2 },
            rtt_latest: self.rtt.latest.map(|latest| latest.saturating_sub(CLASSIFIER_GRANULARITY)),
            rtt_smoothed: self.rtt.smoothed,
        })
    }
}

/// The estimates of [rfc-6298] sec. 2, from raw samples.
#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    latest: Option<Span>,
    smoothed: Option<Span>,
    variation: Span,
    least: Option<Span>,
}

impl Rtt {
    fn on_sample(&mut self, sample: Span) {
        self.latest = Some(sample);
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        (self.smoothed, self.variation) = match self.smoothed {
            None => (Some(sample), sample / 2),
            Some(smoothed) => {
                let deviation = smoothed.saturating_sub(sample).max(sample.saturating_sub(smoothed));
                let variation = self.variation.saturating_mul(3).saturating_add(deviation) / 4;
                (Some(smoothed.saturating_mul(7).saturating_add(sample) / 8), variation)
            }
        };
    }

    /// The retransmission timeout, with the margin of the engine of this project.
    fn timeout(&self) -> Span {
        let margin = self.variation.saturating_mul(4).max(TIMEOUT_MARGIN);
        self.smoothed.map_or(TIMEOUT_INITIAL, |smoothed| smoothed.saturating_add(margin))
    }
}

fn span(duration: Duration) -> Span {
    Span::from_ticks(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// [rfc-9002] sec. 7.2: the least window in datagrams.
const DATAGRAMS_MIN: u64 = 2;

/// Records that are kept: 18 kB. With more departures in flight a record is that of a departure at most 1/128 of them before, as the stride is no more than
/// needed.
const RECORDS_MAX: usize = 256;

/// The classifier ignores an increase of the RTT up to this, as that of the engine does: what a host may take to read an ACK.
const CLASSIFIER_GRANULARITY: Span = Span::from_millis(1);

/// [rfc-6298] sec. 2.1, before there is a sample.
const TIMEOUT_INITIAL: Span = Span::from_secs(1);

/// The least variance term, as common systems have it.
const TIMEOUT_MARGIN: Span = Span::from_millis(200);

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[cfg(test)]
mod tests;

//! Control of one path: combines its estimators, loss detection and controller. This is the separate estimation component of
//! [multihoming-2010] sec. III.A, independent of other paths. It reads its own lane of the scoreboard, in which an ACK on another
//! path gives neither an RTT sample nor room.
//!
//! Order within one ACK: RTT estimate, undo of spurious losses (`undo`), loss detection, classification, `on_loss`, `on_ack`,
//! `on_round`.
//!
//! Differs from rfc-8985 in: after a timeout, segments sent more than an SRTT ago count as lost (sec. 6.3 uses RACK's RTT and
//! window).

mod black_hole;
mod dup_acks;
mod losses;
mod sending;
mod silence;
mod timers;
pub(crate) mod undo;

use anabranch_cc::{Account, Ack, Cause, Controller, Gauges, PathSummary, PathView, Restart, Rounds, Signal};
use anabranch_units::{Bytes, Span, Time};

use self::black_hole::Blame;
use self::dup_acks::Duplicates;
use self::silence::Silence;
use self::timers::{Probe, Timer, Timers};
use self::undo::Suspicion;
use crate::ecn::{EcnReport, PathEcn};
use crate::path::PathId;
use crate::recovery::delivery_rate::DeliveryRate;
use crate::recovery::detection::Detection;
use crate::recovery::episode::Episode;
use crate::recovery::law::Law;
use crate::recovery::pacer::Release;
use crate::recovery::rack::Rack;
use crate::recovery::rtt::{RttEstimator, TICK};
use crate::recovery::scoreboard::{AckContext, Confirmed, NewlyAcked, Scoreboard};
use crate::recovery::timing::Timing;
use crate::seq::Offset;

/// The sending control of one path.
#[derive(Debug)]
pub(crate) struct PathControl {
    id: PathId,
    law: Law,
    /// The controller's full segment in bytes of sequence space.
    mss: u64,
    rtt: RttEstimator,
    detection: Detection,
    rack: Rack,
    duplicates: Duplicates,
    rounds: Rounds,
    delivery_rate: DeliveryRate,
    account: Account,
    release: Release,
    episode: Episode,
    /// Bytes acknowledged by the ACK that is being processed.
    arriving: u64,
    timers: Timers,
    silence: Silence,
    /// The latest loss, as long as it may prove spurious.
    suspicion: Option<Suspicion>,
    /// Whether the ECN codepoint is the cause of the latest loss.
    blame: Blame,
    /// When the last segment was sent.
    sent_last: Time,
    /// Whether one lost segment may be sent despite a full window: [rfc-6675] sec. 5 (4.3). Outlives an episode that ends before a
    /// retransmission: then a segment that another path lost may use it.
    is_urgent: bool,
    /// Whether nothing was acknowledged since a timeout. Another timeout then begins no new episode ([rfc-5681] sec. 3.1). May outlive
    /// the episode: that of an abandoned path ends as soon as nothing is in flight on it.
    is_silent: bool,
    /// The ACK delay that the peer may use.
    ack_delay: Span,
    growth: Growth,
    pub(crate) ecn: PathEcn,
    responses: Responses,
    /// Whether the losses may be due to a smaller path MTU.
    is_doubtful: bool,
    /// Bytes in flight as counted here; the scoreboard counts them, too.
    flight: u64,
    untold: Untold,
    pub(crate) tally: Tally,
}

/// How the window grew in the last round.
#[derive(Debug)]
struct Growth {
    /// The window at its end.
    window: f64,
    is_fast: bool,
}

/// When the sender last responded to signals besides losses. Signals of segments sent before are not new.
#[derive(Debug, Default)]
struct Responses {
    /// To a mark.
    mark: Option<Time>,
    /// To the loss of a copy whose segment was delivered.
    copy: Option<Time>,
}

/// What the controller learns with the next ACK.
#[derive(Debug, Default)]
struct Untold {
    /// Lost bytes.
    lost: u64,
    /// Marked segments.
    marked: u64,
}

/// Counters of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions, and probes with old data.
    pub sent_again: u64,
    /// Segments detected as lost.
    pub lost: u64,
    /// Lost segments that a timeout or the removal of the path declared lost.
    pub lost_by_timeout: u64,
    /// Acknowledgements that reported ECN marks.
    pub marked: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u64,
    /// Loss episodes classified as random at their start, without a window reduction.
    pub random: u64,
    /// Duplicate arrivals reported by the peer.
    pub duplicates: u64,
    /// Loss episodes that proved spurious and were undone.
    pub undone: u64,
    /// Sequence space delivered, in bytes.
    pub delivered: u64,
    /// The number of RTT samples.
    pub rtt_samples: u64,
    /// The sum of all RTT samples.
    pub rtt_sum: Span,
    /// The latest RTT sample.
    pub rtt_latest: Option<Span>,
}

/// The path on which an ACK arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// On this path. The receiver delayed the ACK by `delay`, it arrived `late` ago, and it reports these ECN counts.
    Own { delay: Span, late: Span, ecn: EcnReport },
    /// On another path; it acknowledges segments sent on this one.
    Other,
}

impl PathControl {
    pub(crate) fn new(now: Time, id: PathId, controller: Box<dyn Controller>, mss: u64, timing: Timing) -> Self {
        Self {
            id,
            law: Law::new(controller),
            mss,
            rtt: RttEstimator::new(timing.rto_min),
            detection: Detection::Rack,
            rack: Rack::new(),
            duplicates: Duplicates::new(),
            rounds: Rounds::new(now),
            delivery_rate: DeliveryRate::default(),
            account: Account::default(),
            release: Release::new(timing.pacing, timing.timer),
            episode: Episode::Open,
            arriving: 0,
            timers: Timers::new(now),
            silence: Silence::new(now),
            suspicion: None,
            blame: Blame::default(),
            sent_last: now,
            is_urgent: false,
            is_silent: false,
            ack_delay: Span::ZERO,
            growth: Growth { window: 0.0, is_fast: true },
            ecn: PathEcn::default(),
            responses: Responses::default(),
            is_doubtful: false,
            flight: 0,
            untold: Untold::default(),
            tally: Tally::default(),
        }
    }

    /// Switches ECN on or off. The law chooses the codepoint; ECN stays off if the law does not respond to marks.
    pub(crate) fn set_ecn(&mut self, is_on: bool) {
        let ect = self.law.ect();
        self.ecn = PathEcn::new(is_on && ect.is_some(), ect.unwrap_or_default());
    }

    /// The handshake is over; `sample` is its RTT, if nothing was retransmitted.
    pub(crate) fn establish(&mut self, now: Time, mss: u64, sample: Option<Span>) {
        (self.mss, self.sent_last) = (mss, now);
        self.rounds = Rounds::new(now);
        if let Some(sample) = sample {
            self.rtt.on_handshake(sample);
        }
        let view = self.view(now);
        self.law.tell(|law| law.on_restart(&view, Restart::Established));
    }

    /// The controller's view of the path.
    fn view(&self, now: Time) -> PathView {
        PathView {
            now,
            flight: self.segments(self.flight),
            mss: Bytes::new(self.mss),
            rtt_smoothed: self.rtt.smoothed(),
            rtt_min: self.rtt.least(),
            progress: self.account.progress(),
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        segments(bytes, self.mss)
    }

    /// The context for reading acknowledgements.
    pub(crate) fn ack_context(&self, now: Time) -> AckContext {
        AckContext { now, via: self.id, rtt_min: self.rtt.shortest(), echo: None, is_answer: false }
    }

    /// Sets whether other paths exist that would take over.
    pub(crate) fn set_others<T>(&mut self, would_take_over: bool, board: &Scoreboard<T>) {
        if !self.silence.is_measured {
            self.silence.is_measured = true;
            self.look_back(board);
        }
        self.silence.has_others = would_take_over;
    }

    fn look_back<T>(&mut self, board: &Scoreboard<T>) {
        self.silence.oldest = board.oldest_departed(self.id).unwrap_or(self.silence.heard);
    }

    /// The path is abandoned, for a while or for good: its data in flight may be sent on any other path. The controller sees a
    /// timeout.
    pub(crate) fn abandon<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        board.release_held(self.id, u64::MAX);
        board.release_copies(self.id, u64::MAX);
        let newly_acked = board.take_newly_acked(self.id);
        self.flight -= newly_acked.bytes_from_flight;
        self.tally.delivered += newly_acked.bytes;
        let found = board.orphan(self.id);
        self.on_lost(board, &found);
        self.tally.lost_by_timeout += found.count as u64;
        self.timers.probe = Probe::None;
        if let Some(departure) = found.departure.filter(|_| !self.is_silent) {
            self.report_loss(now, board, Signal::Timeout, Cause::Congestion, departure);
        }
        (self.is_silent, self.is_urgent) = (true, false);
        self.suspicion = None;
        self.episode = Episode::AfterTimeout { until: board.next() };
        self.timers.running = Timer::Idle;
    }

    /// The path has answered and is in use again; `sample` is the RTT of the answer, if known.
    pub(crate) fn revive(&mut self, now: Time, sample: Option<Span>) {
        (self.sent_last, self.timers.started, self.silence.heard) = (now, now, now);
        if let Some(sample) = sample {
            self.rtt.on_answer(sample);
        }
    }

    /// The summary of the path for coupled laws.
    pub(crate) fn summary(&self, own: PathId) -> PathSummary {
        PathSummary {
            path: self.id.index() as u32,
            own: self.id == own,
            window: self.law.window(),
            flight: self.segments(self.flight),
            rtt_smoothed: self.rtt.smoothed(),
            rtt_min: self.rtt.least(),
            delivered: self.segments(self.tally.delivered),
            lost: self.tally.lost as f64,
        }
    }

    /// The summaries of all paths, at the end of a round of this one.
    pub(crate) fn on_group(&mut self, now: Time, group: &[PathSummary]) {
        let view = self.view(now);
        self.law.tell(|law| law.on_group(&view, group));
    }

    /// The peer reported `left..right` as a duplicate.
    pub(crate) fn on_duplicate<T>(&mut self, now: Time, board: &mut Scoreboard<T>, right: Offset) {
        self.tally.duplicates += 1;
        self.silence.heard = now;
        match board.confirm_copy(self.id, right) {
            // Its original, or a probe that repaired it: the other path may have been first.
            Some(Confirmed::Here) => return,
            Some(Confirmed::There) => {}
            None => self.rack.on_duplicate(board.departures(self.id)),
        }
        if self.timers.on_duplicate(right) {
            self.arm(now, board);
        }
    }

    /// Whether an ACK without news changes nothing: no segment is in flight, in recovery, or possibly spurious. This is so at an
    /// end that only receives.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.flight == 0
            && self.timers.running == Timer::Idle
            && self.timers.probe == Probe::None
            && self.episode.is_open()
            && self.suspicion.is_none()
    }

    /// An ACK was recorded on the scoreboard. Returns whether a round ended with it.
    pub(crate) fn on_ack<T>(&mut self, now: Time, board: &mut Scoreboard<T>, via: Via) -> bool {
        let has_counts = matches!(via, Via::Own { ecn: EcnReport::Counts(Some(_)), .. });
        self.on_report(now, board, has_counts, || via)
    }

    /// As [`Self::on_ack`], for an ACK with or without ECN counts. The rest of `via` is computed only if needed.
    pub(crate) fn on_report<T>(
        &mut self,
        now: Time,
        board: &mut Scoreboard<T>,
        has_counts: bool,
        via: impl FnOnce() -> Via,
    ) -> bool {
        let is_open =
            self.episode.is_open() && self.suspicion.is_none() && !matches!(self.timers.probe, Probe::Out { .. });
        let has_news = board.has_newly_acked(self.id) || has_counts;
        if is_open && !has_news {
            // It acknowledges nothing sent on this path, as is usual at an end that receives. Only time may have revealed a loss.
            self.look(now, board);
            return false;
        }
        let via = via();
        let newly_acked = board.take_newly_acked(self.id);
        self.flight -= newly_acked.bytes_from_flight;
        let sample = match via {
            Via::Own { delay, late, .. } => self.estimate(now - late, delay, &newly_acked),
            Via::Other => None,
        };
        self.ecn.on_acked(now, newly_acked.segments);
        let (arrival, marked) = match via {
            Via::Own { late, ecn, .. } => (now - late, self.ecn.on_report(ecn)),
            Via::Other => (now, 0),
        };
        self.untold.marked += marked;
        let acked = self.segments(newly_acked.bytes);
        if let Some(newest) = &newly_acked.newest {
            self.account.on_delivered(acked, arrival, newest.departure.time);
        }
        if self.suspicion.is_some() {
            self.reconsider(now, board, &newly_acked);
        }
        if let Some(newest) = newly_acked.newest_certain {
            match via {
                Via::Own { .. } => self.rack.on_delivered(now, newest),
                Via::Other => self.rack.on_delivered_elsewhere(newest),
            }
        }
        if newly_acked.is_reordered {
            self.rack.on_reordering();
        }
        let (mut path_una, mut spared) = (None, None);
        if !is_open || board.keeps_holes(self.id) || !self.has_lost_nothing(board) {
            let una = board.path_una(self.id);
            (path_una, spared) = (Some(una), self.look_for_losses(now, board, &newly_acked, una));
        }
        if marked > 0 {
            self.on_mark(now, newly_acked.newest.map(|newest| newest.departure));
        }
        let departures = board.departures(self.id);
        if let Some(newest) = newly_acked.newest {
            self.tally.delivered += newly_acked.bytes;
            self.is_silent = false;
            self.timers.started = now;
            if via != Via::Other {
                self.silence.heard = now;
            }
            let (limit, Untold { lost, marked }) = (self.rounds.limit(), std::mem::take(&mut self.untold));
            let ack = Ack {
                newly_acked: acked,
                newly_lost: self.segments(lost),
                newly_marked: marked as f64,
                rtt: sample,
                size: Bytes::new(newest.len.into()),
                arrival,
                departure: newest.departure,
                limit,
                phase: self.episode.phase(),
            };
            let view = self.view(now);
            self.law.tell(|law| law.on_ack(&view, &ack));
        }
        if path_una.is_some_and(|una| self.episode.is_over(una)) {
            self.end_episode(now);
        }
        let mut is_round_over = false;
        if let Some(newest) = newly_acked.newest
            && let Some(round) = self.rounds.on_ack(now, acked, sample, newest.serial, departures)
        {
            self.delivery_rate.on_round(round.acked * self.mss as f64, round.elapsed);
            let view = self.view(now);
            self.law.tell(|law| law.on_round(&view, &round));
            let window = self.law.window();
            self.growth = Growth { window, is_fast: window > GROWING * self.growth.window };
            is_round_over = true;
        }
        match spared {
            Some(time) => self.timers.running = Timer::Reordering(time),
            None => self.arm(now, board),
        }
        is_round_over
    }

    /// The retransmission timeout, for the connection's timers.
    pub(crate) fn rto(&self) -> Span {
        self.rtt.timeout()
    }

    /// Whether the window grows fast, so that estimates of the path are outdated a round trip later.
    pub(crate) fn is_growing(&self) -> bool {
        self.growth.is_fast
    }

    /// Sets how long the peer may delay acknowledgements.
    pub(crate) fn set_ack_delay(&mut self, delay: Span) {
        self.ack_delay = delay;
    }

    pub(crate) fn window(&self) -> f64 {
        self.law.window()
    }

    pub(crate) fn gauges(&self, gauges: &mut Gauges) {
        self.law.gauges(gauges);
    }

    pub(crate) fn rtt_smoothed(&self) -> Option<Span> {
        self.rtt.smoothed()
    }

    /// The latest RTT sample, or the smoothed RTT if that is larger: a queue that grows fast is in the first only.
    pub(crate) fn rtt_now(&self) -> Option<Span> {
        self.rtt_smoothed().max(self.tally.rtt_latest)
    }

    /// The best delivery rate in bytes per second.
    pub(crate) fn delivery_rate(&self) -> Option<f64> {
        self.delivery_rate.best()
    }

    /// The latest RTT sample, or what is known before the first one.
    pub(crate) fn rtt_latest(&self) -> Option<Span> {
        self.tally.rtt_latest.or(self.rtt.shortest())
    }

    pub(crate) fn rtt_min(&self) -> Option<Span> {
        self.rtt.least()
    }

    /// The raw RTT sample of an ACK, if Karn's rule allows one, minus the receiver's ACK delay. As in [rfc-9002] sec. 5.3, the
    /// delay never reduces a sample below the minimum RTT.
    // Inlined with what else handles an ACK, it takes 1.3 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    fn estimate(&mut self, now: Time, delay: Span, newly_acked: &NewlyAcked) -> Option<Span> {
        let newest = newly_acked.newest?;
        if newest.transmissions > 1 {
            // [rfc-7323] sec. 4: the echo identifies the transmission, but only to the millisecond.
            if let Some(echo) = newly_acked.echo {
                self.rtt.on_echo(now.since(echo).saturating_add(TICK));
            }
            // The retransmission was acknowledged.
            if newly_acked.newest_certain.is_some_and(|certain| certain.serial == newest.serial) {
                self.rtt.on_progress();
            }
            return None;
        }
        let raw = now.since(newest.departure.time);
        let sample = match self.rtt.least() {
            Some(least) if delay > Span::ZERO => raw.saturating_sub(delay).max(least).min(raw),
            Some(_) | None => raw,
        };
        self.rtt.on_sample(sample);
        self.tally.rtt_samples += 1;
        self.tally.rtt_sum = self.tally.rtt_sum.saturating_add(sample);
        self.tally.rtt_latest = Some(sample);
        Some(sample)
    }

    /// Checks that both counts of the bytes in flight agree.
    pub(crate) fn check<T>(&self, board: &Scoreboard<T>) {
        debug_assert_eq!(self.flight, board.flight(self.id), "the controller hears of what the scoreboard counts");
    }
}

/// In slow start a window doubles per round. Growth by one segment exceeds a tenth only below ten segments.
const GROWING: f64 = 1.1;

/// Bytes as full segments. Converting signed numbers is faster, and 2^63 bytes are never in flight. Often there are none: nothing is lost, or in flight at
/// a receiver. Then there is no division to wait for.
// Inlined with what else handles an ACK, it takes 1.3 % fewer instructions of the engine with an ACK for 32.
#[inline]
fn segments(bytes: u64, mss: u64) -> f64 {
    if bytes == 0 {
        return 0.0;
    }
    bytes.cast_signed() as f64 / mss.cast_signed() as f64
}

#[cfg(test)]
mod tests;

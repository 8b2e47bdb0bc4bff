//! Sending on a path: room in the window, release by the pacer, and the record of what was sent.
//!
//! Citation: rfc-5681 sec. 4.1, rfc-6298 sec. 5.1, rfc-7661 sec. 4.2, rfc-8985 sec. 7.

use anabranch_cc::{Departure, Restart, Sent, Transmission};
use anabranch_units::{Bytes, Rate, Span, Time};

use super::black_hole::Blame;
use super::timers::{Probe, Timer};
use super::{PathControl, segments};
use crate::recovery::pacer::{Pacing, of_window};
use crate::recovery::scoreboard::Scoreboard;
use crate::seq::Offset;

impl PathControl {
    /// Whether `len` more bytes may be in flight. If not, records that the window is the limit.
    pub(crate) fn admit<T>(&mut self, board: &Scoreboard<T>, len: u64) -> bool {
        self.check(board);
        let is_admitted = self.has_room(len);
        if !is_admitted {
            self.rounds.on_window_full();
        }
        is_admitted
    }

    /// As [`Self::admit`], without a side effect.
    // Inlined with what else a segment and its ACK need, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline(always)]
    pub(crate) fn has_room(&self, len: u64) -> bool {
        let flight = self.flight - self.presumed();
        if flight == 0 {
            return true;
        }
        match self.episode.prr() {
            Some(prr) => prr.has_room(len),
            None => self.segments(flight + len) <= self.law.window(),
        }
    }

    /// About how long until [`Self::has_room`]: as long as the acknowledgements of what is too much take, at a window a round trip.
    pub(crate) fn wait_for_room(&self, len: u64) -> Span {
        let window = self.law.window();
        let more = (self.segments(self.flight - self.presumed() + len) - window).max(0.0);
        self.rtt
            .smoothed()
            .map_or(Span::ZERO, |rtt| Span::from_ticks((rtt.ticks() as f64 * more / window.max(1.0)) as u64))
    }

    /// Whether a lost segment of `len` bytes may be sent.
    pub(crate) fn admit_again<T>(&mut self, board: &Scoreboard<T>, len: u64) -> bool {
        self.is_urgent || self.admit(board, len)
    }

    /// Whether a tail loss probe is to be sent.
    pub(crate) fn is_probe_due(&self) -> bool {
        self.timers.probe == Probe::Due
    }

    /// When the pacer releases the next segment.
    pub(crate) fn release(&mut self, now: Time) -> Time {
        if self.release.pacer.is_free(now) { now } else { self.wait_for_pace(now) }
    }

    fn wait_for_pace(&mut self, now: Time) -> Time {
        let rate = self.rate();
        let release = self.release.pacer.release(now, rate);
        if release > now && self.law.pacing_rate().is_none() && self.is_half_used() {
            // The window determines this rate, so a larger window would be used.
            self.rounds.on_window_full();
        }
        release
    }

    /// Whether the flight is at least half of the window. Below that the pacer only spreads bursts, and something else is the limit
    /// ([rfc-7661] sec. 4.2): a window that grew with each of them would have no bound.
    fn is_half_used(&self) -> bool {
        2.0 * self.segments(self.flight) >= self.law.window()
    }

    /// The pacing rate; `None` if the window alone releases segments.
    fn rate(&mut self) -> Option<Rate> {
        match self.pacing_window() {
            Some((bytes, rtt)) => self.release.window_rate.of(bytes, rtt),
            None => self.law.pacing_rate(),
        }
    }

    /// As [`Self::rate`], without a side effect.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_window().map_or(self.law.pacing_rate(), |(bytes, rtt)| of_window(bytes, rtt))
    }

    /// The window in bytes and the RTT that determine the rate, if the law has no rate of its own.
    fn pacing_window(&self) -> Option<(f64, Span)> {
        let is_paced = self.release.pacing == Pacing::Always && self.law.pacing_rate().is_none();
        self.rtt.smoothed().filter(|_| is_paced).map(|rtt| (self.law.window() * self.mss.cast_signed() as f64, rtt))
    }

    /// Data is about to be sent. After a long idle time the window restarts ([rfc-5681] sec. 4.1).
    pub(crate) fn on_demand<T>(&mut self, now: Time, board: &Scoreboard<T>) {
        self.check(board);
        if self.flight == 0 && now.since(self.sent_last) > self.rtt.timeout() {
            self.sent_last = now;
            (self.suspicion, self.blame) = (None, Blame::Unblamed);
            let view = self.view(now);
            self.law.tell(|law| law.on_restart(&view, Restart::Idle));
        }
    }

    /// The record of sending a segment; its `flight` in bytes includes the segment.
    pub(crate) fn departure(&mut self, now: Time) -> impl Fn(u64) -> Departure + use<> {
        if self.flight == 0 {
            self.account.on_first(now);
        }
        let (window, mss, progress, supply) =
            (self.law.window(), self.mss, self.account.progress(), self.account.supply());
        move |flight| Departure { time: now, window, flight: segments(flight, mss), progress, supply }
    }

    /// There is nothing to send. If the window has room for a segment, the sender is application-limited.
    pub(crate) fn on_short(&mut self) {
        if self.has_room(self.mss) {
            self.account.on_short(self.segments(self.flight));
        }
    }

    /// A segment of `len` bytes that ends at `end` was sent and is on the scoreboard. `added` bytes were not in flight before.
    // Inlined with what else a segment and its ACK need, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline(always)]
    pub(crate) fn on_sent<T>(
        &mut self,
        now: Time,
        board: &Scoreboard<T>,
        (end, len): (Offset, u64),
        added: u64,
        transmission: Transmission,
    ) {
        if self.flight == 0 {
            self.silence.heard = now;
            self.release.pacer.on_idle(now, self.mss);
        }
        self.flight += added;
        self.check(board);
        self.tally.sent += 1;
        self.tally.sent_again += u64::from(transmission == Transmission::Again);
        self.sent_last = now;
        if transmission == Transmission::Again {
            self.is_urgent = false;
        }
        self.timers.on_sent(now, board.next(), end, transmission);
        if let Some(prr) = self.episode.prr_mut() {
            prr.on_sent(len);
        }
        let rate = self.rate();
        self.release.pacer.on_sent(now, Bytes::new(len), rate);
        if self.law.counts(transmission) {
            let view = self.view(now);
            let sent = Sent { segments: self.segments(len), transmission };
            self.law.count_sent(&view, &sent);
        }
        // [rfc-8985] sec. 7.2: new data moves the probe.
        if !matches!(self.timers.running, Timer::Reordering(_)) {
            self.arm(now, board);
        }
    }
}

//! Detects a dead peer, and limits answers to segments that may not be the peer's.
//!
//! * User timeout: sent data makes no progress ([rfc-5482], [rfc-9293] sec. 3.8.3).
//! * Idle timeout: no segment arrives from the peer.
//! * Keep-alive probes: an idle connection probes its peer ([rfc-9293] sec. 3.8.4).
//! * Challenge ACKs: a suspicious segment is answered, at a limited rate ([rfc-5961] sec. 7).

use anabranch_units::{Span, Time};

use super::State;
use crate::config::{Config, KeepAlive};

/// The liveness of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    user_timeout: Option<Span>,
    idle_timeout: Option<Span>,
    keep_alive: Option<KeepAlive>,
    /// The shorter one of the two timeouts; a large constant if neither is set.
    timeout_least: Span,
    /// When sent data last made progress, or was sent with nothing in flight.
    progress: Time,
    /// When the last segment arrived from the peer.
    heard: Time,
    /// When data last arrived or was acknowledged.
    worked: Time,
    probes: KeepAliveProbes,
    stall: Stall,
    /// When the driver first said that the peer's port is closed.
    refused: Option<Time>,
    challenge_acks: ChallengeAckLimiter,
}

/// The connection's activity. It decides what the peer's silence means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub(super) state: State,
    /// Data or a FIN is in flight.
    pub(super) has_flight: bool,
    /// The peer's window is zero, and the sender waits for it.
    pub(super) waits_for_window: bool,
}

/// The keep-alive probes to a silent peer.
#[derive(Clone, Copy, Debug)]
struct KeepAliveProbes {
    /// When the next probe is due, or when the peer is given up.
    next: Time,
    /// Probes without an answer.
    unanswered: u32,
    /// When the first one without an answer counts as that; never again once it does.
    overdue: Time,
    is_due: bool,
}

/// Retransmission timeouts after which the peer has answered a short segment, while nothing else makes progress.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    is_asked: bool,
    answers: u32,
}

/// Limits challenge ACKs.
#[derive(Clone, Copy, Debug)]
struct ChallengeAckLimiter {
    since: Time,
    count: u32,
}

impl KeepAliveProbes {
    /// The first one is due at this time.
    fn at(next: Time) -> Self {
        Self { next, unanswered: 0, overdue: Time::NEVER, is_due: false }
    }
}

impl Liveness {
    pub(super) fn new(now: Time, config: &Config) -> Self {
        let timeouts = [config.user_timeout, config.idle_timeout];
        Self {
            timeout_least: timeouts.into_iter().flatten().fold(FIN_WAIT_2_MAX, Span::min),
            user_timeout: config.user_timeout,
            idle_timeout: config.idle_timeout,
            keep_alive: config.keep_alive,
            progress: now,
            heard: now,
            worked: now,
            probes: KeepAliveProbes::at(Time::NEVER),
            stall: Stall::default(),
            refused: None,
            challenge_acks: ChallengeAckLimiter { since: now, count: 0 },
        }
    }

    /// Data is sent while nothing is in flight: the user timeout starts.
    pub(super) fn on_sent_into_silence(&mut self, now: Time) {
        self.progress = now;
    }

    /// Data arrived or was acknowledged.
    pub(super) fn on_work(&mut self, now: Time) {
        self.worked = now;
    }

    pub(super) fn heard_at(&self) -> Time {
        self.heard
    }

    pub(super) fn worked_at(&self) -> Time {
        self.worked
    }

    /// A segment arrived; it may be an old one.
    pub(super) fn on_anything(&mut self, now: Time) {
        self.heard = now;
    }

    /// An acceptable acknowledgement arrived. `is_progress` is true if it acknowledged new data, or if the window is zero.
    pub(super) fn on_heard(&mut self, now: Time, is_progress: bool) {
        if is_progress {
            (self.progress, self.stall) = (now, Stall::default());
        }
        self.heard = now;
        // Without keep-alive there are no probes.
        if let Some(KeepAlive { idle, .. }) = self.keep_alive {
            self.probes = KeepAliveProbes::at(now.saturating_add(idle));
        }
    }

    /// A lower bound of the deadline that is cheap to compute; it does not depend on the activity.
    pub(super) fn deadline_least(&self) -> Time {
        self.progress.min(self.heard).saturating_add(self.timeout_least).min(self.probes.next).min(self.probes.overdue)
    }

    /// When the peer is given up, or the next keep-alive probe is due.
    pub(super) fn deadline(&self, activity: Activity) -> Time {
        self.give_up_at(activity)
            .min(self.idle_at(activity.state))
            .min(self.keep_alive_at(activity))
            .min(self.probes.overdue)
    }

    /// Whether the peer is given up.
    pub(super) fn is_over(&self, now: Time, activity: Activity) -> bool {
        let most = self.keep_alive.map_or(u32::MAX, |keep_alive| keep_alive.probes_max);
        let is_deserted = self.keep_alive_at(activity) <= now && self.probes.unanswered >= most;
        self.give_up_at(activity) <= now || self.idle_at(activity.state) <= now || is_deserted
    }

    /// Whether the peer has answered lately, although what was sent made no progress.
    pub(super) fn is_stalled(&self, now: Time, activity: Activity) -> bool {
        let is_given_up = activity.state.has_paths() && self.give_up_at(activity) <= now;
        let timeout = self.user_timeout.unwrap_or(Span::ZERO);
        // The probes come with timeouts that double, so the last one is in the second half.
        is_given_up && self.stall.answers >= STALLED && now.since(self.heard) <= timeout / 2
    }

    /// A short segment tells whether the peer is there.
    pub(super) fn probe(&mut self) {
        self.probes.is_due = true;
    }

    /// Nothing of what was sent is acknowledged until a timeout: a short segment tells whether short ones arrive.
    pub(super) fn probe_stall(&mut self) {
        (self.probes.is_due, self.stall.is_asked) = (true, true);
    }

    /// A segment without content arrived, as an answer to a short segment would. Returns whether nothing but answers has come for
    /// so long that the path probably does not carry full packets; once for each stall.
    pub(super) fn on_bare_answer(&mut self) -> bool {
        let Stall { is_asked, answers } = &mut self.stall;
        if !std::mem::take(is_asked) {
            return false;
        }
        *answers += 1;
        *answers == STALLED
    }

    pub(super) fn handle_timeout(&mut self, now: Time, activity: Activity) {
        self.probes.is_due |= self.keep_alive_at(activity) <= now;
        if self.probes.overdue <= now {
            self.probes.overdue = Time::NEVER;
        }
    }

    /// The network says that the peer's port is closed. Anybody can say so, so it is believed only when it is said again after
    /// `least`, and the peer was silent all the time. Returns after which time it must be said again; `None` if it is believed.
    pub(super) fn on_refused(&mut self, now: Time, least: Span) -> Option<Span> {
        if self.refused.is_some_and(|at| at <= self.heard) {
            self.refused = None;
        }
        let first = *self.refused.get_or_insert(now);
        let until = first.saturating_add(least.max(REFUSED_FOR));
        (now < until).then(|| until.since(now))
    }

    /// Whether a keep-alive probe got no answer.
    pub(super) fn is_unanswered(&self) -> bool {
        self.probes.unanswered > 0 && self.probes.overdue == Time::NEVER
    }

    /// Whether a keep-alive probe is sent now. Its answer should be here after `timeout`.
    pub(super) fn poll_probe(&mut self, now: Time, timeout: Span) -> bool {
        if !std::mem::take(&mut self.probes.is_due) {
            return false;
        }
        if self.probes.unanswered == 0 {
            self.probes.overdue = now.saturating_add(timeout);
        }
        self.probes.unanswered += 1;
        self.probes.next = self.keep_alive.map_or(Time::NEVER, |keep_alive| now.saturating_add(keep_alive.interval));
        true
    }

    /// Whether another suspicious segment may be answered.
    pub(super) fn admit_challenge(&mut self, now: Time) -> bool {
        let ChallengeAckLimiter { since, count } = &mut self.challenge_acks;
        if now.since(*since) >= PERIOD {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count <= CHALLENGES_MAX
    }

    /// When the user timeout expires. With a zero window, every answer of the peer is progress ([rfc-9293] sec. 3.8.6.1).
    /// Otherwise only an acknowledgement of new data is.
    fn give_up_at(&self, activity: Activity) -> Time {
        let Activity { state, has_flight, waits_for_window } = activity;
        let is_waiting = has_flight || waits_for_window || matches!(state, State::SynSent | State::SynReceived);
        match self.user_timeout {
            Some(timeout) if is_waiting => self.progress.saturating_add(timeout),
            Some(_) | None => Time::NEVER,
        }
    }

    /// When the idle timeout expires.
    fn idle_at(&self, state: State) -> Time {
        let timeout = match state {
            State::FinWait2 => Some(self.idle_timeout.unwrap_or(FIN_WAIT_2_MAX)),
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                self.idle_timeout
            }
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait => None,
        };
        timeout.map_or(Time::NEVER, |timeout| self.heard.saturating_add(timeout))
    }

    /// [rfc-9293] sec. 3.8.4: only "when no sent data is outstanding".
    fn keep_alive_at(&self, activity: Activity) -> Time {
        let is_idle = !activity.has_flight && !activity.waits_for_window;
        match activity.state {
            State::Established | State::CloseWait | State::FinWait2 if is_idle && !self.probes.is_due => {
                self.probes.next
            }
            _ => Time::NEVER,
        }
    }
}

/// The least time for which a closed port must be reported: a program that is started again at once resets its peer's connections.
const REFUSED_FOR: Span = Span::from_millis(400);

/// The short segments, each after a timeout, that are answered while nothing longer arrives. Probes begin with the second timeout in a
/// row, so this is after the fourth: 3 s with the least timeout. It is a hint and ends nothing: where half of all packets are lost, it is
/// wrong in one of a hundred cases.
const STALLED: u32 = 3;

/// A peer that has acknowledged our FIN may continue to send, but may not be silent for ever. Common systems allow a minute once
/// the application is gone; here the application may still be reading.
const FIN_WAIT_2_MAX: Span = Span::from_secs(600);

/// [rfc-5961] sec. 7: "For example: an implementation may allow 10 challenge ACKs in any 5 second window".
const CHALLENGES_MAX: u32 = 10;
const PERIOD: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use anabranch_cc::{Settings, registry};

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn with(change: impl FnOnce(&mut Config)) -> Liveness {
        let mut config = Config::new(Settings::default_for(registry::find("reno").unwrap()));
        (config.user_timeout, config.idle_timeout, config.keep_alive) = (None, None, None);
        change(&mut config);
        Liveness::new(Time::ZERO, &config)
    }

    const RTO: Span = Span::from_millis(300);
    const IDLE: Activity = Activity { state: State::Established, has_flight: false, waits_for_window: false };
    const SENDING: Activity = Activity { has_flight: true, ..IDLE };

    #[test]
    fn the_user_timeout_runs_while_something_is_to_be_acknowledged() {
        let mut liveness = with(|config| config.user_timeout = Some(Span::from_secs(100)));
        assert_eq!(liveness.deadline(IDLE), Time::NEVER);
        liveness.on_sent_into_silence(at(50));
        assert_eq!(liveness.deadline(SENDING), at(150));
        liveness.on_heard(at(60), false);
        assert_eq!(liveness.deadline(SENDING), at(150), "an answer that acknowledges nothing new");
        liveness.on_heard(at(70), true);
        assert!(!liveness.is_over(at(169), SENDING) && liveness.is_over(at(170), SENDING));
        assert_eq!(liveness.deadline(Activity { state: State::SynSent, ..IDLE }), at(170));
    }

    #[test]
    fn idle_timeout_runs_while_peer_would_answer() {
        let mut liveness = with(|config| config.idle_timeout = Some(Span::from_secs(30)));
        liveness.on_anything(at(5));
        for state in
            [State::Established, State::CloseWait, State::FinWait1, State::FinWait2, State::Closing, State::LastAck]
        {
            assert_eq!(liveness.deadline(Activity { state, ..IDLE }), at(35), "{state:?}");
        }
        for state in [State::Listen, State::SynSent, State::SynReceived, State::TimeWait, State::Closed] {
            assert_eq!(liveness.deadline(Activity { state, ..IDLE }), Time::NEVER, "{state:?}");
        }
        let without = with(|_| {});
        assert_eq!(without.deadline(Activity { state: State::FinWait2, ..IDLE }), Time::ZERO + FIN_WAIT_2_MAX);
    }

    #[test]
    fn a_silent_peer_is_asked_and_then_given_up() {
        let keep_alive = KeepAlive { idle: Span::from_secs(60), interval: Span::from_secs(10), probes_max: 3 };
        let mut liveness = with(|config| config.keep_alive = Some(keep_alive));
        liveness.on_heard(at(0), true);
        assert_eq!(liveness.deadline(SENDING), Time::NEVER, "retransmissions ask as well");
        for probe in [60, 70, 80] {
            assert_eq!(liveness.deadline(IDLE), at(probe));
            assert!(!liveness.is_over(at(probe), IDLE));
            liveness.handle_timeout(at(probe), IDLE);
            assert!(liveness.poll_probe(at(probe), RTO) && !liveness.poll_probe(at(probe), RTO));
            liveness.handle_timeout(at(probe) + RTO, IDLE);
        }
        assert!(!liveness.is_over(at(89), IDLE) && liveness.is_over(at(90), IDLE));
        liveness.on_heard(at(89), false);
        assert_eq!(liveness.deadline(IDLE), at(149), "it was there after all");
    }

    /// Timeouts of 40 and 50 s, and a probe after 30 s: a segment without new data moves the timeouts, but not the probe.
    #[test]
    fn no_deadline_is_before_the_least() {
        let keep_alive = KeepAlive { idle: Span::from_secs(30), interval: Span::from_secs(10), probes_max: 3 };
        let mut liveness = with(|config| {
            (config.user_timeout, config.idle_timeout) = (Some(Span::from_secs(40)), Some(Span::from_secs(50)));
            config.keep_alive = Some(keep_alive);
        });
        let mut check = |act: fn(&mut Liveness), least| {
            act(&mut liveness);
            assert_eq!(liveness.deadline_least(), at(least));
            for state in [State::SynSent, State::Established, State::FinWait2, State::CloseWait, State::LastAck] {
                for activity in [IDLE, SENDING].map(|activity| Activity { state, ..activity }) {
                    assert!(liveness.deadline(activity) >= at(least), "{activity:?}");
                }
            }
        };
        check(|_| {}, 40);
        check(|liveness| liveness.on_heard(at(7), true), 37);
        check(|liveness| liveness.on_anything(at(30)), 37);
        check(|liveness| liveness.on_sent_into_silence(at(31)), 37);
        check(|liveness| liveness.handle_timeout(at(37), IDLE), 37);
        check(|liveness| assert!(liveness.poll_probe(at(37), Span::from_secs(2))), 39);
        check(|liveness| liveness.handle_timeout(at(39), IDLE), 47);
        check(|liveness| liveness.on_heard(at(40), false), 70);
        check(|liveness| liveness.on_heard(at(45), true), 75);
    }

    /// What is said once is not believed, nor what the peer contradicts in the meantime, nor what is said twice at once.
    #[test]
    fn closed_port_said_again_in_silence_is_believed() {
        let mut liveness = with(|_| {});
        let ms = Span::from_millis;
        let at = |count| Time::ZERO + ms(count);
        let least = ms(600);
        let mut again = |at, least| liveness.on_refused(at, least);
        assert_eq!([again(at(1000), least), again(at(1599), least)], [Some(ms(600)), Some(ms(1))]);
        liveness.on_anything(at(1599));
        let mut again = |at, least| liveness.on_refused(at, least);
        assert_eq!(
            [again(at(1600), least), again(at(2199), least), again(at(2200), least)],
            [Some(ms(600)), Some(ms(1)), None]
        );
        liveness.on_anything(at(2300));
        let mut again = |at| liveness.on_refused(at, Span::ZERO);
        assert_eq!([again(at(2400)), again(at(2799)), again(at(2800))], [Some(ms(400)), Some(ms(1)), None]);
    }

    /// [rfc-5961] sec. 7.
    #[test]
    fn ten_challenges_are_answered_in_five_seconds() {
        let mut liveness = with(|_| {});
        let mut answered = |second| (0..100).filter(|_| liveness.admit_challenge(at(second))).count();
        assert_eq!([answered(0), answered(4), answered(5), answered(9)], [10, 0, 10, 0]);
    }
}

//! Decides when to acknowledge.

use anabranch_units::{Span, Time};

use crate::ecn::EcnCodepoint;
use crate::options::EcnCounts;
use crate::path::{PathId, PathSet};
use crate::segment::StreamHeader;
use crate::seq::Ssn;

/// The acknowledgement frequency of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Segments per ACK; 1 acknowledges each at once, which FAST's estimator needs.
    pub every: u32,
    /// The longest delay of an ACK. [rfc-9293] sec. 3.8.6.3 requires less than 0.5 s.
    pub delay: Span,
}

impl AckPolicy {
    /// Acknowledges each segment at once.
    pub const EACH: Self = Self { every: 1, delay: Span::ZERO };
}

/// Pending acknowledgements of each path: a segment is acknowledged on the path on which it arrived ([multihoming-2010] sec. III).
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    policy: AckPolicy,
    /// The number of the control segment that carried the peer's latest request, if there was one.
    asked: Option<u64>,
    lanes: Vec<Lane>,
    /// The paths on which an ACK is due, and those of them that need a pure ACK.
    due: PathSet,
    due_pure: PathSet,
    /// The paths with a delayed ACK.
    waiting: PathSet,
    /// The path on which the current segment arrived.
    via: PathId,
}

/// The state of one path.
#[derive(Clone, Debug)]
struct Lane {
    need: Need,
    /// The stream of the segment to acknowledge, and the SSN expected next on it.
    answer: Option<StreamHeader>,
    /// When that segment arrived.
    arrived: Time,
    /// Whether any segment has arrived in order on it.
    is_known: bool,
    counts: Counts,
}

/// The ECN counts of a path, and those last sent to the peer.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    counts: EcnCounts,
    told: EcnCounts,
    latest: Option<EcnCodepoint>,
    /// Whether the latest codepoint is a mark and the one before is not, or vice versa. The peer is then informed at once.
    has_turned: bool,
}

/// Whether an ACK is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Delayed, for `count` segments.
    Later {
        count: u32,
        deadline: Time,
    },
    /// With the next segment of any kind.
    Now,
    /// As a pure ACK, because it carries something that data segments cannot.
    Pure,
}

impl Acks {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        let none = PathSet::default();
        Self {
            policy,
            asked: None,
            lanes: vec![Lane::NEW],
            due: none,
            due_pure: none,
            waiting: none,
            via: PathId::FIRST,
        }
    }

    /// The peer requests this frequency in control segment `ssn`. An older request that arrives later has no effect.
    pub(crate) fn request(&mut self, ssn: Ssn, policy: AckPolicy) {
        let before = self.asked.unwrap_or(0);
        let Some(number) = ssn.count_near(before).filter(|&number| number >= before) else { return };
        self.asked = Some(number);
        self.policy = AckPolicy { every: policy.every.max(1), delay: policy.delay.min(DELAY_MAX) };
    }

    /// A new path, on which nothing has arrived.
    pub(crate) fn open_lane(&mut self, path: PathId) {
        while self.lanes.len() <= path.index() {
            self.lanes.push(Lane::NEW);
        }
        self.on_sent(path);
        self.lanes[path.index()] = Lane::NEW;
    }

    /// A path is gone: its segments are acknowledged on another one.
    pub(crate) fn close_lane(&mut self, path: PathId, other: PathId) {
        let need = self.lanes[path.index()].need;
        self.on_sent(path);
        if self.via == path {
            self.via = other;
        }
        if need != Need::Nothing {
            self.demand_pure_on(other);
        }
    }

    /// A segment arrived on this path. Later calls refer to it.
    pub(crate) fn on_arrival(&mut self, path: PathId) {
        self.via = path;
    }

    /// The path of the latest segment.
    pub(crate) fn via(&self) -> PathId {
        self.via
    }

    /// A segment with content arrived on this path with this codepoint.
    pub(crate) fn on_codepoint(&mut self, path: PathId, codepoint: EcnCodepoint) {
        let Counts { counts, latest, has_turned, .. } = &mut self.lanes[path.index()].counts;
        counts.count(codepoint);
        let before = latest.replace(codepoint);
        *has_turned |= (codepoint == EcnCodepoint::Ce) != (before == Some(EcnCodepoint::Ce));
    }

    /// The ECN counts for an ACK on this path, if they are due; `has_room` says whether SACK blocks leave room.
    pub(crate) fn counts(&self, path: PathId, has_room: bool) -> Option<EcnCounts> {
        let Counts { counts, told, .. } = self.lanes[path.index()].counts;
        if counts == told {
            return None;
        }
        let is_marked = counts.ce != told.ce;
        let is_due = told.total() == 0 || counts.total().wrapping_sub(told.total()) >= COUNTS_EACH;
        (is_marked || has_room && is_due).then_some(counts)
    }

    /// The counts were sent.
    pub(crate) fn on_counts_told(&mut self, path: PathId) {
        let Counts { counts, told, .. } = &mut self.lanes[path.index()].counts;
        *told = *counts;
    }

    /// A segment arrived in order.
    pub(crate) fn on_segment(&mut self, now: Time) {
        let lane = &mut self.lanes[self.via.index()];
        // [rfc-9000] sec. 13.2.1: a mark is acknowledged at once.
        if std::mem::take(&mut lane.counts.has_turned) {
            return self.demand_pure();
        }
        // The first segment on a path gives its RTT.
        let is_first = !std::mem::replace(&mut lane.is_known, true) && self.asked.is_some();
        let (count, deadline) = match lane.need {
            Need::Nothing => (1, now.saturating_add(self.policy.delay)),
            Need::Later { count, deadline } => (count + 1, deadline),
            Need::Now | Need::Pure => return,
        };
        if count >= self.policy.every || is_first {
            lane.need = Need::Now;
            self.waiting.remove(self.via);
            self.due.insert(self.via);
        } else {
            lane.need = Need::Later { count, deadline };
            self.waiting.insert(self.via);
        }
    }

    /// A stream or the connection ends with the current segment. No later segment may come to trigger a delayed ACK, so the next
    /// segment sent carries the ACK, and one is sent now.
    pub(crate) fn demand(&mut self) {
        let lane = &mut self.lanes[self.via.index()];
        if lane.need != Need::Pure {
            lane.need = Need::Now;
            self.waiting.remove(self.via);
            self.due.insert(self.via);
        }
    }

    /// Sets the stream that the ACK reports ([mfast-2019] Procedure 1).
    pub(crate) fn answer(&mut self, now: Time, expected: StreamHeader) {
        let lane = &mut self.lanes[self.via.index()];
        (lane.answer, lane.arrived) = (Some(expected), now);
    }

    /// The stream that an ACK on this path reports, and the delay of its segment.
    pub(crate) fn expected(&self, now: Time, path: PathId) -> (Option<StreamHeader>, Span) {
        let Lane { answer, arrived, .. } = self.lanes[path.index()];
        (answer, now.since(arrived))
    }

    /// [rfc-5681] sec. 4.2: a segment that is out of order or fills a hole is acknowledged at once.
    pub(crate) fn demand_pure(&mut self) {
        self.demand_pure_on(self.via);
    }

    /// The same, on this path.
    pub(crate) fn demand_pure_on(&mut self, path: PathId) {
        self.lanes[path.index()].need = Need::Pure;
        self.waiting.remove(path);
        self.due.insert(path);
        self.due_pure.insert(path);
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        for (index, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.deadline() <= now) {
            lane.need = Need::Now;
            self.waiting.remove(PathId::new(index));
            self.due.insert(PathId::new(index));
        }
    }

    /// An acknowledgement was sent on this path.
    pub(crate) fn on_sent(&mut self, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        if lane.answer.is_none() && lane.need == Need::Nothing {
            // At an end that only sends, no segment has arrived that needs an ACK.
            return;
        }
        *lane = Lane { is_known: lane.is_known, counts: lane.counts, ..Lane::NEW };
        self.due.remove(path);
        self.due_pure.remove(path);
        self.waiting.remove(path);
    }

    /// A path on which an ACK is due.
    pub(crate) fn due(&self) -> Option<PathId> {
        self.due.first()
    }

    /// A path on which a pure ACK is due.
    pub(crate) fn due_pure(&self) -> Option<PathId> {
        self.due_pure.first()
    }

    pub(crate) fn deadline(&self) -> Time {
        if self.waiting.is_empty() {
            return Time::NEVER;
        }
        self.lanes.iter().map(Lane::deadline).min().unwrap_or(Time::NEVER)
    }
}

impl Lane {
    const NEW: Self = Self {
        need: Need::Nothing,
        answer: None,
        arrived: Time::ZERO,
        is_known: false,
        counts: Counts { counts: NO_COUNTS, told: NO_COUNTS, latest: None, has_turned: false },
    };

    fn deadline(&self) -> Time {
        match self.need {
            Need::Later { deadline, .. } => deadline,
            Need::Nothing | Need::Now | Need::Pure => Time::NEVER,
        }
    }
}

/// The longest delay that a peer can request.
const DELAY_MAX: Span = Span::from_millis(250);

const NO_COUNTS: EcnCounts = EcnCounts { ce: 0, ect0: 0, ect1: 0 };

/// Counts without a new mark are sent once in this many segments, since they make the option eight bytes longer.
const COUNTS_EACH: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_is_answered_unless_the_policy_says_otherwise() {
        let mut acks = Acks::new(AckPolicy::EACH);
        acks.on_segment(Time::ZERO);
        assert_eq!((acks.due(), acks.due_pure()), (Some(PathId::FIRST), None));
        let mut acks = Acks::new(AckPolicy { every: 2, delay: Span::from_millis(40) });
        acks.on_segment(Time::ZERO);
        assert_eq!((acks.due(), acks.deadline()), (None, Time::ZERO + Span::from_millis(40)));
        acks.on_segment(Time::ZERO);
        assert!(acks.due().is_some());
        acks.on_sent(PathId::FIRST);
        acks.on_segment(Time::ZERO);
        acks.handle_timeout(Time::ZERO + Span::from_millis(40));
        assert!(acks.due().is_some());
    }

    /// A request is bounded, and an older request has no effect.
    #[test]
    fn the_latest_request_counts_within_limits() {
        let mut acks = Acks::new(AckPolicy::EACH);
        let policy = |every, delay| AckPolicy { every, delay: Span::from_millis(delay) };
        acks.request(Ssn::of(7), policy(16, 20));
        acks.request(Ssn::of(6), policy(1, 0));
        assert_eq!(acks.policy, policy(16, 20));
        acks.request(Ssn::of(8), policy(0, 500));
        assert_eq!(acks.policy, policy(1, 250));
    }

    /// The first segment on a path is acknowledged at once, whatever the peer requested. So are a mark and the end of marks.
    #[test]
    fn new_information_is_acknowledged_at_once() {
        let mut acks = Acks::new(AckPolicy::EACH);
        acks.request(Ssn::of(0), AckPolicy { every: 100, delay: Span::from_millis(20) });
        let mut answers = vec![];
        for codepoint in
            [EcnCodepoint::Ect0, EcnCodepoint::Ect0, EcnCodepoint::Ce, EcnCodepoint::Ce, EcnCodepoint::Ect0]
        {
            acks.on_codepoint(PathId::FIRST, codepoint);
            acks.on_segment(Time::ZERO);
            answers.push(acks.due().is_some());
            acks.on_sent(PathId::FIRST);
        }
        assert_eq!(answers, [true, false, true, false, true]);
    }

    #[test]
    fn a_segment_is_answered_on_its_path() {
        let mut acks = Acks::new(AckPolicy { every: 2, delay: Span::from_millis(40) });
        let second = PathId::new(1);
        acks.open_lane(second);
        acks.on_segment(Time::ZERO);
        acks.on_arrival(second);
        acks.on_segment(Time::ZERO);
        assert_eq!(acks.due(), None, "each path has one segment");
        acks.on_segment(Time::ZERO);
        assert_eq!(acks.due(), Some(second));
    }
}

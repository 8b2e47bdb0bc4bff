//! When to acknowledge.

use anabranch_units::{Span, Time};

use crate::segment::StreamHeader;

/// How often a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// An ACK for so many segments; 1 answers each at once, which is what FAST's estimator wants.
    pub every: u32,
    /// The longest that an ACK waits for more segments ([rfc-9293] sec. 3.8.6.3: below 0.5 s).
    pub delay: Span,
}

impl AckPolicy {
    /// Each segment at once.
    pub const EACH: Self = Self { every: 1, delay: Span::ZERO };
}

/// What is to be acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    policy: AckPolicy,
    need: Need,
    /// The stream of the segment that is to be answered, and what it expects next.
    pub(crate) answer: Option<StreamHeader>,
}

/// Whether an ACK is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// For `count` segments, before long.
    Later {
        count: u32,
        deadline: Time,
    },
    /// With the next segment, whichever that is.
    Now,
    /// By itself: it says something that data segments do not.
    Pure,
}

impl Acks {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self { policy, need: Need::Nothing, answer: None }
    }

    /// A segment arrived in order.
    pub(crate) fn on_segment(&mut self, now: Time) {
        let (count, deadline) = match self.need {
            Need::Nothing => (1, now.saturating_add(self.policy.delay)),
            Need::Later { count, deadline } => (count + 1, deadline),
            Need::Now | Need::Pure => return,
        };
        self.need = if count >= self.policy.every { Need::Now } else { Need::Later { count, deadline } };
    }

    /// [rfc-5681] sec. 4.2: what comes out of order or fills a hole is acknowledged at once.
    pub(crate) fn demand_pure(&mut self) {
        self.need = Need::Pure;
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.deadline() <= now {
            self.need = Need::Now;
        }
    }

    /// An acknowledgement left.
    pub(crate) fn on_sent(&mut self) {
        (self.need, self.answer) = (Need::Nothing, None);
    }

    pub(crate) fn is_due(&self) -> bool {
        matches!(self.need, Need::Now | Need::Pure)
    }

    pub(crate) fn is_pure(&self) -> bool {
        self.need == Need::Pure
    }

    pub(crate) fn deadline(&self) -> Time {
        match self.need {
            Need::Later { deadline, .. } => deadline,
            Need::Nothing | Need::Now | Need::Pure => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_is_answered_unless_the_policy_says_otherwise() {
        let mut acks = Acks::new(AckPolicy::EACH);
        acks.on_segment(Time::ZERO);
        assert!(acks.is_due() && !acks.is_pure());
        let mut acks = Acks::new(AckPolicy { every: 2, delay: Span::from_millis(40) });
        acks.on_segment(Time::ZERO);
        assert_eq!((acks.is_due(), acks.deadline()), (false, Time::ZERO + Span::from_millis(40)));
        acks.on_segment(Time::ZERO);
        assert!(acks.is_due());
        acks.on_sent();
        acks.on_segment(Time::ZERO);
        acks.handle_timeout(Time::ZERO + Span::from_millis(40));
        assert!(acks.is_due());
    }
}

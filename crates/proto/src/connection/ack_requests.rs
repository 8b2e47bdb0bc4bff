//! How often the peer is asked to acknowledge.
//!
//! An ACK for each segment costs both ends as much as the segment. Where a round trip brings hundreds of them, fewer say as much: a sixteenth at
//! most, [`ACKS_A_ROUND`] a round trip at least. While the window grows fast each one counts; where something is missing, or marked, the peer
//! answers at once whatever it was asked.
//!
//! The peer is asked when a round trip is over, and only if that changes something worth a record.

use anabranch_units::Span;

use super::{Connection, Path};
use crate::config::{Config, Form};
use crate::options::AcknowledgementOptions;
use crate::payload::Payload;
use crate::receive::acks::AckPolicy;
use crate::segment::Record;
use crate::stream::outbound::Framing;

/// What the peer was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckRequest {
    policy: AckPolicy,
}

impl AckRequest {
    /// Nothing: it acknowledges as it likes.
    pub(super) const NONE: Self = Self { policy: AckPolicy::EACH };

    /// Whether another policy is worth a record.
    fn is_other(&self, wanted: &AckPolicy) -> bool {
        let AckPolicy { every, delay } = self.policy;
        let differs = |one: u64, other: u64| one.max(other) * 2 > one.min(other) * 3;
        differs(every.into(), wanted.every.into())
            || wanted.every > 1 && differs(delay.ticks(), wanted.delay.ticks()) && differs(every.into(), 1)
    }
}

impl<P: Payload> Connection<P> {
    /// A round trip is over on some path: asks for what is wanted from now on.
    pub(super) fn request_acks(&mut self) {
        let Config { ack_requests, form, .. } = self.config;
        if ack_requests <= 1 || form != Form::Sealed || self.peer.framing != Framing::Streams {
            return;
        }
        let wanted = self.wanted_acks();
        let before = self.ack_request.policy.delay;
        if self.ack_request.is_other(&wanted) {
            self.ack_request.policy = wanted;
            self.sender.outbound.records.push(record(wanted));
        }
        // Until it has heard, the peer may wait for as long as it was asked to before.
        let delay = before.max(self.ack_request.policy.delay);
        self.paths.iter_mut().for_each(|(_, path)| path.control.set_ack_delay(delay));
    }

    /// What the path can do with that can do with least.
    fn wanted_acks(&self) -> AckPolicy {
        let live = || self.paths.iter().map(|(_, path)| path).filter(|path| path.is_live());
        let every = |path: &Path| {
            let control = &path.control;
            let segments = control.window() * f64::from(self.peer.segment) / f64::from(path.mss);
            if control.is_growing() { 1 } else { (segments / ACKS_A_ROUND) as u32 }
        };
        let every = live().map(every).min().unwrap_or(1).clamp(1, self.config.ack_requests.into());
        let rtt = live().filter_map(|path| path.control.rtt_smoothed()).min().unwrap_or(Span::ZERO);
        let delay = if every > 1 { (rtt / DELAY_PART).min(DELAY_MAX) } else { Span::ZERO };
        AckPolicy { every, delay }
    }
}

/// What a record can say of a policy.
fn record(AckPolicy { every, delay }: AckPolicy) -> Record {
    let units = delay.ticks() / AcknowledgementOptions::DELAY_UNIT.ticks();
    Record::AcknowledgeEach {
        every: u8::try_from(every).unwrap_or(u8::MAX),
        delay: u16::try_from(units).unwrap_or(u16::MAX),
    }
}

/// So many tell the round trips of a window apart, and let it leave in as many parts.
const ACKS_A_ROUND: f64 = 32.0;

/// An ACK waits for no more than such a part of a round trip: a tail loss probe, which waits for two, is later.
const DELAY_PART: u64 = 4;

/// [rfc-9000] sec. 18.2: max_ack_delay.
const DELAY_MAX: Span = Span::from_millis(25);

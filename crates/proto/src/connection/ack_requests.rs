//! The acknowledgement frequency that is requested from the peer.
//!
//! An ACK costs both ends as much as a segment. If a round trip has hundreds of segments, fewer ACKs carry the same information.
//! So at most one ACK for [`Config::ack_requests`](crate::Config::ack_requests) segments is requested, or for as many as arrive within
//! [`Config::ack_interval`](crate::Config::ack_interval), and at least [`ACKS_A_ROUND`] in a round trip. Losses and ECN marks are acknowledged at once in any case. If the way back of a path does not carry
//! so many ACKs ([`super::way_back`]), fewer are requested, whatever the law needs, but not fewer than [`ACKS_LEAST`] in a round trip.
//!
//! While the window grows fast, [`ACKS_GROWING`] in a round trip are enough: a law counts the acknowledged segments, and paces what it
//! sends. More would end the growth too early where the way back is narrow, as their queue is in the RTT, and there is no time to try
//! anything out.
//!
//! A request is sent at the end of a round trip, if the change is worth the cost of a record.

use anabranch_units::{Span, Time};

use super::way_back::Round;
use super::{Connection, Path};
use crate::config::{Config, Form};
use crate::options::AcknowledgementOptions;
use crate::path::FourTuple;
use crate::payload::Payload;
use crate::receive::acks::AckPolicy;
use crate::segment::Record;
use crate::stream::outbound::Framing;

/// The requested acknowledgement frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckRequest {
    policy: AckPolicy,
}

impl AckRequest {
    /// No request: the peer follows its own policy.
    pub(super) const NONE: Self = Self { policy: AckPolicy::EACH };

    /// The requested segments for one ACK.
    pub(super) fn every(&self) -> u32 {
        self.policy.every
    }

    /// Whether the wanted policy differs enough to be worth a record.
    fn is_other(&self, wanted: &AckPolicy) -> bool {
        let AckPolicy { every, delay } = self.policy;
        let differs = |one: u64, other: u64| one.max(other) * 2 > one.min(other) * 3;
        differs(every.into(), wanted.every.into())
            || wanted.every > 1 && differs(delay.ticks(), wanted.delay.ticks()) && differs(every.into(), 1)
    }
}

impl<P: Payload> Connection<P> {
    /// A datagram of the peer arrived on this four-tuple. Its number is by `ahead` above the highest one before on the path.
    pub(crate) fn on_datagram(&mut self, tuple: &FourTuple, ahead: u64) {
        if let Some(id) = self.paths.find_near(tuple, self.acks.via()) {
            self.paths[id].way_back.on_datagram(ahead);
        }
    }

    /// A round trip has ended on some path: requests the frequency for the next round trips.
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
        // Until the request arrives, the peer may still use the previous delay.
        let delay = before.max(self.ack_request.policy.delay);
        self.paths.iter_mut().for_each(|(_, path)| path.control.set_ack_delay(delay));
    }

    /// The frequency that suits the path with the greatest need of ACKs.
    fn wanted_acks(&self) -> AckPolicy {
        let live = || self.paths.iter().map(|(_, path)| path).filter(|path| path.is_live());
        let every = |path: &Path| {
            let control = &path.control;
            let segments = control.window() * f64::from(self.peer.segment) / f64::from(path.mss);
            let most = self.shared_ack(segments, control.rtt_smoothed());
            let (acks, most) =
                if control.is_growing() { (ACKS_GROWING, EVERY_GROWING.max(most)) } else { (ACKS_A_ROUND, most) };
            let least = path.way_back.every().min((segments / ACKS_LEAST) as u32);
            ((segments / acks) as u32).clamp(1, most).max(least)
        };
        let every = live().map(every).min().unwrap_or(1);
        let rtt = live().filter_map(|path| path.control.rtt_smoothed()).min().unwrap_or(Span::ZERO);
        let delay = if every > 1 { (rtt / DELAY_PART).min(DELAY_MAX) } else { Span::ZERO };
        AckPolicy { every, delay }
    }

    /// How many segments may share an ACK on a path with so many of them in a round trip.
    fn shared_ack(&self, segments: f64, rtt: Option<Span>) -> u32 {
        let rounds = rtt.map_or(0.0, |rtt| self.config.ack_interval.as_secs_f64() / rtt.as_secs_f64());
        ((segments * rounds) as u32).min(SHARED_MOST).max(self.config.ack_requests.into())
    }
}

impl Path {
    /// A round trip is over, in which one ACK for `asked` segments was requested.
    pub(super) fn on_round(&mut self, now: Time, asked: u32) {
        let control = &self.control;
        let rtt = control.rtt_smoothed().zip(control.rtt_min());
        let (delivered, lost, is_growing) = (control.tally.delivered, control.tally.lost, control.is_growing());
        self.way_back.on_round(&Round { now, delivered, lost, rtt, asked, is_growing });
    }
}

/// The record that requests a policy.
fn record(AckPolicy { every, delay }: AckPolicy) -> Record {
    let units = delay.ticks() / AcknowledgementOptions::DELAY_UNIT.ticks();
    Record::AcknowledgeEach {
        every: u8::try_from(every).unwrap_or(u8::MAX),
        delay: u16::try_from(units).unwrap_or(u16::MAX),
    }
}

/// The cost of an ACK is then 3 % of that of its segments.
const SHARED_MOST: u32 = 32;

/// Enough ACKs to detect the ends of rounds, and to spread the release of a window.
const ACKS_A_ROUND: f64 = 32.0;

/// HyStart takes eight samples of the RTT in a round trip ([rfc-9406] sec. 4.3). The window doubles before a request arrives, so there are
/// up to twice as many.
const ACKS_GROWING: f64 = 8.0;

/// With more, a window of hundreds of segments would grow in steps that are no longer small beside a queue of a usual size.
const EVERY_GROWING: u32 = 8;

/// On a way back that carries few ACKs, a window moves in five steps: an ACK is delayed by no more than [`DELAY_PART`] in any case. With four,
/// a trial of fewer ACKs costs a part of the rate where all pass; with six, 256 kbit/s do not carry them at round trips of 20 ms.
const ACKS_LEAST: f64 = 5.0;

/// An ACK is delayed by at most this fraction of a round trip: less than a tail loss probe, which waits for two round trips.
const DELAY_PART: u64 = 4;

/// [rfc-9000] sec. 18.2: max_ack_delay.
const DELAY_MAX: Span = Span::from_millis(25);

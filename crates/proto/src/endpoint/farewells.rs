//! Resets of connections that this end has ended, repeated for what still comes ([rfc-9000] sec. 10.2.1).
//!
//! A reset is sent once. If it is lost, the peer goes on sending: data, acknowledgements, keep-alive probes at last. A responder could
//! answer with a stateless reset, an initiator could not. So both keep the sealed reset, and repeat it, the same bytes, for datagrams that
//! arrive for the connection.
//!
//! These cannot be authenticated any more. So a farewell goes only to where the reset went, after pauses that double, and never answers
//! a datagram that is shorter than itself.

use std::collections::BTreeMap;

use anabranch_units::{Span, Time};

use crate::path::FourTuple;

/// The farewells of an endpoint, by the number of the connection.
#[derive(Debug, Default)]
pub(super) struct Farewells(BTreeMap<u32, Farewell>);

#[derive(Debug)]
struct Farewell {
    tuple: FourTuple,
    datagram: Vec<u8>,
    forget_at: Time,
    /// From when on it is sent again, and the pause after that.
    again_at: Time,
    pause: Span,
}

impl Farewells {
    /// A connection has ended with this datagram. At the limit, it is not kept.
    pub(super) fn keep(&mut self, now: Time, number: u32, tuple: FourTuple, datagram: &[u8]) {
        if self.0.len() >= FAREWELLS_MAX {
            self.0.retain(|_, farewell| farewell.forget_at > now);
        }
        if self.0.len() < FAREWELLS_MAX {
            let farewell = Farewell {
                tuple,
                datagram: datagram.to_vec(),
                forget_at: now.saturating_add(KEPT),
                again_at: now.saturating_add(PAUSE),
                pause: PAUSE,
            };
            self.0.insert(number, farewell);
        }
    }

    /// A datagram of `len` bytes came for the connection with this number, which there is no more: what is to be sent in answer.
    pub(super) fn answer(&mut self, now: Time, number: u32, len: usize) -> Option<(FourTuple, Vec<u8>)> {
        let farewell = self.0.get_mut(&number)?;
        if farewell.forget_at <= now {
            self.0.remove(&number);
            return None;
        }
        if now < farewell.again_at || len < farewell.datagram.len() {
            return None;
        }
        farewell.pause = farewell.pause * 2;
        farewell.again_at = now.saturating_add(farewell.pause);
        Some((farewell.tuple, farewell.datagram.clone()))
    }
}

/// Each takes some 200 bytes.
const FAREWELLS_MAX: usize = 1024;

/// Longer than keep-alive probes of an idle peer take by default, or the pauses of its retransmissions with some losses.
const KEPT: Span = Span::from_secs(30);

/// What was on its way when the connection ended arrives within a round trip: one farewell for it, perhaps two.
const PAUSE: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Address;

    const TUPLE: FourTuple =
        FourTuple { local: Address { address: 1, port: 1 }, remote: Address { address: 2, port: 2 } };

    /// Five times as many as there may be: the first ones stay, and after their time later ones take their places.
    #[test]
    fn farewells_have_a_limit() {
        let mut farewells = Farewells::default();
        for number in 0..5 * FAREWELLS_MAX as u32 {
            farewells.keep(Time::ZERO, number, TUPLE, &[7; 60]);
        }
        assert_eq!(farewells.0.len(), FAREWELLS_MAX);
        let soon = Time::ZERO + PAUSE;
        assert_eq!(farewells.answer(soon, 0, 60), Some((TUPLE, vec![7; 60])));
        assert_eq!(farewells.answer(soon, FAREWELLS_MAX as u32, 60), None);
        farewells.keep(Time::ZERO + KEPT, 9999, TUPLE, &[8; 60]);
        assert_eq!(farewells.0.len(), 1);
    }
}

//! What answers datagrams for connections that there are no more, and stateless resets, compared with the tokens of all connections.

use anabranch_units::Time;

use super::{Arrival, Endpoint, REPLIES_MAX};

impl Endpoint {
    /// A datagram with an unknown index arrived. If the connection has ended with a reset, that may have been lost. Otherwise a
    /// responder answers with a stateless reset, as the peer may have known an earlier endpoint with this key.
    pub(super) fn handle_unknown(&mut self, now: Time, arrival: &Arrival, number: u32, datagram: &[u8]) {
        self.tally.unknown += 1;
        if self.replies.len() >= REPLIES_MAX {
            return;
        }
        if let Some(farewell) = self.farewells.answer(now, number, datagram.len()) {
            self.replies.push_back(farewell);
            return;
        }
        let mut reset = vec![];
        if self.listener.is_some() && self.resets.answer(now, arrival.tuple.remote, datagram, &mut reset) {
            self.tally.resets_sent += 1;
            self.replies.push_back((arrival.tuple, reset));
        }
    }

    /// A stateless reset arrived. Its token decides whether it ends a connection.
    pub(super) fn handle_reset(&mut self, now: Time, arrival: &Arrival, datagram: &[u8]) {
        if !self.resets.may_check(now, arrival.tuple.remote) {
            self.tally.unknown += 1;
            return;
        }
        let mut slots = self.slots.iter_mut().enumerate();
        let found = slots.find_map(|(number, slot)| {
            let slot = slot.as_deref_mut()?;
            (slot.seal.is_reset(datagram) && slot.connection.has_path(&arrival.tuple)).then_some((number, slot))
        });
        let Some((number, slot)) = found else {
            self.tally.unknown += 1;
            return;
        };
        slot.connection.handle_stateless_reset();
        self.touch(number as u32);
    }
}

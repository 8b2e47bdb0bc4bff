//! What a host that speaks genuine TCP asks: middleboxes and routers are on its paths.

use super::Connection;
use crate::payload::Payload;
use crate::seq::SeqNumber;

impl<P: Payload> Connection<P> {
    /// The initial numbers of this end and the peer, if segments say their [`Extent`](crate::Extent): agreed by [`Config::extents`](crate::Config::extents).
    pub fn extents(&self) -> Option<(SeqNumber, SeqNumber)> {
        self.peer.has_extents.then(|| (self.sender.initial(), self.receiver.initial()))
    }

    /// Whether losses have cast doubt on the MTU of a path since the last call: a flight was lost, or a segment for the third time. In the TCP form the host
    /// decides what to do about it, by [`Paths::set_segment_max`](crate::Paths::set_segment_max).
    pub fn take_mtu_doubt(&mut self) -> bool {
        std::mem::take(&mut self.has_mtu_doubt)
    }

    /// Whether this end has asked for plain TCP in the end, as [`Config::stream_offers`](crate::Config::stream_offers) SYNs that asked for streams had no answer.
    pub fn has_withdrawn_offer(&self) -> bool {
        self.handshake.has_withdrawn(&self.config)
    }
}

//! The MTU of the path to each peer: what routers say ([rfc-1191], [rfc-8201]), and a guess where they say nothing.
//!
//! ```text
//!                 too big, about a segment in flight           10 minutes
//!  no limit ────────────────────────────────────────> known ─────────────> no limit
//!      └──────── two doubts, and nothing acknowledged ──^
//! ```
//!
//! A segment that was sent before the limit comes again in parts; of streams, the extents put them together. IPv4 packets forbid fragments, except to
//! peers whose path is said to carry less than [`LEAST_V4`].

use std::collections::BTreeMap;

use anabranch_proto::{FourTuple, PathId};
use anabranch_units::{Span, Time};

use super::{Socket, Stack};
use crate::packet;
use crate::socket::SocketId;

/// What is known of paths.
#[derive(Debug, Default)]
pub(super) struct Mtus(BTreeMap<u128, Mtu>);

/// What is known of the path to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mtu {
    /// Bytes of the largest packet.
    pub(super) packet: u32,
    /// Routers may fragment packets, as the path carries less than the least that we send.
    pub(super) may_fragment: bool,
    until: Time,
}

impl Mtu {
    /// No limit but that of the settings.
    pub(super) const NONE: Self = Self { packet: u32::MAX, may_fragment: false, until: Time::NEVER };
}

impl Mtus {
    /// The path to this address.
    pub(super) fn of(&self, address: u128) -> Mtu {
        self.0.get(&address).copied().unwrap_or(Mtu::NONE)
    }

    /// For tests: the number of addresses.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// When the next limit expires.
    pub(super) fn deadline(&self) -> Time {
        self.0.values().map(|mtu| mtu.until).min().unwrap_or(Time::NEVER)
    }
}

impl Stack {
    /// A router has dropped a packet of a connection that was longer than `told`; zero if it did not say how long it may be.
    pub(super) fn on_too_big(&mut self, now: Time, tuple: FourTuple, told: u32) {
        let is_v4 = tuple.local.is_ipv4();
        let told = if told == 0 { OLD_ROUTER } else { told };
        let least = if is_v4 { LEAST_V4 } else { LEAST_V6 };
        // An IPv6 path that carries less than the least needs a fragment header ([rfc-8200] sec. 5 no longer asks for it), and none is there.
        self.learn(now, tuple, told.max(least), is_v4 && told < least);
    }

    /// The losses of a connection cast doubt on the MTU. A segment that is lost three times by chance is not the only one in flight; where nothing was
    /// acknowledged from one doubt to the next, routers drop long packets and do not say so ([rfc-2923] sec. 2.1).
    pub(super) fn on_doubt(&mut self, now: Time, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let acked = socket.connection.acked();
        if socket.doubted.replace(acked) == Some(acked) && socket.mtu.packet > LEAST_V6 {
            let tuple = socket.tuple;
            self.learn(now, tuple, LEAST_V6, false);
        }
    }

    fn learn(&mut self, now: Time, tuple: FourTuple, packet: u32, may_fragment: bool) {
        let address = tuple.remote.address;
        let known = self.mtus.of(address);
        // A larger one than is known was said of an earlier packet.
        if packet >= known.packet && !may_fragment {
            return;
        }
        if self.mtus.0.len() >= KNOWN_MAX && !self.mtus.0.contains_key(&address) {
            self.mtus.0.pop_first();
        }
        self.mtus.0.insert(address, Mtu { packet, may_fragment, until: now + LIFE });
        self.apply_mtu(now, address);
    }

    /// Limits are forgotten after a while: the route may have become a better one.
    pub(super) fn expire_mtus(&mut self, now: Time) {
        while let Some((&address, _)) = self.mtus.0.iter().find(|(_, mtu)| mtu.until <= now) {
            self.mtus.0.remove(&address);
            self.apply_mtu(now, address);
        }
    }

    fn apply_mtu(&mut self, now: Time, address: u128) {
        let mtu = self.mtus.of(address);
        for socket in self.sockets.values_mut().filter(|socket| socket.tuple.remote.address == address) {
            socket.set_mtu(now, mtu);
        }
    }
}

impl Socket {
    pub(super) fn set_mtu(&mut self, now: Time, mtu: Mtu) {
        self.mtu = mtu;
        let headers = packet::header_len(self.tuple) + TCP_HEADER;
        let segment = mtu.packet.saturating_sub(headers as u32);
        self.connection.paths().set_segment_max(now, PathId::FIRST, segment);
    }
}

/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;

/// The least that we send to IPv4 peers, as common systems do: a forged message cannot make packets tiny.
const LEAST_V4: u32 = 552;

/// [rfc-8200] sec. 5: every IPv6 path carries so much; and so do nearly all of IPv4.
const LEAST_V6: u32 = 1280;

/// [rfc-1191] sec. 5: before it, routers did not say how long a packet may be. Most paths of then carry this one of its plateaus.
const OLD_ROUTER: u32 = 1006;

/// [rfc-1191] sec. 6.3: "once every 10 minutes".
const LIFE: Span = Span::from_secs(600);

/// Addresses with a known limit.
const KNOWN_MAX: usize = 1024;

//! What travels: packets, and where their bodies wait.

use anabranch_proto::EcnCodepoint;
use anabranch_units::SimTime;

use crate::id::Address;

/// What a packet says to the host that gets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Nothing but its number: traffic that only fills links.
    Raw(Raw),
    /// A packet of a one-way ns-2 agent.
    Ns2(anabranch_ns2::Packet),
    /// A packet of ns-2's SCTP. Its chunks are elsewhere, so that the others stay small.
    Sctp(Box<anabranch_ns2::sctp::Packet>),
    /// A segment of the transport, whose payload is a length. It is elsewhere for the same reason.
    Segment(Box<anabranch_proto::Segment<anabranch_proto::Virtual>>),
    /// One of several packets in which a segment of the transport goes.
    Fragment(Box<Fragment>),
}

/// A part of a segment that is too long for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Which segment it is, of those that went in parts.
    pub id: u64,
    /// In how many parts it goes.
    pub count: u32,
    /// All of it.
    pub segment: anabranch_proto::Segment<anabranch_proto::Virtual>,
}

/// A body is copied twice on its way. What one kind of packet needs, all of them carry: the largest is ns-2's.
const _: () = assert!(size_of::<Body>() == size_of::<anabranch_ns2::Packet>());

/// The body of a packet that only fills links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    /// Its number in its flow.
    pub seq: u64,
    /// When it was sent.
    pub sent_at: SimTime,
}

impl Body {
    /// The sequence number that traces show.
    pub fn seq(&self) -> i64 {
        match self {
            Self::Raw(raw) => raw.seq as i64,
            Self::Ns2(packet) => i64::from(packet.seq),
            Self::Sctp(packet) => packet.seq(),
            Self::Segment(segment) => i64::from(segment.header.seq.0),
            Self::Fragment(fragment) => i64::from(fragment.segment.header.seq.0),
        }
    }
}

/// Where the body of a packet waits.
pub(crate) type Handle = u32;

/// The bodies of all packets in the world. A body stays put from the sender to the receiver, and its place is used again, the
/// latest one first: it is still in the cache. So memory grows with the packets in flight and not with time.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    bodies: Vec<Body>,
    free: Vec<Handle>,
}

impl Slab {
    #[inline]
    pub(crate) fn insert(&mut self, body: Body) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.bodies[handle as usize] = body;
            return handle;
        }
        // Links hold a bounded number of packets, and there are fewer than 2^20 links; see `Link::PACKETS_MAX`.
        let handle = Handle::try_from(self.bodies.len()).expect("fewer than 2^32 packets are in flight");
        self.bodies.push(body);
        handle
    }

    #[inline]
    pub(crate) fn body(&self, handle: Handle) -> &Body {
        &self.bodies[handle as usize]
    }

    #[inline]
    pub(crate) fn body_mut(&mut self, handle: Handle) -> &mut Body {
        &mut self.bodies[handle as usize]
    }

    /// Gives the place back. The caller took the handle from a link, which forgot it, so nobody frees it twice.
    #[inline]
    pub(crate) fn release(&mut self, handle: Handle) {
        debug_assert!(self.free.len() < self.bodies.len(), "no place is free twice");
        self.free.push(handle);
    }

    /// Bodies that wait somewhere.
    pub(crate) fn len(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

/// What a link carries instead of the body. Two of them share a line of the cache, and the fields are packed into two words
/// by hand: so they travel in registers, and a field that changes does not have to be put together with the others in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The handle, and above it the size.
    what: u64,
    /// The leg, then 16 bits of address, then 14 of hops, then ECN's two.
    whither: u64,
}

/// A flow's number doubled, plus one on the way from the sink to the source.
pub(crate) type Leg = u32;

impl Flight {
    /// A packet that has passed no link yet.
    #[inline]
    pub(crate) const fn new(handle: Handle, size: u32, leg: Leg, to: Address) -> Self {
        Self { what: handle as u64 | (size as u64) << 32, whither: leg as u64 | (to.0 as u64) << 32 }
    }

    #[inline]
    pub(crate) const fn handle(self) -> Handle {
        self.what as u32
    }

    /// The same with another body.
    #[must_use]
    pub(crate) const fn with_handle(self, handle: Handle) -> Self {
        Self { what: self.what & !(u32::MAX as u64) | handle as u64, whither: self.whither }
    }

    /// Bytes on the wire.
    #[inline]
    pub(crate) const fn size(self) -> u32 {
        (self.what >> 32) as u32
    }

    /// The flow and its direction.
    #[inline]
    pub(crate) const fn leg(self) -> Leg {
        self.whither as u32
    }

    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.leg() >> 1
    }

    #[inline]
    pub(crate) const fn to(self) -> Address {
        Address((self.whither >> 32) as u16)
    }

    /// Links that it has passed, of which there are at most [`crate::HOPS_MAX`].
    #[inline]
    pub(crate) const fn hops(self) -> u16 {
        (self.whither >> 48) as u16 & HOPS
    }

    /// The same, with this in the two bits of ECN.
    #[inline]
    #[must_use]
    pub(crate) fn with_ecn(self, ecn: Option<EcnCodepoint>) -> Self {
        let bits = ecn.map_or(0, EcnCodepoint::bits);
        Self { what: self.what, whither: self.whither & !(0b11 << ECN_AT) | u64::from(bits) << ECN_AT }
    }

    /// What it says of ECN; nothing if it may not be marked.
    #[inline]
    pub(crate) const fn ecn(self) -> Option<EcnCodepoint> {
        EcnCodepoint::from_bits((self.whither >> ECN_AT) as u8)
    }

    /// The same, one link further.
    #[inline]
    #[must_use]
    pub(crate) const fn hop(self) -> Self {
        Self { what: self.what, whither: self.whither + (1 << 48) }
    }
}

/// Where ECN's bits are, and what is below them.
const ECN_AT: u32 = 62;
const HOPS: u16 = (1 << (ECN_AT - 48)) - 1;

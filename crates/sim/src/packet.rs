//! Packets, and the storage of their bodies.

use anabranch_proto::EcnCodepoint;
use anabranch_units::SimTime;

use crate::id::Address;

/// The content of a packet for the receiving host.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A bare number: traffic that only fills links.
    Raw(Raw),
    /// A packet of a one-way ns-2 agent.
    Ns2(anabranch_ns2::Packet),
    /// A packet of ns-2's SCTP, boxed so that other bodies stay small.
    Sctp(Box<anabranch_ns2::sctp::Packet>),
    /// A segment of the transport, whose payload is only a length; boxed for the same reason.
    Segment(Box<anabranch_proto::Segment<anabranch_proto::Virtual>>),
    /// One of several packets that carry a segment of the transport.
    Fragment(Box<Fragment>),
}

/// A fragment of a segment that is too long for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The number of the fragmented segment.
    pub id: u64,
    /// The number of its fragments.
    pub count: u32,
    /// The whole segment.
    pub segment: anabranch_proto::Segment<anabranch_proto::Virtual>,
}

/// A body is copied twice on its route. All have the size of the largest variant, ns-2's.
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

/// The slot of a packet's body.
pub(crate) type Handle = u32;

/// The bodies of all packets in the world. A body stays in its slot from sender to receiver. The slot freed last is reused first,
/// as it is in the cache. So memory grows with the packets in flight, not with time.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    bodies: Vec<Slot>,
    free: Vec<Handle>,
}

/// A slot for a body, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot(Body);

/// Of x86-64, and of most 64-bit ARM.
const CACHE_LINE: usize = 64;
const _: () = assert!(size_of::<Slot>() == CACHE_LINE);

impl Slab {
    // Inlined, it takes 2.1 % fewer instructions of `highspeed`.
    #[inline]
    pub(crate) fn insert(&mut self, body: Body) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.bodies[handle as usize].0 = body;
            return handle;
        }
        // The number of links and the packets per link are limited, so the handle fits 32 bits; see `PACKETS_PER_LINK_MAX`.
        let handle = Handle::try_from(self.bodies.len()).expect("fewer than 2^32 packets are in flight");
        self.bodies.push(Slot(body));
        handle
    }

    pub(crate) fn body(&self, handle: Handle) -> &Body {
        &self.bodies[handle as usize].0
    }

    pub(crate) fn body_mut(&mut self, handle: Handle) -> &mut Body {
        &mut self.bodies[handle as usize].0
    }

    /// Begins to fetch a body that is read soon, so that its reader need not wait for memory.
    pub(crate) fn touch(&self, handle: Handle) {
        std::hint::black_box(self.bodies.get(handle as usize).map(|place| std::mem::discriminant(&place.0)));
    }

    /// Frees a slot. The caller took the handle out of the link's queue, so a slot is freed only once.
    pub(crate) fn release(&mut self, handle: Handle) {
        debug_assert!(self.free.len() < self.bodies.len(), "no place is free twice");
        self.free.push(handle);
    }

    /// The number of stored bodies.
    pub(crate) fn len(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

/// A packet on a link, without its body. Two of them share a cache line. The fields are packed by hand into two words, so that
/// they are passed in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The handle (low bits) and the size.
    what: u64,
    /// The leg, then 16 bits of address, 14 bits of hop count, and 2 bits of ECN.
    whither: u64,
}

/// A flow and its direction: the flow's number times two, plus one for the direction from sink to source.
pub(crate) type Leg = u32;

impl Flight {
    /// A packet that has passed no link yet.
    pub(crate) const fn new(handle: Handle, size: u32, leg: Leg, to: Address) -> Self {
        Self { what: handle as u64 | (size as u64) << 32, whither: leg as u64 | (to.0 as u64) << 32 }
    }

    pub(crate) const fn handle(self) -> Handle {
        self.what as u32
    }

    /// The same packet with another body.
    #[must_use]
    pub(crate) const fn with_handle(self, handle: Handle) -> Self {
        Self { what: self.what & !(u32::MAX as u64) | handle as u64, whither: self.whither }
    }

    /// Bytes on the wire.
    pub(crate) const fn size(self) -> u32 {
        (self.what >> 32) as u32
    }

    /// The flow and its direction.
    pub(crate) const fn leg(self) -> Leg {
        self.whither as u32
    }

    pub(crate) const fn flow(self) -> u32 {
        self.leg() >> 1
    }

    pub(crate) const fn to(self) -> Address {
        Address((self.whither >> 32) as u16)
    }

    /// The number of links that it has passed, at most [`crate::HOPS_MAX`].
    pub(crate) const fn hops(self) -> u16 {
        (self.whither >> 48) as u16 & HOPS
    }

    /// The same packet with this ECN codepoint.
    #[must_use]
    pub(crate) fn with_ecn(self, ecn: Option<EcnCodepoint>) -> Self {
        let bits = ecn.map_or(0, EcnCodepoint::bits);
        Self { what: self.what, whither: self.whither & !(0b11 << ECN_AT) | u64::from(bits) << ECN_AT }
    }

    /// Its ECN codepoint; `None` if it may not be marked.
    pub(crate) const fn ecn(self) -> Option<EcnCodepoint> {
        EcnCodepoint::from_bits((self.whither >> ECN_AT) as u8)
    }

    /// The same packet with one more hop.
    #[must_use]
    pub(crate) const fn hop(self) -> Self {
        Self { what: self.what, whither: self.whither + (1 << 48) }
    }
}

/// The position of the ECN bits, and the mask below them.
const ECN_AT: u32 = 62;
const HOPS: u16 = (1 << (ECN_AT - 48)) - 1;

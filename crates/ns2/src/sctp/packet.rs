//! The wire: packets of chunks. Sizes are those of ns-2's structures, which are RFC 4960's but for an empty cookie and an INIT
//! that always carries the parameter of unreliable streams.

use anabranch_units::SimTime;

/// Bytes of the headers of IP and SCTP (`ipHeaderSize_`, and the common header of 12).
pub(crate) const HEADERS: u32 = 32;

/// A packet between two endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The interface of the sender that it left by, which answers go to.
    pub source: u8,
    /// Its chunks, at least one.
    pub chunks: Vec<Chunk>,
}

/// A part of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// The first step of the handshake: requests an association.
    Init(Greeting),
    /// The second step of the handshake: grants the association.
    InitAck(Greeting),
    /// The third step of the handshake.
    CookieEcho,
    /// The fourth step of the handshake.
    CookieAck,
    /// User data of one stream.
    Data(Data),
    /// An acknowledgement with gap blocks.
    Sack(Sack),
    /// Probes a destination.
    Heartbeat(Heartbeat),
    /// The answer to a heartbeat.
    HeartbeatAck(Heartbeat),
}

/// The parameters of an end in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Bytes that the receive buffer holds.
    pub window: u32,
    /// The number of outgoing streams.
    pub streams: u16,
}

/// A chunk of user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its number in the association, from 1.
    pub tsn: u32,
    /// Its stream, from 0.
    pub stream: u16,
    /// Its number in the stream, from 0, modulo 2^16.
    pub ssn: u16,
    /// Bytes with its header, without padding.
    pub length: u32,
    /// Whether it need not wait for others.
    pub unordered: bool,
    /// When it was sent for the first time: what the papers measure delay from.
    pub first_sent_at: SimTime,
}

/// An acknowledgement with gap blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// The cumulative TSN: everything up to it has arrived.
    pub cumulative: u32,
    /// Bytes that still fit the receive buffer.
    pub window: u32,
    /// Data packets since the last SACK, in CMT (its flags).
    pub packets: u8,
    /// First and last of the blocks above, from `cumulative`.
    pub gaps: Vec<(u16, u16)>,
    /// Chunks that came twice: nobody reads which, but each weighs four bytes.
    pub duplicates: u32,
}

/// A question to a destination, or its answer: a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heartbeat {
    /// When it was asked, by the asker's clock in seconds.
    pub sent_s: f64,
    /// Which destination of the asker it is about.
    pub destination: u8,
}

impl Packet {
    /// Bytes on the wire.
    pub fn size(&self) -> u32 {
        HEADERS + self.chunks.iter().map(Chunk::size).sum::<u32>()
    }

    /// The number that ns-2 traces of its first chunk: of data the TSN, of a SACK the cumulative one, else -1.
    pub fn seq(&self) -> i64 {
        match self.chunks.first() {
            Some(Chunk::Data(data)) => data.tsn.into(),
            Some(Chunk::Sack(sack)) => sack.cumulative.into(),
            _ => -1,
        }
    }
}

impl Chunk {
    /// Bytes with padding.
    pub fn size(&self) -> u32 {
        match self {
            Self::Init(_) | Self::InitAck(_) => 24,
            Self::CookieEcho | Self::CookieAck => 4,
            Self::Data(data) => data.size(),
            Self::Sack(sack) => Sack::HEADER + Sack::ENTRY * (sack.gaps.len() as u32 + sack.duplicates),
            Self::Heartbeat(_) | Self::HeartbeatAck(_) => 24,
        }
    }
}

impl Data {
    /// Bytes before the payload.
    pub const HEADER: u32 = 16;

    /// Bytes with padding.
    pub const fn size(&self) -> u32 {
        self.length.next_multiple_of(4)
    }

    /// Bytes of user data.
    pub const fn payload(&self) -> u32 {
        self.length - Self::HEADER
    }
}

impl Sack {
    /// Bytes without blocks.
    pub(crate) const HEADER: u32 = 16;
    /// Bytes of a block or of a duplicate.
    pub(crate) const ENTRY: u32 = 4;
}

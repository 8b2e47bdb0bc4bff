//! The wire format: packets of chunks. Sizes are those of ns-2's structures. They equal RFC 4960's, but the cookie is empty and
//! an INIT always carries the parameter of unreliable streams.

use anabranch_units::SimTime;

/// Bytes of the headers of IP (`ipHeaderSize_`) and of SCTP (the common header, 12).
pub(crate) const HEADERS: u32 = 32;

/// A packet between two endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The index of the sender's interface, to which answers go.
    pub source: u8,
    /// Its chunks, at least one.
    pub chunks: Vec<Chunk>,
}

/// A chunk of a packet.
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

/// The parameters that an end announces in the handshake.
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
    /// The number in the association (TSN), from 1.
    pub tsn: u32,
    /// The stream, from 0.
    pub stream: u16,
    /// The number in the stream (SSN), from 0, modulo 2^16.
    pub ssn: u16,
    /// Bytes with the chunk header, without padding.
    pub length: u32,
    /// Whether the chunk may be delivered without those before it.
    pub unordered: bool,
    /// When it was first sent: the papers measure delay from here.
    pub first_sent_at: SimTime,
}

/// An acknowledgement with gap blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// The cumulative TSN: everything up to it has arrived.
    pub cumulative: u32,
    /// Free receive buffer in bytes (advertised receiver window credit).
    pub window: u32,
    /// CMT: data packets since the last SACK, carried in the chunk flags.
    pub packets: u8,
    /// First and last TSN of each gap block, as offsets from `cumulative`.
    pub gaps: Vec<(u16, u16)>,
    /// Number of duplicate TSNs reported. No receiver reads the TSNs, but each counts four bytes.
    pub duplicates: u32,
}

/// A heartbeat, or its answer, which is a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heartbeat {
    /// When the heartbeat was sent, by its sender's clock in seconds.
    pub sent_s: f64,
    /// The index of the probed destination at the heartbeat's sender.
    pub destination: u8,
}

impl Packet {
    /// Bytes on the wire.
    pub fn size(&self) -> u32 {
        HEADERS + self.chunks.iter().map(Chunk::size).sum::<u32>()
    }

    /// The number that ns-2 traces, from the first chunk: the TSN of data, the cumulative TSN of a SACK, else -1.
    pub fn seq(&self) -> i64 {
        match self.chunks.first() {
            Some(Chunk::Data(data)) => data.tsn.into(),
            Some(Chunk::Sack(sack)) => sack.cumulative.into(),
            _ => -1,
        }
    }
}

impl Chunk {
    /// Bytes on the wire, padding included.
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

    /// Bytes on the wire, padding included.
    pub const fn size(&self) -> u32 {
        self.length.next_multiple_of(4)
    }

    /// Bytes of user data.
    pub const fn payload(&self) -> u32 {
        self.length - Self::HEADER
    }
}

impl Sack {
    /// Bytes of a SACK without blocks.
    pub(crate) const HEADER: u32 = 16;
    /// Bytes of a gap block or of a duplicate TSN.
    pub(crate) const ENTRY: u32 = 4;
}

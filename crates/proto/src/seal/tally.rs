//! Counters of datagrams.

/// Counters of a seal's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealTally {
    /// Datagrams that were sealed.
    pub sealed: u64,
    /// Segments sent as fragments.
    pub fragmented: u64,
    /// Datagrams that were opened.
    pub opened: u64,
    /// Datagrams opened whose content is unknown to this version.
    pub ignored: u64,
    /// Changes of the session keys.
    pub rekeyed: u64,
    refused: [u64; Refusal::ALL.len()],
}

/// Why a datagram is refused. The peer is never informed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a datagram of this protocol.
    Malformed,
    /// The index is unknown, or no longer valid.
    UnknownSession,
    /// A replay, or a counter below the replay window.
    Replayed,
    /// The authentication tag is wrong.
    Forged,
    /// Not expected in the current state.
    Unexpected,
    /// Authentic, but the segment in it is malformed.
    NoSegment,
    /// No data cipher in common.
    NoCipher,
    /// Too many failed openings.
    Exhausted,
    /// Beyond the rate limit of handshakes.
    TooMany,
}

/// Why a segment cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The keys are missing or not confirmed: only the handshake may be sent.
    NotReady,
    /// The peer's public key is invalid: anybody could read data sealed for it.
    NoKey,
    /// The address is not validated, and the anti-amplification limit is reached.
    NotAllowed,
    /// The keys have reached their limit of datagrams.
    Exhausted,
    /// The segment is longer than 65,535 bytes, or the path's datagrams are below 108 bytes.
    TooLong,
}

impl SealTally {
    /// The number of datagrams refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    pub(super) fn count(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }
}

impl Refusal {
    /// Every reason for a refusal.
    pub const ALL: [Self; 9] = [
        Self::Malformed,
        Self::UnknownSession,
        Self::Replayed,
        Self::Forged,
        Self::Unexpected,
        Self::NoSegment,
        Self::NoCipher,
        Self::Exhausted,
        Self::TooMany,
    ];
}

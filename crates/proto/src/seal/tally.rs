//! What became of datagrams.

/// What happened to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealTally {
    /// Datagrams that were sealed.
    pub sealed: u64,
    /// Segments that took several datagrams.
    pub fragmented: u64,
    /// Datagrams that were opened.
    pub opened: u64,
    /// Datagrams that were opened and hold something that this version does not know.
    pub ignored: u64,
    /// How often the keys were replaced.
    pub rekeyed: u64,
    refused: [u64; Refusal::ALL.len()],
}

/// Why a datagram is not accepted. Nobody is told but the owner of the tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is none of our datagrams.
    Malformed,
    /// It names keys that we do not have, or no more.
    UnknownSession,
    /// It came before, or is too old to tell.
    Replayed,
    /// It was not made with the key.
    Forged,
    /// Nothing of its kind is expected now.
    Unexpected,
    /// It is authentic, but what should be a segment is none.
    NoSegment,
    /// There is no cipher that both ends have.
    NoCipher,
    /// Too many forgeries came.
    Exhausted,
    /// More handshakes are asked for than are calculated.
    TooMany,
}

/// Why a segment cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The keys are not there, or the peer has not shown that it has them: only the handshake may be sent.
    NotReady,
    /// The peer's public key is none: anybody could know what is sealed for it.
    NoKey,
    /// The address is not validated and three times what came from it has been sent.
    NotAllowed,
    /// The keys have sealed all that they may.
    Exhausted,
    /// It is longer than 65,535 bytes, or the path takes less than 108 bytes in a datagram.
    TooLong,
}

impl SealTally {
    /// How many datagrams were refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    pub(super) fn count(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }
}

impl Refusal {
    /// All of them.
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

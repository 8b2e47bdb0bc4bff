//! Settings of a seal.

use anabranch_units::Span;

use super::cipher::CipherPreference;

/// The settings of a connection's seal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealConfig {
    /// The ciphers, the preferred one first.
    pub ciphers: CipherPreference,
    /// Whether and how padding hides the lengths of segments.
    pub padding: Padding,
    /// When keys are replaced, and their limits.
    pub limits: Limits,
}

/// Padding of data datagrams, in addition to what the transport requests. No datagram becomes larger than its path allows, and
/// one that is less than 8 bytes below that size is not padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Datagrams are not padded.
    #[default]
    None,
    /// To a multiple of this many bytes: few lengths remain distinguishable.
    Multiple(u16),
    /// To the largest datagram of the path.
    Full,
}

/// When keys are replaced, and their limits. The cipher's own limits always apply, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The age at which keys are replaced, with the next datagram.
    pub rekey_after: Span,
    /// The number of datagrams sealed in one direction after which keys are replaced.
    pub rekey_after_messages: u64,
    /// The delay of the first retransmission of a request for keys; it doubles each time.
    pub rekey_retry: Span,
    /// The longest delay of a retransmission.
    pub rekey_retry_max: Span,
    /// The shortest interval between two replacements.
    pub rekey_interval: Span,
    /// The time for which replaced keys still open late datagrams.
    pub keep_previous: Span,
    /// The largest number of datagrams sealed with one key.
    pub messages: u64,
    /// The number of failed openings after which a session opens nothing more.
    pub forgeries: u64,
}

impl Padding {
    /// The least length of a datagram that has `len` bytes without padding, and `header` bytes more with padding.
    pub(super) fn least(self, len: usize, header: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Multiple(step) => {
                let step = usize::from(step.max(1));
                if len.is_multiple_of(step) { len } else { (len + header).next_multiple_of(step) }
            }
            Self::Full => usize::MAX,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // WireGuard's value.
            rekey_after: Span::from_secs(120),
            // The cipher's limit applies.
            rekey_after_messages: u64::MAX,
            // Five attempts before AES-GCM's keys are used up, at a million datagrams per second.
            rekey_retry: Span::from_millis(250),
            rekey_retry_max: Span::from_secs(5),
            // A handshake takes 0.4 ms: less than a thousandth of a core for each connection.
            rekey_interval: Span::from_secs(1),
            // Twice the assumed packet lifetime in the Internet, which is far more than any path needs.
            keep_previous: Span::from_secs(10),
            messages: u64::MAX,
            forgeries: u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lengths_are_left() {
        let least = |len| Padding::Multiple(128).least(len, 8);
        assert_eq!([least(1), least(120), least(121), least(128), least(129)], [128, 128, 256, 128, 256]);
        assert_eq!((Padding::None.least(77, 8), Padding::Multiple(0).least(77, 8)), (0, 77));
    }
}

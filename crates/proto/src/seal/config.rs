//! What the owner of a seal decides.

use anabranch_units::Span;

use super::cipher::CipherPreference;

/// How a connection is sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealConfig {
    /// The ciphers that there are, the best one first.
    pub ciphers: CipherPreference,
    /// Whether datagrams hide how much is in them.
    pub padding: Padding,
    /// When keys are replaced, and what ends them.
    pub limits: Limits,
}

/// How long datagrams with data are made, besides what the transport asks for. None gets longer than its path allows, and one that
/// fills its path but for less than 8 bytes stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// As long as it takes.
    #[default]
    None,
    /// A multiple of so many bytes: few lengths are left to be told apart.
    Multiple(u16),
    /// All of the same length: the most that the path takes.
    Full,
}

/// When keys are replaced, and what ends them. Whatever is said here, no key is used more often than its cipher allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Keys of this age are replaced at the next datagram.
    pub rekey_after: Span,
    /// Keys with which so many datagrams were sealed in one direction are replaced.
    pub rekey_after_messages: u64,
    /// After so long an unanswered request for keys is sent again, then after twice as long each time.
    pub rekey_retry: Span,
    /// It is sent again after this long at the latest.
    pub rekey_retry_max: Span,
    /// The responder makes keys no more often than this, and the initiator does not ask more often.
    pub rekey_interval: Span,
    /// How long replaced keys still open what is late.
    pub keep_previous: Span,
    /// No more datagrams are sealed with one key.
    pub messages: u64,
    /// After so many forgeries nothing more is opened.
    pub forgeries: u64,
}

impl Padding {
    /// The least length of a datagram that has `len` bytes as it is, and `header` more if it is padded.
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
            // WireGuard's.
            rekey_after: Span::from_secs(120),
            // That of the cipher.
            rekey_after_messages: u64::MAX,
            // Five times before AES-GCM's keys are used up at a million datagrams a second.
            rekey_retry: Span::from_millis(250),
            rekey_retry_max: Span::from_secs(5),
            // A handshake takes 0.4 ms: less than a thousandth of a core for each connection.
            rekey_interval: Span::from_secs(1),
            // Twice what is called the longest life of a packet in the Internet is far more than any path takes.
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

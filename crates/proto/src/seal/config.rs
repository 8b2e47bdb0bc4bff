//! Settings of seals and listeners.

use anabranch_units::Span;

use super::buckets::Pace;
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

/// The limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Half-open connections at a time. From half of this number on, a cookie is requested. At the limit the oldest is evicted.
    pub half_open: usize,
    /// The time for which a half-open connection counts, unless it is released earlier.
    pub half_open_for: Span,
    /// The rate of handshakes without a cookie. Beyond it a cookie is requested.
    pub unproven: Pace,
    /// The rate of handshakes with a cookie. Beyond it initiations are dropped.
    pub proven: Pace,
    /// Either rate for one network: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub each_network: Pace,
    /// The number of public keys whose timestamps are remembered, against replayed initiations.
    pub clients: usize,
    /// The seal of each connection.
    pub connection: SealConfig,
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

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            // A half-open seal takes about 2 kB.
            half_open: 4096,
            // A SYN is retransmitted after 1, 3, 7, 15 and 31 s. A client that has not succeeded by then starts a new connection.
            half_open_for: Span::from_secs(60),
            // A handshake takes 0.2 ms: this is a tenth of a core without cookies,
            unproven: Pace { per_second: 500, burst: 500 },
            // and 40 % with cookies. A half-open connection then lives for 2 s, longer than a handshake takes.
            proven: Pace { per_second: 2000, burst: 2000 },
            // WireGuard's rate; the burst allows many connections at once.
            each_network: Pace { per_second: 20, burst: 50 },
            // At most 1 kB each.
            clients: 8192,
            connection: SealConfig::default(),
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

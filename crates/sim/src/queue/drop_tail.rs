//! Drop-tail: first in, first out; a packet that finds the queue full is lost.
//!
//! Two ways of counting, both ns-2.35's:
//!
//! * packets: a packet is lost if `waiting + 1 >= limit`. The packet in transmission does not wait, so a limit of n allows n - 1
//!   waiting and one in service. A limit of 1 loses everything, because the test applies even to an idle transmitter.
//! * bytes: a packet is lost if `waiting + size > limit`. ns-2 writes `>=` here and multiplies a limit in packets by a mean size.
//!   With a limit in bytes there is no reason to refuse the last byte.

use super::Backlog;

/// A limit on waiting packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DropTail {
    packets: u64,
    bytes: u64,
}

impl DropTail {
    /// No bound.
    pub(crate) const UNLIMITED: Self = Self { packets: u64::MAX, bytes: u64::MAX };

    /// At most `limit` packets, including the one in service.
    pub(crate) const fn packets(limit: u32) -> Self {
        Self { packets: limit as u64, bytes: u64::MAX }
    }

    /// At most `limit` waiting bytes.
    pub(crate) const fn bytes(limit: u64) -> Self {
        Self { packets: u64::MAX, bytes: limit }
    }

    /// Whether a packet of `size` bytes is accepted.
    #[inline]
    pub(crate) const fn admits(self, size: u32, backlog: Backlog) -> bool {
        backlog.packets + 1 < self.packets && backlog.bytes.saturating_add(size as u64) <= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(packets: u64, bytes: u64) -> Backlog {
        Backlog { packets, bytes, idle: None }
    }

    #[test]
    fn a_limit_of_ten_lets_nine_wait() {
        assert!(DropTail::packets(10).admits(1000, waiting(8, 8000)));
        assert!(!DropTail::packets(10).admits(1000, waiting(9, 9000)));
    }

    #[test]
    fn a_limit_of_one_lets_nothing_pass() {
        assert!(!DropTail::packets(1).admits(1000, waiting(0, 0)));
        assert!(DropTail::packets(2).admits(1000, waiting(0, 0)));
    }

    #[test]
    fn a_limit_in_bytes_is_filled_to_the_last() {
        assert!(DropTail::bytes(3000).admits(1000, waiting(2, 2000)));
        assert!(!DropTail::bytes(3000).admits(1001, waiting(2, 2000)));
    }
}

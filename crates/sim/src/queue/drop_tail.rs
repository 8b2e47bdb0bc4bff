//! Drop-tail: first in, first out; a packet that finds the queue full is lost.
//!
//! Two ways of counting, both ns-2.35's:
//!
//! * packets: a packet is lost if `waiting + 1 >= limit`. The packet in transmission does not wait, so a limit of n allows n - 1
//!   waiting and one in service. A limit of 1 loses everything, because the test applies even to an idle transmitter.
//! * bytes: a packet is lost if `waiting + size > limit`. ns-2 writes `>=` here and multiplies a limit in packets by a mean size.
//!   With a limit in bytes there is no reason to refuse the last byte.

use anabranch_units::settings::{Fields, Flaw};

use super::{Admission, Backlog, Discipline, Queue, Site};

/// The limit of a drop-tail queue: one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropTailParameters {
    /// The limit in packets, the one in service included: at least 2.
    pub packets: Option<u32>,
    /// The limit in waiting bytes.
    pub bytes: Option<u64>,
}

impl Discipline for DropTailParameters {
    const WORD: &'static str = "drop_tail";
    const SYNONYMS: &'static [&'static str] = &["fifo", "pfifo", "tail_drop"];
    const HELP: &'static str = "First in, first out; packets that find it full are dropped. One of the two limits.";

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "The limit in packets, the one in service included: ns-2's `queue-limit`. At least 2";
        fields.size(2).packets("packets", &mut self.packets, help);
        fields.size(1).bytes("bytes", &mut self.bytes, "The limit in waiting bytes, without the packet in service");
    }

    fn check(&self) -> Result<(), Flaw> {
        match (self.packets, self.bytes) {
            (Some(packets), _) if packets < 2 => Err(too_short()),
            (Some(_), None) => Ok(()),
            (None, Some(bytes)) if bytes > 0 => Ok(()),
            _ => {
                let message = "a drop_tail queue needs one limit, above nothing";
                Err(Flaw::new("", message, "write packets = 50 or bytes = \"75kB\""))
            }
        }
    }

    fn build(&self, _: &Site<'_>) -> Queue {
        let packets = self.packets.map_or(u64::MAX, u64::from);
        Queue::Admission(Admission::DropTail(DropTail { packets, bytes: self.bytes.unwrap_or(u64::MAX) }))
    }
}

/// The flaw of a limit of one packet.
pub(super) fn too_short() -> Flaw {
    let message = "a queue of 1 packet drops everything: ns-2 counts the one in service";
    Flaw::new("packets", message, "use 2 packets or more")
}

/// A drop-tail queue without a limit, up to [`crate::PACKETS_PER_LINK_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlimited;

impl Discipline for Unlimited {
    const WORD: &'static str = "unlimited";
    const SYNONYMS: &'static [&'static str] = &["infinite"];
    const HELP: &'static str = "First in, first out, without a limit.";

    fn visit(&mut self, _: &mut Fields<'_>) {}

    fn build(&self, _: &Site<'_>) -> Queue {
        Queue::Admission(Admission::DropTail(DropTail { packets: u64::MAX, bytes: u64::MAX }))
    }
}

/// A limit on waiting packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DropTail {
    packets: u64,
    bytes: u64,
}

impl DropTail {
    /// Whether a packet of `size` bytes is accepted.
    pub(crate) const fn admits(self, size: u32, backlog: Backlog) -> bool {
        backlog.packets + 1 < self.packets && backlog.bytes.saturating_add(size as u64) <= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(packets: u64) -> DropTail {
        DropTail { packets, bytes: u64::MAX }
    }

    fn bytes(bytes: u64) -> DropTail {
        DropTail { packets: u64::MAX, bytes }
    }

    fn waiting(packets: u64, bytes: u64) -> Backlog {
        Backlog { packets, bytes }
    }

    #[test]
    fn a_limit_of_ten_lets_nine_wait() {
        assert!(packets(10).admits(1000, waiting(8, 8000)));
        assert!(!packets(10).admits(1000, waiting(9, 9000)));
    }

    #[test]
    fn a_limit_of_one_lets_nothing_pass() {
        assert!(!packets(1).admits(1000, waiting(0, 0)));
        assert!(packets(2).admits(1000, waiting(0, 0)));
    }

    #[test]
    fn a_limit_in_bytes_is_filled_to_the_last() {
        assert!(bytes(3000).admits(1000, waiting(2, 2000)));
        assert!(!bytes(3000).admits(1001, waiting(2, 2000)));
    }
}

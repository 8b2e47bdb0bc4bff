//! A marking threshold, as DCTCP requires of a switch (RFC 8257, section 3.1; Alizadeh et al., SIGCOMM 2010): a drop-tail queue
//! that marks a packet if more than the threshold waits when it arrives.
//!
//! ```text
//!   waiting > limit        drop
//!   waiting > threshold    mark if the packet is ECN-capable, else drop: as RED with both thresholds equal
//!   else                   accept
//! ```
//!
//! Differs from the RFC in: nothing that the RFC requires. The packet in transmission does not count as waiting. A threshold in
//! time is converted to bytes at the link's own rate.

use anabranch_units::{PICO, Rate, SimSpan};

use super::{Backlog, Verdict};

/// The parameters of a queue with a marking threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepParameters {
    /// The limit of waiting packets, counted as in [`super::QueueSpec::Packets`].
    pub packets_max: u32,
    /// The marking threshold.
    pub threshold: Threshold,
}

/// A marking threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Mark if more than this number of packets waits.
    Packets(u32),
    /// Mark if more than this number of bytes waits.
    Bytes(u64),
    /// Mark if the transmission of the waiting packets takes longer than this.
    Time(SimSpan),
}

impl StepParameters {
    pub(crate) fn is_valid(&self) -> bool {
        self.packets_max > 0
    }
}

/// The thresholds of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    packets_max: u64,
    /// A packet is marked above either threshold.
    packets: u64,
    bytes: u64,
}

impl Step {
    /// The queue of a link with this rate.
    pub(crate) fn new(StepParameters { packets_max, threshold }: StepParameters, rate: Rate) -> Self {
        let (packets, bytes) = match threshold {
            Threshold::Packets(packets) => (packets.into(), u64::MAX),
            Threshold::Bytes(bytes) => (u64::MAX, bytes),
            Threshold::Time(span) => {
                let bytes = u128::from(rate.bits_per_second()) * u128::from(span.ticks()) / (8 * u128::from(PICO));
                (u64::MAX, u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        };
        Self { packets_max: packets_max.into(), packets, bytes }
    }

    /// The verdict on a packet; `is_capable` says whether it may be marked. Not inlined, because drop-tail links share the
    /// calling code.
    #[inline(never)]
    pub(crate) fn admits(&self, backlog: Backlog, is_capable: bool) -> Verdict {
        let is_above = backlog.packets > self.packets || backlog.bytes > self.bytes;
        match (backlog.packets + 1 < self.packets_max, is_above, is_capable) {
            (true, false, _) => Verdict::Take,
            (true, true, true) => Verdict::Mark,
            (true, true, false) | (false, ..) => Verdict::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(threshold: Threshold, is_capable: bool) -> [Verdict; 4] {
        let step = Step::new(StepParameters { packets_max: 10, threshold }, Rate::from_bits_per_second(8_000_000));
        [4, 5, 8, 9].map(|packets| step.admits(Backlog { packets, bytes: 1000 * packets, idle: None }, is_capable))
    }

    /// At 8 Mbit/s, 4 kB take 4 ms.
    #[test]
    fn it_marks_above_its_threshold_and_drops_above_its_limit() {
        use Verdict::{Drop, Mark, Take};
        for threshold in [Threshold::Packets(4), Threshold::Bytes(4000), Threshold::Time(SimSpan::from_millis(4))] {
            assert_eq!(verdicts(threshold, true), [Take, Mark, Mark, Drop], "{threshold:?}");
            assert_eq!(verdicts(threshold, false), [Take, Drop, Drop, Drop], "{threshold:?}");
        }
    }
}

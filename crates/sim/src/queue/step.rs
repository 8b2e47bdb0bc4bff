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

use anabranch_units::settings::{Fields, Flaw};
use anabranch_units::{PICO, Rate, SimSpan};

use super::drop_tail::too_short;
use super::{Admission, Admits, Backlog, Discipline, Queue, Site, Verdict};

/// The parameters of a queue with a marking threshold: one of the three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepParameters {
    /// The limit of waiting packets, counted as in [`super::QueueSpec::packets`].
    pub packets_max: u32,
    /// Mark if more than this number of packets waits.
    pub mark_packets: Option<u32>,
    /// Mark if more than this number of bytes waits.
    pub mark_bytes: Option<u64>,
    /// Mark if the transmission of the waiting packets takes longer than this.
    pub mark_delay: Option<SimSpan>,
}

impl Discipline for StepParameters {
    const WORD: &'static str = "step";
    const HELP: &'static str = "First in, first out with a marking threshold, as DCTCP needs it (RFC 8257): a packet that arrives at a longer \
        queue is marked, or dropped if it is not ECN-capable. A SYN is not ECN-capable, so it may not get through while there is a standing \
        queue (section 3.5). One of the three thresholds.";

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "The limit in packets, as with `drop_tail`";
        fields.required().size(2).packets("packets", &mut self.packets_max, help);
        fields.size(1).packets("mark_packets", &mut self.mark_packets, "The threshold in waiting packets");
        fields.size(0).bytes("mark_bytes", &mut self.mark_bytes, "The threshold in waiting bytes");
        let help = "The threshold as the transmission time of the waiting bytes at the rate of the link";
        fields.size(0).time("mark_delay", &mut self.mark_delay, help);
    }

    fn check(&self) -> Result<(), Flaw> {
        if self.packets_max < 2 {
            return Err(too_short());
        }
        match (self.mark_packets, self.mark_bytes, self.mark_delay) {
            (Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_)) => Ok(()),
            _ => {
                let remedy = "write mark_packets = 20, mark_bytes = \"30kB\" or mark_delay = \"1ms\"";
                Err(Flaw::new("", "a step queue needs one threshold", remedy))
            }
        }
    }

    fn build(&self, site: &Site<'_>) -> Queue {
        Queue::Admission(Admission::Other(Box::new(Step::new(*self, site.rate))))
    }
}

/// The thresholds of a queue.
#[derive(Clone, Copy, Debug)]
struct Step {
    packets_max: u64,
    /// A packet is marked above either threshold.
    packets: u64,
    bytes: u64,
}

impl Step {
    /// The queue of a link with this rate.
    fn new(parameters: StepParameters, rate: Rate) -> Self {
        let sent = |span: SimSpan| {
            let bytes = u128::from(rate.bits_per_second()) * u128::from(span.ticks()) / (8 * u128::from(PICO));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        Self {
            packets_max: parameters.packets_max.into(),
            packets: parameters.mark_packets.map_or(u64::MAX, u64::from),
            bytes: parameters.mark_bytes.or(parameters.mark_delay.map(sent)).unwrap_or(u64::MAX),
        }
    }
}

impl Admits for Step {
    fn admits(&mut self, _size: u32, backlog: Backlog, _: Option<SimSpan>, is_capable: bool) -> Verdict {
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

    fn verdicts(threshold: StepParameters, is_capable: bool) -> [Verdict; 4] {
        let parameters = StepParameters { packets_max: 10, ..threshold };
        let mut step = Step::new(parameters, Rate::from_bits_per_second(8_000_000));
        [4, 5, 8, 9].map(|packets| step.admits(1000, Backlog { packets, bytes: 1000 * packets }, None, is_capable))
    }

    /// At 8 Mbit/s, 4 kB take 4 ms.
    #[test]
    fn it_marks_above_its_threshold_and_drops_above_its_limit() {
        use Verdict::{Drop, Mark, Take};
        let none = StepParameters::default();
        for threshold in [
            StepParameters { mark_packets: Some(4), ..none },
            StepParameters { mark_bytes: Some(4000), ..none },
            StepParameters { mark_delay: Some(SimSpan::from_millis(4)), ..none },
        ] {
            assert_eq!(verdicts(threshold, true), [Take, Mark, Mark, Drop], "{threshold:?}");
            assert_eq!(verdicts(threshold, false), [Take, Drop, Drop, Drop], "{threshold:?}");
        }
    }
}

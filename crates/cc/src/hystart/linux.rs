//! HyStart as Linux' CUBIC has it: slow start ends at once when a round's ACKs take half a round trip, or when the RTT rises.
//!
//! ```text
//! w ← w + acknowledged, and from 16 segments on ssthresh ← w when either holds:
//!   ACK train:  ACKs since the round began, none more than 2 ms after the one before, span more than half of the least RTT
//!   delay:      the round has more than 8 samples, whose least > RTTmin + clamp(RTTmin/8, 4 ms, 16 ms)
//! ```
//!
//! Citation: `hystart_update` of Linux 6.18 (`net/ipv4/tcp_cubic.c`).
//!
//! Differs from Linux in:
//! * A train has to be half a round trip long, Linux' rule for senders that do not pace. Linux waits for a whole one if the sender paces.
//! * Linux adds the time of four of its largest bursts, at most 1 ms, to the round trip. Here there are none.

use anabranch_units::{Span, Time};

use crate::controller::{Ack, PathView};

/// The part of a law that watches the ACKs of its first slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Linux {
    /// When this round and its train of ACKs began, and the train's last ACK. `None` before the first ACK of a round.
    train: Option<(Time, Time)>,
    /// The least RTT of this round, and the number of its samples.
    least: Option<Span>,
    samples: u32,
}

impl Linux {
    /// Handles an ACK in slow start, at a window in segments. Returns whether slow start ends with it.
    pub(crate) fn on_ack(&mut self, path: &PathView, ack: &Ack, window: f64) -> bool {
        let (begin, last) = *self.train.get_or_insert((path.now, path.now));
        let Some(rtt) = ack.rtt else { return false };
        let shortest = path.rtt_min.unwrap_or(rtt);
        let is_in_train = path.now.since(last) <= GAP;
        if is_in_train {
            self.train = Some((begin, path.now));
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        self.samples += 1;
        let is_long = is_in_train && path.now.since(begin) > shortest / 2;
        let has_risen = self.samples > SAMPLES
            && least > shortest.saturating_add((shortest / 8).clamp(super::RISE_LEAST, super::RISE_MOST));
        window >= WINDOW_LEAST && (is_long || has_risen)
    }

    pub(crate) fn on_round(&mut self) {
        *self = Self::default();
    }
}

/// Linux' `hystart_ack_delta_us`.
const GAP: Span = Span::from_millis(2);

/// Linux' `hystart_low_window`.
const WINDOW_LEAST: f64 = 16.0;

/// Linux' `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;

//! Proportional rate reduction (PRR): how much may be sent during a recovery.
//!
//! ```text
//! start of a recovery:           RecoverFS ← flight before it; prr_delivered, prr_out ← 0
//! each ACK, of DeliveredData:    prr_delivered ← prr_delivered + DeliveredData
//!   inflight > ssthresh:         sndcnt ← ⌈prr_delivered · ssthresh / RecoverFS⌉ − prr_out
//!   else:                        sndcnt ← max(prr_delivered − prr_out, DeliveredData), and a segment more if the ACK is safe;
//!                                at most ssthresh − inflight
//! each segment sent:             prr_out ← prr_out + its size
//! ```
//!
//! If the window is halved at once, nothing is sent for half of a round trip. With PRR each ACK releases its share, so the flight
//! falls evenly. After heavy losses no more is sent than arrives, plus one segment for an ACK that shows progress of the
//! recovery.
//!
//! Citation: rfc-9937 sec. 6, in bytes; ⌈ ⌉ rounds up to whole segments. Differs from it in: the RFC keeps cwnd = inflight +
//! sndcnt until the next ACK, here only sndcnt is kept. With the RFC's rule, a loss detected by time between two ACKs would make
//! room without an arrival.

use crate::seq::Offset;

/// The allowance during one recovery, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prr {
    /// The target flight of the law.
    ssthresh: u64,
    /// The flight before the loss was detected, including the lost bytes; at least one.
    recover_fs: u64,
    /// The cumulative acknowledgement.
    una: Offset,
    delivered: u64,
    out: u64,
    /// The unused part of sndcnt.
    allowance: u64,
}

/// An ACK during a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// DeliveredData: bytes acknowledged for the first time, cumulatively or selectively.
    pub(crate) bytes: u64,
    /// The flight after the ACK.
    pub(crate) flight: u64,
    /// The cumulative acknowledgement.
    pub(crate) una: Offset,
    /// Whether the ACK reveals more losses.
    pub(crate) has_lost: bool,
}

impl Prr {
    /// A loss was detected. `flight` bytes are in flight, including the lost ones; everything below `una` is acknowledged; the
    /// law's target is `ssthresh`.
    pub(crate) fn new(ssthresh: u64, flight: u64, una: Offset) -> Self {
        Self { ssthresh, recover_fs: flight.max(1), una, delivered: 0, out: 0, allowance: 0 }
    }

    /// An ACK, the first of which is the one that revealed the loss; `mss` is the size of a segment in bytes.
    pub(crate) fn on_ack(&mut self, arrived: &Arrived, mss: u64) {
        let &Arrived { bytes, flight, una, has_lost } = arrived;
        let is_safe = una > std::mem::replace(&mut self.una, una) && !has_lost;
        if bytes == 0 {
            return;
        }
        self.delivered += bytes;
        self.allowance = if flight > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            (share.div_ceil(self.recover_fs.into()) as u64).next_multiple_of(mss).saturating_sub(self.out)
        } else {
            let count = self.delivered.saturating_sub(self.out).max(bytes) + if is_safe { mss } else { 0 };
            count.min(self.ssthresh - flight)
        };
    }

    /// A segment was sent, for whatever reason.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Whether `bytes` bytes may be sent.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.allowance
    }
}

#[cfg(test)]
mod tests;

//! Proportional rate reduction: how much leaves while a loss is repaired.
//!
//! ```text
//! a loss begins to be repaired:  RecoverFS ← what was in flight before it; prr_delivered, prr_out ← 0
//! each ACK, of DeliveredData:    prr_delivered ← prr_delivered + DeliveredData
//!   inflight > ssthresh:         sndcnt ← ⌈prr_delivered · ssthresh / RecoverFS⌉ − prr_out
//!   else:                        sndcnt ← max(prr_delivered − prr_out, DeliveredData), and a segment more if the ACK is safe;
//!                                at most ssthresh − inflight
//! each departure:                prr_out ← prr_out + what left
//! ```
//!
//! Why: with a window that is halved at once nothing leaves for half of a round trip, and the ACKs that would let the rest leave are those of
//! what was not sent. Here as much leaves for each ACK as it takes to come down evenly, and after heavy losses no more than arrives, and a
//! segment more for an ACK that shows that repairing gets on.
//!
//! Citation: rfc-9937 sec. 6, in bytes, of which ⌈ ⌉ makes whole segments. Differs from it in: there cwnd is inflight + sndcnt until the next ACK, here sndcnt alone is kept. A
//! loss that time shows between two ACKs would make room under the former without anything having arrived.

use crate::seq::Offset;

/// What may leave while one loss is repaired, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prr {
    /// What the law lets be in flight in the end.
    ssthresh: u64,
    /// What was in flight before the loss was found, what was lost included; at least one.
    recover_fs: u64,
    /// Everything below is acknowledged.
    una: Offset,
    delivered: u64,
    out: u64,
    /// What is left of sndcnt.
    allowance: u64,
}

/// An ACK while a loss is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Bytes that it acknowledges for the first time, cumulatively or selectively: DeliveredData.
    pub(crate) bytes: u64,
    /// What is in flight after it.
    pub(crate) flight: u64,
    /// Everything below is acknowledged.
    pub(crate) una: Offset,
    /// Whether it shows more losses.
    pub(crate) has_lost: bool,
}

impl Prr {
    /// A loss is found; `flight` bytes are or were in flight, what is lost included, all below `una` is acknowledged, and the law lets `ssthresh` be in flight.
    pub(crate) fn new(ssthresh: u64, flight: u64, una: Offset) -> Self {
        Self { ssthresh, recover_fs: flight.max(1), una, delivered: 0, out: 0, allowance: 0 }
    }

    /// An ACK, that which showed the loss included; `mss` bytes are a segment.
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

    /// Something left, whatever let it.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// Whether so many bytes may leave.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.allowance
    }
}

#[cfg(test)]
mod tests;

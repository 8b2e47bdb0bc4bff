//! Queues in front of transmitters: which packets may wait.
//!
//! Two kinds. *Admission* (drop-tail, RED) decides when a packet arrives, so its departure is known at once and a hop
//! costs one event. *Management* (CoDel) decides when the transmitter takes the next packet, so its links have an event
//! for that, too.

mod codel;
mod drop_tail;
mod red;

pub use codel::CoDelParameters;
pub use red::{RedParameters, RedWeight, Unit};

use anabranch_units::SimSpan;

pub(crate) use codel::CoDel;
pub(crate) use drop_tail::DropTail;
pub(crate) use red::Red;

/// Which queue a link has.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueSpec {
    /// Everything waits; bounded only by [`crate::PACKETS_PER_LINK_MAX`].
    Unlimited,
    /// At most this many packets, as ns-2 counts: n - 1 that wait and one in transmission. 1 loses everything.
    Packets(u32),
    /// At most this many bytes that wait.
    Bytes(u64),
    /// Random early detection.
    Red(RedParameters),
    /// Controlled delay.
    CoDel(CoDelParameters),
}

impl QueueSpec {
    /// Whether something can pass: a limit is above zero, thresholds are in order, probabilities in `[0, 1]`.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Unlimited => true,
            &Self::Packets(limit) => limit > 0,
            &Self::Bytes(limit) => limit > 0,
            Self::Red(parameters) => parameters.is_valid(),
            Self::CoDel(parameters) => parameters.packets_max > 0 && !parameters.interval.is_zero(),
        }
    }
}

/// What a packet that arrives finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Packets that wait for the transmitter; the one that it is sending has left the queue.
    pub(crate) packets: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// For how long the transmitter has had nothing to do; none if it is busy.
    pub(crate) idle: Option<SimSpan>,
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    /// It is taken, and marked: congestion experienced.
    Mark,
    Drop,
}

/// A queue that decides on arrival.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    DropTail(DropTail),
    Red(Box<Red>),
}

impl Admission {
    /// What becomes of a packet of `size` bytes; `is_capable` says whether it may be marked.
    #[inline]
    pub(crate) fn admits(&mut self, size: u32, backlog: Backlog, is_capable: bool) -> Verdict {
        match self {
            Self::DropTail(queue) if queue.admits(size, backlog) => Verdict::Take,
            Self::DropTail(_) => Verdict::Drop,
            Self::Red(queue) => queue.admits(size, backlog, is_capable),
        }
    }
}

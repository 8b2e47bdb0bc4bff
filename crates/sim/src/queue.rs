//! Queues in front of transmitters.
//!
//! There are two kinds. *Admission* (drop-tail, a marking threshold, RED) decides when a packet arrives. Its departure is then
//! known at once, and a hop costs one event. *Management* (CoDel, FQ-CoDel, PIE, DualPI2) decides when the transmitter takes a
//! packet: it chooses the next packet, or needs its waiting time. Such links have an event for that, too.

mod codel;
mod drop_tail;
mod dual_pi2;
mod fq_codel;
mod pie;
mod red;
mod step;

pub use codel::CoDelParameters;
pub use dual_pi2::DualPi2Parameters;
pub use fq_codel::FqCoDelParameters;
pub use pie::PieParameters;
pub use red::{RedParameters, RedWeight, Unit};
pub use step::{StepParameters, Threshold};

use std::fmt;

use anabranch_units::{Rate, SimSpan, SimTime};

use crate::packet::Flight;
use crate::rng::Stream;

use codel::CoDel;
use drop_tail::DropTail;
use dual_pi2::DualPi2;
use fq_codel::FqCoDel;
use pie::Pie;
use red::Red;
use step::Step;

/// The queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueSpec {
    /// Unlimited, up to [`crate::PACKETS_PER_LINK_MAX`].
    Unlimited,
    /// At most this many packets, as ns-2 counts: n - 1 waiting and one in transmission. A limit of 1 loses everything.
    Packets(u32),
    /// At most this many waiting bytes.
    Bytes(u64),
    /// Drop-tail that marks from a threshold on.
    Step(StepParameters),
    /// Random early detection (RED).
    Red(RedParameters),
    /// Controlled delay (CoDel, RFC 8289).
    CoDel(CoDelParameters),
    /// A queue for each flow, and controlled delay in each.
    FqCoDel(FqCoDelParameters),
    /// Proportional integral controller enhanced.
    Pie(PieParameters),
    /// A queue for scalable senders coupled to one for all others.
    DualPi2(DualPi2Parameters),
}

impl QueueSpec {
    /// Whether the queue decides at its head which packet is sent, so that a departure is not known on arrival.
    pub fn decides_at_head(&self) -> bool {
        match self {
            Self::Unlimited | Self::Packets(_) | Self::Bytes(_) | Self::Step(_) | Self::Red(_) => false,
            Self::CoDel(_) | Self::FqCoDel(_) | Self::Pie(_) | Self::DualPi2(_) => true,
        }
    }

    /// Whether the parameters are valid: a limit is above zero, thresholds are in order, probabilities in `[0, 1]`.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Unlimited => true,
            &Self::Packets(limit) => limit > 0,
            &Self::Bytes(limit) => limit > 0,
            Self::Red(parameters) => parameters.is_valid(),
            Self::Step(parameters) => parameters.is_valid(),
            Self::CoDel(parameters) => parameters.packets_max > 0 && !parameters.interval.is_zero(),
            Self::FqCoDel(parameters) => parameters.is_valid(),
            Self::Pie(parameters) => parameters.is_valid(),
            Self::DualPi2(parameters) => parameters.is_valid(),
        }
    }

    /// The queue of a link with this rate and delay. It draws from the stream with the name of its kind.
    pub(crate) fn build(&self, rate: Rate, delay: SimSpan, stream: impl Fn(&str) -> Stream) -> Queue {
        let admission = match self {
            Self::Unlimited => Admission::DropTail(DropTail::UNLIMITED),
            &Self::Packets(limit) => Admission::DropTail(DropTail::packets(limit)),
            &Self::Bytes(limit) => Admission::DropTail(DropTail::bytes(limit)),
            &Self::Step(parameters) => Admission::Step(Step::new(parameters, rate)),
            &Self::Red(parameters) => Admission::Red(Box::new(Red::new(
                parameters,
                rate.bits_per_second(),
                delay.as_secs_f64(),
                stream("red"),
            ))),
            &Self::CoDel(parameters) => return Queue::Managed(Box::new(CoDel::new(parameters))),
            &Self::FqCoDel(parameters) => {
                return Queue::Managed(Box::new(FqCoDel::new(parameters, stream("fq_codel"))));
            }
            &Self::Pie(parameters) => return Queue::Managed(Box::new(Pie::new(parameters, stream("pie")))),
            &Self::DualPi2(parameters) => return Queue::Managed(Box::new(DualPi2::new(parameters))),
        };
        Queue::Admission(admission)
    }
}

/// A queue of one of the two kinds.
pub(crate) enum Queue {
    Admission(Admission),
    Managed(Box<dyn Managed>),
}

/// A queue that decides when the transmitter takes the next packet.
pub(crate) trait Managed: fmt::Debug + Send {
    /// Packets that wait.
    fn len(&self) -> usize;

    /// Appends a packet, or refuses it. The queue may mark it.
    fn enqueue(&mut self, now: SimTime, flight: Flight) -> Verdict;

    /// The packets dropped to make room for the last arrival.
    fn overflow(&mut self, _dropped: &mut Vec<Flight>) {}

    /// The next packet to send, and whether it was marked now. Packets dropped before it go to `dropped`.
    fn dequeue(&mut self, now: SimTime, dropped: &mut Vec<Flight>) -> Option<(Flight, bool)>;
}

/// The state of the queue at an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Waiting packets, without the one in transmission.
    pub(crate) packets: u64,
    /// The bytes of the waiting packets.
    pub(crate) bytes: u64,
    /// How long the transmitter has been idle; `None` if it is busy.
    pub(crate) idle: Option<SimSpan>,
}

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Take,
    /// It is accepted and marked: congestion experienced.
    Mark,
    Drop,
}

/// A queue that decides on arrival.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    DropTail(DropTail),
    Step(Step),
    Red(Box<Red>),
}

impl Admission {
    /// The verdict on a packet of `size` bytes; `is_capable` says whether it may be marked.
    #[inline]
    pub(crate) fn admits(&mut self, size: u32, backlog: Backlog, is_capable: bool) -> Verdict {
        match self {
            Self::DropTail(queue) if queue.admits(size, backlog) => Verdict::Take,
            Self::DropTail(_) => Verdict::Drop,
            Self::Step(queue) => queue.admits(backlog, is_capable),
            Self::Red(queue) => queue.admits(size, backlog, is_capable),
        }
    }
}

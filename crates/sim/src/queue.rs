//! Queues in front of transmitters.
//!
//! There are two kinds. *Admission* (drop-tail, a marking threshold, RED) decides when a packet arrives. Its departure is then
//! known at once, and a hop costs one event. *Management* (CoDel, FQ-CoDel, PIE, DualPI2) decides when the transmitter takes a
//! packet: it chooses the next packet, or needs its waiting time. Such links have an event for that, too.

mod codel;
#[cfg(test)]
mod drop_head;
mod drop_tail;
mod dual_pi2;
mod fq_codel;
mod pie;
mod red;
mod step;

pub use codel::CoDelParameters;
#[cfg(test)]
pub use drop_head::DropHeadParameters;
pub use drop_tail::{DropTailParameters, Unlimited};
pub use dual_pi2::DualPi2Parameters;
pub use fq_codel::FqCoDelParameters;
pub use pie::PieParameters;
pub use red::{RedParameters, RedWeight, Unit};
pub use step::StepParameters;

use std::any::Any;
use std::fmt;

use anabranch_units::settings::{Fields, Flaw, Part, PartKind};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::packet::Flight;
use crate::rng::Stream;

use drop_tail::DropTail;

/// The queue of a link: a discipline with its parameters.
#[derive(Debug)]
pub struct QueueSpec(Box<dyn AnyDiscipline>);

/// A queue discipline: its parameters, and what makes its queue.
pub(crate) trait Discipline: Clone + PartialEq + Default + fmt::Debug + Send + Sync + 'static {
    /// Its word in scenarios.
    const WORD: &'static str;
    /// Words of others that mean the same.
    const SYNONYMS: &'static [&'static str] = &[];
    /// Its description for the reference.
    const HELP: &'static str;
    /// Whether it decides at its head which packet is sent, so that a departure is not known on arrival.
    const DECIDES_AT_HEAD: bool = false;
    /// Whether it draws random numbers.
    const IS_RANDOM: bool = false;

    /// Lists the parameters that a scenario may set.
    fn visit(&mut self, fields: &mut Fields<'_>);

    /// Checks what the ranges of single parameters do not tell.
    ///
    /// # Errors
    /// The first flaw.
    fn check(&self) -> Result<(), Flaw> {
        Ok(())
    }

    /// The queue of this link.
    fn build(&self, site: &Site<'_>) -> Queue;
}

/// The link of a queue.
pub(crate) struct Site<'a> {
    pub(crate) rate: Rate,
    pub(crate) delay: SimSpan,
    /// Makes the random stream with a name. A queue draws from the stream with its word.
    pub(crate) stream: &'a dyn Fn(&str) -> Stream,
}

/// A [`Discipline`] with its type erased.
trait AnyDiscipline: fmt::Debug + Send + Sync {
    fn word(&self) -> &'static str;
    fn decides_at_head(&self) -> bool;
    fn is_random(&self) -> bool;
    fn visit(&mut self, fields: &mut Fields<'_>);
    fn check(&self) -> Result<(), Flaw>;
    fn build(&self, site: &Site<'_>) -> Queue;
    fn copy(&self) -> Box<dyn AnyDiscipline>;
    fn equals(&self, other: &dyn AnyDiscipline) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<D: Discipline> AnyDiscipline for D {
    fn word(&self) -> &'static str {
        D::WORD
    }

    fn decides_at_head(&self) -> bool {
        D::DECIDES_AT_HEAD
    }

    fn is_random(&self) -> bool {
        D::IS_RANDOM
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        Discipline::visit(self, fields);
    }

    fn check(&self) -> Result<(), Flaw> {
        Discipline::check(self)
    }

    fn build(&self, site: &Site<'_>) -> Queue {
        Discipline::build(self, site)
    }

    fn copy(&self) -> Box<dyn AnyDiscipline> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn AnyDiscipline) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Part for QueueSpec {
    const NAME: &'static str = "queue";
    const HELP: &'static str = "The queue before a link.";

    fn kinds() -> Vec<PartKind<Self>> {
        vec![
            kind::<DropTailParameters>(),
            kind::<Unlimited>(),
            kind::<RedParameters>(),
            kind::<CoDelParameters>(),
            kind::<StepParameters>(),
            kind::<FqCoDelParameters>(),
            kind::<PieParameters>(),
            kind::<DualPi2Parameters>(),
            #[cfg(test)]
            kind::<DropHeadParameters>(),
        ]
    }

    fn word(&self) -> &'static str {
        self.0.word()
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        self.0.visit(fields);
    }

    fn check(&self) -> Result<(), Flaw> {
        self.0.check()
    }
}

/// A discipline as a kind of the part.
fn kind<D: Discipline>() -> PartKind<QueueSpec> {
    PartKind { word: D::WORD, synonyms: D::SYNONYMS, help: D::HELP, default: D::default().into() }
}

impl QueueSpec {
    /// No limit, up to [`crate::PACKETS_PER_LINK_MAX`].
    pub fn unlimited() -> Self {
        Unlimited.into()
    }

    /// Drop-tail with at most this many packets, as ns-2 counts: n - 1 waiting and one in transmission. At least 2.
    pub fn packets(limit: u32) -> Self {
        DropTailParameters { packets: Some(limit), bytes: None }.into()
    }

    /// Drop-tail with at most this many waiting bytes.
    pub fn bytes(limit: u64) -> Self {
        DropTailParameters { packets: None, bytes: Some(limit) }.into()
    }

    /// Whether the queue decides at its head which packet is sent, so that a departure is not known on arrival.
    pub fn decides_at_head(&self) -> bool {
        self.0.decides_at_head()
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        self.0.is_random()
    }

    /// The parameters, if they are of this discipline.
    pub fn parameters_of<D: Any>(&self) -> Option<&D> {
        self.0.as_any().downcast_ref()
    }

    /// The queue of this link.
    pub(crate) fn build(&self, site: &Site<'_>) -> Queue {
        let queue = self.0.build(site);
        debug_assert_eq!(matches!(queue, Queue::Managed(_)), self.decides_at_head(), "{}", self.word());
        queue
    }
}

/// ns-2's `DropTail` of 50 packets.
impl Default for QueueSpec {
    fn default() -> Self {
        Self::packets(50)
    }
}

impl<D: Discipline> From<D> for QueueSpec {
    fn from(discipline: D) -> Self {
        Self(Box::new(discipline))
    }
}

impl Clone for QueueSpec {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl PartialEq for QueueSpec {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
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

/// The packets that wait, without the one in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
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
#[derive(Debug)]
pub(crate) enum Admission {
    DropTail(DropTail),
    Other(Box<dyn Admits>),
}

/// A rule of admission other than drop-tail, which most links have.
pub(crate) trait Admits: fmt::Debug + Send {
    /// The verdict on a packet of `size` bytes; `is_capable` says whether it may be marked. `idle` is how long the transmitter has been
    /// idle, `None` if it is busy.
    fn admits(&mut self, size: u32, backlog: Backlog, idle: Option<SimSpan>, is_capable: bool) -> Verdict;
}

impl Admission {
    /// As [`Admits::admits`]. Drop-tail does not ask how long the transmitter has been idle.
    pub(crate) fn admits(
        &mut self,
        size: u32,
        backlog: Backlog,
        idle: impl FnOnce() -> Option<SimSpan>,
        is_capable: bool,
    ) -> Verdict {
        match self {
            Self::DropTail(queue) if queue.admits(size, backlog) => Verdict::Take,
            Self::DropTail(_) => Verdict::Drop,
            Self::Other(queue) => queue.admits(size, backlog, idle(), is_capable),
        }
    }
}

/// A periodic law that acts more than a million times in a second would slow the simulation down.
fn acts_again(queue: &str, key: &str, span: SimSpan) -> Result<(), Flaw> {
    match span < SimSpan::from_micros(1) {
        true => Err(Flaw::new(
            key,
            format!("a {queue} queue cannot look again after no time"),
            format!("use {key} = \"1us\" or more"),
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;

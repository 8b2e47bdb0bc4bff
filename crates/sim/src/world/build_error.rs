//! What makes a description of a world impossible.

use std::fmt;

use crate::id::{FlowId, HostId};
use crate::link::STEP_MIN;

/// Why a world cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
    /// An id that another builder made.
    Unknown {
        /// As it prints.
        what: String,
    },
    /// A link sends at rate zero.
    NoRate {
        /// Its name.
        link: String,
    },
    /// Two links, or two workloads, have this name: random streams are named after them.
    NameTaken {
        /// The name.
        name: String,
    },
    /// A link goes from a node to itself.
    Loop {
        /// Its name.
        link: String,
    },
    /// A queue of size zero, or thresholds in the wrong order.
    BadQueue {
        /// The link.
        link: String,
    },
    /// ns-2's clock, and a queue, a rate or an end that has no place in it.
    NoFloatClock {
        /// The link.
        link: String,
    },
    /// A hold without time between two releases.
    BadHold {
        /// The link.
        link: String,
    },
    /// Rates in steps that are not in order or too close, that repeat within themselves or end at zero, or a trace without an opportunity.
    BadRates {
        /// The link.
        link: String,
    },
    /// Delays in steps that are not in order or too close, a share outside `[0, 1]`, or packets that are held in their order besides.
    BadScatter {
        /// The link.
        link: String,
    },
    /// A probability outside `[0, 1]`, or a period or an outage that cannot be.
    BadErrorModel {
        /// The link.
        link: String,
    },
    /// A workload that never moves and never ends, or has no streams.
    BadWorkload {
        /// The host.
        host: HostId,
    },
    /// An interval of zero.
    NoInterval {
        /// The link that was to be sampled.
        link: String,
    },
    /// Both ends of a flow stand at one node: its packets would meet no link.
    SameNode {
        /// The node's name.
        node: String,
    },
    /// A host sends or is reached by a link that does not touch its node.
    NotThere {
        /// The link's name.
        link: String,
        /// The node's name.
        node: String,
    },
    /// There is no way from one end of a flow to the other.
    NoRoute {
        /// Whose.
        flow: FlowId,
        /// The node where its packets start.
        from: String,
        /// The node that they would go to.
        to: String,
    },
    /// There is a limit.
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl std::error::Error for BuildError {}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { what } => write!(f, "{what} is not part of this world: it comes from another builder"),
            Self::NoRate { link } => write!(f, "link {link} has rate zero: give it a rate"),
            Self::NameTaken { name } => write!(f, "`{name}` is taken: random streams need unique names"),
            Self::Loop { link } => write!(f, "link {link} goes from a node to itself"),
            Self::BadQueue { link } => {
                write!(f, "the queue of link {link} can hold nothing, or its thresholds are not in order")
            }
            Self::NoFloatClock { link } => {
                write!(
                    f,
                    "link {link} has a queue that decides at its head, a rate that varies, or an end that does more than let packets out: \
                     such links keep exact time and not ns-2's; choose one of the two"
                )
            }
            Self::BadHold { link } => write!(f, "link {link} holds packets for no time: give its hold a length"),
            Self::BadRates { link } => {
                write!(
                    f,
                    "the rates of link {link} are not in order, less than {STEP_MIN} apart, or end at zero; or its trace has no opportunity"
                )
            }
            Self::BadScatter { link } => {
                write!(
                    f,
                    "link {link} has delays that are not in order or less than {STEP_MIN} apart, a share outside 0 to 1, or a hold besides: \
                     put the hold on a link of its own"
                )
            }
            Self::BadErrorModel { link } => {
                write!(f, "an error model of link {link} has a probability outside 0 to 1, or an impossible period")
            }
            Self::BadWorkload { host } => {
                write!(f, "the workload of host {host} has no streams, or offers an endless series at one time")
            }
            Self::NoInterval { link } => write!(f, "link {link} cannot be sampled at intervals of zero"),
            Self::SameNode { node } => write!(f, "both ends of a flow are at node {node}: put them at two nodes"),
            Self::NotThere { link, node } => write!(f, "link {link} does not start at node {node}"),
            Self::NoRoute { flow, from, to } => write!(f, "flow {flow} has no way from node {from} to node {to}"),
            Self::TooMany { what, limit } => write!(f, "too many {what}: at most {limit}"),
        }
    }
}

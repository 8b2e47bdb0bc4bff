//! The errors of a world's description.

use std::fmt;

use crate::id::{FlowId, HostId};
use crate::link::STEP_MIN;

/// Why a world cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
    /// An identifier that belongs to another builder.
    Unknown {
        /// The printed identifier.
        what: String,
    },
    /// The rate of a link is zero.
    NoRate {
        /// The name of the link.
        link: String,
    },
    /// Two links, or two workloads, have the same name. Random streams are named after it.
    NameTaken {
        /// The duplicate name.
        name: String,
    },
    /// A link goes from a node to itself.
    Loop {
        /// The name of the link.
        link: String,
    },
    /// A queue of size zero, or thresholds out of order.
    BadQueue {
        /// The name of the link.
        link: String,
    },
    /// ns-2's clock with a queue, a rate or a far end that ns-2 does not have.
    NoFloatClock {
        /// The name of the link.
        link: String,
    },
    /// A hold without time between two releases.
    BadHold {
        /// The name of the link.
        link: String,
    },
    /// Rate steps out of order, too close, longer than their period or ending at zero, or a trace without an opportunity.
    BadRates {
        /// The name of the link.
        link: String,
    },
    /// Delay steps out of order or too close, a share outside `[0, 1]`, or a hold on the same link.
    BadScatter {
        /// The name of the link.
        link: String,
    },
    /// A probability outside `[0, 1]`, or an impossible period or outage.
    BadErrorModel {
        /// The name of the link.
        link: String,
    },
    /// A workload that neither advances nor ends, or has no streams.
    BadWorkload {
        /// The host of the workload.
        host: HostId,
    },
    /// Both ends of a flow are at one node: its packets would cross no link.
    SameNode {
        /// The node's name.
        node: String,
    },
    /// A host uses a link that does not touch its node.
    NotThere {
        /// The link's name.
        link: String,
        /// The node's name.
        node: String,
    },
    /// There is no route from one end of a flow to the other.
    NoRoute {
        /// The flow without a route.
        flow: FlowId,
        /// The node where its packets start.
        from: String,
        /// The node of the other end.
        to: String,
    },
    /// A limit is exceeded.
    TooMany {
        /// The limited quantity.
        what: &'static str,
        /// The limit that applies.
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
            Self::SameNode { node } => write!(f, "both ends of a flow are at node {node}: put them at two nodes"),
            Self::NotThere { link, node } => write!(f, "link {link} does not start at node {node}"),
            Self::NoRoute { flow, from, to } => write!(f, "flow {flow} has no way from node {from} to node {to}"),
            Self::TooMany { what, limit } => write!(f, "too many {what}: at most {limit}"),
        }
    }
}

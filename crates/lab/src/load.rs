//! Makes a valid [`Scenario`](crate::scenario::Scenario) from the keys of a file: names become indices, and conditions on several keys are
//! checked.
//!
//! `keys` has the keys, with the types of their values in `values`. `assembly` joins links, flows, hosts and routes; `link` and `changing` make links,
//! `part` their queues, errors and holds, and `transport` makes the transport of a flow. `twin` makes the keys of our own transport from those of an agent of ns-2.

pub(crate) mod assembly;
mod changing;
mod classes;
pub(crate) mod keys;
mod link;
pub(crate) mod outages;
mod part;
pub mod transport;
mod twin;
pub(crate) mod values;

use crate::diagnostic::Fault;
use crate::document::Path;

/// The value made from some keys, or the fault in them and its place.
type Checked<T> = Result<T, (Path, Fault)>;

#[cfg(test)]
mod tests;

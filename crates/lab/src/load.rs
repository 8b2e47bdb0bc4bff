//! From the keys of a file to a [`Scenario`](crate::scenario::Scenario), which cannot be wrong afterwards: names become indices, and what no single key can tell is
//! checked.
//!
//! `keys` is what can be written, with its types in `values`; `network` joins links, flows, hosts and routes, of which `link`, `queue` and `changing` make links and
//! `transport` what drives a flow. `twin` makes the keys of our own transport from those of one of ns-2's.

mod changing;
mod classes;
pub(crate) mod keys;
mod link;
pub(crate) mod network;
pub(crate) mod outages;
mod queue;
pub mod transport;
mod twin;
pub(crate) mod values;

use crate::diagnostic::Fault;
use crate::document::Path;

/// What was made of some keys, or what is wrong with them and where.
type Checked<T> = Result<T, (Path, Fault)>;

#[cfg(test)]
mod tests;

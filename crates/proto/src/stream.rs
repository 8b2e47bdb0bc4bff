//! Streams: what is to be sent on each, and what has come in its order. They know no loss.

mod by_name;
pub(crate) mod flow_control;
pub(crate) mod inbound;
mod names;
pub(crate) mod outbound;
pub(crate) mod records;
pub(crate) mod turns;

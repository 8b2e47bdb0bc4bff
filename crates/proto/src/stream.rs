//! Streams: data to send, and received data in order. This module is independent of losses.

mod by_name;
pub(crate) mod flow_control;
pub(crate) mod inbound;
mod names;
pub(crate) mod outbound;
pub(crate) mod records;
mod send_queue;
pub(crate) mod turns;

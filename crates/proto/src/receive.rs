//! The receiving side: arrivals, acknowledgements and the receive window.

pub(crate) mod acks;
pub(crate) mod arrival_buffer;
pub(crate) mod arrivals;
pub(crate) mod ranges;
pub(crate) mod window;

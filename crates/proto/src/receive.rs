//! The receiving side of the connection: which bytes have arrived, what is reported of them, and how many more may come.

pub(crate) mod acks;
pub(crate) mod arrivals;
pub(crate) mod ranges;
pub(crate) mod window;

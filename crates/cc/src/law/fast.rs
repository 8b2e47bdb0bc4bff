//! FAST TCP.

pub mod base_rtt;
pub mod estimator;
pub mod loss;
pub mod refill;
pub mod window;

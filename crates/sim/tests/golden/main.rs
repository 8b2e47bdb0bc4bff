//! Golden runs of ns-2.35: the simulator must do the same, packet by packet.

#![expect(clippy::unwrap_used, reason = "in tests an error is a failure, helpers included")]

mod ctcp;
mod fast;
mod papers;
mod rrfast;
mod sctp;
mod series;

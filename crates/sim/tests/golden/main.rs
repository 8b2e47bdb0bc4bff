//! Golden runs of ns-2.35: what it did, packet by packet, is what we do.

#![expect(clippy::unwrap_used, reason = "in tests an error is a failure, helpers included")]

mod ctcp;
mod fast;
mod papers;
mod rrfast;
mod sctp;
mod series;

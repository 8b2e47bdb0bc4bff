//! Congestion control: how fast a path may be used, decided from what its acknowledgements tell.
//!
//! A [`Controller`] is told facts and asked for a window; it never reaches into the connection, and it knows no packets,
//! sequence numbers or sockets. The same objects run in the simulator, in the transport over UDP and beside their twins in a
//! kernel, so nothing here reads a clock, draws a random number or prints, and floats are only added, subtracted, multiplied,
//! divided and rooted: those operations give the same bits on every machine.
//!
//! From the top:
//!
//! * [`registry`] is the one table of laws with their parameters. It feeds the command line, scenarios, documents and tests.
//! * [`own`] makes settings of a controller that a caller brings along.
//! * [`conformance`] is what every law must do, the caller's own included: random but legal events, then invariants.
//! * [`law`] holds one file a law. What other crates may want of a law's arithmetic is a public function there.
//! * [`composite`] stands around a law and keeps random losses from it.
//! * [`row`] says what a law is to everybody else, [`settings`] what can be set of it.
//! * [`mod@classify`] tells a random loss from a congestion loss. What to do about it is a law's business.
//! * [`controller`] is the seam: the trait, its events, and the gauges.

pub mod classify;
pub mod composite;
pub mod conformance;
pub mod controller;
pub mod law;
mod number;
pub mod own;
pub mod registry;
pub mod row;
pub mod settings;
#[cfg(test)]
mod testing;

pub use classify::{Evidence, classify};
pub use controller::{
    Ack, Cause, Controller, Departure, GAUGES_MAX, Gauges, Limit, Loss, PathSummary, PathView, Phase, Reduction,
    Restart, Round, Sent, Signal, Transmission, WINDOW_MIN,
};
pub use number::cube_root;
pub use registry::{Row, Settings, find, rows};

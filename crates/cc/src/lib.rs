//! Congestion control: the window and rate of a path, computed from its acknowledgements.
//!
//! A [`Controller`] receives events and is asked for a window. It never reaches into the connection, and it knows no packets,
//! sequence numbers or sockets. The same objects run in the simulator and in the transport over UDP. So nothing here reads a clock, draws
//! from an outside generator or prints. Floats are only added, subtracted, multiplied, divided and rooted, as these operations give the
//! same bits on every machine.
//!
//! From the top:
//!
//! * [`registry`] is the table of laws with their settings. It feeds the command line, scenarios, documents and tests.
//! * [`own`] wraps a caller's own controller.
//! * [`conformance`] tests any law, the caller's own included: random but legal events, then invariants.
//! * [`law`] has one file a law. A law's arithmetic is a public function if other crates need it.
//! * [`composite`] is a decorator of a law that hides random losses from it.
//! * [`row`] describes a law, [`settings`] its settings.
//! * [`mod@classify`] distinguishes random loss from congestion. The law decides on the response.
//! * [`Rounds`] and [`Account`] count for a driver what the events of a path contain.
//! * [`controller`] is the interface: the trait, its events, and the gauges.

pub mod classify;
pub mod composite;
pub mod conformance;
pub mod controller;
mod delivery;
mod hystart;
pub mod law;
mod least;
mod number;
pub mod own;
mod progress;
mod random;
mod recent;
pub mod registry;
mod rounds;
pub mod row;
pub mod settings;
#[cfg(test)]
mod testing;

pub use classify::{Evidence, classify};
pub use controller::{
    Ack, Cause, Controller, Departure, Ect, GAUGES_MAX, Gauges, Limit, Loss, PathSummary, PathView, Phase, Progress,
    Reduction, Restart, Round, Sent, Signal, Supply, Transmission, WINDOW_MIN,
};
pub use number::cube_root;
pub use progress::Account;
pub use registry::{Row, Settings, find, rows};
pub use rounds::Rounds;

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

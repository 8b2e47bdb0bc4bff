//! The TCP agents of ns-2.35 with which the papers compared, and its SCTP, both exact to the packet.
//!
//! The TCP agents are one-way: a [`Sender`] sends packets and a [`Sink`] acknowledges them. Everything is counted in packets from
//! 0, and there is no handshake. The papers' numbers depend on ns-2's quirks: a 10 ms clock with a random phase, a SYN that is
//! packet 0, a window compared as an integer, ACKs without delay. Each quirk is reproduced, and described in the file that has
//! it. The aim is exact equality: `cargo xtask oracle` compares every packet with ns-2 itself.
//!
//! From the top:
//!
//! * [`Sender`] and [`Sink`] are what a simulator drives: `handle`, `handle_timeout`, `poll_transmit`, `poll_timeout`.
//!   [`Streams`] can be put in front of a sink.
//! * [`config`] is what a script can set.
//! * `reno`, `newreno`, `sack`, `fack`, `vegas`, `fast_start`, `linux` and `fast` hold one agent each. `composite` is the loss
//!   policy that ctcp-2019 adds to `sack`, `mfast` the receiver that mfast-2019 adds to FAST. Their textbook laws are those of
//!   `anabranch_cc`.
//! * `core` is what all agents share, `recovery` what those with SACK share, `rtt` the RTT estimator with its coarse clock.
//!   `sacked` (made of `ranges`) and `linux_scoreboard` are the scoreboards, `arrivals` is a sink's set of arrived packets.
//! * [`multihome`] is FAST over several paths: one `fast` agent per path, and one receiver.
//! * [`sctp`] is the SCTP of ns-2.35. Its endpoints both send and receive, over one path or several.
//! * [`random`] is ns-2's default random stream.

mod arrivals;
mod composite;
pub mod config;
mod core;
mod counters;
mod fack;
mod fast;
mod fast_start;
mod linux;
mod linux_scoreboard;
mod mfast;
pub mod multihome;
mod newreno;
mod packet;
pub mod random;
mod ranges;
mod recovery;
mod reno;
mod rtt;
mod sack;
mod sacked;
pub mod sctp;
mod sender;
mod sink;
mod vegas;

pub use config::{Agent, SenderConfig, SinkConfig};
pub use core::HEADER;
pub use counters::Counters;
pub use mfast::{Delivery, STREAM_HEADER, StreamHeader, Streams, Taken};
pub use packet::{Kind, Packet, SackBlocks};
pub use rtt::TICK;
pub use sender::{Gauges, Sender};
pub use sink::{Received, Sink};

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

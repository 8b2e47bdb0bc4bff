//! The TCP agents of ns-2.35 that the papers compared with, and its SCTP, number for number.
//!
//! The TCP agents are one-way: a [`Sender`] sends packets, a [`Sink`] answers them, everything is counted in packets from 0 and
//! there is no handshake. The papers' numbers come from ns-2's quirks (a 10 ms clock whose phase is drawn at random, a SYN
//! that is packet 0, a window that is checked as an integer, ACKs without delay), so each quirk is kept and named where it
//! stands. The measure is exactness: `cargo xtask oracle` compares every packet with ns-2 itself.
//!
//! From the top:
//!
//! * [`Sender`] and [`Sink`] are what a simulator drives: `handle`, `handle_timeout`, `poll_transmit`, `poll_timeout`.
//!   [`Streams`] stand in front of a sink.
//! * [`config`] is what a script can set.
//! * `reno`, `newreno`, `sack`, `fack`, `vegas`, `fast_start`, `linux`, `fast` hold one agent each, `composite` the loss policy that
//!   ctcp-2019 puts on `sack`, `mfast` the receiver that mfast-2019 puts on FAST's. The textbook laws they follow are those of
//!   `anabranch_cc`.
//! * `core` is what they share, `recovery` what those with SACK do, `rtt` the clock, `sacked` (of `ranges`) and `linux_scoreboard` the scoreboards,
//!   `arrivals` what a sink knows.
//! * [`multihome`] is FAST over several paths: the agent `fast` on each, one receiver.
//! * [`sctp`] is the SCTP of ns-2.35, whose endpoints send and receive, over one path or several.
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

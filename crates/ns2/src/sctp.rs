//! SCTP as ns-2.35 has it: the University of Delaware's module, and its concurrent multipath transfer (CMT).
//!
//! An [`Endpoint`] is one end of an association; the same type calls and answers, sends data and acknowledges it. It is
//! driven as the TCP agents are: `handle`, `handle_timeout`, `poll_transmit`, `poll_timeout`. Windows, sizes and credit are
//! bytes. [`EndpointConfig`] with [`Variant::Cmt`] sends over all destinations at once.
//!
//! ```text
//! caller  -> INIT                  answerer
//!         <- INIT-ACK
//!         -> COOKIE-ECHO
//!         <- COOKIE-ACK
//!         -> HEARTBEAT to each destination, and no data before all of them are confirmed
//!         <- HEARTBEAT-ACK
//!         -> DATA ...              <- SACK ...
//! ```
//!
//! From the top:
//!
//! * `endpoint` is the association: what arrives, what is set off by it, and in which order it leaves.
//! * `transmission` sends new data, `retransmission` what is marked lost, `retransmission_policy` says where CMT sends it.
//! * `sack` reads an acknowledgement, `failure` handles timeouts, heartbeats and failover.
//! * `destination` is a path's window, `rto` its timer's length, `send_buffer` what is outstanding, `receiver` what has come.
//! * `counts` is what an endpoint tells, `packet` the wire, `timers` the pending timers, `config` what a script can set.
//!
//! # Quirks that decide numbers
//!
//! Each is named where it stands. The ones that surprise:
//! * The highest newly acknowledged TSN is remembered across SACKs, so a SACK with gaps and no news still counts as a missing
//!   report (`sack`).
//! * A change of the primary destination that is set to "never" happens at the first timeout (`failure`).
//! * The window shrinks to half whenever nothing was sent for one RTO (`failure`).
//! * Stream sequence numbers are sorted as 16-bit numbers without their wrap: a hole in front of a wrap closes the stream for
//!   ever (`receiver`).
//! * CMT: a delayed SACK that its timer sends reports zero packets (`receiver`); what limits bursts is never lifted once set
//!   (`transmission`); a timer that is missing is started for the wrong destination (`retransmission`).
//!
//! # What is left out
//!
//! Unreliable streams, non-renegable SACKs, CMT's possibly failed state (`useCmtPF_`, which loops for ever on some seeds), the
//! bound on the send buffer and the simulated cost of routes: no paper used them. A SACK says how many blocks it carries;
//! ns-2's says how many there were, and its reader runs into stale memory when they did not fit (over 300 blocks).

mod config;
mod counts;
mod destination;
mod endpoint;
mod failure;
mod packet;
mod receiver;
mod retransmission;
mod retransmission_policy;
mod rto;
mod sack;
mod send_buffer;
mod timers;
mod transmission;

pub use config::{Alternate, CmtOptions, DestinationConfig, Dormant, EndpointConfig, RetransmissionPolicy, Variant};
pub use counts::{Counters, Delivery, Departure, Gauges, Received};
pub use endpoint::Endpoint;
pub use packet::{Chunk, Data, Greeting, Heartbeat, Packet, Sack};

//! SCTP of ns-2.35: the module of the University of Delaware, with concurrent multipath transfer (CMT).
//!
//! An [`Endpoint`] is one end of an association. One type opens and answers, sends data and acknowledges it. It is driven like
//! the TCP agents: `handle`, `handle_timeout`, `poll_transmit`, `poll_timeout`. Windows, sizes and credit are in bytes.
//! [`EndpointConfig`] with [`Variant::Cmt`] sends to all destinations at once.
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
//! * `endpoint` is the association: what arrives, what that triggers, and in which order answers leave.
//! * `transmission` sends new data, `retransmission` chunks that are marked lost; `retransmission_policy` chooses their
//!   destination in CMT.
//! * `sack` processes an acknowledgement, `failure` timeouts, heartbeats and failover.
//! * `destination` is a path's window, `rto` its retransmission timeout, `send_buffer` what is outstanding, `receiver` what has
//!   arrived.
//! * `counts` is what an endpoint reports, `packet` the wire format, `timers` the pending timers, `config` what a script can set.
//!
//! # Quirks that decide numbers
//!
//! Each quirk is described in its file. The surprising ones:
//! * The highest newly acknowledged TSN is remembered across SACKs. So a SACK with gaps that acknowledges nothing new still
//!   counts as a missing report (`sack`).
//! * A change of the primary destination that is set to "never" happens at the first timeout (`failure`).
//! * The window is halved whenever nothing was sent for one RTO (`failure`).
//! * Stream sequence numbers are sorted as 16-bit numbers, without serial-number arithmetic: a hole just before the wrap closes
//!   the stream for ever (`receiver`).
//! * CMT: a delayed SACK sent by its timer reports zero packets (`receiver`). The burst limit, once set, is never lifted
//!   (`transmission`). A missing timer is started for the wrong destination (`retransmission`).
//!
//! # What is left out
//!
//! Unreliable streams, non-renegable SACKs, CMT's possibly-failed state (`useCmtPF_`, which loops for ever on some seeds), the
//! bound on the send buffer and the simulated cost of routes: no paper used them. A SACK states how many blocks it carries.
//! ns-2's states how many blocks there were; if they did not fit (over 300), its receiver of the SACK reads stale memory.

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

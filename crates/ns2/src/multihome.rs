//! FAST TCP multihoming: one connection over several paths at once, each with a window of FAST's own.
//!
//! ```text
//! sender                                        receiver
//! data ── path selector ── data dispatcher      one receive buffer (rbuf), handed over in order
//!           │  virtual send buffer of path 1 ──────────>  virtual receive buffer of path 1
//!           │    estimation, window, data, burstiness  <──────────  SACK
//!           │  virtual send buffer of path 2 ──────────>  virtual receive buffer of path 2
//!                estimation, window, data, burstiness  <──────────  SACK
//! ```
//!
//! Citation: multihoming-2010 sec. III, Table 1, Figs. 8 and 9. Packets of all paths are numbered in one sequence space; a packet,
//! its retransmissions and their SACKs stay on one path. On each path runs FAST's agent as on a single one, on the packets of its
//! virtual send buffer: what a SACK says of them, it sees as if they were all there are. With one path every packet is that of the
//! agent alone.
//!
//! From the top:
//!
//! * [`Sender`] is path selector and data dispatcher, [`Sink`] the receiver. Both are driven as the other agents are, and name the
//!   path of what they send and get.
//! * `path` is a virtual send buffer and FAST's four components on top of it.
//! * `share` divides the advertised window.
//!
//! # Readings, where the paper leaves a choice
//!
//! * **Fig. 9 (a), the path of a SACK**: "the path on which SACK is received, i.e. a path on which s_a was originally sent". The two
//!   differ where a SACK of one path covers packets of another. What it covers frees the receiver's buffer at once, but the
//!   components of a path hear only SACKs over this path: those of a faster one would tell of a packet before its RTT has passed.
//! * **Fig. 9 (b), duplicates**: a packet's count rises when a SACK over its path reports a larger number of its path. That is
//!   FAST's own count of duplicates, on the virtual send buffer; beyond the first hole its SACK recovery resends.
//! * **Fig. 9 (b), step iii** wants an RTT of the first two duplicates. The module takes none of any duplicate, and neither do we:
//!   two samples of weight 1/256.
//! * **"Proportional to their congestion window sizes"**: FAST's window grows without end where the receiver limits it, so it counts
//!   up to rbuf. The parts are whole packets, at least one, and add up to rbuf ([`shares`]). A path's part holds what
//!   it has in flight and what waits in the receiver for a packet of another path. It takes the place of ns-2's `window_`
//!   where a loss halves the window.
//! * Parts follow the windows, so for a while they may be smaller than what is there. No packet is sent beyond rbuf whatever the
//!   parts say, and what was sent once has its place: no part limits a retransmission.
//! * **Path selector**: the path whose SACK came sends first, then the others in turn, as their windows and parts allow.
//! * **Set-up**, which the paper leaves out: each path begins with a SYN as FAST's agent does, a number of the one space each.
//! * **A path that waits for others' packets** because its part of the buffer is full, with nothing in flight, has no timer. A single
//!   path never waits so.
//! * **A path that dies** keeps its packets, by "retransmission over the same path", and the connection waits for ever.
//!   [`Config::reinject`] sends them on the others, too; off in the paper.
//! * **SACK blocks**: three, as ns-2's: the block of the packet that came, and those last reported over the same path.

mod path;
mod sender;
mod share;
mod sink;

pub use sender::{Config, PATHS_MAX, Sender};
pub use share::shares;
pub use sink::Sink;

use crate::packet::Packet;

/// A packet that leaves by one of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The position of the path.
    pub path: usize,
    /// The packet to send.
    pub packet: Packet,
}

#[cfg(test)]
mod tests;

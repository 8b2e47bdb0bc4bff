//! FAST TCP multihoming: one connection over several paths at once. Each path has its own FAST window.
//!
//! ```text
//! sender                                        receiver
//! data ── path selector ── data dispatcher      one receive buffer (rbuf), delivered in order
//!           │  virtual send buffer of path 1 ──────────>  virtual receive buffer of path 1
//!           │    estimation, window, data, burstiness  <──────────  SACK
//!           │  virtual send buffer of path 2 ──────────>  virtual receive buffer of path 2
//!                estimation, window, data, burstiness  <──────────  SACK
//! ```
//!
//! Citation: multihoming-2010 sec. III, Table 1, Figs. 8 and 9. All paths number their packets in one sequence space. A packet,
//! its retransmissions and their SACKs stay on one path. Each path runs the FAST agent of a single path on the packets of its
//! virtual send buffer. The agent sees only what a SACK says about these packets. With one path, every packet is the same as that
//! of the agent alone.
//!
//! From the top:
//!
//! * [`Sender`] is path selector and data dispatcher, [`Sink`] the receiver. Both are driven like the other agents, with the path
//!   as an extra argument.
//! * `path` is a virtual send buffer and FAST's four components on top of it.
//! * `share` divides the advertised window among the paths.
//!
//! # Readings, where the paper leaves a choice
//!
//! * **Fig. 9 (a), the path of a SACK**: "the path on which SACK is received, i.e. a path on which s_a was originally sent". The
//!   two differ when a SACK of one path covers packets of another. Such packets free the receiver's buffer at once. But the
//!   components of a path use only SACKs received over this path: a SACK over a faster path would acknowledge a packet before its
//!   own RTT has passed.
//! * **Fig. 9 (b), duplicates**: a packet's count rises when a SACK over its path reports a packet of that path with a larger
//!   number. That is FAST's own count of duplicates on the virtual send buffer. Holes beyond the first are retransmitted by
//!   FAST's SACK recovery.
//! * **Fig. 9 (b), step iii** takes an RTT sample of the first two duplicates. The module takes none of any duplicate, and
//!   neither does this code: it would be two samples of weight 1/256.
//! * **"Proportional to their congestion window sizes"**: FAST's window grows without bound where the receiver limits it, so a
//!   window counts as at most rbuf. The shares are whole packets, at least one, and add up to rbuf ([`shares`]). A path's share
//!   covers its packets in flight, and its packets that wait at the receiver for a packet of another path. It replaces ns-2's
//!   `window_` where a loss halves the window.
//! * Shares follow the windows, so for a while a share may be smaller than what the path already has. Whatever the shares, no
//!   packet is sent beyond rbuf. A packet that was sent has its place in the buffer, so no share limits a retransmission.
//! * **Path selector**: the path that received the SACK sends first, then the others in turn, as their windows and shares allow.
//! * **Set-up**, which the paper does not describe: each path begins with a SYN as FAST's agent does. Each SYN takes a number of
//!   the common sequence space.
//! * **A path that waits for packets of others**, because its share of the buffer is full and it has nothing in flight, has no
//!   timer. A single path never waits like this.
//! * **A path that dies** keeps its packets ("retransmission over the same path"), and the connection waits for ever. With
//!   [`Config::reinject`] the other paths send them, too. In the paper there is no such option, so it is off by default.
//! * **SACK blocks**: three, as in ns-2: the block of the packet that arrived, and those reported last over the same path.

mod path;
mod sender;
mod share;
mod sink;

pub use sender::{Config, PATHS_MAX, Sender};
pub use share::shares;
pub use sink::Sink;

use crate::packet::Packet;

/// A packet and the path on which it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The index of the path.
    pub path: usize,
    /// The packet to send.
    pub packet: Packet,
}

#[cfg(test)]
mod tests;

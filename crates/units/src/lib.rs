//! Quantities that cannot be mixed up: [`Time`] and [`Span`], [`Bytes`], [`Rate`].
//!
//! Everything is an integer, so that two machines that compute the same thing get the same bits. Each type parses and prints
//! as people write it (`"1.5Mbit/s"`, `"100ms"`, `"1000B"`), and what it prints it also parses.
//!
//! There are two resolutions of time. Transports and congestion controllers live in nanoseconds ([`Time`], [`Span`]): 584
//! years of uptime, and finer than any clock they will read. The simulator counts picoseconds ([`SimTime`], [`SimSpan`]; 213
//! days): a 1000-byte packet at 1.5 Mbit/s takes 5 333 333.3 ns, and rounding that at every hop drifts past a nanosecond
//! within a few hundred round trips, which is the accuracy at which we compare with ns-2. They are one type with two
//! resolutions, and only [`Instant::rescale`] and [`Duration::rescale`] cross between them.

mod parse;
mod quantity;
mod time;

pub use parse::ParseError;
pub use quantity::{Bytes, Rate};
pub use time::{Duration, Instant};

/// Ticks per second of [`Time`] and [`Span`].
pub const NANO: u64 = 1_000_000_000;
/// Ticks per second of [`SimTime`] and [`SimSpan`].
pub const PICO: u64 = 1_000_000_000_000;

/// A point in time in nanoseconds since the driver's epoch: what transports and controllers see.
pub type Time = Instant<NANO>;
/// A length of time in nanoseconds.
pub type Span = Duration<NANO>;
/// A point in simulated time in picoseconds since the start of the world.
pub type SimTime = Instant<PICO>;
/// A length of simulated time in picoseconds.
pub type SimSpan = Duration<PICO>;

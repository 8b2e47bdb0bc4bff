//! Quantities that cannot be mixed up: [`Time`] and [`Span`], [`Bytes`], [`Rate`].
//!
//! [`shown`] is for messages: a name of a file, or a text from elsewhere. [`settings`] lists the settings of laws, queues and other parts
//! to files, command lines and documents.
//!
//! Every quantity is an integer, so two machines that compute the same thing get the same bits. Each type parses and prints what
//! people write (`"1.5Mbit/s"`, `"100ms"`, `"1000B"`). It parses everything that it prints.
//!
//! Time has two resolutions. Transports and congestion controllers count nanoseconds ([`Time`], [`Span`]): 584 years, and finer
//! than any clock that they read. The simulator counts picoseconds ([`SimTime`], [`SimSpan`]): 213 days. It needs them because a
//! 1000-byte packet at 1.5 Mbit/s takes 5 333 333.3 ns. Rounded to nanoseconds at every hop, the error exceeds a nanosecond
//! within a few hundred round trips, and a nanosecond is the accuracy of the comparison with ns-2. Both are one type with two
//! resolutions. Only [`Instant::rescale`] and [`Duration::rescale`] convert between them.

mod parse;
mod quantity;
pub mod settings;
mod shown;
mod time;

pub use parse::ParseError;
pub use quantity::{Bytes, Rate};
pub use shown::{deceives, shown, shown_bytes};
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

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

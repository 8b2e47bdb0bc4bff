//! The transport: a TCP with streams and paths, without clock, socket or thread.
//!
//! A [`Connection`] is told what happens and asked what to do:
//!
//! ```
//! use anabranch_cc::{Settings, registry};
//! use anabranch_proto::{Config, Connection, FourTuple, SeqNumber, State, Virtual};
//! use anabranch_units::Time;
//!
//! let config = Config::new(Settings::default_for(registry::find("anabranch")?));
//! let (now, tuple) = (Time::ZERO, FourTuple::default());
//! let mut client = Connection::<Virtual>::connect(now, config.clone(), tuple, SeqNumber(7)).expect("it is the default");
//! let mut server = Connection::<Virtual>::listen(now, config, tuple.reversed(), SeqNumber(9)).expect("likewise");
//! let syn = client.poll_transmit(now).expect("a client begins");
//! server.handle_segment(now, syn.tuple.reversed(), syn.segment);
//! assert_eq!(server.state(), State::SynReceived);
//! # Ok::<(), anabranch_cc::registry::SettingError>(())
//! ```
//!
//! # How it is made, from the top
//!
//! * `connection` is the façade: states, what comes in, what leaves, what the application may do.
//! * `stream` cuts what the application writes into segments, and delivers what comes in the order of its stream.
//! * `receive` says which bytes have arrived, what is reported of them, when, and how many more may come.
//! * `recovery` says what is in flight, delivered or lost, and drives a congestion controller on each path.
//! * `scheduler` chooses a path for what is sent.
//! * `segment`, `options`, `payload`, `path`, `seq` are the words that all of them use.
//!
//! # What it promises
//!
//! Each stream is delivered once, whole, in its order, whatever is missing of the others. A segment keeps its boundaries for
//! life. What has been acknowledged is never taken back, the right edge of the window never shrinks, and no loss ends a
//! connection as long as anything gets through. A path that dies takes nothing with it as long as there is another. Everything that grows is bounded by the receive window, the send buffers, or
//! 2^23 segments in flight; holes are not counted.
//!
//! # What is not there yet
//!
//! No undo of a spurious timeout, no timestamps, no keep-alive, no limited transmit (RACK does its work), and with a peer
//! that has no SACK losses are found by the timer alone. Streams end, but cannot be reset or stopped, and share the
//! connection's window without a credit of their own.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod event;
mod options;
mod path;
mod payload;
mod receive;
mod recovery;
mod scheduler;
mod segment;
mod seq;
mod stream;
#[cfg(test)]
mod testing;

pub use config::{Config, Repair};
pub use connection::{ConfigError, Connection, PathReport, Paths, State, Streams, Transmit};
pub use event::{CloseReason, Event};
pub use options::{
    AcknowledgementOptions, Features, HandshakeOptions, Multistream, Options, PathOption, SackBlocks, Timestamps,
};
pub use path::{AddPathError, Endpoint, FourTuple, PATHS_MAX, PathId, PathState, PathStatus, RemovePathError};
pub use payload::{Payload, Virtual};
pub use receive::acks::AckPolicy;
pub use recovery::control::Tally;
pub use scheduler::Scheduling;
pub use segment::{Content, Flags, HEADERS, Header, Record, Segment, Sid, StreamHeader};
pub use seq::{Offset, SeqNumber, Ssn};
pub use stream::inbound::{Read, ReadError};
pub use stream::outbound::{OpenError, WriteError};

//! The transport: a TCP with streams and paths, without clock, socket or thread.
//!
//! A [`Connection`] is told what happens and asked what to do:
//!
//! ```
//! use anabranch_cc::{Settings, registry};
//! use anabranch_proto::{Config, Connection, FourTuple, Secret, SeqNumber, State, Virtual};
//! use anabranch_units::Time;
//!
//! let config = Config::new(Settings::default_for(registry::find("anabranch")?));
//! let (now, tuple) = (Time::ZERO, FourTuple::default());
//! let secret = |number| Secret::predictable(SeqNumber(number));
//! let mut client = Connection::<Virtual>::connect(now, config.clone(), tuple, secret(7)).expect("it is the default");
//! let mut server = Connection::<Virtual>::listen(now, config, tuple.reversed(), secret(9)).expect("likewise");
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
//! * `guard` says which paths may take anything, `scheduler` chooses one of them for what is sent.
//! * `segment`, `stream_header`, `options`, `payload`, `path`, `seq` are the words that all of them use; `ordered` holds what waits above a hole, and
//!   `random` makes what nobody may guess.
//! * [`wire`] makes bytes of segments and segments of bytes, at the edge; [`seal`] does so for datagrams that nobody else can
//!   read or forge; [`endpoint`] owns all connections of a socket, so that a driver is a short loop.
//!
//! # What it promises
//!
//! Each stream is delivered once, whole, in its order, whatever is missing of the others. A segment keeps its boundaries for
//! life. What has been acknowledged is never taken back, the right edge of the window never shrinks, and no loss ends a
//! connection as long as anything gets through. A path that dies takes nothing with it as long as there is another. Everything
//! that grows is bounded by the receive window, the send buffers, 2^23 segments in flight, or a few records and events for each
//! stream and path; holes are not counted.
//!
//! Either side opens streams, at most 255, and each direction of a name is a stream of its own. With [`StreamBuffer::Shared`] one
//! that is not read keeps no other from going on. A stream that is given up, by its sender or its receiver, is over at once;
//! its name is used again when everything about it has been acknowledged.
//!
#![forbid(unsafe_code)]

mod config;
mod connection;
mod ecn;
pub mod endpoint;
mod event;
mod guard;
mod options;
mod ordered;
mod path;
mod payload;
mod random;
mod receive;
mod recovery;
mod scheduler;
pub mod seal;
mod segment;
mod seq;
mod stream;
mod stream_header;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod vectors;
pub mod wire;

pub use config::{Config, Failover, Form, KeepAlive, LossDetection, PathMtu, Repair, StreamBuffer};
pub use connection::{ConfigError, Connection, Limit, Limits, PathReport, Paths, State, Streams, Transmit};
pub use ecn::EcnCodepoint;
pub use event::{CloseReason, Event};
pub use options::{
    AcknowledgementOptions, EcnCounts, Features, HandshakeOptions, Multistream, Options, PathOption, SackBlocks,
    Timestamps,
};
pub use path::{AddPathError, Address, FourTuple, PATHS_MAX, PathId, PathState, PathStatus, RemovePathError};
pub use payload::{Payload, Virtual};
pub use random::Secret;
pub use receive::acks::AckPolicy;
pub use recovery::control::Tally;
pub use recovery::pacer::Pacing;
pub use scheduler::Scheduling;
pub use segment::{Content, Flags, HEADERS, Header, Record, RecordList, Segment};
pub use seq::{Offset, SeqNumber, Ssn};
pub use stream::inbound::{Read, ReadError};
pub use stream::outbound::{OpenError, WriteError};
pub use stream::turns::Priority;
pub use stream_header::{Sid, StreamHeader};

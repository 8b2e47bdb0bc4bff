//! The transport: a TCP with streams and paths, without clock, socket or thread.
//!
//! A [`Connection`] receives inputs and is polled for outputs:
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
//! # Structure, from the top
//!
//! * `connection` is the façade: states, input, output, and the application's calls.
//! * `stream` cuts the application's data into segments, and delivers arrivals in the order of their stream.
//! * `receive` records arrivals, and decides when and what to acknowledge and how large the window is.
//! * `recovery` records flight, deliveries and losses, and drives a congestion controller on each path.
//! * `guard` excludes slow paths, `scheduler` chooses the path for new data.
//! * `segment`, `stream_header`, `options`, `payload`, `path`, `seq` are the common types; `ordered` stores what waits above a
//!   hole, and `random` draws unpredictable numbers.
//! * [`wire`] encodes and decodes segments, at the edge; [`seal`] encrypts and authenticates them as datagrams; [`endpoint`] owns
//!   all connections of a socket.
//!
//! # Guarantees
//!
//! Each stream is delivered once, complete and in order, whatever is missing of the others. A segment keeps its boundaries for
//! life. An acknowledgement is never revoked, the right edge of the window never moves back, and no loss ends a connection while
//! anything gets through. A dead path loses no data as long as there is another path. Memory is bounded by the receive window, the
//! send buffers, 2^23 segments in flight, and a few records and events for each stream and path; holes are not counted.
//!
//! Either end opens streams, at most 255 in the TCP form, and each direction of a SID is a stream of its own. With
//! [`StreamBuffer::Shared`] a stream that is not read does not block others. A stream that is reset or stopped is over at once; its
//! SID is reused when everything about it has been acknowledged.
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

pub use config::{Config, Failover, Form, KeepAlive, PathMtu, Repair, StreamBuffer};
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
pub use recovery::detection::LossDetection;
pub use recovery::pacer::Pacing;
pub use scheduler::Scheduling;
pub use segment::{Content, Flags, HEADERS, Header, Record, RecordList, Segment};
pub use seq::{Offset, SeqNumber, Ssn};
pub use stream::inbound::{Read, ReadError};
pub use stream::outbound::{OpenError, WriteError};
pub use stream::turns::Priority;
pub use stream_header::{Sid, StreamHeader};

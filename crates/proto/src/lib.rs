//! The transport: a TCP with streams and paths, without a clock, a socket or threads.
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
//! * `stream` divides the application's data into segments, and delivers arrived data in the order of its stream.
//! * `receive` records arrivals, and decides when and what to acknowledge, and how large the window is.
//! * `recovery` records what is in flight, delivered and lost, and drives a congestion controller on each path.
//! * `guard` excludes slow paths, `scheduler` chooses the path for new data.
//! * `segment`, `stream_header`, `options`, `payload`, `path` and `seq` are the common types. `ordered` stores data that waits
//!   above a hole, and `random` draws unpredictable numbers.
//! * `datagrams` are the queues of unreliable datagrams, and the rule by which they share paths with streams.
//! * [`wire`] encodes and decodes segments. [`seal`] encrypts and authenticates them as datagrams. [`endpoint`] owns all
//!   connections of a socket.
//!
//! # Guarantees
//!
//! Each stream is delivered once, completely and in order, whatever is missing of other streams. A retransmission keeps the
//! boundaries of its segment. An acknowledgement is never revoked, and the right edge of the window never moves back. No loss
//! ends a connection while some segments arrive. A dead path loses no data as long as there is another path. Memory is bounded by
//! the receive window, the send buffers, 2^23 segments in flight, and a few records and events per stream and path, in addition
//! to the memory of holes.
//!
//! Either end opens streams, at most 255 in the TCP form; each direction of a SID is a stream of its own. With
//! [`StreamBuffer::Shared`] an unread stream does not block others. A stream that is reset or stopped ends at once. Its SID is
//! reused when everything about it has been acknowledged.
//!
#![forbid(unsafe_code)]

mod config;
mod connection;
mod datagrams;
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

pub use config::{Config, ConfigError, Failover, Form, KeepAlive, PathMtu, Repair, StreamBuffer};
pub use connection::{Connection, Datagrams, Limit, Limits, PathReport, Paths, State, Streams, Transmit};
pub use datagrams::{DatagramStats, SendDatagramError, Urgency};
pub use ecn::EcnCodepoint;
pub use event::{CloseReason, Event};
pub use options::{
    AcknowledgementOptions, EcnCounts, Extent, Features, HandshakeOptions, Multistream, Options, PathOption,
    SackBlocks, Timestamps,
};
pub use path::{AddPathError, Address, FourTuple, PATHS_MAX, PathId, PathState, PathStatus, RemovePathError};
pub use payload::{Payload, Virtual};
pub use random::Secret;
pub use receive::acks::AckPolicy;
pub use receive::arrival_buffer::ArrivalBuffer;
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

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

//! The transport on a real network: connections and streams over UDP, for tokio.
//!
//! ```
//! use anabranch::{Config, Endpoint, SecretKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
//! let ticket = server.ticket();
//!
//! let client = Endpoint::client(Config::default())?;
//! let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
//! let (there, here) = (there?, here.expect("the server is there"));
//!
//! let mut stream = there.open_stream().await?;
//! stream.write_all(b"hello").await?;
//! stream.finish()?;
//!
//! let mut stream = here.accept_stream().await?;
//! assert_eq!(&stream.read_to_end(100).await?[..], b"hello");
//!
//! there.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Identities
//!
//! A public key identifies an end. A [`Ticket`] contains the addresses and the public key of an endpoint. Anyone who has the
//! ticket can connect, and no other endpoint can impersonate the server. A server admits every peer with its ticket, or only
//! certain keys ([`Admission`]). All traffic is encrypted.
//!
//! # Replies
//!
//! A stream carries data in one direction. To request a reply, put a number into the request, and begin the reply with the same
//! number. If requests are sequential no number is needed: an end accepts streams in the order in which their first bytes arrive.
//! [`pairs`] does this for all streams of a connection.
//!
//! # Datagrams
//!
//! [`Connection::send_datagram`] sends a message of at most one packet that arrives at once or not at all: nothing is
//! retransmitted, and nothing waits for something else. Datagrams share congestion control with the streams: if both have data all
//! the time, each gets half.
//!
//! # Structure, from the top
//!
//! * `endpoint`, `connection`, `datagrams`, `stream` are the application's handles. They act on the engine of their connection under its lock
//!   (`state`).
//! * An endpoint has several engines, its *shards*, as many as the runtime has threads ([`Config::shards`]), and a connection stays in
//!   one. So several cores serve several connections, and one connection has one core besides those of the application. `lobby` has
//!   what belongs to no shard.
//! * `driver` is the task of a shard: it reads, runs the engine, sends, and delivers events. `intake` sorts what is read, and puts what
//!   is for another shard into its `inbox`. `call` holds the waiting tasks of a connection.
//! * `socket` reads and sends batches of datagrams (`quinn-udp`), `sockets` are all sockets of an endpoint. `clock` and `address`
//!   convert to the engine's types. `interfaces` lists the computer's addresses.
//! * [`measure`] sends at full rate, to measure a network. [`pairs`] joins streams to requests and answers.
//! * `qlog` writes logs of connections, `spans` emits `tracing` events; `prometheus` (a feature of that name) exports metrics.
//! * `key` and `ticket` are what users exchange; `config` has the settings, `error` the errors.
//!
//! The transport itself is `anabranch-proto`, which has no sockets.
//!
//! # Limits
//!
//! A connection buffers at most [`Config::receive_buffer`] of received data (up to [`Config::receive_buffer_max`] if the
//! application reads fast) and [`Config::send_memory`] of written data. A stream accepts [`Config::send_buffer`] to
//! [`Config::send_buffer_max`] bytes beyond what was sent; then writes wait. Of datagrams, [`Config::datagram_send_buffer`] and
//! [`Config::datagram_receive_buffer`] bytes wait, and then the oldest are dropped. There are at most [`Config::connections_max`]
//! connections, 4,080 streams in each direction ([`Config::streams`]), and 256 connections that wait to be accepted.

#![forbid(unsafe_code)]

mod aborter;
mod address;
mod base32;
pub mod blocking;
mod call;
mod calling;
mod carrier;
mod carriers;
mod clock;
mod code;
mod config;
mod connection;
mod datagrams;
mod diagnosis;
mod door;
mod driver;
mod endpoint;
mod error;
mod find;
mod forward;
mod frame;
mod handle;
mod inbox;
mod intake;
mod interfaces;
mod joining;
mod key;
mod knocks;
mod lobby;
pub mod measure;
mod member;
mod membership;
mod message;
pub mod pairs;
mod post;
#[cfg(feature = "prometheus")]
mod prometheus;
mod punch;
mod qlog;
mod relay;
mod relayed;
mod routes;
mod socket;
mod sockets;
mod spans;
mod state;
mod stream;
mod ticket;
mod waiting;
mod websocket;

pub use aborter::Aborter;
pub use anabranch_cc as cc;
pub use anabranch_proto::seal::Cipher;
pub use anabranch_proto::{
    DatagramStats, Limit, Limits, PathId, PathReport, PathState, PathStatus, Priority, RemovePathError, Scheduling,
    Tally,
};
pub use anabranch_units as units;

pub use code::{Code, CodeOffer, ParseCodeError};
pub use config::{Admission, Config, has_fast_aes};
pub use connection::{Connection, Path, Stats};
pub use diagnosis::Diagnosis;
pub use door::{RelayCertificate, RelayTcp};
pub use endpoint::Endpoint;
pub use error::{
    AddPathError, BindError, CodeError, ConnectError, DatagramError, Full, Lost, MessageError, RateTooLow, ReadError,
    RelayError, StreamError, WriteError,
};
pub use forward::Forwarded;
pub use key::{KeyFileError, ParseKeyError, PublicKey, SecretKey};
pub use message::Refusal;
pub use qlog::QlogReport;
pub use relay::{Relay, RelayConfig, RelayStats};
pub use stream::{RecvStream, SendStream};
pub use ticket::{Ticket, TicketError};

/// The guide; its examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Guide;

/// The README; its example is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

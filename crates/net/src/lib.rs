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
//! # Who is who
//!
//! An end is known by its public key. A [`Ticket`] says where an endpoint is and which key it has; who has it can call, and nobody else
//! can answer. A server lets in whoever has its ticket, or those who prove one of some keys ([`Admission`]). Everything is encrypted.
//!
//! # Replies
//!
//! Streams go one way, and each direction has names of its own, so that nobody waits for a stream that the other one has forgotten to end. Who
//! wants a reply says in the request which one it is, by any number that both understand, and the reply begins with it. Where requests
//! take turns no number is needed: the streams of one end are accepted in the order in which their first bytes come.
//!
//! # How it is made, from the top
//!
//! * `endpoint`, `connection`, `stream` are what an application has: handles, which do what they do under one lock (`state`).
//! * `driver` is the task of a socket: reads, lets the engine work, sends, tells. `call` is who waits for what on a connection.
//! * `socket` reads and sends batches of datagrams (`quinn-udp`), `sockets` are those of an endpoint; `clock` and `address` say when and where in the
//!   engine's words; `interfaces` are the addresses that the computer has.
//! * [`measure`] sends as fast as it may, for who wants to know how fast that is.
//! * `qlog` writes logs of connections into files, `spans` tells subscribers of `tracing` what becomes of them; `prometheus` (a feature of that name)
//!   tells their numbers.
//! * `key`, `ticket` are what people exchange; `config`, `error` the words for settings and for what goes wrong.
//!
//! The transport itself is `anabranch-proto`, which knows no sockets.
//!
//! # Limits
//!
//! A connection holds at most [`Config::receive_buffer`] of what has come, or up to [`Config::receive_buffer_max`] where it is read fast, and
//! [`Config::send_memory`] of what was written; a stream takes [`Config::send_buffer`] to [`Config::send_buffer_max`] more than has been sent, and then
//! writing waits. [`Config::connections_max`] connections, 4,080 streams in each direction ([`Config::streams`]), 256 calls that wait to be accepted.

#![forbid(unsafe_code)]

mod address;
mod base32;
pub mod blocking;
mod call;
mod clock;
mod config;
mod connection;
mod diagnosis;
mod driver;
mod endpoint;
mod error;
mod interfaces;
mod key;
pub mod measure;
#[cfg(feature = "prometheus")]
mod prometheus;
mod qlog;
mod socket;
mod sockets;
mod spans;
mod state;
mod stream;
mod ticket;
mod waiting;

pub use anabranch_cc as cc;
pub use anabranch_proto::{Limit, Limits, PathId, PathReport, PathState, PathStatus, Priority, RemovePathError, Tally};
pub use anabranch_units as units;

pub use config::{Admission, Config, has_fast_aes};
pub use connection::{Connection, Path, Stats};
pub use diagnosis::Diagnosis;
pub use endpoint::Endpoint;
pub use error::{AddPathError, BindError, ConnectError, Lost, MessageError, ReadError, StreamError, WriteError};
pub use key::{KeyFileError, ParseKeyError, PublicKey, SecretKey};
pub use qlog::QlogReport;
pub use stream::{RecvStream, SendStream};
pub use ticket::{Ticket, TicketError};

/// The guide, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Guide;

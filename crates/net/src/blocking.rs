//! The same API for programs without an asynchronous runtime: calls block, and a thread of the endpoint moves the bytes.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use anabranch::blocking::Endpoint;
//! use anabranch::{Config, SecretKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::server("127.0.0.1:0".parse()?, &SecretKey::generate()?, Config::default())?;
//! let ticket = server.ticket();
//! let serve = std::thread::spawn(move || -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
//!     let connection = server.accept().expect("the socket is there");
//!     let mut text = String::new();
//!     connection.accept_stream()?.read_to_string(&mut text)?;
//!     connection.close()?;
//!     Ok(text)
//! });
//! let connection = Endpoint::client(Config::default())?.connect(&ticket)?;
//! let mut stream = connection.open_stream()?;
//! stream.write_all(b"hello")?;
//! stream.finish()?;
//! connection.close()?;
//! assert_eq!(serve.join().expect("it does not panic").expect("it hears"), "hello");
//! # Ok(())
//! # }
//! ```
//!
//! When the last handle is dropped, the thread continues until all connections are over, for at most [`LINGER`]. If the program
//! ends earlier, it must wait for [`Connection::close`]. In a tokio task these calls panic: use the types of the crate itself
//! there.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{
    AddPathError, BindError, ConnectError, DatagramError, Lost, MessageError, ReadError, StreamError, WriteError,
};
use crate::{Config, PathId, PublicKey, SecretKey, Stats, Ticket};

/// An [`Endpoint`](crate::Endpoint) with a thread of its own. Clones are handles of the same endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    runtime: Arc<Runtime>,
}

/// A [`Connection`](crate::Connection). Clones are handles of the same connection.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: crate::Connection,
    runtime: Arc<Runtime>,
}

/// A [`SendStream`](crate::SendStream) that implements [`Write`]. Flushing does nothing: written data is sent anyway.
#[derive(Debug)]
pub struct SendStream {
    inner: crate::SendStream,
    runtime: Arc<Runtime>,
}

/// A [`RecvStream`](crate::RecvStream) that implements [`Read`].
#[derive(Debug)]
pub struct RecvStream {
    inner: crate::RecvStream,
    runtime: Arc<Runtime>,
}

/// The thread; it lives as long as any handle.
#[derive(Debug)]
struct Runtime {
    handle: Handle,
    /// Sent to the thread to end it.
    last: Option<(crate::Endpoint, oneshot::Sender<crate::Endpoint>)>,
}

impl Endpoint {
    /// Connects only: as [`crate::Endpoint::client`].
    ///
    /// # Errors
    /// As [`crate::Endpoint::client`], or if no thread can be started.
    pub fn client(config: Config) -> Result<Self, BindError> {
        Self::start(|| crate::Endpoint::client(config))
    }

    /// Admits every peer with its ticket: as [`crate::Endpoint::server`].
    ///
    /// # Errors
    /// As [`crate::Endpoint::server`], or if no thread can be started.
    pub fn server(address: SocketAddr, key: &SecretKey, config: Config) -> Result<Self, BindError> {
        Self::start(|| crate::Endpoint::server(address, key, config))
    }

    /// Binds an endpoint with a key: as [`crate::Endpoint::bind`].
    ///
    /// # Errors
    /// As [`crate::Endpoint::bind`], or if no thread can be started.
    pub fn bind(address: SocketAddr, key: &SecretKey, config: Config) -> Result<Self, BindError> {
        Self::start(|| crate::Endpoint::bind(address, key, config))
    }

    fn start(bind: impl FnOnce() -> Result<crate::Endpoint, BindError>) -> Result<Self, BindError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(BindError::Thread)?;
        let handle = runtime.handle().clone();
        let endpoint = {
            let _entered = runtime.enter();
            bind()?
        };
        let (sender, last) = oneshot::channel::<crate::Endpoint>();
        let run = async {
            if let Ok(endpoint) = last.await {
                // Do not wait longer for peers that do not answer.
                _ = tokio::time::timeout(LINGER, endpoint.wait_idle()).await;
            }
        };
        let thread = std::thread::Builder::new().name("anabranch".to_owned());
        thread.spawn(move || runtime.block_on(run)).map_err(BindError::Thread)?;
        Ok(Self { runtime: Arc::new(Runtime { handle, last: Some((endpoint, sender)) }) })
    }

    /// Connects to a ticket's endpoint: as [`crate::Endpoint::connect`].
    ///
    /// # Errors
    /// As there: no peer answers, or the peer refuses.
    pub fn connect(&self, ticket: &Ticket) -> Result<Connection, ConnectError> {
        let inner = self.runtime.wait(self.get_ref().connect(ticket))?;
        Ok(Connection { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Endpoint::accept`]: the next incoming connection; `None` if the socket is gone.
    pub fn accept(&self) -> Option<Connection> {
        let inner = self.runtime.wait(self.get_ref().accept())?;
        Some(Connection { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Endpoint::wait_idle`]: waits until no connection is left.
    pub fn wait_idle(&self) {
        self.runtime.wait(self.get_ref().wait_idle());
    }

    /// A ticket for this endpoint: as [`crate::Endpoint::ticket`].
    pub fn ticket(&self) -> Ticket {
        self.get_ref().ticket()
    }

    /// The public key of this endpoint.
    pub fn public_key(&self) -> PublicKey {
        self.get_ref().public_key()
    }

    /// The asynchronous endpoint, for calls that do not block, such as those about addresses.
    pub fn get_ref(&self) -> &crate::Endpoint {
        let (endpoint, _) = self.runtime.last.as_ref().expect("it is there as long as there are handles");
        endpoint
    }
}

impl Connection {
    /// As [`crate::Connection::open_stream`]: waits if all streams are in use.
    ///
    /// # Errors
    /// As there: the connection is closed or lost.
    pub fn open_stream(&self) -> Result<SendStream, StreamError> {
        let inner = self.runtime.wait(self.inner.open_stream())?;
        Ok(SendStream { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// Waits for the next stream of the peer: as [`crate::Connection::accept_stream`].
    ///
    /// # Errors
    /// As there: the connection is closed or lost.
    pub fn accept_stream(&self) -> Result<RecvStream, StreamError> {
        let inner = self.runtime.wait(self.inner.accept_stream())?;
        Ok(RecvStream { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// Sends a message as a stream of its own: as [`crate::Connection::send_message`].
    ///
    /// # Errors
    /// As there: the connection is closed or lost.
    pub fn send_message(&self, message: Bytes) -> Result<(), StreamError> {
        self.runtime.wait(self.inner.send_message(message))
    }

    /// As [`crate::Connection::accept_message`]: the next message, of at most `most` bytes.
    ///
    /// # Errors
    /// As there: the connection is closed or lost, or the message is incomplete or too long.
    pub fn accept_message(&self, most: usize) -> Result<Bytes, MessageError> {
        self.runtime.wait(self.inner.accept_message(most))
    }

    /// Waits for the next datagram: as [`crate::Connection::read_datagram`]. Datagrams are sent by [`Connection::get_ref`], as that does not wait.
    ///
    /// # Errors
    /// As there: the peer has closed, or the connection is lost.
    pub fn read_datagram(&self) -> Result<Bytes, DatagramError> {
        self.runtime.wait(self.inner.read_datagram())
    }

    /// As [`crate::Connection::add_path`]: waits until the path is validated.
    ///
    /// # Errors
    /// As there: no suitable socket, no answer of the peer, or a limit is reached.
    pub fn add_path(&self, local: std::net::IpAddr, remote: SocketAddr) -> Result<PathId, AddPathError> {
        self.runtime.wait(self.inner.add_path(local, remote))
    }

    /// As [`crate::Connection::add_paths`]: one path for each interface of this computer. Returns the number of new paths.
    pub fn add_paths(&self, ticket: &Ticket) -> usize {
        self.runtime.wait(self.inner.add_paths(ticket))
    }

    /// As [`crate::Connection::close`]: waits until everything written has arrived.
    ///
    /// # Errors
    /// As there: the connection was lost.
    pub fn close(&self) -> Result<(), Lost> {
        self.runtime.wait(self.inner.close())
    }

    /// As [`crate::Connection::closed`]: waits until both ends have closed.
    ///
    /// # Errors
    /// As there: the connection was lost.
    pub fn closed(&self) -> Result<(), Lost> {
        self.runtime.wait(self.inner.closed())
    }

    /// The current counters: as [`crate::Connection::stats`].
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// The asynchronous connection, for calls that do not block: to send datagrams, to inspect or remove paths, or to abort.
    pub fn get_ref(&self) -> &crate::Connection {
        &self.inner
    }
}

impl SendStream {
    /// As [`crate::SendStream::finish`]: ends the stream.
    ///
    /// # Errors
    /// As there: the stream is stopped or closed, or the connection is lost.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let _entered = self.runtime.handle.enter();
        self.inner.finish()
    }

    /// As [`crate::SendStream::write_all_bytes`]: writes without a copy.
    ///
    /// # Errors
    /// As there: the stream is stopped or closed, or the connection is lost.
    pub fn write_all_bytes(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.runtime.wait(self.inner.write_all_bytes(bytes))
    }

    /// As [`crate::SendStream::stopped`]: waits until the peer has received the stream, or has refused the rest of it.
    ///
    /// # Errors
    /// As there: the connection was lost.
    pub fn stopped(&mut self) -> Result<Option<u16>, Lost> {
        self.runtime.wait(self.inner.stopped())
    }

    /// The asynchronous stream, for calls that do not block: reset, priority.
    pub fn get_mut(&mut self) -> &mut crate::SendStream {
        &mut self.inner
    }
}

impl RecvStream {
    /// As [`crate::RecvStream::read_chunk`]: reads without a copy.
    ///
    /// # Errors
    /// As there: the stream was reset, or the connection is lost.
    pub fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        self.runtime.wait(self.inner.read_chunk(most))
    }

    /// As [`crate::RecvStream::stop`]: refuses the rest of the stream.
    pub fn stop(self, code: u16) {
        self.inner.stop(code);
    }
}

impl Write for SendStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Copying more bytes than the stream takes at once would be useless.
        let bytes = &bytes[..bytes.len().min(COPIED_AT_ONCE)];
        Ok(self.runtime.wait(self.inner.write_bytes(&mut Bytes::copy_from_slice(bytes)))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for RecvStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let chunk = self.runtime.wait(self.inner.read_chunk(bytes.len()))?.unwrap_or_default();
        bytes[..chunk.len()].copy_from_slice(&chunk);
        Ok(chunk.len())
    }
}

impl Runtime {
    fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.handle.block_on(what)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some((endpoint, sender)) = self.last.take() {
            // The thread ends by itself only after it has received this.
            _ = sender.send(endpoint);
        }
    }
}

/// How long connections may take to end after the last handle is dropped: a few retransmission timeouts.
pub const LINGER: Duration = Duration::from_secs(10);

/// A stream rarely takes more at a time.
const COPIED_AT_ONCE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadError;

    fn pair() -> (Connection, Connection) {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Endpoint::server(address, &SecretKey::generate().unwrap(), Config::default()).unwrap();
        let ticket = server.ticket();
        let there = Endpoint::client(Config::default()).unwrap().connect(&ticket).unwrap();
        (server.accept().unwrap(), there)
    }

    /// The endpoints' own handles are dropped: the connections keep their threads alive.
    #[test]
    fn ten_megabytes_there_and_an_answer_back() {
        let (here, there) = pair();
        let serve = std::thread::spawn(move || {
            let mut all = vec![];
            here.accept_stream().unwrap().read_to_end(&mut all).unwrap();
            here.send_message(Bytes::from(all.len().to_string())).unwrap();
            here.close().unwrap();
            all
        });
        let sent: Vec<u8> = (0..10_000_000_u32).map(|count| (count / 3) as u8).collect();
        let mut stream = there.open_stream().unwrap();
        stream.write_all(&sent).unwrap();
        stream.finish().unwrap();
        assert_eq!(there.accept_message(100).unwrap(), "10000000");
        assert_eq!((there.close(), there.closed()), (Ok(()), Ok(())));
        assert!(serve.join().unwrap() == sent);
    }

    /// The thread delivers written data after every handle is dropped.
    #[test]
    fn written_data_arrives_after_handles_are_dropped() {
        let (here, there) = pair();
        there.send_message(Bytes::from(vec![7; 500_000])).unwrap();
        drop(there);
        assert_eq!(here.accept_message(1 << 20).unwrap(), vec![7; 500_000]);
    }

    /// A reset is an error for the reader, and a lost connection for a waiting call.
    #[test]
    fn reset_and_lost_connection_are_errors() {
        let (here, there) = pair();
        let mut stream = there.open_stream().unwrap();
        stream.write_all(b"x").unwrap();
        let mut read = here.accept_stream().unwrap();
        stream.get_mut().reset(9);
        let error = std::iter::repeat_with(|| read.read_chunk(10)).find_map(Result::err);
        assert_eq!(error, Some(ReadError::Reset(9)));
        there.get_ref().abort();
        assert!(matches!(here.accept_stream(), Err(StreamError::Lost(_))));
    }
}

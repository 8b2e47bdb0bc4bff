//! The same for programs without an asynchronous runtime: every call waits on its own thread, and a thread of the endpoint's moves the bytes.
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
//! When the last handle is gone, the thread goes on until all connections are over, [`LINGER`] at most. A program that ends before has to wait for
//! [`Connection::close`]. In a task of tokio these calls panic: there, use the types of the crate itself.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::{AddPathError, BindError, ConnectError, Lost, MessageError, ReadError, StreamError, WriteError};
use crate::{Config, PathId, PublicKey, SecretKey, Stats, Ticket};

/// An [`Endpoint`](crate::Endpoint) with a thread of its own. Its copies are handles of the same.
#[derive(Clone, Debug)]
pub struct Endpoint {
    runtime: Arc<Runtime>,
}

/// A [`Connection`](crate::Connection). Its copies are handles of the same.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: crate::Connection,
    runtime: Arc<Runtime>,
}

/// A [`SendStream`](crate::SendStream), written as any [`Write`]. To flush it does nothing: what is written is sent.
#[derive(Debug)]
pub struct SendStream {
    inner: crate::SendStream,
    runtime: Arc<Runtime>,
}

/// A [`RecvStream`](crate::RecvStream), read as any [`Read`].
#[derive(Debug)]
pub struct RecvStream {
    inner: crate::RecvStream,
    runtime: Arc<Runtime>,
}

/// The thread, as long as anybody has a handle.
#[derive(Debug)]
struct Runtime {
    handle: Handle,
    /// What the thread gets when it is to end.
    last: Option<(crate::Endpoint, oneshot::Sender<crate::Endpoint>)>,
}

impl Endpoint {
    /// As [`crate::Endpoint::client`].
    ///
    /// # Errors
    /// The same, or if there can be no thread.
    pub fn client(config: Config) -> Result<Self, BindError> {
        Self::start(|| crate::Endpoint::client(config))
    }

    /// As [`crate::Endpoint::server`].
    ///
    /// # Errors
    /// The same, or if there can be no thread.
    pub fn server(address: SocketAddr, key: &SecretKey, config: Config) -> Result<Self, BindError> {
        Self::start(|| crate::Endpoint::server(address, key, config))
    }

    /// As [`crate::Endpoint::bind`].
    ///
    /// # Errors
    /// The same, or if there can be no thread.
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
                // Whoever does not answer for so long is not waited for.
                _ = tokio::time::timeout(LINGER, endpoint.wait_idle()).await;
            }
        };
        let thread = std::thread::Builder::new().name("anabranch".to_owned());
        thread.spawn(move || runtime.block_on(run)).map_err(BindError::Thread)?;
        Ok(Self { runtime: Arc::new(Runtime { handle, last: Some((endpoint, sender)) }) })
    }

    /// As [`crate::Endpoint::connect`].
    ///
    /// # Errors
    /// The same.
    pub fn connect(&self, ticket: &Ticket) -> Result<Connection, ConnectError> {
        let inner = self.runtime.wait(self.get_ref().connect(ticket))?;
        Ok(Connection { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Endpoint::accept`]: the next connection that somebody else has opened; none if the socket is gone.
    pub fn accept(&self) -> Option<Connection> {
        let inner = self.runtime.wait(self.get_ref().accept())?;
        Some(Connection { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Endpoint::wait_idle`]: waits until no connection is left.
    pub fn wait_idle(&self) {
        self.runtime.wait(self.get_ref().wait_idle());
    }

    /// As [`crate::Endpoint::ticket`].
    pub fn ticket(&self) -> Ticket {
        self.get_ref().ticket()
    }

    /// Under which name others know it.
    pub fn public_key(&self) -> PublicKey {
        self.get_ref().public_key()
    }

    /// What does not wait is done here: addresses, for one.
    pub fn get_ref(&self) -> &crate::Endpoint {
        let (endpoint, _) = self.runtime.last.as_ref().expect("it is there as long as there are handles");
        endpoint
    }
}

impl Connection {
    /// As [`crate::Connection::open_stream`]: waits for a name if all are in use.
    ///
    /// # Errors
    /// The same.
    pub fn open_stream(&self) -> Result<SendStream, StreamError> {
        let inner = self.runtime.wait(self.inner.open_stream())?;
        Ok(SendStream { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Connection::accept_stream`].
    ///
    /// # Errors
    /// The same.
    pub fn accept_stream(&self) -> Result<RecvStream, StreamError> {
        let inner = self.runtime.wait(self.inner.accept_stream())?;
        Ok(RecvStream { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// As [`crate::Connection::send_message`].
    ///
    /// # Errors
    /// The same.
    pub fn send_message(&self, message: Bytes) -> Result<(), StreamError> {
        self.runtime.wait(self.inner.send_message(message))
    }

    /// As [`crate::Connection::accept_message`]: the next message, of at most so many bytes.
    ///
    /// # Errors
    /// The same.
    pub fn accept_message(&self, most: usize) -> Result<Bytes, MessageError> {
        self.runtime.wait(self.inner.accept_message(most))
    }

    /// As [`crate::Connection::add_path`]: waits until the path is validated.
    ///
    /// # Errors
    /// The same.
    pub fn add_path(&self, local: std::net::IpAddr, remote: SocketAddr) -> Result<PathId, AddPathError> {
        self.runtime.wait(self.inner.add_path(local, remote))
    }

    /// As [`crate::Connection::add_paths`]: a path by each interface of this computer. Returns how many there are more.
    pub fn add_paths(&self, ticket: &Ticket) -> usize {
        self.runtime.wait(self.inner.add_paths(ticket))
    }

    /// As [`crate::Connection::close`]: waits until all that was written has arrived.
    ///
    /// # Errors
    /// The same.
    pub fn close(&self) -> Result<(), Lost> {
        self.runtime.wait(self.inner.close())
    }

    /// As [`crate::Connection::closed`]: waits until both ends have closed.
    ///
    /// # Errors
    /// The same.
    pub fn closed(&self) -> Result<(), Lost> {
        self.runtime.wait(self.inner.closed())
    }

    /// As [`crate::Connection::stats`].
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// What does not wait is done here: to look at paths, remove one, or abort.
    pub fn get_ref(&self) -> &crate::Connection {
        &self.inner
    }
}

impl SendStream {
    /// As [`crate::SendStream::finish`]: nothing more is written.
    ///
    /// # Errors
    /// The same.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let _entered = self.runtime.handle.enter();
        self.inner.finish()
    }

    /// As [`crate::SendStream::write_all_bytes`]: no byte is copied.
    ///
    /// # Errors
    /// The same.
    pub fn write_all_bytes(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.runtime.wait(self.inner.write_all_bytes(bytes))
    }

    /// As [`crate::SendStream::stopped`]: waits until the peer has all of it, or does not want the rest.
    ///
    /// # Errors
    /// The same.
    pub fn stopped(&mut self) -> Result<Option<u16>, Lost> {
        self.runtime.wait(self.inner.stopped())
    }

    /// What does not wait is done here: to reset it, or give it a priority.
    pub fn get_mut(&mut self) -> &mut crate::SendStream {
        &mut self.inner
    }
}

impl RecvStream {
    /// As [`crate::RecvStream::read_chunk`]: no byte is copied.
    ///
    /// # Errors
    /// The same.
    pub fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        self.runtime.wait(self.inner.read_chunk(most))
    }

    /// As [`crate::RecvStream::stop`]: nothing more of it is wanted.
    pub fn stop(self, code: u16) {
        self.inner.stop(code);
    }
}

impl Write for SendStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What the stream does not take at once would else be copied for nothing.
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
            // The thread ends by itself only when it gets this.
            _ = sender.send(endpoint);
        }
    }
}

/// How long connections may take to end when nobody has a handle any more: a few retransmission timeouts.
pub const LINGER: Duration = Duration::from_secs(10);

/// What a stream takes at once is rarely more.
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

    /// The endpoints' own handles are gone: the connections have what keeps the threads.
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

    /// What was written is delivered by the thread when every handle is gone.
    #[test]
    fn what_was_written_outlives_its_handles() {
        let (here, there) = pair();
        there.send_message(Bytes::from(vec![7; 500_000])).unwrap();
        drop(there);
        assert_eq!(here.accept_message(1 << 20).unwrap(), vec![7; 500_000]);
    }

    /// A reset is an error to who reads, and a connection that is gone to who waits.
    #[test]
    fn what_goes_wrong_is_an_error() {
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

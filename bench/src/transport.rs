//! The interface of a transport that is measured.

use std::future::Future;
use std::net::SocketAddr;

use bytes::Bytes;

/// Why a measurement failed.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// A transport that is compared.
pub trait Transport: Sized + 'static {
    /// A connection, at either end.
    type Link: Link;

    /// Waits for connections at this address.
    fn listen(&self, at: SocketAddr) -> impl Future<Output = Result<Listening<Self::Link>, Failed>>;

    /// Connects to the end with this [`Listening::hello`].
    fn connect(&self, hello: &str) -> impl Future<Output = Result<Self::Link, Failed>>;
}

/// The listening end.
pub struct Listening<L> {
    /// Its address and identity, in a line.
    pub hello: String,
    /// Its first connection.
    pub link: std::pin::Pin<Box<dyn Future<Output = Result<L, Failed>>>>,
}

/// A connection, whose streams are encrypted, reliable and in order.
pub trait Link: Clone + Send + Sync + 'static {
    type Send: SendSide;
    type Receive: ReceiveSide;

    /// Opens a stream to the other end, which learns of it with the first byte.
    fn open(&self) -> impl Future<Output = Result<Self::Send, Failed>> + Send;

    /// Accepts a stream of the other end.
    fn accept(&self) -> impl Future<Output = Result<Self::Receive, Failed>> + Send;

    /// Opens a stream in each direction; the other end [answers](Link::answer).
    fn call(&self) -> impl Future<Output = Result<(Self::Send, Self::Receive), Failed>> + Send;

    /// The other end's part of [`Link::call`].
    fn answer(&self) -> impl Future<Output = Result<(Self::Send, Self::Receive), Failed>> + Send;
}

/// A stream that is written.
pub trait SendSide: Send + 'static {
    /// Returns when the transport has taken all of it.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Ends the stream after the written bytes.
    fn finish(&mut self) -> impl Future<Output = Result<(), Failed>> + Send;
}

/// A stream that is read.
pub trait ReceiveSide: Send + 'static {
    /// The next bytes, in pieces of the transport's choice; `None` at the end.
    fn read(&mut self) -> impl Future<Output = Result<Option<Bytes>, Failed>> + Send;

    /// Reads `count` bytes.
    fn read_all(&mut self, count: usize) -> impl Future<Output = Result<(), Failed>> + Send {
        async move {
            let mut read = 0;
            while read < count {
                read += self.read().await?.ok_or("the stream ended")?.len();
            }
            if read == count { Ok(()) } else { Err(format!("{read} bytes came of {count}").into()) }
        }
    }
}

/// The bytes of one write.
pub const BLOCK: usize = 256 << 10;

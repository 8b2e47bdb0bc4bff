//! What a transport must do to be measured.

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

    /// Connects to who has said this [`Listening::hello`].
    fn connect(&self, hello: &str) -> impl Future<Output = Result<Self::Link, Failed>>;
}

/// The end that waits.
pub struct Listening<L> {
    /// Where it is and how it is known, in a line.
    pub hello: String,
    /// Its first connection.
    pub link: std::pin::Pin<Box<dyn Future<Output = Result<L, Failed>>>>,
}

/// A connection. What it hands out is encrypted, reliable and in order.
pub trait Link: Clone + Send + Sync + 'static {
    type Send: SendSide;
    type Receive: ReceiveSide;

    /// A stream to the other end, which hears of it with the first byte.
    fn open(&self) -> impl Future<Output = Result<Self::Send, Failed>> + Send;

    /// A stream of the other end.
    fn accept(&self) -> impl Future<Output = Result<Self::Receive, Failed>> + Send;

    /// A stream each way, with which the other one [answers](Link::answer).
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
    /// The next bytes, as the transport has them; none at the end.
    fn read(&mut self) -> impl Future<Output = Result<Option<Bytes>, Failed>> + Send;

    /// Reads so many bytes.
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

/// What is written at once.
pub const BLOCK: usize = 256 << 10;

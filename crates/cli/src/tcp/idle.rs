//! Connections of a proxy through which nothing moves are given up: a peer that still answers keep-alive probes, and neither sends, reads nor closes,
//! would hold its place for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

/// The bytes that were read from the streams of a connection, and written to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved(Arc<AtomicU64>);

impl Moved {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns when nothing has moved for `limit`, or an eighth of it longer. `acked` is what the peers have acknowledged: what is written still has to
    /// arrive.
    pub(super) async fn stops(&self, limit: Duration, acked: impl Fn() -> u64) {
        let now = || (self.0.load(Ordering::Relaxed), acked());
        let (mut seen, mut same) = (now(), 0);
        while same < LOOKS {
            sleep(limit / LOOKS).await;
            let found = now();
            same = if found == seen { same + 1 } else { 0 };
            seen = found;
        }
    }
}

/// How often it is looked for something new within the limit.
const LOOKS: u32 = 8;

/// A stream whose bytes are counted.
#[derive(Debug)]
pub(super) struct Counted<S> {
    pub(super) stream: S,
    pub(super) moved: Moved,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.moved.add(buffer.filled().len() - before);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, data);
        if let Poll::Ready(Ok(bytes)) = result {
            self.moved.add(bytes);
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! A connection: streams either way, and what is known of it.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_proto::endpoint::ConnectionId;
use anabranch_proto::{OpenError, PathId, PathReport, PathState};

use crate::address;
use crate::error::{Lost, StreamError};
use crate::key::PublicKey;
use crate::state::{Shared, State};
use crate::stream::{RecvStream, SendStream};

/// A connection. Its copies are handles of the same.
///
/// Streams go one way. Either end opens up to 255 at a time ([`Connection::open_stream`]), and the other one accepts them in the order in which
/// their first bytes come ([`Connection::accept_stream`]). There are no pairs of streams; see [replies](crate#replies) for replies.
///
/// When the last handle of a connection and of its streams is gone, the connection is closed: what was written is still delivered.
#[derive(Debug)]
pub struct Connection {
    handle: Handle,
}

/// Counts as a handle.
#[derive(Debug)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
    id: ConnectionId,
}

/// What happened on a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions and probes with old data.
    pub segments_sent_again: u64,
    /// Times that a segment was taken for lost.
    pub segments_lost: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Bytes that the peer has acknowledged, with the headers of streams.
    pub bytes_acknowledged: u64,
    /// Bytes that have arrived in order, with the headers of streams.
    pub bytes_received: u64,
    /// Bytes that have arrived and were not read.
    pub bytes_unread: u64,
}

/// A path of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Its name, which is used again when it is gone.
    pub id: PathId,
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// What it is good for.
    pub state: PathState,
    /// Window, RTT, counts, and what the law shows.
    pub report: PathReport,
}

impl Connection {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Who is at the other end.
    pub fn remote_key(&self) -> PublicKey {
        self.handle.shared.lock().call(self.handle.id).remote
    }

    /// Opens a stream to the peer, which hears of it with its first bytes or its end. If all are in use it waits until the peer has all of one.
    ///
    /// # Errors
    /// If this end has closed, or the connection is gone.
    pub async fn open_stream(&self) -> Result<SendStream, StreamError> {
        poll_fn(|cx| self.handle.shared.with(|state| self.poll_open(cx, state))).await
    }

    fn poll_open(&self, cx: &Context<'_>, state: &mut State) -> Poll<Result<SendStream, StreamError>> {
        // What is still to be told of the stream that had the name before is not about this one.
        if state.take_events(self.handle.shared.clock.now()) {
            state.rouse();
        }
        let (call, engine, _) = state.parts(self.handle.id);
        if let Some(lost) = call.lost() {
            return Poll::Ready(Err(lost.into()));
        }
        if call.is_closing || call.closed.is_some() {
            return Poll::Ready(Err(StreamError::Closed));
        }
        let opened = engine.connection(self.handle.id).map(|connection| connection.streams().open());
        match opened {
            Some(Ok(sid)) => {
                let serial = call.open(sid);
                call.handles += 1;
                Poll::Ready(Ok(SendStream::new(self.handle.adopt_here(), sid, serial)))
            }
            Some(Err(OpenError::NoneLeft)) => {
                call.opening.add(cx);
                Poll::Pending
            }
            Some(Err(OpenError::NotEstablished)) | None => Poll::Ready(Err(StreamError::Closed)),
        }
    }

    /// The next stream of the peer.
    ///
    /// # Errors
    /// If the peer has closed and all its streams have been accepted and read, or the connection is gone.
    pub async fn accept_stream(&self) -> Result<RecvStream, StreamError> {
        poll_fn(|cx| {
            let mut state = self.handle.shared.lock();
            let call = state.call(self.handle.id);
            if let Some(sid) = call.accept() {
                call.handles += 1;
                return Poll::Ready(Ok(RecvStream::new(self.handle.adopt_here(), sid)));
            }
            if let Some(lost) = call.lost() {
                return Poll::Ready(Err(lost.into()));
            }
            if call.has_all() {
                return Poll::Ready(Err(StreamError::Closed));
            }
            call.accepting.add(cx);
            Poll::Pending
        })
        .await
    }

    /// Closes this side: finishes all streams, and waits until the peer has all that was written. The peer may still send; it hears of the close
    /// when all has arrived, and should then close, too ([`Connection::closed`]).
    ///
    /// # Errors
    /// If the connection was lost before all was delivered.
    pub async fn close(&self) -> Result<(), Lost> {
        self.begin_close();
        poll_fn(|cx| {
            let mut state = self.handle.shared.lock();
            let call = state.call(self.handle.id);
            if call.is_delivered {
                return Poll::Ready(Ok(()));
            }
            if let Some(lost) = call.lost() {
                return Poll::Ready(Err(lost));
            }
            call.closing.add(cx);
            Poll::Pending
        })
        .await
    }

    /// The same without waiting.
    pub fn begin_close(&self) {
        self.handle.shared.with(|state| {
            let (_, engine, _) = state.parts(self.handle.id);
            if let Some(connection) = engine.connection(self.handle.id) {
                connection.close();
            }
            state.watch_close(self.handle.id);
            state.rouse();
        });
    }

    /// Waits for the end of the connection: until both sides have closed, and have all that the other one wrote.
    ///
    /// # Errors
    /// If it ends in another way.
    pub async fn closed(&self) -> Result<(), Lost> {
        poll_fn(|cx| {
            let mut state = self.handle.shared.lock();
            let call = state.call(self.handle.id);
            if let Some(lost) = call.lost() {
                return Poll::Ready(Err(lost));
            }
            if call.is_over {
                return Poll::Ready(Ok(()));
            }
            call.closing.add(cx);
            Poll::Pending
        })
        .await
    }

    /// Ends the connection at once; what waits is lost, and the peer hears that it was.
    pub fn abort(&self) {
        self.handle.shared.with(|state| {
            let (_, engine, _) = state.parts(self.handle.id);
            if let Some(connection) = engine.connection(self.handle.id) {
                connection.abort();
            }
            state.rouse();
        });
    }

    /// What happened so far. Paths that are gone, and connections, have no counts.
    pub fn stats(&self) -> Stats {
        let state = self.handle.shared.lock();
        let Some(connection) = state.engine.view(self.handle.id) else { return Stats::default() };
        let stats = Stats {
            bytes_acknowledged: connection.acked(),
            bytes_received: connection.received(),
            bytes_unread: connection.buffered(),
            ..Stats::default()
        };
        connection.path_reports().fold(stats, |sum, (_, path)| Stats {
            segments_sent: sum.segments_sent + path.tally.sent,
            segments_sent_again: sum.segments_sent_again + path.tally.sent_again,
            segments_lost: sum.segments_lost + path.tally.lost,
            timeouts: sum.timeouts + path.tally.timeouts,
            ..sum
        })
    }

    /// Its paths.
    pub fn paths(&self) -> Vec<Path> {
        let state = self.handle.shared.lock();
        let Some(connection) = state.engine.view(self.handle.id) else { return vec![] };
        let path = |(id, report): (PathId, PathReport)| Path {
            id,
            local: address::plain(report.tuple.local),
            remote: address::plain(report.tuple.remote),
            state: report.state,
            report,
        };
        connection.path_reports().map(path).collect()
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

impl Handle {
    /// One that has been counted.
    pub(crate) fn adopt(shared: Arc<Shared>, id: ConnectionId) -> Self {
        Self { shared, id }
    }

    /// The same for another one of the connection, while the lock is held.
    fn adopt_here(&self) -> Self {
        Self::adopt(Arc::clone(&self.shared), self.id)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.shared.lock().call(self.id).handles += 1;
        self.adopt_here()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|state| state.drop_handle(self.id));
    }
}

//! Connections: streams in both directions, paths and statistics.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_proto::{
    Connection as EngineConnection, DatagramStats, FourTuple, Limits, OpenError, PathId, PathReport, PathState,
    PathStatus, RemovePathError,
};
use anabranch_units::{Rate, Time};
use bytes::Bytes;
use tokio::task::JoinSet;

use crate::address;
use crate::call::Stage;
use crate::config::Config;
use crate::error::{AddPathError, Lost, MessageError, RateTooLow, StreamError, WriteError};
use crate::frame;
use crate::handle::Handle;
use crate::interfaces::{self, Interface};
use crate::key::PublicKey;
use crate::sockets;
use crate::state::State;
use crate::stream::{RecvStream, SendStream};
use crate::ticket::Ticket;

/// A connection. Clones are handles of the same connection.
///
/// A stream carries data in one direction. Each end may have up to 4,080 open streams ([`Connection::open_stream`]). The other
/// end accepts them in the order in which their first bytes arrive ([`Connection::accept_stream`]). Streams do not come in pairs;
/// see [replies](crate#replies).
///
/// When the last handle of a connection and of its streams is dropped, the connection is closed; written data is still delivered.
#[derive(Debug)]
pub struct Connection {
    pub(crate) handle: Handle,
}

type Engine = EngineConnection<Bytes>;

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions, and probes with old data.
    pub segments_sent_again: u64,
    /// Segments detected as lost.
    pub segments_lost: u64,
    /// Lost segments that a timeout or the removal of their path declared lost.
    pub segments_lost_by_timeout: u64,
    /// Duplicate arrivals at the peer, after a spurious loss or an unnecessary probe.
    pub segments_doubled: u64,
    /// Loss episodes that proved spurious and were undone.
    pub losses_undone: u64,
    /// Retransmission timeouts on all paths.
    pub timeouts: u64,
    /// Bytes that the peer has acknowledged, stream headers included.
    pub bytes_acknowledged: u64,
    /// Bytes that have arrived in order, stream headers included.
    pub bytes_received: u64,
    /// Bytes that have arrived and were not read yet.
    pub bytes_unread: u64,
    /// The counters of datagrams.
    pub datagrams: DatagramStats,
    /// What limits this end, and how long each limit applied since the connection was established.
    pub limits: Limits,
}

/// A path of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Its identifier. It is reused when the path is gone.
    pub id: PathId,
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Whether it carries data.
    pub state: PathState,
    /// Window, RTT, counters, and the gauges of the law.
    pub report: PathReport,
}

impl Stats {
    pub(crate) fn of(connection: &Engine, now: Time) -> Self {
        let stats = Self {
            limits: connection.limits().until(now),
            bytes_acknowledged: connection.acked(),
            bytes_received: connection.received(),
            bytes_unread: connection.buffered(),
            datagrams: connection.datagram_stats(),
            ..Self::default()
        };
        connection.path_reports().fold(stats, |sum, (_, path)| Self {
            segments_sent: sum.segments_sent + path.tally.sent,
            segments_sent_again: sum.segments_sent_again + path.tally.sent_again,
            segments_lost: sum.segments_lost + path.tally.lost,
            segments_lost_by_timeout: sum.segments_lost_by_timeout + path.tally.lost_by_timeout,
            segments_doubled: sum.segments_doubled + path.tally.duplicates,
            losses_undone: sum.losses_undone + path.tally.undone,
            timeouts: sum.timeouts + path.tally.timeouts,
            ..sum
        })
    }
}

impl Path {
    /// All paths of a connection.
    pub(crate) fn all(connection: &Engine, now: Time) -> Vec<Self> {
        let path = |(id, report): (PathId, PathReport)| Self {
            id,
            local: address::plain(report.tuple.local),
            remote: address::plain(report.tuple.remote),
            state: report.state,
            report: PathReport { limits: report.limits.until(now), ..report },
        };
        connection.path_reports().map(path).collect()
    }

    /// Whether it leads through a relay. Then its addresses are this end's names for the route.
    pub fn is_relayed(&self) -> bool {
        frame::number(self.report.tuple.remote).is_some()
    }

    /// The RTT without queueing: the baseRTT of a law that has one, else the minimum RTT sample.
    pub fn rtt_base(&self) -> Option<Duration> {
        let of_law = self.report.gauges.value("rtt_base_s").filter(|base| base.is_finite() && *base > 0.0);
        let least = || self.report.rtt_min.map(|least| Duration::from_nanos(least.ticks()));
        of_law.and_then(|base| Duration::try_from_secs_f64(base).ok()).or_else(least)
    }

    /// Segments of this connection in queues on the path, as the law estimates; `None` without an estimate.
    pub fn queue(&self) -> Option<f64> {
        self.report.gauges.value("backlog").filter(|backlog| backlog.is_finite())
    }

    /// The largest delivery rate of recent rounds, in bytes per second; `None` before the end of the first round.
    pub fn delivery_rate(&self) -> Option<f64> {
        self.report.delivery_rate
    }
}

impl Connection {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// The peer's public key.
    pub fn remote_key(&self) -> PublicKey {
        self.handle.shared().lock().call(self.handle.id()).remote
    }

    /// The limit of concurrent streams that this end was configured with.
    pub(crate) fn streams_max(&self) -> u16 {
        self.handle.shared().config.streams
    }

    /// Opens a stream to the peer. The peer learns of it when its first bytes or its end arrive. If all streams are in use, this
    /// waits until one was delivered.
    ///
    /// # Errors
    /// If this end has closed, or the connection is lost.
    pub async fn open_stream(&self) -> Result<SendStream, StreamError> {
        poll_fn(|cx| self.handle.shared().with(|state| self.poll_open(cx, state))).await
    }

    fn poll_open(&self, cx: &Context<'_>, state: &mut State) -> Poll<Result<SendStream, StreamError>> {
        // Pending events concern the previous stream of this SID.
        if state.take_events(self.handle.shared().clock.now()) {
            state.rouse();
        }
        let (call, engine, _) = state.parts(self.handle.id());
        if let Some(lost) = call.lost() {
            return Poll::Ready(Err(lost.into()));
        }
        if call.stage >= Stage::Closing || call.closed.is_some() {
            return Poll::Ready(Err(StreamError::Closed));
        }
        let opened = engine.connection(self.handle.id()).map(|connection| connection.streams().open());
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

    /// Waits for the next stream of the peer.
    ///
    /// # Errors
    /// If the peer has closed and all its streams have been accepted and read, or the connection is lost.
    pub async fn accept_stream(&self) -> Result<RecvStream, StreamError> {
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let call = state.call(self.handle.id());
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

    /// Whether the peer gives a sign of life within this time. It is asked four times, as datagrams may be lost.
    pub async fn answers(&self, within: Duration) -> bool {
        let (shared, id) = (self.handle.shared(), self.handle.id());
        let begin = shared.clock.now();
        for turn in 0..4 * LOOKS {
            let has_answered = shared.with(|state| {
                let (call, engine, _) = state.parts(id);
                let Some(connection) = engine.view(id).filter(|_| !call.is_over()) else { return Some(false) };
                if connection.heard_at() > begin {
                    return Some(true);
                }
                if turn % LOOKS == 0
                    && let Some(connection) = engine.connection(id)
                {
                    connection.ask();
                    state.rouse();
                }
                None
            });
            if let Some(has_answered) = has_answered {
                return has_answered;
            }
            tokio::time::sleep(within / (4 * LOOKS)).await;
        }
        false
    }

    /// Waits until the peer seems to get no full packets: it answers short ones, but nothing else has arrived for several timeouts.
    /// The connection goes on, and is lost with [`Lost::Stalled`] if that remains so. Returns `false` if it ends before.
    pub async fn stalled(&self) -> bool {
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let call = state.call(self.handle.id());
            if call.is_stalled {
                return Poll::Ready(true);
            }
            if call.is_over() {
                return Poll::Ready(false);
            }
            call.stalling.add(cx);
            Poll::Pending
        })
        .await
    }

    /// Closes this side: finishes all streams, and waits until the peer has received everything. The peer may still send. It is
    /// informed of the close when everything has arrived, and should then close, too ([`Connection::closed`]).
    ///
    /// # Errors
    /// If the connection is lost before everything is delivered.
    pub async fn close(&self) -> Result<(), Lost> {
        self.begin_close();
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let call = state.call(self.handle.id());
            if call.stage >= Stage::Delivered {
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

    /// Closes this side without waiting.
    pub fn begin_close(&self) {
        self.handle.shared().with(|state| {
            let (_, engine, _) = state.parts(self.handle.id());
            if let Some(connection) = engine.connection(self.handle.id()) {
                connection.close();
            }
            state.watch_close(self.handle.id());
            state.rouse();
        });
    }

    /// Waits until both ends have closed and have received everything.
    ///
    /// # Errors
    /// If the connection ends in any other way.
    pub async fn closed(&self) -> Result<(), Lost> {
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let call = state.call(self.handle.id());
            if let Some(lost) = call.lost() {
                return Poll::Ready(Err(lost));
            }
            if call.is_over() {
                return Poll::Ready(Ok(()));
            }
            call.closing.add(cx);
            Poll::Pending
        })
        .await
    }

    /// Ends the connection at once with a reset. Waiting data is lost. What is called after that fails with [`Lost::Aborted`].
    pub fn abort(&self) {
        let now = self.handle.shared().clock.now();
        self.handle.shared().with(|state| {
            let (_, engine, _) = state.parts(self.handle.id());
            if let Some(connection) = engine.connection(self.handle.id()) {
                connection.abort();
                // The end is known from now on, and not when the driver has its turn.
                state.take_events(now);
            }
            state.rouse();
        });
    }

    /// The current counters. They do not include paths that are gone.
    pub fn stats(&self) -> Stats {
        let state = self.handle.shared().lock();
        let Some(connection) = state.engine.view(self.handle.id()) else { return Stats::default() };
        Stats::of(connection, self.handle.shared().clock.now())
    }

    /// Sets up a path from a local address to one of the peer's, and waits until it is validated. From then on it carries data.
    /// The system's routing must send datagrams from that address over its interface, as with MPTCP.
    ///
    /// # Errors
    /// If no socket of the endpoint has that address, the limit of paths is reached, or the peer does not answer.
    pub async fn add_path(&self, local: IpAddr, remote: SocketAddr) -> Result<PathId, AddPathError> {
        let (id, tuple) = self.begin_path(local, remote)?;
        let answered = self.path_answered(id, tuple);
        tokio::time::timeout(self.handle.shared().config.connect_timeout, answered).await.unwrap_or_else(|_| {
            if self.paths().iter().any(|path| path.id == id && path.report.tuple == tuple) {
                // By now it may be the only path.
                _ = self.remove_path(id);
            }
            Err(AddPathError::NoAnswer(remote))
        })
    }

    /// Waits until a path carries data.
    async fn path_answered(&self, id: PathId, tuple: FourTuple) -> Result<PathId, AddPathError> {
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let Some(connection) = state.engine.view(self.handle.id()) else {
                return Poll::Ready(Err(AddPathError::Gone));
            };
            // By now the identifier may belong to another path.
            match connection.path(id).filter(|report| report.tuple == tuple).map(|report| report.state) {
                None => Poll::Ready(Err(AddPathError::NoAnswer(address::plain(tuple.remote)))),
                Some(PathState::Live) => Poll::Ready(Ok(id)),
                Some(PathState::Validating | PathState::Suspect) => {
                    state.call(self.handle.id()).pathing.add(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn begin_path(&self, local: IpAddr, remote: SocketAddr) -> Result<(PathId, FourTuple), AddPathError> {
        self.handle.shared().with(|state| {
            let place = |bound: &SocketAddr| address::of(SocketAddr::new(local, bound.port()));
            let is_home = |bound: &&SocketAddr| sockets::serving(&[**bound], place(bound)).is_some();
            let bound = state.lobby.lock().locals.iter().find(is_home).copied();
            let bound = &bound.ok_or(AddPathError::NoSocket(local))?;
            let tuple = FourTuple { local: place(bound), remote: address::of(remote) };
            let now = state.at(self.handle.shared().clock.now());
            let connection = state.engine.connection(self.handle.id()).ok_or(AddPathError::Gone)?;
            let id = connection.paths().add(now, tuple).map_err(|error| match error {
                anabranch_proto::AddPathError::NotNegotiated => AddPathError::NotNegotiated,
                anabranch_proto::AddPathError::TooMany => AddPathError::TooMany,
                anabranch_proto::AddPathError::InUse => AddPathError::InUse,
            })?;
            state.rouse();
            Ok((id, tuple))
        })
    }

    /// Sets up a path for each interface of this computer that has none, to an address of the ticket, and waits until each is
    /// validated or has failed. Returns the number of new paths.
    pub async fn add_paths(&self, ticket: &Ticket) -> usize {
        self.add_paths_over(ticket, |_| true).await
    }

    /// As [`Connection::add_paths`], over the interfaces that `may_use` approves by their names. A program that carries traffic of this computer through the
    /// connection keeps out its own interface.
    pub async fn add_paths_over(&self, ticket: &Ticket, may_use: impl Fn(&str) -> bool) -> usize {
        let mut attempts = JoinSet::new();
        let paths: Vec<_> = self.paths().iter().map(|path| (path.local.ip(), path.remote)).collect();
        let interfaces: Vec<_> = Interface::all().into_iter().filter(|interface| may_use(&interface.name)).collect();
        for (local, remote) in interfaces::pairs(&interfaces, ticket.addresses(), &paths) {
            let connection = self.clone();
            attempts.spawn(async move { connection.add_path(local, remote).await });
        }
        let mut count = 0;
        while let Some(added) = attempts.join_next().await {
            count += usize::from(matches!(added, Ok(Ok(_))));
        }
        count
    }

    /// Removes a path. Its data in flight is retransmitted on the others.
    ///
    /// # Errors
    /// If there is no such path, or no other path carries data.
    pub fn remove_path(&self, path: PathId) -> Result<(), RemovePathError> {
        self.handle.shared().with(|state| {
            let now = state.at(self.handle.shared().clock.now());
            let connection = state.engine.connection(self.handle.id()).ok_or(RemovePathError::Unknown)?;
            connection.paths().remove(now, path)?;
            state.rouse();
            Ok(())
        })
    }

    /// Asks the peer for a sign of life.
    pub(crate) fn ask(&self) {
        self.handle.shared().with(|state| {
            if let Some(connection) = state.engine.connection(self.handle.id()) {
                connection.ask();
            }
            state.rouse();
        });
    }

    /// The four-tuple of a path that carries data: `before` as long as that is one.
    pub(crate) fn live_tuple(&self, before: Option<FourTuple>) -> Option<FourTuple> {
        let state = self.handle.shared().lock();
        let reports = state.engine.view(self.handle.id())?.path_reports();
        let live: Vec<_> =
            reports.filter(|(_, path)| path.state == PathState::Live).map(|(_, path)| path.tuple).collect();
        before.filter(|before| live.contains(before)).or_else(|| live.first().copied())
    }

    /// Waits until another path than `before` has to be used, and returns its four-tuple; `None` if the connection is over.
    pub(crate) async fn moved(&self, before: FourTuple) -> Option<FourTuple> {
        poll_fn(|cx| {
            {
                let mut state = self.handle.shared().lock();
                let call = state.call(self.handle.id());
                if call.is_over() {
                    return Poll::Ready(None);
                }
                call.pathing.add(cx);
                call.closing.add(cx);
            }
            match self.live_tuple(Some(before)).filter(|tuple| *tuple != before) {
                Some(tuple) => Poll::Ready(Some(tuple)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Sets whether this end uses a path actively or as a backup.
    pub fn set_path_status(&self, path: PathId, status: PathStatus) {
        self.handle.shared().with(|state| {
            if let Some(connection) = state.engine.connection(self.handle.id()) {
                connection.paths().set_status(path, status);
            }
            state.rouse();
        });
    }

    /// The limit of the rate at which this end sends on this connection: [`Config::rate_max`](crate::Config::rate_max) until
    /// [`Connection::set_rate_max`] replaces it. `None`, too, if the connection is over.
    pub fn rate_max(&self) -> Option<Rate> {
        self.handle.shared().lock().engine.view(self.handle.id()).and_then(EngineConnection::rate_max)
    }

    /// Replaces the limit of the rate at which this end sends on this connection, from now on.
    ///
    /// # Errors
    /// If the rate is below [`Config::RATE_MIN`](crate::Config::RATE_MIN). The former limit then stays.
    pub fn set_rate_max(&self, rate: Option<Rate>) -> Result<(), RateTooLow> {
        if let Some(rate) = rate.filter(|&rate| rate < Config::RATE_MIN) {
            return Err(RateTooLow(rate));
        }
        self.handle.shared().with(|state| {
            if let Some(connection) = state.engine.connection(self.handle.id()) {
                connection.set_rate_max(rate).expect("it is not below the least");
            }
            state.rouse();
        });
        Ok(())
    }

    /// Sends a message as a stream of its own, so that it does not wait for others. Returns when all of the message is in the
    /// send buffer, not when it is delivered. To wait for delivery, use [`SendStream::stopped`] of a stream of your own, or
    /// [`Connection::close`].
    ///
    /// # Errors
    /// If this end has closed, or the connection is lost.
    pub async fn send_message(&self, message: Bytes) -> Result<(), StreamError> {
        let mut stream = self.open_stream().await?;
        let lost = |error| match error {
            WriteError::Lost(lost) => StreamError::Lost(lost),
            // The peer has refused the message.
            WriteError::Stopped(_) | WriteError::Closed => StreamError::Closed,
        };
        stream.write_all_bytes(message).await.map_err(lost)?;
        stream.finish().map_err(lost)
    }

    /// Waits for the next message of the peer, in the order in which messages begin. To receive messages in the order in which
    /// they are complete, read each stream in a task of its own.
    ///
    /// # Errors
    /// If the peer has closed, resets the message, or sends more than `most` bytes; or if the connection is lost.
    pub async fn accept_message(&self, most: usize) -> Result<Bytes, MessageError> {
        let mut stream = self.accept_stream().await.map_err(MessageError::Stream)?;
        stream.read_to_end(most).await.map_err(MessageError::Read)
    }

    /// All paths of the connection.
    pub fn paths(&self) -> Vec<Path> {
        let state = self.handle.shared().lock();
        let Some(connection) = state.engine.view(self.handle.id()) else { return vec![] };
        Path::all(connection, self.handle.shared().clock.now())
    }
}

/// How often an answer is looked for after each question.
const LOOKS: u32 = 5;

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

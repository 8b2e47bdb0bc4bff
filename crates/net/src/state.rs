//! The state shared by a driver and the handles of its connections, behind one lock.
//!
//! An endpoint has one or several such *shards*. Each has an engine with some of the connections, a driver and a lock, so that as many
//! cores can work. A connection stays in its shard. What belongs to no shard is in the [`Lobby`](crate::lobby::Lobby).

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use anabranch_proto::endpoint::{ConnectionId, Endpoint as Engine, EndpointEvent};
use anabranch_proto::{CloseReason, Event, FourTuple, PathId, PathState, PathStatus, State as Life};
use anabranch_units::{Span, Time};

use crate::call::{Call, Ended, Stage};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::Full;
use crate::frame;
use crate::key::PublicKey;
use crate::lobby::SharedLobby;
use crate::qlog::{Qlog, Vantage};
use crate::socket::Socket;
use crate::spans;
use crate::waiting::Woken;

/// A shard of an endpoint.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) config: Arc<Config>,
    /// The bound address of the first socket.
    pub(crate) first: SocketAddr,
    pub(crate) public: PublicKey,
    pub(crate) lobby: Arc<SharedLobby>,
    /// The place of this shard among those of the endpoint.
    pub(crate) place: usize,
    state: Mutex<State>,
}

/// The state behind the lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) lobby: Arc<SharedLobby>,
    /// The place of this shard among those of the endpoint.
    place: usize,
    /// New sockets for the driver.
    pub(crate) sockets: Vec<Socket>,
    calls: BTreeMap<ConnectionId, Call>,
    /// The driver's waker, while it waits for the socket, its timer or an input.
    pub(crate) driver: Option<Waker>,
    /// Whether there was an input since the driver's turn began, during which there is no waker.
    is_roused: bool,
    pub(crate) is_gone: bool,
    /// Connections that this end has closed, and that have not ended.
    closing: Vec<ConnectionId>,
    /// Connections without a handle, and when they will be aborted.
    deserted: VecDeque<(Time, ConnectionId)>,
    pub(crate) woken: Woken,
    /// The latest time passed to the engine.
    time: Time,
    /// The logs of connections, if there are any.
    pub(crate) qlog: Option<Qlog>,
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        config: impl Into<Arc<Config>>,
        public: PublicKey,
        lobby: Arc<SharedLobby>,
        place: usize,
        engine: Engine,
    ) -> Arc<Self> {
        let first = lobby.lock().locals[0];
        let state = State {
            engine,
            lobby: Arc::clone(&lobby),
            place,
            sockets: vec![],
            calls: BTreeMap::new(),
            driver: None,
            is_roused: false,
            is_gone: false,
            closing: vec![],
            deserted: VecDeque::new(),
            woken: Woken::default(),
            time: Time::ZERO,
            qlog: None,
        };
        Arc::new(Self { clock, config: config.into(), first, public, lobby, place, state: Mutex::new(state) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock comes from the engine, which is then unusable anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` under the lock, and then wakes the tasks concerned.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = act(&mut state);
        if state.woken.is_empty() {
            return result;
        }
        let mut woken = std::mem::take(&mut state.woken);
        drop(state);
        woken.wake();
        result
    }
}

impl State {
    /// The engine has an input: wakes the driver.
    pub(crate) fn rouse(&mut self) {
        self.is_roused = true;
        self.woken.one(&mut self.driver);
    }

    /// A turn of the driver begins. Returns the new sockets.
    pub(crate) fn begin_turn(&mut self) -> Vec<Socket> {
        self.is_roused = false;
        std::mem::take(&mut self.sockets)
    }

    /// Whether there was an input since the turn began.
    pub(crate) fn is_roused(&self) -> bool {
        self.is_roused
    }

    #[cfg_attr(not(feature = "prometheus"), expect(unused_mut, reason = "only then it gets a number"))]
    pub(crate) fn insert(&mut self, id: ConnectionId, mut call: Call) {
        #[cfg(feature = "prometheus")]
        {
            let mut lobby = self.lobby.lock();
            call.number = lobby.numbered;
            lobby.numbered += 1;
        }
        self.calls.insert(id, call);
    }

    /// Established connections in the order of creation.
    #[cfg(feature = "prometheus")]
    pub(crate) fn established(&self) -> impl Iterator<Item = (ConnectionId, &Call)> {
        let all = self.calls.iter().filter(|(_, call)| call.stage >= Stage::Established && call.closed.is_none());
        all.map(|(id, call)| (*id, call))
    }

    /// A connection with a handle.
    pub(crate) fn call(&mut self, id: ConnectionId) -> &mut Call {
        self.calls.get_mut(&id).expect("it is there as long as it has a handle")
    }

    /// A connection with a handle, the engine, and the tasks to wake.
    pub(crate) fn parts(&mut self, id: ConnectionId) -> (&mut Call, &mut Engine, &mut Woken) {
        let Self { calls, engine, woken, .. } = self;
        (calls.get_mut(&id).expect("it is there as long as it has a handle"), engine, woken)
    }

    /// Drops a handle. A connection without handles is closed. If it was not yet established or accepted, it is aborted.
    pub(crate) fn drop_handle(&mut self, id: ConnectionId) {
        let (call, engine, _) = self.parts(id);
        call.handles -= 1;
        if call.handles > 0 {
            return;
        }
        if call.closed.is_some() {
            self.calls.remove(&id);
            return;
        }
        let (is_established, mut unread) = (call.stage >= Stage::Established, std::mem::take(&mut call.incoming));
        if let Some(connection) = engine.connection(id) {
            if is_established {
                // Stopping fails if nothing of the stream has arrived yet, which does not matter.
                unread.drain(..).for_each(|sid| _ = connection.streams().stop(sid, 0));
                connection.close();
            } else {
                connection.abort();
            }
        }
        self.watch_close(id);
        self.rouse();
    }

    /// This end has closed a connection.
    pub(crate) fn watch_close(&mut self, id: ConnectionId) {
        let stage = &mut self.call(id).stage;
        *stage = Stage::Closing.max(*stage);
        if !self.closing.contains(&id) {
            self.closing.push(id);
        }
    }

    /// Ends all connections with a reset.
    pub(crate) fn abort_all(&mut self, now: Time) {
        let Self { calls, engine, .. } = self;
        calls.keys().for_each(|id| {
            if let Some(connection) = engine.connection(*id) {
                connection.abort();
            }
        });
        // The end is known from now on, and not when the driver has its turn.
        self.take_events(now);
        self.rouse();
    }

    /// Takes all events of the engine. Returns whether there were any, since they may cause new inputs.
    pub(crate) fn take_events(&mut self, now: Time) -> bool {
        let now = self.at(now);
        let mut has_told = false;
        while let Some(told) = self.engine.poll_event() {
            has_told = true;
            self.log_event(now, told);
            self.handle_event(told);
        }
        self.log_traces();
        self.look_at_closing(now) || has_told
    }

    /// Logs the traces of connections since the last turn.
    pub(crate) fn log_traces(&mut self) {
        let Some(qlog) = &self.qlog else { return };
        // Failed handshakes have no log.
        self.calls.keys().filter_map(|id| self.engine.trace_of(*id)).for_each(|traces| qlog.traces(traces));
    }

    /// Logs an event of a connection, after its trace.
    fn log_event(&mut self, now: Time, told: EndpointEvent) {
        let Some(qlog) = &self.qlog else { return };
        let EndpointEvent { connection: id, event } = told;
        if !self.calls.contains_key(&id) {
            let tuple = self.engine.view(id).and_then(|connection| Some(connection.path(PathId::FIRST)?.tuple));
            let Some(tuple) = tuple.filter(|_| matches!(event, Event::Established { .. })) else { return };
            let traces = self.engine.trace_of(id);
            let begin = traces.as_ref().and_then(|traces| traces.events.first()).map_or(now, |first| first.at);
            qlog.open(id, Vantage::Server, tuple, begin);
            traces.into_iter().for_each(|traces| qlog.traces(traces));
        } else if let Some(traces) = self.engine.trace_of(id) {
            qlog.traces(traces);
        }
        qlog.event(id, now, event);
    }

    fn handle_event(&mut self, told: EndpointEvent) {
        let id = told.connection;
        if !self.calls.contains_key(&id) {
            if matches!(told.event, Event::Established { .. }) {
                self.admit(id, told.event);
            }
            return;
        }
        let (call, engine, woken) = self.parts(id);
        // If this end waited for retransmitted FINs, the end was already reported.
        let is_told = call.is_over() && told.event == Event::Closed(CloseReason::Finished);
        if !call.span.is_disabled() && !is_told {
            spans::tell(&call.span, told.event, tuple(engine, told));
        }
        match told.event {
            Event::Established { .. } => {
                call.stage = Stage::Established.max(call.stage);
                woken.all(&mut call.opening);
                self.look_at_relay(id, PathId::FIRST, told.event);
            }
            Event::Readable(sid) if call.handles == 0 => {
                // No task will read this stream.
                if let Some(connection) = engine.connection(id) {
                    _ = connection.streams().stop(sid, 0);
                }
            }
            Event::Readable(sid) => {
                // If the stream was read to its end before this event, the event is not about a new stream.
                let is_news = !call.is_idle(sid)
                    || engine.connection(id).is_some_and(|connection| connection.streams().is_readable(sid));
                if is_news {
                    call.on_readable(sid, woken);
                }
            }
            Event::DatagramsReadable => woken.all(&mut call.receiving),
            Event::Writable(sid) => call.on_writable(sid, woken),
            Event::Finished(sid) => call.on_finished(sid, woken),
            Event::Stopped { sid, code } => call.on_stopped(sid, code, woken),
            Event::Stalled => {
                call.is_stalled = true;
                woken.all(&mut call.stalling);
            }
            Event::PeerClosed => {
                call.has_peer_closed = true;
                woken.all(&mut call.accepting);
                woken.all(&mut call.receiving);
            }
            Event::Closed(reason) => {
                call.full = engine.full(id).map(Full::of);
                if call.handles > 0
                    && let Some(connection) = engine.connection(id)
                {
                    call.keep_unread(connection, woken);
                }
                call.end(Ended::Engine(reason), woken);
                if call.handles == 0 {
                    self.calls.remove(&id);
                }
                self.closing.retain(|closing| *closing != id);
            }
            Event::PathValidated(path) => {
                woken.all(&mut call.pathing);
                self.look_at_relay(id, path, told.event);
            }
            Event::PathFailed(_) | Event::PathRestored(_) | Event::PathGone(_) => woken.all(&mut call.pathing),
        }
    }

    /// An incoming connection is established.
    fn admit(&mut self, id: ConnectionId, event: Event) {
        let Some(remote) = self.engine.remote(id) else { return };
        // Looked at and done under one lock, as the last handle may go at any time, and takes with it what waits.
        let lobby = Arc::clone(&self.lobby);
        let mut lobby = lobby.lock();
        if lobby.handles == 0 || lobby.incoming.len() >= INCOMING_MAX {
            if let Some(connection) = self.engine.connection(id) {
                connection.abort();
            }
            return;
        }
        lobby.incoming.push_back((self.place, id));
        self.woken.all(&mut lobby.accepting);
        drop(lobby);
        // Who takes it from there needs the lock of this shard.
        let mut call = Call::new(Vantage::Server, PublicKey(remote));
        call.stage = Stage::Established;
        spans::tell(&call.span, event, tuple(&self.engine, EndpointEvent { connection: id, event }));
        self.insert(id, call);
        self.look_at_relay(id, PathId::FIRST, event);
    }

    /// Whether a connection has this path.
    pub(crate) fn has_path(&self, tuple: FourTuple) -> bool {
        let views = self.calls.keys().filter_map(|id| self.engine.view(*id));
        { views }.any(|connection| connection.path_reports().any(|(_, path)| path.tuple == tuple))
    }

    /// Whether a connection has this path alone, and has heard nothing since then.
    pub(crate) fn is_silent_on(&self, tuple: FourTuple, since: Time) -> bool {
        let views = self.calls.keys().filter_map(|id| self.engine.view(*id));
        { views }.any(|connection| {
            let mut live = connection.path_reports().filter(|(_, path)| path.state == PathState::Live);
            connection.heard_at() < since
                && live.next().is_some_and(|(_, path)| path.tuple == tuple)
                && live.next().is_none()
        })
    }

    /// A path through a relay is a backup: it carries data only while no other path does. Whoever is connected by one looks for another.
    fn look_at_relay(&mut self, id: ConnectionId, path: PathId, event: Event) {
        let Some(connection) = self.engine.connection(id) else { return };
        let Some(number) = connection.path(path).and_then(|path| frame::number(path.tuple.remote)) else { return };
        connection.paths().set_status(path, PathStatus::Standby);
        if matches!(event, Event::Established { .. }) {
            self.lobby.relayed.on_established(self.place, id, number);
        }
    }

    /// Checks the connections that this end has closed. Returns whether one was aborted.
    fn look_at_closing(&mut self, now: Time) -> bool {
        let Self { calls, engine, woken, deserted, .. } = self;
        self.closing.retain(|&id| {
            let (Some(call), Some(connection)) = (calls.get_mut(&id), engine.view(id)) else { return false };
            let stage = match connection.state() {
                Life::TimeWait => Stage::Over,
                Life::FinWait2 => Stage::Delivered,
                _ => Stage::Closing,
            };
            let is_over = stage == Stage::Over;
            if is_over && !call.is_over() {
                spans::tell(&call.span, Event::Closed(CloseReason::Finished), None);
            }
            if stage > call.stage {
                call.stage = stage;
                woken.all(&mut call.closing);
            }
            // A peer that keeps sending has no reader here any more.
            let is_deserted = stage >= Stage::Delivered && call.handles == 0;
            if is_deserted && !is_over {
                deserted.push_back((now.saturating_add(DESERTED_FOR), id));
            }
            !is_over && !is_deserted
        });
        let mut has_aborted = false;
        while let Some((_, id)) = self.deserted.pop_front_if(|(until, _)| *until <= now) {
            let is_open = self.engine.view(id).is_some_and(|connection| connection.state() == Life::FinWait2);
            if is_open && let Some(connection) = self.engine.connection(id) {
                connection.abort();
                has_aborted = true;
            }
        }
        // Connections with relays last.
        if self.engine.is_empty() || self.lobby.relayed.is_used() {
            self.woken.all(&mut self.lobby.lock().idling);
        }
        has_aborted
    }

    /// The time for the engine, which never decreases.
    pub(crate) fn at(&mut self, time: Time) -> Time {
        self.time = self.time.max(time);
        self.time
    }

    /// Handles timeouts. Returns whether there were any.
    pub(crate) fn handle_timeouts(&mut self, now: Time) -> bool {
        let now = self.at(now);
        let is_due = self.engine.poll_timeout() <= now;
        if is_due {
            self.engine.handle_timeout(now);
        }
        is_due
    }

    /// The next deadline, without the engine's.
    pub(crate) fn deadline(&self) -> Time {
        self.deserted.front().map_or(Time::NEVER, |(until, _)| *until)
    }

    /// The driver has ended, and with it all connections. If there was something left to do, the whole endpoint ends: with some of its
    /// shards it would lose some connections to come, and nobody would know why.
    pub(crate) fn end(&mut self) {
        self.is_gone = true;
        let Self { calls, woken, lobby, engine, .. } = self;
        calls.values_mut().filter(|call| call.closed.is_none()).for_each(|call| call.end(Ended::EndpointGone, woken));
        calls.retain(|_, call| call.handles > 0);
        let mut lobby = lobby.lock();
        lobby.is_gone |= lobby.handles > 0 || !engine.is_empty();
        woken.all(&mut lobby.accepting);
        woken.all(&mut lobby.idling);
    }

    /// Whether the driver can end, or must, as that of another shard has failed.
    pub(crate) fn is_done(&self) -> bool {
        let lobby = self.lobby.lock();
        lobby.is_gone || lobby.handles == 0 && self.engine.is_empty()
    }
}

/// The addresses of the path that an event concerns.
fn tuple(engine: &Engine, told: EndpointEvent) -> Option<FourTuple> {
    let path = match told.event {
        Event::Established { .. } => PathId::FIRST,
        Event::PathValidated(path) | Event::PathFailed(path) | Event::PathRestored(path) => path,
        _ => return None,
    };
    Some(engine.view(told.connection)?.path(path)?.tuple)
}

/// The limit on connections that wait to be accepted.
const INCOMING_MAX: usize = 256;

/// How long a connection without handles waits for the peer's close after everything was delivered. The peer may need this time
/// to read.
const DESERTED_FOR: Span = Span::from_secs(3);

#[cfg(test)]
mod tests;

//! What the driver and all handles of an endpoint share, behind one lock.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use anabranch_proto::endpoint::{ConnectionId, Endpoint as Engine, EndpointEvent};
use anabranch_proto::{CloseReason, Event, FourTuple, PathId, State as Life};
use anabranch_units::{Span, Time};

use crate::call::{Call, Ended};
use crate::clock::Clock;
use crate::config::Config;
use crate::key::PublicKey;
use crate::qlog::{Qlog, Vantage};
use crate::socket::Socket;
use crate::spans;
use crate::waiting::{Waiting, Woken};

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    /// Where the first socket was bound.
    pub(crate) first: SocketAddr,
    pub(crate) public: PublicKey,
    state: Mutex<State>,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    /// Where the sockets are bound.
    pub(crate) locals: Vec<SocketAddr>,
    /// Sockets that the driver has not got yet.
    pub(crate) sockets: Vec<Socket>,
    calls: BTreeMap<ConnectionId, Call>,
    /// Connections so far.
    #[cfg(feature = "prometheus")]
    numbered: u64,
    /// Calls of others that nobody has accepted yet.
    pub(crate) incoming: VecDeque<ConnectionId>,
    pub(crate) accepting: Waiting,
    /// Who waits for the last connection to be gone.
    pub(crate) idling: Waiting,
    /// Handles of the endpoint.
    pub(crate) handles: usize,
    /// The driver, when it waits for the socket, its timer or for us.
    pub(crate) driver: Option<Waker>,
    /// There has been something to do since the driver's turn began. It may be in the middle of one, with nobody to wake.
    is_roused: bool,
    pub(crate) is_gone: bool,
    /// Connections that this end has closed and that are not over.
    closing: Vec<ConnectionId>,
    /// Connections that nobody has a handle of, and when they have had time enough.
    deserted: VecDeque<(Time, ConnectionId)>,
    pub(crate) woken: Woken,
    /// When the last handshake was begun, by the computer's clock.
    pub(crate) stamp: Span,
    /// The latest time that the engine has heard of.
    time: Time,
    /// Where connections are logged.
    pub(crate) qlog: Option<Qlog>,
}

impl Shared {
    pub(crate) fn new(clock: Clock, config: Config, first: SocketAddr, public: PublicKey, engine: Engine) -> Arc<Self> {
        let state = State {
            engine,
            locals: vec![first],
            sockets: vec![],
            calls: BTreeMap::new(),
            #[cfg(feature = "prometheus")]
            numbered: 0,
            incoming: VecDeque::new(),
            accepting: Waiting::default(),
            idling: Waiting::default(),
            handles: 1,
            driver: None,
            is_roused: false,
            is_gone: false,
            closing: vec![],
            deserted: VecDeque::new(),
            woken: Woken::default(),
            stamp: Span::ZERO,
            time: Time::ZERO,
            qlog: None,
        };
        Arc::new(Self { clock, config, first, public, state: Mutex::new(state) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody who panics leaves the state halfway: what is done under the lock is the engine's, which then is broken anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something, and then wakes whom it concerns.
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
    /// The engine has something to do.
    pub(crate) fn rouse(&mut self) {
        self.is_roused = true;
        self.woken.one(&mut self.driver);
    }

    /// A turn of the driver begins. Returns the sockets that are new.
    pub(crate) fn begin_turn(&mut self) -> Vec<Socket> {
        self.is_roused = false;
        std::mem::take(&mut self.sockets)
    }

    /// Whether there has been something to do since the turn began.
    pub(crate) fn is_roused(&self) -> bool {
        self.is_roused
    }

    #[cfg_attr(not(feature = "prometheus"), expect(unused_mut, reason = "only then it gets a number"))]
    pub(crate) fn insert(&mut self, id: ConnectionId, mut call: Call) {
        #[cfg(feature = "prometheus")]
        {
            call.number = self.numbered;
            self.numbered += 1;
        }
        self.calls.insert(id, call);
    }

    /// Connections that are established, in the order in which they were made.
    #[cfg(feature = "prometheus")]
    pub(crate) fn established(&self) -> impl Iterator<Item = (ConnectionId, &Call)> {
        let all = self.calls.iter().filter(|(_, call)| call.is_established && call.closed.is_none());
        all.map(|(id, call)| (*id, call))
    }

    /// A connection that has a handle.
    pub(crate) fn call(&mut self, id: ConnectionId) -> &mut Call {
        self.calls.get_mut(&id).expect("it is there as long as it has a handle")
    }

    /// A connection that has a handle, with the engine and those who are woken.
    pub(crate) fn parts(&mut self, id: ConnectionId) -> (&mut Call, &mut Engine, &mut Woken) {
        let Self { calls, engine, woken, .. } = self;
        (calls.get_mut(&id).expect("it is there as long as it has a handle"), engine, woken)
    }

    /// What nobody has a handle of is closed; what was not established, or not even accepted, is aborted.
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
        let (is_established, mut unread) = (call.is_established, std::mem::take(&mut call.incoming));
        if let Some(connection) = engine.connection(id) {
            if is_established {
                // That nothing came of it yet does not matter.
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
        self.call(id).is_closing = true;
        if !self.closing.contains(&id) {
            self.closing.push(id);
        }
    }

    /// Takes all that the engine has to tell. Whether there was anything: to act on it may give the engine something to do.
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

    /// What happened to connections since the last turn.
    pub(crate) fn log_traces(&mut self) {
        let Some(qlog) = &self.qlog else { return };
        // Of what never became a connection there is no log.
        self.calls.keys().filter_map(|id| self.engine.trace_of(*id)).for_each(|traces| qlog.traces(traces));
    }

    /// What a connection tells, after what led to it.
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
        // That both have closed has been told, if this end waited afterwards for a FIN that comes again.
        let is_told = call.is_over && told.event == Event::Closed(CloseReason::Finished);
        if !call.span.is_disabled() && !is_told {
            spans::tell(&call.span, told.event, tuple(engine, told));
        }
        match told.event {
            Event::Established { .. } => {
                call.is_established = true;
                woken.all(&mut call.opening);
            }
            Event::Readable(sid) if call.handles == 0 => {
                // Nobody will read it.
                if let Some(connection) = engine.connection(id) {
                    _ = connection.streams().stop(sid, 0);
                }
            }
            Event::Readable(sid) => {
                // What it was about may have been read to its end before it was told: then it is not about a new stream.
                let is_news = !call.is_idle(sid)
                    || engine.connection(id).is_some_and(|connection| connection.streams().is_readable(sid));
                if is_news {
                    call.on_readable(sid, woken);
                }
            }
            Event::Writable(sid) => call.on_writable(sid, woken),
            Event::Finished(sid) => call.on_finished(sid, woken),
            Event::Stopped { sid, code } => call.on_stopped(sid, code, woken),
            Event::PeerClosed => {
                call.has_peer_closed = true;
                woken.all(&mut call.accepting);
            }
            Event::Closed(reason) => {
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
            Event::PathValidated(_) | Event::PathFailed(_) | Event::PathRestored(_) | Event::PathGone(_) => {
                woken.all(&mut call.pathing);
            }
        }
    }

    /// Somebody has called, as this event says.
    fn admit(&mut self, id: ConnectionId, event: Event) {
        let Some(remote) = self.engine.remote(id) else { return };
        if self.handles == 0 || self.incoming.len() >= INCOMING_MAX {
            if let Some(connection) = self.engine.connection(id) {
                connection.abort();
            }
            return;
        }
        let mut call = Call::new(Vantage::Server, PublicKey(remote));
        call.is_established = true;
        spans::tell(&call.span, event, tuple(&self.engine, EndpointEvent { connection: id, event }));
        self.insert(id, call);
        self.incoming.push_back(id);
        self.woken.all(&mut self.accepting);
    }

    /// How far are the connections that this end has closed? Whether one was aborted.
    fn look_at_closing(&mut self, now: Time) -> bool {
        let Self { calls, engine, woken, deserted, .. } = self;
        self.closing.retain(|&id| {
            let (Some(call), Some(connection)) = (calls.get_mut(&id), engine.view(id)) else { return false };
            let is_over = connection.state() == Life::TimeWait;
            let is_delivered = is_over || connection.state() == Life::FinWait2;
            if is_over && !call.is_over {
                spans::tell(&call.span, Event::Closed(CloseReason::Finished), None);
            }
            if is_delivered && !call.is_delivered || is_over && !call.is_over {
                (call.is_delivered, call.is_over) = (is_delivered, is_over);
                woken.all(&mut call.closing);
            }
            // A peer that goes on and on gets nobody to listen.
            let is_deserted = is_delivered && call.handles == 0;
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
        if self.engine.is_empty() {
            self.woken.all(&mut self.idling);
        }
        has_aborted
    }

    /// A time for the engine, for which time does not go back.
    pub(crate) fn at(&mut self, time: Time) -> Time {
        self.time = self.time.max(time);
        self.time
    }

    /// Deadlines that have come.
    pub(crate) fn handle_timeouts(&mut self, now: Time) {
        let now = self.at(now);
        if self.engine.poll_timeout() <= now {
            self.engine.handle_timeout(now);
        }
    }

    /// When to look again, besides the engine's own deadlines.
    pub(crate) fn deadline(&self) -> Time {
        self.deserted.front().map_or(Time::NEVER, |(until, _)| *until)
    }

    /// The socket is gone, and so is everything.
    pub(crate) fn end(&mut self) {
        self.is_gone = true;
        let Self { calls, woken, accepting, idling, .. } = self;
        calls.values_mut().filter(|call| call.closed.is_none()).for_each(|call| call.end(Ended::EndpointGone, woken));
        calls.retain(|_, call| call.handles > 0);
        woken.all(accepting);
        woken.all(idling);
    }

    /// Whether nobody can want anything of the driver any more.
    pub(crate) fn is_done(&self) -> bool {
        self.handles == 0 && self.engine.is_empty()
    }
}

/// The ends of the path that an event is about.
fn tuple(engine: &Engine, told: EndpointEvent) -> Option<FourTuple> {
    let path = match told.event {
        Event::Established { .. } => PathId::FIRST,
        Event::PathValidated(path) | Event::PathFailed(path) | Event::PathRestored(path) => path,
        _ => return None,
    };
    Some(engine.view(told.connection)?.path(path)?.tuple)
}

/// Calls that wait to be accepted.
const INCOMING_MAX: usize = 256;

/// A connection of which nobody has a handle, and of which the peer has got everything, is aborted after this time if the peer does not close
/// it, too: time for a peer that only has to read what it has got.
const DESERTED_FOR: Span = Span::from_secs(3);

#[cfg(test)]
mod tests;

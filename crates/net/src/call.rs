//! The endpoint's state of a connection in addition to the engine's: waiting tasks, and the handles of streams.
//!
//! The engine reuses SIDs, so a sending stream has a serial number as well. A receiving stream owns its SID until its end is
//! read, or until it is stopped.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use anabranch_proto::{CloseReason, Connection, Read, Sid};
use bytes::Bytes;
use tracing::Span;

use crate::error::{Full, Lost};
use crate::key::PublicKey;
use crate::qlog::Vantage;
use crate::spans;
use crate::waiting::{Waiting, Woken};

/// The endpoint's state of a connection.
#[derive(Debug)]
pub(crate) struct Call {
    /// Counts the connections of the endpoint.
    #[cfg(feature = "prometheus")]
    pub(crate) number: u64,
    pub(crate) remote: PublicKey,
    /// The `tracing` span of the connection.
    pub(crate) span: Span,
    /// The number of handles of the connection and of its streams. While the connection waits to be accepted, there is one.
    pub(crate) handles: usize,
    pub(crate) stage: Stage,
    /// Whether the other end has closed, which it may do at any stage.
    pub(crate) has_peer_closed: bool,
    /// Why the connection has ended in the engine, if it has.
    pub(crate) closed: Option<Ended>,
    /// Why the peer has refused it, if it told so.
    pub(crate) full: Option<Full>,
    /// Tasks that wait for the handshake, or for a free stream.
    pub(crate) opening: Waiting,
    /// Tasks that wait for a stream of the peer.
    pub(crate) accepting: Waiting,
    /// Tasks that wait for the end of the connection.
    pub(crate) closing: Waiting,
    /// Tasks that wait for a change of a path.
    pub(crate) pathing: Waiting,
    /// Whether the peer has ever seemed to get no full packets.
    pub(crate) is_stalled: bool,
    /// Tasks that wait for that.
    pub(crate) stalling: Waiting,
    /// Tasks that wait for a datagram.
    pub(crate) receiving: Waiting,
    /// Streams of the peer without a handle, in the order of arrival.
    pub(crate) incoming: VecDeque<Sid>,
    /// The state of receiving streams by SID, up to the highest used one.
    inbound: Vec<Inbound>,
    outbound: BTreeMap<u64, Outbound>,
    /// The serial number of the sending stream of each SID, up to the highest used one.
    names: Vec<Option<u64>>,
    made: u64,
    /// Unread data, kept when the engine dropped the connection.
    left: BTreeMap<Sid, VecDeque<Read<Bytes>>>,
    datagrams_left: VecDeque<Bytes>,
}

/// How far a connection has come; none goes back. It may be lost at any stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The handshake goes on.
    Opening,
    Established,
    /// This end has closed.
    Closing,
    /// Everything that it wrote has arrived.
    Delivered,
    /// Both ends have closed and have received everything.
    Over,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The engine ended it.
    Engine(CloseReason),
    /// The endpoint's socket is gone.
    EndpointGone,
}

/// The state of a SID for reading.
#[derive(Debug, Default)]
enum Inbound {
    #[default]
    Idle,
    /// The stream waits to be accepted.
    Waiting,
    /// The stream has a handle, and perhaps a waiting task.
    Open(Option<Waker>),
}

/// A sending stream.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) waiting: Option<Waker>,
}

/// The outcome of a sending stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The peer has received all of it.
    Delivered,
    /// The peer has refused the rest.
    Stopped(u16),
}

impl Call {
    pub(crate) fn new(vantage: Vantage, remote: PublicKey) -> Self {
        Self {
            span: spans::connection(vantage, remote),
            #[cfg(feature = "prometheus")]
            number: 0,
            remote,
            handles: 1,
            stage: Stage::Opening,
            has_peer_closed: false,
            closed: None,
            full: None,
            opening: Waiting::default(),
            accepting: Waiting::default(),
            closing: Waiting::default(),
            pathing: Waiting::default(),
            is_stalled: false,
            stalling: Waiting::default(),
            receiving: Waiting::default(),
            incoming: VecDeque::new(),
            inbound: vec![],
            outbound: BTreeMap::new(),
            names: vec![],
            made: 0,
            left: BTreeMap::new(),
            datagrams_left: VecDeque::new(),
        }
    }

    /// Why the connection was lost, unless both ends have closed it.
    pub(crate) fn lost(&self) -> Option<Lost> {
        match self.closed? {
            Ended::Engine(reason) => Lost::of(reason),
            Ended::EndpointGone => Some(Lost::EndpointGone),
        }
    }

    /// Whether it ended, in whatever way.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over || self.closed.is_some()
    }

    /// A new sending stream has this SID. Returns its serial number.
    pub(crate) fn open(&mut self, sid: Sid) -> u64 {
        let serial = self.made;
        self.made += 1;
        *at(&mut self.names, sid) = Some(serial);
        self.outbound.insert(serial, Outbound::default());
        serial
    }

    pub(crate) fn outbound(&mut self, serial: u64) -> Option<&mut Outbound> {
        self.outbound.get_mut(&serial)
    }

    /// The handle of a stream was dropped.
    pub(crate) fn forget(&mut self, serial: u64) {
        self.outbound.remove(&serial);
    }

    pub(crate) fn on_writable(&mut self, sid: Sid, woken: &mut Woken) {
        if let Some(outbound) = self.named(sid) {
            woken.one(&mut outbound.waiting);
        }
    }

    pub(crate) fn on_stopped(&mut self, sid: Sid, code: u16, woken: &mut Woken) {
        if let Some(outbound) = self.named(sid) {
            outbound.outcome.get_or_insert(Outcome::Stopped(code));
            woken.one(&mut outbound.waiting);
        }
    }

    /// The SID can be reused.
    pub(crate) fn on_finished(&mut self, sid: Sid, woken: &mut Woken) {
        if let Some(outbound) = self.named(sid) {
            outbound.outcome.get_or_insert(Outcome::Delivered);
            woken.one(&mut outbound.waiting);
        }
        *at(&mut self.names, sid) = None;
        woken.all(&mut self.opening);
    }

    /// Whether no stream of this SID is known, so that the next one counts as new.
    pub(crate) fn is_idle(&self, sid: Sid) -> bool {
        matches!(self.inbound.get(place(sid)), None | Some(Inbound::Idle))
    }

    /// A stream has something to read. An unknown stream is a new one.
    pub(crate) fn on_readable(&mut self, sid: Sid, woken: &mut Woken) {
        match at(&mut self.inbound, sid) {
            Inbound::Open(waiting) => woken.one(waiting),
            Inbound::Waiting => {}
            idle @ Inbound::Idle => {
                *idle = Inbound::Waiting;
                self.incoming.push_back(sid);
                woken.all(&mut self.accepting);
            }
        }
    }

    /// Takes the next stream of the peer.
    pub(crate) fn accept(&mut self) -> Option<Sid> {
        let sid = self.incoming.pop_front()?;
        *at(&mut self.inbound, sid) = Inbound::Open(None);
        Some(sid)
    }

    /// Whether no further stream of the peer can arrive.
    pub(crate) fn has_all(&self) -> bool {
        let is_open = |inbound: &Inbound| matches!(inbound, Inbound::Open(_));
        self.closed.is_some() && self.lost().is_some()
            || (self.has_peer_closed || self.closed.is_some()) && !self.inbound.iter().any(is_open)
    }

    /// The task that waits to read a stream with a handle.
    pub(crate) fn reader(&mut self, sid: Sid) -> &mut Option<Waker> {
        match at(&mut self.inbound, sid) {
            Inbound::Open(waiting) => waiting,
            Inbound::Idle | Inbound::Waiting => unreachable!("a handle keeps its name until the end was read"),
        }
    }

    /// Reads from a stream with a handle.
    pub(crate) fn read(&mut self, engine: Option<&mut Connection<Bytes>>, sid: Sid, most: u32) -> Read<Bytes> {
        if self.closed.is_none()
            && let Some(engine) = engine
        {
            return engine.streams().read(sid, most).unwrap_or(Read::Nothing);
        }
        let Some(left) = self.left.get_mut(&sid) else { return Read::Nothing };
        match left.front_mut() {
            Some(Read::Data(data)) if data.len() > most as usize => Read::Data(data.split_to(most as usize)),
            _ => left.pop_front().unwrap_or(Read::Nothing),
        }
    }

    /// A stream of the peer was read to its end, or is refused. The next stream of its SID is another one.
    pub(crate) fn release(&mut self, engine: Option<&mut Connection<Bytes>>, sid: Sid, woken: &mut Woken) {
        *at(&mut self.inbound, sid) = Inbound::Idle;
        let is_readable = match engine.filter(|_| self.closed.is_none()) {
            Some(engine) => {
                let mut streams = engine.streams();
                // If there is nothing to read, this call makes the engine report the next arrival.
                streams.is_readable(sid) || streams.read(sid, 0) != Ok(Read::Nothing)
            }
            None => self.left.get(&sid).is_some_and(|left| !left.is_empty()),
        };
        if is_readable {
            self.on_readable(sid, woken);
        }
        if self.has_all() {
            woken.all(&mut self.accepting);
        }
    }

    /// Drops the rest of a refused stream after the engine has dropped the connection.
    pub(crate) fn drop_left(&mut self, sid: Sid) {
        let Some(left) = self.left.get_mut(&sid) else { return };
        while let Some(read) = left.pop_front() {
            if !matches!(read, Read::Data(_)) {
                return;
            }
        }
    }

    /// Reads a datagram.
    pub(crate) fn read_datagram(&mut self, engine: Option<&mut Connection<Bytes>>) -> Option<Bytes> {
        match engine.filter(|_| self.closed.is_none()) {
            Some(engine) => engine.datagrams().read(),
            None => self.datagrams_left.pop_front(),
        }
    }

    /// The engine is about to drop the connection: takes all unread data.
    pub(crate) fn keep_unread(&mut self, engine: &mut Connection<Bytes>, woken: &mut Woken) {
        self.datagrams_left.extend(std::iter::from_fn(|| engine.datagrams().read()));
        let mut streams = engine.streams();
        for sid in (1..=Sid::STREAMS_MAX).map(Sid::new) {
            let mut left = VecDeque::new();
            while streams.is_readable(sid)
                && let Ok(read) = streams.read(sid, u32::MAX)
            {
                left.push_back(read);
            }
            if !left.is_empty() {
                self.left.insert(sid, left);
                self.on_readable(sid, woken);
            }
        }
    }

    /// The connection is over: wakes every waiting task.
    pub(crate) fn end(&mut self, ended: Ended, woken: &mut Woken) {
        self.closed = Some(ended);
        if self.lost().is_none() {
            self.stage = Stage::Over;
        }
        self.outbound.values_mut().for_each(|outbound| woken.one(&mut outbound.waiting));
        for inbound in &mut self.inbound {
            if let Inbound::Open(waiting) = inbound {
                woken.one(waiting);
            }
        }
        let Self { opening, accepting, closing, pathing, stalling, receiving, .. } = self;
        [opening, accepting, closing, pathing, stalling, receiving].into_iter().for_each(|waiting| woken.all(waiting));
    }

    fn named(&mut self, sid: Sid) -> Option<&mut Outbound> {
        let serial = (*self.names.get(place(sid))?)?;
        self.outbound.get_mut(&serial)
    }
}

fn place(sid: Sid) -> usize {
    usize::from(sid.number())
}

/// The entry of a SID. The engine uses no SIDs beyond the negotiated ones.
fn at<T: Default>(all: &mut Vec<T>, sid: Sid) -> &mut T {
    if all.len() <= place(sid) {
        all.resize_with(1 + place(sid), T::default);
    }
    &mut all[place(sid)]
}

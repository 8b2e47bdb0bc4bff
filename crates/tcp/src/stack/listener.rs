//! Listeners: connections that wait to be accepted, and cookies when there is no place for them.

use std::collections::{BTreeSet, VecDeque};

use anabranch_proto::{Connection, Content, Features, Flags, FourTuple, Header, Options, Segment, SeqNumber, Transmit};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use super::{Answer, Stack};
use crate::cookie;
use crate::parts::Parts;
use crate::socket::{SocketError, SocketId};

#[derive(Debug, Default)]
pub(super) struct Listener {
    /// Connections whose handshake is not over.
    pub(super) half_open: usize,
    /// Those that wait to be accepted.
    pub(super) ready: VecDeque<SocketId>,
    /// When the last cookie was sent. Without one, no acknowledgement is tried as a cookie.
    cookie_at: Option<Time>,
}

impl Stack {
    /// Accepts connections to a port of the host.
    ///
    /// # Errors
    /// If the port has a listener.
    pub(crate) fn listen(&mut self, port: u16) -> Result<(), SocketError> {
        if self.listeners.contains_key(&port) {
            return Err(SocketError::PortInUse);
        }
        self.listeners.insert(port, Listener::default());
        Ok(())
    }

    /// Ends a listener. Connections that nobody has accepted are reset.
    pub(crate) fn unlisten(&mut self, port: u16) {
        if self.listeners.remove(&port).is_none() {
            return;
        }
        let waiting = self.sockets.iter().filter(|(_, socket)| socket.listener == Some(port)).map(|(&id, _)| id);
        for id in waiting.collect::<BTreeSet<_>>() {
            if let Some(socket) = self.sockets.get_mut(&id) {
                // It is no business of a later listener at this port.
                socket.listener = None;
            }
            self.abort(id);
            self.release(id);
        }
    }

    /// A connection that waits at a port.
    pub(crate) fn accept(&mut self, port: u16) -> Option<SocketId> {
        let listener = self.listeners.get_mut(&port)?;
        let id = listener.ready.pop_front()?;
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.listener = None;
        }
        Some(id)
    }

    /// A SYN has arrived at a listener.
    pub(super) fn begin(&mut self, now: Time, tuple: FourTuple, segment: Segment<Bytes>) {
        let Some(listener) = self.listeners.get_mut(&tuple.local.port) else { return };
        let peer = segment.header.seq;
        if listener.ready.len() >= self.settings.backlog {
            // Nobody accepts them: a peer whose SYN has no answer knows that it is not connected.
            return;
        }
        if listener.half_open >= self.settings.backlog {
            listener.cookie_at = Some(now);
            return self.answer_by_cookie(now, tuple, segment);
        }
        if !self.has_place() {
            return;
        }
        let initial = self.key.initial(now, tuple);
        let secret = self.key.secret(tuple, self.next, initial);
        let offer = segment.options.handshake().multistream;
        let features = offer.map_or(Features::default(), |offer| offer.features);
        let config = self.config(tuple, if offer.is_some() { self.settings.connection.streams } else { 0 });
        let Ok(mut connection) = Connection::listen(now, config, tuple, secret) else { return };
        connection.handle_segment(now, tuple, segment);
        let id = self.insert(now, connection, tuple, initial, Some(peer), Some(tuple.local.port));
        if features.contains(Features::EXTENTS)
            && let Some(socket) = self.sockets.get_mut(&id)
        {
            socket.parts = Some(Box::new(Parts::new(peer)));
        }
    }

    /// Answers a SYN as a connection would, which is forgotten at once.
    fn answer_by_cookie(&mut self, now: Time, tuple: FourTuple, syn: Segment<Bytes>) {
        let Options::Handshake(options) = syn.options else { return };
        let (number, options) = cookie::make(&self.key, now, tuple, syn.header.seq, options.mss);
        let syn = Segment { options: Options::Handshake(options), ..syn };
        if let Some((_, Transmit { segment, .. })) = self.answer_syn(now, tuple, number, syn) {
            self.tally.cookies_sent += 1;
            self.answer(Answer::Segment(tuple, segment));
        }
    }

    /// A new connection with this initial number, and its answer to a SYN.
    fn answer_syn(
        &self,
        now: Time,
        tuple: FourTuple,
        initial: SeqNumber,
        syn: Segment<Bytes>,
    ) -> Option<(Connection<Bytes>, Transmit<Bytes>)> {
        let secret = self.key.secret(tuple, self.next, initial);
        // A cookie has no place for streams.
        let config = self.config(tuple, 0);
        let mut connection = Connection::listen(now, config, tuple, secret).ok()?;
        connection.handle_segment(now, tuple, syn);
        let answer = connection.poll_transmit(now)?;
        Some((connection, answer))
    }

    /// An acknowledgement has arrived at a listener. Returns whether it acknowledges a cookie. Of one that is not the first segment after the SYN, nothing can be
    /// made; it comes again after the first one.
    pub(super) fn redeem(&mut self, now: Time, tuple: FourTuple, segment: &Segment<Bytes>) -> bool {
        let port = tuple.local.port;
        let Some(listener) = self.listeners.get_mut(&port) else { return false };
        if listener.cookie_at.is_none_or(|at| now.since(at) >= COOKIE_LIFE) {
            return false;
        }
        let (peer, number) = (before(segment.header.seq), before(segment.header.ack));
        let Some(options) = cookie::check(&self.key, now, tuple, peer, number) else {
            return cookie::is_of_ends(&self.key, now, tuple, number);
        };
        if listener.ready.len() >= self.settings.backlog || !self.has_place() {
            // The peer takes the connection for open: its data is retransmitted until there is a place.
            return true;
        }
        let header = Header { seq: peer, flags: Flags::SYN, window: segment.header.window, ..Header::default() };
        let options = Options::Handshake(options);
        let syn = Segment { header, options, stream_header: None, content: Content::Nothing };
        let Some((mut connection, _)) = self.answer_syn(now, tuple, number, syn.clone()) else { return false };
        // Sent twice, its answer gives no RTT: when the first one left is not known any more.
        connection.handle_segment(now, tuple, syn);
        _ = connection.poll_transmit(now);
        connection.handle_segment(now, tuple, segment.clone());
        self.tally.cookies_used += 1;
        self.insert(now, connection, tuple, number, Some(peer), Some(port));
        true
    }
}

/// The number before this one.
fn before(number: SeqNumber) -> SeqNumber {
    SeqNumber(number.0.wrapping_sub(1))
}

/// For so long after the last cookie, an acknowledgement may be one of a cookie.
const COOKIE_LIFE: Span = Span::from_secs(120);

//! Unreliable datagrams of a connection: the application's view, and how they enter and leave the sequence space. [`crate::datagrams`] has the queues and the
//! rule by which they share the paths with streams.
//!
//! A datagram leaves on the path with the least RTT among those whose window and pacer have room and whose packets carry it. If the path MTU has shrunk since
//! it was queued, it leaves in fragments, as a segment does.
//!
//! An urgent one leaves on the path on which it is expected to arrive first, be it that it has to wait for room there:
//!
//! ```text
//! arrives      wait + RTT/2, where the wait is that of the pacer, of what is too much in flight at a window a round trip, and of the oldest segment's answer
//! gives up     after the difference of RTT/2 to a path with room: so it is never later by more than that than if it had left there at once
//! meanwhile    others take the paths for which it does not wait
//! ```

use anabranch_units::{Span, Time};

use super::limits::{Limit, Stop};
use super::output::{Admission, Leaving, New};
use super::sender::Sent;
use super::{Connection, Path, State, mtu};
use crate::datagrams::{DatagramStats, SendDatagramError, Urgency};
use crate::event::Event;
use crate::path::PathId;
use crate::payload::Payload;
use crate::seal::Seal;
use crate::segment::{Content, Sid, StreamHeader};
use crate::seq::Ssn;

/// The unreliable datagrams of a connection. Every call is an input: the driver must poll the connection afterwards.
#[derive(Debug)]
pub struct Datagrams<'a, P> {
    connection: &'a mut Connection<P>,
}

impl<P: Payload> Datagrams<'_, P> {
    /// Queues a datagram. It arrives once or not at all. If it has not left when `expires` is over, it is dropped. A full queue drops its oldest datagrams,
    /// first those that are not urgent.
    ///
    /// # Errors
    /// If the connection is not open, an end does not take datagrams, or this one is too large.
    pub fn send(&mut self, now: Time, payload: P, expires: Time, urgency: Urgency) -> Result<(), SendDatagramError> {
        let (len, max) = (payload.len(), self.len_max()?);
        if len > max {
            if len <= self.connection.sender.datagrams.len_max() {
                self.connection.probe_larger(now);
            }
            return Err(SendDatagramError::TooLarge { len, max });
        }
        self.connection.sender.datagrams.push(now, payload, expires, urgency);
        Ok(())
    }

    /// The bytes of the largest datagram that may be sent now. It changes with the paths and what their MTU is known to be.
    ///
    /// # Errors
    /// If the connection is not open, or an end does not take datagrams.
    pub fn len_max(&self) -> Result<u32, SendDatagramError> {
        self.connection.datagram_len_max()
    }

    /// The oldest datagram that has arrived and was not read.
    pub fn read(&mut self) -> Option<P> {
        self.connection.receiver.datagrams.pop()
    }
}

impl<P: Payload> Connection<P> {
    /// The application's view of datagrams.
    pub fn datagrams(&mut self) -> Datagrams<'_, P> {
        self.resting_until = None;
        Datagrams { connection: self }
    }

    /// The bytes of the largest datagram that may be sent now, for who has no [`Datagrams`] at hand.
    ///
    /// # Errors
    /// If the connection is not open, or an end does not take datagrams.
    pub fn datagram_len_max(&self) -> Result<u32, SendDatagramError> {
        let datagrams = &self.sender.datagrams;
        match self.state {
            State::Established | State::CloseWait if !self.is_closing => {}
            _ => return Err(SendDatagramError::NotOpen),
        }
        if self.config.datagram_receive_buffer == 0 || datagrams.len_max() == 0 {
            return Err(SendDatagramError::Disabled);
        }
        if !datagrams.is_agreed() {
            return Err(SendDatagramError::Unsupported);
        }
        Ok((self.paths.mss_max().saturating_sub(StreamHeader::LEN)).min(datagrams.len_max()))
    }

    /// The counters of datagrams.
    pub fn datagram_stats(&self) -> DatagramStats {
        let (outgoing, incoming) = (&self.sender.datagrams.stats, &self.receiver.datagrams);
        DatagramStats {
            sent: outgoing.sent,
            delivered: outgoing.delivered,
            lost: outgoing.lost,
            dropped_unsent: outgoing.dropped,
            expired: outgoing.expired,
            received: incoming.received,
            missed: incoming.missed,
            dropped_unread: incoming.dropped,
        }
    }

    /// A datagram was refused because packets of more bytes are not known to arrive: probes them.
    fn probe_larger(&mut self, now: Time) {
        for id in self.paths.usable().iter() {
            if self.paths[id].on_full(now) {
                self.paths.ask(id);
            }
        }
    }

    /// A datagram or a void arrived. Returns whether it was accepted.
    pub(super) fn accept_datagram(&mut self, now: Time, header: StreamHeader, content: Content<P>) -> bool {
        // Longer voids would let a peer go through the sequence space without sending anything.
        if !self.sender.datagrams.is_agreed() || header.void() > u32::from(self.config.mss) {
            return false;
        }
        match content {
            Content::Data(payload) if header.sid == Sid::DATAGRAM => {
                self.receiver.free_datagram(payload.len());
                if self.receiver.datagrams.push(payload) {
                    self.events.push_back(Event::DatagramsReadable);
                }
            }
            Content::Nothing if header.sid == Sid::VOID => {
                self.receiver.free_datagram(header.void());
                self.receiver.datagrams.missed += 1;
            }
            // The codec makes no such segment.
            Content::Data(_) | Content::Nothing | Content::Control(_) => return false,
        }
        self.acks.answer(now - self.late, StreamHeader { ssn: Ssn::of(0), ..header });
        true
    }

    /// What new data leaves next, while datagrams wait.
    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    pub(super) fn next_of_both(&mut self, now: Time, admission: Admission) -> Result<Leaving, Stop> {
        let stream = self.next_space(now, admission);
        if stream == Err(Stop::Data(Some(Limit::Memory))) {
            return Err(Stop::Data(Some(Limit::Memory)));
        }
        let room = self.sender.peer_window.room(self.sender.board.next());
        let (datagrams, mut admission) = (&self.sender.datagrams, admission);
        let space_of = |urgency| {
            let space = datagrams.peek(urgency).map(|len| len + StreamHeader::LEN);
            space.filter(|&space| u64::from(space) <= room)
        };
        let (usual, urgent) = (space_of(Urgency::Usual), space_of(Urgency::Urgent));
        let has_turn = datagrams.has_turn() && !self.sender.outbound.has_records() || stream.is_err();
        if let Some(space) = urgent.filter(|_| has_turn && datagrams.has_urgent_turn()) {
            match self.place_urgent(now, space, admission) {
                Ok(leaving) => return Ok(leaving),
                // The path for which it waits is not for others.
                Err(awaited) => admission = admission.without(awaited),
            }
        }
        match (usual, stream) {
            (Some(space), Ok(_)) if has_turn => self.place_datagram(now, space, admission),
            (_, Ok(spaces)) => self.place_new(now, spaces, admission),
            (Some(space), Err(_)) => self.place_datagram(now, space, admission),
            (None, Err(_)) if urgent.is_some() => Err(Stop::Data(None)),
            (None, Err(_)) => {
                if self.sender.board.is_empty() {
                    self.wait(now);
                }
                Err(Stop::Data(Some(Limit::PeerBuffer)))
            }
        }
    }

    /// The path for an urgent datagram of `space` bytes of sequence space, or the path for whose room it waits.
    fn place_urgent(&mut self, now: Time, space: u32, admission: Admission) -> Result<Leaving, PathId> {
        let leave = |path| Ok(Leaving::New { path, what: New::Datagram(Urgency::Urgent) });
        self.sender.peer_window.on_sent();
        let Self { paths, sender, .. } = self;
        let may_send = match admission {
            // A silent path is none for what is urgent.
            Admission::Probe(_) if paths.has_several() => return Err(PathId::NOWHERE),
            Admission::Probe(path) => {
                paths[path].control.on_demand(now, &sender.board);
                return leave(path);
            }
            Admission::Window(may_send) => may_send,
        };
        let does_carry = |path: &Path| path.mss >= space;
        let is_carried = paths.usable().iter().any(|id| does_carry(&paths[id]));
        // The path on which it arrives first, and that among those with room.
        let (mut first, mut open): (Option<Route>, Option<Route>) = (None, None);
        for id in paths.usable().iter() {
            let path = &mut paths[id];
            if is_carried && !does_carry(path) {
                continue;
            }
            path.control.on_demand(now, &sender.board);
            let has_room = may_send.contains(id) && path.control.admit(&sender.board, space.into());
            let paced = if path.paced_until == Time::NEVER { Span::ZERO } else { path.paced_until.since(now) };
            let rtt = path.control.rtt_smoothed();
            // No room comes before the oldest segment in flight is answered.
            let answered = rtt.and_then(|rtt| Some(sender.board.oldest_departed(id)? + rtt)).unwrap_or(now);
            let room = || path.control.wait_for_room(space.into()).max(answered.since(now));
            let wait = if has_room { Span::ZERO } else { room().max(paced) };
            let delay = rtt.map_or(Span::MAX, |rtt| rtt / 2);
            let route = Route { arrives: delay.saturating_add(wait), delay, id };
            first = Some(first.map_or(route, |first| first.min(route)));
            if has_room {
                open = Some(open.map_or(route, |open| open.min(route)));
            }
        }
        let (Some(first), Some(open)) = (first, open) else {
            return Err(first.map_or(PathId::NOWHERE, |first| first.id));
        };
        let since = sender.datagrams.urgent_since().unwrap_or(now);
        let gives_up = since.saturating_add(open.delay.saturating_sub(first.delay));
        if first.id == open.id || gives_up <= now {
            return leave(open.id);
        }
        let path = &mut paths[open.id];
        path.paced_until = path.paced_until.min(gives_up);
        Err(first.id)
    }

    /// The path for a datagram of `space` bytes of sequence space.
    fn place_datagram(&mut self, now: Time, space: u32, admission: Admission) -> Result<Leaving, Stop> {
        self.sender.peer_window.on_sent();
        let Self { chooser, paths, sender, peer, .. } = self;
        let path = match admission {
            Admission::Probe(path) => {
                paths[path].control.on_demand(now, &sender.board);
                Some(path)
            }
            Admission::Window(may_send) if paths.has_several() => {
                let does_carry = |path: &Path| path.mss >= space;
                let is_carried = paths.usable().iter().any(|id| does_carry(&paths[id]));
                let mut best: Option<(Span, PathId)> = None;
                for id in paths.usable().iter() {
                    let path = &mut paths[id];
                    path.control.on_demand(now, &sender.board);
                    let has_room = may_send.contains(id) && path.control.admit(&sender.board, space.into());
                    let rtt = path.control.rtt_smoothed().unwrap_or(Span::MAX);
                    if has_room && (does_carry(path) || !is_carried) && best.is_none_or(|(least, _)| rtt < least) {
                        best = Some((rtt, id));
                    }
                }
                best.map(|(_, id)| id)
            }
            Admission::Window(may_send) => chooser.choose(now, (space.into(), may_send), peer.segment, paths, sender),
        };
        path.map(|path| Leaving::New { path, what: New::Datagram(Urgency::Usual) }).ok_or(Stop::Data(None))
    }

    /// Takes the datagram that [`Connection::next_of_both`] found: what is kept of it, what leaves, and its sequence space.
    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    pub(super) fn cut_datagram(&mut self, urgency: Urgency) -> Option<(Sent<P>, Sent<P>, u32)> {
        let do_streams_wait = !self.sender.outbound.is_empty();
        let payload = self.sender.datagrams.pop(urgency, StreamHeader::LEN, do_streams_wait)?;
        let (len, space) = (payload.len(), payload.len() + StreamHeader::LEN);
        let sent = |ssn: u32, data| {
            let stream_header = Some(StreamHeader { sid: Sid::DATAGRAM, ssn: Ssn::of(ssn.into()) });
            Sent { stream_header, data, is_fin: false }
        };
        Some((sent(len, None), sent(0, Some(payload)), space))
    }

    /// A segment is sent again on this path. If it was a datagram, it is a void from now on.
    pub(super) fn replace_datagram(&mut self, now: Time, path: PathId, index: u64) {
        let sent = self.sender.board.content_mut(index);
        // A copy has its payload, so it is sent again as it is.
        let is_copy = sent.data.is_some();
        let is_datagram = |header: &&mut StreamHeader| header.sid == Sid::DATAGRAM && !is_copy;
        let Some(header) = sent.stream_header.as_mut().filter(is_datagram) else { return };
        header.sid = Sid::VOID;
        let is_large = sent.is_large_datagram();
        self.sender.board.shorten(index);
        if self.sender.datagrams.on_lost(is_large) {
            self.paths[path].control.doubt();
            self.on_mtu(now, path);
        }
    }
}

/// A path for an urgent datagram: first the one on which it arrives first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    /// In how long it arrives, and what of that is the way.
    arrives: Span,
    delay: Span,
    id: PathId,
}

impl Admission {
    /// As this one, without a path.
    fn without(self, path: PathId) -> Self {
        match self {
            Self::Window(mut may_send) => {
                may_send.remove(path);
                Self::Window(may_send)
            }
            Self::Probe(_) => self,
        }
    }
}

impl<P> Sent<P> {
    /// Whether this is a datagram, and if so, whether it was acknowledged as itself and not by its void.
    pub(super) fn is_datagram_delivered(&self) -> Option<bool> {
        let sid = self.stream_header?.sid;
        (sid >= Sid::VOID).then_some(sid == Sid::DATAGRAM)
    }

    /// Whether the datagram is longer than the packets that every path carries.
    pub(super) fn is_large_datagram(&self) -> bool {
        let len = self.stream_header.map_or(0, |header| header.ssn.bits());
        mtu::datagram(len + StreamHeader::LEN) > Seal::DATAGRAM_FIRST
    }
}

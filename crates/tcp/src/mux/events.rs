//! What connections tell of themselves, and what it means for their channels.

use anabranch_proto::{Address, CloseReason, FourTuple, Read};
use anabranch_units::Time;

use super::{Back, Carrier, Channel, IDLE, Mux, Out, PLAIN_LIFE, PLAIN_MAX, Plain, REFUSED, Role, Stage, Way};
use crate::socket::{SocketEvent, SocketId};
use crate::stack::StackEvent;

impl Mux {
    /// Handles the events of the stack. Returns whether there were any.
    pub(super) fn take_events(&mut self) -> bool {
        let mut has_any = false;
        while let Some(event) = self.stack.poll_event() {
            has_any = true;
            self.on_event(event);
        }
        has_any
    }

    pub(super) fn on_event(&mut self, event: StackEvent) {
        let outer = |id: SocketId| self.alone.get(&id).copied().unwrap_or(id);
        match event {
            StackEvent::Incoming(port) => self.events.push_back(SocketEvent::Incoming(port)),
            StackEvent::Established(id, streams) if self.carriers.contains_key(&id) => match streams {
                Some(streams) => self.on_granted(id, streams),
                None => self.on_plain(id),
            },
            StackEvent::Established(id, _) => self.events.push_back(SocketEvent::Established(outer(id))),
            StackEvent::Readable(id, sid) => match self.carriers.get(&id).map(|carrier| carrier.by_back.get(&sid)) {
                Some(Some(&channel)) => self.on_readable(channel),
                Some(None) => self.begin(id, sid),
                None => self.events.push_back(SocketEvent::Readable(outer(id))),
            },
            StackEvent::Writable(id, sid) => match self.carriers.get(&id).map(|carrier| carrier.by_out.get(&sid)) {
                Some(Some(&channel)) => self.on_writable(channel),
                Some(None) => {}
                None => self.events.push_back(SocketEvent::Writable(outer(id))),
            },
            StackEvent::Urgent(id) => self.events.push_back(SocketEvent::Urgent(outer(id))),
            StackEvent::Finished(id, sid) => {
                let channel = self.carriers.get_mut(&id).and_then(|carrier| carrier.by_out.remove(&sid));
                if let Some(channel) = channel {
                    self.on_finished(channel);
                }
                self.open_streams(id);
            }
            StackEvent::Stopped(id, sid, code) => {
                let reason = if code == REFUSED { CloseReason::Refused } else { CloseReason::Reset };
                if let Some(&channel) = self.carriers.get(&id).and_then(|carrier| carrier.by_out.get(&sid)) {
                    self.fail(channel, reason);
                }
            }
            StackEvent::PeerClosed(id) => {
                self.forget_peer(id);
                if let Some(carrier) = self.carriers.get_mut(&id) {
                    carrier.stage = Stage::Ending;
                }
                self.rest(id);
            }
            StackEvent::Closed(id, reason) if self.carriers.contains_key(&id) => self.lose(id, reason),
            StackEvent::Closed(id, reason) => self.events.push_back(SocketEvent::Closed(outer(id), reason)),
        }
    }

    /// The peer of a connection has granted so many streams. Channels beyond them need another connection, as those before may last for ever.
    pub(super) fn on_granted(&mut self, id: SocketId, streams: u16) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.stage = Stage::Open;
        if let Some((_, remote)) = carrier.peer() {
            self.plain.remove(&remote);
        }
        carrier.streams = streams;
        let beyond: Vec<_> = carrier.by_number.iter().skip(streams.into()).map(|(&number, &id)| (number, id)).collect();
        for (number, channel) in &beyond {
            carrier.by_number.remove(number);
            carrier.unopened.retain(|other| other != channel);
        }
        let peer = carrier.peer();
        self.events.extend(carrier.by_number.values().map(|&channel| SocketEvent::Established(channel)));
        self.open_streams(id);
        self.rest(id);
        for (_, channel) in beyond {
            match peer.map(|peer| self.carrier_to(peer)) {
                Some(Ok(carrier)) => self.place(channel, carrier, None, Back::Awaited),
                Some(Err(_)) | None => self.fail(channel, CloseReason::Refused),
            }
        }
    }

    /// The peer of a connection that asked for streams has none: the first channel has the connection, and each other one opens its own.
    pub(super) fn on_plain(&mut self, id: SocketId) {
        self.forget_peer(id);
        let Some(carrier) = self.carriers.remove(&id) else { return };
        if let Some((_, remote)) = carrier.peer() {
            self.plain.retain(|_, plain| self.now < plain.until);
            let is_sure = !self.stack.has_withdrawn_offer(id) || self.plain.contains_key(&remote);
            if self.plain.len() >= PLAIN_MAX {
                self.plain.pop_first();
            }
            self.plain.insert(remote, Plain { until: self.now + PLAIN_LIFE, is_sure });
        }
        let mut own = Some(id);
        for channel in carrier.by_number.into_values() {
            let Some(Channel { ends, .. }) = self.channels.get(&channel) else { continue };
            let FourTuple { local, remote } = *ends;
            let is_first = own.is_some();
            let inner = match own.take() {
                Some(id) => Ok(id),
                None => self.stack.connect(self.now, Address { port: 0, ..local }, remote, 0),
            };
            match inner {
                Ok(inner) => self.leave_alone(channel, inner, is_first),
                Err(_) => self.fail(channel, CloseReason::Refused),
            }
        }
        if let Some(id) = own {
            self.stack.abort(id);
            self.stack.release(id);
        }
    }

    /// A channel has a connection of its own.
    pub(super) fn leave_alone(&mut self, id: SocketId, inner: SocketId, is_open: bool) {
        let ends = self.stack.ends(inner);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.way = Way::Alone(inner);
        channel.ends = ends.unwrap_or(channel.ends);
        self.alone.insert(inner, id);
        let Channel { is_closing, is_released, wants_room, .. } = *channel;
        if is_open {
            self.events.push_back(SocketEvent::Established(id));
        }
        if is_open && wants_room {
            self.events.push_back(SocketEvent::Writable(id));
        }
        if is_closing {
            self.stack.close(inner);
        }
        if is_released {
            self.release(id);
        }
    }

    /// A stream of ours has room.
    pub(super) fn on_writable(&mut self, id: SocketId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if let Way::Shared { carrier, out: Out::Open(sid, head), .. } = &mut channel.way
            && !head.is_empty()
        {
            _ = self.stack.write(*carrier, *sid, head);
        }
        if channel.is_closing {
            self.finish(id);
        } else if std::mem::take(&mut channel.wants_room) {
            self.events.push_back(SocketEvent::Writable(id));
        }
    }

    /// The peer has all of our stream.
    pub(super) fn on_finished(&mut self, id: SocketId) {
        if let Some(Channel { way: Way::Shared { out, .. }, .. }) = self.channels.get_mut(&id) {
            *out = Out::Over;
        }
        self.settle(id);
    }

    pub(super) fn on_readable(&mut self, id: SocketId) {
        if self.channels.get(&id).is_some_and(|channel| channel.is_released) {
            self.refuse_unread(id);
        } else {
            self.events.push_back(SocketEvent::Readable(id));
        }
    }

    /// Nobody reads a released channel: data resets it, and the end is taken.
    pub(super) fn refuse_unread(&mut self, id: SocketId) {
        let Some(Channel { way: Way::Shared { carrier, back: Back::Open(sid), .. }, .. }) = self.channels.get(&id)
        else {
            return;
        };
        match self.stack.streams(*carrier).map(|mut streams| streams.read(*sid, 1)) {
            Some(Ok(Read::Data(_))) => self.fail(id, CloseReason::Aborted),
            Some(Ok(Read::Reset(_))) => {
                self.leave_back(id, Back::Awaited);
                self.fail(id, CloseReason::Reset);
            }
            Some(Ok(Read::End)) => {
                self.leave_back(id, Back::Over);
                self.settle(id);
            }
            Some(Ok(Read::Nothing) | Err(_)) | None => {}
        }
    }

    /// Sets when a connection that no channel uses is closed.
    pub(super) fn rest(&mut self, id: SocketId) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        // The end that opened it closes it: the other one would have to keep it in TIME-WAIT.
        let patience = match carrier.role {
            Role::Opener(_) => IDLE,
            Role::Acceptor(_) => IDLE.saturating_mul(2),
        };
        let until = match carrier.stage {
            _ if !carrier.by_number.is_empty() => Time::NEVER,
            Stage::Opening => Time::NEVER,
            Stage::Open if !self.is_over => carrier.idle_until.min(self.now + patience),
            Stage::Open | Stage::Ending => self.now,
        };
        self.timers.remove(&(std::mem::replace(&mut carrier.idle_until, until), id));
        if until != Time::NEVER {
            self.timers.insert((until, id));
        }
    }

    /// New channels to the peer of this connection need another one.
    pub(super) fn forget_peer(&mut self, id: SocketId) {
        if let Some(peer) = self.carriers.get(&id).and_then(Carrier::peer)
            && self.by_peer.get(&peer) == Some(&id)
        {
            self.by_peer.remove(&peer);
        }
    }

    /// A connection that nobody uses is closed.
    pub(super) fn close_carrier(&mut self, id: SocketId) {
        self.forget_peer(id);
        self.carriers.remove(&id);
        self.stack.release(id);
    }

    /// A connection is over, and all of its channels with it.
    pub(super) fn lose(&mut self, id: SocketId, reason: CloseReason) {
        self.forget_peer(id);
        let Some(carrier) = self.carriers.remove(&id) else { return };
        self.timers.remove(&(carrier.idle_until, id));
        // What ends well for the connection does not for a channel that has not ended.
        let reason = if reason == CloseReason::Finished { CloseReason::Reset } else { reason };
        for channel in carrier.by_number.into_values() {
            self.leave(channel, reason);
        }
        self.stack.release(id);
    }
}

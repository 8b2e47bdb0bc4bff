//! The streams of channels: opened, begun with a number, ended.

use anabranch_proto::{CloseReason, Read, Sid};
use bytes::Bytes;

use super::{ABORTED, Back, Carrier, Channel, Mux, NUMBER, Out, REFUSED, RELEASED_LIFE, Role, Stage, Way, gone};
use crate::socket::{SocketEvent, SocketId};

impl Mux {
    /// Gives channels of a connection their streams, as long as there are some.
    pub(super) fn open_streams(&mut self, id: SocketId) {
        self.say_gone(id);
        loop {
            let is_open = |carrier: &&mut Carrier| carrier.stage != Stage::Opening;
            let Some(carrier) = self.carriers.get_mut(&id).filter(is_open) else { return };
            let Some(&channel) = carrier.unopened.front() else { return };
            let Some(Channel { way: Way::Shared { number, out: out @ Out::Unopened, .. }, .. }) =
                self.channels.get_mut(&channel)
            else {
                carrier.unopened.pop_front();
                continue;
            };
            let Some(Ok(sid)) = self.stack.streams(id).map(|mut streams| streams.open()) else { return };
            *out = Out::Open(sid, Bytes::copy_from_slice(&number.to_be_bytes()));
            carrier.unopened.pop_front();
            carrier.by_out.insert(sid, channel);
            self.on_writable(channel);
        }
    }

    /// Tells the peer of its channels that are over and never had a stream of ours.
    fn say_gone(&mut self, id: SocketId) {
        let Some((carrier, mut streams)) = self.carriers.get_mut(&id).zip(self.stack.streams(id)) else { return };
        while let Some(&code) = carrier.unsaid.front() {
            let Ok(sid) = streams.open() else { break };
            _ = streams.reset(sid, code);
            carrier.unsaid.pop_front();
        }
        // Its opener waits for the answer, so it has at most as many such channels as streams.
        if carrier.unsaid.len() > usize::from(carrier.streams) {
            self.stack.abort(id);
        }
    }

    /// Ends our stream of a channel, once its number is written.
    pub(super) fn finish(&mut self, id: SocketId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if let Way::Shared { carrier, out, .. } = &mut channel.way
            && let Out::Open(sid, head) = out
            && head.is_empty()
        {
            let sid = *sid;
            *out = Out::Ended(sid);
            if let Some(mut streams) = self.stack.streams(*carrier) {
                // It fails if the peer has stopped the stream, which is told by an event.
                _ = streams.finish(sid);
            }
        }
    }

    /// Reads the number of a stream that the peer has begun.
    pub(super) fn begin(&mut self, id: SocketId, sid: Sid) {
        let Self { stack, carriers, .. } = self;
        let Some(carrier) = carriers.get_mut(&id) else { return };
        if carrier.by_back.contains_key(&sid) {
            return;
        }
        let Some(mut streams) = stack.streams(id) else { return };
        let mut number = carrier.begun.remove(&sid).unwrap_or_default();
        let mut codes = vec![];
        while number.len() < NUMBER {
            match streams.read(sid, (NUMBER - number.len()) as u32) {
                Ok(Read::Data(data)) => number.extend_from_slice(&data),
                // A stream that ends here has no channel, or none any more; another one may follow.
                Ok(Read::End) => number.clear(),
                Ok(Read::Reset(code)) => {
                    number.clear();
                    codes.push(code);
                }
                Ok(Read::Nothing) | Err(_) => {
                    if !number.is_empty() {
                        carrier.begun.insert(sid, number);
                    }
                    return self.lose_channels(id, codes);
                }
            }
        }
        let number = number.first_chunk().copied().map_or(0, u32::from_be_bytes);
        let known = carrier.by_number.get(&number).copied();
        let role = carrier.role;
        self.lose_channels(id, codes);
        match (role, known) {
            (Role::Opener(_), Some(channel)) => self.answer(id, channel, sid),
            (Role::Opener(_), None) => {
                if let Some(mut streams) = self.stack.streams(id) {
                    _ = streams.stop(sid, ABORTED);
                }
            }
            // Each channel has its own number.
            (Role::Acceptor(_), Some(_)) => self.stack.abort(id),
            (Role::Acceptor(port), None) => {
                let settings = self.stack.settings();
                let has_place = self.channels.len() < settings.sockets_max
                    && self.ready.get(&port).is_some_and(|ready| ready.len() < settings.backlog);
                if !has_place {
                    if let Some(mut streams) = self.stack.streams(id) {
                        _ = streams.stop(sid, REFUSED);
                    }
                    if let Some(carrier) = self.carriers.get_mut(&id) {
                        carrier.unsaid.push_back(gone(number, REFUSED));
                    }
                    return self.say_gone(id);
                }
                let channel = self.add(id, Some(number), Back::Open(sid));
                self.ready.entry(port).or_default().push_back(channel);
                self.events.push_back(SocketEvent::Incoming(port));
            }
        }
    }

    /// The peer has reset the answers to these channels of ours before they began.
    fn lose_channels(&mut self, carrier: SocketId, codes: Vec<u16>) {
        for code in codes {
            let Some(of) = self.carriers.get(&carrier).filter(|of| of.peer().is_some()) else { return };
            let why = code & 3;
            let channel = of.by_number.iter().find(|(number, _)| gone(**number, why) == code).map(|(_, &id)| id);
            let way = channel.and_then(|id| self.channels.get(&id)).map(|channel| &channel.way);
            if let (Some(id), Some(Way::Shared { back: Back::Awaited, .. })) = (channel, way) {
                self.fail(id, if why == REFUSED { CloseReason::Refused } else { CloseReason::Reset });
            }
        }
    }

    /// The answer to a channel of ours has begun.
    pub(super) fn answer(&mut self, carrier: SocketId, id: SocketId, sid: Sid) {
        match self.channels.get_mut(&id).map(|channel| &mut channel.way) {
            Some(Way::Shared { back: back @ Back::Awaited, .. }) => {
                *back = Back::Open(sid);
                if let Some(carrier) = self.carriers.get_mut(&carrier) {
                    carrier.by_back.insert(sid, id);
                }
                self.on_readable(id);
            }
            _ => {
                if let Some(mut streams) = self.stack.streams(carrier) {
                    _ = streams.stop(sid, ABORTED);
                }
            }
        }
    }

    /// A channel does not read its peer's stream any more. The peer may have begun another one with its SID.
    pub(super) fn leave_back(&mut self, id: SocketId, to: Back) {
        let Some(Channel { way: Way::Shared { carrier, back, .. }, .. }) = self.channels.get_mut(&id) else { return };
        let Back::Open(sid) = std::mem::replace(back, to) else { return };
        let carrier = *carrier;
        if let Some(of) = self.carriers.get_mut(&carrier) {
            of.by_back.remove(&sid);
        }
        self.begin(carrier, sid);
    }

    /// A channel is over if both of its streams are.
    pub(super) fn settle(&mut self, id: SocketId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if matches!(channel.way, Way::Shared { out: Out::Over, back: Back::Over, .. }) {
            self.leave(id, CloseReason::Finished);
        }
    }

    /// Ends a channel at once; its peer is told.
    pub(super) fn fail(&mut self, id: SocketId, reason: CloseReason) {
        let Some(channel) = self.channels.get(&id) else { return };
        if let Way::Shared { carrier, number, out, back } = &channel.way
            && let Some(mut streams) = self.stack.streams(*carrier)
            && let Some(of) = self.carriers.get_mut(carrier)
        {
            let code = if of.peer().is_some() { ABORTED } else { gone(*number, ABORTED) };
            // Either fails if it is known to the peer already.
            match out {
                Out::Open(sid, _) | Out::Ended(sid) => _ = streams.reset(*sid, code),
                Out::Unopened if of.peer().is_none() => of.unsaid.push_back(code),
                Out::Unopened | Out::Over => {}
            }
            if let Back::Open(sid) = *back {
                _ = streams.stop(sid, ABORTED);
                self.leave_back(id, Back::Awaited);
            }
        }
        self.leave(id, reason);
    }

    /// A channel is over, for this reason.
    pub(super) fn leave(&mut self, id: SocketId, reason: CloseReason) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.closed.is_some() {
            return;
        }
        channel.closed = Some(reason);
        if !channel.is_released {
            self.events.push_back(SocketEvent::Closed(id, reason));
        }
        if let Way::Shared { carrier, number, .. } = std::mem::replace(&mut channel.way, Way::Gone) {
            channel.soft_error = self.stack.soft_error(carrier);
            if let Some(of) = self.carriers.get_mut(&carrier) {
                of.by_number.remove(&number);
                of.unopened.retain(|other| *other != id);
            }
            self.rest(carrier);
        }
        if self.channels.get(&id).is_some_and(|channel| channel.is_released) {
            self.remove(id);
        }
    }

    pub(super) fn remove(&mut self, id: SocketId) {
        if let Some(channel) = self.channels.remove(&id) {
            self.timers.remove(&(channel.deadline, id));
        }
    }

    /// A released channel is given up if the peer acknowledges nothing for a while.
    pub(super) fn linger(&mut self, id: SocketId) {
        let (acked, deadline) = (self.acked(id), self.now + RELEASED_LIFE);
        if let Some(channel) = self.channels.get_mut(&id) {
            self.timers.remove(&(channel.deadline, id));
            (channel.deadline, channel.acked) = (deadline, acked);
            self.timers.insert((deadline, id));
        }
    }
}

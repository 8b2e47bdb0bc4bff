//! Incoming connections are admitted, refused, or take the place of another.

use anabranch_units::Time;
use bytes::Bytes;

use super::shares::{Activity, Owner, Room, Shares};
use super::{Admission, Arrival, ConnectionId, Endpoint, REPLIES_MAX, ServerConfig};
use crate::config::{Config, Form};
use crate::connection::{Connection, Transmit};
use crate::random::Secret;
use crate::seal::{Full, Network, Outgoing, Seal};
use crate::segment::Segment;

impl Endpoint {
    /// Why the peer has refused a connection, if it told so. Known with [`crate::Event::Closed`].
    pub fn full(&self, id: ConnectionId) -> Option<Full> {
        let slot = self.slots.get(id.number as usize)?.as_deref()?;
        slot.seal.full().filter(|_| slot.id == id)
    }

    pub(super) fn accept(&mut self, now: Time, arrival: &Arrival, number: u32, seal: Seal, segment: Segment<Bytes>) {
        let Arrival { at, tuple, ecn, .. } = *arrival;
        let secret = Secret::new(self.entropy.draw());
        let is_admitted = |server: &&ServerConfig| match &server.admission {
            Admission::Anyone => true,
            Admission::Keys(keys) => keys.contains(&seal.remote()),
        };
        let connection = match self.config.server.as_ref().filter(is_admitted) {
            Some(server) => {
                let config = Config { form: Form::Sealed, ..server.connection.clone() };
                Connection::listen(now, config, tuple, secret).ok()
            }
            None => {
                self.tally.not_admitted += 1;
                None
            }
        };
        let Some(mut connection) = connection else {
            self.release(number);
            self.free.push_front(number);
            return;
        };
        connection.handle_late(now, at, tuple, ecn, segment);
        let owner = Owner { key: seal.remote(), network: Network::of(tuple.remote.address) };
        match self.room(now, owner) {
            _ if self.is_refusing => self.refuse(now, number, connection, seal, None),
            Room::Free | Room::Instead(_) => _ = self.put(number, connection, seal, owner, true),
            Room::Full(full) => self.refuse(now, number, connection, seal, Some(full)),
        }
    }

    /// Refuses all further connections, for no reason of theirs. Half-open ones are established all the same.
    pub fn refuse_all(&mut self) {
        self.is_refusing = true;
    }

    /// Answers an initiation with a refusal, and with the limit at which there is no room, and keeps nothing. If the answer is lost,
    /// the initiation is repeated.
    fn refuse(
        &mut self,
        now: Time,
        number: u32,
        mut connection: Connection<Bytes>,
        mut seal: Seal,
        full: Option<Full>,
    ) {
        self.tally.too_many += u64::from(full.is_some());
        if let Some(listener) = &mut self.listener {
            listener.refuse(number ^ self.mask);
        }
        self.free.push_front(number);
        full.into_iter().for_each(|full| seal.refuse(full));
        connection.abort();
        let Some(Transmit { tuple, segment, .. }) = connection.poll_transmit(now) else { return };
        let mut reply = vec![];
        if self.replies.len() >= REPLIES_MAX {
            self.tally.replies_dropped += 1;
        } else if seal.seal(now, &Outgoing::new(tuple), &segment, &mut reply).is_ok() {
            self.replies.push_back((tuple, reply));
        }
    }

    /// The room for another connection of this owner.
    fn room(&self, now: Time, owner: Owner) -> Room {
        self.held.room(now, owner, &self.shares(), self.config.connections_max)
    }

    fn shares(&self) -> Shares {
        self.config.server.as_ref().map(|server| server.shares).unwrap_or_default()
    }

    /// An incoming connection is no longer half open: its peer has proved its key and its address. Only now another one ends for
    /// it. It was told that there is room; if that has gone meanwhile, it is reset, and the application does not learn of it.
    pub(super) fn settle(&mut self, now: Time, number: u32) {
        let (shares, most) = (self.shares(), self.config.connections_max);
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return };
        let activity = Activity::of(&slot.connection);
        let room = self.held.enter(now, slot.id, slot.owner, activity.clone(), &shares, most);
        if let Room::Full(_) = room {
            self.tally.too_many += 1;
            slot.connection.abort();
            return;
        }
        slot.is_half_open = false;
        slot.activity = Some(activity);
        if let Room::Instead(other) = room {
            self.tally.gave_way += 1;
            // One of another shard ends in a turn of that one.
            if self.held.is_here(other) {
                self.give_way(other.id);
            }
        }
    }

    /// Ends connections that give way to others in other shards.
    pub(super) fn handle_leaving(&mut self) {
        while let Some(id) = self.held.poll_leaving() {
            self.give_way(id);
        }
    }

    /// Another shard of this socket that must have a turn, as one of its connections gives way to one of this. Its
    /// [`Endpoint::poll_timeout`] says so, too.
    pub fn poll_neighbour(&mut self) -> Option<usize> {
        self.held.poll_neighbour()
    }

    /// Ends a connection that counts no more. Its end needs a turn.
    fn give_way(&mut self, id: ConnectionId) {
        if let Some(slot) = self.find(id) {
            slot.connection.give_way();
            self.touch(id.number);
        }
    }

    /// A connection no longer counts for its owner.
    pub(super) fn withdraw(&mut self, number: u32) {
        let Some(slot) = self.slot_mut(number) else { return };
        let id = slot.id;
        if slot.activity.take().is_some() {
            self.held.remove(id);
        }
    }
}

//! What an application asks of its sockets.

use std::collections::BTreeSet;

use anabranch_proto::{CloseReason, Connection, FourTuple, PathId, PathReport, Read, Sid, State, Streams};
use bytes::Bytes;

use super::{RELEASED_LEAST, Stack, has_data};
use crate::packet::{IpFields, NoticeKind};
use crate::socket::{Settings, SocketError, SocketId};

impl Stack {
    /// Reads at most `most` bytes of a connection in plain TCP.
    ///
    /// # Errors
    /// If there is no such socket, or its connection has ended other than by a close of the peer.
    pub(crate) fn read(&mut self, id: SocketId, most: u32) -> Result<Read<Bytes>, SocketError> {
        let socket = self.sockets.get_mut(&id).ok_or(SocketError::NoSuchSocket)?;
        let read = socket.connection.streams().read(Sid::PLAIN, most);
        let closed = socket.closed;
        match &read {
            Ok(Read::End) => socket.is_ended = true,
            Ok(Read::Data(data)) => socket.urgent.read += data.len() as u64,
            _ => {}
        }
        let is_ended = socket.is_ended;
        self.touch(id);
        match (read, closed) {
            (Ok(Read::Nothing) | Err(_), _) if is_ended => Ok(Read::End),
            (Ok(Read::Nothing) | Err(_), Some(CloseReason::Finished)) => Ok(Read::End),
            (Ok(Read::Nothing) | Err(_), Some(reason)) => Err(SocketError::Closed(reason)),
            (Ok(read), _) => Ok(read),
            // Before the handshake is over.
            (Err(_), None) => Ok(Read::Nothing),
        }
    }

    /// Takes as much of `data` as a stream has room for, which is [`Sid::PLAIN`] in plain TCP. Returns the number of bytes.
    ///
    /// # Errors
    /// If there is no such socket, or it is not open for writing.
    pub(crate) fn write(&mut self, id: SocketId, sid: Sid, data: &mut Bytes) -> Result<u32, SocketError> {
        let socket = self.sockets.get_mut(&id).ok_or(SocketError::NoSuchSocket)?;
        if let Some(reason) = socket.closed {
            return Err(SocketError::Closed(reason));
        }
        let taken = socket.connection.streams().write(sid, data).map_err(|_| SocketError::NotOpen)?;
        socket.urgent.written += u64::from(taken);
        self.touch(id);
        Ok(taken)
    }

    /// The streams of a connection, whose events follow.
    pub(crate) fn streams(&mut self, id: SocketId) -> Option<Streams<'_, Bytes>> {
        self.touch(id);
        self.sockets.get_mut(&id).map(|socket| socket.connection.streams())
    }

    /// Whether a SYN that asked for streams had no answer.
    pub(crate) fn has_withdrawn_offer(&self, id: SocketId) -> bool {
        self.sockets.get(&id).is_some_and(|socket| socket.connection.has_withdrawn_offer())
    }

    /// Streams in each direction; `None` in plain TCP.
    pub(crate) fn stream_count(&self, id: SocketId) -> Option<u16> {
        self.sockets.get(&id).and_then(|socket| socket.streams)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Closes the sending side after what was written.
    pub(crate) fn close(&mut self, id: SocketId) {
        self.command(id, Connection::close);
    }

    /// Ends the connection with a reset.
    pub(crate) fn abort(&mut self, id: SocketId) {
        self.command(id, Connection::abort);
    }

    /// Ends every connection with a reset.
    pub(crate) fn abort_all(&mut self) {
        let ids: BTreeSet<_> = self.sockets.keys().copied().collect();
        for id in ids {
            self.abort(id);
        }
    }

    fn command(&mut self, id: SocketId, act: fn(&mut Connection<Bytes>)) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            act(&mut socket.connection);
            self.touch(id);
        }
    }

    /// The application lets go of a socket. What was written is still sent; data that nobody has read or that arrives from now on resets the connection,
    /// so that the peer knows ([rfc-2525] sec. 2.17).
    pub(crate) fn release(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.closed.is_some() {
            return self.remove(id);
        }
        if std::mem::replace(&mut socket.is_released, true) {
            return;
        }
        // [rfc-9293] sec. 3.6.1: a close with data that nobody has read is a reset, and no FIN goes before it.
        if socket.streams.is_none() && has_data(&mut socket.connection) {
            socket.connection.abort();
        } else {
            socket.connection.close();
        }
        self.touch(id);
        self.released.push_back(id);
        if self.released.len() > 2 * self.sockets.len() + RELEASED_LEAST {
            self.released.retain(|id| self.sockets.contains_key(id));
        }
    }

    /// Sets the fields of the IP headers of a connection, from the next segment on.
    ///
    /// # Errors
    /// If there is no such socket.
    pub(crate) fn set_ip_fields(&mut self, id: SocketId, fields: IpFields) -> Result<(), SocketError> {
        self.sockets.get_mut(&id).ok_or(SocketError::NoSuchSocket)?.fields = fields;
        Ok(())
    }

    /// Bytes that the peer has acknowledged, the SYN included.
    pub(crate) fn acked(&self, id: SocketId) -> u64 {
        self.sockets.get(&id).map_or(0, |socket| socket.connection.acked())
    }

    /// What the network has said of a segment, unless something was acknowledged since ([rfc-9293] sec. 3.9.1.8).
    pub(crate) fn soft_error(&self, id: SocketId) -> Option<NoticeKind> {
        let socket = self.sockets.get(&id)?;
        socket.soft_error.filter(|(_, acked)| *acked == socket.connection.acked()).map(|(kind, _)| kind)
    }

    /// A snapshot of a socket's path.
    pub(crate) fn path(&self, id: SocketId) -> Option<PathReport> {
        self.sockets.get(&id)?.connection.path(PathId::FIRST)
    }

    pub(crate) fn ends(&self, id: SocketId) -> Option<FourTuple> {
        self.sockets.get(&id).map(|socket| socket.tuple)
    }

    /// The state of a socket's connection.
    pub(crate) fn state(&self, id: SocketId) -> Option<State> {
        self.sockets.get(&id).map(|socket| socket.connection.state())
    }

    /// Why a socket's connection is over; `None` if it is not.
    pub(crate) fn closed(&self, id: SocketId) -> Option<CloseReason> {
        self.sockets.get(&id).and_then(|socket| socket.closed)
    }
}

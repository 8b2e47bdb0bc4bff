//! The application's view of its streams.

use super::{Connection, State};
use crate::payload::Payload;
use crate::segment::{Record, Sid, StreamHeader};
use crate::stream::inbound::{Freed, Read, ReadError};
use crate::stream::outbound::{Framing, OpenError, WriteError};
use crate::stream::turns::Priority;

/// The streams of a connection. Every call is an input: the driver must poll the connection afterwards.
#[derive(Debug)]
pub struct Streams<'a, P> {
    pub(super) connection: &'a mut Connection<P>,
}

impl<P: Payload> Streams<'_, P> {
    /// Opens a stream to the peer. In plain TCP [`Sid::PLAIN`] is open from the start.
    ///
    /// # Errors
    /// Before the handshake is over, after the close, or if all streams are in use.
    pub fn open(&mut self) -> Result<Sid, OpenError> {
        let Connection { state, is_closing, sender, .. } = &mut *self.connection;
        match state {
            State::Established | State::CloseWait if !*is_closing => sender.outbound.open(),
            _ => Err(OpenError::NotEstablished),
        }
    }

    /// Takes as much of `payload` as the stream's send buffer has room for, and returns the number of bytes taken. If that is not
    /// all, [`crate::Event::Writable`] follows.
    ///
    /// # Errors
    /// If the stream is not open.
    pub fn write(&mut self, sid: Sid, payload: &mut P) -> Result<u32, WriteError> {
        match self.connection.state {
            State::Established | State::CloseWait => {
                let Connection { sender, paths, config, .. } = &mut *self.connection;
                let taken = sender.outbound.write(sid, payload)?;
                if payload.is_empty() || !sender.tune_buffer(paths, config.send_buffer_max) {
                    return Ok(taken);
                }
                Ok(taken + sender.outbound.write(sid, payload)?)
            }
            _ => Err(WriteError::NotOpen),
        }
    }

    /// Sets the priority of a stream that this end sends, relative to its others. A reused SID starts with [`Priority::USUAL`].
    ///
    /// # Errors
    /// If the stream is not open, or has been sent completely.
    pub fn set_priority(&mut self, sid: Sid, priority: Priority) -> Result<(), WriteError> {
        self.connection.sender.outbound.set_priority(sid, priority)
    }

    /// Ends a stream after the data written to it.
    ///
    /// # Errors
    /// If the stream is not open.
    pub fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let Connection { sender, peer, is_closing, .. } = &mut *self.connection;
        sender.outbound.finish(sid)?;
        // The single stream of plain TCP ends with a FIN.
        *is_closing |= peer.framing == Framing::Plain;
        Ok(())
    }

    /// Resets a stream that is open, or finished and not fully acknowledged. Waiting data is dropped. The peer reads
    /// [`Read::Reset`] instead of unread data, unless the stream had already arrived completely, with its end.
    /// [`crate::Event::Finished`] follows when the SID can be reused.
    ///
    /// # Errors
    /// If there is no such stream, or it was already reset. In plain TCP always, as it cannot reset streams.
    pub fn reset(&mut self, sid: Sid, code: u16) -> Result<(), WriteError> {
        match self.connection.state {
            State::Established | State::CloseWait => self.connection.sender.outbound.reset(sid, code),
            _ => Err(WriteError::NotOpen),
        }
    }

    /// Refuses the rest of a stream: received data is dropped, and so is later data. The peer gets [`crate::Event::Stopped`] and
    /// resets the stream. The next read with this SID belongs to its next stream.
    ///
    /// After this end's close the peer is not informed, because no record can follow a FIN.
    ///
    /// # Errors
    /// If nothing of the stream has arrived, or it was already stopped. In plain TCP always, as it cannot stop streams.
    pub fn stop(&mut self, sid: Sid, code: u16) -> Result<(), ReadError> {
        let Connection { receiver, sender, events, peer, .. } = &mut *self.connection;
        if peer.framing == Framing::Plain {
            return Err(ReadError::Plain);
        }
        let (freed, expected) = receiver.inbound.stop(sid, events)?;
        if let Some(expected) = expected {
            sender.outbound.records.push(Record::Stop { sid, expected, code });
        }
        self.free(sid, freed);
        Ok(())
    }

    /// Reads at most `most` bytes of a stream, in order.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn read(&mut self, sid: Sid, most: u32) -> Result<Read<P>, ReadError> {
        let (read, freed) = self.connection.receiver.inbound.read(sid, most)?;
        self.free(sid, freed);
        Ok(read)
    }

    /// Whether a stream has something to read, which may be its end. The call reads nothing and does not affect events.
    pub fn is_readable(&self, sid: Sid) -> bool {
        self.connection.receiver.inbound.is_readable(sid)
    }

    /// Frees the buffer space of stream data, and announces the credit if the peer may be waiting for it.
    fn free(&mut self, sid: Sid, freed: Freed) {
        // The end of plain TCP's stream is a FIN, not a record.
        if freed == Freed::default() || (freed.payload == 0 && self.connection.peer.framing == Framing::Plain) {
            return;
        }
        self.connection.free(sid, freed);
        let Connection { receiver, acks, paths, .. } = &mut *self.connection;
        if receiver.wants_update() {
            // The window field may not express all of it; the next ACK announces the rest.
            acks.demand_pure_on(paths.quickest(acks.via()));
        }
    }

    /// Segments (and ends) of our streams with this SID that the peer has delivered in order, as the peer reports (ESSN of
    /// [mfast-2019] Procedure 1).
    pub fn delivered(&self, sid: Sid) -> u64 {
        self.connection.sender.outbound.expected(sid)
    }

    /// The next expected SSN of a stream that we receive.
    pub fn expected(&self, sid: Sid) -> Option<StreamHeader> {
        let inbound = &self.connection.receiver.inbound;
        inbound.has(sid).then(|| StreamHeader { sid, ssn: inbound.expected(sid) })
    }
}

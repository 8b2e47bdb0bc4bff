//! What the application may do with its streams.

use super::{Connection, State};
use crate::payload::Payload;
use crate::segment::{Record, Sid, StreamHeader};
use crate::stream::inbound::{Freed, Read, ReadError};
use crate::stream::outbound::{Framing, OpenError, WriteError};
use crate::stream::turns::Priority;

/// The streams of a connection. What is done through it is an input: afterwards the driver drains the connection.
#[derive(Debug)]
pub struct Streams<'a, P> {
    pub(super) connection: &'a mut Connection<P>,
}

impl<P: Payload> Streams<'_, P> {
    /// Opens a stream to the peer. In plain TCP [`Sid::PLAIN`] is open from the start.
    ///
    /// # Errors
    /// Before the handshake is over or after the close, and if all streams are in use.
    pub fn open(&mut self) -> Result<Sid, OpenError> {
        let Connection { state, is_closing, sender, .. } = &mut *self.connection;
        match state {
            State::Established | State::CloseWait if !*is_closing => sender.outbound.open(),
            _ => Err(OpenError::NotEstablished),
        }
    }

    /// Takes as much off `payload` as the stream has room for, and returns how much. If that is not all,
    /// [`crate::Event::Writable`] follows.
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

    /// From now on our stream stands so to our others. A name that is used again begins with [`Priority::USUAL`].
    ///
    /// # Errors
    /// If nothing of the stream can wait, because it is not open or has been sent to its end.
    pub fn set_priority(&mut self, sid: Sid, priority: Priority) -> Result<(), WriteError> {
        self.connection.sender.outbound.set_priority(sid, priority)
    }

    /// Ends a stream after what has been written to it.
    ///
    /// # Errors
    /// If the stream is not open.
    pub fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let Connection { sender, peer, is_closing, .. } = &mut *self.connection;
        sender.outbound.finish(sid)?;
        // Plain TCP has one stream, and its end is a FIN.
        *is_closing |= peer.framing == Framing::Plain;
        Ok(())
    }

    /// Gives a stream up that is open, or was finished and has not been acknowledged: what waits is dropped, and the peer reads
    /// [`Read::Reset`] instead of what it has not read, unless all of the stream and its end had come. [`crate::Event::Finished`]
    /// says when the name can be used again.
    ///
    /// # Errors
    /// If there is no such stream, or it has been reset; in plain TCP, which cannot say so.
    pub fn reset(&mut self, sid: Sid, code: u16) -> Result<(), WriteError> {
        match self.connection.state {
            State::Established | State::CloseWait => self.connection.sender.outbound.reset(sid, code),
            _ => Err(WriteError::NotOpen),
        }
    }

    /// Refuses the rest of the stream that is being read: what came of it is dropped, and so is what still comes; the peer
    /// hears [`crate::Event::Stopped`] and resets it. What is read next belongs to another stream of the same name.
    ///
    /// After the close the peer does not hear of it, as nothing follows a FIN.
    ///
    /// # Errors
    /// If nothing of the stream has come, or it has been stopped; in plain TCP, which cannot say so.
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

    /// Takes at most `most` bytes that came on a stream, in their order.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn read(&mut self, sid: Sid, most: u32) -> Result<Read<P>, ReadError> {
        let (read, freed) = self.connection.receiver.inbound.read(sid, most)?;
        self.free(sid, freed);
        Ok(read)
    }

    /// Whether there is something to read on a stream, its end included. To ask is no read: it changes nothing of what is told.
    pub fn is_readable(&self, sid: Sid) -> bool {
        self.connection.receiver.inbound.is_readable(sid)
    }

    /// So much of a stream needs no buffer any more, and the peer may be waiting for that.
    fn free(&mut self, sid: Sid, freed: Freed) {
        // The end of plain TCP's stream is a FIN, and no record.
        if freed == Freed::default() || (freed.payload == 0 && self.connection.peer.framing == Framing::Plain) {
            return;
        }
        self.connection.free(sid, freed);
        let Connection { receiver, acks, paths, .. } = &mut *self.connection;
        if receiver.wants_update() {
            // The field may have no room for all of it; what it does not say now it says with the next ACK.
            acks.demand_pure_on(paths.quickest(acks.via()));
        }
    }

    /// Segments and ends on our streams of this name that the peer has in order, by its own account ([mfast-2019] Procedure 1:
    /// ESSN).
    pub fn delivered(&self, sid: Sid) -> u64 {
        self.connection.sender.outbound.expected(sid)
    }

    /// What the stream on which we receive expects next.
    pub fn expected(&self, sid: Sid) -> Option<StreamHeader> {
        let inbound = &self.connection.receiver.inbound;
        inbound.has(sid).then(|| StreamHeader { sid, ssn: inbound.expected(sid) })
    }
}

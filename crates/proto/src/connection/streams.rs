//! What the application may do with its streams.

use super::{Connection, State};
use crate::payload::Payload;
use crate::segment::{Sid, StreamHeader};
use crate::stream::inbound::{Read, ReadError};
use crate::stream::outbound::{OpenError, WriteError};

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
        let Connection { state, is_closing, outbound, .. } = &mut *self.connection;
        match state {
            State::Established | State::CloseWait if !*is_closing => outbound.open(),
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
            State::Established | State::CloseWait => self.connection.outbound.write(sid, payload),
            _ => Err(WriteError::NotOpen),
        }
    }

    /// Ends a stream after what has been written to it.
    ///
    /// # Errors
    /// If the stream is not open.
    pub fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let Connection { outbound, peer, is_closing, .. } = &mut *self.connection;
        outbound.finish(sid)?;
        // Plain TCP has one stream, and its end is a FIN.
        *is_closing |= peer.framing == crate::stream::outbound::Framing::Plain;
        Ok(())
    }

    /// Takes at most `most` bytes that came on a stream, in their order.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn read(&mut self, sid: Sid, most: u32) -> Result<Read<P>, ReadError> {
        let Connection { inbound, window, arrivals, acks, paths, .. } = &mut *self.connection;
        let read = inbound.read(sid, most)?;
        if let Read::Data(payload) = &read {
            window.consume(payload.len().into());
            if window.wants_update(arrivals.expected(), arrivals.end()) {
                // The field may have no room for all of it; what it does not say now it says with the next ACK.
                acks.demand_pure_on(paths.quickest(acks.via()));
            }
        }
        Ok(read)
    }

    /// Segments of our stream that the peer has in order, by its own account ([mfast-2019] Procedure 1: ESSN).
    pub fn delivered(&self, sid: Sid) -> u64 {
        self.connection.outbound.expected(sid)
    }

    /// What the stream on which we receive expects next.
    pub fn expected(&self, sid: Sid) -> Option<StreamHeader> {
        let inbound = &self.connection.inbound;
        inbound.has(sid).then(|| StreamHeader { sid, ssn: inbound.expected(sid) })
    }
}

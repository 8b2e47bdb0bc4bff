//! Urgent data of plain TCP: a mark in the stream, up to which all is urgent ([rfc-9293] sec. 3.8.5). It is delivered in its place, and the application is told how
//! much of it is to come, as [rfc-6093] recommends.
//!
//! ```text
//! sent        URG, and the distance to the octet after what is urgent, in each segment before that octet
//! received    the farthest such octet that a segment in the window names
//! ```
//!
//! The field has 16 bits: where more is urgent, each segment names as much as it can. Streams have no such mark.

use anabranch_proto::wire::Checksum;
use anabranch_proto::{FourTuple, SeqNumber, Sid, State};
use bytes::Bytes;

use super::{Socket, Stack, StackEvent};
use crate::packet;
use crate::socket::{SocketError, SocketId};

/// The marks of both directions. Positions count from the SYN, as the engine's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Urgent {
    /// Bytes that the application has written.
    pub(super) written: u64,
    /// The position after what of them is urgent; zero if nothing was.
    sent: u64,
    /// Bytes that the application has read.
    pub(super) read: u64,
    /// The position after what is urgent of the peer's.
    received: u64,
}

/// What a segment says of urgent data: its number, its length in sequence space, and the distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) seq: SeqNumber,
    pub(super) space: u64,
    pub(super) pointer: u16,
}

/// The distance in an encoded segment, if it has the flag.
pub(super) fn pointer(segment: &[u8]) -> Option<u16> {
    let &[high, low] = segment.get(POINTER_AT..)?.first_chunk()?;
    (segment[FLAGS_AT] & URG != 0).then_some(u16::from_be_bytes([high, low]))
}

impl Urgent {
    /// Bytes that are urgent and not read yet.
    fn left(&self) -> u64 {
        self.received.saturating_sub(1 + self.read)
    }

    /// Puts the mark into an encoded segment of this end in a packet, if it begins before the mark. `sent` is the position of what was sent.
    pub(super) fn put(&self, tuple: FourTuple, initial: SeqNumber, sent: u64, packet: &mut [u8]) {
        let segment = &mut packet[packet::header_len(tuple)..];
        let &[a, b, c, d] = segment[4..].first_chunk().expect("a segment has a header");
        let seq = SeqNumber(u32::from_be_bytes([a, b, c, d]));
        let Some(distance) = seq.offset_from(initial, sent).and_then(|at| self.sent.checked_sub(at)) else { return };
        if distance == 0 || segment[FLAGS_AT] & (SYN | RST) != 0 {
            return;
        }
        segment[FLAGS_AT] |= URG;
        let pointer = u16::try_from(distance).unwrap_or(u16::MAX);
        segment[POINTER_AT..POINTER_AT + 2].copy_from_slice(&pointer.to_be_bytes());
        segment[CHECKSUM_AT..POINTER_AT].fill(0);
        let sum = Checksum::of_path(tuple).of(segment).unwrap_or_default();
        segment[CHECKSUM_AT..POINTER_AT].copy_from_slice(&sum.to_be_bytes());
    }
}

impl Socket {
    /// Whether what leaves may need the mark.
    pub(super) fn has_urgent(&self) -> bool {
        self.urgent.sent > self.connection.acked() && self.streams.is_none()
    }

    /// A segment has told a mark; `expected` was the position of what was expected before it. Returns whether the application is to know: there is
    /// urgent data beyond what it knew ([rfc-9293] MUST-32).
    fn takes(&mut self, mark: Mark, expected: u64, buffer: u64) -> bool {
        let is_open = matches!(self.connection.state(), State::Established | State::FinWait1 | State::FinWait2);
        let at = self.peer_initial.and_then(|initial| mark.seq.offset_from(initial, expected));
        let Some(at) = at.filter(|_| is_open && self.streams.is_none()) else { return false };
        // A stranger does not know a number of the window. With a shut one the expected number counts (MUST-66).
        if at + mark.space < expected || at > expected + buffer {
            return false;
        }
        let end = at + u64::from(mark.pointer);
        if end <= self.urgent.received.max(1 + self.urgent.read) {
            return false;
        }
        self.urgent.received = end;
        true
    }
}

impl Stack {
    /// A segment with a mark has been handled.
    pub(super) fn on_mark(&mut self, tuple: FourTuple, mark: Mark, expected: u64) {
        let buffer = self.settings.connection.receive_buffer.max(self.settings.connection.receive_buffer_max);
        let Some(&id) = self.by_tuple.get(&tuple) else { return };
        if self.sockets.get_mut(&id).is_some_and(|socket| socket.takes(mark, expected, buffer)) {
            self.events.push_back(StackEvent::Urgent(id));
        }
    }

    /// Bytes of plain TCP that the peer calls urgent and that are not read yet.
    pub(crate) fn urgent(&self, id: SocketId) -> u64 {
        self.sockets.get(&id).filter(|socket| !socket.is_ended).map_or(0, |socket| socket.urgent.left())
    }

    /// Writes to plain TCP; all that was written so far is urgent.
    ///
    /// # Errors
    /// As [`Stack::write`]; or if there are streams.
    pub(crate) fn write_urgent(&mut self, id: SocketId, data: &mut Bytes) -> Result<u32, SocketError> {
        if self.stream_count(id).is_some() {
            return Err(SocketError::Shared);
        }
        let taken = self.write(id, Sid::PLAIN, data)?;
        if let Some(socket) = self.sockets.get_mut(&id).filter(|_| taken > 0) {
            socket.urgent.sent = 1 + socket.urgent.written;
        }
        Ok(taken)
    }
}

/// Positions in a TCP header, and flags.
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const POINTER_AT: usize = 18;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;

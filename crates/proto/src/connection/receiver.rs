//! The receiving half: received sequence space, the receive window, and acceptance of segments.
//!
//! It knows the peer's sequence space, and the received data of streams. Acknowledgements and flow-control credit are decided
//! elsewhere.

use anabranch_units::{Span, Time};

use super::Connection;
use super::receive_buffer::ReceiveBuffer;
use crate::datagrams::Incoming;
use crate::event::Events;
use crate::options::SackBlocks;
use crate::payload::Payload;
use crate::receive::arrival_buffer::{ArrivalBuffer, User};
use crate::receive::arrivals::Arrivals;
use crate::receive::window::Window;
use crate::segment::StreamHeader;
use crate::seq::{Offset, SeqNumber};
use crate::stream::inbound::{Freed, Inbound};

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver<P> {
    /// The peer's initial sequence number, once it is known.
    initial: SeqNumber,
    pub(super) arrivals: Arrivals,
    pub(super) inbound: Inbound<P>,
    pub(super) datagrams: Incoming<P>,
    pub(super) window: Window,
    buffer: ReceiveBuffer,
    /// Until when all paths count as short.
    short_until: Time,
    /// What it has of the socket's buffer.
    user: User,
    /// The sequence space of datagrams and voids, which is consumed whether an application reads or not. So the buffer does not grow with it.
    datagram_space: u64,
    /// The offset of the peer's FIN, once it is known.
    fin: Option<Offset>,
    /// Segments with content that arrived for the first time.
    arrived: u64,
    /// The segments of `arrived` that arrived after a later one.
    reordered: u64,
}

/// The offsets of a segment with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Its first byte.
    pub(super) left: Offset,
    /// The end of its data, before a FIN.
    pub(super) data_end: Offset,
    /// Its end, with the FIN.
    pub(super) end: Offset,
}

impl Extent {
    /// Whether it includes a FIN.
    fn has_fin(self) -> bool {
        self.end > self.data_end
    }
}

impl<P: Payload> Receiver<P> {
    /// A receiver without data. The buffer has `capacity` bytes and may grow to `capacity_max`, and `datagrams` bytes of datagrams may
    /// wait to be read; a full segment has `mss` bytes.
    pub(super) fn new((capacity, capacity_max): (u64, u64), datagrams: u64, mss: u64) -> Self {
        Self {
            initial: SeqNumber(0),
            arrivals: Arrivals::new(1),
            inbound: Inbound::new(0, 1),
            datagrams: Incoming::new(datagrams),
            window: Window::new(capacity, mss),
            buffer: ReceiveBuffer::new(capacity_max),
            short_until: Time::ZERO,
            user: User::default(),
            datagram_space: 0,
            fin: None,
            arrived: 0,
            reordered: 0,
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, initial: SeqNumber) {
        self.initial = initial;
    }

    /// The peer's initial sequence number, once it is known.
    pub(super) fn initial(&self) -> SeqNumber {
        self.initial
    }

    /// The expected offset: everything below has arrived.
    pub(super) fn expected(&self) -> Offset {
        self.arrivals.expected()
    }

    /// The expected offset as a sequence number of the peer.
    pub(super) fn expected_number(&self) -> SeqNumber {
        self.initial.plus(self.arrivals.expected())
    }

    /// An offset as a sequence number of the peer.
    pub(super) fn number(&self, place: Offset) -> SeqNumber {
        self.initial.plus(place)
    }

    /// The offset of a sequence number of the peer; `None` if it is before the SYN.
    pub(super) fn place(&self, number: SeqNumber) -> Option<Offset> {
        number.offset_from(self.initial, self.arrivals.expected())
    }

    /// The SACK blocks of an acknowledgement, at most `blocks`, and the sum of their nonces.
    pub(super) fn report(&mut self, blocks: usize) -> (SackBlocks, u16) {
        self.arrivals.report(self.initial, blocks)
    }

    /// The window field of a segment that is sent now and acknowledges everything below `acked`.
    pub(super) fn advertise(&mut self, acked: Offset) -> u16 {
        self.window.advertise(acked, self.arrivals.end())
    }

    /// Whether the peer should get a window update.
    pub(super) fn wants_update(&self) -> bool {
        self.window.wants_update(self.arrivals.expected(), self.arrivals.end())
    }

    /// [rfc-9293] sec. 3.10.7.4, table 6; the window is the largest announced so far.
    pub(super) fn is_acceptable(&self, left: Offset, space: u64) -> bool {
        let (expected, edge) = (self.arrivals.expected(), self.window.edge());
        if space == 0 {
            return (expected..=edge.max(expected)).contains(&left);
        }
        left + space > expected && left + space <= edge
    }

    /// Whether a number is close enough for an in-order segment if one of several paths is slow: at most `age` below the expected
    /// number, and within the window.
    pub(super) fn is_near(&self, number: SeqNumber, age: u64) -> bool {
        let (expected, edge) = (self.arrivals.expected(), self.window.edge());
        let width = edge.saturating_sub(expected).max(self.window.capacity()).max(age);
        self.place(number).is_some_and(|place| (expected.saturating_sub(width)..=edge.max(expected)).contains(&place))
    }

    /// A segment with this space arrived and is not used. It is a duplicate, unless it lies beyond the window.
    pub(super) fn on_useless(&mut self, left: Offset, right: Offset) {
        if self.arrivals.missing(left, right).is_none() {
            self.arrivals.on_duplicate(left, right);
        }
    }

    /// Whether a segment is consistent with the FIN: no data follows the FIN, and there is only one FIN.
    pub(super) fn fits_end(&self, place: Extent) -> bool {
        match self.fin {
            Some(fin) => place.end <= fin + 1 && (!place.has_fin() || place.data_end == fin),
            None => !place.has_fin() || place.data_end >= self.arrivals.end(),
        }
    }

    /// Whether a segment would take much more memory than the window accounts for. The segment at the expected offset is always
    /// accepted, because it is delivered at once.
    pub(super) fn is_too_costly(&self, left: Offset, right: Offset) -> bool {
        let memory_max = self.window.capacity() + OVERHEAD_LEAST;
        left > self.arrivals.expected()
            && (self.inbound.overhead() + self.arrivals.overhead() > memory_max
                || self.arrivals.has_too_many_holes(left, right))
    }

    /// Plain TCP may divide its bytes differently in each transmission, so only the missing pieces are accepted.
    pub(super) fn accept_plain(&mut self, left: Offset, right: Offset, mut payload: P, events: &mut Events) {
        let mut place = left;
        while let Some((left, right)) = self.arrivals.missing(place, right) {
            // Both differences lie within the segment.
            let _ = payload.split_to((left - place) as u32);
            let piece = payload.split_to((right - left) as u32);
            self.arrivals.insert(left, right, 0);
            self.inbound.accept_plain(left, piece, events);
            place = right;
        }
    }

    /// The content of a segment was accepted; `end_before` was the end of the received space before. Returns whether the segment
    /// completed the FIN.
    pub(super) fn on_taken(&mut self, place: Extent, nonce: u16, end_before: Offset) -> bool {
        let has_data = place.data_end > place.left;
        self.arrived += u64::from(has_data);
        self.reordered += u64::from(has_data && place.left < end_before);
        let is_first_fin = place.has_fin() && self.fin.is_none();
        if is_first_fin {
            self.fin = Some(place.data_end);
            // A FIN without data is a segment, too.
            self.arrivals.insert(place.data_end, place.end, if has_data { 0 } else { nonce });
            self.window.consume(1);
        }
        is_first_fin
    }

    /// The offset of the peer's FIN, once it is known.
    pub(super) fn fin(&self) -> Option<Offset> {
        self.fin
    }

    /// Whether everything has arrived, the FIN included.
    pub(super) fn has_all(&self) -> bool {
        self.fin.is_some_and(|fin| self.arrivals.expected() == fin + 1)
    }

    /// All data of plain TCP's single stream has arrived.
    pub(super) fn finish_plain(&mut self, events: &mut Events) {
        if let Some(fin) = self.fin {
            self.inbound.finish_plain(fin, events);
        }
    }

    /// Frees the buffer space of stream data that was read or dropped.
    pub(super) fn free(&mut self, freed: Freed) {
        self.window.consume(freed.payload + u64::from(freed.records));
    }

    /// Frees the buffer space of a datagram, which has a queue of its own, or of the bytes for which a void stands.
    pub(super) fn free_datagram(&mut self, len: u32) {
        let space = u64::from(len + StreamHeader::LEN);
        self.window.consume(space);
        self.datagram_space += space;
    }

    /// Frees the buffer space of a stream header.
    pub(super) fn free_header(&mut self) {
        self.window.consume(StreamHeader::LEN.into());
    }

    /// Data has arrived; `rtt` is that of the slowest path. Returns whether a round trip has passed.
    pub(super) fn ends_round(&mut self, now: Time, rtt: impl FnOnce() -> Option<Span>) -> bool {
        self.buffer.on_arrival(now, rtt)
    }

    /// Limits what is on the way to what this host holds, while all paths are short: their latest RTTs were below [`SHORT`] within the last
    /// [`MEMORY`]. A busy host makes most RTTs longer; a new route makes all of them longer.
    fn limit_ahead(
        &mut self,
        now: Time,
        mut latest: impl Iterator<Item = Option<Span>>,
        arrival_buffer: &ArrivalBuffer,
    ) {
        if latest.all(|rtt| rtt.is_some_and(|rtt| rtt < SHORT)) {
            self.short_until = now.saturating_add(MEMORY);
        }
        self.window.limit_ahead(if now < self.short_until {
            arrival_buffer.part(now, &mut self.user, self.arrivals.total())
        } else {
            u64::MAX
        });
    }

    /// A round trip has passed, in which a stream lacked credit if `is_short`. Returns by how much the buffer grew, if it did.
    pub(super) fn tune(&mut self, is_short: bool) -> Option<u64> {
        let capacity = self.window.capacity();
        let wanted = self.buffer.grown(self.window.consumed() - self.datagram_space, capacity, is_short)?;
        self.window.grow(wanted);
        Some(wanted - capacity)
    }

    /// Whether the byte at this offset has arrived.
    pub(super) fn has_arrived(&self, offset: Offset) -> bool {
        offset < self.arrivals.expected() || self.arrivals.missing(offset, offset + 1).is_none()
    }

    /// Bytes that have arrived and have not been read or dropped.
    pub(super) fn buffered(&self) -> u64 {
        self.arrivals.total() - self.window.consumed()
    }

    /// Segments with content that arrived for the first time, and how many of them arrived after a later one.
    pub(super) fn arrived(&self) -> (u64, u64) {
        (self.arrived, self.reordered)
    }
}

impl<P: Payload> Connection<P> {
    /// Limits what may be on its way to what the host holds for this connection.
    pub(super) fn limit_ahead(&mut self, now: Time) {
        let latest = self.paths.iter().map(|(_, path)| path.control.rtt_latest());
        self.receiver.limit_ahead(now, latest, &self.config.arrival_buffer);
    }
}

/// The memory overhead of held data may be as large as the buffer (as with Linux' `tcp_adv_win_scale` of 1), plus this much, so
/// that a small buffer has room for a hole in each of 200 streams, whose blocks take 5 kB each.
const OVERHEAD_LEAST: u64 = 1 << 20;

/// A path with a shorter RTT holds at most what a socket does: 4 MB at 32 Gbit/s.
const SHORT: Span = Span::from_millis(1);

/// Data that waits in a full socket makes RTTs longer: of 64 connections over loopback some had no RTT below 1 ms in a second, and the latest were 47 to 87 ms.
/// A new route is known that late, too.
const MEMORY: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    /// A buffer of 10,000 bytes. The peer's SYN has number 7, so its first byte has number 8.
    fn receiver() -> Receiver<Virtual> {
        let mut receiver = Receiver::new((10_000, 0), 0, 1000);
        receiver.on_syn(SeqNumber(7));
        assert_eq!(receiver.advertise(receiver.expected()), 10_000);
        receiver
    }

    fn place(left: Offset, data_end: Offset, end: Offset) -> Extent {
        Extent { left, data_end, end }
    }

    /// Accepts bytes of plain TCP.
    fn take(receiver: &mut Receiver<Virtual>, left: Offset, right: Offset) {
        let end_before = receiver.arrivals.end();
        receiver.accept_plain(left, right, Virtual((right - left) as u32), &mut Events::new());
        assert!(!receiver.on_taken(place(left, right, right), 0, end_before));
    }

    #[test]
    fn places_count_from_the_syn() {
        let mut receiver = receiver();
        assert_eq!((receiver.place(SeqNumber(8)), receiver.expected_number()), (Some(1), SeqNumber(8)));
        take(&mut receiver, 1, 501);
        assert_eq!((receiver.expected(), receiver.expected_number()), (501, SeqNumber(508)));
    }

    /// [rfc-9293] sec. 3.10.7.4, table 6.
    #[test]
    fn the_window_says_what_may_come() {
        let mut receiver = receiver();
        take(&mut receiver, 1, 501);
        for (left, space, is_acceptable) in [
            (501, 0, true),
            (500, 0, false),
            (10_001, 0, true),
            (10_002, 0, false),
            (1, 500, false),
            (1, 501, true),
            (501, 9500, true),
            (501, 9501, false),
        ] {
            assert_eq!(receiver.is_acceptable(left, space), is_acceptable, "{space} bytes at {left}");
        }
        assert!(receiver.is_near(SeqNumber(7), 0) && receiver.is_near(SeqNumber(10_008), 0));
        assert!(!receiver.is_near(SeqNumber(10_009), 1 << 20), "beyond the window");
    }

    #[test]
    fn data_after_fin_is_ignored() {
        let mut receiver = receiver();
        take(&mut receiver, 2001, 3001);
        assert!(!receiver.fits_end(place(1, 1001, 1002)), "there is more beyond it");
        let fin = place(3001, 3001, 3002);
        assert!(receiver.fits_end(fin) && receiver.on_taken(fin, 9, 3001));
        assert_eq!((receiver.fin(), receiver.has_all()), (Some(3001), false));
        assert!(receiver.fits_end(place(1, 1001, 1001)) && receiver.fits_end(place(2001, 3001, 3002)));
        assert!(!receiver.fits_end(place(1, 1001, 1002)), "another FIN");
        take(&mut receiver, 1, 2001);
        assert!(receiver.has_all());
        assert_eq!(receiver.arrived(), (2, 1), "the FIN has no content, and what filled the hole came late");
    }

    #[test]
    fn reading_makes_room() {
        let mut receiver = receiver();
        take(&mut receiver, 1, 8001);
        assert_eq!((receiver.buffered(), receiver.wants_update()), (8000, false));
        receiver.free(Freed { payload: 8000, ..Freed::default() });
        assert_eq!((receiver.buffered(), receiver.wants_update()), (0, true));
        assert!(receiver.has_arrived(8000) && !receiver.has_arrived(8001));
    }
}

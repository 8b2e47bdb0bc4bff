//! The receive window.
//!
//! Arrived data waits in the buffer until the application reads it. The application can read data above a hole if it is in order
//! on its stream ([mfast-2019] sec. IV.D). So with `rbuf` bytes of buffer the right edge is
//!
//! ```text
//! ESEQ + rbuf + (consumed above the hole) − (held below it)  =  rbuf + everything consumed so far
//! ```
//!
//! Nothing is consumed twice or returned, so the edge never moves back. Consumption is counted in sequence space: a stream header
//! at once, its payload when the application reads it.
//!
//! What arrives waits in the host's socket first. Where the path is too short to hold much, all that is on the way may wait there at
//! once; so the edge is then at most that much above the end of what has arrived ([`Window::limit_ahead`]).

use crate::seq::Offset;

/// The window of one direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// rbuf in bytes.
    capacity: u64,
    /// Sequence space consumed so far, the SYN included.
    consumed: u64,
    /// The window scale: the shift of the window field.
    shift: u8,
    /// The largest right edge announced so far. Segments beyond it are dropped.
    edge: Offset,
    /// The peer's full segment in bytes.
    mss: u64,
    /// The largest distance of the edge from the end of the arrived data.
    ahead: u64,
    /// The largest value of the field in bytes, and the least step of the edge. They depend on the shift and on the buffer.
    width_max: u64,
    step: u64,
}

impl Window {
    /// The window before anything but a SYN has arrived.
    pub(crate) fn new(capacity: u64, mss: u64) -> Self {
        let step = mss.min(capacity / 2);
        Self { capacity, consumed: 1, shift: 0, edge: 1, mss, ahead: u64::MAX, width_max: FIELD_MAX, step }
    }

    /// The shift for a buffer of this size ([rfc-7323] sec. 2.2). Consumption above a hole moves the edge away from the
    /// acknowledgement number, so the field must express several buffers.
    pub(crate) fn scale(capacity: u64) -> u8 {
        let largest = capacity.saturating_mul(HEADROOM);
        (0..SHIFT_MAX).find(|&shift| FIELD_MAX << shift >= largest).unwrap_or(SHIFT_MAX)
    }

    /// Sets the shift for later windows.
    pub(crate) fn set_shift(&mut self, shift: u8) {
        (self.shift, self.width_max) = (shift, FIELD_MAX << shift);
    }

    /// The size of the buffer in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Grows the buffer to `capacity` bytes.
    pub(crate) fn grow(&mut self, capacity: u64) {
        debug_assert!(capacity >= self.capacity, "what has been offered is not taken back");
        (self.capacity, self.step) = (capacity, self.mss.min(capacity / 2));
    }

    /// From now on the peer may send at most `bytes` more than what has arrived. What has been announced stays valid.
    pub(crate) fn limit_ahead(&mut self, bytes: u64) {
        self.ahead = bytes;
    }

    /// The limit of [`Self::limit_ahead`].
    #[cfg(test)]
    pub(crate) fn ahead(&self) -> u64 {
        self.ahead
    }

    /// This much sequence space no longer occupies the buffer.
    pub(crate) fn consume(&mut self, bytes: u64) {
        self.consumed += bytes;
    }

    /// Sequence space consumed so far.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The right edge announced to the peer.
    pub(crate) fn edge(&self) -> Offset {
        self.edge
    }

    /// The window field of a segment that acknowledges `expected`; `end` is the end of the arrived data. From now on the peer may
    /// send up to the edge that it announces.
    ///
    /// [rfc-7323] sec. 2.4: the field counts units, so the edge of one segment may lie up to a unit below that of an earlier one,
    /// which stays valid.
    pub(crate) fn advertise(&mut self, expected: Offset, end: Offset) -> u16 {
        // At most what the field can express.
        let field = self.goal(expected, end).saturating_sub(expected).min(self.width_max) >> self.shift;
        self.edge = self.edge.max(expected + (field << self.shift));
        debug_assert!(self.edge <= self.consumed + self.capacity, "nothing may come for which there is no buffer");
        field as u16
    }

    /// Whether the peer should get a window update. `end` is the end of the arrived data.
    pub(crate) fn wants_update(&self, expected: Offset, end: Offset) -> bool {
        let gain = self.goal(expected, end).saturating_sub(self.edge);
        let is_tight = || self.edge.saturating_sub(end) < 2 * self.mss;
        let width = self.capacity.min(self.ahead);
        gain > 0 && gain >= (1 << self.shift) && (gain >= width / UPDATES_PER_BUFFER || is_tight())
    }

    /// The edge to announce, in steps that [rfc-9293] sec. 3.8.6.2.2 allows.
    fn goal(&self, expected: Offset, end: Offset) -> Offset {
        let room = (self.consumed + self.capacity).min(expected + self.width_max).min(end.saturating_add(self.ahead));
        if room >= self.edge + self.step { room } else { self.edge }
    }
}

/// TCP's window field has 16 bits.
const FIELD_MAX: u64 = 0xffff;

/// [rfc-7323] sec. 2.3.
pub(crate) const SHIFT_MAX: u8 = 14;

/// While there is a hole, other streams may consume three more buffers: the data of three round trips at full rate. That is long
/// enough even if a retransmission is lost.
const HEADROOM: u64 = 4;

/// With a quarter of the buffer still open, a sender does not stall.
const UPDATES_PER_BUFFER: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(capacity: u64) -> Window {
        let mut window = Window::new(capacity, 1000);
        window.advertise(1, 1);
        window
    }

    #[test]
    fn waiting_data_takes_room_until_read() {
        let mut window = window(10_000);
        assert_eq!(window.edge(), 10_001);
        // 6000 bytes arrive and are not read.
        assert_eq!((window.advertise(6001, 6001), window.edge()), (4000, 10_001));
        window.consume(6000);
        assert_eq!((window.advertise(6001, 6001), window.edge()), (10_000, 16_001));
    }

    /// A hole at 1, and 8000 bytes above it that the streams have consumed: the peer may continue.
    #[test]
    fn consumption_above_hole_opens_window() {
        let mut window = window(10_000);
        window.consume(8000);
        assert_eq!((window.advertise(1, 1), window.edge()), (18_000, 18_001));
    }

    /// A socket that holds 2000 bytes, and a buffer of 10,000. The edge that was announced before stays; then it follows what has arrived, a
    /// hole or not.
    #[test]
    fn a_window_is_at_most_what_the_socket_holds() {
        let mut window = window(10_000);
        window.limit_ahead(2_000);
        assert_eq!((window.advertise(5_001, 5_001), window.edge()), (5_000, 10_001));
        assert!(!window.wants_update(5_001, 7_001));
        window.consume(9_000);
        assert_eq!((window.advertise(9_001, 9_001), window.edge()), (2_000, 11_001));
        assert_eq!((window.advertise(9_001, 11_001), window.edge()), (4_000, 13_001));
        assert!(window.wants_update(9_001, 13_001));
        window.limit_ahead(u64::MAX);
        assert_eq!((window.advertise(9_001, 11_001), window.edge()), (10_000, 19_001));
    }

    /// A quarter of what the socket holds is worth an update, although the buffer is much larger.
    #[test]
    fn a_quarter_of_the_limit_is_worth_an_update() {
        let mut window = Window::new(1_000_000, 1000);
        window.set_shift(4);
        window.limit_ahead(8_000);
        window.advertise(1, 1);
        window.consume(3_000);
        assert_eq!([1_501, 3_001].map(|end| window.wants_update(end, end)), [false, true]);
    }

    #[test]
    fn the_window_opens_in_steps_worth_a_segment() {
        let mut window = window(10_000);
        window.consume(999);
        assert_eq!((window.advertise(10_001, 10_001), window.wants_update(10_001, 10_001)), (0, false));
        window.consume(1);
        assert!(window.wants_update(10_001, 10_001));
        assert_eq!(window.advertise(10_001, 10_001), 1000);
    }

    #[test]
    fn a_large_buffer_is_scaled_with_room_for_holes() {
        assert_eq!(Window::scale(16_000), 0);
        assert_eq!(Window::scale(65_535), 2);
        assert_eq!(Window::scale(1 << 40), SHIFT_MAX);
    }

    /// In units of 4 bytes, the announced window never exceeds the buffer.
    #[test]
    fn rounding_never_promises_what_there_is_not() {
        let mut window = Window::new(65_535, 1000);
        window.set_shift(2);
        for expected in 1..2000 {
            let before = window.edge();
            window.advertise(expected, expected);
            assert!(window.edge() >= before && window.edge() <= 65_536, "{} after {before}", window.edge());
        }
    }
}

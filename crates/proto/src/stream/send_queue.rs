//! How much data may wait to be sent: it keeps a stream that cannot send from blocking the others.
//!
//! ```text
//! on one stream          at most the send buffer, and at most a reserve more than its flow-control credit; up to a megabyte
//!                        more while less than a quarter of the shared part is in use
//! on all streams         the reserve of each, which nobody else can take, and a part that they share
//! ```
//!
//! Data that exceeds the credit of its stream leaves only when the peer's application reads. By the second rule of the first line
//! a stream of an idle reader holds a reserve and no more, since sending takes as much from the waiting data as from the credit.
//! So three quarters of the shared part are filled only by data that the network can take, and a write on another stream always has
//! room for its reserve. The quarter lets a program write some hundred kilobytes before anybody reads.

/// The limits on waiting data, and how much of the shared part is in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendQueue {
    /// The send buffer: the limit of one stream.
    limit: u64,
    /// Bytes that each stream may always have waiting.
    reserve: u64,
    /// Bytes beyond reserve and credit that may wait on a stream while little is waiting on all.
    further: u64,
    /// The part that all streams share, and what they use of it.
    shared_max: u64,
    shared: u64,
    /// Whether a write was cut short because the shared part was full.
    is_full: bool,
}

impl SendQueue {
    /// Limits for `streams` streams: `limit` bytes on one of them, `all` bytes together.
    pub(super) fn new(limit: u64, all: u64, streams: u16) -> Self {
        let reserve = all / RESERVED_PART / u64::from(streams.max(1));
        let shared_max = all - all / RESERVED_PART;
        Self {
            limit,
            reserve,
            further: (shared_max / FURTHER_PART).min(FURTHER_MAX),
            shared_max,
            shared: 0,
            is_full: false,
        }
    }

    /// The limit of one stream.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Sets the limit of one stream.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The number of bytes that may wait on a stream with this credit: no more than the reserve while the shared part is full.
    pub(super) fn most_now(&self, credit: u64) -> u64 {
        if self.is_full { self.most(0) } else { self.most(credit) }
    }

    fn most(&self, credit: u64) -> u64 {
        let further = if self.shared < self.shared_max / UNREAD_PART { self.further } else { 0 };
        self.reserve.saturating_add(credit).saturating_add(further).min(self.limit)
    }

    /// A stream that has `waiting` bytes and this credit wants to add `wanted` bytes. Returns how many it may add, and adds them.
    pub(super) fn add(&mut self, waiting: u64, credit: u64, wanted: u64) -> u64 {
        let room = self.most(credit).saturating_sub(waiting).min(wanted);
        let own = self.reserve.saturating_sub(waiting);
        let taken = room.min(own.saturating_add(self.shared_max - self.shared));
        self.is_full |= taken < room;
        self.shared += taken.saturating_sub(own);
        taken
    }

    /// `bytes` bytes of the `waiting` bytes of a stream no longer wait.
    pub(super) fn remove(&mut self, waiting: u64, bytes: u64) {
        self.shared -= waiting.saturating_sub(self.reserve).min(bytes);
    }

    /// Whether half of the shared part has become free since it was full. Then all streams that wait for room are informed.
    pub(super) fn take_has_room(&mut self) -> bool {
        let has_room = self.is_full && 2 * self.shared <= self.shared_max;
        self.is_full &= !has_room;
        has_room
    }
}

/// Half of the memory for waiting data is reserved: with the usual 512 MiB and 4,080 streams 16 kB for each, which is eleven
/// segments.
const RESERVED_PART: u64 = 2;

/// The part of the shared memory that data without credit may fill, however many streams stand still.
const UNREAD_PART: u64 = 4;

/// What one stream may have of it: a message of usual size, and never so much that sixteen streams fill the part.
const FURTHER_MAX: u64 = 1 << 20;
const FURTHER_PART: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: u64 = u64::MAX;

    /// 4000 bytes and 20 streams: 100 bytes for each, and 2000 shared, of which a stream without credit may have 31.
    fn queue() -> SendQueue {
        SendQueue::new(1500, 4000, 20)
    }

    #[test]
    fn waiting_data_exceeds_credit_by_reserve_at_most() {
        let mut queue = SendQueue { further: 0, ..queue() };
        assert_eq!(queue.add(0, 50, 1000), 150);
        assert_eq!((queue.add(150, 50, 1000), queue.add(150, 53, 1000)), (0, 3));
        // 53 bytes are sent, which takes as much from the credit.
        queue.remove(153, 53);
        assert_eq!((queue.add(100, 0, 1000), queue.shared), (0, 0));
    }

    /// Streams without credit hold 31 bytes more than their reserve, until they fill a quarter of the shared 2000.
    #[test]
    fn data_without_credit_fills_quarter_of_shared_part() {
        let mut queue = queue();
        assert_eq!((queue.add(0, 0, 1000), queue.add(131, 0, 1000)), (131, 0));
        let held: u64 = (1..20).map(|_| queue.add(0, 0, 1000)).sum();
        assert_eq!((held, queue.shared), (16 * 131 + 3 * 100, 17 * 31));
        let mut queue = SendQueue::new(1500, 40_000, 200);
        let held: Vec<u64> = (0..200).map(|_| queue.add(0, 0, 1000)).collect();
        assert_eq!((held[0], held[199], queue.shared < 20_000 / 4 + 312), (412, 100, true));
    }

    #[test]
    fn a_stream_has_its_reserve_when_others_hold_all_they_can() {
        let mut queue = queue();
        assert_eq!([1500, 600, 100].map(|_| queue.add(0, UNLIMITED, 10_000)), [1500, 700, 100]);
        let others: u64 = (3..20).map(|_| queue.add(0, 0, 10_000)).sum();
        assert_eq!((others, queue.shared), (17 * 100, 2000));
    }

    #[test]
    fn there_is_room_again_when_half_of_the_shared_part_is_free() {
        let mut queue = queue();
        queue.add(0, UNLIMITED, 1500);
        assert_eq!((queue.add(0, UNLIMITED, 1500), queue.take_has_room()), (700, false));
        queue.remove(1500, 999);
        assert!(!queue.take_has_room());
        queue.remove(501, 1);
        assert_eq!((queue.take_has_room(), queue.take_has_room()), (true, false));
    }
}

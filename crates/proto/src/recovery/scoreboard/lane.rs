//! The scoreboard's view of one path: its segments in flight, lost and delivered.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::ops::Range;

use anabranch_cc::Departure;
use anabranch_units::Time;

use super::{DUPLICATES, Entry, Index, NONE};
use crate::recovery::retransmission_log::RetransmissionLog;
use crate::seq::Offset;

/// The segments in flight on one path.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) oldest: Oldest,
    pub(super) newest: Index,
    /// Bytes in flight.
    pub(super) bytes: u64,
    /// The number of transmissions so far.
    pub(super) departures: u64,
    /// Transmissions before the path was last abandoned. Their arrivals are ignored.
    pub(super) begin: u64,
    /// The highest end of a segment that was delivered.
    pub(super) highest: Offset,
    /// The serial numbers, each plus one, of the three latest transmissions known to have arrived; the latest first.
    pub(super) latest: [u64; DUPLICATES],
    pub(super) newly_acked: NewlyAcked,
    pub(super) retransmission_log: RetransmissionLog,
    pub(super) lost: Losses,
    /// Segments lost here and not delivered since, whether retransmitted or not.
    pub(super) damaged: usize,
    /// Below this index no segment of this lane is missing, except those moved from another one.
    pub(super) cursor: Index,
    /// The number of delivered segments of this lane at or above the cursor.
    pub(super) above: usize,
    pub(super) holes: Holes,
    /// Segments that an ACK on another path reported, in the order of sending and of sequence space.
    pub(super) held: VecDeque<Held>,
    /// The bytes of held segments.
    pub(super) held_bytes: u64,
    /// Transmissions whose segments were also sent on another path, in the order of sending. They still count as in flight here.
    pub(super) copies: VecDeque<Copied>,
    /// Copies that are owed here, in the order of sequence space. Outdated ones are removed when they come to the front.
    pub(super) owed: VecDeque<Index>,
    /// Answers in a row to doubled segments that were earlier than every RTT, without a duplicate.
    pub(super) early: u32,
    /// The doubled segment that the present ACK answers, as far as it has been read.
    pub(super) answered: Option<Answered>,
}

/// The holes of one path among several. Entries below the cursor are outdated.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The number of holes found; two means two or more.
    pub(super) count: usize,
    /// Indices delivered above the cursor, the lowest on top. Some may be outdated.
    delivered: BinaryHeap<Reverse<Index>>,
    /// One more than the highest delivered index.
    pub(super) highest: Index,
    /// A range of entries in which no segment of this lane is missing.
    pub(super) run: Range<Index>,
}

/// The oldest segment in flight, cached: it is read far more often than it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oldest {
    /// [`NONE`] if nothing is in flight.
    pub(super) index: Index,
    /// Larger than any serial number if nothing is in flight.
    pub(super) serial: u64,
    pub(super) departed: Time,
}

/// A transmission of a segment that was also sent on another path, where the segment is in flight or was delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    pub(super) end: Offset,
    pub(super) len: u32,
    pub(super) serial: u64,
    /// If the segment was doubled from the start and has been delivered by its twin: the record of this transmission, which
    /// arrives or is lost as any other. Otherwise it is unknown which transmission an ACK answers, so this one gives no sample.
    pub(super) departure: Option<Departure>,
}

/// The first arrival of a doubled segment, which an ACK answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) end: Offset,
    pub(super) serial: u64,
    /// Whether it is earlier than every RTT of its path.
    pub(super) is_early: bool,
}

/// Lost segments.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Indices of all lost segments. Outdated ones are removed when they come to the top.
    pub(super) heap: BinaryHeap<Reverse<Index>>,
    pub(super) count: usize,
}

/// A segment that is delivered, but still in flight for its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) serial: u64,
    pub(super) departure: Departure,
}

/// What acknowledgements have newly reported for one path since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NewlyAcked {
    /// Segments that arrived, and their bytes.
    pub(crate) segments: u32,
    pub(crate) bytes: u64,
    /// The bytes of those segments that were in flight; the others had been declared lost.
    pub(crate) bytes_from_flight: u64,
    /// The segment that was sent last.
    pub(crate) newest: Option<Delivered>,
    /// The latest transmission that is unambiguous.
    pub(crate) newest_certain: Option<Departed>,
    /// Whether a segment that was sent once arrived after a higher one.
    pub(crate) is_reordered: bool,
    /// Whether a segment arrived that had been declared lost and not retransmitted.
    pub(crate) is_late: bool,
    /// Whether the original of a retransmitted segment arrived.
    pub(crate) is_original: bool,
    /// Whether a retransmitted segment arrived, and it is unknown which of its transmissions.
    pub(crate) is_ambiguous: bool,
    /// [`AckContext::echo`], if the acknowledgement number moved.
    pub(crate) echo: Option<Time>,
}

/// A segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delivered {
    pub(crate) serial: u64,
    /// Bytes.
    pub(crate) len: u32,
    pub(crate) transmissions: u32,
    pub(crate) departure: Departure,
}

/// The serial number and time of a transmission, as RACK needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) serial: u64,
    pub(crate) time: Time,
}

impl Oldest {
    pub(super) const NONE: Self = Self { index: NONE, serial: u64::MAX, departed: Time::NEVER };
}

impl Lane {
    pub(super) fn new(cursor: Index) -> Self {
        Self {
            oldest: Oldest::NONE,
            newest: NONE,
            bytes: 0,
            departures: 0,
            begin: 0,
            highest: 0,
            latest: [0; DUPLICATES],
            newly_acked: NewlyAcked::default(),
            retransmission_log: RetransmissionLog::default(),
            lost: Losses::default(),
            damaged: 0,
            cursor,
            above: 0,
            holes: Holes::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            copies: VecDeque::new(),
            owed: VecDeque::new(),
            early: 0,
            answered: None,
        }
    }

    /// Whether an entry that names this lane still belongs to it.
    pub(super) fn has<T>(&self, entry: &Entry<T>) -> bool {
        entry.serial >= self.begin
    }

    /// Discards all deliveries above holes.
    pub(super) fn distrust(&mut self) {
        self.above = 0;
        self.holes.clear();
    }

    /// A transmission stays in flight here, although its segment does not.
    pub(super) fn keep_copy(&mut self, copied: Copied) {
        self.bytes += u64::from(copied.len);
        let place = self.copies.partition_point(|other| other.serial < copied.serial);
        self.copies.insert(place, copied);
    }

    /// Copies that were sent at `serial` or before are no longer in flight here, except those of doubled segments, unless all are
    /// released.
    pub(super) fn release_copies(&mut self, serial: u64) {
        let is_all = serial == u64::MAX;
        let is_over = |copied: &mut Copied| is_all || copied.serial <= serial && copied.departure.is_none();
        while let Some(copied) = self.copies.pop_front_if(is_over) {
            self.bytes -= u64::from(copied.len);
            self.newly_acked.bytes_from_flight += u64::from(copied.len);
        }
    }

    /// Records that the segment that ends at `end` is delivered, as far as this path knows.
    pub(super) fn reap(&mut self, end: Offset, was_in_flight: bool, delivered: Delivered, is_certain: bool) {
        let (serial, len) = (delivered.serial, u64::from(delivered.len));
        let newly_acked = &mut self.newly_acked;
        newly_acked.segments += 1;
        newly_acked.bytes += len;
        newly_acked.bytes_from_flight += if was_in_flight { len } else { 0 };
        if newly_acked.newest.is_none_or(|newest| newest.serial < serial) {
            newly_acked.newest = Some(delivered);
        }
        if is_certain && newly_acked.newest_certain.is_none_or(|newest| newest.serial < serial) {
            newly_acked.newest_certain = Some(Departed { serial, time: delivered.departure.time });
        }
        if is_certain {
            let mut place = serial + 1;
            for latest in &mut self.latest {
                if place > *latest {
                    mem::swap(latest, &mut place);
                }
            }
        }
        // [rfc-8985] sec. 6.2 step 3.
        newly_acked.is_reordered |= end < self.highest && delivered.transmissions == 1;
        self.highest = self.highest.max(end);
    }
}

impl Holes {
    /// Nothing is delivered above the cursor.
    pub(super) fn clear(&mut self) {
        if self.highest > 0 {
            (self.count, self.highest, self.run) = (0, 0, 0..0);
            self.delivered.clear();
        }
    }

    /// A segment of the lane at or above the cursor was delivered.
    pub(super) fn on_delivered(&mut self, index: Index) {
        self.delivered.push(Reverse(index));
        self.highest = self.highest.max(index + 1);
    }

    /// The lowest delivered index above the cursor.
    pub(super) fn lowest_from(&mut self, cursor: Index) -> Option<Index> {
        while let Some(&Reverse(index)) = self.delivered.peek() {
            if index >= cursor {
                return Some(index);
            }
            self.delivered.pop();
        }
        None
    }

    /// A missing segment has moved to the lane from another one.
    pub(super) fn join(&mut self, index: Index) {
        if self.run.contains(&index) {
            self.run.end = index;
        }
    }
}

impl Losses {
    pub(super) fn push(&mut self, index: Index) {
        if self.count == 0 {
            self.heap.clear();
        }
        self.heap.push(Reverse(index));
        self.count += 1;
    }
}

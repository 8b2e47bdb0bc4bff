//! What the scoreboard knows of one path: what is in flight there, was lost there, and has arrived from there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::ops::Range;

use anabranch_cc::Departure;
use anabranch_units::Time;

use super::{DUPLICATES, Entry, Index, NONE};
use crate::recovery::retransmission_log::RetransmissionLog;
use crate::seq::Offset;

/// What is in flight on one path.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) oldest: Oldest,
    pub(super) newest: Index,
    /// Bytes in flight.
    pub(super) bytes: u64,
    /// Departures so far.
    pub(super) departures: u64,
    /// Those before the path was given up last: what arrived of them is nobody's.
    pub(super) begin: u64,
    /// The highest end of a segment that was delivered.
    pub(super) highest: Offset,
    /// The three latest departures that are sure to have arrived, each plus one; the latest first.
    pub(super) latest: [u64; DUPLICATES],
    pub(super) newly_acked: NewlyAcked,
    pub(super) retransmission_log: RetransmissionLog,
    pub(super) lost: Losses,
    /// Segments that were lost here and not delivered since, sent again or not.
    pub(super) damaged: usize,
    /// Below this index nothing of this lane is missing, but what came to it from another one.
    pub(super) cursor: Index,
    /// Segments of this lane at or above the cursor that were delivered.
    pub(super) above: usize,
    pub(super) holes: Holes,
    /// What was delivered by the word of another path, in the order of departure and of sequence space.
    pub(super) held: VecDeque<Held>,
    /// Bytes of it.
    pub(super) held_bytes: u64,
    /// What left again on another path while it was in flight here, in the order of departure: it still fills this one.
    pub(super) copies: VecDeque<Copied>,
}

/// What is missing below what was delivered, of one path among several. Everything here is at the cursor or above, or to be thrown out.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// Holes, as far as the last look found; two stand for more.
    pub(super) count: usize,
    /// At least the indices of what was delivered above the cursor, the lowest on top.
    delivered: BinaryHeap<Reverse<Index>>,
    /// One more than the highest of them.
    pub(super) highest: Index,
    /// Entries of which none is missing that is of this lane.
    pub(super) run: Range<Index>,
}

/// What has been in flight for longest. It is asked for far more often than it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oldest {
    /// [`NONE`] if nothing is in flight.
    pub(super) index: Index,
    /// Beyond any departure if nothing is in flight.
    pub(super) serial: u64,
    pub(super) departed: Time,
}

/// A segment that is in flight twice, where it left first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    pub(super) end: Offset,
    pub(super) len: u32,
    pub(super) serial: u64,
}

/// What is lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// At least the indices of all that are lost; one that is not lost any more is thrown out when it comes to the top.
    pub(super) heap: BinaryHeap<Reverse<Index>>,
    pub(super) count: usize,
}

/// A segment that is delivered, and in flight for its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) serial: u64,
    pub(super) departure: Departure,
}

/// What the acknowledgements since the last look reported for the first time, on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NewlyAcked {
    /// Segments that arrived, and their bytes.
    pub(crate) segments: u32,
    pub(crate) bytes: u64,
    /// Those of them that were in flight: the others had been given up.
    pub(crate) bytes_from_flight: u64,
    /// The one that left last.
    pub(crate) newest: Option<Delivered>,
    /// The one that left last and cannot have been confused with its own retransmission.
    pub(crate) newest_certain: Option<Departed>,
    /// Whether one that was sent once arrived after a higher one.
    pub(crate) is_reordered: bool,
    /// Whether something arrived that had been given up and not been sent again.
    pub(crate) is_late: bool,
    /// Whether something that was sent again arrived by its first transmission.
    pub(crate) is_original: bool,
    /// Whether something that was sent again arrived, and nobody knows by which transmission.
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

/// Which departure of a path something was, and when: all that RACK wants to know.
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
        }
    }

    /// Whether an entry that names this lane is still one of its own.
    pub(super) fn has<T>(&self, entry: &Entry<T>) -> bool {
        entry.serial >= self.begin
    }

    /// Nothing that was delivered is believed to have been.
    pub(super) fn distrust(&mut self) {
        self.above = 0;
        self.holes.clear();
    }

    /// What was copied and left at `serial` or before is not in flight here any more.
    pub(super) fn release_copies(&mut self, serial: u64) {
        while let Some(copied) = self.copies.pop_front_if(|copied| copied.serial <= serial) {
            self.bytes -= u64::from(copied.len);
            self.newly_acked.bytes_from_flight += u64::from(copied.len);
        }
    }

    /// A segment that ends at `end` is delivered, as far as this path knows.
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
    /// Nothing was delivered above the cursor.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.highest > 0 {
            (self.count, self.highest, self.run) = (0, 0, 0..0);
            self.delivered.clear();
        }
    }

    /// A segment of the lane was delivered, at the cursor or above.
    pub(super) fn on_delivered(&mut self, index: Index) {
        self.delivered.push(Reverse(index));
        self.highest = self.highest.max(index + 1);
    }

    /// The lowest that was delivered above the cursor.
    pub(super) fn lowest_from(&mut self, cursor: Index) -> Option<Index> {
        while let Some(&Reverse(index)) = self.delivered.peek() {
            if index >= cursor {
                return Some(index);
            }
            self.delivered.pop();
        }
        None
    }

    /// Something that is missing has come to the lane from another.
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

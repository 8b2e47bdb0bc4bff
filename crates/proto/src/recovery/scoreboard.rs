//! The scoreboard: every segment that has been sent and is not acknowledged cumulatively, and what became of it.
//!
//! A segment keeps its boundaries for life, so it is one entry and not a range of bytes that splits and merges. Entries stand
//! in the order of sequence space; an entry's index counts from the first segment of the connection and never changes.
//!
//! * What arrived above a hole is jumped over: an entry that was delivered knows a later one that may not be, and searching
//!   shortens the way. A SACK block costs what is new in it, however often it is repeated.
//! * What is in flight on a path hangs in a list in the order of departure, its *lane*. RACK looks at its old end only.
//! * What is lost waits in a heap, the lowest sequence number on top.
//!
//! So an ACK costs O(log n) for n segments in flight, and a constant per segment that it is the first to report. Nothing is
//! allocated but when one of the containers grows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_cc::Departure;
use anabranch_units::{Span, Time};

use crate::path::PathId;
use crate::recovery::control::undo;
use crate::recovery::ledger::Ledger;
use crate::recovery::rack::DUPLICATES;
use crate::seq::Offset;

/// An entry's place, counted from the first segment of the connection.
pub(crate) type Index = u64;

const NONE: Index = Index::MAX;

/// All segments that are not acknowledged cumulatively. `T` is what it takes to send one again.
#[derive(Debug)]
pub(crate) struct Scoreboard<T> {
    entries: VecDeque<Entry<T>>,
    /// Index of the first entry.
    first: Index,
    /// Everything below has been acknowledged.
    acked: Offset,
    /// Everything below has been sent; where the last entry ends.
    next: Offset,
    /// Entries that were delivered above a hole.
    delivered: usize,
    /// Groups of neighbours among them. The first entry is never one of them, so that is the number of holes.
    holes: usize,
    /// Entries that have been lost at least once and not delivered since.
    damaged: usize,
    /// At least the indices of all lost entries; one that is not lost any more is thrown out when it comes to the top.
    lost: BinaryHeap<Reverse<Index>>,
    lost_count: usize,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Entry<T> {
    content: T,
    offset: Offset,
    len: u32,
    fate: Fate,
    path: PathId,
    transmissions: u32,
    was_lost: bool,
    /// Departures on its path before its last one.
    serial: u64,
    departure: Departure,
    /// If delivered: of the entries above, a place below which all are delivered.
    skip: Index,
    /// Neighbours in the lane, if in flight.
    older: Index,
    newer: Index,
}

/// What became of the last transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
}

/// What is in flight on one path.
#[derive(Debug)]
struct Lane {
    oldest: Index,
    newest: Index,
    /// Bytes in flight.
    bytes: u64,
    /// Departures so far.
    departures: u64,
    /// The highest end of a segment that was delivered.
    highest: Offset,
    /// The three latest departures that are sure to have arrived, each plus one; the latest first.
    latest: [u64; DUPLICATES],
    harvest: Harvest,
    ledger: Ledger,
}

/// What the acknowledgements since the last look reported for the first time, on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Harvest {
    /// Bytes that arrived.
    pub(crate) bytes: u64,
    /// Those of them that were in flight: the others had been given up.
    pub(crate) bytes_from_flight: u64,
    /// The one that left last.
    pub(crate) newest: Option<Delivered>,
    /// The one that left last and cannot have been confused with its own retransmission.
    pub(crate) newest_certain: Option<Delivered>,
    /// Whether one that was sent once arrived after a higher one.
    pub(crate) is_reordered: bool,
    /// Whether something arrived that had been given up and not been sent again.
    pub(crate) is_late: bool,
    /// Whether something that was sent again arrived by its first transmission.
    pub(crate) is_original: bool,
    /// Whether something that was sent again arrived, and nobody knows by which transmission.
    pub(crate) is_ambiguous: bool,
    /// [`Doubt::echo`], if the acknowledgement number moved.
    pub(crate) echo: Option<Time>,
}

/// A segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delivered {
    pub(crate) serial: u64,
    pub(crate) transmissions: u32,
    pub(crate) departure: Departure,
}

/// What a look for losses found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// How many segments.
    pub(crate) count: usize,
    /// Bytes of them.
    pub(crate) bytes: u64,
    /// How things stood when the first of them left.
    pub(crate) departure: Option<Departure>,
    /// The highest end.
    pub(crate) end: Offset,
}

/// Whose RTT samples can be trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) now: Time,
    /// The ACK of a retransmission that comes earlier than this after it answers the original ([rfc-8985] sec. 6.2 step 2).
    pub(crate) rtt_min: Option<Span>,
    /// What moved the acknowledgement number left before this, by the peer's echo of our clock; `None` without timestamps.
    pub(crate) echo: Option<Time>,
}

impl<T> Scoreboard<T> {
    /// An empty one for so many paths, that begins with the place `next`.
    pub(crate) fn new(next: Offset, paths: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            acked: next,
            next,
            delivered: 0,
            holes: 0,
            damaged: 0,
            lost: BinaryHeap::new(),
            lost_count: 0,
            lanes: (0..paths).map(|_| Lane::new()).collect(),
        }
    }

    /// Everything below has been acknowledged.
    pub(crate) fn acked(&self) -> Offset {
        self.acked
    }

    /// Everything below has been sent.
    pub(crate) fn next(&self) -> Offset {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Segments that are not acknowledged cumulatively.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Holes below what was delivered.
    pub(crate) fn holes(&self) -> usize {
        self.holes
    }

    /// Segments that were delivered above a hole.
    pub(crate) fn delivered(&self) -> usize {
        self.delivered
    }

    /// Segments that were lost and not delivered since, sent again or not.
    pub(crate) fn damaged(&self) -> usize {
        self.damaged
    }

    /// Bytes in flight on a path: sent, and neither delivered nor lost.
    pub(crate) fn flight(&self, path: PathId) -> u64 {
        self.lanes[path.index()].bytes
    }

    /// Departures on a path so far.
    pub(crate) fn departures(&self, path: PathId) -> u64 {
        self.lanes[path.index()].departures
    }

    /// A new segment of `len` bytes of sequence space leaves. `flight` is in bytes, itself included.
    pub(crate) fn send(&mut self, content: T, len: u32, path: PathId, departure: impl FnOnce(u64) -> Departure) {
        debug_assert!(len > 0, "what takes no sequence space is not acknowledged");
        let index = self.first + self.entries.len() as u64;
        let lane = &mut self.lanes[path.index()];
        self.entries.push_back(Entry {
            content,
            offset: self.next,
            len,
            fate: Fate::InFlight,
            path,
            transmissions: 1,
            was_lost: false,
            serial: lane.departures,
            departure: departure(lane.bytes + u64::from(len)),
            skip: NONE,
            older: NONE,
            newer: NONE,
        });
        self.next += u64::from(len);
        self.link(index, path);
    }

    /// A segment leaves again, in flight or lost. Returns how many bytes that adds to what is in flight.
    pub(crate) fn resend(&mut self, index: Index, path: PathId, departure: impl FnOnce(u64) -> Departure) -> u64 {
        let added = match self.entry(index).fate {
            Fate::InFlight => {
                self.unlink(index);
                0
            }
            Fate::Lost => {
                self.lost_count -= 1;
                u64::from(self.entry(index).len)
            }
            Fate::Delivered => unreachable!("what was delivered is not sent again"),
        };
        let Lane { departures, bytes, .. } = self.lanes[path.index()];
        let (lost_on, is_repair) = (self.entry(index).path, added > 0);
        let entry = self.entry_mut(index);
        entry.fate = Fate::InFlight;
        entry.path = path;
        entry.transmissions += 1;
        entry.serial = departures;
        entry.departure = departure(bytes + u64::from(entry.len));
        let (end, time) = (entry.offset + u64::from(entry.len), entry.departure.time);
        if is_repair {
            self.lanes[lost_on.index()].ledger.on_resent(end, time);
        }
        self.link(index, path);
        added
    }

    /// The lowest segment that is lost.
    pub(crate) fn lowest_lost(&mut self) -> Option<Index> {
        if self.lost_count == 0 {
            self.lost.clear();
            return None;
        }
        while let Some(&Reverse(index)) = self.lost.peek() {
            if index >= self.first && self.entry(index).fate == Fate::Lost {
                return Some(index);
            }
            self.lost.pop();
        }
        unreachable!("{} segments are lost and none waits", self.lost_count);
    }

    /// The last segment, if it has not been delivered: what a tail loss probe sends again.
    pub(crate) fn last(&self) -> Option<Index> {
        let entry = self.entries.back()?;
        (entry.fate != Fate::Delivered).then_some(self.first + self.entries.len() as u64 - 1)
    }

    /// The place and length of a segment, and what it takes to send it.
    pub(crate) fn segment(&self, index: Index) -> (Offset, u32, &T) {
        let entry = self.entry(index);
        (entry.offset, entry.len, &entry.content)
    }

    /// Everything below `upto` has arrived. Each segment that is done is handed over.
    pub(crate) fn acknowledge(&mut self, upto: Offset, doubt: Doubt, mut done: impl FnMut(T)) {
        debug_assert!(upto <= self.next, "what was not sent cannot have arrived");
        if upto <= self.acked {
            return;
        }
        let edge = std::mem::replace(&mut self.acked, upto);
        while let Some(entry) = self.entries.front() {
            if entry.offset + u64::from(entry.len) > upto {
                break;
            }
            let (is_delivered, is_edge) = (entry.fate == Fate::Delivered, entry.offset == edge);
            if !is_delivered {
                // The echo tells of the segment at the edge only.
                let echo = doubt.echo.filter(|_| is_edge);
                self.harvest(self.first, Doubt { echo, ..doubt });
            }
            let entry = self.entries.pop_front().expect("it was just looked at");
            self.first += 1;
            if is_delivered {
                self.delivered -= 1;
                let is_last = self.entries.front().is_none_or(|next| next.fate != Fate::Delivered);
                self.holes -= usize::from(is_last);
            }
            done(entry.content);
        }
    }

    /// What lies in `left..right` has arrived. Parts of segments do not count.
    pub(crate) fn acknowledge_selectively(&mut self, left: Offset, right: Offset, doubt: Doubt) {
        let start = self.entries.partition_point(|entry| entry.offset < left);
        let end = self.first + self.entries.len() as u64;
        let mut index = self.undelivered_from(self.first + start as u64);
        while index < end {
            let entry = self.entry(index);
            if entry.offset + u64::from(entry.len) > right {
                break;
            }
            // The first entry was below `left` or is delivered now: then there is no hole before it, until the cumulative
            // acknowledgement that a sane receiver sends with this block takes it away.
            self.harvest(index, Doubt { echo: None, ..doubt });
            let is_delivered =
                |index: Index| index >= self.first && index < end && self.entry(index).fate == Fate::Delivered;
            let neighbours = usize::from(is_delivered(index.wrapping_sub(1))) + usize::from(is_delivered(index + 1));
            self.holes = self.holes + 1 - neighbours;
            self.delivered += 1;
            let entry = self.entry_mut(index);
            entry.fate = Fate::Delivered;
            entry.skip = index + 1;
            index = self.undelivered_from(index + 1);
        }
    }

    /// What was reported on a path since the last call.
    pub(crate) fn take_harvest(&mut self, path: PathId) -> Harvest {
        std::mem::take(&mut self.lanes[path.index()].harvest)
    }

    /// Counts as lost, from the oldest departure on, what left before `serial` and at `time` or earlier. Returns what it found
    /// and when the first of those left that it spared for their time alone.
    pub(crate) fn lose_until(&mut self, path: PathId, serial: u64, time: Time) -> (Found, Option<Time>) {
        let mut found = Found::default();
        loop {
            let index = self.lanes[path.index()].oldest;
            if index == NONE || self.entry(index).serial >= serial {
                return (found, None);
            }
            let departure = self.entry(index).departure;
            if departure.time > time {
                return (found, Some(departure.time));
            }
            self.lose(index, &mut found);
        }
    }

    /// Counts the oldest departure as lost, if anything is in flight on the path.
    pub(crate) fn lose_oldest(&mut self, path: PathId, found: &mut Found) {
        let index = self.lanes[path.index()].oldest;
        if index != NONE {
            self.lose(index, found);
        }
    }

    /// Counts the first segment as lost, if it is in flight on this path.
    pub(crate) fn lose_first(&mut self, path: PathId, found: &mut Found) {
        let is_flying = |entry: &Entry<T>| entry.fate == Fate::InFlight && entry.path == path;
        if self.entries.front().is_some_and(is_flying) {
            self.lose(self.first, found);
        }
    }

    /// The departure on a path before which all have been overtaken by three that arrived.
    pub(crate) fn overtaken(&self, path: PathId) -> u64 {
        self.lanes[path.index()].latest[DUPLICATES - 1].saturating_sub(1)
    }

    /// Forgets what was delivered above holes, if the receiver does not seem to have it any more: it asks for a segment that it
    /// had reported ([rfc-2018] sec. 8). Only peers without streams may take back what they said.
    pub(crate) fn distrust(&mut self) {
        if self.entries.front().is_none_or(|entry| entry.fate != Fate::Delivered) {
            return;
        }
        for position in 0..self.entries.len() {
            let index = self.first + position as u64;
            let entry = &mut self.entries[position];
            if entry.fate == Fate::Delivered {
                entry.fate = Fate::Lost;
                if !std::mem::replace(&mut entry.was_lost, true) {
                    self.damaged += 1;
                }
                self.lost.push(Reverse(index));
                self.lost_count += 1;
            }
        }
        (self.delivered, self.holes) = (0, 0);
    }

    /// A loss on a path is to be repaired: what is sent again from now on is entered.
    pub(crate) fn open_ledger(&mut self, path: PathId) {
        self.lanes[path.index()].ledger.open();
    }

    /// What was sent again for losses on a path.
    pub(crate) fn ledger(&self, path: PathId) -> &Ledger {
        &self.lanes[path.index()].ledger
    }

    /// The peer got `left..right` once more.
    pub(crate) fn on_duplicate(&mut self, left: Offset, right: Offset) {
        self.lanes.iter_mut().for_each(|lane| lane.ledger.on_duplicate(left, right));
    }

    /// What counts as lost on a path is in flight after all. Returns how many bytes that adds. Takes time for all that is in
    /// flight: a loss that was none is rare.
    pub(crate) fn restore(&mut self, path: PathId) -> u64 {
        let mut indices = vec![];
        let mut added = 0;
        for position in 0..self.entries.len() {
            let entry = &mut self.entries[position];
            if entry.path != path || entry.fate == Fate::Delivered {
                continue;
            }
            if entry.fate == Fate::Lost {
                entry.fate = Fate::InFlight;
                entry.was_lost = false;
                added += u64::from(entry.len);
                (self.lost_count, self.damaged) = (self.lost_count - 1, self.damaged - 1);
            }
            indices.push((entry.serial, self.first + position as u64));
        }
        indices.sort_unstable();
        let lane = &mut self.lanes[path.index()];
        (lane.oldest, lane.newest, lane.latest) = (NONE, NONE, [0; DUPLICATES]);
        lane.bytes += added;
        for (_, index) in indices {
            self.append(index, path);
        }
        added
    }

    /// Checks each count against the entries. For tests: it looks at all of them.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let count = |fate: Fate| self.entries.iter().filter(|entry| entry.fate == fate).count();
        assert_eq!(self.delivered, count(Fate::Delivered));
        assert_eq!(self.lost_count, count(Fate::Lost));
        let fates: Vec<Fate> = self.entries.iter().map(|entry| entry.fate).collect();
        let starts = (0..fates.len())
            .filter(|&i| fates[i] == Fate::Delivered && (i == 0 || fates[i - 1] != Fate::Delivered))
            .count();
        assert_eq!(self.holes, starts);
        let damaged = self.entries.iter().filter(|entry| entry.was_lost && entry.fate != Fate::Delivered).count();
        assert_eq!(self.damaged, damaged);
        for (path, lane) in self.lanes.iter().enumerate() {
            let flying = self.entries.iter().filter(|entry| entry.fate == Fate::InFlight && entry.path.index() == path);
            assert_eq!(lane.bytes, flying.clone().map(|entry| u64::from(entry.len)).sum::<u64>());
            let (mut index, mut serials) = (lane.oldest, vec![]);
            while index != NONE {
                serials.push(self.entry(index).serial);
                index = self.entry(index).newer;
            }
            assert_eq!(serials.len(), flying.count());
            assert!(serials.is_sorted(), "a lane is in the order of departure");
        }
    }

    /// A segment arrived that was not known to have.
    fn harvest(&mut self, index: Index, doubt: Doubt) {
        let was_in_flight = self.entry(index).fate == Fate::InFlight;
        match self.entry(index).fate {
            Fate::InFlight => self.unlink(index),
            Fate::Lost => self.lost_count -= 1,
            Fate::Delivered => unreachable!("a segment arrives once"),
        }
        let entry = &mut self.entries[(index - self.first) as usize];
        self.damaged -= usize::from(std::mem::take(&mut entry.was_lost));
        let (end, len) = (entry.offset + u64::from(entry.len), u64::from(entry.len));
        let Entry { serial, transmissions, departure, .. } = *entry;
        let is_again = transmissions > 1;
        // Of two transmissions the first, if the answer comes too early for the second or is none to it.
        let is_early = transmissions == 2
            && doubt.rtt_min.is_some_and(|least| doubt.now.since(departure.time) < undo::too_early(least));
        let has_echo = |lane: &Lane| doubt.echo.is_some_and(|echo| lane.ledger.is_later_than(echo));
        let is_original = is_again && (is_early || self.lanes.iter().any(has_echo));
        if is_original {
            self.lanes.iter_mut().for_each(|lane| lane.ledger.on_original(end));
        }
        let lane = &mut self.lanes[entry.path.index()];
        let delivered = Some(Delivered { serial, transmissions, departure });
        let harvest = &mut lane.harvest;
        harvest.bytes += len;
        harvest.bytes_from_flight += if was_in_flight { len } else { 0 };
        if harvest.newest.is_none_or(|newest| newest.serial < serial) {
            harvest.newest = delivered;
        }
        // [rfc-8985] sec. 6.2 step 2.
        let is_certain =
            !is_again || !is_original && doubt.rtt_min.is_some_and(|least| doubt.now.since(departure.time) >= least);
        if is_certain && harvest.newest_certain.is_none_or(|newest| newest.serial < serial) {
            harvest.newest_certain = delivered;
        }
        if is_certain {
            let mut place = serial + 1;
            for latest in &mut lane.latest {
                if place > *latest {
                    std::mem::swap(latest, &mut place);
                }
            }
        }
        // [rfc-8985] sec. 6.2 step 3.
        harvest.is_reordered |= end < lane.highest && transmissions == 1;
        lane.highest = lane.highest.max(end);
        harvest.echo = harvest.echo.or(doubt.echo);
        harvest.is_late |= !was_in_flight && !is_again;
        harvest.is_original |= is_original;
        harvest.is_ambiguous |= is_again && !is_original;
    }

    fn lose(&mut self, index: Index, found: &mut Found) {
        self.unlink(index);
        let entry = self.entry_mut(index);
        entry.fate = Fate::Lost;
        let is_first_time = !std::mem::replace(&mut entry.was_lost, true);
        let (departure, end, len) = (entry.departure, entry.offset + u64::from(entry.len), u64::from(entry.len));
        self.damaged += usize::from(is_first_time);
        self.lost.push(Reverse(index));
        self.lost_count += 1;
        found.count += 1;
        found.bytes += len;
        found.departure = found.departure.or(Some(departure));
        found.end = found.end.max(end);
    }

    /// The lowest entry at or above `index` that is not delivered; the end if there is none.
    fn undelivered_from(&mut self, mut index: Index) -> Index {
        let end = self.first + self.entries.len() as u64;
        while index < end && self.entry(index).fate == Fate::Delivered {
            let next = self.entry(index).skip;
            // Halves the way for whoever comes next.
            if next < end && self.entry(next).fate == Fate::Delivered {
                self.entry_mut(index).skip = self.entry(next).skip;
            }
            index = next;
        }
        index
    }

    /// Puts an entry at the new end of a lane.
    fn link(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        lane.departures += 1;
        lane.bytes += u64::from(self.entries[(index - self.first) as usize].len);
        self.append(index, path);
    }

    fn append(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        let newest = std::mem::replace(&mut lane.newest, index);
        if newest == NONE {
            lane.oldest = index;
        }
        let entry = self.entry_mut(index);
        (entry.older, entry.newer) = (newest, NONE);
        if newest != NONE {
            self.entry_mut(newest).newer = index;
        }
    }

    fn unlink(&mut self, index: Index) {
        let Entry { older, newer, path, len, .. } = *self.entry(index);
        if older != NONE {
            self.entry_mut(older).newer = newer;
        }
        if newer != NONE {
            self.entry_mut(newer).older = older;
        }
        let lane = &mut self.lanes[path.index()];
        if older == NONE {
            lane.oldest = newer;
        }
        if newer == NONE {
            lane.newest = older;
        }
        lane.bytes -= u64::from(len);
    }

    fn entry(&self, index: Index) -> &Entry<T> {
        &self.entries[(index - self.first) as usize]
    }

    fn entry_mut(&mut self, index: Index) -> &mut Entry<T> {
        &mut self.entries[(index - self.first) as usize]
    }
}

impl Lane {
    fn new() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
            bytes: 0,
            departures: 0,
            highest: 0,
            latest: [0; DUPLICATES],
            harvest: Harvest::default(),
            ledger: Ledger::default(),
        }
    }
}

#[cfg(test)]
mod tests;

//! The scoreboard: every segment that has been sent and is not acknowledged cumulatively, and what became of it.
//!
//! A segment keeps its boundaries for life, so it is one entry and not a range of bytes that splits and merges. Entries stand
//! in the order of sequence space; an entry's index counts from the first segment of the connection and never changes.
//!
//! * What arrived above a hole is jumped over: an entry that was delivered knows a later one that may not be, and searching
//!   shortens the way. A SACK block costs what is new in it, however often it is repeated.
//! * What is in flight on a path hangs in a list in the order of departure, its *lane*. RACK looks at its old end only.
//! * What is lost waits in a heap, the lowest sequence number on top: one for each path, and one for what has no path any more.
//!
//! # Several paths
//!
//! Sequence space is shared, so what is known of it as a whole (holes, what is acknowledged cumulatively) says nothing of a
//! single path: another one is always ahead or behind. A lane therefore has a view of its own, which with one path is the whole:
//! its lowest segment that has not arrived ([`Scoreboard::settled`]), and what of it has arrived above.
//!
//! An ACK answers what came on its own path ([multihoming-2010] sec. III: "all the SACKs return over the same path"), but tells of
//! all of them. What it tells of another path is *held* there: it has arrived, but remains in flight for its lane until an ACK of its
//! own path answers it, which gives the RTT and lets the next segment go. So an estimator and a controller see their path as if
//! there were no other.
//!
//! So an ACK costs O(log n) for n segments in flight, and a constant per segment that it is the first to report. Nothing is
//! allocated but when one of the containers grows.

mod lane;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::mem;

use anabranch_cc::Departure;
use anabranch_units::{Span, Time};

use self::lane::{Copied, Held, Lane, Losses};
pub(crate) use self::lane::{Delivered, Harvest};
use crate::path::PathId;
use crate::recovery::ledger::Ledger;
use crate::recovery::rack::DUPLICATES;
use crate::seq::Offset;

/// An entry's place, counted from the first segment of the connection.
pub(crate) type Index = u64;

const NONE: Index = Index::MAX;

/// As many as three, as an ACK has them, and one more.
const BLOCKS: usize = 4;

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
    /// What is lost and has no path any more.
    orphans: Losses,
    lanes: Vec<Lane>,
    /// The blocks that were entered last.
    blocks: [Block; BLOCKS],
}

/// A block of SACK. The next ACK has most of them again, one of them longer.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    left: Offset,
    right: Offset,
    /// Everything in the block below this index was delivered.
    upto: Index,
}

#[derive(Debug)]
struct Entry<T> {
    content: T,
    offset: Offset,
    len: u32,
    fate: Fate,
    /// Where it left last; [`PathId::NOWHERE`] if that path is gone or given up.
    path: PathId,
    transmissions: u32,
    /// Where it was lost last, if it ever was.
    lost_on: Option<PathId>,
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
    /// The path on which the ACK came. What it says of others is no word of theirs.
    pub(crate) via: PathId,
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
            orphans: Losses::default(),
            lanes: (0..paths).map(|_| Lane::new(0)).collect(),
            blocks: Default::default(),
        }
    }

    /// There is a path of this name. If there was one before, nothing of it is left but the number of departures.
    pub(crate) fn open_lane(&mut self, path: PathId) {
        let end = self.first + self.entries.len() as u64;
        while self.lanes.len() <= path.index() {
            self.lanes.push(Lane::new(end));
        }
        let lane = &mut self.lanes[path.index()];
        debug_assert!(lane.bytes == 0 && lane.lost.count == 0, "a path is given up before its name is used again");
        let (departures, damaged) = (lane.departures, lane.damaged);
        *lane = Lane { departures, damaged, ..Lane::new(end) };
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

    /// Holes below what was delivered on a path. Of several paths no more than two are counted: more says nothing more.
    pub(crate) fn holes(&self, path: PathId) -> usize {
        if self.lanes.len() == 1 {
            return self.holes;
        }
        let start = self.lanes[path.index()].cursor.max(self.first) - self.first;
        let (mut holes, mut is_in_hole) = (0, false);
        for entry in self.entries.range(start as usize..).filter(|entry| entry.path == path) {
            if entry.fate == Fate::Delivered && mem::take(&mut is_in_hole) {
                holes += 1;
                if holes == 2 {
                    break;
                }
            }
            is_in_hole |= entry.fate != Fate::Delivered;
        }
        holes
    }

    /// The lowest place of a segment that left on a path and has not arrived; what is next to be sent if there is none. With one path,
    /// that is what has been acknowledged. What came to the path after it had been on another one may be left out.
    #[inline]
    pub(crate) fn settled(&mut self, path: PathId) -> Offset {
        let end = self.first + self.entries.len() as u64;
        let lane = &mut self.lanes[path.index()];
        // Each lane passes each entry once, so this is a constant per segment.
        lane.cursor = lane.cursor.max(self.first);
        while lane.cursor < end {
            let entry = &self.entries[(lane.cursor - self.first) as usize];
            if entry.path == path {
                if entry.fate != Fate::Delivered {
                    return entry.offset.max(self.acked);
                }
                lane.above -= 1;
            }
            lane.cursor += 1;
        }
        self.next
    }

    /// Segments that were delivered above the lowest one of their path that was not, as [`Scoreboard::settled`] found it.
    pub(crate) fn delivered(&self, path: PathId) -> usize {
        self.lanes[path.index()].above
    }

    /// The highest end of a segment that was delivered on a path.
    pub(crate) fn highest(&self, path: PathId) -> Offset {
        self.lanes[path.index()].highest
    }

    /// Segments that were lost on a path and not delivered since, sent again or not.
    pub(crate) fn damaged(&self, path: PathId) -> usize {
        self.lanes[path.index()].damaged
    }

    /// Bytes in flight on a path: sent, and neither delivered nor lost.
    pub(crate) fn flight(&self, path: PathId) -> u64 {
        self.lanes[path.index()].bytes
    }

    /// The same without what has arrived by the word of another path.
    pub(crate) fn flying(&self, path: PathId) -> u64 {
        let lane = &self.lanes[path.index()];
        lane.bytes - lane.held_bytes
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
            lost_on: None,
            serial: lane.departures,
            departure: departure(lane.bytes + u64::from(len)),
            skip: NONE,
            older: NONE,
            newer: NONE,
        });
        self.next += u64::from(len);
        self.link(index, path);
    }

    /// A segment leaves again, lost or in flight; on another path only what has been in flight for longest on its own, where it
    /// remains. Returns how many bytes that adds to what is in flight on its path.
    pub(crate) fn resend(&mut self, index: Index, path: PathId, departure: impl FnOnce(u64) -> Departure) -> u64 {
        let Entry { fate, path: before, offset, len, serial, .. } = *self.entry(index);
        let added = match fate {
            Fate::InFlight if before == path => {
                self.unlink(index);
                0
            }
            Fate::InFlight => {
                self.unlink(index);
                let lane = &mut self.lanes[before.index()];
                let is_later = lane.copies.back().is_none_or(|last| last.serial < serial);
                debug_assert!(is_later, "what has been in flight for longest is copied first");
                lane.bytes += u64::from(len);
                lane.copies.push_back(Copied { end: offset + u64::from(len), len, serial });
                len.into()
            }
            Fate::Lost => {
                self.losses(before).count -= 1;
                len.into()
            }
            Fate::Delivered => unreachable!("what was delivered is not sent again"),
        };
        let Lane { departures, bytes, .. } = self.lanes[path.index()];
        let is_repair = fate == Fate::Lost;
        let entry = self.entry_mut(index);
        entry.fate = Fate::InFlight;
        entry.path = path;
        entry.transmissions += 1;
        entry.serial = departures;
        entry.departure = departure(bytes + u64::from(entry.len));
        let (end, time) = (entry.offset + u64::from(entry.len), entry.departure.time);
        if let Some(lane) = self.lanes.get_mut(before.index()).filter(|_| is_repair) {
            lane.ledger.on_resent(end, time);
        }
        self.link(index, path);
        added
    }

    /// The lowest segment that was lost on a path; of [`PathId::NOWHERE`], the lowest one that has no path any more.
    pub(crate) fn lowest_lost(&mut self, path: PathId) -> Option<Index> {
        if self.losses(path).count == 0 {
            return None;
        }
        while let Some(&Reverse(index)) = self.losses(path).heap.peek() {
            if index >= self.first && self.entry(index).fate == Fate::Lost && self.entry(index).path == path {
                return Some(index);
            }
            self.losses(path).heap.pop();
        }
        unreachable!("{} segments are lost and none waits", self.losses(path).count);
    }

    /// Whether anything is lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.has_orphans() || self.lanes.iter().any(|lane| lane.lost.count > 0)
    }

    /// Whether anything is lost and has no path any more.
    pub(crate) fn has_orphans(&self) -> bool {
        self.orphans.count > 0
    }

    /// The last segment of a path, if it has not been delivered: what a tail loss probe sends again.
    pub(crate) fn last(&self, path: PathId) -> Option<Index> {
        let entry = self.entries.back()?;
        if entry.path == path && entry.fate != Fate::Delivered {
            return Some(self.first + self.entries.len() as u64 - 1);
        }
        let newest = self.lanes[path.index()].newest;
        (self.lanes.len() > 1 && newest != NONE).then_some(newest)
    }

    /// What has been in flight on a path for longest, how often it has been sent, and when it left.
    pub(crate) fn oldest(&self, path: PathId) -> Option<(Index, u32, Time)> {
        let index = self.lanes[path.index()].oldest;
        (index != NONE).then(|| {
            let entry = self.entry(index);
            (index, entry.transmissions, entry.departure.time)
        })
    }

    /// Whether anything is in flight on a path that left before `serial`.
    pub(crate) fn has_older(&self, path: PathId, serial: u64) -> bool {
        let index = self.lanes[path.index()].oldest;
        index != NONE && self.entry(index).serial < serial
    }

    /// On which path the lowest segment left last that is not acknowledged.
    pub(crate) fn front(&self) -> Option<PathId> {
        self.entries.front().map(|entry| entry.path)
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
        let edge = mem::replace(&mut self.acked, upto);
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
                if let Some(lane) = self.lanes.get_mut(entry.path.index())
                    && lane.cursor < self.first
                {
                    lane.above -= 1;
                }
                let is_last = self.entries.front().is_none_or(|next| next.fate != Fate::Delivered);
                self.holes -= usize::from(is_last);
            }
            done(entry.content);
        }
    }

    /// What lies in `left..right` has arrived. Parts of segments do not count.
    pub(crate) fn acknowledge_selectively(&mut self, left: Offset, right: Offset, doubt: Doubt) {
        let known = self.blocks.iter().position(|block| block.left == left);
        let start = match known.map(|known| self.blocks[known]) {
            Some(block) if block.right >= right => return,
            Some(block) => block.upto.max(self.first),
            None => self.first + self.position(left) as u64,
        };
        let end = self.first + self.entries.len() as u64;
        let mut index = self.undelivered_from(start);
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
            let path = entry.path;
            if let Some(lane) = self.lanes.get_mut(path.index())
                && lane.cursor <= index
            {
                lane.above += 1;
            }
            index = self.undelivered_from(index + 1);
        }
        let known = known.unwrap_or_else(|| {
            self.blocks.rotate_right(1);
            0
        });
        self.blocks[known] = Block { left, right, upto: index };
    }

    /// An ACK came on this path, for everything below `ack` and for `blocks`: what of that was held is held no longer, nor what left
    /// before. Of all that it names, the latest departure is what it answers.
    pub(crate) fn confirm(&mut self, path: PathId, ack: Offset, blocks: impl IntoIterator<Item = (Offset, Offset)>) {
        let lane = &self.lanes[path.index()];
        if lane.held.is_empty() {
            return;
        }
        let (start, end) =
            lane.held.front().zip(lane.held.back()).map_or((0, 0), |(first, last)| (first.end, last.start));
        let latest = |left: Offset, right: Offset| {
            if right < start || left > end {
                return None;
            }
            let upto = lane.held.partition_point(|held| held.end <= right);
            let held = lane.held.get(upto.checked_sub(1)?)?;
            (held.start >= left).then_some(held.serial)
        };
        let named = blocks.into_iter().filter_map(|(left, right)| latest(left, right)).max();
        let newest = lane.harvest.newest.map(|newest| newest.serial);
        if let Some(serial) = latest(0, ack).max(named).max(newest) {
            self.release_held(path, serial);
        }
    }

    /// What is held on a path and left at `serial` or before is held no longer.
    pub(crate) fn release_held(&mut self, path: PathId, serial: u64) {
        let lane = &mut self.lanes[path.index()];
        while let Some(held) = lane.held.pop_front_if(|held| held.serial <= serial) {
            let Held { start, end, serial, departure } = held;
            lane.bytes -= end - start;
            lane.held_bytes -= end - start;
            lane.reap(end, end - start, true, Delivered { serial, transmissions: 1, departure }, true);
        }
    }

    /// A segment that ends at `end` has come a second time, by this path: if it is a copy, what left before has come or is lost.
    pub(crate) fn confirm_copy(&mut self, path: PathId, end: Offset) {
        let lane = &mut self.lanes[path.index()];
        if let Some(copied) = lane.copies.front().copied().filter(|copied| copied.end == end) {
            lane.release_copies(copied.serial);
        }
    }

    /// Nothing is in flight any more that was copied to another path.
    pub(crate) fn release_copies(&mut self, path: PathId) {
        self.lanes[path.index()].release_copies(u64::MAX);
    }

    /// Whether anything was reported on a path that has not been taken.
    pub(crate) fn has_harvest(&self, path: PathId) -> bool {
        self.lanes[path.index()].harvest.bytes_from_flight > 0 || self.lanes[path.index()].harvest.bytes > 0
    }

    /// What was reported on a path since the last call.
    pub(crate) fn take_harvest(&mut self, path: PathId) -> Harvest {
        let lane = &mut self.lanes[path.index()];
        if let Some(newest) = lane.harvest.newest {
            lane.release_copies(newest.serial);
        }
        mem::take(&mut lane.harvest)
    }

    /// The path is given up: what was in flight on it is lost, and what was lost on it may leave on any other.
    pub(crate) fn orphan(&mut self, path: PathId) -> Found {
        let mut found = Found::default();
        while self.lanes[path.index()].oldest != NONE {
            self.lose_oldest(path, &mut found);
        }
        let Losses { heap, .. } = mem::take(&mut self.lanes[path.index()].lost);
        for Reverse(index) in heap {
            // A segment may wait there twice, or not be lost any more.
            if index >= self.first && self.entry(index).fate == Fate::Lost && self.entry(index).path == path {
                self.entry_mut(index).path = PathId::NOWHERE;
                self.orphans.push(index);
            }
        }
        found
    }

    /// Counts as lost, from the oldest departure on, what left before `serial` and at `time` or earlier. Returns what it found
    /// and when the first of those left that it spared for their time alone.
    #[inline]
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
                let path = entry.path;
                self.damage(index);
                self.losses(path).push(index);
            }
        }
        (self.delivered, self.holes) = (0, 0);
        self.blocks = Default::default();
        for lane in &mut self.lanes {
            (lane.cursor, lane.above) = (self.first, 0);
        }
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
                added += u64::from(entry.len);
                self.lanes[path.index()].lost.count -= 1;
                if let Some(place) = entry.lost_on.take() {
                    self.lanes[place.index()].damaged -= 1;
                }
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
        let count = |is: &dyn Fn(&Entry<T>) -> bool| self.entries.iter().filter(|entry| is(entry)).count();
        assert_eq!(self.delivered, count(&|entry| entry.fate == Fate::Delivered));
        let is_orphan = |entry: &Entry<T>| entry.fate == Fate::Lost && entry.path == PathId::NOWHERE;
        assert_eq!(self.orphans.count, count(&is_orphan));
        let fates: Vec<Fate> = self.entries.iter().map(|entry| entry.fate).collect();
        let starts = (0..fates.len())
            .filter(|&i| fates[i] == Fate::Delivered && (i == 0 || fates[i - 1] != Fate::Delivered))
            .count();
        assert_eq!(self.holes, starts);
        for (number, lane) in self.lanes.iter().enumerate() {
            let is_here = |entry: &Entry<T>| entry.path.index() == number;
            assert_eq!(lane.lost.count, count(&|entry| entry.fate == Fate::Lost && is_here(entry)));
            let is_damage = |entry: &Entry<T>| entry.fate != Fate::Delivered;
            let is_damaged = |path: PathId| path.index() == number;
            assert_eq!(lane.damaged, count(&|entry| is_damage(entry) && entry.lost_on.is_some_and(is_damaged)));
            let above = (self.first..)
                .zip(&self.entries)
                .filter(|(index, entry)| *index >= lane.cursor && entry.fate == Fate::Delivered && is_here(entry));
            assert_eq!(lane.above, above.count());
            let flying = self.entries.iter().filter(|entry| entry.fate == Fate::InFlight && is_here(entry));
            let held: u64 = lane.held.iter().map(|held| held.end - held.start).sum();
            let copied: u64 = lane.copies.iter().map(|copied| u64::from(copied.len)).sum();
            assert_eq!(lane.held_bytes, held);
            assert_eq!(lane.bytes, held + copied + flying.clone().map(|entry| u64::from(entry.len)).sum::<u64>());
            let (mut index, mut serials) = (lane.oldest, vec![]);
            while index != NONE {
                serials.push(self.entry(index).serial);
                index = self.entry(index).newer;
            }
            assert_eq!(serials.len(), flying.count());
            assert!(serials.is_sorted(), "a lane is in the order of departure");
            assert!(lane.held.iter().is_sorted_by_key(|held| (held.serial, held.end)), "so is what is held");
        }
    }

    /// A segment arrived that was not known to have.
    #[inline]
    fn harvest(&mut self, index: Index, doubt: Doubt) {
        let position = (index - self.first) as usize;
        let Entry { fate, path, offset, len, serial, transmissions, departure, .. } = self.entries[position];
        let was_in_flight = fate == Fate::InFlight;
        match fate {
            Fate::InFlight => self.unlink(index),
            Fate::Lost => self.losses(path).count -= 1,
            Fate::Delivered => unreachable!("a segment arrives once"),
        }
        if let Some(place) = self.entries[position].lost_on.take() {
            self.lanes[place.index()].damaged -= 1;
        }
        let end = offset + u64::from(len);
        let Some(lane) = self.lanes.get_mut(path.index()) else { return };
        if path != doubt.via && was_in_flight && transmissions == 1 {
            let is_later = lane.held.back().is_none_or(|last| last.serial < serial && last.end < end);
            if is_later {
                lane.bytes += u64::from(len);
                lane.held_bytes += u64::from(len);
                lane.held.push_back(Held { start: offset, end, serial, departure });
                return;
            }
        }
        // Of two transmissions the first, if the clock that is echoed is older than the second. An early answer says nothing: the
        // queue that made up the least RTT may be gone. Another path's answer says nothing of when.
        let (is_again, is_here) = (transmissions > 1, path == doubt.via);
        let waited = doubt.now.since(departure.time);
        let has_echo = |lane: &Lane| doubt.echo.is_some_and(|echo| lane.ledger.is_later_than(echo));
        let is_original = is_again && self.lanes.iter().any(has_echo);
        if is_original {
            self.lanes.iter_mut().for_each(|lane| lane.ledger.on_original(end));
        }
        // [rfc-8985] sec. 6.2 step 2.
        let is_certain = !is_again || is_here && !is_original && doubt.rtt_min.is_some_and(|least| waited >= least);
        let lane = &mut self.lanes[path.index()];
        lane.reap(end, len.into(), was_in_flight, Delivered { serial, transmissions, departure }, is_certain);
        let harvest = &mut lane.harvest;
        harvest.echo = harvest.echo.or(doubt.echo);
        harvest.is_late |= !was_in_flight && !is_again;
        harvest.is_original |= is_original;
        harvest.is_ambiguous |= is_again && !is_original;
    }

    fn lose(&mut self, index: Index, found: &mut Found) {
        self.unlink(index);
        let entry = self.entry_mut(index);
        entry.fate = Fate::Lost;
        let (departure, end, len) = (entry.departure, entry.offset + u64::from(entry.len), u64::from(entry.len));
        let path = entry.path;
        self.damage(index);
        self.losses(path).push(index);
        found.count += 1;
        found.bytes += len;
        found.departure = found.departure.or(Some(departure));
        found.end = found.end.max(end);
    }

    /// A segment counts as damaged where it was lost last.
    fn damage(&mut self, index: Index) {
        let path = self.entry(index).path;
        let before = self.entry_mut(index).lost_on.replace(path);
        if let Some(before) = before {
            self.lanes[before.index()].damaged -= 1;
        }
        self.lanes[path.index()].damaged += 1;
    }

    fn losses(&mut self, path: PathId) -> &mut Losses {
        if path == PathId::NOWHERE { &mut self.orphans } else { &mut self.lanes[path.index()].lost }
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

    /// The position of the first entry that begins at `place` or above it. Most segments are full, and so it is about where it would be if
    /// all were equally long; the search goes out from there, in strides that double.
    fn position(&self, place: Offset) -> usize {
        let len = self.entries.len();
        let Some(start) = self.entries.front().map(|first| first.offset).filter(|_| place < self.next) else {
            return len;
        };
        // Below 2^62: there are at most 2^23 segments of 2^16 bytes.
        let guess = place.saturating_sub(start) * len as u64 / (self.next - start);
        let is_below = |position: usize| self.entries.get(position).is_some_and(|entry| entry.offset < place);
        let (mut low, mut high, mut stride) = (guess as usize, guess as usize, 1);
        while is_below(high) {
            (low, high, stride) = (high + 1, high + stride, 2 * stride);
        }
        while low > 0 && !is_below(low - 1) {
            (high, low, stride) = (low - 1, low.saturating_sub(stride), 2 * stride);
        }
        while low < high {
            let middle = low.midpoint(high);
            if is_below(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Puts an entry at the new end of a lane.
    fn link(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        lane.departures += 1;
        lane.bytes += u64::from(self.entries[(index - self.first) as usize].len);
        self.append(index, path);
    }

    #[inline]
    fn append(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        let newest = mem::replace(&mut lane.newest, index);
        if newest == NONE {
            lane.oldest = index;
        }
        let entry = self.entry_mut(index);
        (entry.older, entry.newer) = (newest, NONE);
        if newest != NONE {
            self.entry_mut(newest).newer = index;
        }
    }

    #[inline]
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

#[cfg(test)]
mod tests;

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
//! its lowest segment that has not arrived ([`Scoreboard::path_una`]), and what of it has arrived above.
//!
//! An ACK answers what came on its own path ([multihoming-2010] sec. III: "all the SACKs return over the same path"), but tells of
//! all of them. What it tells of another path is *held* there: it has arrived, but remains in flight for its lane until an ACK of its
//! own path answers it, which gives the RTT and lets the next segment go. So an estimator and a controller see their path as if
//! there were no other.
//!
//! So an ACK costs O(log n) for n segments in flight, and a constant per segment that it is the first to report. Nothing is
//! allocated but when one of the containers grows.

mod arrival;
#[cfg(test)]
mod check;
mod lane;
mod losses;
mod losses_kept;
mod nonces;
mod order;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::mem;

use anabranch_cc::Departure;
use anabranch_units::{Span, Time};

use self::lane::{Copied, Lane, Losses, Oldest};
pub(crate) use self::lane::{Departed, NewlyAcked};
use self::losses_kept::LossesKept;
use crate::path::{PathId, PathSet};
use crate::recovery::retransmission_log::RetransmissionLog;
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
    /// The sum of the nonces of all that has been acknowledged in order, and of all that has been sent.
    nonces: u16,
    nonces_sent: u16,
    /// Everything below has been sent; where the last entry ends.
    next: Offset,
    /// Entries that were delivered above a hole.
    delivered: usize,
    /// Groups of neighbours among them. The first entry is never one of them, so that is the number of holes.
    holes: usize,
    /// Entries that are lost, on all paths and on none.
    lost: usize,
    /// What is lost and has no path any more.
    orphans: Losses,
    lanes: Vec<Lane>,
    /// The paths on which something was reported that has not been taken.
    newly_acked_paths: PathSet,
    /// The blocks that were entered last.
    blocks: [Block; BLOCKS],
    /// At least the indices of what was delivered above a hole, and of some that are gone.
    arrived: Vec<Index>,
    /// What was lost, if somebody wants to know.
    losses_kept: LossesKept,
    /// Entries that were looked at to find a place for others, or holes.
    #[cfg(test)]
    walked: u64,
}

/// A block of SACK. The next ACK has most of them again, one of them longer.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    left: Offset,
    right: Offset,
    /// The first entry in it.
    from: Index,
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
    /// The sum of the nonces up to its own.
    nonces: u16,
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
    /// How often the one among them has left that left most often.
    pub(crate) transmissions: u32,
}

/// Whose RTT samples can be trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Time,
    /// The path on which the ACK came. What it says of others is no word of theirs.
    pub(crate) via: PathId,
    /// The ACK of a retransmission that comes earlier than this after it answers the original ([rfc-8985] sec. 6.2 step 2).
    pub(crate) rtt_min: Option<Span>,
    /// What moved the acknowledgement number left before this, by the peer's echo of our clock; `None` without timestamps.
    pub(crate) echo: Option<Time>,
}

impl<T> Entry<T> {
    /// If nothing in its lane left before it.
    fn as_oldest(&self, index: Index) -> Oldest {
        Oldest { index, serial: self.serial, departed: self.departure.time }
    }
}

impl<T> Scoreboard<T> {
    /// An empty one for so many paths, that begins with the place `next`.
    pub(crate) fn new(next: Offset, paths: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            acked: next,
            nonces: 0,
            nonces_sent: 0,
            next,
            delivered: 0,
            holes: 0,
            lost: 0,
            orphans: Losses::default(),
            lanes: (0..paths).map(|_| Lane::new(0)).collect(),
            newly_acked_paths: PathSet::default(),
            blocks: Default::default(),
            arrived: vec![],
            losses_kept: LossesKept::default(),
            #[cfg(test)]
            walked: 0,
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
        *lane = Lane { departures, begin: departures, damaged, ..Lane::new(end) };
        self.newly_acked_paths.remove(path);
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

    /// Memory for what is not acknowledged cumulatively: its bytes, which the application gave, and its entries.
    pub(crate) fn memory(&self) -> u64 {
        self.next - self.acked + (self.entries.len() * size_of::<Entry<T>>()) as u64
    }

    /// How often the lowest segment that is not acknowledged has been sent.
    pub(crate) fn front_transmissions(&self) -> u32 {
        self.entries.front().map_or(0, |entry| entry.transmissions)
    }

    /// Segments that are not acknowledged cumulatively.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Holes below what was delivered on a path. Of several paths no more than two are counted, as [`Scoreboard::path_una`] found them: more
    /// says nothing more.
    pub(crate) fn holes(&self, path: PathId) -> usize {
        if self.lanes.len() == 1 { self.holes } else { self.lanes[path.index()].holes.count }
    }

    /// Whether something is remembered for [`Scoreboard::holes`] of a path among several: [`Scoreboard::path_una`] lets go of what is acknowledged.
    #[inline]
    pub(crate) fn keeps_holes(&self, path: PathId) -> bool {
        self.lanes[path.index()].holes.highest > 0
    }

    /// The lowest place of a segment that left on a path and has not arrived; what is next to be sent if there is none. With one path,
    /// that is what has been acknowledged. What came to the path after it had been on another one may be left out.
    #[inline]
    pub(crate) fn path_una(&mut self, path: PathId) -> Offset {
        let lane = &mut self.lanes[path.index()];
        lane.cursor = lane.cursor.max(self.first);
        // Most often it is the first of all, of which all that came before is acknowledged.
        let is_first = |entry: &Entry<T>| entry.path == path && lane.has(entry) && entry.fate != Fate::Delivered;
        if lane.above == 0 && lane.cursor == self.first && self.entries.front().is_some_and(is_first) {
            lane.holes.clear();
            return self.acked;
        }
        self.walk_to_una(path)
    }

    /// The same where it takes a walk. Each lane passes each entry once, so this is a constant per segment.
    #[inline(never)]
    fn walk_to_una(&mut self, path: PathId) -> Offset {
        let lane = &mut self.lanes[path.index()];
        while let Some(entry) = self.entries.get((lane.cursor - self.first) as usize) {
            if entry.path == path && lane.has(entry) {
                if entry.fate != Fate::Delivered {
                    let una = entry.offset.max(self.acked);
                    if lane.above == 0 {
                        lane.holes.clear();
                    } else {
                        self.count_holes(path);
                    }
                    return una;
                }
                lane.above -= 1;
            }
            lane.cursor += 1;
        }
        lane.holes.clear();
        self.next
    }

    /// Counts the holes of a path whose cursor stands at what is missing, and of which something above was delivered. The first such segment
    /// ends a hole; another one has one if something is missing between that one and the highest. What was found is remembered, so that each
    /// ACK looks at what is new, and at no more than [`WALK_MAX`] entries.
    #[inline(never)]
    fn count_holes(&mut self, path: PathId) {
        let Self { entries, first, lanes, .. } = self;
        let lane = &mut lanes[path.index()];
        let Some(lowest) = lane.holes.lowest_from(lane.cursor) else { return };
        let (before, highest) = (lane.holes.run.clone(), lane.holes.highest);
        let mut at = if before.contains(&lowest) { before.end } else { lowest + 1 };
        let limit = at.saturating_add(WALK_MAX).min(highest);
        let is_missing = |entry: &Entry<T>| entry.path == path && lane.has(entry) && entry.fate != Fate::Delivered;
        while at < limit && !is_missing(&entries[(at - *first) as usize]) {
            at = if at == before.start { before.end } else { at + 1 };
            #[cfg(test)]
            {
                self.walked += 1;
            }
        }
        lane.holes.run = lowest..at;
        lane.holes.count = if at < highest { 2 } else { 1 };
    }

    /// Segments that were delivered above the lowest one of their path that was not, as [`Scoreboard::path_una`] found it.
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

    /// A new segment of `len` bytes of sequence space leaves, with this nonce. `flight` is in bytes, itself included.
    pub(crate) fn send(
        &mut self,
        content: T,
        (len, nonce): (u32, u16),
        path: PathId,
        departure: impl FnOnce(u64) -> Departure,
    ) {
        debug_assert!(len > 0, "what takes no sequence space is not acknowledged");
        let index = self.first + self.entries.len() as u64;
        let lane = &mut self.lanes[path.index()];
        let entry = Entry {
            content,
            offset: self.next,
            len,
            fate: Fate::InFlight,
            path,
            transmissions: 1,
            lost_on: None,
            nonces: self.nonces_sent.wrapping_add(nonce),
            serial: lane.departures,
            departure: departure(lane.bytes + u64::from(len)),
            skip: NONE,
            older: mem::replace(&mut lane.newest, index),
            newer: NONE,
        };
        lane.departures += 1;
        lane.bytes += u64::from(len);
        self.next += u64::from(len);
        self.nonces_sent = entry.nonces;
        let newest = entry.older;
        if newest == NONE {
            lane.oldest = entry.as_oldest(index);
        } else {
            self.entry_mut(newest).newer = index;
        }
        self.entries.push_back(entry);
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
                self.forget_loss(before);
                len.into()
            }
            Fate::Delivered => unreachable!("what was delivered is not sent again"),
        };
        let Lane { departures, bytes, .. } = self.lanes[path.index()];
        let is_repair = fate == Fate::Lost;
        if before != path {
            self.lanes[path.index()].holes.join(index);
        }
        let entry = self.entry_mut(index);
        entry.fate = Fate::InFlight;
        entry.path = path;
        entry.transmissions += 1;
        entry.serial = departures;
        entry.departure = departure(bytes + u64::from(entry.len));
        let (end, time) = (entry.offset + u64::from(entry.len), entry.departure.time);
        if let Some(lane) = self.lanes.get_mut(before.index()).filter(|_| is_repair) {
            lane.retransmission_log.on_resent(end, time);
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
        self.lost > 0
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

    /// What has been in flight on a path for longest, and how often it has been sent.
    pub(crate) fn oldest(&self, path: PathId) -> Option<(Index, u32)> {
        let Oldest { index, .. } = self.lanes[path.index()].oldest;
        (index != NONE).then(|| (index, self.entry(index).transmissions))
    }

    /// When that left.
    #[inline]
    pub(crate) fn oldest_departed(&self, path: PathId) -> Option<Time> {
        let Oldest { index, departed, .. } = self.lanes[path.index()].oldest;
        (index != NONE).then_some(departed)
    }

    /// Whether anything is in flight on a path that left before `serial`.
    #[inline]
    pub(crate) fn has_older(&self, path: PathId, serial: u64) -> bool {
        self.lanes[path.index()].oldest.serial < serial
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

    /// A segment was delivered above a hole.
    fn remember_arrival(&mut self, index: Index) {
        if self.arrived.len() > 2 * self.delivered + ARRIVED_LEAST {
            let first = self.first;
            self.arrived.retain(|index| *index >= first);
        }
        self.arrived.push(index);
    }

    /// A loss on a path is to be repaired: what is sent again from now on is entered.
    pub(crate) fn open_log(&mut self, path: PathId) {
        self.lanes[path.index()].retransmission_log.open();
    }

    /// What was sent again for losses on a path.
    pub(crate) fn retransmission_log(&self, path: PathId) -> &RetransmissionLog {
        &self.lanes[path.index()].retransmission_log
    }

    /// The peer got `left..right` once more.
    pub(crate) fn on_duplicate(&mut self, left: Offset, right: Offset) {
        self.lanes.iter_mut().for_each(|lane| lane.retransmission_log.on_duplicate(left, right));
    }

    fn entry(&self, index: Index) -> &Entry<T> {
        &self.entries[(index - self.first) as usize]
    }

    fn entry_mut(&mut self, index: Index) -> &mut Entry<T> {
        &mut self.entries[(index - self.first) as usize]
    }
}

/// Entries that one ACK looks at to count holes: about a microsecond. It reports three blocks, and what it is the first to report is passed once;
/// where a look takes more there are two holes, as far as is known.
const WALK_MAX: u64 = 1024;

/// A list of fewer is not worth tidying.
const ARRIVED_LEAST: usize = 64;

/// [rfc-5681] sec. 3.2: three segments above a hole say that it is no reordering.
pub(crate) const DUPLICATES: usize = 3;

#[cfg(test)]
mod tests;

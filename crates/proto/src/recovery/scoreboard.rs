//! The scoreboard: every sent segment above the cumulative acknowledgement, and its fate.
//!
//! Retransmissions keep the boundaries of a segment, so a segment is one entry, not a byte range that splits and merges. Entries
//! are in the order of sequence space. An entry's index counts from the first segment of the connection and never changes.
//!
//! * Searches skip what arrived above a hole: a delivered entry points to a later one that may not be delivered, and each search
//!   shortens these pointers. A SACK block costs time only for what is new in it, however often it is repeated.
//! * The segments in flight on a path are a list in the order of sending, the path's *lane*. RACK reads only its oldest entries.
//! * Lost segments are in heaps with the lowest sequence number on top: one for each path, and one for segments without a path.
//!
//! # Several paths
//!
//! Sequence space is shared, so the holes and the cumulative acknowledgement of the connection say nothing about a single path:
//! another path is always ahead or behind. Each lane therefore has its own view: its lowest segment that has not arrived
//! ([`Scoreboard::path_una`]), and its segments that have arrived above it. With one path this equals the view of the connection.
//!
//! An ACK acknowledges a segment of its own path ([multihoming-2010] sec. III: "all the SACKs return over the same path"), but
//! reports the arrivals of all paths. What it reports of another path is *held* there. It counts as delivered, but remains in
//! flight for its lane until an ACK on its own path acknowledges it, which gives the RTT and releases the next segment. So an
//! estimator and a controller see their path as if there were no other.
//!
//! A segment may be two entries, side by side: an original and a copy on another path (`doubled`).
//!
//! As a result, an ACK costs O(log n) for n segments in flight, plus a constant for each newly reported segment. Memory is
//! allocated only when a container grows.

mod arrival;
#[cfg(test)]
mod check;
mod doubled;
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

pub(crate) use self::doubled::Confirmed;
use self::doubled::Twin;
use self::lane::{Copied, Lane, Losses, Oldest};
pub(crate) use self::lane::{Departed, NewlyAcked};
use self::losses_kept::LossesKept;
use crate::path::{PathId, PathSet};
use crate::recovery::retransmission_log::RetransmissionLog;
use crate::seq::Offset;

/// The index of an entry, counted from the first segment of the connection.
pub(crate) type Index = u64;

const NONE: Index = Index::MAX;

/// The three blocks of an ACK, and one more.
const BLOCKS: usize = 4;

/// All segments above the cumulative acknowledgement. `T` is the data that a retransmission needs.
#[derive(Debug)]
pub(crate) struct Scoreboard<T> {
    entries: VecDeque<Entry<T>>,
    /// Index of the first entry.
    first: Index,
    /// The cumulative acknowledgement.
    acked: Offset,
    /// The sums of the nonces of everything acknowledged in order, and of everything sent.
    nonces: u16,
    nonces_sent: u16,
    /// The end of the sent data.
    next: Offset,
    /// Entries delivered above a hole.
    delivered: usize,
    /// Groups of adjacent delivered entries. The first entry is never delivered, so this is the number of holes.
    holes: usize,
    /// Lost entries, on all paths and without a path, and copies that are owed.
    lost: usize,
    /// Copies that are owed.
    owed: usize,
    /// Lost segments without a path.
    orphans: Losses,
    lanes: Vec<Lane>,
    /// Paths with arrivals that have not been taken.
    newly_acked_paths: PathSet,
    /// The latest SACK blocks.
    blocks: [Block; BLOCKS],
    /// Indices of entries delivered above a hole. Some may already be gone.
    arrived: Vec<Index>,
    /// The losses, if they are recorded.
    losses_kept: LossesKept,
    /// Entries visited in searches for positions or holes.
    #[cfg(test)]
    walked: u64,
}

/// A SACK block. The next ACK usually repeats all blocks, and one of them is longer.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    left: Offset,
    right: Offset,
    /// The first entry in it.
    from: Index,
    /// All entries of the block below this index were delivered.
    upto: Index,
}

/// The size of unacknowledged segments in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// The application's bytes, plus [`ENTRY_WEIGHT`] for each entry. It is the same on every machine and for any payload.
    pub(crate) weight: u64,
    /// The application's bytes, and the memory of the entries.
    pub(crate) memory: u64,
}

/// What an entry counts for in limits that decide when something is sent. Its size in memory depends on the machine, on the
/// payload type and on every added field, but a run must not depend on these. The value is the size of an entry of a simulated
/// segment without its delivery-rate record.
const ENTRY_WEIGHT: u64 = 96;

#[derive(Debug)]
struct Entry<T> {
    content: T,
    offset: Offset,
    len: u32,
    fate: Fate,
    twin: Twin,
    /// The path of the last transmission; [`PathId::NOWHERE`] if that path is gone.
    path: PathId,
    transmissions: u32,
    /// Whether its retransmissions are short, so that their losses say nothing of the path MTU.
    is_short: bool,
    /// The path of the latest loss, if there was one.
    lost_on: Option<PathId>,
    /// The sum of the nonces up to and including its own.
    nonces: u16,
    /// The number of transmissions on its path before its last one.
    serial: u64,
    departure: Departure,
    /// If delivered: an index such that all entries between are delivered.
    skip: Index,
    /// Neighbours in the lane, if in flight.
    older: Index,
    newer: Index,
}

/// The fate of the last transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
    /// A copy that has not left.
    Owed,
    /// Lost or cancelled, while its twin is in flight or lost: nothing is to be sent.
    Spare,
}

/// The result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// Segments declared lost.
    pub(crate) count: usize,
    /// The bytes of these segments.
    pub(crate) bytes: u64,
    /// The record of the first of these transmissions.
    pub(crate) departure: Option<Departure>,
    /// The highest end of these segments.
    pub(crate) end: Offset,
    /// The largest number of transmissions of any of them that was not short.
    pub(crate) transmissions: u32,
    /// Whether one of them was also sent on another path. Then its delivery does not prove that the loss was spurious.
    pub(crate) is_doubled: bool,
}

/// How to take RTT samples from an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Time,
    /// The path on which the ACK arrived. For other paths it gives no sample.
    pub(crate) via: PathId,
    /// The minimum RTT: if an ACK of a retransmitted segment arrives earlier, it belongs to the original ([rfc-8985] sec. 6.2
    /// step 2).
    pub(crate) rtt_min: Option<Span>,
    /// The latest time at which the segment that moved the acknowledgement number may have been sent, according to its timestamp
    /// echo; `None` without timestamps.
    pub(crate) echo: Option<Time>,
    /// Whether the ACK answers a segment that arrived on `via` for the first time: it has no content and reports no duplicate.
    pub(crate) is_answer: bool,
}

impl<T> Entry<T> {
    /// The entry as the oldest of its lane.
    fn as_oldest(&self, index: Index) -> Oldest {
        Oldest { index, serial: self.serial, departed: self.departure.time }
    }
}

impl<T> Scoreboard<T> {
    /// An empty scoreboard for `paths` paths, starting at the offset `next`.
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
            owed: 0,
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

    /// Opens a path. Of an earlier path with this identifier, only the number of transmissions is kept.
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

    /// The cumulative acknowledgement.
    pub(crate) fn acked(&self) -> Offset {
        self.acked
    }

    /// The end of the sent data.
    pub(crate) fn next(&self) -> Offset {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of unacknowledged segments.
    pub(crate) fn kept(&self) -> Kept {
        let (bytes, entries) = (self.next - self.acked, self.entries.len() as u64);
        Kept { weight: bytes + entries * ENTRY_WEIGHT, memory: bytes + entries * size_of::<Entry<T>>() as u64 }
    }

    /// The number of transmissions of the lowest unacknowledged segment.
    pub(crate) fn front_transmissions(&self) -> u32 {
        self.entries.front().map_or(0, |entry| entry.transmissions)
    }

    /// Segments above the cumulative acknowledgement.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Holes below delivered segments of a path. With several paths at most two are counted, as [`Scoreboard::path_una`] found
    /// them; more make no difference.
    pub(crate) fn holes(&self, path: PathId) -> usize {
        if self.lanes.len() == 1 { self.holes } else { self.lanes[path.index()].holes.count }
    }

    /// Whether [`Scoreboard::holes`] keeps state for this path. [`Scoreboard::path_una`] releases it.
    pub(crate) fn keeps_holes(&self, path: PathId) -> bool {
        self.lanes[path.index()].holes.highest > 0
    }

    /// The offset of the lowest segment of a path that has not arrived, or the end of the sent data if there is none. With one
    /// path this is the cumulative acknowledgement. Segments that moved to the path from another one may be omitted.
    pub(crate) fn path_una(&mut self, path: PathId) -> Offset {
        let lane = &mut self.lanes[path.index()];
        lane.cursor = lane.cursor.max(self.first);
        // Each lane passes each entry once, so the cost per segment is constant.
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

    /// Counts the holes of a path whose cursor is at a missing segment below a delivered one. The first delivered segment ends
    /// one hole; there is a second hole if a segment is missing between it and the highest. The result is stored, so each ACK
    /// visits only new entries, at most [`WALK_MAX`].
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

    /// Segments delivered above the path's lowest missing one, as [`Scoreboard::path_una`] found it.
    pub(crate) fn delivered(&self, path: PathId) -> usize {
        self.lanes[path.index()].above
    }

    /// The highest end of a segment delivered on a path.
    pub(crate) fn highest(&self, path: PathId) -> Offset {
        self.lanes[path.index()].highest
    }

    /// Segments that were lost on a path and were not delivered since, whether retransmitted or not.
    pub(crate) fn damaged(&self, path: PathId) -> usize {
        self.lanes[path.index()].damaged
    }

    /// Bytes in flight on a path: sent, and neither delivered nor lost.
    pub(crate) fn flight(&self, path: PathId) -> u64 {
        self.lanes[path.index()].bytes
    }

    /// As [`Self::flight`], without the segments that an ACK on another path has reported.
    pub(crate) fn flying(&self, path: PathId) -> u64 {
        let lane = &self.lanes[path.index()];
        lane.bytes - lane.held_bytes
    }

    /// The number of transmissions on a path so far.
    pub(crate) fn departures(&self, path: PathId) -> u64 {
        self.lanes[path.index()].departures
    }

    /// A new segment of `len` bytes of sequence space is sent with this nonce. `flight` is in bytes and includes the segment.
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
            twin: Twin::Single,
            path,
            transmissions: 1,
            is_short: false,
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

    /// A segment is retransmitted, lost or in flight. A segment that is in flight on one path can be sent on another path only if
    /// it is the oldest on its own; it remains in flight there. A copy that is owed is sent for the first time. Returns the bytes
    /// added to the flight of `path`.
    pub(crate) fn resend(&mut self, index: Index, path: PathId, departure: impl FnOnce(u64) -> Departure) -> u64 {
        let Entry { fate, path: before, offset, len, serial, .. } = *self.entry(index);
        let added = match fate {
            Fate::InFlight if before == path => {
                self.unlink(index);
                0
            }
            Fate::InFlight => {
                self.unlink(index);
                let copied = Copied { end: offset + u64::from(len), len, serial, departure: None };
                self.lanes[before.index()].keep_copy(copied);
                len.into()
            }
            Fate::Owed => {
                self.forget_owed();
                len.into()
            }
            Fate::Lost => {
                self.forget_loss(before);
                len.into()
            }
            Fate::Delivered | Fate::Spare => {
                unreachable!("what was delivered, or is sent elsewhere, is not sent again")
            }
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

    /// The lowest lost segment of a path; with [`PathId::NOWHERE`], of those without a path.
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

    /// Whether any segment is lost, or any copy is owed.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Whether any lost segment has no path.
    pub(crate) fn has_orphans(&self) -> bool {
        self.orphans.count > 0
    }

    /// The last segment of a path, if it has not been delivered. A tail loss probe repeats it.
    pub(crate) fn last(&self, path: PathId) -> Option<Index> {
        let entry = self.entries.back()?;
        if entry.path == path && entry.fate != Fate::Delivered {
            return Some(self.first + self.entries.len() as u64 - 1);
        }
        let newest = self.lanes[path.index()].newest;
        (self.lanes.len() > 1 && newest != NONE).then_some(newest)
    }

    /// The oldest segment in flight on a path, and its number of transmissions.
    pub(crate) fn oldest(&self, path: PathId) -> Option<(Index, u32)> {
        let Oldest { index, .. } = self.lanes[path.index()].oldest;
        (index != NONE).then(|| (index, self.entry(index).transmissions))
    }

    /// When the oldest segment in flight on a path was sent.
    pub(crate) fn oldest_departed(&self, path: PathId) -> Option<Time> {
        let Oldest { index, departed, .. } = self.lanes[path.index()].oldest;
        (index != NONE).then_some(departed)
    }

    /// Whether a transmission before `serial` is in flight on a path.
    pub(crate) fn has_older(&self, path: PathId, serial: u64) -> bool {
        self.lanes[path.index()].oldest.serial < serial
    }

    /// The path of the last transmission of the lowest unacknowledged segment.
    pub(crate) fn front(&self) -> Option<PathId> {
        self.entries.front().map(|entry| entry.path)
    }

    /// The offset and length of a segment, and the data for its retransmission.
    pub(crate) fn segment(&self, index: Index) -> (Offset, u32, &T) {
        let entry = self.entry(index);
        (entry.offset, entry.len, &entry.content)
    }

    /// The data for the retransmission of a segment.
    pub(crate) fn content_mut(&mut self, index: Index) -> &mut T {
        &mut self.entry_mut(index).content
    }

    /// From now on this segment is sent without its data.
    pub(crate) fn shorten(&mut self, index: Index) {
        self.entry_mut(index).is_short = true;
    }

    /// A segment was delivered above a hole.
    fn remember_arrival(&mut self, index: Index) {
        if self.arrived.len() > 2 * self.delivered + ARRIVED_LEAST {
            let first = self.first;
            self.arrived.retain(|index| *index >= first);
        }
        self.arrived.push(index);
    }

    /// A recovery on a path begins: retransmissions are logged from now on.
    pub(crate) fn open_log(&mut self, path: PathId) {
        self.lanes[path.index()].retransmission_log.open();
    }

    pub(crate) fn retransmission_log(&self, path: PathId) -> &RetransmissionLog {
        &self.lanes[path.index()].retransmission_log
    }

    /// The peer reported a duplicate of `left..right`.
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

/// Limit on the entries that one ACK visits to count holes: about a microsecond. An ACK has three blocks and visits newly
/// reported entries once. If the limit is reached, two holes are assumed.
const WALK_MAX: u64 = 1024;

/// A shorter list is not worth cleaning up.
const ARRIVED_LEAST: usize = 64;

/// [rfc-5681] sec. 3.2: three segments above a hole indicate a loss, not reordering.
pub(crate) const DUPLICATES: usize = 3;

#[cfg(test)]
mod tests;

//! Segments that are sent on two paths: an original and a copy.
//!
//! The copy is an entry of its own, directly behind its original, with the same sequence space. So each of the two has its path, its
//! departure and its fate: it counts in the flight of its path, is acknowledged there with an RTT, and is lost there with a loss
//! for its controller, by the same rules as any other entry. What is particular to them:
//!
//! ```text
//! owed        the copy has not left. If the original is delivered or lost first, it never leaves.
//! spare       one of them is lost while the other is in flight: nothing is sent again. If the other is lost, too, the original
//!             is sent again, on any path. A copy is retransmitted by a tail loss probe only.
//! copies      an ACK reports the segment, not which of the two has arrived. The one that has not answered stays in flight on its
//!             path until its own ACK comes, or three that left later there have arrived: then it is lost.
//! ```
//!
//! Which of the two an ACK answers:
//! * A DSACK block ([rfc-2883]) names the second arrival, on the path of the ACK. So the other one has arrived, too: it is held, as
//!   what another path has reported, until an ACK on its own path covers it.
//! * An ACK without content and DSACK answers a first arrival on its path, as otherwise there would be a DSACK. The latest segment
//!   that it newly reports is that arrival, if the other path neither loses nor reorders; earlier ones may have come by the other
//!   path, and stay in flight. If the arrival is earlier than every RTT of
//!   the path, the other path may have brought it, and the ACK gives no sample, unless this happens eight times without a
//!   duplicate on the path: then the path has become shorter.
//! * Of any other ACK this is not known, so both stay in flight.
//! * If one is lost and the segment is delivered, the other one has arrived.
//!
//! Differs from the redundant scheduler of MPTCP in: the copy is made for the segment when this leaves, not for what is
//! unacknowledged when the other path has room. It follows that a path with a small window copies the latest data, not the oldest,
//! as soon as what it owes has been acknowledged.
//!
//! An ACK that is lost takes its DSACK with it, so a copy that arrives second may count as lost without being so. That errs on the
//! careful side, as a lost ACK never does elsewhere. A loss of a doubled segment is never undone as spurious.

use anabranch_cc::Departure;

use super::lane::{Answered, Copied, Delivered, Held};
use super::{AckContext, Entry, Fate, Found, Index, NONE, Scoreboard};
use crate::path::PathId;
use crate::seq::Offset;

/// Whether a segment has a second entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twin {
    Single,
    /// The next entry is its copy.
    Original,
    /// The entry before is its original.
    Copy,
}

/// What a duplicate tells of a doubled segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// Its transmission on the path of the report has arrived.
    Here,
    /// That was known, so this was another transmission on the path, and the one on the other path is no longer waited for.
    There,
}

impl<T> Scoreboard<T> {
    /// A copy of the segment that was just sent is owed on a path. `content` is what its transmission needs.
    pub(crate) fn owe(&mut self, content: T, path: PathId) {
        let index = self.first + self.entries.len() as u64;
        let original = self.entries.back_mut().expect("a segment was sent");
        debug_assert!(original.twin == Twin::Single && original.path != path, "one copy, on another path");
        original.twin = Twin::Original;
        let &mut Entry { offset, len, nonces, .. } = original;
        self.entries.push_back(Entry {
            content,
            offset,
            len,
            fate: Fate::Owed,
            twin: Twin::Copy,
            path: PathId::NOWHERE,
            transmissions: 0,
            is_short: false,
            lost_on: None,
            nonces,
            serial: 0,
            departure: Departure::default(),
            skip: NONE,
            older: NONE,
            newer: NONE,
        });
        self.lost += 1;
        self.owed += 1;
        self.forget_cancelled(path);
        self.lanes[path.index()].owed.push_back(index);
    }

    /// The lowest copy that is owed on a path.
    pub(crate) fn lowest_owed(&mut self, path: PathId) -> Option<Index> {
        self.forget_cancelled(path);
        self.lanes[path.index()].owed.front().copied()
    }

    /// Whether this is a copy that has not left.
    pub(crate) fn is_owed(&self, index: Index) -> bool {
        self.entry(index).fate == Fate::Owed
    }

    /// Whether copies are owed, and no segment is lost.
    pub(crate) fn has_only_owed(&self) -> bool {
        self.lost == self.owed
    }

    /// Whether the segment of this entry has left twice from the start: as an original and as a copy.
    pub(crate) fn is_doubled(&self, index: Index) -> bool {
        match self.entry(index).twin {
            Twin::Single => false,
            Twin::Original => self.entry(index + 1).transmissions > 0,
            Twin::Copy => self.entry(index).transmissions > 0,
        }
    }

    /// The original of a copy; any other entry is its own.
    pub(super) fn original(&self, index: Index) -> Index {
        index - u64::from(self.entry(index).twin == Twin::Copy)
    }

    /// Whether a transmission on this path has not been answered, whose segment its twin has delivered.
    pub(crate) fn has_doubled_copies(&self, path: PathId) -> bool {
        self.lanes[path.index()].copies.iter().take(WALK_MAX).any(|copied| copied.departure.is_some())
    }

    /// Whether any copy on this path was overtaken by three arrivals.
    pub(crate) fn has_overtaken_copies(&self, path: PathId) -> bool {
        let front = self.lanes[path.index()].copies.front();
        front.is_some_and(|copied| copied.departure.is_some() && copied.serial < self.overtaken(path))
    }

    /// Declares the copies lost that three arrivals have overtaken. Their segments are delivered, so nothing is sent again.
    pub(crate) fn lose_copies(&mut self, path: PathId) -> Found {
        let (overtaken, mut found) = (self.overtaken(path), Found::default());
        let is_lost = |copied: &mut Copied| copied.departure.is_some() && copied.serial < overtaken;
        while let Some(copied) = self.lanes[path.index()].copies.pop_front_if(is_lost) {
            self.lanes[path.index()].bytes -= u64::from(copied.len);
            self.losses_kept.push(path, copied.end - u64::from(copied.len));
            found.count += 1;
            found.bytes += u64::from(copied.len);
            found.departure = found.departure.or(copied.departure);
            found.end = found.end.max(copied.end);
            found.transmissions = 1;
            found.is_doubled = true;
            self.hold_other(path, copied.end, true);
        }
        found
    }

    /// A doubled segment is reported, of which this entry was in flight. It stays so until it is known which of the two has arrived.
    pub(super) fn on_doubled_acked(&mut self, index: Index, context: &AckContext) -> PathId {
        let Entry { path, offset, len, serial, departure, .. } = *self.entry(index);
        let end = offset + u64::from(len);
        self.entry_mut(index).path = PathId::NOWHERE;
        let lane = &mut self.lanes[path.index()];
        lane.keep_copy(Copied { end, len, serial, departure: Some(departure) });
        if path == context.via && context.is_answer && lane.answered.is_none_or(|answered| answered.serial < serial) {
            let is_early = context.rtt_min.is_some_and(|least| context.now.since(departure.time) < least);
            lane.answered = Some(Answered { end, serial, is_early });
        }
        PathId::NOWHERE
    }

    /// An ACK on a path was read: the latest doubled segment that it newly reports there is the one that it answers.
    pub(super) fn confirm_answered(&mut self, path: PathId) {
        let Some(Answered { end, is_early, .. }) = self.lanes[path.index()].answered.take() else { return };
        let Some((Copied { len, serial, .. }, departure)) = self.take_copy(path, end) else { return };
        let lane = &mut self.lanes[path.index()];
        lane.early = if is_early { lane.early.saturating_add(1) } else { 0 };
        let is_certain = !is_early || lane.early >= EARLY_MAX;
        let transmissions = if is_certain { 1 } else { 2 };
        lane.bytes -= u64::from(len);
        lane.reap(end, true, Delivered { serial, len, transmissions, departure }, is_certain);
        self.newly_acked_paths.insert(path);
    }

    /// A duplicate of the segment that ends at `end` was reported on a path. If the segment is doubled, both have arrived.
    pub(super) fn confirm_doubled(&mut self, path: PathId, end: Offset) -> Option<Confirmed> {
        self.lanes[path.index()].early = 0;
        let is_news_here = match self.take_copy(path, end) {
            Some((Copied { len, serial, .. }, departure)) => {
                let lane = &mut self.lanes[path.index()];
                lane.bytes -= u64::from(len);
                lane.reap(end, true, Delivered { serial, len, transmissions: 1, departure }, true);
                self.newly_acked_paths.insert(path);
                true
            }
            None => false,
        };
        // Otherwise the network may have duplicated it, or the receiver reported it on the wrong path.
        let is_news_there = self.hold_other(path, end, is_news_here);
        if is_news_here { Some(Confirmed::Here) } else { is_news_there.then_some(Confirmed::There) }
    }

    /// The doubled segment that ends at `end` has arrived on the other path. If this is certain, an ACK on that path will say when.
    /// Returns whether this was news.
    fn hold_other(&mut self, path: PathId, end: Offset, is_certain: bool) -> bool {
        for other in (0..self.lanes.len()).map(PathId::new).filter(|other| *other != path) {
            let Some((Copied { len, serial, .. }, departure)) = self.take_copy(other, end) else { continue };
            let lane = &mut self.lanes[other.index()];
            let is_later = lane.held.back().is_none_or(|last| last.serial < serial && last.end < end);
            if is_certain && is_later {
                lane.held_bytes += u64::from(len);
                lane.held.push_back(Held { start: end - u64::from(len), end, serial, departure });
            } else {
                // As after a retransmission: acknowledged, but no sample.
                lane.bytes -= u64::from(len);
                lane.reap(end, true, Delivered { serial, len, transmissions: 2, departure }, false);
                self.newly_acked_paths.insert(other);
            }
            return true;
        }
        false
    }

    /// Takes the transmission on a path of a doubled segment that is delivered, if it has not been answered.
    fn take_copy(&mut self, path: PathId, end: Offset) -> Option<(Copied, Departure)> {
        let copies = &mut self.lanes[path.index()].copies;
        let is_it = |copied: &Copied| copied.end == end && copied.departure.is_some();
        let place = copies.iter().take(WALK_MAX).position(is_it)?;
        let copied = copies.remove(place)?;
        Some((copied, copied.departure?))
    }

    /// One of two entries of a segment was declared lost on a path.
    pub(super) fn lose_twin(&mut self, twin: Twin, path: PathId, index: Index) {
        let other = if twin == Twin::Copy { index - 1 } else { index + 1 };
        match (twin, self.entry(other).fate) {
            (Twin::Original, Fate::Owed) => {
                // Its path had no room so far. The original need not wait for that.
                self.forget_owed();
                self.spare(other);
                self.remember_loss(path, index);
            }
            (Twin::Original, Fate::Spare) => self.remember_loss(path, index),
            (Twin::Copy, Fate::Spare) => {
                self.spare(index);
                self.entry_mut(other).fate = Fate::Lost;
                self.remember_loss(PathId::NOWHERE, other);
            }
            _ => self.spare(index),
        }
    }

    /// No copy is owed on a path any more.
    pub(super) fn cancel_owed(&mut self, path: PathId) {
        self.forget_cancelled(path);
        for index in std::mem::take(&mut self.lanes[path.index()].owed) {
            if index >= self.first && self.is_owed(index) {
                self.forget_owed();
                self.spare(index);
            }
        }
    }

    pub(super) fn forget_owed(&mut self) {
        self.lost -= 1;
        self.owed -= 1;
    }

    fn spare(&mut self, index: Index) {
        let entry = self.entry_mut(index);
        (entry.fate, entry.path) = (Fate::Spare, PathId::NOWHERE);
    }

    /// Removes from the front of what a path owes what it no longer does.
    fn forget_cancelled(&mut self, path: PathId) {
        let Self { entries, first, lanes, .. } = self;
        let is_over = |index: &mut Index| {
            let entry = index.checked_sub(*first).map(|place| &entries[place as usize]);
            entry.is_none_or(|entry| entry.fate != Fate::Owed)
        };
        while lanes[path.index()].owed.pop_front_if(is_over).is_some() {}
    }
}

/// A path that brings a segment first has no duplicates, and a path of which only the other one makes it seem so has one for each
/// segment: eight in a row leave no doubt.
const EARLY_MAX: u32 = 8;

/// The copies that one DSACK may visit: about a microsecond. Usually it names the first one.
const WALK_MAX: usize = 1024;

#[cfg(test)]
mod tests;

//! Lost segments: declaration, retransmission queue, and restoration after a spurious loss.

use std::cmp::Reverse;
use std::mem;

use anabranch_units::Time;

use super::doubled::Twin;
use super::lane::{Lane, Losses, Oldest};
use super::{DUPLICATES, Entry, Fate, Found, Index, NONE, Scoreboard};
use crate::path::PathId;

impl<T> Scoreboard<T> {
    /// The path is abandoned: its segments in flight are lost, and its lost segments may be sent on any other path.
    pub(crate) fn orphan(&mut self, path: PathId) -> Found {
        let mut found = Found::default();
        while self.lanes[path.index()].oldest != Oldest::NONE {
            self.lose_oldest(path, &mut found);
        }
        let Losses { heap, .. } = mem::take(&mut self.lanes[path.index()].lost);
        for Reverse(index) in heap {
            // A segment may be queued twice, or no longer be lost.
            if index >= self.first && self.entry(index).fate == Fate::Lost && self.entry(index).path == path {
                self.entry_mut(index).path = PathId::NOWHERE;
                self.orphans.push(index);
            }
        }
        self.cancel_owed(path);
        // Reneging is possible after the identifier belongs to another path, or to none.
        let lane = &mut self.lanes[path.index()];
        (lane.begin, lane.above) = (lane.departures, 0);
        lane.holes.clear();
        found
    }

    /// Declares segments lost, from the oldest transmission on, if they were sent before `serial` and at `time` or earlier.
    /// Returns what it found, and the sending time of the first segment that was spared only because of its time.
    pub(crate) fn lose_until(&mut self, path: PathId, serial: u64, time: Time) -> (Found, Option<Time>) {
        let mut found = Found::default();
        loop {
            let Oldest { index, serial: oldest, departed } = self.lanes[path.index()].oldest;
            if index == NONE || oldest >= serial {
                return (found, None);
            }
            if departed > time {
                return (found, Some(departed));
            }
            self.lose(index, &mut found);
        }
    }

    /// Declares the oldest transmission lost, if anything is in flight on the path.
    pub(crate) fn lose_oldest(&mut self, path: PathId, found: &mut Found) {
        let Oldest { index, .. } = self.lanes[path.index()].oldest;
        if index != NONE {
            self.lose(index, found);
        }
    }

    /// Declares the first segment lost, if it is in flight on this path.
    pub(crate) fn lose_first(&mut self, path: PathId, found: &mut Found) {
        let is_flying = |entry: &Entry<T>| entry.fate == Fate::InFlight && entry.path == path;
        if self.entries.front().is_some_and(is_flying) {
            self.lose(self.first, found);
        }
    }

    /// Transmissions on a path before this serial number have been overtaken by three arrivals.
    pub(crate) fn overtaken(&self, path: PathId) -> u64 {
        self.lanes[path.index()].latest[DUPLICATES - 1].saturating_sub(1)
    }

    /// Discards deliveries above holes, if the receiver seems to have reneged: it asks for a segment that it had reported
    /// ([rfc-2018] sec. 8). Only peers without streams may renege.
    pub(crate) fn distrust(&mut self) {
        if self.entries.front().is_none_or(|entry| entry.fate != Fate::Delivered) {
            return;
        }
        self.lanes.iter_mut().for_each(Lane::distrust);
        let (first, mut arrived) = (self.first, mem::take(&mut self.arrived));
        for index in arrived.drain(..).filter(|index| *index >= first) {
            let entry = &mut self.entries[(index - first) as usize];
            debug_assert!(entry.fate == Fate::Delivered, "what was delivered stays so until it is distrusted");
            entry.fate = Fate::Lost;
            match self.lanes.get_mut(entry.path.index()) {
                Some(lane) if !lane.has(entry) => entry.path = PathId::NOWHERE,
                Some(lane) => lane.cursor = lane.cursor.min(index),
                None => {}
            }
            let path = entry.path;
            // A segment without a path counts on no path.
            if path != PathId::NOWHERE {
                self.damage(index);
            }
            self.remember_loss(path, index);
            #[cfg(test)]
            {
                self.walked += 1;
            }
        }
        self.arrived = arrived;
        (self.delivered, self.holes) = (0, 0);
        self.blocks = Default::default();
    }

    /// Segments counted as lost on a path are in flight again. Returns their bytes. The time is linear in the lost segments and
    /// those sent before them, so a peer that reports spurious losses all the time does not cost more.
    pub(crate) fn restore(&mut self, path: PathId) -> u64 {
        let Losses { heap, .. } = mem::take(&mut self.lanes[path.index()].lost);
        let (mut restored, mut added) = (vec![], 0);
        for Reverse(index) in heap.into_iter().filter(|&Reverse(index)| index >= self.first) {
            let entry = &mut self.entries[(index - self.first) as usize];
            // A segment may be queued twice, or no longer be lost.
            if entry.fate != Fate::Lost || entry.path != path {
                continue;
            }
            entry.fate = Fate::InFlight;
            added += u64::from(entry.len);
            restored.push((entry.serial, index));
            self.lost -= 1;
            if let Some(place) = entry.lost_on.take() {
                self.lanes[place.index()].damaged -= 1;
            }
        }
        restored.sort_unstable();
        let lane = &mut self.lanes[path.index()];
        lane.latest = [0; DUPLICATES];
        lane.bytes += added;
        let mut newer = lane.oldest.index;
        for (serial, index) in restored {
            while newer != NONE && self.entry(newer).serial < serial {
                newer = self.entry(newer).newer;
                #[cfg(test)]
                {
                    self.walked += 1;
                }
            }
            self.insert(index, newer, path);
        }
        added
    }

    fn lose(&mut self, index: Index, found: &mut Found) {
        self.unlink(index);
        let entry = self.entry_mut(index);
        entry.fate = Fate::Lost;
        let (departure, end, len) = (entry.departure, entry.offset + u64::from(entry.len), u64::from(entry.len));
        let (path, offset) = (entry.path, entry.offset);
        let transmissions = if entry.is_short { 0 } else { entry.transmissions };
        let twin = entry.twin;
        self.losses_kept.push(path, offset);
        self.damage(index);
        if twin == Twin::Single {
            self.remember_loss(path, index);
        } else {
            found.is_doubled |= self.is_doubled(index);
            self.lose_twin(twin, path, index);
        }
        found.transmissions = found.transmissions.max(transmissions);
        found.count += 1;
        found.bytes += len;
        found.departure = found.departure.or(Some(departure));
        found.end = found.end.max(end);
    }

    /// A segment counts as damaged on the path of its latest loss.
    fn damage(&mut self, index: Index) {
        let path = self.entry(index).path;
        let before = self.entry_mut(index).lost_on.replace(path);
        if let Some(before) = before {
            self.lanes[before.index()].damaged -= 1;
        }
        self.lanes[path.index()].damaged += 1;
    }

    pub(super) fn remember_loss(&mut self, path: PathId, index: Index) {
        self.lost += 1;
        self.losses(path).push(index);
    }

    /// A segment that was lost on a path no longer is.
    pub(super) fn forget_loss(&mut self, path: PathId) {
        self.lost -= 1;
        self.losses(path).count -= 1;
    }

    pub(super) fn losses(&mut self, path: PathId) -> &mut Losses {
        if path == PathId::NOWHERE { &mut self.orphans } else { &mut self.lanes[path.index()].lost }
    }
}

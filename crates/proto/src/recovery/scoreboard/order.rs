//! The order of sending on a path: a linked list of its entries in flight, the oldest first.

use std::mem;

use super::lane::Oldest;
use super::{Entry, Index, NONE, Scoreboard};
use crate::path::PathId;

impl<T> Scoreboard<T> {
    /// Appends an entry as the newest of a lane.
    pub(super) fn link(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        lane.departures += 1;
        lane.bytes += u64::from(self.entries[(index - self.first) as usize].len);
        self.append(index, path);
    }

    fn append(&mut self, index: Index, path: PathId) {
        let lane = &mut self.lanes[path.index()];
        let newest = mem::replace(&mut lane.newest, index);
        let entry = &mut self.entries[(index - self.first) as usize];
        (entry.older, entry.newer) = (newest, NONE);
        if newest == NONE {
            lane.oldest = entry.as_oldest(index);
        } else {
            self.entry_mut(newest).newer = index;
        }
    }

    /// Inserts an entry into a lane before `newer`, or as the newest if that is [`NONE`].
    pub(super) fn insert(&mut self, index: Index, newer: Index, path: PathId) {
        if newer == NONE {
            return self.append(index, path);
        }
        let older = mem::replace(&mut self.entry_mut(newer).older, index);
        let entry = self.entry_mut(index);
        (entry.older, entry.newer) = (older, newer);
        if older == NONE {
            self.lanes[path.index()].oldest = self.entry(index).as_oldest(index);
        } else {
            self.entry_mut(older).newer = index;
        }
    }

    pub(super) fn unlink(&mut self, index: Index) {
        let Entry { older, newer, path, len, .. } = *self.entry(index);
        self.bridge(older, newer, path, len);
    }

    /// Removes the entry between two neighbours from its lane.
    // Inlined with what else handles an ACK, it takes 1.3 % fewer instructions of the engine with an ACK for 32.
    #[inline(always)]
    pub(super) fn bridge(&mut self, older: Index, newer: Index, path: PathId, len: u32) {
        let lane = &mut self.lanes[path.index()];
        lane.bytes -= u64::from(len);
        if newer == NONE {
            lane.newest = older;
        } else {
            let entry = &mut self.entries[(newer - self.first) as usize];
            entry.older = older;
            if older == NONE {
                lane.oldest = entry.as_oldest(newer);
            }
        }
        if older != NONE {
            self.entry_mut(older).newer = newer;
        } else if newer == NONE {
            self.lanes[path.index()].oldest = Oldest::NONE;
        }
    }
}

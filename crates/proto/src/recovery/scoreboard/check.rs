//! For tests: compares each count with the entries.

use super::{Entry, Fate, NONE, Scoreboard, Twin};
use crate::path::PathId;

impl<T> Scoreboard<T> {
    /// Compares each count with the entries. For tests: it visits all of them.
    pub(crate) fn check(&self) {
        let count = |is: &dyn Fn(&Entry<T>) -> bool| self.entries.iter().filter(|entry| is(entry)).count();
        assert_eq!(self.delivered, count(&|entry| entry.fate == Fate::Delivered));
        assert_eq!(self.owed, count(&|entry| entry.fate == Fate::Owed));
        assert_eq!(self.lost, self.owed + count(&|entry| entry.fate == Fate::Lost));
        let is_orphan = |entry: &Entry<T>| entry.fate == Fate::Lost && entry.path == PathId::NOWHERE;
        assert_eq!(self.orphans.count, count(&is_orphan));
        let fates: Vec<Fate> = self.entries.iter().map(|entry| entry.fate).collect();
        let starts = (0..fates.len())
            .filter(|&i| fates[i] == Fate::Delivered && (i == 0 || fates[i - 1] != Fate::Delivered))
            .count();
        assert_eq!(self.holes, starts);
        for (original, copy) in self.entries.iter().zip(self.entries.iter().skip(1)) {
            let is_pair = copy.twin == Twin::Copy;
            assert_eq!(is_pair, original.offset == copy.offset, "a copy stands behind its original");
            assert!(!is_pair || original.twin == Twin::Original && original.len == copy.len);
            let fates = [original.fate, copy.fate];
            let are_delivered = fates.map(|fate| fate == Fate::Delivered);
            assert!(!is_pair || are_delivered[0] == are_delivered[1], "a segment arrives once");
            assert!(!is_pair || fates != [Fate::Spare; 2], "somebody carries it");
        }
        for (number, lane) in self.lanes.iter().enumerate() {
            let is_here = |entry: &Entry<T>| entry.path.index() == number && lane.has(entry);
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
            let newly_acked_paths = lane.newly_acked.bytes_from_flight > 0 || lane.newly_acked.bytes > 0;
            assert_eq!(self.has_newly_acked(PathId::new(number)), newly_acked_paths);
            assert_eq!(lane.bytes, held + copied + flying.clone().map(|entry| u64::from(entry.len)).sum::<u64>());
            let (mut index, mut serials) = (lane.oldest.index, vec![]);
            assert!(index == NONE || lane.oldest == self.entry(index).as_oldest(index));
            while index != NONE {
                serials.push(self.entry(index).serial);
                index = self.entry(index).newer;
            }
            assert_eq!(serials.len(), flying.count());
            assert!(serials.is_sorted(), "a lane is in the order of departure");
            assert!(lane.copies.iter().is_sorted_by_key(|copied| copied.serial), "so are copies");
            assert!(lane.held.iter().is_sorted_by_key(|held| (held.serial, held.end)), "so is what is held");
        }
    }
}

//! An ordered map that keeps its memory.
//!
//! Data above a hole is added at one end and removed at the other, a segment at a time. A tree would allocate and free a node
//! each time. This map is a sequence of blocks, each a sequence of entries, so operations at both ends are cheap and memory is
//! reused. An operation in the middle searches both levels and moves at most one block and the sequence of blocks: with n entries
//! about n/[`BLOCK`] words. So a peer that makes holes on purpose gains nothing.

use std::collections::VecDeque;

/// Values by key.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<V> {
    /// The blocks, none of them empty.
    blocks: VecDeque<Block<V>>,
}

/// The free memory of maps that share it.
#[derive(Clone, Debug)]
pub(crate) struct Pool<V> {
    /// Empty blocks, at most [`POOLED_MAX`].
    blocks: Vec<Block<V>>,
    /// Blocks in use.
    used: usize,
    /// Entries of all maps together.
    entries: usize,
}

type Block<V> = VecDeque<(u64, V)>;

/// The position of an entry, valid until an insertion or removal. The position after the last entry is valid, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    block: usize,
    index: usize,
}

impl<V> Ordered<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&(u64, V)> {
        self.blocks.front()?.front()
    }

    pub(crate) fn last(&self) -> Option<&(u64, V)> {
        self.blocks.back()?.back()
    }

    /// The last entry. A caller that changes the key must keep the order.
    pub(crate) fn last_mut(&mut self) -> Option<&mut (u64, V)> {
        self.blocks.back_mut()?.back_mut()
    }

    pub(crate) fn at(&self, place: Position) -> Option<&(u64, V)> {
        self.blocks.get(place.block)?.get(place.index)
    }

    /// The entry at a place. A caller that changes the key must keep the order.
    pub(crate) fn at_mut(&mut self, place: Position) -> Option<&mut (u64, V)> {
        self.blocks.get_mut(place.block)?.get_mut(place.index)
    }

    /// The first entry above `key`.
    pub(crate) fn above(&self, key: u64) -> Position {
        let count = self.blocks.len();
        if self.last().is_none_or(|last| last.0 <= key) {
            return Position { block: count, index: 0 };
        }
        if self.first().is_some_and(|first| first.0 > key) {
            return Position { block: 0, index: 0 };
        }
        // The last block that begins at or below the key, or the first block.
        let block = self.blocks.partition_point(|block| block.front().is_some_and(|first| first.0 <= key)) - 1;
        let index = self.blocks[block].partition_point(|entry| entry.0 <= key);
        if index == self.blocks[block].len() {
            Position { block: block + 1, index: 0 }
        } else {
            Position { block, index }
        }
    }

    /// The entry before a place.
    pub(crate) fn before(&self, place: Position) -> Option<Position> {
        match place.index.checked_sub(1) {
            Some(index) => Some(Position { index, ..place }),
            None => {
                let block = place.block.checked_sub(1)?;
                Some(Position { block, index: self.blocks[block].len() - 1 })
            }
        }
    }

    /// The place after that of an entry.
    pub(crate) fn after(&self, place: Position) -> Position {
        let is_last = self.blocks.get(place.block).is_none_or(|block| place.index + 1 >= block.len());
        if is_last {
            Position { block: place.block + 1, index: 0 }
        } else {
            Position { index: place.index + 1, ..place }
        }
    }

    /// Inserts an entry before the one at a place. The caller must keep the order.
    pub(crate) fn insert_at(&mut self, place: Position, key: u64, value: V, pool: &mut Pool<V>) {
        pool.entries += 1;
        // Between two blocks, the entry goes to the first one.
        let Position { block, index } = match place.block.checked_sub(1) {
            Some(before) if place.index == 0 => Position { block: before, index: self.blocks[before].len() },
            Some(_) | None => place,
        };
        let is_full = self.blocks.get(block).is_none_or(|block| block.len() == BLOCK);
        if !is_full {
            self.blocks[block].insert(index, (key, value));
            return;
        }
        let mut new = pool.take();
        let Some(full) = self.blocks.get_mut(block) else {
            new.push_back((key, value));
            self.blocks.push_back(new);
            return;
        };
        // A map that grows at its end fills its blocks; an insertion in the middle leaves room on both sides.
        let half = if index == BLOCK { BLOCK } else { BLOCK / 2 };
        new.extend(full.drain(half..));
        if half < BLOCK && index <= half {
            full.insert(index, (key, value));
        } else {
            new.insert(index - half, (key, value));
        }
        self.blocks.insert(block + 1, new);
    }

    /// Appends an entry. The caller must keep the order.
    pub(crate) fn push_last(&mut self, key: u64, value: V, pool: &mut Pool<V>) {
        pool.entries += 1;
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push_back((key, value)),
            Some(_) | None => {
                let mut block = pool.take();
                block.push_back((key, value));
                self.blocks.push_back(block);
            }
        }
    }

    /// Removes an entry. The next entry is then at its place, or at the start of the next block.
    pub(crate) fn remove_at(&mut self, place: Position, pool: &mut Pool<V>) -> Option<(u64, V)> {
        let block = self.blocks.get_mut(place.block)?;
        let removed = block.remove(place.index)?;
        pool.entries -= 1;
        if block.is_empty() {
            self.drop_block(place.block, pool);
        }
        Some(removed)
    }

    pub(crate) fn pop_first(&mut self, pool: &mut Pool<V>) -> Option<(u64, V)> {
        let block = self.blocks.front_mut()?;
        let first = block.pop_front();
        pool.entries -= 1;
        if block.is_empty() {
            self.drop_block(0, pool);
        }
        first
    }

    pub(crate) fn pop_last(&mut self, pool: &mut Pool<V>) -> Option<(u64, V)> {
        let block = self.blocks.back_mut()?;
        let last = block.pop_back();
        pool.entries -= 1;
        if block.is_empty() {
            self.drop_block(self.blocks.len() - 1, pool);
        }
        last
    }

    /// Inserts or replaces a value. Returns the previous value of the key.
    pub(crate) fn insert(&mut self, key: u64, value: V, pool: &mut Pool<V>) -> Option<V> {
        if self.last().is_none_or(|last| last.0 < key) {
            self.push_last(key, value, pool);
            return None;
        }
        let place = self.above(key);
        if let Some(before) = self.before(place)
            && let Some(entry) = self.at_mut(before)
            && entry.0 == key
        {
            return Some(std::mem::replace(&mut entry.1, value));
        }
        self.insert_at(place, key, value, pool);
        None
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.blocks.iter().flatten().map(|entry| &entry.1)
    }

    pub(crate) fn clear(&mut self, pool: &mut Pool<V>) {
        for block in self.blocks.drain(..) {
            pool.entries -= block.len();
            pool.give(block);
        }
    }

    fn drop_block(&mut self, block: usize, pool: &mut Pool<V>) {
        self.blocks.remove(block).into_iter().for_each(|block| pool.give(block));
    }
}

impl<V> Pool<V> {
    /// The number of entries in all maps that share this pool.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// The memory of all blocks in use, full or not. Free blocks are not counted: there are at most [`POOLED_MAX`].
    pub(crate) fn bytes(&self) -> u64 {
        (self.used * BLOCK * size_of::<(u64, V)>()) as u64
    }

    /// An empty block. An empty pool allocates half as many blocks as are in use, so it allocates again only when the peak use
    /// grows by a half.
    fn take(&mut self) -> Block<V> {
        if self.blocks.is_empty() {
            let count = (self.used / 2).min(POOLED_MAX);
            self.blocks.extend((0..count).map(|_| Block::with_capacity(BLOCK)));
        }
        self.used += 1;
        self.blocks.pop().unwrap_or_else(|| Block::with_capacity(BLOCK))
    }

    fn give(&mut self, mut block: Block<V>) {
        self.used = self.used.saturating_sub(1);
        if self.blocks.len() < POOLED_MAX {
            block.clear();
            self.blocks.push(block);
        }
    }
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self { blocks: VecDeque::new() }
    }
}

impl<V> Default for Pool<V> {
    fn default() -> Self {
        Self { blocks: vec![], used: 0, entries: 0 }
    }
}

/// The largest number of entries in a block: moving some hundred entries is as fast as a search.
const BLOCK: usize = 128;

/// One block per stream of a connection, as data of all streams may begin to wait at once.
const POOLED_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entries(ordered: &Ordered<u32>) -> Vec<(u64, u32)> {
        let mut place = Position { block: 0, index: 0 };
        let mut entries = vec![];
        while let Some(&entry) = ordered.at(place) {
            assert_eq!(ordered.after(place), ordered.above(entry.0));
            entries.push(entry);
            place = ordered.after(place);
        }
        entries
    }

    /// However long a stream is, it takes only a few blocks.
    #[test]
    fn memory_is_used_again() {
        let (mut ordered, mut pool) = (Ordered::default(), Pool::default());
        for key in 0..100_000 {
            ordered.insert(key, (), &mut pool);
            if key >= 200 {
                assert_eq!(ordered.pop_first(&mut pool), Some((key - 200, ())));
            }
            assert!(ordered.blocks.len() + pool.blocks.len() <= 4);
        }
    }

    proptest! {
        /// For any operations the map equals that of the standard library.
        #[test]
        fn it_is_an_ordered_map(runs in prop::collection::vec((0..6u8, 0..2000u64, 1..300u64), 0..60)) {
            let (mut ordered, mut pool, mut map) = (Ordered::default(), Pool::default(), BTreeMap::new());
            for (what, from, count) in runs {
                for key in from..from + count {
                    match what {
                        0 => prop_assert_eq!(ordered.insert(key, 1, &mut pool), map.insert(key, 1)),
                        1 => {
                            let key = from + (key * 7919) % 1000;
                            prop_assert_eq!(ordered.insert(key, 2, &mut pool), map.insert(key, 2));
                        }
                        2 if key % 3 == 0 => prop_assert_eq!(ordered.pop_first(&mut pool), map.pop_first()),
                        3 if key % 3 == 0 => prop_assert_eq!(ordered.pop_last(&mut pool), map.pop_last()),
                        4 => {
                            let place = ordered.above(key);
                            let above = map.range(key + 1..).next();
                            prop_assert_eq!(ordered.at(place).copied(), above.map(|(&key, &value)| (key, value)));
                            let before = ordered.before(place).and_then(|place| ordered.remove_at(place, &mut pool));
                            let expected = map.range(..=key).next_back().map(|(&key, &value)| (key, value));
                            prop_assert_eq!(before, expected);
                            if let Some((key, _)) = expected {
                                map.remove(&key);
                            }
                        }
                        5 if key == from && key % 16 == 0 => {
                            ordered.clear(&mut pool);
                            map.clear();
                        }
                        _ => {}
                    }
                }
                prop_assert_eq!(ordered.first().copied(), map.iter().next().map(|(&key, &value)| (key, value)));
                prop_assert!(ordered.blocks.iter().all(|block| (1..=BLOCK).contains(&block.len())));
                prop_assert_eq!(entries(&ordered), map.clone().into_iter().collect::<Vec<_>>());
                prop_assert_eq!(ordered.values().count(), map.len());
                prop_assert_eq!(pool.entries(), map.len());
            }
        }
    }
}

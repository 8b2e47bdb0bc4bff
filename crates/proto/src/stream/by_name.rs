//! A value for each SID that the peer has used.
//!
//! The values of SIDs below 256 are one array, up to the highest used one, so a lookup is a single load. The others are in
//! blocks, which are allocated when one of their SIDs is first used. If a peer begins with its last SID, that costs one block and
//! the array of blocks.

use crate::segment::Sid;

/// Values by SID.
#[derive(Clone, Debug)]
pub(crate) struct ByName<T> {
    first: Vec<T>,
    /// The blocks of further SIDs. A block without used SIDs is empty.
    further: Vec<Box<[T]>>,
}

impl<T> ByName<T> {
    pub(crate) fn new() -> Self {
        Self { first: vec![], further: vec![] }
    }

    pub(crate) fn get(&self, sid: Sid) -> Option<&T> {
        if sid.index() < self.first.len() { Some(&self.first[sid.index()]) } else { self.get_further(sid) }
    }

    pub(crate) fn get_mut(&mut self, sid: Sid) -> Option<&mut T> {
        if sid.index() < self.first.len() { Some(&mut self.first[sid.index()]) } else { self.get_further_mut(sid) }
    }

    /// The value of a SID. It is created if necessary, perhaps together with those of other SIDs.
    pub(crate) fn get_or_make(&mut self, sid: Sid, make: impl Fn(Sid) -> T) -> &mut T {
        if sid.index() < self.first.len() { &mut self.first[sid.index()] } else { self.make(sid, make) }
    }

    /// All values, with their SIDs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Sid, &T)> {
        let named = |first: usize| move |(index, value)| (Sid::new((first + index) as u16), value);
        let row = self.first.iter().enumerate().map(named(0));
        let blocks = self.further.iter().enumerate();
        row.chain(blocks.flat_map(move |(block, values)| values.iter().enumerate().map(named(ROW + block * BLOCK))))
    }

    /// For tests: all values, without their SIDs.
    #[cfg(test)]
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    fn get_further(&self, sid: Sid) -> Option<&T> {
        let (block, index) = place(sid)?;
        self.further.get(block)?.get(index)
    }

    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    fn get_further_mut(&mut self, sid: Sid) -> Option<&mut T> {
        let (block, index) = place(sid)?;
        self.further.get_mut(block)?.get_mut(index)
    }

    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    fn make(&mut self, sid: Sid, make: impl Fn(Sid) -> T) -> &mut T {
        let named = |index: usize| make(Sid::new(index as u16));
        let Some((block, index)) = place(sid) else {
            self.first.extend((self.first.len()..=sid.index()).map(named));
            return &mut self.first[sid.index()];
        };
        if self.further.len() <= block {
            self.further.resize_with(block + 1, Box::default);
        }
        let values = &mut self.further[block];
        if values.is_empty() {
            let begin = sid.index() - index;
            *values = (begin..begin + BLOCK).map(named).collect();
        }
        &mut values[index]
    }
}

/// The block of a SID above the array, and the position in it.
fn place(sid: Sid) -> Option<(usize, usize)> {
    let further = sid.index().checked_sub(ROW)?;
    Some((further / BLOCK, further % BLOCK))
}

/// The control stream, and the SIDs of page 0.
const ROW: usize = 1 + Sid::FIRST_PAGE_MAX as usize;

/// Handshakes grant streams in steps of this size. All further SIDs take 240 blocks, each with two words in the array of blocks.
const BLOCK: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_name_creates_no_more_than_neighbours() {
        for name in [0, 1, 255, 256, 271, 272, 4079, 4080] {
            let mut values = ByName::new();
            assert_eq!(values.get(Sid::new(name)), None);
            *values.get_or_make(Sid::new(name), Sid::number) += 10_000;
            assert_eq!(values.get(Sid::new(name)), Some(&(10_000 + name)));
            assert_eq!(values.get_or_make(Sid::new(name), Sid::number), &(10_000 + name), "it is made once");
            assert!(values.iter().all(|(sid, value)| values.get(sid) == Some(value)));
            let most = if name < 256 { 1 + usize::from(name) } else { 16 };
            assert_eq!(values.values().count(), most, "{name}");
            assert!(
                values
                    .values()
                    .filter(|value| **value < 10_000)
                    .all(|value| values.get(Sid::new(*value)) == Some(value))
            );
        }
    }
}

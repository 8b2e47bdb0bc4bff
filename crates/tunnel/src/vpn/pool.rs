//! The addresses that a server gives its clients.
//!
//! A client is a key. Where it looks first follows from the key, so that it mostly has the same address after a restart of the server; while the server
//! runs, a client that comes back always gets the address that it had, unless that was needed for another one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anabranch::PublicKey;

/// Numbers of hosts, each for one key.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The numbers are 1 to this, without the server's.
    most: u32,
    /// The server's own number.
    taken: u32,
    by_key: BTreeMap<PublicKey, u32>,
    by_number: BTreeMap<u32, Held>,
    /// Counts departures.
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    key: PublicKey,
    /// When the client has left; `None` while it is there.
    left: Option<u64>,
}

impl Pool {
    /// The numbers from 1 to `most`, except `taken`.
    pub(crate) fn new(most: u32, taken: u32) -> Self {
        Self { most: most.min(CLIENTS_MAX), taken, by_key: BTreeMap::new(), by_number: BTreeMap::new(), clock: 0 }
    }

    /// The number for a client. `None` if all are in use.
    pub(crate) fn take(&mut self, key: PublicKey) -> Option<u32> {
        if let Some(&number) = self.by_key.get(&key) {
            self.hold(number, key);
            return Some(number);
        }
        let first = first(key, self.most);
        let free = (0..self.most)
            .map(|step| 1 + (first + step) % self.most)
            .find(|number| *number != self.taken && !self.by_number.contains_key(number));
        let number = free.or_else(|| {
            let gone = self.by_number.iter().filter_map(|(number, held)| Some((held.left?, *number)));
            let (_, number) = gone.min()?;
            self.by_number.remove(&number).map(|held| self.by_key.remove(&held.key));
            Some(number)
        })?;
        self.hold(number, key);
        Some(number)
    }

    fn hold(&mut self, number: u32, key: PublicKey) {
        self.by_key.insert(key, number);
        self.by_number.insert(number, Held { key, left: None });
    }

    /// The client of this key is gone. Its number is kept for it as long as others are free.
    pub(crate) fn leave(&mut self, key: PublicKey) {
        self.clock += 1;
        if let Some(held) = self.by_key.get(&key).and_then(|number| self.by_number.get_mut(number)) {
            held.left = Some(self.clock);
        }
    }
}

fn first(key: PublicKey, most: u32) -> u32 {
    let mut hasher = DefaultHasher::new();
    key.to_string().hash(&mut hasher);
    (hasher.finish() % u64::from(most.max(1))) as u32
}

/// The clients of a server at most: each may have packets of 2 MB waiting.
pub(crate) const CLIENTS_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anabranch::SecretKey;

    use super::*;

    fn keys(count: usize) -> Vec<PublicKey> {
        (0..count).map(|_| SecretKey::generate().unwrap().public()).collect()
    }

    #[test]
    fn each_client_gets_an_address_of_its_own() {
        let mut pool = Pool::new(254, 1);
        let keys = keys(254);
        let numbers: BTreeSet<_> = keys[..253].iter().map(|key| pool.take(*key).unwrap()).collect();
        assert_eq!((numbers.len(), numbers.first(), numbers.last()), (253, Some(&2), Some(&254)));
        assert_eq!(pool.take(keys[253]), None, "all are in use");
        assert!(pool.take(keys[0]).is_some(), "who has one keeps it");
    }

    #[test]
    fn client_that_comes_back_gets_its_address_again() {
        let mut pool = Pool::new(254, 1);
        let keys = keys(20);
        let before: Vec<_> = keys.iter().map(|key| pool.take(*key)).collect();
        keys.iter().for_each(|key| pool.leave(*key));
        let after: Vec<_> = keys.iter().rev().map(|key| pool.take(*key)).collect();
        assert!(before.iter().eq(after.iter().rev()));
        assert_eq!(Pool::new(254, 1).take(keys[0]), before[0], "mostly also of a server that was restarted");
    }

    #[test]
    fn address_of_who_left_first_is_given_to_another() {
        let mut pool = Pool::new(3, 1);
        let keys = keys(4);
        let numbers: Vec<_> = keys[..2].iter().map(|key| pool.take(*key).unwrap()).collect();
        pool.leave(keys[1]);
        pool.leave(keys[0]);
        assert_eq!(pool.take(keys[2]), Some(numbers[1]));
        assert_eq!(pool.take(keys[3]), Some(numbers[0]));
        assert_eq!(pool.take(keys[0]), None);
    }

    #[test]
    fn pool_without_room_gives_nothing() {
        assert_eq!(Pool::new(0, 1).take(keys(1)[0]), None);
        assert_eq!(Pool::new(1, 1).take(keys(1)[0]), None);
    }
}

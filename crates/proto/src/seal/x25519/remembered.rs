//! Products of X25519 in a cache, for fuzzing only. A fuzzer uses the same few keys again and again, and with its instrumentation a
//! multiplication on the curve takes longer than everything else. A multiplication is a pure function, so the cache is exact.

use std::cell::RefCell;
use std::collections::BTreeMap;

type Key = [u8; 32];

thread_local! {
    /// The product of each secret key with each public key, and with the base point.
    static PRODUCTS: RefCell<BTreeMap<(Key, Option<Key>), Key>> = const { RefCell::new(BTreeMap::new()) };
}

/// The size of the cache: about 10 MB.
const MOST: usize = 1 << 16;

/// The product of these keys, calculated if it is not there.
pub(super) fn product(of: (Key, Option<Key>), calculated: impl FnOnce() -> Key) -> Key {
    PRODUCTS.with_borrow_mut(|products| {
        if products.len() >= MOST {
            products.clear();
        }
        *products.entry(of).or_insert_with(calculated)
    })
}

//! X25519 with a cache, for fuzzing only. A fuzzer uses the same few keys again and again, and with its instrumentation a
//! multiplication on the curve takes longer than everything else. A multiplication is a pure function, so the cache is exact.

use std::cell::RefCell;
use std::collections::BTreeMap;

use snow::Error;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Random};

type Key = [u8; 32];

thread_local! {
    /// The product of each secret key with each public key, and with the base point.
    static PRODUCTS: RefCell<BTreeMap<(Key, Option<Key>), Key>> = const { RefCell::new(BTreeMap::new()) };
}

/// The size of the cache: about 10 MB.
const MOST: usize = 1 << 16;

/// A pair of keys.
#[derive(Default)]
pub(super) struct X25519 {
    secret: Key,
    public: Key,
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, secret: &[u8]) {
        self.secret.copy_from_slice(secret);
        self.public = product(self.secret, None);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut secret = Key::default();
        rng.try_fill_bytes(&mut secret)?;
        self.set(&secret);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        out[..32].copy_from_slice(&product(self.secret, Some(*public)));
        Ok(())
    }
}

fn product(secret: Key, public: Option<Key>) -> Key {
    PRODUCTS.with_borrow_mut(|products| {
        if products.len() >= MOST {
            products.clear();
        }
        *products.entry((secret, public)).or_insert_with(|| calculated(&secret, public.as_ref()))
    })
}

fn calculated(secret: &Key, public: Option<&Key>) -> Key {
    let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the feature is on");
    dh.set(secret);
    let mut out = Key::default();
    match public {
        Some(public) => dh.dh(public, &mut out).expect("X25519 has a product of any two keys"),
        None => out.copy_from_slice(dh.pubkey()),
    }
    out
}

//! For which initiations a listener computes a handshake, and which of them came before.
//!
//! The listeners of all shards of a socket share one gate: together they compute no more handshakes than one would, a cookie of one
//! is good for all, and what one has accepted is a replay for all others. Its lock is held for a hash at most, never for a handshake.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_units::Time;

use super::buckets::{Buckets, Network};
use super::cookie::CookieJar;
use super::initiations::{Initiated, Timestamps};
use super::noise::{Entropy, TAG};
use super::{ListenerConfig, Refusal};
use crate::path::Address;

/// The gate of one or several listeners.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    cookies: CookieJar,
    timestamps: Timestamps,
    /// Handshakes for initiators without a cookie, in total and per network. Beyond this rate a cookie is requested.
    unproven: Buckets,
    unproven_each: Buckets,
    /// Handshakes for initiators with a cookie. Beyond this rate initiations are dropped.
    proven: Buckets,
    proven_each: Buckets,
}

/// The mac2 of an initiation, and the bytes that it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof<'a> {
    pub(super) covered: &'a [u8],
    pub(super) mac2: &'a [u8; TAG],
}

/// What an initiation gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// A handshake. Its cookie has proved the address, or it needed none.
    Handshake { is_proven: bool },
    /// This cookie.
    Cookie([u8; TAG]),
}

impl Gate {
    pub(super) fn new(now: Time, config: &ListenerConfig, entropy: &mut Entropy) -> Self {
        Self(Arc::new(Mutex::new(State {
            cookies: CookieJar::new(now, entropy),
            timestamps: Timestamps::new(config.clients),
            unproven: Buckets::new(config.unproven),
            unproven_each: Buckets::new(config.each_network),
            proven: Buckets::new(config.proven),
            proven_each: Buckets::new(config.each_network),
        })))
    }

    /// Takes the tokens for a handshake. An initiator with a cookie gets more of them, also if its listener is crowded.
    pub(super) fn pass(
        &self,
        now: Time,
        address: Address,
        proof: Proof<'_>,
        is_crowded: bool,
        entropy: &mut Entropy,
    ) -> Result<Pass, Refusal> {
        let mut state = self.lock();
        let is_proven =
            *proof.mac2 != [0; TAG] && state.cookies.is_right(now, address, proof.covered, proof.mac2, entropy);
        if state.may_calculate(now, Network::of(address.address), is_proven, is_crowded) {
            return Ok(Pass::Handshake { is_proven });
        }
        if is_proven { Err(Refusal::TooMany) } else { Ok(Pass::Cookie(state.cookies.make(now, address, entropy))) }
    }

    /// Records an initiation. Returns whether it is new.
    pub(super) fn insert(&self, now: Time, initiated: &Initiated) -> bool {
        self.lock().timestamps.insert(now, initiated.client, initiated.timestamp)
    }

    /// An initiation led to no connection: its copy may be accepted again.
    pub(super) fn remove(&self, initiated: &Initiated) {
        self.lock().timestamps.remove(initiated);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_calculate(&mut self, now: Time, network: Network, is_proven: bool, is_crowded: bool) -> bool {
        let (all, each) = if is_proven {
            (&mut self.proven, &mut self.proven_each)
        } else {
            (&mut self.unproven, &mut self.unproven_each)
        };
        let may = (is_proven || !is_crowded) && all.has(now, Network::EVERYBODY) && each.take(now, network);
        if may {
            all.take(now, Network::EVERYBODY);
        }
        may
    }
}

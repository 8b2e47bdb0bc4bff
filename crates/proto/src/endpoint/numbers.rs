//! The numbers of connections, by which their datagrams are told apart.
//!
//! Several endpoints with one key may share a socket, each with some of the connections, so that a driver can run them on several
//! cores. Then the upper bits of an index are the number of the endpoint, its *shard*. An initiation has no index yet, so any shard
//! may answer it; but its copies must reach the same one, which recognises them.

use anabranch_units::Time;

use super::{Endpoint, EndpointConfig};
use crate::seal::{Recipient, Seal, SecretKey};

/// The shard to which a datagram belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The one with this number. A peer may send any number, also one that no shard has.
    Shard(usize),
    /// One for all copies of this initiation, which are recognised by the bytes of their ephemeral key.
    Initiation([u8; 32]),
    /// All: a stateless reset.
    All,
}

impl Endpoint {
    /// The shards of a socket, all with this static key, one for each seed: 32 secret random bytes that are used for nothing else. All
    /// together have the limits of these settings.
    ///
    /// # Panics
    /// If there are more than [`SHARDS_MAX`].
    pub fn divided(now: Time, secret: &SecretKey, mut config: EndpointConfig, seeds: &[[u8; 32]]) -> Vec<Self> {
        assert!(seeds.len() <= SHARDS_MAX, "{} shards of at most {SHARDS_MAX}", seeds.len());
        if let Some(server) = &mut config.server {
            // Each shard has its own half-open connections.
            server.listener.half_open = server.listener.half_open.div_ceil(seeds.len().max(1));
        }
        let mut shards: Vec<Self> = vec![];
        for (shard, seed) in seeds.iter().enumerate() {
            let mut endpoint = Self::new(now, secret.clone(), config.clone(), *seed);
            if seeds.len() > 1 {
                endpoint.mask = endpoint.mask & (NUMBERS_OF_SHARD as u32 - 1) | (shard as u32) << SHARD_AT;
                endpoint.numbers_max = NUMBERS_OF_SHARD;
            }
            if let Some(first) = shards.first() {
                endpoint.join(shard, first);
            }
            shards.push(endpoint);
        }
        shards
    }

    /// Counts together with the first shard from now on, as this one.
    fn join(&mut self, shard: usize, first: &Self) {
        self.held.join(shard, &first.held);
        self.resets.join(&first.resets);
        if let (Some(listener), Some(first)) = (&mut self.listener, &first.listener) {
            listener.join(first);
        }
    }

    /// The shard to which a datagram belongs; `None` if the datagram is not of this protocol.
    pub fn destination(datagram: &[u8]) -> Option<Destination> {
        Some(match Seal::recipient(datagram)? {
            Recipient::Connection(number) => Destination::Shard((number >> SHARD_AT) as usize),
            Recipient::Listener => Destination::Initiation(Seal::ephemeral(datagram)?),
            Recipient::Reset => Destination::All,
        })
    }

    /// A free number; `None` at the limit of connections.
    pub(super) fn claim(&mut self) -> Option<u32> {
        let count = self.slots.len();
        // Freed numbers are not reused as long as there are new ones.
        let half_open_max = self.config.server.as_ref().map_or(0, |server| server.listener.half_open);
        // One may be about to be refused, another about to give way.
        let most = self.config.connections_max.saturating_add(half_open_max).saturating_add(2);
        if count < most.min(self.numbers_max) && (self.free.len() < NUMBERS_RESTING || self.free.is_empty()) {
            self.slots.push(None);
            return Some(count as u32);
        }
        self.free.pop_front()
    }
}

/// The largest number of shards of a socket.
pub const SHARDS_MAX: usize = 64;

/// The place of the shard in the 24 bits of a number.
const SHARD_AT: u32 = 18;

/// The connections that the index of a shard can distinguish.
const NUMBERS_OF_SHARD: usize = 1 << SHARD_AT;

/// The number of connections that an index can distinguish.
pub(super) const NUMBERS: usize = 1 << 24;

/// The number of free numbers before the first is reused.
const NUMBERS_RESTING: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_fill_the_number() {
        assert_eq!(SHARDS_MAX * NUMBERS_OF_SHARD, NUMBERS);
    }
}

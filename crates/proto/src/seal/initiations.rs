//! Initiations seen before. A copy of a half-open connection's initiation is accepted, because the response may have been lost.
//! Any other copy is a replay, which its timestamp reveals.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_units::{Span, Time};

use super::hello::Timestamp;
use super::key::PublicKey;

/// Half-open connections. Each is in all three maps.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    by_age: BTreeMap<(Time, u32), Initiated>,
    by_number: BTreeMap<u32, Time>,
    by_ephemeral: BTreeMap<[u8; 32], u32>,
}

/// An accepted initiation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initiated {
    pub(super) ephemeral: [u8; 32],
    pub(super) client: PublicKey,
    pub(super) timestamp: Timestamp,
}

/// The newest timestamps of each key.
#[derive(Debug)]
pub(super) struct Timestamps {
    clients_max: usize,
    clients: BTreeMap<PublicKey, Client>,
    /// Keys by their last use.
    by_use: BTreeSet<(Time, PublicKey)>,
}

#[derive(Debug)]
struct Client {
    used: Time,
    timestamps: BTreeSet<Timestamp>,
    /// Timestamps up to this one are refused.
    least: Option<Timestamp>,
}

impl HalfOpen {
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.by_number.contains_key(&number)
    }

    /// The connection opened by the initiation with this ephemeral key.
    pub(super) fn find(&self, ephemeral: &[u8; 32]) -> Option<u32> {
        self.by_ephemeral.get(ephemeral).copied()
    }

    pub(super) fn insert(&mut self, now: Time, number: u32, initiated: Initiated) {
        self.by_age.insert((now, number), initiated);
        self.by_number.insert(number, now);
        self.by_ephemeral.insert(initiated.ephemeral, number);
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Initiated> {
        let since = self.by_number.remove(&number)?;
        let initiated = self.by_age.remove(&(since, number))?;
        self.by_ephemeral.remove(&initiated.ephemeral);
        Some(initiated)
    }

    /// The oldest half-open connection.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.first_key_value().map(|((_, number), _)| *number)
    }

    /// The oldest half-open connection, if it is older than `life`.
    pub(super) fn expired(&self, now: Time, life: Span) -> Option<u32> {
        self.by_age
            .first_key_value()
            .filter(|((since, _), _)| now.since(*since) >= life)
            .map(|((_, number), _)| *number)
    }
}

impl Timestamps {
    pub(super) fn new(clients_max: usize) -> Self {
        Self { clients_max, clients: BTreeMap::new(), by_use: BTreeSet::new() }
    }

    /// Records a timestamp of this key. Returns whether it is new.
    pub(super) fn insert(&mut self, now: Time, key: PublicKey, timestamp: Timestamp) -> bool {
        let client = self.clients.entry(key).or_insert(Client { used: now, timestamps: BTreeSet::new(), least: None });
        if client.least.is_some_and(|least| timestamp <= least) || !client.timestamps.insert(timestamp) {
            return false;
        }
        if client.timestamps.len() > TIMESTAMPS_MAX {
            client.least = client.timestamps.pop_first();
        }
        self.by_use.remove(&(client.used, key));
        client.used = now;
        self.by_use.insert((now, key));
        if self.clients.len() > self.clients_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.clients.remove(&oldest);
        }
        true
    }

    /// An initiation led to no connection: its copy may be accepted again.
    pub(super) fn remove(&mut self, initiated: &Initiated) {
        if let Some(client) = self.clients.get_mut(&initiated.client) {
            client.timestamps.remove(&initiated.timestamp);
        }
    }
}

/// The number of timestamps stored per key: so many connections of a client may overtake each other.
const TIMESTAMPS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::secs;

    const CLIENT: PublicKey = PublicKey([1; 32]);

    fn at(millis: u64) -> Timestamp {
        Timestamp::since_1970(Span::from_millis(millis))
    }

    #[test]
    fn connections_may_overtake_each_other_and_none_counts_twice() {
        let mut timestamps = Timestamps::new(10);
        for millis in [5, 3, 4, 100] {
            assert!(timestamps.insert(secs(0), CLIENT, at(millis)), "{millis}");
            assert!(!timestamps.insert(secs(0), CLIENT, at(millis)), "{millis} again");
        }
        assert!(timestamps.insert(secs(0), PublicKey([2; 32]), at(5)), "it is another's");
    }

    #[test]
    fn timestamp_older_than_all_known_is_refused() {
        let mut timestamps = Timestamps::new(10);
        assert!((0..65).all(|number| timestamps.insert(secs(0), CLIENT, at(1000 + number))));
        assert!(!timestamps.insert(secs(0), CLIENT, at(1000)), "it came, and was forgotten");
        assert!(!timestamps.insert(secs(0), CLIENT, at(999)));
        assert_eq!(timestamps.clients[&CLIENT].timestamps.len(), 64);
    }

    #[test]
    fn oldest_client_is_forgotten_first() {
        let mut timestamps = Timestamps::new(2);
        for (second, key) in [(0, 1), (1, 2), (2, 1), (3, 3)] {
            assert!(timestamps.insert(secs(second), PublicKey([key; 32]), at(second)));
        }
        assert_eq!(timestamps.clients.keys().map(|key| key.0[0]).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(timestamps.by_use.len(), 2);
    }

    #[test]
    fn an_initiation_of_which_nothing_came_may_come_again() {
        let mut timestamps = Timestamps::new(2);
        timestamps.insert(secs(0), CLIENT, at(1));
        timestamps.remove(&Initiated { ephemeral: [0; 32], client: CLIENT, timestamp: at(1) });
        assert!(timestamps.insert(secs(0), CLIENT, at(1)));
    }
}

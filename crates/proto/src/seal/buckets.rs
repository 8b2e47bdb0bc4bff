//! Token buckets: rate limits per network.
//!
//! A bucket is stored as the time at which it is full again. Taking a token moves that time by the time of one token. If the
//! result is further ahead than the time of all tokens, the bucket is empty. A full bucket needs no memory.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_units::{NANO, Span, Time};

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The sustained rate, per second.
    pub per_second: u32,
    /// The size of a burst.
    pub burst: u32,
}

/// A bucket for each network.
#[derive(Debug)]
pub(super) struct Buckets {
    pace: Pace,
    /// When each bucket is full again; and the same, sorted by time.
    full_at: BTreeMap<Network, Time>,
    by_time: BTreeSet<(Time, Network)>,
}

/// The addresses of one owner: an IPv4 address, or the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network(u128);

impl Network {
    /// The network of an address. Addresses below 2^32 are IPv4, whether mapped into IPv6 ([rfc-4291] sec. 2.5.5) or not.
    pub(crate) fn of(address: u128) -> Self {
        let is_v4 = matches!(address >> 32, 0 | 0xffff);
        Self(if is_v4 { address } else { address & !u128::from(u64::MAX) })
    }

    /// All networks together.
    pub(super) const EVERYBODY: Self = Self(u128::MAX);
}

impl Buckets {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, full_at: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Whether there is a token.
    pub(super) fn has(&self, now: Time, network: Network) -> bool {
        if self.pace.per_second == 0 {
            return false;
        }
        let full_at = self.full_at.get(&network).map_or(now, |at| *at);
        full_at.since(now).saturating_add(self.token()) <= self.token().saturating_mul(self.pace.burst.into())
    }

    /// Takes a token; returns whether there was one.
    pub(super) fn take(&mut self, now: Time, network: Network) -> bool {
        if !self.has(now, network) {
            return false;
        }
        while let Some(&(at, oldest)) = self.by_time.first()
            && (at <= now || self.full_at.len() >= NETWORKS_MAX && !self.full_at.contains_key(&network))
        {
            // It is full again or, at the limit of networks, fuller than any other.
            self.by_time.pop_first();
            self.full_at.remove(&oldest);
        }
        let before = self.full_at.get(&network).copied();
        if let Some(before) = before {
            self.by_time.remove(&(before, network));
        }
        let full_at = before.unwrap_or(now).saturating_add(self.token());
        self.full_at.insert(network, full_at);
        self.by_time.insert((full_at, network));
        true
    }

    /// The time of one token.
    fn token(&self) -> Span {
        Span::from_ticks(NANO / u64::from(self.pace.per_second.max(1)))
    }
}

/// The limit on networks. At the default rate of all together, no more networks than this can have an unfilled bucket.
const NETWORKS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(count: u64) -> Time {
        Time::ZERO.saturating_add(Span::from_millis(count))
    }

    const ONE: Network = Network(1);

    #[test]
    fn a_burst_and_then_the_pace() {
        let mut buckets = Buckets::new(Pace { per_second: 10, burst: 3 });
        let mut taken = |at: u64| (0..10).filter(|_| buckets.take(millis(at), ONE)).count();
        assert_eq!([taken(0), taken(99), taken(100), taken(150), taken(400), taken(9000)], [3, 0, 1, 0, 3, 3]);
    }

    #[test]
    fn bucket_without_pace_gives_nothing() {
        let mut buckets = Buckets::new(Pace { per_second: 0, burst: 5 });
        assert!(!buckets.take(millis(1_000_000), ONE));
    }

    #[test]
    fn one_network_takes_nothing_of_another() {
        let mut buckets = Buckets::new(Pace { per_second: 10, burst: 2 });
        assert!(buckets.take(millis(0), ONE) && buckets.take(millis(0), ONE) && !buckets.take(millis(0), ONE));
        assert!(buckets.take(millis(0), Network(2)));
    }

    #[test]
    fn an_owner_is_one_network() {
        let v6 = 0x2001_0db8_0001_0002_u128 << 64;
        assert_eq!(Network::of(v6 | 1), Network::of(v6 | u128::from(u64::MAX)));
        assert_ne!(Network::of(v6), Network::of(v6 + (1 << 64)));
        let mapped = 0xffff_c000_0201;
        assert_ne!(Network::of(mapped), Network::of(mapped + 1));
        assert_ne!(Network::of(1), Network::of(2));
    }

    #[test]
    fn full_buckets_take_no_room_and_others_not_too_much() {
        let mut buckets = Buckets::new(Pace { per_second: 10, burst: 2 });
        for number in 0..20_000 {
            assert!(buckets.take(millis(0), Network(number)));
        }
        assert_eq!((buckets.full_at.len(), buckets.by_time.len()), (8192, 8192));
        assert!(buckets.take(millis(100), ONE));
        assert_eq!((buckets.full_at.len(), buckets.by_time.len()), (1, 1));
    }
}

//! Who holds a server's TCP connections.
//!
//! A client may hold as many TCP connections as are still free, and the clients of one network together three times as many. So
//! the first client gets half of all, and whoever comes later always gets some: with several greedy clients all shares are equal.
//! This is the dynamic threshold of shared memories ([choudhury-1998]). It needs no number of clients.
//!
//! A client is a public key. Keys cost nothing, so networks count, too; many clients may share an address, so networks alone would
//! not do.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::PublicKey;

/// The TCP connections that a server has for all of its clients. Clones are handles of the same count.
#[derive(Clone, Debug)]
pub struct Shares {
    most: usize,
    held: Arc<Mutex<Held>>,
}

/// A client, and the network from which it has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) key: PublicKey,
    /// An IPv4 address, or the first 64 bits of an IPv6 address.
    network: Ipv6Addr,
}

/// The TCP connections of each client and each network that has any.
#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_key: BTreeMap<PublicKey, usize>,
    by_network: BTreeMap<Ipv6Addr, usize>,
}

/// A TCP connection of a client; it counts while this exists.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    client: Client,
}

impl Shares {
    /// At most so many TCP connections of all clients together, listeners for clients included.
    pub fn new(most: usize) -> Self {
        Self { most, held: Arc::default() }
    }

    /// Counts a TCP connection of this client; `None` if there is no room for it.
    pub(crate) fn take(&self, client: Client) -> Option<Share> {
        let mut held = self.lock();
        let free = self.most.saturating_sub(held.all);
        let of_key = held.by_key.get(&client.key).copied().unwrap_or(0);
        let of_network = held.by_network.get(&client.network).copied().unwrap_or(0);
        if of_key >= free || of_network >= free.saturating_mul(NETWORK_PART) {
            return None;
        }
        held.all += 1;
        held.by_key.insert(client.key, of_key + 1);
        held.by_network.insert(client.network, of_network + 1);
        Some(Share { shares: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Shares {
    /// Without a limit, for an end that has a single client.
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Client {
    pub(crate) fn new(key: PublicKey, address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => (u128::from(address) & !u128::from(u64::MAX)).into(),
        };
        Self { key, network }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        held.all -= 1;
        release(&mut held.by_key, self.client.key);
        release(&mut held.by_network, self.client.network);
    }
}

fn release<T: Ord>(counts: &mut BTreeMap<T, usize>, owner: T) {
    match counts.get_mut(&owner) {
        Some(count) if *count > 1 => *count -= 1,
        _ => _ = counts.remove(&owner),
    }
}

/// An office behind one address has several clients: together they may hold three quarters of all.
const NETWORK_PART: usize = 3;

#[cfg(test)]
mod tests {
    use anabranch::SecretKey;

    use super::*;

    fn client(address: &str) -> Client {
        Client::new(SecretKey::generate().unwrap().public(), address.parse().unwrap())
    }

    /// Takes as many as there are.
    fn take_all(shares: &Shares, client: Client) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(client)).collect()
    }

    /// Closed form: with a part of one, the nth client of its own network gets half of what the earlier ones left.
    #[test]
    fn clients_take_half_of_what_is_free_each() {
        let shares = Shares::new(64);
        let held: Vec<_> = (1..=4).map(|number| take_all(&shares, client(&format!("10.0.0.{number}")))).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4]);
        let last = client("10.0.0.9");
        drop(held);
        assert_eq!(take_all(&shares, last).len(), 32, "what was held is free again");
        let held = shares.lock();
        assert_eq!((held.all, held.by_key.len(), held.by_network.len()), (0, 0, 0));
    }

    /// Closed form: the network's clients stop where they hold three quarters.
    #[test]
    fn keys_of_one_network_leave_a_quarter_to_others() {
        let addresses: [fn(u32) -> String; 3] =
            [|_| "10.0.0.1".into(), |_| "::ffff:10.0.0.1".into(), |number| format!("2001:db8::{number:x}")];
        for of in addresses {
            let shares = Shares::new(64);
            let held: Vec<_> = (1..=40).flat_map(|number: u32| take_all(&shares, client(&of(number)))).collect();
            assert_eq!(held.len(), 48);
            assert_eq!(take_all(&shares, client("10.0.0.2")).len(), 8);
        }
    }

    #[test]
    fn shares_without_a_limit_have_room_for_all() {
        let shares = Shares::default();
        let one = client("10.0.0.1");
        let held: Vec<_> = (0..5000).map(|_| shares.take(one).unwrap()).collect();
        assert_eq!(held.len(), 5000);
    }
}

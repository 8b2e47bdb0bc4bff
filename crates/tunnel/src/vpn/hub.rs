//! The server's side: a device and a network that its clients share.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::PublicKey;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::carrier::Streams;
use super::ip_network::IpNetwork;
use super::lane::Lane;
use super::lease::{Address, Lease};
use super::packet::Header;
use super::pool::Pool;
use super::{Device, MTU_MIN, PACKET_MAX};

/// The virtual network of a server. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Hub {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The server's own addresses, at most one of a family.
    own: Vec<IpNetwork>,
    state: Mutex<State>,
    /// Packets for the device.
    sink: mpsc::Sender<Bytes>,
    /// The other end of `sink`, until [`Hub::run`] takes it.
    source: Mutex<Option<mpsc::Receiver<Bytes>>>,
    /// The least MTU of all clients has changed.
    mtu: tokio::sync::watch::Sender<u16>,
}

#[derive(Debug)]
struct State {
    pool: Pool,
    /// By each address of the client.
    lanes: BTreeMap<IpAddr, Arc<Lane>>,
    mtus: BTreeMap<PublicKey, u16>,
}

/// A client's place. It is given up when this is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    hub: Hub,
    key: PublicKey,
    pub(crate) lease: Lease,
    lane: Arc<Lane>,
}

impl Hub {
    /// A network in which the server has these addresses, one of a family. `None` if they are more, none, not private, or their networks have no room for a
    /// client.
    pub fn new(own: &[IpNetwork]) -> Option<Self> {
        let is_good = |network: &IpNetwork| {
            let is_only = own.iter().filter(|other| other.is_ipv4() == network.is_ipv4()).count() == 1;
            let number = number_in(network);
            is_only && network.is_private() && network.hosts() >= 2 && (1..=network.hosts()).contains(&number)
        };
        if own.is_empty() || !own.iter().all(is_good) {
            return None;
        }
        // A client has the same number in both networks, so the server has, too, or none of the clients' numbers.
        let hosts = own.iter().map(IpNetwork::hosts).min()?;
        let taken = number_in(own.first()?);
        let is_same = own.iter().all(|network| number_in(network) == taken);
        let pool =
            is_same.then(|| Pool::new(u32::try_from(hosts).unwrap_or(u32::MAX), taken.try_into().unwrap_or(0)))?;
        let (sink, source) = mpsc::channel(WAITING_MAX);
        let state = State { pool, lanes: BTreeMap::new(), mtus: BTreeMap::new() };
        let shared = Shared {
            own: own.to_vec(),
            state: Mutex::new(state),
            sink,
            source: Mutex::new(Some(source)),
            mtu: tokio::sync::watch::Sender::new(MTU_MIN),
        };
        Some(Self { shared: Arc::new(shared) })
    }

    /// Moves packets between the device and the clients. It runs once.
    ///
    /// # Errors
    /// If the device is gone.
    pub async fn run(&self, device: &impl Device) -> io::Result<()> {
        let source = self.shared.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut source) = source else { return Err(io::ErrorKind::AlreadyExists.into()) };
        let to_clients = async {
            let mut room = vec![0; PACKET_MAX];
            loop {
                let len = device.recv(&mut room).await?;
                if let Some(header) = Header::read(&room[..len]) {
                    let lane = self.lock().lanes.get(&header.destination).cloned();
                    lane.iter().for_each(|lane| lane.push(&header, &room[..len]));
                }
            }
        };
        let to_device = async {
            while let Some(packet) = source.recv().await {
                // An error says something of this packet, such as that the device is down.
                _ = device.send(&packet).await;
            }
        };
        let mut mtus = self.shared.mtu.subscribe();
        let follow = async {
            loop {
                device.set_mtu(*mtus.borrow_and_update());
                if mtus.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            failed = to_clients => failed,
            () = to_device => Ok(()),
            () = follow => Ok(()),
        }
    }

    /// A place for the client of this key. An earlier one of the same client ends. `None` if all addresses are in use.
    pub(crate) fn join(&self, key: PublicKey) -> Option<Member> {
        let mut state = self.lock();
        let number = state.pool.take(key)?;
        let address = |own: &IpNetwork| Address {
            own: IpNetwork { address: own.with(number.into()), len: own.len },
            server: own.address,
        };
        let lease = Lease { addresses: self.shared.own.iter().map(address).collect() };
        let lane = Arc::new(Lane::new());
        for of in &lease.addresses {
            if let Some(before) = state.lanes.insert(of.own.address, Arc::clone(&lane)) {
                before.close();
            }
        }
        Some(Member { hub: self.clone(), key, lease, lane })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// Carries the client's packets until an end stops, or the same client comes again.
    pub(crate) async fn carry(&self, streams: Streams<'_>) {
        // Nobody sends in the name of another client, or of the networks behind.
        let admit = |header: &Header| self.lease.has(header.source);
        streams.carry(&self.lane, admit, &self.hub.shared.sink, |mtu| self.set_mtu(Some(mtu))).await;
    }

    /// The device has the least MTU of all clients.
    fn set_mtu(&self, mtu: Option<u16>) {
        let mut state = self.hub.lock();
        match mtu {
            Some(mtu) => _ = state.mtus.insert(self.key, mtu),
            None => _ = state.mtus.remove(&self.key),
        }
        let Some(least) = state.mtus.values().min().copied() else { return };
        self.hub.shared.mtu.send_if_modified(|before| std::mem::replace(before, least) != least);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut is_last = false;
        let mut state = self.hub.lock();
        for of in &self.lease.addresses {
            if let Entry::Occupied(entry) = state.lanes.entry(of.own.address)
                && Arc::ptr_eq(entry.get(), &self.lane)
            {
                entry.remove();
                is_last = true;
            }
        }
        if is_last {
            state.pool.leave(self.key);
        }
        drop(state);
        if is_last {
            self.set_mtu(None);
        }
    }
}

/// The number of the server's address in its network.
fn number_in(network: &IpNetwork) -> u128 {
    match (network.address, network.first().address) {
        (IpAddr::V4(own), IpAddr::V4(first)) => (own.to_bits() - first.to_bits()).into(),
        (IpAddr::V6(own), IpAddr::V6(first)) => own.to_bits() - first.to_bits(),
        _ => 0,
    }
}

/// Packets of all clients that wait for the device: writing one takes some microseconds.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use anabranch::SecretKey;

    use super::*;

    fn hub(own: &[&str]) -> Option<Hub> {
        let own: Vec<_> = own.iter().map(|text| text.parse().unwrap()).collect();
        Hub::new(&own)
    }

    fn key() -> PublicKey {
        SecretKey::generate().unwrap().public()
    }

    #[test]
    fn networks_of_a_server_are_private_with_room() {
        assert!(hub(&["10.90.0.1/24"]).is_some());
        assert!(hub(&["10.90.0.1/24", "fd90::1/64"]).is_some());
        let bad: [&[&str]; 8] = [
            &[],
            &["8.8.8.8/24"],
            &["10.90.0.0/24"],
            &["10.90.0.255/24"],
            &["10.90.0.1/31"],
            &["10.90.0.1/24", "10.91.0.1/24"],
            &["10.90.0.1/24", "fd90::2/64"],
            &["fd90::/64"],
        ];
        for own in bad {
            assert!(hub(own).is_none(), "{own:?}");
        }
    }

    #[test]
    fn client_has_one_number_in_both_networks() {
        let hub = hub(&["10.90.0.1/29", "fd90::1/64"]).unwrap();
        let member = hub.join(key()).unwrap();
        let [four, six] = member.lease.addresses[..] else { panic!("{:?}", member.lease) };
        assert_eq!((four.server.to_string(), six.server.to_string()), ("10.90.0.1".to_owned(), "fd90::1".to_owned()));
        let (IpAddr::V4(own), IpAddr::V6(own_six)) = (four.own.address, six.own.address) else { panic!() };
        assert_eq!(u16::from(own.octets()[3]), own_six.segments()[7]);
        assert!((2..7).contains(&own.octets()[3]));
    }

    /// Of a network with five addresses for clients, the sixth gets none; who comes again takes over its place.
    #[test]
    fn places_are_limited_and_taken_over() {
        let hub = hub(&["10.90.0.1/29"]).unwrap();
        let keys: Vec<_> = (0..6).map(|_| key()).collect();
        let mut members: Vec<_> = keys[..5].iter().map(|key| hub.join(*key).unwrap()).collect();
        assert!(hub.join(keys[5]).is_none());
        let again = hub.join(keys[0]).unwrap();
        assert_eq!(again.lease, members[0].lease);
        drop(members.remove(0));
        assert!(hub.join(keys[5]).is_none(), "the later one holds the place");
        assert_eq!(hub.lock().lanes.len(), 5);
        drop(again);
        assert!(hub.join(keys[5]).is_some());
    }

    #[test]
    fn device_has_the_least_mtu_of_all_clients() {
        let hub = hub(&["10.90.0.1/24"]).unwrap();
        let (one, other) = (hub.join(key()).unwrap(), hub.join(key()).unwrap());
        let mtu = || *hub.shared.mtu.borrow();
        one.set_mtu(Some(1400));
        assert_eq!(mtu(), 1400);
        other.set_mtu(Some(1320));
        assert_eq!(mtu(), 1320);
        drop(other);
        assert_eq!(mtu(), 1400);
    }
}

//! IP packets through a tunnel: the devices are queues.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::time::Duration;

use anabranch::{Config, Endpoint, SecretKey};
use anabranch_tunnel::vpn::{Device, Hub, IpNetwork, Traffic};
use anabranch_tunnel::{Answer, Common, OpenError, Permissions, Tunnel};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{TunnelEnds, any, soon};

/// A device that a test fills and reads.
struct Queues {
    fed: tokio::sync::Mutex<mpsc::Receiver<Vec<u8>>>,
    taken: mpsc::Sender<Vec<u8>>,
    mtus: Mutex<Vec<u16>>,
}

/// The test's side of it.
struct Probe {
    feed: mpsc::Sender<Vec<u8>>,
    take: mpsc::Receiver<Vec<u8>>,
}

impl Device for Queues {
    async fn recv(&self, packet: &mut [u8]) -> io::Result<usize> {
        let next = self.fed.lock().await.recv().await.ok_or(io::ErrorKind::NotConnected)?;
        packet[..next.len()].copy_from_slice(&next);
        Ok(next.len())
    }

    async fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.taken.send(packet.to_vec()).await.map_err(|_| io::ErrorKind::NotConnected.into())
    }

    fn set_mtu(&self, mtu: u16) {
        self.mtus.lock().unwrap().push(mtu);
    }
}

fn device() -> (Queues, Probe) {
    let ((feed, fed), (taken, take)) = (mpsc::channel(4096), mpsc::channel(4096));
    (Queues { fed: fed.into(), taken, mtus: Mutex::default() }, Probe { feed, take })
}

impl Probe {
    async fn feed(&self, packet: &[u8]) {
        self.feed.send(packet.to_vec()).await.unwrap();
    }

    async fn takes(&mut self, packet: &[u8]) {
        let taken = soon(self.take.recv()).await.unwrap();
        assert!(taken == packet, "{} bytes, not {}", taken.len(), packet.len());
    }
}

/// A packet of UDP with this last byte.
fn packet(source: Ipv4Addr, destination: Ipv4Addr, len: u16, mark: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend([0, 7, 0, 9]);
    packet.resize(len.into(), 0);
    *packet.last_mut().unwrap() = mark;
    packet
}

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
const INTERNET: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// A server's network, with its device.
fn hub() -> (Common, Probe) {
    let hub = Hub::new(&["10.90.0.1/24".parse().unwrap()]).unwrap();
    let (queues, probe) = device();
    let running = hub.clone();
    tokio::spawn(async move { running.run(&queues).await });
    (Common { hub: Some(hub), ..Common::default() }, probe)
}

/// A client in the network: its address, its device, and its task.
async fn join(tunnel: &Tunnel) -> Result<(Ipv4Addr, Probe, JoinHandle<io::Result<()>>), OpenError> {
    let ((queues, probe), tunnel) = (device(), tunnel.clone());
    let (tell, told) = oneshot::channel();
    let task = tokio::spawn(async move {
        let all = Traffic { routed: vec![IpNetwork::all(true)], own_ports: vec![] };
        let joined = tunnel.join(async |seat| {
            _ = tell.send(Ok(seat.lease().addresses[0].own.address));
            seat.run(&queues, &all).await
        });
        joined.await.unwrap_or_else(|error| panic!("{error}"))
    });
    let Ok(Ok::<_, OpenError>(std::net::IpAddr::V4(own))) = soon(told).await else {
        return Err(OpenError::NoAnswer);
    };
    Ok((own, probe, task))
}

/// Small packets, and those that no datagram carries, pass both ways, unless they are malformed or bear a source that is not the client's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_pass_in_both_directions() {
    let (common, mut server) = hub();
    let ends = TunnelEnds::sharing(Permissions::default(), common).await;
    let (own, mut client, _task) = join(&ends.client).await.unwrap();
    for (mark, len) in [(1, 100), (2, 1200), (3, 9000), (4, 60_000)] {
        let there = packet(own, INTERNET, len, mark);
        client.feed(&there).await;
        server.takes(&there).await;
        let back = packet(INTERNET, own, len, mark);
        server.feed(&back).await;
        client.takes(&back).await;
    }
    let cut = &packet(own, INTERNET, 100, 1)[..99];
    let of_another = packet(Ipv4Addr::new(10, 90, 0, 77), INTERNET, 100, 1);
    for bad in [cut, &of_another[..], &[], &[0x60; 39]] {
        client.feed(bad).await;
    }
    let last = packet(own, SERVER, 100, 9);
    client.feed(&last).await;
    server.takes(&last).await;
}

/// A client of an own making sends datagrams with another one's address, malformed ones, and some of flows that there are not: the server takes none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoofed_sources_are_refused_by_the_server() {
    let (common, mut server) = hub();
    let ends = TunnelEnds::sharing(Permissions::default(), common).await;
    let (own, client, _task) = join(&ends.client).await.unwrap();
    // The number of the only request is 0.
    let datagram = |packet: &[u8]| [&[0, 0, 0, 0, 0, 0, 0][..], packet].concat();
    let good = packet(own, SERVER, 100, 5);
    let spoofed =
        [packet(SERVER, SERVER, 100, 1), packet(INTERNET, SERVER, 100, 2), packet(own, Ipv4Addr::LOCALHOST, 60, 3)];
    for bad in
        spoofed.iter().map(|packet| datagram(packet)).chain([vec![], vec![0; 6], vec![0; 7], datagram(&good[..50])])
    {
        ends.connection.send_datagram(bad.into()).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.feed(&good).await;
    server.takes(&good).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_without_a_network_refuses() {
    let ends = TunnelEnds::new(Permissions::default()).await;
    let refused = soon(ends.client.join(async |_| ())).await;
    assert_eq!(refused, Err(OpenError::Refused(Answer::Forbidden)));
}

/// Two clients have an address each; the one that comes back over another connection has its own again, and its earlier place ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_have_addresses_of_their_own() {
    let (common, server) = hub();
    let endpoint = Endpoint::server(any(), &SecretKey::generate().unwrap(), Config::default()).unwrap();
    let ticket = endpoint.ticket();
    let [one, other] =
        [(); 2].map(|()| Endpoint::bind(any(), &SecretKey::generate().unwrap(), Config::default()).unwrap());
    tokio::spawn(async move {
        while let Some(connection) = endpoint.accept().await {
            let tunnel = Tunnel::sharing(connection, Permissions::default(), common.clone());
            tokio::spawn(async move { tunnel.run().await });
        }
    });
    let tunnel = async |endpoint: &Endpoint| {
        let tunnel = Tunnel::new(endpoint.connect(&ticket).await.unwrap(), Permissions::default());
        let running = tunnel.clone();
        tokio::spawn(async move { running.run().await });
        tunnel
    };
    let (first, other) = (tunnel(&one).await, tunnel(&other).await);
    let (own, _before, task) = join(&first).await.unwrap();
    let (own_of_other, mut client_of_other, _task) = join(&other).await.unwrap();
    assert_ne!(own, own_of_other);
    let again = tunnel(&one).await;
    let (own_again, mut client, _task_again) = join(&again).await.unwrap();
    assert_eq!(own_again, own);
    soon(task).await.unwrap().unwrap();
    for (to, client) in [(own, &mut client), (own_of_other, &mut client_of_other)] {
        let back = packet(SERVER, to, 100, 1);
        server.feed(&back).await;
        client.takes(&back).await;
    }
}

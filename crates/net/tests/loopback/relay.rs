//! Stands in for a network between two endpoints: forwards datagrams, and misbehaves when told to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anabranch::{Endpoint, Ticket};
use tokio::net::UdpSocket;

/// Forwards datagrams between one client and a server, as a NAT does.
pub(crate) struct Relay {
    /// The address of the relay, to which the client sends.
    pub(crate) address: SocketAddr,
    orders: Arc<Orders>,
    task: tokio::task::AbortHandle,
}

#[derive(Default)]
struct Orders {
    is_cut: AtomicBool,
    /// How many datagrams of the client reach the server; 0 is all.
    up_most: AtomicU32,
    /// How often the client's address has changed.
    rebindings: AtomicU32,
    /// The percentages of datagrams that are lost, sent twice, and held back until another one has passed.
    lost: AtomicU32,
    doubled: AtomicU32,
    delayed: AtomicU32,
}

impl Relay {
    /// A relay at this address, which `to` then sees as the client's.
    pub(crate) async fn new(ip: &str, to: SocketAddr) -> Self {
        let inside = UdpSocket::bind((ip, 0)).await.unwrap();
        let address = inside.local_addr().unwrap();
        let orders = Arc::new(Orders::default());
        let task = tokio::spawn(run(ip.to_owned(), inside, to, Arc::clone(&orders))).abort_handle();
        Self { address, orders, task }
    }

    /// A relay before a server, and the ticket that leads through it.
    pub(crate) async fn before(server: &Endpoint) -> (Self, Ticket) {
        let relay = Self::new("127.0.0.1", server.local_address()).await;
        let ticket = Ticket::new(server.public_key(), vec![relay.address]).unwrap();
        (relay, ticket)
    }

    /// Drops everything from now on, silently.
    pub(crate) fn cut(&self) {
        self.orders.is_cut.store(true, Ordering::Relaxed);
    }

    /// Drops what comes from the client after so many datagrams of it.
    pub(crate) fn forward_up(&self, count: u32) {
        self.orders.up_most.store(count, Ordering::Relaxed);
    }

    /// From now on loses, doubles and reorders so many percent of the datagrams, in both directions.
    pub(crate) fn spoil(&self, lost: u32, doubled: u32, delayed: u32) {
        let Orders { lost: a, doubled: b, delayed: c, .. } = &*self.orders;
        for (order, percent) in [(a, lost), (b, doubled), (c, delayed)] {
            order.store(percent, Ordering::Relaxed);
        }
    }

    /// Closes the port, as if the program behind it was killed.
    pub(crate) fn close(&self) {
        self.task.abort();
    }

    /// From now on the client has another address and port; datagrams to the old ones are dropped.
    pub(crate) fn rebind(&self) {
        self.orders.rebindings.fetch_add(1, Ordering::Relaxed);
    }
}

async fn run(ip: String, inside: UdpSocket, to: SocketAddr, orders: Arc<Orders>) {
    let mut outside = UdpSocket::bind((ip.as_str(), 0)).await.unwrap();
    let (mut client, mut rebindings, mut ups) = (None, 0, 0);
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    let (mut random, mut held) = (1_u64, [None, None]);
    loop {
        let (len, is_up) = tokio::select! {
            Ok((len, from)) = inside.recv_from(&mut up) => {
                client = Some(from);
                (len, true)
            }
            Ok(len) = outside.recv(&mut down) => (len, false),
        };
        let wanted = orders.rebindings.load(Ordering::Relaxed);
        if wanted != rebindings {
            rebindings = wanted;
            outside = UdpSocket::bind((ip.as_str(), 0)).await.unwrap();
        }
        if orders.is_cut.load(Ordering::Relaxed) {
            continue;
        }
        ups += u32::from(is_up);
        let up_most = orders.up_most.load(Ordering::Relaxed);
        if is_up && up_most > 0 && ups > up_most {
            continue;
        }
        // A linear congruential generator: its upper bits are even enough to choose one of a hundred.
        let mut is_chosen = |percent: &AtomicU32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 100 < percent.load(Ordering::Relaxed).into()
        };
        if is_chosen(&orders.lost) {
            continue;
        }
        let datagram = if is_up { &up[..len] } else { &down[..len] };
        let held: &mut Option<Vec<u8>> = &mut held[usize::from(is_up)];
        if held.is_none() && is_chosen(&orders.delayed) {
            *held = Some(datagram.to_vec());
            continue;
        }
        let copies = if is_chosen(&orders.doubled) { 2 } else { 1 };
        let late = held.take();
        for datagram in std::iter::repeat_n(datagram, copies).chain(late.as_deref()) {
            // If the socket is full, the datagram is lost, as in a network.
            match client {
                _ if is_up => _ = outside.try_send_to(datagram, to),
                Some(client) => _ = inside.try_send_to(datagram, client),
                None => {}
            }
        }
    }
}

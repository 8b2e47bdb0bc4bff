//! A middlebox between a client and a server: `middle LISTEN FROM TICKET` listens at the address LISTEN, prints a ticket that
//! leads there, and forwards datagrams from the address FROM, as a NAT does. Commands on its input make it behave like a hostile
//! network:
//!
//! * `rebind ADDRESS`: from now on forwards from another address and port; datagrams to the old address are dropped.
//! * `replay N`, `truncate N`, `forge N`: in addition to the forwarded datagrams, sends N datagrams, each after a forwarded one
//!   and in the same direction: an old datagram again; a truncated one; one with an inverted bit, or with random bytes.
//! * `reorder N`: shuffles N of the forwarded datagrams, sixteen at a time.
//!
//! It prints a line when it has carried out a command completely. `cargo xtask proofs` uses it.

#![expect(clippy::print_stdout, reason = "it is what the example prints")]

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use anabranch::{Ticket, TicketError};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UdpSocket;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [listen, from, ticket] = &args[..] else { return Err("middle LISTEN FROM TICKET".into()) };
    let inside = UdpSocket::bind(listen.as_str()).await?;
    let from: IpAddr = from.parse()?;
    let (ticket, server) = instead(&ticket.parse()?, inside.local_addr()?, from)?;
    let outside = UdpSocket::bind((from, 0)).await?;
    println!("{ticket}");
    Middle { inside, outside, client: None, server, doing: None, kept: Default::default(), held: vec![], random: 1 }
        .run()
        .await
}

/// A ticket that leads to `here`, and the address at which the server is reachable from `from`.
fn instead(ticket: &Ticket, here: SocketAddr, from: IpAddr) -> Result<(Ticket, SocketAddr), Box<dyn Error>> {
    let ours = |address: &&SocketAddr| address.is_ipv4() == from.is_ipv4();
    let server = *ticket.addresses().iter().find(ours).ok_or(TicketError::Addresses)?;
    // A server bound to all addresses is reachable at this address, too.
    let server = if from.is_loopback() { SocketAddr::new(from, server.port()) } else { server };
    Ok((Ticket::new(ticket.key(), vec![here])?, server))
}

struct Middle {
    /// The socket to which the client sends, and the one that the server sees as the client.
    inside: UdpSocket,
    outside: UdpSocket,
    client: Option<SocketAddr>,
    server: SocketAddr,
    doing: Option<Order>,
    /// Recently forwarded datagrams, to the server and to the client.
    kept: [VecDeque<Vec<u8>>; 2],
    /// Datagrams held for shuffling.
    held: Vec<(Way, Vec<u8>)>,
    random: u64,
}

struct Order {
    act: Act,
    name: String,
    left: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Replay,
    Truncate,
    Forge,
    Reorder,
}

#[derive(Clone, Copy)]
enum Way {
    ToServer = 0,
    ToClient = 1,
}

impl Middle {
    async fn run(mut self) -> Result<(), Box<dyn Error>> {
        let mut orders = BufReader::new(tokio::io::stdin()).lines();
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                order = orders.next_line() => match order? {
                    Some(order) => self.hear(&order).await?,
                    None => return Ok(()),
                },
                Ok((len, from)) = self.inside.recv_from(&mut up) => {
                    self.client = Some(from);
                    self.pass(Way::ToServer, &up[..len]);
                }
                Ok(len) = self.outside.recv(&mut down) => self.pass(Way::ToClient, &down[..len]),
            }
        }
    }

    async fn hear(&mut self, order: &str) -> Result<(), Box<dyn Error>> {
        let (name, rest) = order.split_once(' ').ok_or("an order is two words")?;
        let act = match name {
            "rebind" => {
                self.outside = UdpSocket::bind((rest.parse::<IpAddr>()?, 0)).await?;
                println!("{order}");
                return Ok(());
            }
            "replay" => Act::Replay,
            "truncate" => Act::Truncate,
            "forge" => Act::Forge,
            "reorder" => Act::Reorder,
            _ => return Err(format!("there is no order `{name}`").into()),
        };
        self.doing = Some(Order { act, name: order.to_owned(), left: rest.parse()? });
        Ok(())
    }

    fn pass(&mut self, way: Way, datagram: &[u8]) {
        let act = self.doing.as_ref().map(|order| order.act);
        if act == Some(Act::Reorder) {
            self.held.push((way, datagram.to_vec()));
            if self.held.len() >= SHUFFLED {
                self.release();
            }
            return;
        }
        self.release();
        self.send(way, datagram);
        let kept = &mut self.kept[way as usize];
        kept.push_back(datagram.to_vec());
        if kept.len() > KEPT {
            kept.pop_front();
        }
        let Some(act) = act else { return };
        let place = self.draw(self.kept[way as usize].len());
        let mut bad = self.kept[way as usize][place].clone();
        match act {
            Act::Truncate => {
                let len = self.draw(bad.len());
                bad.truncate(len);
            }
            Act::Forge => self.forge(&mut bad),
            Act::Replay | Act::Reorder => {}
        }
        self.send(way, &bad);
        self.count(1);
    }

    fn forge(&mut self, datagram: &mut [u8]) {
        if datagram.is_empty() {
            return;
        }
        // After the type and the receiver's index, after the counter as well, or anywhere.
        let from = match self.draw(4) {
            0 => 5.min(datagram.len()),
            1 => 13.min(datagram.len()),
            2 => 0,
            _ => {
                let place = self.draw(datagram.len());
                datagram[place] ^= 1 << self.draw(8);
                return;
            }
        };
        for byte in &mut datagram[from..] {
            *byte = self.draw(256) as u8;
        }
    }

    /// Sends the held datagrams in another order.
    fn release(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let count = held.len() as u64;
        while !held.is_empty() {
            let place = self.draw(held.len());
            let (way, datagram) = held.swap_remove(place);
            self.send(way, &datagram);
        }
        if self.doing.as_ref().is_some_and(|order| order.act == Act::Reorder) {
            self.count(count);
        }
    }

    fn count(&mut self, done: u64) {
        let Some(order) = &mut self.doing else { return };
        order.left = order.left.saturating_sub(done);
        if order.left == 0 {
            println!("{}", order.name);
            self.doing = None;
        }
    }

    /// If the socket is full, the datagram is lost, as in a network.
    fn send(&self, way: Way, datagram: &[u8]) {
        match (way, self.client) {
            (Way::ToServer, _) => _ = self.outside.try_send_to(datagram, self.server),
            (Way::ToClient, Some(client)) => _ = self.inside.try_send_to(datagram, client),
            (Way::ToClient, None) => {}
        }
    }

    /// A number below `most`: splitmix64.
    fn draw(&mut self, most: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % most.max(1) as u64) as usize
    }
}

/// Datagrams kept per direction: some megabytes.
const KEPT: usize = 4096;
/// Datagrams that are shuffled together: 1 to 2 ms at 100 Mbit/s.
const SHUFFLED: usize = 16;

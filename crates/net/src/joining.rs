//! Connects with a relay to become its member: over UDP, and if that gives no answer, over TCP.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::carrier;
use crate::carriers::Carrier;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::find::{UDP_FIRST, tcp_addresses};
use crate::ticket::Ticket;
use crate::websocket::{self, WebSocket};

/// A connection with a relay, and what carries it, if that is TCP.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) connection: Connection,
    pub(crate) carried: Option<Carried>,
}

/// A carrier that is served. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct Carried {
    carrier: Arc<Carrier>,
    /// The address of the relay.
    pub(crate) address: SocketAddr,
    _task: JoinSet<()>,
}

/// Connects with a relay. Whatever answers first wins; TCP begins later, unless it is known that UDP is of no use.
pub(crate) async fn join(endpoint: &Endpoint, relay: &Ticket, is_udp_silent: bool) -> Result<Joined, ConnectError> {
    let direct = |connection| Joined { connection, carried: None };
    let mut udp = pin!(endpoint.connect_directly(relay));
    let patience = if is_udp_silent { Duration::ZERO } else { UDP_FIRST };
    match tokio::time::timeout(patience, &mut udp).await {
        Ok(Ok(connection)) => Ok(direct(connection)),
        Ok(Err(error)) if is_final(&error) => Err(error),
        Ok(Err(error)) => over_tcp(endpoint, relay).await.ok_or(error),
        Err(_) => {
            let mut tcp = pin!(over_tcp(endpoint, relay));
            tokio::select! {
                answer = &mut udp => match answer {
                    Ok(connection) => Ok(direct(connection)),
                    Err(error) if is_final(&error) => Err(error),
                    Err(error) => tcp.await.ok_or(error),
                },
                joined = &mut tcp => match joined {
                    Some(joined) => Ok(joined),
                    None => udp.await.map(direct),
                },
            }
        }
    }
}

/// Whether the relay has answered, or TCP would end in the same way.
fn is_final(error: &ConnectError) -> bool {
    !matches!(error, ConnectError::NoAnswer(_) | ConnectError::NoAddress)
}

async fn over_tcp(endpoint: &Endpoint, relay: &Ticket) -> Option<Joined> {
    let port = relay.tcp_port();
    let addresses: Vec<_> =
        relay.addresses().iter().take(TCP_MAX).flat_map(|address| tcp_addresses(*address, port)).collect();
    // As long as UDP, which began earlier, is waited for.
    let patience = endpoint.connect_timeout().saturating_sub(UDP_FIRST).max(TCP_LEAST);
    let (socket, address) = tokio::time::timeout(patience, call(&addresses)).await.ok()??;
    let carried = Carried::new(endpoint, socket, address);
    let connection = endpoint.call_all(relay.key(), &[carried.tuple()]).await.ok()?;
    Some(Joined { connection, carried: Some(carried) })
}

/// Calls these addresses with a delay between them, and keeps the first WebSocket that opens.
async fn call(addresses: &[SocketAddr]) -> Option<(WebSocket, SocketAddr)> {
    let mut calls = JoinSet::new();
    for (place, address) in (0..).zip(addresses.iter().copied()) {
        calls.spawn(async move {
            tokio::time::sleep(place * STAGGER).await;
            Some((websocket::call(address).await.ok()?, address))
        });
    }
    while let Some(called) = calls.join_next().await {
        if let Ok(Some(called)) = called {
            return Some(called);
        }
    }
    None
}

impl Joined {
    /// Closes the connection. What carries it remains for the last words.
    pub(crate) fn begin_close(self) {
        self.connection.begin_close();
        if let Some(carried) = self.carried {
            tokio::spawn(async move {
                _ = tokio::time::timeout(CLOSE_WITHIN, self.connection.closed()).await;
                self.connection.abort();
                drop(carried);
            });
        }
    }
}

impl Carried {
    fn new(endpoint: &Endpoint, socket: WebSocket, address: SocketAddr) -> Self {
        let carrier = Arc::new(endpoint.add_carrier(address));
        let (served, clock) = (Arc::clone(&carrier), endpoint.clock());
        let mut task = JoinSet::new();
        task.spawn(async move {
            carrier::run(&served, clock, socket).await;
            served.end();
        });
        Self { carrier, address, _task: task }
    }

    pub(crate) fn tuple(&self) -> anabranch_proto::FourTuple {
        self.carrier.tuple()
    }

    /// Waits until TCP has ended.
    pub(crate) async fn over(&self) {
        self.carrier.outbox().over().await;
    }
}

/// The delay between two addresses: [rfc-8305] sec. 5, "Connection Attempt Delay".
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses of a relay that are called.
const TCP_MAX: usize = 4;

/// The time for the last words.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// The least time for TCP, TLS and WebSocket.
const TCP_LEAST: Duration = Duration::from_secs(1);

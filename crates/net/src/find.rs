//! Asks a host for the relay there: which key it has, and whether it listens on TCP.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::error::RelayError;
use crate::frame::{self, HEADER, Kind};
use crate::key::{PublicKey, random};
use crate::ticket::Ticket;
use crate::websocket;

/// A relay, and whether it was found over TCP because it did not answer over UDP.
pub(crate) struct Found {
    pub(crate) relay: Ticket,
    pub(crate) is_over_tcp: bool,
}

/// Asks at all of these addresses, over UDP, and later over TCP as well.
pub(crate) async fn find(addresses: &[SocketAddr]) -> Result<Found, RelayError> {
    let no_answer = || RelayError::NoAnswer(addresses.to_vec());
    let addresses = &addresses[..addresses.len().min(Ticket::ADDRESSES_MAX)];
    let mut udp = pin!(first(addresses.iter().map(|address| ask(*address))));
    let (answer, is_over_tcp) = match tokio::time::timeout(UDP_FIRST, &mut udp).await {
        Ok(Some(answer)) => (Some(answer), false),
        // The network says at once that it lets nothing through.
        Ok(None) => (ask_over_tcp(addresses).await, true),
        Err(_) => {
            let mut tcp = pin!(ask_over_tcp(addresses));
            tokio::select! {
                answer = &mut udp => match answer {
                    Some(answer) => (Some(answer), false),
                    None => (tcp.await, true),
                },
                answer = &mut tcp => match answer {
                    Some(answer) => (Some(answer), true),
                    None => (udp.await, false),
                },
            }
        }
    };
    let (key, port) = answer.ok_or_else(no_answer)?;
    let relay = Ticket::new(key, addresses.to_vec()).map_err(|_| no_answer())?.with_tcp_port(port);
    Ok(Found { relay, is_over_tcp })
}

/// The ports at which a relay at this address may listen on TCP, if it has not told: the one of the web, and that of its UDP port.
pub(crate) fn tcp_addresses(address: SocketAddr, port: Option<u16>) -> Vec<SocketAddr> {
    let guessed = if address.port() == WEB { vec![WEB] } else { vec![WEB, address.port()] };
    let ports = port.map_or(guessed, |port| vec![port]);
    ports.into_iter().map(|port| SocketAddr::new(address.ip(), port)).collect()
}

/// The key of a relay, and its TCP port if it has one.
type Answer = (PublicKey, Option<u16>);

/// The first answer of several.
async fn first(asked: impl Iterator<Item = impl Future<Output = Option<Answer>> + Send + 'static>) -> Option<Answer> {
    let mut tasks: JoinSet<_> = asked.collect();
    while let Some(answer) = tasks.join_next().await {
        if let Ok(Some(answer)) = answer {
            return Some(answer);
        }
    }
    None
}

async fn ask_over_tcp(addresses: &[SocketAddr]) -> Option<Answer> {
    let all = addresses.iter().take(TCP_MAX).flat_map(|address| tcp_addresses(*address, None));
    first(all.map(ask_at_port)).await
}

async fn ask_at_port(address: SocketAddr) -> Option<Answer> {
    let asking = async {
        let mut socket = websocket::call(address).await.ok()?;
        let number = number()?;
        socket.send(Message::Binary(Bytes::copy_from_slice(&frame::question(number)))).await.ok()?;
        loop {
            if let Message::Binary(bytes) = socket.next().await?.ok()?
                && let Some(answer) = read(&bytes, number)
            {
                let (key, port) = answer;
                // What it tells comes first: there may be a web server in front of it.
                return Some((key, port.or(Some(address.port()))));
            }
        }
    };
    tokio::time::timeout(TCP_WITHIN, asking).await.ok()?
}

/// Asks over UDP.
async fn ask(address: SocketAddr) -> Option<Answer> {
    let any: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = tokio::net::UdpSocket::bind(any).await.ok()?;
    // Only what comes from there is read.
    socket.connect(address).await.ok()?;
    let number = number()?;
    let mut answer = [0; 2 * frame::ANSWER];
    for _ in 0..ASKED {
        _ = socket.send(&frame::question(number)).await;
        let patience = Instant::now() + ASKED_EACH;
        while let Ok(came) = tokio::time::timeout_at(patience, socket.recv(&mut answer)).await {
            match came {
                Ok(len) => {
                    if let Some(answer) = read(&answer[..len], number) {
                        return Some(answer);
                    }
                }
                // An error of the network is about an earlier question.
                Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
            }
        }
    }
    None
}

fn number() -> Option<u64> {
    random().ok()?.first_chunk().copied().map(u64::from_be_bytes)
}

fn read(datagram: &[u8], number: u64) -> Option<Answer> {
    let (Kind::Answer, same) = frame::read(datagram)? else { return None };
    let (key, rest) = datagram[HEADER..].split_first_chunk()?;
    let port = rest.first_chunk().copied().map(u16::from_be_bytes).filter(|port| *port != 0);
    (same == number).then_some((PublicKey::new(*key), port))
}

/// How long a relay is waited for over UDP alone: two questions, or two initiations (after 1 s), without an answer. So one
/// lost datagram does not lead to TCP. A third initiation would leave after 3 s.
pub(crate) const UDP_FIRST: Duration = Duration::from_secs(2);

/// The port that nearly every network lets through.
const WEB: u16 = 443;

/// Addresses that are asked over TCP.
const TCP_MAX: usize = 4;

/// The time for TCP, TLS, WebSocket and the answer.
const TCP_WITHIN: Duration = Duration::from_secs(8);

/// Questions over UDP, as datagrams may be lost, and the time for an answer to each.
const ASKED: u32 = 5;
const ASKED_EACH: Duration = Duration::from_secs(1);
const ERROR_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_a_port_or_none() {
        let key = [5; 32];
        let with = frame::answer(7, &key, Some(8443));
        assert_eq!(read(&with, 7), Some((PublicKey::new(key), Some(8443))));
        assert_eq!(read(&frame::answer(7, &key, None), 7), Some((PublicKey::new(key), None)));
        assert_eq!(read(&with[..frame::ANSWER], 7), Some((PublicKey::new(key), None)), "of an earlier version");
        assert_eq!((read(&with, 8), read(&frame::question(7), 7)), (None, None));
    }

    #[test]
    fn tcp_port_is_the_told_one_or_guessed() {
        let at = |text: &str, port| {
            tcp_addresses(text.parse().unwrap(), port).iter().map(SocketAddr::port).collect::<Vec<_>>()
        };
        assert_eq!(at("192.0.2.1:4477", None), [443, 4477]);
        assert_eq!(at("192.0.2.1:443", None), [443]);
        assert_eq!(at("[2001:db8::1]:4477", Some(8443)), [8443]);
    }
}

//! Forwards the packets that arrive at a UDP port to the other end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::flow::{self, PACKET_MAX, Sink};
use crate::target::Target;
use crate::tunnel::{ACCEPT_AGAIN, OpenError, Tunnel};

/// Forwards packets to a target at the other end; each program has a flow of its own, and gets the answers. Calls `failed` for each flow that
/// the other end refuses. Never returns.
pub async fn forward(socket: &Arc<UdpSocket>, tunnel: &Tunnel, target: &Target, failed: impl Fn(OpenError)) {
    let mut flows = Flows::new(socket, tunnel);
    let target = Arc::new(target.clone());
    let mut room = vec![0; PACKET_MAX];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut room) => match received {
                Ok((len, from)) => flows.send(from, &target, &room[..len], Bytes::new),
                // An answer could not be delivered.
                Err(_) => sleep(ACCEPT_AGAIN).await,
            },
            (_, error) = flows.failed() => failed(error),
        }
    }
}

/// The flows of the programs that use a port, by program and target. At the limit the flow that was idle for longest makes room.
pub(crate) struct Flows<'a> {
    socket: &'a Arc<UdpSocket>,
    tunnel: &'a Tunnel,
    open: BTreeMap<Key, Open>,
    tasks: JoinSet<(Key, Result<(), OpenError>)>,
    most: usize,
}

type Key = (SocketAddr, Arc<Target>);

struct Open {
    packets: mpsc::Sender<Bytes>,
    used: Instant,
    /// Until then a flow that the other end has refused is not asked for again, however many packets come.
    refused_until: Option<Instant>,
}

impl<'a> Flows<'a> {
    pub(crate) fn new(socket: &'a Arc<UdpSocket>, tunnel: &'a Tunnel) -> Self {
        Self { socket, tunnel, open: BTreeMap::new(), tasks: JoinSet::new(), most: FLOWS_MAX }
    }

    /// Sends a packet of the program at `from`. Answers come back to it behind `header`.
    pub(crate) fn send(
        &mut self,
        from: SocketAddr,
        target: &Arc<Target>,
        packet: &[u8],
        header: impl FnOnce() -> Bytes,
    ) {
        let key = (from, target.clone());
        let packet = Bytes::copy_from_slice(packet);
        let packet = match self.open.get_mut(&key) {
            Some(open) => {
                open.used = Instant::now();
                match open.packets.try_send(packet) {
                    // A queue of a full length loses what comes, as every router does.
                    Ok(()) | Err(TrySendError::Full(_)) => return,
                    Err(TrySendError::Closed(_)) if open.refused_until.is_some_and(|until| Instant::now() < until) => {
                        return;
                    }
                    // The flow has ended.
                    Err(TrySendError::Closed(packet)) => packet,
                }
            }
            None => packet,
        };
        self.make_room();
        let (packets, queue) = flow::queue();
        // A new queue has room.
        _ = packets.try_send(packet);
        self.open.insert(key.clone(), Open { packets, used: Instant::now(), refused_until: None });
        let (tunnel, socket) = (self.tunnel.clone(), self.socket.clone());
        let sink = Sink::Program { socket, to: from, header: header() };
        self.tasks.spawn(async move {
            let ended = tunnel.carry_flow(&key.1, queue, sink).await;
            (key, ended)
        });
    }

    /// Waits for a flow that the other end refuses. Others end in the meantime.
    pub(crate) async fn failed(&mut self) -> (Arc<Target>, OpenError) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((key, ended))) => {
                    // The key may have a new flow by now.
                    let open = self.open.get_mut(&key).filter(|open| open.packets.is_closed());
                    if let Err(error) = ended {
                        if let Some(open) = open {
                            open.refused_until = Some(Instant::now() + AGAIN_AFTER);
                        }
                        return (key.1, error);
                    }
                    if open.is_some() {
                        self.open.remove(&key);
                    }
                }
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// The flow that was idle for longest ends if there are too many: its task finds its queue closed.
    fn make_room(&mut self) {
        if self.open.len() < self.most {
            return;
        }
        if let Some(key) = self.open.iter().min_by_key(|(_, open)| open.used).map(|(key, _)| key.clone()) {
            self.open.remove(&key);
        }
    }
}

/// A quarter of the streams of a connection. Resolvers use a new port for each question.
const FLOWS_MAX: usize = 1000;

/// Each refusal costs a stream and a line of output.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use anabranch::{Config, Endpoint, SecretKey};

    use super::*;
    use crate::tunnel::Permissions;

    /// Of three flows at a limit of three, the one that was used before the others makes room.
    #[tokio::test]
    async fn longest_idle_flow_makes_room() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let key = || SecretKey::generate().unwrap();
        let (server, client) =
            (Endpoint::server(any, &key(), Config::default()), Endpoint::bind(any, &key(), Config::default()));
        let connection = client.unwrap().connect(&server.unwrap().ticket()).await.unwrap();
        let tunnel = Tunnel::new(connection, Permissions::default());
        let socket = Arc::new(UdpSocket::bind(any).await.unwrap());
        let mut flows = Flows { most: 3, ..Flows::new(&socket, &tunnel) };
        let target = Arc::new("192.0.2.1:9".parse::<Target>().unwrap());
        for port in [1, 2, 3, 1, 4, 5] {
            flows.send(SocketAddr::new(any.ip(), port), &target, b"packet", Bytes::new);
        }
        let open: Vec<u16> = flows.open.keys().map(|(from, _)| from.port()).collect();
        assert_eq!(open, [1, 4, 5]);
    }
}

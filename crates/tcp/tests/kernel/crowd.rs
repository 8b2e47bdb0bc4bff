//! A thousand connections at once: all are open before any data is sent.

use std::sync::Arc;

use anabranch_tcp::Host;
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::{JoinHandle, JoinSet};

use super::ends::{all, ask, host_serves, kernel_serves};
use super::{PORT, V4, host, inside, remote};

const CONNECTIONS: usize = 1000;
const LEN: usize = 10_000;

/// The clients, by our TCP, or the kernel's if there is no host of ours.
async fn crowd(client: Option<&Host>, server: JoinHandle<()>) {
    let are_open = Arc::new(Barrier::new(CONNECTIONS));
    let mut clients = JoinSet::new();
    for number in 0..CONNECTIONS as u32 {
        let (client, are_open) = (client.cloned(), Arc::clone(&are_open));
        clients.spawn(async move {
            if let Some(host) = client {
                let stream = host.connect(V4[1].parse().unwrap(), remote(V4[0], PORT)).await?;
                are_open.wait().await;
                return ask(stream, number, LEN).await;
            }
            let stream = TcpStream::connect(remote(V4[1], PORT)).await?;
            are_open.wait().await;
            ask(stream, number, LEN).await
        });
    }
    all(clients).await;
    server.await.unwrap();
}

#[test]
fn thousand_connections_at_once_are_served() {
    let Some(runtime) = inside("crowd::thousand_connections_at_once_are_served") else { return };
    runtime.block_on(async {
        let host = host(|_| {});
        crowd(None, host_serves(&host, PORT, CONNECTIONS, LEN)).await;
        println!("{:?}", host.tally());
    });
}

#[test]
fn thousand_connections_at_once_are_opened() {
    let Some(runtime) = inside("crowd::thousand_connections_at_once_are_opened") else { return };
    runtime.block_on(async {
        let host = host(|_| {});
        crowd(Some(&host), kernel_serves(remote(V4[0], PORT), CONNECTIONS, LEN)).await;
        println!("{:?}", host.tally());
    });
}

//! Endpoints whose connections are divided among several engines.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch::{Config, ConnectError, Connection, Endpoint, Full, Lost, Ticket};

use crate::support::{between, client, pattern, server, soon, until};

fn sharded(shards: usize) -> Config {
    Config { shards: Some(shards), ..Config::default() }
}

/// Sends a stream one way, and reads it at the other end.
async fn transfer(number: u64, there: &Connection, here: &Connection) {
    const LEN: usize = 400_000;
    let send = async {
        let mut stream = there.open_stream().await.unwrap();
        stream.write_all_bytes(pattern(number, 0, LEN)).await.unwrap();
        stream.finish().unwrap();
    };
    let receive = async { here.accept_stream().await.unwrap().read_to_end(LEN).await.unwrap() };
    let ((), received) = tokio::join!(send, receive);
    assert!(received == pattern(number, 0, LEN), "stream {number}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn connections_of_several_shards_share_two_sockets() {
    many_at_once().await;
}

#[tokio::test]
async fn connections_of_several_shards_share_a_thread() {
    many_at_once().await;
}

/// Many connections between two sockets, all at once: each gets its own bytes, whatever shards its ends are in.
async fn many_at_once() {
    let (server, client) = (server(sharded(4)), client(sharded(3)));
    let ticket = server.ticket();
    let mut transfers = tokio::task::JoinSet::new();
    for number in 0..24 {
        let (there, here) = between(&client, &server, &ticket).await;
        transfers.spawn(async move {
            transfer(2 * number, &there, &here).await;
            transfer(2 * number + 1, &here, &there).await;
            tokio::try_join!(there.close(), here.close()).unwrap();
        });
    }
    soon(async {
        while let Some(ended) = transfers.join_next().await {
            ended.unwrap();
        }
        tokio::join!(server.wait_idle(), client.wait_idle());
    })
    .await;
}

/// The shards count together: the fourth connection of a key is refused, and the seventh of all.
#[tokio::test]
async fn limits_hold_for_all_shards_together() {
    let config = Config { connections_per_key: 3, connections_max: 6, ..sharded(4) };
    let server = server(config);
    let (ticket, address) = (server.ticket(), server.local_address());
    let mut open = vec![];
    for _ in 0..2 {
        let client = client(sharded(2));
        for _ in 0..3 {
            open.push(soon(client.connect(&ticket)).await.unwrap());
            open.push(soon(server.accept()).await.unwrap());
        }
        let full = if open.len() == 6 { Full::Key(3) } else { continue };
        assert_eq!(soon(client.connect(&ticket)).await.unwrap_err(), ConnectError::Full(address, full));
    }
    let other = client(Config::default());
    assert_eq!(soon(other.connect(&ticket)).await.unwrap_err(), ConnectError::Full(address, Full::Everybody(6)));
}

/// A full server takes from the address that holds most, also if that connection is in another shard. Its driver is woken for that, and
/// does not wait for the next keep-alive probe.
#[tokio::test]
async fn connection_of_another_shard_gives_way_at_once() {
    let server = server(Config { connections_max: 2, ..sharded(4) });
    let (ticket, client, mut open) = (server.ticket(), client(sharded(1)), vec![]);
    for _ in 0..2 {
        open.push(soon(client.connect(&ticket)).await.unwrap());
        open.push(soon(server.accept()).await.unwrap());
    }
    // Until the searches for larger packets have ended: nothing else gives that driver a turn.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let key = anabranch::SecretKey::generate().unwrap();
    let elsewhere = Endpoint::bind("127.0.0.2:0".parse().unwrap(), &key, sharded(1)).unwrap();
    let _third = soon(elsewhere.connect(&ticket)).await.unwrap();
    let gone = async { tokio::select!(lost = open[0].closed() => lost, lost = open[2].closed() => lost) };
    let gone = tokio::time::timeout(Duration::from_secs(3), gone).await.unwrap();
    assert_eq!(gone, Err(Lost::GaveWay));
}

/// A path from another address and a datagram from a new one reach the shard of their connection.
#[tokio::test]
async fn path_reaches_the_shard_of_its_connection() {
    let everywhere = |shards| {
        let key = anabranch::SecretKey::generate().unwrap();
        Endpoint::server("0.0.0.0:0".parse().unwrap(), &key, sharded(shards)).unwrap()
    };
    let (server, client) = (everywhere(4), everywhere(3));
    let port = server.local_address().port();
    let ticket = Ticket::new(server.public_key(), vec![([127, 0, 0, 1], port).into()]).unwrap();
    for number in 0..5 {
        let (there, here) = between(&client, &server, &ticket).await;
        soon(there.add_path("127.0.0.2".parse().unwrap(), ([127, 0, 0, 3], port).into())).await.unwrap();
        soon(transfer(number, &there, &here)).await;
        assert_eq!((there.paths().len(), here.paths().len()), (2, 2));
    }
    let second = client.add_address("127.0.0.7:0".parse().unwrap()).unwrap();
    assert!(client.local_addresses().contains(&second));
    // A connection in each shard of the client, all at a time.
    let mut open = vec![];
    for number in 10..13 {
        let (there, here) = between(&client, &server, &ticket).await;
        soon(there.add_path(second.ip(), ([127, 0, 0, 1], port).into())).await.unwrap();
        soon(transfer(number, &there, &here)).await;
        open.push((there, here));
    }
}

/// All shards hear that their connections are aborted, and nothing is left of an endpoint without handles.
#[tokio::test]
async fn endpoint_ends_with_all_its_shards() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    {
        let (server, client) = (server(sharded(4)), client(sharded(3)));
        assert_eq!(tasks() - before, 4 + 3, "a driver for each shard");
        let ticket = server.ticket();
        let mut open = vec![];
        for _ in 0..8 {
            open.push((soon(client.connect(&ticket)).await.unwrap(), soon(server.accept()).await.unwrap()));
        }
        server.aborter().abort_all();
        for (there, _here) in open {
            assert!(soon(there.closed()).await.is_err());
        }
    }
    until(|| tasks() <= before).await;
}

/// An endpoint without handles goes on for its last connection, in one of its shards. That one refuses further connections for all, so
/// nobody waits for an answer.
#[tokio::test]
async fn endpoint_without_handles_refuses_connections() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for shards in [1, 3] {
        let client = client(sharded(2));
        let before = tasks();
        let server = server(sharded(shards));
        let (ticket, address) = (server.ticket(), server.local_address());
        let there = soon(client.connect(&ticket)).await.unwrap();
        let here = soon(server.accept()).await.unwrap();
        drop(server);
        until(|| tasks() <= before + 1).await;
        for _ in 0..6 {
            assert_eq!(soon(client.connect(&ticket)).await.unwrap_err(), ConnectError::Refused(address));
        }
        soon(transfer(1, &there, &here)).await;
        assert!(soon(async { tokio::try_join!(there.close(), here.close()) }).await.is_ok());
    }
}

/// An endpoint is idle when its last connection has ended, in whichever shard that is.
#[tokio::test]
async fn endpoint_is_idle_when_all_its_shards_are() {
    let (server, client) = (server(sharded(3)), client(sharded(1)));
    let (ticket, mut open) = (server.ticket(), VecDeque::new());
    for _ in 0..3 {
        open.push_back((soon(client.connect(&ticket)).await.unwrap(), soon(server.accept()).await.unwrap()));
    }
    while let Some((there, here)) = open.pop_front() {
        let (server, is_last) = (server.clone(), open.is_empty());
        let mut waiting = tokio::spawn(async move { server.wait_idle().await });
        let early = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
        assert!(early.is_err(), "{} connections are open", open.len() + 1);
        // The server closes second, so it has not to wait for copies of the client's FIN.
        let second = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            here.close().await
        };
        soon(async { tokio::try_join!(there.close(), second) }).await.unwrap();
        if is_last {
            tokio::time::timeout(Duration::from_secs(1), waiting).await.unwrap().unwrap();
        }
    }
}

/// Nothing but the new socket itself tells the drivers of an idle endpoint to read it.
#[tokio::test]
async fn new_socket_of_an_idle_endpoint_is_read() {
    for shards in [1, 3] {
        let (server, client) = (server(sharded(shards)), client(sharded(1)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let second = server.add_address("127.0.0.9:0".parse().unwrap()).unwrap();
        let ticket = Ticket::new(server.public_key(), vec![second]).unwrap();
        let (there, here) = soon(async { tokio::join!(client.connect(&ticket), server.accept()) }).await;
        soon(transfer(1, &there.unwrap(), &here.unwrap())).await;
    }
}

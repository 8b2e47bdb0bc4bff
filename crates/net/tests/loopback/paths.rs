//! Several paths, and paths that change.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anabranch::{AddPathError, Config, Connection, Endpoint, PathState, SecretKey, Ticket};

use crate::relay::Relay;
use crate::support::{Pair, between, client, pattern, server, soon, transfer};

/// Binds to all addresses of the computer.
fn everywhere(config: Config) -> Endpoint {
    Endpoint::server("0.0.0.0:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

fn impatient() -> Config {
    Config { connect_timeout: Duration::from_millis(1500), ..Config::default() }
}

/// A second path between other addresses of the same sockets carries data and is then removed; no data is missing.
#[tokio::test]
async fn two_paths_carry_one_stream() {
    let (server, client) = (everywhere(Config::default()), everywhere(Config::default()));
    let port = server.local_address().port();
    let ticket = Ticket::new(server.public_key(), vec![([127, 0, 0, 1], port).into()]).unwrap();
    let (there, here) = between(&client, &server, &ticket).await;
    soon(there.add_path("127.0.0.2".parse().unwrap(), ([127, 0, 0, 3], port).into())).await.unwrap();
    assert_eq!(there.paths().len(), 2);

    until_all_carry(&there, &here).await;

    // On a machine that pauses both paths were silent, and the second may have moved to the address that the system chooses.
    let second = there.paths().last().unwrap().id;
    there.remove_path(second).unwrap();
    transfer(&there, &here, 1_000_000, |_| {}).await;
    assert_eq!((there.paths().len(), here.paths().len()), (1, 1));
    let only = there.paths()[0].id;
    assert!(there.remove_path(only).is_err(), "there is no other");
}

#[tokio::test]
async fn a_path_that_cannot_be_is_refused() {
    let Pair { server, there, here, .. } = Pair::with(impatient()).await;
    let (own, far) = (IpAddr::from([127, 0, 0, 1]), server.local_address());
    assert_eq!(soon(there.add_path(own, far)).await, Err(AddPathError::InUse));
    let other = IpAddr::from([127, 0, 0, 2]);
    assert_eq!(soon(there.add_path(other, far)).await, Err(AddPathError::NoSocket(other)));
    // Nothing answers there, so the challenges get no response.
    let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(soon(there.add_path(own, deaf)).await, Err(AddPathError::NoAnswer(deaf)));
    assert_eq!(here.paths().len(), 1, "the other end has heard of none");
}

/// Transfers until each path has sent more than its probes. A transfer of 20 MB takes a tenth of a second here: if the machine stalls one path
/// in that time, the other carries nearly all of it.
async fn until_all_carry(from: &Connection, to: &Connection) {
    let sent = || -> Vec<_> { from.paths().iter().map(|path| (path.local, path.report.tally.sent)).collect() };
    for _ in 0..10 {
        transfer(from, to, 20_000_000, |_| {}).await;
        if sent().iter().all(|&(_, sent)| sent > 100) {
            return;
        }
    }
    panic!("not all carry data: {:?}", sent());
}

/// An endpoint with two sockets, each bound to its own address: its ticket names both, and each carries a path.
#[tokio::test]
async fn a_second_socket_is_a_second_way() {
    let (server, client) = (server(Config::default()), client(Config::default()));
    let second = server.add_address("127.0.0.2:0".parse().unwrap()).unwrap();
    let own = client.add_address("127.0.0.3:0".parse().unwrap()).unwrap();
    let ticket = server.ticket();
    assert_eq!(ticket.addresses(), [server.local_address(), second]);
    let (there, here) = between(&client, &server, &ticket).await;
    soon(there.add_path(own.ip(), second)).await.unwrap();
    until_all_carry(&here, &there).await;
}

/// One of two paths dies silently in the middle of a transfer: no data is missing, and the transfer stops only briefly.
#[tokio::test]
async fn the_death_of_a_path_costs_little() {
    let (server, client) = (everywhere(Config::default()), everywhere(Config::default()));
    let port = server.local_address().port();
    let (first, second) = (
        Relay::new("127.0.0.1", ([127, 0, 0, 1], port).into()).await,
        Relay::new("127.0.0.2", ([127, 0, 0, 2], port).into()).await,
    );
    let ticket = Ticket::new(server.public_key(), vec![first.address]).unwrap();
    let (there, here) = between(&client, &server, &ticket).await;
    soon(there.add_path("127.0.0.2".parse().unwrap(), second.address)).await.unwrap();
    let (mut cut_at, mut last, mut longest) = (None, Instant::now(), Duration::ZERO);
    transfer(&there, &here, 60_000_000, |got| {
        if got > 10_000_000 && cut_at.is_none() {
            first.cut();
            cut_at = Some(got);
        }
        if cut_at.is_some() {
            longest = longest.max(last.elapsed());
        }
        last = Instant::now();
    })
    .await;
    let alive = there.paths().iter().filter(|path| path.state == PathState::Live).count();
    assert_eq!(alive, 1, "{:?}", there.paths().iter().map(|path| path.state).collect::<Vec<_>>());
    assert!(longest < Duration::from_millis(600), "it stood still for {longest:?}");
}

/// A NAT in between forgets the client, and gives it another port: the connection continues.
#[tokio::test]
async fn a_client_whose_address_changes_goes_on() {
    let (server, client) = (server(Config::default()), client(Config::default()));
    let (relay, ticket) = Relay::before(&server).await;
    let (there, here) = between(&client, &server, &ticket).await;
    let before = here.paths()[0].remote;
    let mut is_rebound = false;
    transfer(&there, &here, 20_000_000, |got| {
        if got > 5_000_000 && !is_rebound {
            relay.rebind();
            is_rebound = true;
        }
    })
    .await;
    // In the other direction, too, which needs the new address.
    transfer(&here, &there, 5_000_000, |_| {}).await;
    let after: Vec<_> =
        here.paths().iter().filter(|path| path.state == PathState::Live).map(|path| path.remote).collect();
    assert!(after.len() == 1 && after[0] != before, "{before} became {after:?}");
}

/// Messages arrive complete, each as soon as it is complete.
#[tokio::test]
async fn messages_come_whole() {
    let Pair { here, there, .. } = Pair::new().await;
    let lengths = [0_usize, 1, 1_000, 300_000];
    let sending = async {
        for (number, len) in lengths.into_iter().enumerate() {
            there.send_message(pattern(number as u64, 0, len)).await.unwrap();
        }
        there.close().await.unwrap();
    };
    let receiving = async {
        let mut got = vec![];
        for _ in lengths {
            got.push(here.accept_message(1 << 20).await.unwrap());
        }
        got.sort_by_key(bytes::Bytes::len);
        let sent: Vec<_> =
            lengths.into_iter().enumerate().map(|(number, len)| pattern(number as u64, 0, len)).collect();
        assert_eq!(got, sent);
        assert!(here.accept_message(1).await.is_err(), "there are no more");
    };
    soon(async { tokio::join!(sending, receiving) }).await;
}

/// Loopback carries packets of 65,536 bytes. Two ends that look for 9,000 find them, within the 4 MB of a transfer; if one of them looks
/// for 1,500 only, both keep to that.
#[tokio::test]
async fn jumbo_packets_are_found_if_both_ends_look_for_them() {
    let config = |packet_max| Config { packet_max, ..Config::default() };
    let mut sizes = vec![];
    for (packet_max, of_server) in [(9_000, 9_000), (9_000, 1_500), (1_500, 9_000)] {
        let (server, client) = (server(config(of_server)), client(config(packet_max)));
        let (there, here) = between(&client, &server, &server.ticket()).await;
        transfer(&there, &here, 4_000_000, |_| {}).await;
        let before = there.stats();
        transfer(&there, &here, 4_000_000, |_| {}).await;
        let after = there.stats();
        let segments = after.segments_sent - before.segments_sent;
        sizes.push((after.bytes_acknowledged - before.bytes_acknowledged) / segments);
    }
    assert!(sizes[0] > 6_000 && sizes[1] < 1_500 && sizes[2] < 1_500, "{sizes:?} bytes a segment");
}

//! Who may connect, and what happens to peers who may not.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anabranch::{Admission, Config, ConnectError, Endpoint, SecretKey, Ticket};

use crate::support::{Pair, client, server, soon};

fn impatient() -> Config {
    Config { connect_timeout: Duration::from_millis(1500), ..Config::default() }
}

/// A ticket with another key: the server does not answer, and has nothing to accept.
#[tokio::test]
async fn a_wrong_key_is_refused() {
    let (server, client) = (server(Config::default()), client(impatient()));
    let address = server.local_address();
    let other = Ticket::new(SecretKey::generate().unwrap().public(), vec![address]).unwrap();
    let refused = soon(client.connect(&other)).await;
    assert_eq!(refused.unwrap_err(), ConnectError::NoAnswer(vec![address]));
    assert!(tokio::time::timeout(Duration::from_millis(100), server.accept()).await.is_err(), "nobody has called");
    soon(client.connect(&server.ticket())).await.unwrap();
}

#[tokio::test]
async fn only_listed_keys_are_let_in() {
    let friend = SecretKey::generate().unwrap();
    let list = Admission::Keys(BTreeSet::from([friend.public()]));
    let server = server(Config::default().admit(list));
    let stranger = client(impatient());
    assert!(matches!(soon(stranger.connect(&server.ticket())).await, Err(ConnectError::NoAnswer(_))));
    let known = Endpoint::bind("127.0.0.1:0".parse().unwrap(), &friend, impatient()).unwrap();
    soon(known.connect(&server.ticket())).await.unwrap();
    assert_eq!(soon(server.accept()).await.unwrap().remote_key(), friend.public());
}

/// An endpoint that only connects accepts no connections.
#[tokio::test]
async fn a_client_lets_nobody_in() {
    let (alone, caller) = (client(Config::default()), client(impatient()));
    assert!(matches!(soon(caller.connect(&alone.ticket())).await, Err(ConnectError::NoAnswer(_))));
}

/// The second address of a ticket is tried soon if the first does not answer.
#[tokio::test]
async fn an_address_that_does_not_answer_costs_little() {
    let (server, client) = (server(Config::default()), client(Config::default()));
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses = vec![deaf.local_addr().unwrap(), server.local_address()];
    let ticket = Ticket::new(server.public_key(), addresses.clone()).unwrap();
    let begin = Instant::now();
    let connection = soon(client.connect(&ticket)).await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(connection.paths()[0].remote, addresses[1]);
}

/// Both ends are bound to all addresses of the computer, IPv6 sockets with mapped IPv4 addresses: a datagram is answered from the
/// address at which it arrived.
#[tokio::test]
async fn sockets_without_an_address_find_each_other() {
    for (bound, called) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "[::1]")] {
        let server = Endpoint::server(bound.parse().unwrap(), &SecretKey::generate().unwrap(), Config::default());
        // A computer may not have IPv6.
        let Ok(server) = server else { continue };
        let address = format!("{called}:{}", server.local_address().port()).parse().unwrap();
        let ticket = Ticket::new(server.public_key(), vec![address]).unwrap();
        let client = Endpoint::client(Config::default()).unwrap();
        let there = soon(client.connect(&ticket)).await.unwrap();
        let here = soon(server.accept()).await.unwrap();
        assert_eq!(there.paths()[0].remote, address, "{bound}");
        assert_eq!(here.paths()[0].local, address, "{bound}");
        let mut stream = there.open_stream().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        stream.finish().unwrap();
        assert_eq!(&soon(soon(here.accept_stream()).await.unwrap().read_to_end(10)).await.unwrap()[..], b"hello");
        assert_eq!((here.paths().len(), there.paths().len()), (1, 1));
    }
}

/// Invalid datagrams of all lengths arrive while a connection continues.
#[tokio::test]
async fn rubbish_changes_nothing() {
    let Pair { here, there, server, .. } = Pair::new().await;
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..2000 {
        let rubbish: Vec<u8> = (0..length).map(|at| (at * length % 251) as u8).collect();
        stranger.send_to(&rubbish, server.local_address()).unwrap();
    }
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(b"still here").await.unwrap();
    stream.finish().unwrap();
    assert_eq!(&soon(soon(here.accept_stream()).await.unwrap().read_to_end(10)).await.unwrap()[..], b"still here");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let config = Config { receive_buffer: 10, ..Config::default() };
    assert!(Endpoint::client(config).is_err());
    for (shards, text) in
        [(0, "0 shards cannot be: an endpoint has 1 to 64"), (65, "65 shards cannot be: an endpoint has 1 to 64")]
    {
        let config = Config { shards: Some(shards), ..Config::default() };
        assert_eq!(Endpoint::client(config).unwrap_err().to_string(), text);
    }
    for packet_max in [1_279, 9_001] {
        let text =
            format!("packets of up to {packet_max} bytes cannot be looked for: the largest is from 1280 to 9000");
        assert_eq!(Endpoint::client(Config { packet_max, ..Config::default() }).unwrap_err().to_string(), text);
    }
    let taken = server(Config::default());
    let error =
        Endpoint::server(taken.local_address(), &SecretKey::generate().unwrap(), Config::default()).unwrap_err();
    assert!(error.to_string().starts_with("no UDP socket at 127.0.0.1:"), "{error}");
}

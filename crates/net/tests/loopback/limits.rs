//! Limits on the connections of one peer.

use anabranch::{Config, ConnectError, Full};

use crate::support::{client, server, soon};

/// The third connection of a key, and the fifth of an address, are refused with the reason.
#[tokio::test]
async fn connection_beyond_a_limit_is_refused_with_the_reason() {
    let config = Config { connections_per_key: 2, connections_per_address: 4, ..Config::default() };
    let server = server(config);
    let (ticket, address) = (server.ticket(), server.local_address());
    let mut open = vec![];
    for refused in [Full::Key(2), Full::Address(4)] {
        let client = client(Config::default());
        for _ in 0..2 {
            open.push(soon(client.connect(&ticket)).await.unwrap());
            open.push(soon(server.accept()).await.unwrap());
        }
        if refused == Full::Key(2) {
            let error = soon(client.connect(&ticket)).await.unwrap_err();
            assert_eq!(error, ConnectError::Full(address, refused));
            let text = "has 2 connections of your key already, as many as it allows one key: close one first";
            assert_eq!(error.to_string(), format!("{address} {text}"));
        }
    }
    let other = client(Config::default());
    let error = soon(other.connect(&ticket)).await.unwrap_err();
    assert_eq!(error, ConnectError::Full(address, Full::Address(4)));
    // One that is closed makes room.
    open.truncate(6);
    let closed = loop {
        match soon(other.connect(&ticket)).await {
            Err(ConnectError::Full(..)) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            connected => break connected,
        }
    };
    closed.unwrap();
}

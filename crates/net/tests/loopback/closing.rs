//! Ends of connections, orderly and otherwise.

use std::time::{Duration, Instant};

use anabranch::{Config, Lost, ReadError, StreamError, WriteError};

use crate::relay::Relay;
use crate::support::{Pair, between, client, pattern, server, soon};

/// Everything written before the close is delivered, as far as the reader has room, and can be read after both ends have closed.
#[tokio::test]
async fn close_waits_for_data_in_flight() {
    let Pair { here, there, server, client } = Pair::new().await;
    for stream in 0..10 {
        let mut opened = there.open_stream().await.unwrap();
        opened.write_all(&pattern(stream, 0, 30_000)).await.unwrap();
        opened.finish().unwrap();
    }
    let close = async {
        there.close().await.unwrap();
        assert!(there.stats().bytes_acknowledged > 300_000);
        assert_eq!(there.open_stream().await.unwrap_err(), StreamError::Closed);
    };
    soon(close).await;
    soon(here.close()).await.unwrap();
    soon(here.closed()).await.unwrap();
    soon(there.closed()).await.unwrap();
    for stream in 0..10 {
        let mut accepted = soon(here.accept_stream()).await.unwrap();
        assert!(soon(accepted.read_to_end(1_000_000)).await.unwrap() == pattern(stream, 0, 30_000), "stream {stream}");
    }
    assert_eq!(here.accept_stream().await.unwrap_err(), StreamError::Closed);
    soon(async { tokio::join!(server.wait_idle(), client.wait_idle()) }).await;
}

/// The close finishes streams that were not finished, as all written data must be delivered.
#[tokio::test]
async fn close_finishes_streams() {
    let Pair { here, there, .. } = Pair::new().await;
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(b"all there is").await.unwrap();
    soon(there.close()).await.unwrap();
    assert_eq!(stream.write_all(b"more").await, Err(WriteError::Closed));
    let mut accepted = soon(here.accept_stream()).await.unwrap();
    assert_eq!(&soon(accepted.read_to_end(100)).await.unwrap()[..], b"all there is");
    // The other end may still send.
    let mut back = here.open_stream().await.unwrap();
    back.write_all(b"and back").await.unwrap();
    back.finish().unwrap();
    let mut accepted = soon(there.accept_stream()).await.unwrap();
    assert_eq!(&soon(accepted.read_to_end(100)).await.unwrap()[..], b"and back");
}

/// If all handles are dropped, written and finished data is still delivered.
#[tokio::test]
async fn dropped_handles_close() {
    let Pair { here, there, client, server } = Pair::new().await;
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(&pattern(3, 0, 500_000)).await.unwrap();
    stream.finish().unwrap();
    drop((stream, there));
    let mut accepted = soon(here.accept_stream()).await.unwrap();
    assert!(soon(accepted.read_to_end(1_000_000)).await.unwrap() == pattern(3, 0, 500_000));
    assert_eq!(soon(here.accept_stream()).await.unwrap_err(), StreamError::Closed);
    drop((accepted, here));
    soon(async { tokio::join!(server.wait_idle(), client.wait_idle()) }).await;
}

/// A peer whose application is gone does not continue for ever.
#[tokio::test]
async fn write_fails_after_peer_is_gone() {
    let Pair { here, there, .. } = Pair::new().await;
    drop(here);
    let mut stream = there.open_stream().await.unwrap();
    let write = async {
        loop {
            if let Err(error) = stream.write_all(&[1; 10_000]).await {
                break error;
            }
        }
    };
    let error = soon(write).await;
    assert!(matches!(error, WriteError::Stopped(0) | WriteError::Lost(Lost::Reset)), "{error:?}");
    assert_eq!(soon(there.closed()).await, Err(Lost::Reset));
}

#[tokio::test]
async fn an_abort_is_heard() {
    let Pair { here, there, .. } = Pair::new().await;
    let mut stream = there.open_stream().await.unwrap();
    stream.write_all(b"something").await.unwrap();
    let mut accepted = soon(here.accept_stream()).await.unwrap();
    assert_eq!(soon(accepted.read_chunk(100)).await.unwrap().unwrap(), "something");
    there.abort();
    assert_eq!(stream.write_all(b"more").await, Err(WriteError::Lost(Lost::Aborted)));
    assert_eq!(there.open_stream().await.unwrap_err(), StreamError::Lost(Lost::Aborted));
    assert_eq!(soon(accepted.read_chunk(100)).await, Err(ReadError::Lost(Lost::Reset)));
    assert_eq!(soon(here.closed()).await, Err(Lost::Reset));
    assert_eq!(soon(there.closed()).await, Err(Lost::Aborted));
    assert_eq!(stream.write_all(b"more").await, Err(WriteError::Lost(Lost::Aborted)));
}

/// The runtime of one end is gone, and with it the socket: it sends nothing any more.
#[test]
fn a_peer_that_vanishes_is_given_up() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (one, other) = (runtime(), runtime());
    let config = Config { idle_timeout: Duration::from_millis(700), ..Config::default() };
    let server = one.block_on(async { server(config.clone()) });
    let client = other.block_on(async { client(config) });
    let ticket = server.ticket();
    let accept = one.spawn({
        let server = server.clone();
        async move { server.accept().await.unwrap() }
    });
    let there = other.block_on(client.connect(&ticket)).unwrap();
    let here = one.block_on(accept).unwrap();
    // While the peer exists, keep-alive probes keep the connection.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!there.paths().is_empty());
    one.shutdown_background();
    let begin = Instant::now();
    assert_eq!(other.block_on(soon(there.closed())), Err(Lost::TimedOut));
    assert!(
        begin.elapsed() > Duration::from_millis(300) && begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(other.block_on(there.open_stream()).unwrap_err(), StreamError::Lost(Lost::TimedOut));
    // Handles of the end that is gone report it, and do not block.
    assert_eq!(other.block_on(soon(here.closed())), Err(Lost::EndpointGone));
    assert!(other.block_on(soon(server.accept())).is_none());
}

/// The program behind the other end's port is killed while this end sends, or is idle with a keep-alive probe each second. The system
/// there says that the port is closed; a network that only loses everything says nothing.
#[tokio::test]
async fn killed_peer_is_noticed_by_its_closed_port() {
    let config = || Config { keep_alive: Some(Duration::from_secs(1)), ..Config::default() };
    for (is_sending, is_killed) in [(true, true), (false, true), (true, false)] {
        let (server, client) = (server(config()), client(config()));
        let (relay, ticket) = Relay::before(&server).await;
        let (there, _here) = between(&client, &server, &ticket).await;
        let mut stream = there.open_stream().await.unwrap();
        stream.write_all(b"something").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        if is_killed {
            relay.close();
        } else {
            relay.cut();
        }
        let began = Instant::now();
        if is_sending {
            stream.write_all(&pattern(1, 0, 100_000)).await.unwrap();
        }
        let lost = tokio::time::timeout(Duration::from_secs(3), there.closed()).await;
        if is_killed {
            assert_eq!(lost, Ok(Err(Lost::PortClosed)), "sending: {is_sending}, {:?}", began.elapsed());
            assert!(began.elapsed() < Duration::from_secs(2), "sending: {is_sending}, {:?}", began.elapsed());
        } else {
            assert!(lost.is_err(), "{lost:?}");
        }
    }
}

/// As above, but the server has never seen the client's last message of the handshake: nothing was acknowledged.
#[tokio::test]
async fn peer_killed_in_the_handshake_is_noticed_by_its_closed_port() {
    let config = || Config { keep_alive: Some(Duration::from_secs(1)), ..Config::default() };
    let (server, client) = (server(config()), client(config()));
    let (relay, ticket) = Relay::before(&server).await;
    relay.forward_up(1);
    let there = soon(client.connect(&ticket)).await.unwrap();
    relay.close();
    let began = Instant::now();
    let lost = tokio::time::timeout(Duration::from_secs(30), there.closed()).await;
    assert_eq!(lost, Ok(Err(Lost::PortClosed)), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

//! Two connected endpoints.

use std::future::Future;
use std::time::{Duration, Instant};

use anabranch::{Config, Connection, Endpoint, SecretKey, Ticket};
use bytes::Bytes;

pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    /// The server's handle of the connection, and the client's.
    pub(crate) here: Connection,
    pub(crate) there: Connection,
}

pub(crate) fn server(config: Config) -> Endpoint {
    Endpoint::server("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

pub(crate) fn client(config: Config) -> Endpoint {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

impl Pair {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// The server has several shards, and the client one, as in any runtime of one thread.
    pub(crate) async fn with(config: Config) -> Self {
        let (server, client) = (server(Config { shards: config.shards.or(Some(3)), ..config.clone() }), client(config));
        let (there, here) = between(&client, &server, &server.ticket()).await;
        Self { server, client, here, there }
    }
}

/// The client's handle of a connection, and the server's.
pub(crate) async fn between(client: &Endpoint, server: &Endpoint, ticket: &Ticket) -> (Connection, Connection) {
    let (there, here) = soon(async { tokio::join!(client.connect(ticket), server.accept()) }).await;
    (there.unwrap(), here.unwrap())
}

/// Waits until the condition holds, for at most half a minute.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails if the future takes too long, as it then hangs.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("it takes no longer than 20 s")
}

/// Says this, and waits until it has arrived: streams may overtake each other.
pub(crate) async fn say(connection: &Connection, bytes: &[u8]) {
    let mut stream = connection.open_stream().await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.finish().unwrap();
    _ = stream.stopped().await;
}

/// Sends `len` bytes on a stream, and checks all that arrives. `meanwhile` gets the number of bytes arrived so far.
pub(crate) async fn transfer(from: &Connection, to: &Connection, len: usize, mut meanwhile: impl FnMut(usize)) {
    let sending = async {
        let mut stream = from.open_stream().await.unwrap();
        stream.write_all_bytes(pattern(1, 0, len)).await.unwrap();
        stream.finish().unwrap();
        assert_eq!(stream.stopped().await, Ok(None));
    };
    let receiving = async {
        let mut stream = to.accept_stream().await.unwrap();
        let mut got = 0;
        while let Some(piece) = stream.read_chunk(1 << 16).await.unwrap() {
            assert_eq!(piece, pattern(1, got as u64, piece.len()), "at {got}");
            got += piece.len();
            meanwhile(got);
        }
        assert_eq!(got, len);
    };
    soon(async { tokio::join!(sending, receiving) }).await;
}

/// Bytes that encode their stream and position.
pub(crate) fn pattern(stream: u64, from: u64, len: usize) -> Bytes {
    let word = |at: u64| (at / 8).wrapping_add(stream << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (from..from + len as u64).map(|at| word(at)[(at % 8) as usize]).collect()
}

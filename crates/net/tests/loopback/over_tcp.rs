//! Members of a relay over TCP, on the loopback interface, and strangers at its TCP port. Networks that block UDP are in `crates/cli/tests/nat`.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::{Config, ConnectError, Endpoint, Relay, RelayConfig, RelayError, RelayTcp, SecretKey, Ticket};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::anyone::Anyone;
use crate::support::{between, soon, transfer, until};

/// A relay that takes members over TCP.
struct Served {
    /// Its UDP address is one at which nobody answers.
    blocked: Ticket,
    /// Both work.
    open: Ticket,
    tcp: SocketAddr,
    relay: Arc<Relay>,
    task: tokio::task::JoinHandle<()>,
    _silent: UdpSocket,
}

impl Served {
    fn new(config: RelayConfig) -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = RelayConfig { tcp: Some(RelayTcp::at(any)), ..config };
        let relay = Arc::new(Relay::bind(any, &SecretKey::generate().unwrap(), config).unwrap());
        let (open, tcp, silent) = (relay.ticket(), relay.tcp_address().unwrap(), UdpSocket::bind(any).unwrap());
        assert_eq!(open.tcp_port(), Some(tcp.port()));
        let blocked = Ticket::new(open.key(), vec![silent.local_addr().unwrap()]).unwrap();
        let blocked = blocked.with_tcp_port(open.tcp_port());
        let served = Arc::clone(&relay);
        let task = tokio::spawn(async move { served.serve().await });
        Self { blocked, open, tcp, relay, task, _silent: silent }
    }

    /// Waits until this many members are there, and as many of them over TCP.
    async fn has_members(&self, all: usize, over_tcp: usize) {
        until(|| (self.relay.stats().members, self.relay.stats().members_over_tcp) == (all, over_tcp)).await;
    }
}

/// An end that cannot leave the relay.
fn end() -> Endpoint {
    let config = Config { paths: 1, ..Config::default() };
    Endpoint::server("127.0.0.1:0".parse().unwrap(), &SecretKey::generate().unwrap(), config).unwrap()
}

/// A ticket with an address at which nobody is, by this ticket of the relay.
fn only_through(server: &Endpoint, relay: &Ticket) -> Ticket {
    let nobody = vec!["127.0.0.1:1".parse().unwrap()];
    Ticket::new(server.public_key(), nobody).unwrap().with_relay(relay)
}

/// Both ends over TCP, and each alone.
#[tokio::test]
async fn stream_comes_whole_over_tcp() {
    let served = Served::new(RelayConfig::default());
    let (open, blocked) = (&served.open, &served.blocked);
    for (places, (by_server, by_client)) in
        [(blocked, blocked), (open, blocked), (blocked, open)].into_iter().enumerate()
    {
        let server = soon(end().with_relay(by_server)).await.unwrap();
        let expected = if by_server == blocked { vec![served.tcp] } else { vec![] };
        assert_eq!(server.relays_over_tcp(), expected);
        assert_eq!(server.ticket().relay().unwrap().tcp_port(), Some(served.tcp.port()));
        assert_eq!(server.ticket().addresses(), [server.local_address()], "a port of TCP is no address of the end");
        let client = end();
        let ticket = only_through(&server, by_client);
        let (there, here) = between(&client, &server, &ticket).await;
        served.has_members(2, if places == 0 { 2 } else { 1 }).await;
        transfer(&there, &here, 3_000_000, |_| {}).await;
        assert!(there.paths().len() == 1 && there.paths()[0].is_relayed());
        soon(async { tokio::join!(there.close(), here.close()) }).await.0.unwrap();
        drop((server, client, there, here));
        served.has_members(0, 0).await;
    }
}

/// UDP that works wins, although the relay listens on TCP, too.
#[tokio::test]
async fn member_prefers_udp() {
    let served = Served::new(RelayConfig::default());
    let member = soon(end().with_relay(&served.open)).await.unwrap();
    assert!(member.relays_over_tcp().is_empty());
    served.has_members(1, 0).await;
}

/// Who asks for the relay learns that UDP is of no use, and does not wait for it again.
#[tokio::test]
async fn relay_found_over_tcp_is_joined_at_once() {
    let served = Served::new(RelayConfig::default());
    let found = soon(Relay::find(served.open.addresses())).await.unwrap();
    assert_eq!((&found, found.tcp_port()), (&served.open, Some(served.tcp.port())), "the answer has the port");
    // The TCP port has the same number as the UDP port at which nobody answers.
    let silent = UdpSocket::bind(("127.0.0.1", served.tcp.port())).unwrap();
    let begin = Instant::now();
    let member = end();
    let found = soon(member.find_relay(&[silent.local_addr().unwrap()])).await.unwrap();
    assert_eq!((found.key(), found.tcp_port()), (served.open.key(), Some(served.tcp.port())));
    let member = soon(member.with_relay(&found)).await.unwrap();
    assert_eq!(member.relays_over_tcp(), [served.tcp]);
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_millis(3_900), "{took:?}");
}

/// TCP tells both at once that a relay is gone.
#[tokio::test]
async fn members_notice_the_end_of_tcp() {
    let served = Served::new(RelayConfig::default());
    let server = soon(end().with_relay(&served.blocked)).await.unwrap();
    let Served { relay, task, .. } = served;
    task.abort();
    drop(relay);
    until(|| server.relays_over_tcp().is_empty()).await;
    assert_eq!(server.ticket().relay(), None);
}

/// TCP leads to a relay with another key: that is none.
#[tokio::test]
async fn relay_over_tcp_proves_its_key() {
    let served = Served::new(RelayConfig::default());
    let other = Ticket::new(SecretKey::generate().unwrap().public(), served.blocked.addresses().to_vec()).unwrap();
    let other = other.with_tcp_port(served.blocked.tcp_port());
    let config = Config { connect_timeout: Duration::from_secs(3), ..Config::default() };
    let key = SecretKey::generate().unwrap();
    let member = Endpoint::server("127.0.0.1:0".parse().unwrap(), &key, config).unwrap();
    let refused = soon(member.with_relay(&other)).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Relay(_, RelayError::NoAnswer(_))), "{refused:?}");
    assert!(refused.to_string().contains("or TCP to a relay with `--tcp`"), "{refused}");
}

/// The members of an address have their limit over TCP as well.
#[tokio::test]
async fn members_of_an_address_are_limited_over_tcp() {
    let served = Served::new(RelayConfig { members_per_address: 2, ..RelayConfig::default() });
    let joining: Vec<_> = (0..4).map(|_| tokio::spawn(end().with_relay_of(served.blocked.clone()))).collect();
    let mut joined = vec![];
    for member in joining {
        joined.extend(soon(member).await.unwrap().ok());
    }
    assert_eq!(joined.len(), 2);
}

trait WithRelayOf: Sized {
    fn with_relay_of(self, relay: Ticket) -> impl Future<Output = Result<Self, ConnectError>> + Send + 'static;
}

impl WithRelayOf for Endpoint {
    async fn with_relay_of(self, relay: Ticket) -> Result<Self, ConnectError> {
        self.with_relay(&relay).await
    }
}

/// A stranger's way into the relay, as far as TLS.
async fn tls(address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let anyone = Arc::new(Anyone(Arc::clone(&provider)));
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::IpAddress(address.ip().into()), stream).await
}

/// As far as WebSocket.
async fn websocket(address: SocketAddr) -> WebSocketStream<TlsStream<TcpStream>> {
    let opened = tokio_tungstenite::client_async(format!("wss://{address}/"), tls(address).await.unwrap()).await;
    opened.unwrap().0
}

/// Strangers say at each layer what does not belong there: they are cut off, and members stay.
#[tokio::test]
async fn strangers_at_the_tcp_port_are_cut_off() {
    let served = Served::new(RelayConfig::default());
    let member = soon(end().with_relay(&served.blocked)).await.unwrap();
    // No TLS.
    let mut stream = TcpStream::connect(served.tcp).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    _ = soon(stream.read_to_end(&mut vec![])).await;
    // No HTTP, no WebSocket, and a head without end.
    let endless = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 1_000_000]].concat();
    for said in [&[0xff; 3_000][..], b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n", &endless] {
        let mut stream = tls(served.tcp).await.unwrap();
        _ = soon(stream.write_all(said)).await;
        _ = soon(stream.read_to_end(&mut vec![])).await;
    }
    // A text; nothing; and too much at once.
    for message in [Message::text("hello"), Message::binary(vec![]), Message::binary(vec![6; 9_217])] {
        let mut socket = websocket(served.tcp).await;
        _ = socket.send(message).await;
        while let Some(Ok(_)) = soon(socket.next()).await {}
    }
    // Datagrams of no kind are dropped like those over UDP. A question is answered.
    let mut socket = websocket(served.tcp).await;
    let question = [&[6, 3, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[0; 52]].concat();
    for message in [vec![0; 9_216], vec![6; 50], vec![1; 500], question] {
        socket.send(Message::binary(message)).await.unwrap();
    }
    let Message::Binary(answer) = soon(socket.next()).await.unwrap().unwrap() else { panic!("no answer") };
    let port = served.tcp.port().to_be_bytes();
    let expected = [&[6, 4, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..], served.open.key().bytes(), &port].concat();
    assert_eq!(answer, Bytes::from(expected));
    assert_eq!(member.relays_over_tcp(), [served.tcp]);
    served.has_members(1, 1).await;
}

/// Who says nothing, at any layer, loses its place, and so does who is no member.
#[tokio::test]
async fn silent_connections_and_strangers_lose_their_places() {
    let served = Served::new(RelayConfig::default());
    let begin = Instant::now();
    let mut bare = TcpStream::connect(served.tcp).await.unwrap();
    let mut secured = tls(served.tcp).await.unwrap();
    let mut socket = websocket(served.tcp).await;
    let late = |limit: u64| {
        move |took: Duration| took > Duration::from_secs(limit - 1) && took < Duration::from_secs(limit + 5)
    };
    let ends = async {
        let bare = async {
            _ = bare.read_to_end(&mut vec![]).await;
            begin.elapsed()
        };
        let secured = async {
            _ = secured.read_to_end(&mut vec![]).await;
            begin.elapsed()
        };
        let socket = async {
            while let Some(Ok(_)) = socket.next().await {}
            begin.elapsed()
        };
        tokio::join!(bare, secured, socket)
    };
    let (bare, secured, socket) = tokio::time::timeout(Duration::from_secs(40), ends).await.unwrap();
    assert!(late(10)(bare) && late(10)(secured) && late(15)(socket), "{bare:?} {secured:?} {socket:?}");
}

/// Connections of one address beyond the limit are closed at once, and nobody else's are.
#[tokio::test]
async fn connections_of_an_address_are_limited() {
    let served = Served::new(RelayConfig { members_per_address: 2, ..RelayConfig::default() });
    let mut held = vec![];
    for _ in 0..10 {
        held.push(websocket(served.tcp).await);
    }
    // Two, and eight to spare.
    assert!(tls(served.tcp).await.is_err());
    held.pop();
    soon(async {
        while tls(served.tcp).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

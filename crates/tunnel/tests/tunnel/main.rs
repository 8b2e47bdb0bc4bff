//! TCP connections and packets of UDP through a tunnel over the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod udp;
mod vpn;

use std::collections::BTreeSet;
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch::{Config, Connection, Endpoint, SecretKey};
use anabranch_tunnel::{
    Answer, Common, OpenError, Permissions, Ports, Shares, Target, Targets, Tunnel, bind, forward, socks,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Both ends of a tunnel.
struct TunnelEnds {
    client: Tunnel,
    server: Tunnel,
    connection: Connection,
}

impl TunnelEnds {
    /// The server has these permissions; the client has none.
    async fn new(permissions: Permissions) -> Self {
        Self::sharing(permissions, Common::default()).await
    }

    /// The same, of a server with other clients.
    async fn sharing(permissions: Permissions, common: Common) -> Self {
        Self::configured(permissions, common, Config::default()).await
    }

    /// The same, of a server that has this configuration.
    async fn configured(permissions: Permissions, common: Common, config: Config) -> Self {
        let server = Endpoint::server(any(), &SecretKey::generate().unwrap(), config).unwrap();
        let client = Endpoint::bind(any(), &SecretKey::generate().unwrap(), Config::default()).unwrap();
        let ticket = server.ticket();
        let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
        let (there, here) = (there.unwrap(), here.unwrap());
        let connection = there.clone();
        let ends = Self {
            client: Tunnel::new(there, Permissions::default()),
            server: Tunnel::sharing(here, permissions, common),
            connection,
        };
        for end in [&ends.client, &ends.server] {
            let end = end.clone();
            tokio::spawn(async move { end.run().await });
        }
        ends
    }

    /// A port here that is forwarded to the target there.
    async fn port(&self, target: SocketAddr) -> (SocketAddr, mpsc::UnboundedReceiver<OpenError>) {
        let listener = bind(any()).unwrap();
        let (address, tunnel, target) = (listener.local_addr().unwrap(), self.client.clone(), at(target));
        let (failed, failures) = mpsc::unbounded_channel();
        tokio::spawn(
            async move { forward::forward(&listener, &tunnel, &target, |error| _ = failed.send(error)).await },
        );
        (address, failures)
    }
}

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn at(address: SocketAddr) -> Target {
    address.to_string().parse().unwrap()
}

fn to(targets: &[SocketAddr]) -> Permissions {
    let targets: BTreeSet<Target> = targets.iter().copied().map(at).collect();
    Permissions { targets: Targets::Listed(targets), ..Permissions::default() }
}

/// Echoes all data, and closes when the client does.
async fn echo() -> SocketAddr {
    let listener = bind(any()).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reading, mut writing) = tcp.split();
                _ = tokio::io::copy(&mut reading, &mut writing).await;
            });
        }
    });
    address
}

/// A TCP connection through the tunnel that has carried some data: the client's socket, and the target's.
async fn through(port: SocketAddr, target: &TcpListener) -> (TcpStream, TcpStream) {
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.write_all(b"hello").await.unwrap();
    let (mut far, _) = soon(target.accept()).await.unwrap();
    let mut hello = [0; 5];
    soon(far.read_exact(&mut hello)).await.unwrap();
    (tcp, far)
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("it takes no longer than 20 s")
}

async fn asks(tcp: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    tcp.write_all(request).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut answer = vec![];
    soon(tcp.read_to_end(&mut answer)).await.unwrap();
    answer
}

/// Both directions carry data, and each ends independently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_leads_to_a_target() {
    let target = echo().await;
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, _failures) = ends.port(target).await;
    let request: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let (mut reading, mut writing) = TcpStream::connect(port).await.unwrap().into_split();
    let sent = request.clone();
    let sending = async move {
        writing.write_all(&sent).await.unwrap();
        writing.shutdown().await.unwrap();
        writing
    };
    let mut answer = vec![];
    let (_writing, got) = soon(async { tokio::join!(sending, reading.read_to_end(&mut answer)) }).await;
    got.unwrap();
    assert!(answer == request, "{} bytes came back of {}", answer.len(), request.len());
}

/// More connections than there are streams at a time: the later ones wait, and all are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_hundred_connections_at_once() {
    let target = echo().await;
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, _failures) = ends.port(target).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..400_u32 {
        tasks.spawn(async move {
            let mut tcp = TcpStream::connect(port).await.unwrap();
            assert_eq!(asks(&mut tcp, &number.to_le_bytes()).await, number.to_le_bytes());
        });
    }
    while let Some(done) = soon(tasks.join_next()).await {
        done.unwrap();
    }
}

/// A client takes half of a server's eight TCP connections, the second client half of the rest. What is beyond is refused with the
/// reason, and what ends makes room.
#[tokio::test]
async fn greedy_client_leaves_tcp_connections_to_others() {
    let target = echo().await;
    let common = Common { shares: Shares::new(8), ..Common::default() };
    let (mut held, mut counts) = (vec![], vec![]);
    for _ in 0..2 {
        let ends = TunnelEnds::sharing(to(&[target]), common.clone()).await;
        let mut opened = vec![];
        let refused = loop {
            match soon(ends.client.open(&at(target))).await {
                Ok(open) => opened.push(open),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, OpenError::Refused(Answer::Full));
        counts.push(opened.len());
        held.push((ends, opened));
    }
    assert_eq!(counts, [4, 2]);
    let (ends, opened) = &mut held[1];
    opened.clear();
    soon(async { while ends.client.open(&at(target)).await.is_err() {} }).await;
}

#[tokio::test]
async fn target_not_permitted_is_refused() {
    let (target, other) = (echo().await, echo().await);
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, mut failures) = ends.port(other).await;
    let mut tcp = TcpStream::connect(port).await.unwrap();
    let error = soon(tcp.read(&mut [0])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(soon(failures.recv()).await, Some(OpenError::Refused(Answer::Forbidden)));
    let listened = soon(ends.client.listen_there("127.0.0.1".parse().unwrap(), 0, &at(target))).await;
    assert_eq!(listened, Err(OpenError::Refused(Answer::Forbidden)));
    // The client permits the server nothing.
    assert_eq!(soon(ends.server.open(&at(target))).await.unwrap_err(), OpenError::Refused(Answer::Forbidden));
}

#[tokio::test]
async fn a_target_that_does_not_listen_is_refused() {
    let target = {
        let listener = TcpListener::bind(any()).await.unwrap();
        listener.local_addr().unwrap()
    };
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, mut failures) = ends.port(target).await;
    let mut tcp = TcpStream::connect(port).await.unwrap();
    assert_eq!(soon(tcp.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(soon(failures.recv()).await, Some(OpenError::Refused(Answer::Refused)));
    let nobody: Target = "no-such-host.invalid:80".parse().unwrap();
    let ends = TunnelEnds::new(Permissions { targets: Targets::All, ..Permissions::default() }).await;
    assert_eq!(soon(ends.client.open(&nobody)).await.unwrap_err(), OpenError::Refused(Answer::NoHost));
}

/// A TCP connection that is reset at one end is reset at the other end, in both directions.
#[tokio::test]
async fn a_reset_is_passed_on() {
    let listener = TcpListener::bind(any()).await.unwrap();
    let target = listener.local_addr().unwrap();
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, _failures) = ends.port(target).await;

    let (mut tcp, far) = through(port, &listener).await;
    socket2::SockRef::from(&far).set_linger(Some(Duration::ZERO)).unwrap();
    drop(far);
    assert_eq!(soon(tcp.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);

    let (tcp, mut far) = through(port, &listener).await;
    socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    drop(tcp);
    assert_eq!(soon(far.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// When the tunnel is gone, no data received so far counts as complete.
#[tokio::test]
async fn the_end_of_the_tunnel_resets() {
    let listener = TcpListener::bind(any()).await.unwrap();
    let target = listener.local_addr().unwrap();
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, _failures) = ends.port(target).await;
    let (mut tcp, mut far) = through(port, &listener).await;
    ends.connection.abort();
    assert_eq!(soon(tcp.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(soon(far.read(&mut [0])).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// A port at the other end is forwarded to this end.
#[tokio::test]
async fn the_other_end_listens() {
    let target = echo().await;
    let ends = TunnelEnds::new(Permissions { listens: true, ..Permissions::default() }).await;
    let port = soon(ends.client.listen_there("127.0.0.1".parse().unwrap(), 0, &at(target))).await.unwrap();
    for _ in 0..3 {
        let mut tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert_eq!(asks(&mut tcp, b"who is there?").await, b"who is there?");
    }
    // A port that is in use cannot be bound again.
    let again = soon(ends.client.listen_there("127.0.0.1".parse().unwrap(), port, &at(target))).await;
    assert_eq!(again, Err(OpenError::Refused(Answer::Refused)));
    // The listener is closed when the tunnel is gone.
    ends.connection.abort();
    soon(async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A client that was killed comes back with the same key, while its earlier connection lives on at the server: it gets its port at
/// once. Another client does not.
#[tokio::test]
async fn same_key_new_connection_takes_over_its_port() {
    let target = echo().await;
    let key = SecretKey::generate().unwrap();
    let server = Endpoint::server(any(), &SecretKey::generate().unwrap(), Config::default()).unwrap();
    let (ports, permissions) = (Ports::default(), Permissions { listens: true, ..Permissions::default() });
    let mut kept = vec![];
    let mut port = 0;
    for (key, is_taken) in [(&key, true), (&SecretKey::generate().unwrap(), false), (&key, true)] {
        let client = Endpoint::bind(any(), key, Config::default()).unwrap();
        let ticket = server.ticket();
        let (there, here) = tokio::join!(client.connect(&ticket), server.accept());
        let here =
            Tunnel::sharing(here.unwrap(), permissions.clone(), Common { ports: ports.clone(), ..Common::default() });
        let there = Tunnel::new(there.unwrap(), Permissions::default());
        for end in [&here, &there] {
            let end = end.clone();
            tokio::spawn(async move { end.run().await });
        }
        let begin = Instant::now();
        let asked = soon(there.listen_there("127.0.0.1".parse().unwrap(), port, &at(target))).await;
        assert!(begin.elapsed() < Duration::from_secs(2));
        if is_taken {
            port = asked.unwrap();
            let mut tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            assert_eq!(asks(&mut tcp, b"who is there?").await, b"who is there?");
        } else {
            assert_eq!(asked, Err(OpenError::Refused(Answer::Refused)));
        }
        kept.push((client, here, there));
    }
}

/// Sixty readers of a long answer stand still, after whatever TCP's buffers took. Another answer of 30 MB arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_stand_still_hold_back_nobody() {
    let listener = bind(any()).unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let piece = vec![7; 1 << 16];
                // A client that is gone ends it.
                while tcp.write_all(&piece).await.is_ok() {}
            });
        }
    });
    let ends = TunnelEnds::new(to(&[target])).await;
    let (port, _failures) = ends.port(target).await;
    let mut still = vec![];
    for _ in 0..60 {
        still.push(TcpStream::connect(port).await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for mut tcp in [still.remove(0), TcpStream::connect(port).await.unwrap()] {
        let mut answer = vec![0; 30_000_000];
        soon(tcp.read_exact(&mut answer)).await.unwrap();
        assert!(answer.iter().all(|byte| *byte == 7));
    }
}

/// Twenty uploads of 30 MB to a target that reads nothing stand still. An upload to another target arrives whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_stand_still_hold_back_nobody() {
    let (still, reading) = (bind(any()).unwrap(), bind(any()).unwrap());
    let (stuck, target) = (still.local_addr().unwrap(), reading.local_addr().unwrap());
    tokio::spawn(async move {
        let mut kept = vec![];
        while let Ok((tcp, _)) = still.accept().await {
            kept.push(tcp);
        }
    });
    let received = tokio::spawn(async move {
        let (mut tcp, _) = reading.accept().await.unwrap();
        let mut upload = vec![];
        tcp.read_to_end(&mut upload).await.unwrap();
        upload
    });
    let ends = TunnelEnds::new(to(&[stuck, target])).await;
    let ((port, _failures), (free, _other_failures)) = (ends.port(stuck).await, ends.port(target).await);
    let mut uploads = tokio::task::JoinSet::new();
    for _ in 0..20 {
        uploads.spawn(async move {
            let mut tcp = TcpStream::connect(port).await.unwrap();
            tcp.write_all(&vec![1; 30_000_000]).await.unwrap();
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(uploads.try_join_next().is_none(), "nobody reads them");
    soon(async {
        let mut tcp = TcpStream::connect(free).await.unwrap();
        tcp.write_all(&vec![7; 30_000_000]).await.unwrap();
        drop(tcp);
        let upload = received.await.unwrap();
        assert!(upload.len() == 30_000_000 && upload.iter().all(|byte| *byte == 7));
    })
    .await;
}

/// The messages of [rfc-1928] sec. 3 to 6, byte by byte.
#[tokio::test]
async fn socks_goes_where_the_client_wants() {
    let target = echo().await;
    let ends = TunnelEnds::new(to(&[target])).await;
    let listener = TcpListener::bind(any()).await.unwrap();
    let (address, tunnel) = (listener.local_addr().unwrap(), ends.client.clone());
    tokio::spawn(async move { socks::serve(&listener, &tunnel, |_| {}).await });
    let ask = async |request: &[u8], answer: usize| {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_all(&[5, 2, 1, 0]).await.unwrap();
        let mut method = [0; 2];
        soon(tcp.read_exact(&mut method)).await.unwrap();
        assert_eq!(method, [5, 0]);
        tcp.write_all(request).await.unwrap();
        let mut reply = vec![0; answer];
        soon(tcp.read_exact(&mut reply)).await.unwrap();
        (tcp, reply)
    };
    let port = target.port().to_be_bytes();
    let (mut tcp, reply) = ask(&[5, 1, 0, 1, 127, 0, 0, 1, port[0], port[1]], 10).await;
    assert_eq!(reply, [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(asks(&mut tcp, b"through").await, b"through");
    // A host by name to which the server does not connect: "not allowed by ruleset".
    let (_, reply) = ask(&[&[5, 1, 0, 3, 9][..], b"localhost", &port].concat(), 10).await;
    assert_eq!(reply[1], 2);
    // BIND is not supported: "command not supported".
    let (_, reply) = ask(&[5, 2, 0, 1, 127, 0, 0, 1, port[0], port[1]], 10).await;
    assert_eq!(reply[1], 7);
    // Nor are unknown address types: "address type not supported".
    let (_, reply) = ask(&[5, 1, 0, 9], 10).await;
    assert_eq!(reply[1], 8);
    // A client that requires authentication is refused.
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(&[5, 1, 2]).await.unwrap();
    let mut method = [0; 2];
    soon(tcp.read_exact(&mut method)).await.unwrap();
    assert_eq!(method, [5, 0xff]);
}

/// Invalid streams are stopped, and have no other effect.
#[tokio::test]
async fn rubbish_is_stopped() {
    let target = echo().await;
    let ends = TunnelEnds::new(to(&[target])).await;
    for rubbish in [&b"\xff\0\0\0\0"[..], b"\x10\x07\0\0\0\x63\0\0", b"\x01\0\0\0\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = ends.connection.open_stream().await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        assert_eq!(soon(stream.stopped()).await, Ok(Some(0)), "{rubbish:?}");
    }
    let (port, _failures) = ends.port(target).await;
    let mut tcp = TcpStream::connect(port).await.unwrap();
    assert_eq!(asks(&mut tcp, b"still there?").await, b"still there?");
}

//! Packets of UDP.

use std::sync::Arc;

use anabranch_tunnel::udp;
use bytes::Bytes;
use tokio::net::UdpSocket;

use super::*;

/// Sends each packet back to where it came from, behind this end's port.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind(any()).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut room = vec![0; 65_536];
        while let Ok((len, from)) = socket.recv_from(&mut room).await {
            _ = socket.send_to(&room[..len], from).await;
        }
    });
    address
}

fn udp_to(targets: &[SocketAddr]) -> Permissions {
    Permissions { udp: Targets::Listed(targets.iter().copied().map(at).collect()), ..Permissions::default() }
}

impl TunnelEnds {
    /// A UDP port here whose packets go to the target there.
    async fn udp_port(&self, target: SocketAddr) -> (SocketAddr, mpsc::UnboundedReceiver<OpenError>) {
        let socket = Arc::new(UdpSocket::bind(any()).await.unwrap());
        let (address, tunnel, target) = (socket.local_addr().unwrap(), self.client.clone(), at(target));
        let (failed, failures) = mpsc::unbounded_channel();
        tokio::spawn(async move { udp::forward(&socket, &tunnel, &target, |error| _ = failed.send(error)).await });
        (address, failures)
    }
}

/// A program that talks to this address.
async fn program(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(any()).await.unwrap();
    socket.connect(to).await.unwrap();
    socket
}

async fn answer(program: &UdpSocket) -> Vec<u8> {
    let mut room = vec![0; 65_536];
    let len = soon(program.recv(&mut room)).await.unwrap();
    room.truncate(len);
    room
}

/// Each program gets its own answers: an empty packet, one of a byte, of a datagram, and those that only streams carry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_each_size_come_back_to_their_program() {
    let target = echo().await;
    let ends = TunnelEnds::new(udp_to(&[target])).await;
    let (port, _failures) = ends.udp_port(target).await;
    for number in 0..5_u8 {
        let program = program(port).await;
        for len in [0, 1, 1_000, 1_500, 9_000, 65_507] {
            let packet = vec![number; len];
            program.send(&packet).await.unwrap();
            assert!(answer(&program).await == packet, "{len} bytes of program {number}");
        }
    }
    assert!(ends.connection.stats().datagrams.sent > 0, "small packets are datagrams");
}

/// A connection begins with packets of 1,200 bytes. A flow looks for larger ones before it needs them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flow_of_small_packets_finds_the_largest_packet() {
    let target = echo().await;
    let ends = TunnelEnds::new(udp_to(&[target])).await;
    let (port, _failures) = ends.udp_port(target).await;
    let program = program(port).await;
    program.send(b"small").await.unwrap();
    assert_eq!(answer(&program).await, b"small");
    let found = async {
        while ends.connection.max_datagram_size().unwrap() < 1350 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(found).await;
}

/// Without datagrams at one end all packets go over streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_without_datagrams_carries_packets_by_streams() {
    let target = echo().await;
    let config = Config { datagram_receive_buffer: 0, ..Config::default() };
    let ends = TunnelEnds::configured(udp_to(&[target]), Common::default(), config).await;
    let (port, _failures) = ends.udp_port(target).await;
    let program = program(port).await;
    for packet in [&b"one"[..], b"", b"three"] {
        program.send(packet).await.unwrap();
        assert_eq!(answer(&program).await, packet);
    }
    assert_eq!(ends.connection.stats().datagrams.sent, 0);
}

/// The permission to connect by TCP is none to send packets, and the other way round.
#[tokio::test]
async fn packets_need_permission_of_their_own() {
    let (target, tcp) = (echo().await, super::echo().await);
    let ends = TunnelEnds::new(Permissions { udp: udp_to(&[target]).udp, ..to(&[tcp]) }).await;
    let refused = Some(OpenError::Refused(Answer::Forbidden));
    let (port, mut failures) = ends.udp_port(tcp).await;
    let program = program(port).await;
    program.send(b"packet").await.unwrap();
    assert_eq!(soon(failures.recv()).await, refused);
    // Asked for again a second later, not with each packet.
    for _ in 0..10 {
        program.send(b"packet").await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(failures.try_recv().is_err());
    assert_eq!(soon(ends.client.open(&at(target))).await.unwrap_err(), OpenError::Refused(Answer::Forbidden));
}

/// A target where nobody listens yet: its host says so, and the flow lives on.
#[tokio::test]
async fn refused_packet_ends_no_flow() {
    let target = UdpSocket::bind(any()).await.unwrap().local_addr().unwrap();
    let ends = TunnelEnds::new(udp_to(&[target])).await;
    let (port, mut failures) = ends.udp_port(target).await;
    let program = program(port).await;
    for _ in 0..3 {
        program.send(b"nobody").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let socket = UdpSocket::bind(target).await.unwrap();
    program.send(b"somebody").await.unwrap();
    let mut room = [0; 100];
    let (len, from) = soon(socket.recv_from(&mut room)).await.unwrap();
    assert_eq!(&room[..len], b"somebody");
    socket.send_to(b"yes", from).await.unwrap();
    assert_eq!(answer(&program).await, b"yes");
    assert!(failures.try_recv().is_err());
}

/// Datagrams that are too short or of no flow, a number that is used twice, and a flow whose frames stop in the middle harm no other flow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_end_harms_no_flow() {
    let target = echo().await;
    let ends = TunnelEnds::new(udp_to(&[target])).await;
    for datagram in [&b""[..], b"abc", b"\0\0\0\0packet", b"\xff\xff\xff\xffpacket"] {
        ends.connection.send_datagram(Bytes::from_static(datagram)).unwrap();
    }
    let header = anabranch_tunnel::Header::Flow { number: 1 << 30, target: at(target) }.to_bytes();
    let mut streams = vec![];
    for _ in 0..2 {
        let mut stream = ends.connection.open_stream().await.unwrap();
        stream.write_all(&header).await.unwrap();
        stream.write_all(&[200, 0, 1, 2, 3]).await.unwrap();
        streams.push(stream);
    }
    streams.iter_mut().for_each(|stream| _ = stream.finish());
    let (port, _failures) = ends.udp_port(target).await;
    let program = program(port).await;
    for _ in 0..3 {
        program.send(b"hello").await.unwrap();
        assert_eq!(answer(&program).await, b"hello");
    }
}

/// SOCKS5: a port for packets, each of which names its target, by address or name. It closes with the TCP connection that asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_associates_packets_with_targets() {
    let (one, other) = (echo().await, echo().await);
    let name: Target = format!("localhost:{}", other.port()).parse().unwrap();
    let permissions =
        Permissions { udp: Targets::Listed([at(one), name].into_iter().collect()), ..Permissions::default() };
    let ends = TunnelEnds::new(permissions).await;
    let listener = bind(any()).unwrap();
    let (socks_port, tunnel) = (listener.local_addr().unwrap(), ends.client.clone());
    let (failed, mut failures) = mpsc::unbounded_channel();
    tokio::spawn(async move { socks::serve(&listener, &tunnel, |error| _ = failed.send(error.to_string())).await });

    let mut tcp = TcpStream::connect(socks_port).await.unwrap();
    tcp.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut reply = [0; 12];
    soon(tcp.read_exact(&mut reply)).await.unwrap();
    assert_eq!(reply[..6], [5, 0, 5, 0, 0, 1]);
    let port =
        SocketAddr::new([reply[6], reply[7], reply[8], reply[9]].into(), u16::from_be_bytes([reply[10], reply[11]]));
    let program = program(port).await;
    let by_address = [&[0, 0, 0, 1, 127, 0, 0, 1][..], &one.port().to_be_bytes()].concat();
    let by_name = [&[0, 0, 0, 3, 9], &b"localhost"[..], &other.port().to_be_bytes()].concat();
    for header in [&by_address, &by_name] {
        for data in [&b"a"[..], b"bc"] {
            let packet = [header, data].concat();
            // Neither a fragment nor garbage is answered.
            program.send(&[0, 0, 1]).await.unwrap();
            program.send(&packet).await.unwrap();
            assert_eq!(answer(&program).await, packet);
        }
    }
    program.send(&[0, 0, 0, 1, 127, 0, 0, 1, 0, 9, 1]).await.unwrap();
    let failure = soon(failures.recv()).await.unwrap();
    assert_eq!(failure, "127.0.0.1:9: the other end does not allow it");

    // Packets of another computer are not carried. On Linux all of 127.0.0.0/8 is this one.
    #[cfg(target_os = "linux")]
    {
        let stranger = UdpSocket::bind("127.0.0.2:0").await.unwrap();
        stranger.send_to(&[&by_address, &b"a"[..]].concat(), port).await.unwrap();
        let answered = tokio::time::timeout(Duration::from_millis(300), stranger.recv(&mut [0; 100])).await;
        assert!(answered.is_err(), "{answered:?}");
    }

    drop(tcp);
    let is_free = async {
        while UdpSocket::bind(port).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(is_free).await;
}

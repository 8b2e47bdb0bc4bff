//! UDP ASSOCIATE ([rfc-1928] sec. 7): each packet names its target. Packets of other computers than the client's are ignored, and so are
//! fragments, which no client sends.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UdpSocket};

use super::{IPV4, IPV6, NAME, SUCCEEDED, SocksError, reply};
use crate::flow::PACKET_MAX;
use crate::target::Target;
use crate::tunnel::Tunnel;
use crate::udp::Flows;

/// Carries packets until the client ends the TCP connection that has asked for it.
///
/// # Errors
/// If no port can be opened, or the client is gone before it gets the reply.
pub(super) async fn carry(mut tcp: TcpStream, tunnel: &Tunnel, failed: impl Fn(SocksError)) -> io::Result<()> {
    let client = tcp.peer_addr()?.ip();
    let socket = Arc::new(UdpSocket::bind(SocketAddr::new(tcp.local_addr()?.ip(), 0)).await?);
    reply(&mut tcp, SUCCEEDED, socket.local_addr()?).await?;
    let mut flows = Flows::new(&socket, tunnel);
    let mut room = vec![0; PACKET_MAX];
    let mut rest = [0; 64];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut room) => {
                // An error tells of an answer that could not be delivered.
                let Ok((len, from)) = received else { continue };
                if from.ip() == client && let Some((header, target)) = open(&room[..len]) {
                    flows.send(from, &Arc::new(target), &room[header..len], || Bytes::copy_from_slice(&room[..header]));
                }
            }
            (target, error) = flows.failed() => failed(SocksError::Open((*target).clone(), error)),
            // Nothing is to be said on it.
            read = tcp.read(&mut rest) => if matches!(read, Ok(0) | Err(_)) { return Ok(()) },
        }
    }
}

/// The length of a packet's header, and the target that it names. Answers bear the same header: the address that the client knows.
fn open(packet: &[u8]) -> Option<(usize, Target)> {
    let (&[0, 0, 0, family], rest) = packet.split_first_chunk()? else { return None };
    let (host, rest) = match family {
        IPV4 => rest.split_first_chunk::<4>().map(|(address, rest)| (Ipv4Addr::from(*address).to_string(), rest))?,
        IPV6 => rest.split_first_chunk::<16>().map(|(address, rest)| (Ipv6Addr::from(*address).to_string(), rest))?,
        NAME => {
            let (&len, rest) = rest.split_first()?;
            let (name, rest) = rest.split_at_checked(len.into())?;
            (std::str::from_utf8(name).ok()?.to_owned(), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let target = Target::new(&host, u16::from_be_bytes(*port)).ok()?;
    Some((packet.len() - rest.len(), target))
}

/// An address as replies and packets have it.
pub(super) fn encoded(address: SocketAddr) -> Bytes {
    let mut bytes = BytesMut::new();
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.put_u8(IPV4);
            bytes.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.put_u8(IPV6);
            bytes.put_slice(&ip.octets());
        }
    }
    bytes.put_u16(address.port());
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_each_family_is_read() {
        let read = |header: &[u8]| {
            let packet = [&[0, 0, 0], header, b"data"].concat();
            open(&packet).map(|(len, target)| (packet[len..].to_vec(), target.to_string()))
        };
        let cases = [
            ("10.1.2.3:53", [1, 10, 1, 2, 3, 0, 53].to_vec()),
            ("a.example:53", [&[3, 9], &b"a.example"[..], &[0, 53]].concat()),
        ];
        for (target, header) in cases {
            assert_eq!(read(&header), Some((b"data".to_vec(), target.to_owned())), "{target}");
        }
        let address: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(read(&encoded(address)), Some((b"data".to_vec(), address.to_string())));
    }

    /// Fragments, unknown families, port 0, names that are none, and each header that is cut.
    #[test]
    fn invalid_packet_is_ignored() {
        let whole = [&[0, 0, 0, 3, 9][..], b"a.example", &[0, 53]].concat();
        assert!(open(&whole).is_some());
        for len in 0..whole.len() {
            assert_eq!(open(&whole[..len]), None, "{len} bytes");
        }
        for bad in [
            &[0, 0, 1, 1, 10, 1, 2, 3, 0, 53][..],
            &[0, 0, 0, 2, 10, 1, 2, 3, 0, 53],
            &[0, 0, 0, 1, 10, 1, 2, 3, 0, 0],
            &[0, 0, 0, 3, 1, b' ', 0, 53],
        ] {
            assert_eq!(open(bad), None, "{bad:?}");
        }
    }
}

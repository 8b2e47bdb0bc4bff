//! The client's side.

use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::carrier::Streams;
use super::ip_network::IpNetwork;
use super::lane::Lane;
use super::lease::Lease;
use super::packet::Header;
use super::{Device, PACKET_MAX};

/// A place in the server's network.
pub struct Seat<'a> {
    streams: Streams<'a>,
    lease: Lease,
}

/// What a client lets through.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The networks that are routed to the tunnel, besides the server's own: only they may be the sources of packets that arrive.
    pub routed: Vec<IpNetwork>,
    /// The UDP ports of this end's endpoint, whose datagrams never go through the tunnel that they are.
    pub own_ports: Vec<u16>,
}

impl<'a> Seat<'a> {
    pub(crate) fn new(streams: Streams<'a>, lease: Lease) -> Self {
        Self { streams, lease }
    }

    /// The addresses that the server has given.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Moves packets between a device and the server, until the server stops.
    ///
    /// # Errors
    /// If the device is gone.
    pub async fn run(self, device: &impl Device, traffic: &Traffic) -> io::Result<()> {
        let Self { streams, lease } = self;
        let lane = Lane::new();
        let (sink, mut source) = mpsc::channel::<Bytes>(WAITING_MAX);
        let to_server = async {
            let mut room = vec![0; PACKET_MAX];
            loop {
                let len = device.recv(&mut room).await?;
                if let Some(header) = Header::read(&room[..len]).filter(|header| traffic.may_leave(&lease, header)) {
                    lane.push(&header, &room[..len]);
                }
            }
        };
        let to_device = async {
            while let Some(packet) = source.recv().await {
                // An error says something of this packet, such as that the device is down.
                _ = device.send(&packet).await;
            }
        };
        let admit = |header: &Header| traffic.may_arrive(&lease, header);
        tokio::select! {
            failed = to_server => failed,
            () = to_device => Ok(()),
            () = streams.carry(&lane, admit, &sink, |mtu| device.set_mtu(mtu)) => Ok(()),
        }
    }
}

impl Traffic {
    fn may_leave(&self, lease: &Lease, header: &Header) -> bool {
        lease.has(header.source) && !header.is_udp_of(|(source, _)| source, &self.own_ports)
    }

    fn may_arrive(&self, lease: &Lease, header: &Header) -> bool {
        let is_routed = |source: IpAddr| {
            let of_server = lease.addresses.iter().map(|of| &of.own);
            of_server.chain(&self.routed).any(|network| network.has(source))
        };
        lease.has(header.destination)
            && !lease.has(header.source)
            && is_routed(header.source)
            && !header.is_udp_of(|(_, destination)| destination, &self.own_ports)
    }
}

/// Packets that wait for the device: writing one takes some microseconds.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::lease::Address;
    use super::super::packet::tests::udp;
    use super::*;

    fn header(source: &str, destination: &str, ports: (u16, u16)) -> Header {
        Header::read(&udp(source, destination, ports, 20)).unwrap()
    }

    #[test]
    fn client_takes_only_what_is_routed_to_it() {
        let own = Address { own: "10.90.0.2/24".parse().unwrap(), server: "10.90.0.1".parse().unwrap() };
        let lease = Lease { addresses: vec![own] };
        let traffic = Traffic { routed: vec!["172.16.0.0/12".parse().unwrap()], own_ports: vec![4000] };
        let arrives =
            |source: &str, destination: &str, ports| traffic.may_arrive(&lease, &header(source, destination, ports));
        assert!(arrives("10.90.0.1", "10.90.0.2", (1, 2)) && arrives("172.20.0.1", "10.90.0.2", (4000, 2)));
        assert!(!arrives("192.168.1.1", "10.90.0.2", (1, 2)), "of this end's own network");
        assert!(!arrives("10.90.0.1", "192.168.1.1", (1, 2)), "for another host");
        assert!(!arrives("10.90.0.2", "10.90.0.2", (1, 2)), "in our own name");
        assert!(!arrives("10.90.0.1", "10.90.0.2", (1, 4000)), "a tunnel in itself");
        let leaves = |source: &str, ports| traffic.may_leave(&lease, &header(source, "10.90.0.1", ports));
        assert!(leaves("10.90.0.2", (1, 4000)) && !leaves("10.90.0.2", (4000, 1)) && !leaves("192.168.1.5", (1, 2)));
    }
}

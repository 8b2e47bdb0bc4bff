//! Two hosts and a network, for tests.

use std::collections::VecDeque;

use anabranch_cc::{Settings as Law, registry};
use anabranch_proto::wire::internet_checksum;
use anabranch_proto::{Address, Config};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::mux::Mux;
use crate::packet::Sum;
use crate::socket::Settings;
use crate::stack::Stack;

pub(crate) const HERE: u128 = 0xffff_0a00_0001;
pub(crate) const THERE: u128 = 0xffff_0a00_0002;
pub(crate) const STRANGER: u128 = 0xffff_0a00_0003;
pub(crate) const PORT: u16 = 80;

pub(crate) fn end(address: u128, port: u16) -> Address {
    Address { address, port }
}

/// The IPv6 address of the host with this IPv4 address.
pub(crate) fn v6(address: u128) -> u128 {
    0xfd00_0099 << 96 | address & 0xff
}

pub(crate) fn settings(address: u128, backlog: usize, streams: u16) -> Settings {
    let law = Law::default_for(registry::find("reno").unwrap());
    let connection = Config { time_wait: Span::from_secs(60), streams, timestamps: true, ..Config::new(law) };
    let addresses = [address, v6(address)].map(|address| std::net::Ipv6Addr::from_bits(address).to_canonical()).into();
    Settings { addresses, connection, sockets_max: 2000, backlog }
}

pub(crate) fn content(len: usize) -> Bytes {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A host that a test drives.
pub(crate) trait Node: Sized {
    fn new(settings: Settings, seed: [u8; 32]) -> Self;
    fn handle_packet(&mut self, now: Time, packet: &Bytes);
    fn handle_timeout(&mut self, now: Time);
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool;
    fn poll_timeout(&self) -> Time;
    /// Whether an event was taken.
    fn take_event(&mut self) -> bool;
}

macro_rules! node {
    ($node:ty) => {
        impl Node for $node {
            fn new(settings: Settings, seed: [u8; 32]) -> Self {
                <$node>::new(settings, seed).unwrap()
            }

            fn handle_packet(&mut self, now: Time, packet: &Bytes) {
                <$node>::handle_with(self, now, packet, Sum::Computed);
            }

            fn handle_timeout(&mut self, now: Time) {
                <$node>::handle_timeout(self, now);
            }

            fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
                <$node>::poll_transmit(self, now, out)
            }

            fn poll_timeout(&self) -> Time {
                <$node>::poll_timeout(self)
            }

            fn take_event(&mut self) -> bool {
                self.poll_event().is_some()
            }
        }
    };
}

node!(Stack);
node!(Mux);

/// Two hosts and a network of 10 ms one way that loses each `loses`-th packet; none if it is zero.
pub(crate) struct World<N> {
    pub(crate) now: Time,
    pub(crate) hosts: [N; 2],
    flying: VecDeque<(Time, usize, Bytes)>,
    pub(crate) loses: u64,
    pub(crate) sent: u64,
    /// One way.
    pub(crate) delay: Span,
    /// What becomes of a packet to this host.
    pub(crate) middlebox: fn(usize, Vec<u8>) -> Vec<Vec<u8>>,
    /// The longest packet that the network carries, and whether it says so when it drops one.
    pub(crate) mtu: (usize, bool),
    /// Packets that it has put together from fragments, and those that it has dropped.
    pub(crate) fragmented: u64,
    pub(crate) too_long: u64,
}

impl<N: Node> World<N> {
    pub(crate) fn of(settings: [Settings; 2]) -> Self {
        let [here, there] = settings;
        Self {
            now: Time::ZERO + Span::from_secs(100),
            hosts: [N::new(here, [1; 32]), N::new(there, [2; 32])],
            flying: VecDeque::new(),
            loses: 0,
            sent: 0,
            delay: Span::from_millis(10),
            middlebox: |_, packet| vec![packet],
            mtu: (1500, true),
            fragmented: 0,
            too_long: 0,
        }
    }

    pub(crate) fn flush(&mut self) {
        for host in 0..2 {
            loop {
                let mut out = vec![];
                if !self.hosts[host].poll_transmit(self.now, &mut out) {
                    break;
                }
                for packet in (self.middlebox)(1 - host, out) {
                    self.sent += 1;
                    let is_v4 = packet[0] >> 4 == 4;
                    if packet.len() > self.mtu.0 && is_v4 && packet[6] & 0x40 == 0 {
                        self.fragmented += 1;
                    } else if packet.len() > self.mtu.0 {
                        self.too_long += 1;
                        if self.mtu.1 {
                            let told = too_big(&packet, self.mtu.0);
                            self.flying.push_back((self.now + self.delay, host, told));
                        }
                        continue;
                    }
                    if self.loses == 0 || !self.sent.is_multiple_of(self.loses) {
                        self.flying.push_back((self.now + self.delay, 1 - host, packet.into()));
                    }
                }
            }
            while self.hosts[host].take_event() {}
        }
    }

    pub(crate) fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            self.flush();
            let arrival = self.flying.front().map_or(Time::NEVER, |packet| packet.0);
            let timer = self.hosts.iter().map(N::poll_timeout).min().unwrap();
            self.now = arrival.min(timer).max(self.now);
            if self.now > until {
                self.now = until;
                return;
            }
            if arrival <= self.now {
                let (_, host, packet) = self.flying.pop_front().unwrap();
                self.hosts[host].handle_packet(self.now, &packet);
            }
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
        }
    }
}

/// What a router says of a packet that is longer than this MTU.
pub(crate) fn too_big(packet: &[u8], mtu: usize) -> Bytes {
    let is_v4 = packet[0] >> 4 == 4;
    let (kind, code, quoted) = if is_v4 { (3, 4, 28) } else { (2, 0, 48) };
    let mut message = [&[kind, code, 0, 0][..], &(mtu as u32).to_be_bytes(), &packet[..quoted]].concat();
    let addresses = if is_v4 { packet[12..20].to_vec() } else { packet[8..40].to_vec() };
    let (from, to) = addresses.split_at(addresses.len() / 2);
    let head = if is_v4 {
        let head = etherparse::Ipv4Header::new(
            message.len() as u16,
            64,
            etherparse::IpNumber::ICMP,
            to.try_into().unwrap(),
            from.try_into().unwrap(),
        );
        let sum = internet_checksum(&[&message]);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        head.unwrap().to_bytes().to_vec()
    } else {
        let head = etherparse::Ipv6Header {
            payload_length: message.len() as u16,
            next_header: etherparse::IpNumber::IPV6_ICMP,
            hop_limit: 64,
            source: to.try_into().unwrap(),
            destination: from.try_into().unwrap(),
            ..etherparse::Ipv6Header::default()
        };
        let pseudo = [to, from, &(message.len() as u32).to_be_bytes(), &[0, 0, 0, 58]].concat();
        let sum = internet_checksum(&[&pseudo, &message]);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        head.to_bytes().to_vec()
    };
    [head, message].concat().into()
}

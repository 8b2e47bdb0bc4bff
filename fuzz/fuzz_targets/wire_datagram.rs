//! A seal, its peer and a listener, between whom datagrams are lost, repeated, changed and made up: nothing panics, what was
//! changed or came before is not opened, and nobody who has not shown an address gets more than three times what came from it.
//!
//! `cargo +nightly fuzz run wire_datagram corpus/wire_datagram seeds/wire_datagram`
#![no_main]

mod input;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_proto::seal::{Answer, Limits, Listener, ListenerLimits, Recipient, Seal, SecretKey};
use anabranch_proto::{Content, Endpoint, Flags, FourTuple, HandshakeOptions, Header, Options, Segment, SeqNumber};
use anabranch_units::{Span, Time};
use bytes::{Bytes, BytesMut};
use input::Input;
use libfuzzer_sys::fuzz_target;

/// Datagrams that are remembered.
const KEPT: usize = 64;

struct World {
    now: Time,
    client: Seal,
    server: Option<Box<Seal>>,
    listener: Listener,
    /// What was sent, and by whom.
    sent: Vec<(Side, Vec<u8>)>,
    /// Segments that were sealed so far; each has its number in its data.
    count: u32,
    opened: BTreeSet<u32>,
    /// Bytes that the server got from and sent to each address before it was shown.
    account: BTreeMap<Endpoint, (usize, usize)>,
    /// Whether the initiation may have had a cookie, which shows the address.
    has_cookie: bool,
    buffer: BytesMut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

fn path(from: u8) -> FourTuple {
    let end = |address| Endpoint { address, port: 1 };
    FourTuple { local: end(1000), remote: end(u128::from(from % 4)) }
}

fn segment(flags: Flags, number: u32) -> Segment<Bytes> {
    let header = Header { seq: SeqNumber(number), flags, ..Header::default() };
    if flags.contains(Flags::SYN) {
        let options = Options::Handshake(HandshakeOptions::default());
        return Segment { header, options, stream_header: None, content: Content::Nothing };
    }
    let content = Content::Data(Bytes::copy_from_slice(&number.to_be_bytes()));
    Segment { header, options: Options::default(), stream_header: None, content }
}

impl World {
    fn new(load: u8) -> Self {
        let (client, server) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
        let limits = Limits { rekey_after_messages: 8, messages: 64, forgeries: 16, ..Limits::default() };
        let listening = ListenerLimits {
            half_open: 3,
            handshakes_per_second: u32::from(load % 3),
            connection: limits,
            ..ListenerLimits::default()
        };
        Self {
            now: Time::ZERO,
            client: Seal::initiator(client, server.public(), 7, limits, [3; 32]),
            server: None,
            listener: Listener::new(Time::ZERO, server, listening, [4; 32]),
            sent: vec![],
            count: 0,
            opened: BTreeSet::new(),
            account: BTreeMap::new(),
            has_cookie: false,
            buffer: BytesMut::new(),
        }
    }

    fn keep(&mut self, side: Side, datagram: Vec<u8>, to: Endpoint) {
        if side == Side::Server {
            self.account.entry(to).or_default().1 += datagram.len();
        }
        if self.sent.len() < KEPT && !datagram.is_empty() {
            self.sent.push((side, datagram));
        }
    }

    fn seal(&mut self, side: Side, is_handshake: bool, from: u8) {
        let flags = match (side, is_handshake) {
            (_, false) => Flags::ACK,
            (Side::Client, true) => Flags::SYN,
            (Side::Server, true) => Flags::SYN | Flags::ACK,
        };
        let segment = segment(flags, self.count);
        let path = path(from);
        let mut datagram = vec![];
        let seal = match side {
            Side::Client => Some(&mut self.client),
            Side::Server => self.server.as_deref_mut(),
        };
        if seal.is_some_and(|seal| seal.seal(self.now, path, &segment, &mut datagram).is_ok()) {
            self.count += 1;
            self.keep(side, datagram, path.remote);
        }
        self.check();
    }

    /// A datagram comes; `is_true` if it is as somebody sent it.
    fn deliver(&mut self, to: Side, datagram: &[u8], from: u8, is_true: bool) {
        let path = path(from);
        let opened = match (to, Seal::recipient(datagram)) {
            (Side::Server, Some(Recipient::Listener)) => {
                let mut reply = vec![];
                match self.listener.handle(self.now, path, datagram, 9, &mut reply) {
                    Ok(Answer::Accept { seal, .. }) => {
                        self.server = Some(seal);
                        self.has_cookie = !datagram.ends_with(&[0; 16]);
                        self.account.clear();
                        self.account.entry(path.remote).or_default().0 += datagram.len();
                        return;
                    }
                    Ok(Answer::Again { .. }) => {
                        let Some(server) = &mut self.server else { return };
                        let opened = server.open(self.now, path, datagram, &mut self.buffer);
                        if opened.is_ok() {
                            self.account.entry(path.remote).or_default().0 += datagram.len();
                        }
                        return;
                    }
                    Ok(Answer::Reply) => {
                        assert!(reply.len() < datagram.len());
                        return self.sent.extend((self.sent.len() < KEPT).then_some((Side::Server, reply)));
                    }
                    Err(_) => return assert!(reply.is_empty()),
                }
            }
            (Side::Server, _) => {
                let Some(server) = &mut self.server else { return };
                let opened = server.open(self.now, path, datagram, &mut self.buffer);
                // What is authentic but no segment counts as well.
                self.account.entry(path.remote).or_default().0 += datagram.len();
                opened
            }
            (Side::Client, _) => self.client.open(self.now, path, datagram, &mut self.buffer),
        };
        if let Ok(Some(Segment { content: Content::Data(data), .. })) = opened {
            assert!(is_true, "a datagram that was changed is opened");
            let number = u32::from_be_bytes(data[..].try_into().expect("data is a number"));
            assert!(number < self.count && self.opened.insert(number), "{number} is opened twice");
        }
        self.check();
    }

    /// Whoever has not shown that it has the keys has three times what it sent, at most.
    fn check(&self) {
        if !self.has_cookie && self.server.as_ref().is_some_and(|server| !server.is_established()) {
            for (got, sent) in self.account.values() {
                assert!(*sent <= 3 * got, "{sent} for {got}");
            }
        }
    }

    fn poll(&mut self) {
        for side in [Side::Client, Side::Server] {
            let mut count = 0;
            loop {
                let seal = match side {
                    Side::Client => Some(&mut self.client),
                    Side::Server => self.server.as_deref_mut(),
                };
                let Some(seal) = seal else { break };
                seal.handle_timeout(self.now);
                let mut datagram = vec![];
                let Some(path) = seal.poll_transmit(self.now, &mut datagram) else { break };
                self.keep(side, datagram, path.remote);
                count += 1;
                assert!(count < 10, "it sends without end");
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut world = World::new(input.byte());
    while !input.is_empty() {
        let (operation, from) = (input.byte(), input.byte());
        let side = if operation & 0x80 == 0 { Side::Client } else { Side::Server };
        match operation & 0x0f {
            0 | 1 => world.seal(side, true, from),
            2..=4 => world.seal(side, false, from),
            5 => world.now = world.now.saturating_add(Span::from_millis(1 << (from % 20))),
            6 => world.poll(),
            7 => {
                let made = input.bytes(usize::from(from)).to_vec();
                world.deliver(side, &made, from, false);
            }
            kind => {
                let number = usize::from(input.byte());
                let Some((sender, datagram)) = world.sent.get(number % world.sent.len().max(1)).cloned() else {
                    continue;
                };
                let mut changed = datagram.clone();
                if kind >= 13 {
                    let (at, by) = (usize::from(input.half()) % changed.len(), input.byte());
                    changed[at] ^= by;
                }
                if kind == 15 {
                    changed.truncate(usize::from(input.byte()));
                }
                let to = if sender == Side::Client { Side::Server } else { Side::Client };
                let is_true = changed == datagram;
                world.deliver(to, &changed, if kind == 8 { from } else { 1 }, is_true);
            }
        }
    }
});

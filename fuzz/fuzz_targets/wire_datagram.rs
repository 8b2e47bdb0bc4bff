//! A seal, its peer and a listener, between whom datagrams are lost, repeated, changed and made up: nothing panics, what was
//! changed or came before is not opened, no key seals two datagrams with one number, a segment that went in fragments is opened once and
//! whole, and an address that was not shown gets no more than three times what came from it.
//!
//! `cargo +nightly fuzz run wire_datagram corpus/wire_datagram seeds/wire_datagram`
#![no_main]

mod input;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_proto::seal::{
    Answer, CipherPreference, Limits, Listener, ListenerConfig, Outgoing, Pace, Recipient, Refusal, Seal, SealConfig, SecretKey,
    Timestamp,
};
use anabranch_proto::{Content, Address, Flags, FourTuple, HandshakeOptions, Header, Options, Segment, SeqNumber};
use anabranch_units::{Span, Time};
use bytes::Bytes;
use input::Input;
use libfuzzer_sys::fuzz_target;

/// Datagrams that are remembered: the latest.
const KEPT: usize = 64;

/// Datagrams that one key may seal.
const MESSAGES: u64 = 64;

/// The number of the server's connections.
const SERVER: u32 = 9;

struct World {
    now: Time,
    client: Seal,
    server: Option<Box<Seal>>,
    listener: Listener,
    /// What was sent, and by whom; and how much that was in all.
    sent: Vec<(Side, Vec<u8>)>,
    total: usize,
    /// Whose datagrams with which index, path and counter were sent.
    numbers: BTreeSet<(Side, u32, u8, u64)>,
    /// Segments that were sealed so far; each has its number in its data.
    count: u32,
    opened: BTreeSet<u32>,
    /// Bytes that the server got from and sent to each address.
    account: BTreeMap<Address, (usize, usize)>,
    /// Addresses that were shown to the server, and the one that it answers.
    shown: BTreeSet<Address>,
    caller: Address,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

fn path(from: u8) -> FourTuple {
    let end = |address| Address { address, port: 1 };
    FourTuple { local: end(1000), remote: end(u128::from(from % 4)) }
}

fn segment(flags: Flags, number: u32) -> Segment<Bytes> {
    let header = Header { seq: SeqNumber(number), flags, ..Header::default() };
    if flags.contains(Flags::SYN) {
        let options = Options::Handshake(HandshakeOptions::default());
        return Segment { header, options, stream_header: None, content: Content::Nothing };
    }
    // Those with odd numbers are too long for a narrow path.
    let content = Content::Data(number.to_be_bytes().repeat(if number % 2 == 1 { 50 } else { 1 }).into());
    Segment { header, options: Options::default(), stream_header: None, content }
}

impl World {
    fn new(load: u8) -> Self {
        let (client, server) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
        let rekey_interval = Span::from_millis(1);
        let limits = Limits {
            rekey_after_messages: 8,
            messages: MESSAGES,
            forgeries: 16,
            rekey_interval,
            ..Limits::default()
        };
        let ciphers = if load & 0x80 == 0 { CipherPreference::default() } else { CipherPreference::fast_aes() };
        let config = SealConfig { ciphers, limits, ..SealConfig::default() };
        let per_second = u32::from(load % 3);
        let listening = ListenerConfig {
            half_open: 3,
            unproven: Pace { per_second, burst: per_second },
            connection: config,
            ..ListenerConfig::default()
        };
        let timestamp = Timestamp::since_1970(Span::ZERO);
        Self {
            now: Time::ZERO,
            client: Seal::initiator(client, server.public(), 7, config, timestamp, [3; 32]),
            server: None,
            listener: Listener::new(Time::ZERO, server, listening, [4; 32]),
            sent: vec![],
            total: 0,
            numbers: BTreeSet::new(),
            count: 0,
            opened: BTreeSet::new(),
            account: BTreeMap::new(),
            shown: BTreeSet::new(),
            caller: path(0).remote,
        }
    }

    fn keep(&mut self, side: Side, datagram: Vec<u8>, to: Address) {
        if side == Side::Server {
            self.account.entry(to).or_default().1 += datagram.len();
        }
        if let [4, path, _, _, a, b, c, d, counter @ ..] = &datagram[..] {
            let (index, counter) = (u32::from_be_bytes([*a, *b, *c, *d]), counter.first_chunk().expect("it has one"));
            let counter = u64::from_be_bytes(*counter);
            assert!(self.numbers.insert((side, index, *path, counter)), "a key seals twice with one number");
            assert!(counter < MESSAGES, "a key seals more than it may");
        }
        self.remember(side, datagram);
    }

    fn remember(&mut self, side: Side, datagram: Vec<u8>) {
        assert!(!datagram.is_empty(), "nothing is sent");
        if self.sent.len() < KEPT {
            self.sent.push((side, datagram));
        } else {
            self.sent[self.total % KEPT] = (side, datagram);
        }
        self.total += 1;
    }

    fn seal(&mut self, side: Side, is_handshake: bool, from: u8) {
        // Some paths are narrow, and some datagrams padded.
        let (datagram_max, pad_to) = (if from & 0x10 == 0 { 1200 } else { 130 }, u32::from(from & 0xe0));
        let outgoing = Outgoing { datagram_max, pad_to, ..Outgoing::new(path(from)) };
        let flags = match (side, is_handshake) {
            (_, false) => Flags::ACK,
            (Side::Client, true) => Flags::SYN,
            (Side::Server, true) => Flags::SYN | Flags::ACK,
        };
        let segment = segment(flags, self.count);
        let mut datagrams = vec![];
        let seal = match side {
            Side::Client => Some(&mut self.client),
            Side::Server => self.server.as_deref_mut(),
        };
        let Some(seal) = seal else { return };
        if let Ok(sealed) = seal.seal(self.now, &outgoing, &segment, &mut datagrams) {
            self.count += 1;
            assert_eq!(datagrams.len().div_ceil(sealed.size), sealed.count, "it says how many there are");
            for datagram in datagrams.chunks(sealed.size) {
                assert!(is_handshake || datagram.len() <= datagram_max as usize, "the path does not take it");
                self.keep(side, datagram.to_vec(), outgoing.tuple.remote);
            }
        }
        self.check();
    }

    /// A datagram comes; `is_true` if it is as somebody sent it.
    fn deliver(&mut self, to: Side, datagram: &[u8], from: u8, is_true: bool) {
        let path = path(from);
        let opened = match (to, Seal::recipient(datagram)) {
            (Side::Server, Some(Recipient::Listener)) => {
                let mut reply = vec![];
                match self.listener.handle(self.now, path, datagram, SERVER, &mut reply) {
                    Ok(Answer::Accept { seal, .. }) => {
                        self.server = Some(seal);
                        self.caller = path.remote;
                        self.shown.clear();
                        // What is no zero may be a cookie's, which shows the address.
                        if !datagram.ends_with(&[0; 16]) {
                            self.shown.insert(path.remote);
                        }
                        self.account.clear();
                        self.account.entry(path.remote).or_default().0 += datagram.len();
                        // The keys are others.
                        self.numbers.retain(|(side, ..)| *side == Side::Client);
                        return;
                    }
                    Ok(Answer::Again { .. }) => {
                        let Some(server) = &mut self.server else { return };
                        let opened = server.open(self.now, path, datagram.into());
                        if opened.is_ok() {
                            self.account.entry(path.remote).or_default().0 += datagram.len();
                        }
                        return;
                    }
                    Ok(Answer::Reply) => {
                        assert!(reply.len() < datagram.len());
                        return self.remember(Side::Server, reply);
                    }
                    Err(_) => return assert!(reply.is_empty()),
                }
            }
            (Side::Server, _) => {
                let Some(server) = &mut self.server else { return };
                let was_established = server.is_established();
                let opened = server.open(self.now, path, datagram.into());
                if server.is_established() && !was_established && path.remote == self.caller {
                    self.shown.insert(path.remote);
                }
                // What is authentic but no segment counts as well.
                let is_data = datagram.starts_with(&[4]);
                if is_data && matches!(opened, Ok(_) | Err(Refusal::NoSegment | Refusal::Unexpected | Refusal::TooMany)) {
                    self.account.entry(path.remote).or_default().0 += datagram.len();
                }
                opened
            }
            (Side::Client, _) => self.client.open(self.now, path, datagram.into()),
        };
        if let Ok(Some(Segment { content: Content::Data(data), .. })) = opened {
            assert!(is_true, "a datagram that was changed is opened");
            let (first, _) = data.split_first_chunk().expect("data is a number");
            let number = u32::from_be_bytes(*first);
            assert_eq!(data, first.repeat(if number % 2 == 1 { 50 } else { 1 }), "it is not whole");
            assert!(number < self.count && self.opened.insert(number), "{number} is opened twice");
        }
        self.check();
    }

    /// The application knows that somebody is there.
    fn validate(&mut self, side: Side, from: u8) {
        match (side, &mut self.server) {
            (Side::Client, _) => self.client.validate(path(from)),
            (Side::Server, Some(server)) => {
                server.validate(path(from));
                self.shown.insert(path(from).remote);
            }
            (Side::Server, None) => {}
        }
    }

    /// Where nobody has shown to be gets three times what came from there, at most.
    fn check(&self) {
        for (address, (got, sent)) in &self.account {
            assert!(*sent <= 3 * got || self.shown.contains(address), "{sent} for {got}");
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
        self.check();
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
            5 if operation & 0x10 != 0 => world.listener.release(SERVER),
            5 if operation & 0x20 != 0 => world.validate(side, from),
            5 => world.now = world.now.saturating_add(Span::from_millis(1 << (from % 20))),
            6 => world.poll(),
            7 => {
                let made = input.bytes(usize::from(from)).to_vec();
                world.deliver(side, &made, from, false);
            }
            kind => {
                let number = usize::from(input.byte());
                let Some((sender, datagram)) = world.sent.get(number % world.sent.len().max(1)) else { continue };
                let mut changed = datagram.clone();
                if kind >= 13 {
                    let (at, by) = (usize::from(input.half()) % changed.len(), input.byte());
                    changed[at] ^= by;
                }
                if kind == 15 {
                    changed.truncate(usize::from(input.byte()));
                }
                let to = if *sender == Side::Client { Side::Server } else { Side::Client };
                let is_true = changed == *datagram;
                world.deliver(to, &changed, if kind == 8 { from } else { 1 }, is_true);
            }
        }
    }
});

//! A whole engine against a peer that says anything, in bytes, while the application does anything: it neither panics nor spins,
//! and takes no more than its buffers hold.
//!
//! `cargo +nightly fuzz run connection corpus/connection seeds/connection`
#![no_main]

mod input;

use anabranch_cc::{Settings, registry};
use anabranch_proto::wire::{Checksum, decode};
use anabranch_proto::{Config, Connection, Address, FourTuple, HEADERS, Header, Read, Segment, Secret, SeqNumber, Sid};
use anabranch_units::{Span, Time};
use bytes::Bytes;
use input::Input;
use libfuzzer_sys::fuzz_target;

const RECEIVE_BUFFER: u64 = 20_000;
const SEND_BUFFER: u64 = 30_000;

struct World {
    now: Time,
    engine: Connection<Bytes>,
    /// What its last segment said of itself.
    last: Header,
    /// Bytes that the application has read.
    read: u64,
    /// Segments that were handed in.
    heard: u64,
}

fn path(number: u8) -> FourTuple {
    let end = |address| Address { address, port: 1 };
    FourTuple { local: end(1), remote: end(2 + u128::from(number % 3)) }
}

impl World {
    fn new(choice: u8) -> Self {
        let laws = registry::rows();
        let law = Settings::default_for(&laws[usize::from(choice >> 2) % laws.len()]);
        let config = Config {
            mss: 1000,
            streams: if choice & 2 == 0 { 4 } else { 0 },
            receive_buffer: RECEIVE_BUFFER,
            send_buffer: SEND_BUFFER,
            ..Config::new(law)
        };
        let initial = SeqNumber(u32::MAX - 3000);
        let engine = if choice & 1 == 0 {
            Connection::listen(Time::ZERO, config, path(0), Secret::predictable(initial))
        } else {
            Connection::connect(Time::ZERO, config, path(0), Secret::predictable(initial))
        };
        let engine = engine.expect("the configuration works");
        let mut world = Self { now: Time::ZERO, engine, last: Header::default(), read: 0, heard: 0 };
        world.drain();
        world
    }

    /// What a driver does after each input.
    fn drain(&mut self) {
        // All that may be in flight, each segment a byte long, and some answers.
        let most = 4 * SEND_BUFFER + 1000;
        let mut count = 0;
        while let Some(transmit) = self.engine.poll_transmit(self.now) {
            self.last = transmit.segment.header;
            assert!(transmit.segment.wire_size() <= HEADERS + 40 + 1000, "longer than was agreed");
            count += 1;
            assert!(count <= most, "it sends without end");
        }
        while self.engine.poll_event().is_some() {
            count += 1;
            assert!(count <= most, "it tells without end");
        }
        // Nothing came that there is no room for: rbuf, what was read, and headers, records and ends, which take none.
        assert!(self.engine.received() <= 2 + RECEIVE_BUFFER + self.read + 40 * self.heard);
    }

    fn wait(&mut self, span: Span) {
        let until = self.now.saturating_add(span);
        let (mut count, mut before) = (0, self.now);
        while self.engine.poll_timeout() <= until {
            self.now = self.now.max(self.engine.poll_timeout());
            self.engine.handle_timeout(self.now);
            self.drain();
            count = if self.now == before { count + 1 } else { 0 };
            before = self.now;
            assert!(count < 50, "a deadline comes again and again");
        }
        self.now = until;
    }

    /// A segment whose numbers are near those that the engine would expect.
    fn forge(&mut self, input: &mut Input<'_>) -> Option<Segment<Bytes>> {
        let (seq, ack) = (i64::from(input.half() as i16), i64::from(input.half() as i16));
        let (flags, window) = (input.half() & 0x0fff, input.half());
        let words = usize::from(input.byte() % 11);
        let options = input.bytes(words * 4).to_vec();
        let len = usize::from(input.byte());
        let mut content = input.bytes(len).to_vec();
        // A long segment of little input.
        if len >= 250 {
            content.resize(1000, 7);
        }
        let mut bytes = vec![0; 4];
        bytes.extend(self.last.ack.plus(seq as u64).0.to_be_bytes());
        bytes.extend(self.last.seq.plus(ack as u64).0.to_be_bytes());
        let words = 5 + options.len().div_ceil(4) as u16;
        bytes.extend((words << 12 | flags).to_be_bytes());
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&options);
        bytes.resize(usize::from(words) * 4, 1);
        // SACK blocks stand near what is in flight.
        if let [_, _, 5, len, blocks @ ..] = &mut bytes[20..] {
            for edge in blocks.chunks_exact_mut(4).take(usize::from(*len) / 4) {
                let near = self.last.seq.plus(i64::from(i16::from_be_bytes([edge[2], edge[3]])) as u64);
                edge.copy_from_slice(&near.0.to_be_bytes());
            }
        }
        bytes.extend(content);
        decode(bytes.into(), Checksum::None).ok().map(|(_, segment)| segment)
    }

    fn operate(&mut self, operation: u8, input: &mut Input<'_>) {
        let sid = Sid::new(u16::from(operation >> 4 & 7));
        match operation & 0x0f {
            0 => {
                let _ = self.engine.streams().open();
            }
            1 | 2 => {
                let mut payload = Bytes::from(vec![9; usize::from(input.half())]);
                let _ = self.engine.streams().write(sid, &mut payload);
            }
            3 => {
                if let Ok(Read::Data(data)) = self.engine.streams().read(sid, input.half().into()) {
                    self.read += data.len() as u64;
                }
            }
            4 => {
                let _ = self.engine.streams().finish(sid);
            }
            5 if operation >> 4 == 0 => self.engine.close(),
            5 if operation >> 4 == 1 => self.engine.abort(),
            5..=7 => self.wait(Span::from_millis(1 << (operation >> 4))),
            kind => {
                if let Some(segment) = self.forge(input) {
                    self.heard += 1;
                    self.engine.handle_segment(self.now, path(if kind == 8 { operation >> 4 } else { 0 }), segment);
                }
            }
        }
        self.drain();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut world = World::new(input.byte());
    while !input.is_empty() {
        let operation = input.byte();
        world.operate(operation, &mut input);
    }
});

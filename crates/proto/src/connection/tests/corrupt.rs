//! A network that corrupts bits while checksums are off: an arriving segment may differ from the one that was sent, in any field.
//! Nothing panics or loops for ever, and the buffers keep their limits. Delivered data may be wrong, and the connection may end.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::wire::{self, Checksum, Ports};
use crate::{Address, Connection, FourTuple, LossDetection, Read};

const RECEIVE_BUFFER: u64 = 30_000;

/// After `segments` more segments, the byte at this position is changed by this value.
#[derive(Clone, Copy, Debug)]
struct Change {
    later: u32,
    at: usize,
    by: u8,
}

/// Most changes are in the bytes before the data.
fn change() -> impl Strategy<Value = Change> {
    let at = prop_oneof![4 => 0..40usize, 2 => 40..80usize, 1 => 80..1100usize];
    (0..12u32, at, 1..=255u8).prop_map(|(later, at, by)| Change { later, at, by })
}

struct World {
    now: Time,
    /// The client and the server.
    ends: [Connection<Bytes>; 2],
    flying: BTreeMap<(Time, u64), (usize, FourTuple, Bytes)>,
    count: u64,
    changes: VecDeque<Change>,
    /// Changed segments that could be decoded nevertheless.
    misunderstood: u64,
}

fn way(number: u128) -> FourTuple {
    let end = |address| Address { address, port: 7 };
    FourTuple { local: end(2 * number + 1), remote: end(2 * number + 2) }
}

impl World {
    fn new(config: &Config, changes: Vec<Change>) -> Self {
        let client = Connection::connect(
            Time::ZERO,
            config.clone(),
            way(0),
            crate::Secret::predictable(SeqNumber(u32::MAX - 5000)),
        )
        .unwrap();
        let server = Connection::listen(
            Time::ZERO,
            config.clone(),
            way(0).reversed(),
            crate::Secret::predictable(SeqNumber(77)),
        )
        .unwrap();
        let (flying, changes) = (BTreeMap::new(), changes.into());
        Self { now: Time::ZERO, ends: [client, server], flying, count: 0, changes, misunderstood: 0 }
    }

    fn carry(&mut self, from: usize, tuple: FourTuple, segment: &Segment<Bytes>) {
        let mut bytes = vec![];
        wire::encode(segment, Ports::default(), Checksum::None, &mut bytes);
        self.count += 1;
        if let Some(change) = self.changes.front_mut() {
            match change.later.checked_sub(1) {
                Some(later) => change.later = later,
                None => {
                    let at = change.at % bytes.len();
                    bytes[at] ^= change.by;
                    self.changes.pop_front();
                    self.misunderstood += u64::from(
                        wire::decode(bytes.clone().into(), Checksum::None).is_ok_and(|(_, other)| other != *segment),
                    );
                }
            }
        }
        self.flying.insert((self.now + ms(20), self.count), (1 - from, tuple.reversed(), bytes.into()));
    }

    fn drain(&mut self) {
        for number in 0..2 {
            let mut sent = 0;
            while let Some(transmit) = self.ends[number].poll_transmit(self.now) {
                self.carry(number, transmit.tuple, &transmit.segment);
                sent += 1;
                assert!(sent < 1000, "it sends without end");
            }
            let end = &mut self.ends[number];
            while end.poll_event().is_some() {}
            for sid in (1..=8).map(Sid::new) {
                while let Ok(Read::Data(_)) = end.streams().read(sid, 700) {}
            }
            end.check();
            assert!(end.buffered() <= RECEIVE_BUFFER, "{} are buffered", end.buffered());
        }
    }

    /// Advances to the next event. Returns whether there was one.
    fn step(&mut self) -> bool {
        let timers = self.ends.iter().map(Connection::poll_timeout);
        let next = timers.chain(self.flying.keys().next().map(|key| key.0)).min().expect("there are two ends");
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, tuple, bytes) = entry.remove();
            if let Ok((_, segment)) = wire::decode(bytes, Checksum::None) {
                self.ends[to].handle_segment(self.now, tuple, segment);
                self.drain();
            }
        }
        for end in &mut self.ends {
            if end.poll_timeout() <= self.now {
                end.handle_timeout(self.now);
            }
        }
        self.drain();
        true
    }

    /// Both ends write as much as there is room for, finish one stream, reset one and stop another.
    fn operate(&mut self, round: u32) {
        for end in &mut self.ends {
            let _ = end.streams().open();
            for sid in (1..=8).map(Sid::new) {
                let _ = end.streams().write(sid, &mut Bytes::from_static(&[7; 5000]));
            }
            let sid = Sid::new((round % 8) as u16 + 1);
            let _ = match round % 3 {
                0 => end.streams().finish(sid).is_ok(),
                1 => end.streams().reset(sid, 1).is_ok(),
                _ => end.streams().stop(sid, 1).is_ok(),
            };
        }
    }
}

proptest! {
    #[test]
    fn undetected_corruption_breaks_no_engine(
        changes in prop::collection::vec(change(), 1..60),
        streams in prop_oneof![1 => Just(0u16), 3 => 1..6u16],
        has_paths in any::<bool>(),
        timestamps in any::<bool>(),
        loss_detection in prop_oneof![Just(LossDetection::Rack), Just(LossDetection::DupAcks)],
    ) {
        let paths_max = if has_paths { 3 } else { 1 };
        let config = Config { streams, timestamps, loss_detection, paths_max, receive_buffer: RECEIVE_BUFFER, ..config() };
        let mut world = World::new(&config, changes);
        world.drain();
        for round in 0..40 {
            let until = world.now + ms(500);
            world.operate(round);
            if round < 2 {
                let now = world.now;
                // Fails before the end of the handshake, and if there may be only one path.
                let _ = world.ends[0].paths().add(now, way(u128::from(round) + 1));
            }
            world.drain();
            let (mut steps, mut before) = (0, world.now);
            while world.now < until && world.step() {
                steps = if world.now == before { steps + 1 } else { 0 };
                before = world.now;
                prop_assert!(steps < 100, "a deadline comes again and again");
            }
        }
    }
}

/// A corrupted sequence number still decodes, so the corruptions above do reach the engine.
#[test]
fn a_changed_number_is_understood() {
    let changes = (0..40).map(|at| Change { later: 3, at: 4 + at % 8, by: 1 << (at % 8) }).collect();
    // Time advances quickly here, from one deadline to the next.
    let patient = Config { idle_timeout: None, ..config() };
    let mut world = World::new(&patient, changes);
    world.drain();
    for round in 0..20 {
        world.operate(round);
        world.drain();
        for _ in 0..50 {
            world.step();
        }
    }
    // In the end each end waits for what the other one believes to have sent.
    let changed = 40 - world.changes.len() as u64;
    assert!(changed >= 10 && world.misunderstood == changed, "{} of {changed}", world.misunderstood);
}

//! Two engines in virtual time, on one path or several, which are fast or slow, lose, jitter, reorder or die. A transfer from the
//! client to the server, and its duration.

use std::collections::BTreeMap;

use anabranch_cc::{Settings, registry};
use anabranch_proto::{
    Address, Config, Connection, Event, FourTuple, PathId, PathReport, Read, Secret, Segment, SeqNumber, Sid, State,
    Virtual,
};
use anabranch_units::{Rate, Span, Time};

/// The properties of a path. Both directions are equal, but loss, lateness and queueing happen only in the direction to the
/// server.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    /// The round-trip propagation time.
    pub(crate) rtt: Span,
    /// The longest queueing time in front of the transmitter.
    pub(crate) queue: Span,
    /// The share of segments to the server that is lost.
    pub(crate) loss: f64,
    /// Each segment is delayed by up to this, and the segments behind it wait for it: the order is kept.
    pub(crate) jitter: Span,
    /// One in this many segments is delayed by this, and others overtake it.
    pub(crate) late: Option<(u64, Span)>,
    /// Outages: nothing passes in these times, in either direction.
    pub(crate) outages: Vec<(Time, Time)>,
    /// From this time on nothing arrives at the server for this long, then everything at once.
    pub(crate) pause: Option<(Time, Span)>,
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The time from the SYN to the last byte read.
    pub(crate) took: Span,
    pub(crate) path: PathReport,
}

pub(crate) struct World {
    pub(crate) now: Time,
    routes: Vec<Route>,
    pub(crate) client: Connection<Virtual>,
    pub(crate) server: Connection<Virtual>,
    random: Random,
    /// Bytes still to be written.
    left: u64,
    pub(crate) read: u64,
    /// How often the client has suspected a path.
    pub(crate) failures: u32,
}

/// A path with its segments in flight.
struct Route {
    path: Path,
    /// The four-tuple as the client sees it.
    tuple: FourTuple,
    there: Wire,
    back: Wire,
}

#[derive(Default)]
struct Wire {
    free_at: Time,
    /// The latest arrival time of the segments that keep their order.
    latest: Time,
    carried: u64,
    flying: BTreeMap<(Time, u64), Segment<Virtual>>,
}

/// SplitMix64: equal draws on every machine.
struct Random(u64);

impl Path {
    /// A path without loss or jitter, with a queue of one bandwidth-delay product.
    pub(crate) fn new(rate: &str, rtt: Span) -> Self {
        let rate = rate.parse().expect("a rate");
        Self { rate, rtt, queue: rtt, loss: 0.0, jitter: Span::ZERO, late: None, outages: vec![], pause: None }
    }

    /// Bytes of payload in a full segment, which takes 1500 bytes.
    pub(crate) const PAYLOAD: u64 = 1456;

    /// How long this much payload takes at full rate.
    pub(crate) fn time_of(&self, bytes: u64) -> Span {
        Span::from_secs_f64((bytes * 1500 / Self::PAYLOAD * 8) as f64 / self.rate.bits_per_second() as f64)
    }
}

/// The default settings, with a buffer for two of the largest round trips here.
pub(crate) fn config(law: &str, pairs: &[(&'static str, &str)]) -> Config {
    let row = registry::find(law).expect("a law");
    let law = Settings::parse(row, pairs.iter().copied()).expect("its parameters");
    Config { streams: 1, receive_buffer: 512 << 20, send_buffer: 16 << 20, ..Config::new(law) }
}

/// Sends `bytes` bytes and waits until all are read.
#[track_caller]
pub(crate) fn transfer(path: &Path, config: &Config, bytes: u64) -> Outcome {
    let mut world = World::new(path.clone(), config, bytes);
    world.run_until(|world| world.read == bytes);
    Outcome { took: world.now.since(Time::ZERO), path: world.report() }
}

impl World {
    pub(crate) fn new(path: Path, config: &Config, bytes: u64) -> Self {
        Self::over(&[path], config, bytes)
    }

    /// The connection is opened on the first path; the others follow when it is established.
    pub(crate) fn over(paths: &[Path], config: &Config, bytes: u64) -> Self {
        Self::seeded(paths, config, bytes, 1)
    }

    /// The same, with losses and delays drawn from this seed.
    pub(crate) fn seeded(paths: &[Path], config: &Config, bytes: u64, seed: u64) -> Self {
        let routes: Vec<_> = paths.iter().enumerate().map(|(index, path)| Route::new(index, path)).collect();
        let first = routes[0].tuple;
        let client = Connection::connect(Time::ZERO, config.clone(), first, Secret::predictable(SeqNumber(0)))
            .expect("it can work");
        let server =
            Connection::listen(Time::ZERO, config.clone(), first.reversed(), Secret::predictable(SeqNumber(0)));
        let server = server.expect("it can work");
        let mut world =
            Self { now: Time::ZERO, routes, client, server, random: Random(seed), left: bytes, read: 0, failures: 0 };
        world.drain();
        world
    }

    pub(crate) fn report(&self) -> PathReport {
        self.client.path(PathId::FIRST).expect("there is one")
    }

    /// Runs until `is_done`, for at most an hour.
    #[track_caller]
    pub(crate) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let flying = self.routes.iter().flat_map(|route| [route.there.next(), route.back.next()]);
            let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
            self.now = self.now.max(flying.chain(timeouts).min().expect("there are some"));
            assert!(self.now < Time::ZERO + Span::from_secs(3600), "an hour, and {} are left", self.left);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for index in 0..self.routes.len() {
            let tuple = self.routes[index].tuple;
            while let Some(segment) = self.routes[index].there.take(now) {
                self.server.handle_segment(now, tuple.reversed(), segment);
                self.drain();
            }
            while let Some(segment) = self.routes[index].back.take(now) {
                self.client.handle_segment(now, tuple, segment);
                self.drain();
            }
        }
        for connection in [&mut self.client, &mut self.server] {
            if connection.poll_timeout() <= now {
                connection.handle_timeout(now);
            }
        }
        self.drain();
    }

    fn drain(&mut self) {
        let is_ready = |client: &Connection<_>| client.state() == State::Established;
        loop {
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                let Self { routes, random, client, now, .. } = self;
                let route = routes.iter_mut().find(|route| route.tuple == transmit.tuple).expect("a known path");
                route.carry_there(*now, random, transmit.segment, is_ready(client));
            }
            let Some(event) = self.client.poll_event() else { break };
            match event {
                Event::Established { .. } => {
                    for route in &self.routes[1..] {
                        self.client.paths().add(self.now, route.tuple).expect("there may be as many");
                    }
                    self.client.streams().open().expect("one is granted");
                    self.write();
                }
                Event::Writable(_) => self.write(),
                Event::PathFailed(_) => self.failures += 1,
                Event::Closed(reason) => panic!("nobody closes: {reason:?}"),
                _ => {}
            }
        }
        loop {
            while let Some(event) = self.server.poll_event() {
                let Event::Readable(sid) = event else { continue };
                while let Ok(Read::Data(payload)) = self.server.streams().read(sid, u32::MAX) {
                    self.read += u64::from(payload.0);
                }
            }
            let Some(transmit) = self.server.poll_transmit(self.now) else { break };
            let tuple = transmit.tuple.reversed();
            let route = self.routes.iter_mut().find(|route| route.tuple == tuple).expect("a known path");
            route.carry_back(self.now, transmit.segment);
        }
    }

    fn write(&mut self) {
        while self.left > 0 {
            let mut payload = Virtual(u32::try_from(self.left).unwrap_or(u32::MAX));
            let written = self.client.streams().write(Sid::new(1), &mut payload).expect("the stream is open");
            self.left -= u64::from(written);
            if written == 0 {
                return;
            }
        }
    }
}

impl Route {
    fn new(index: usize, path: &Path) -> Self {
        let end = |address| Address { address, port: index as u16 };
        let tuple = FourTuple { local: end(1), remote: end(2) };
        Self { path: path.clone(), tuple, there: Wire::default(), back: Wire::default() }
    }

    fn carry_there(&mut self, now: Time, random: &mut Random, segment: Segment<Virtual>, is_lossy: bool) {
        let Path { rate, rtt, queue, loss, jitter, late, pause, .. } = self.path;
        let wire = &mut self.there;
        wire.carried += 1;
        let (number, start) = (wire.carried, wire.free_at.max(now));
        let is_lost = random.unit() < loss || start.since(now) > queue;
        let delay = Span::from_ticks((random.unit() * jitter.ticks() as f64) as u64);
        if is_lost && is_lossy {
            return;
        }
        wire.free_at = start + rate.transmission(anabranch_units::Bytes::new(segment.wire_size().into()));
        let arrival = wire.free_at + rtt / 2;
        let arrival = match late {
            Some((each, by)) if number.is_multiple_of(each) => arrival + by,
            _ => {
                wire.latest = wire.latest.max(arrival + delay);
                wire.latest
            }
        };
        let arrival = match pause {
            Some((from, length)) if from <= arrival => arrival.max(from + length),
            _ => arrival,
        };
        if !self.is_dead(now) {
            self.there.flying.insert((arrival, number), segment);
        }
    }

    fn carry_back(&mut self, now: Time, segment: Segment<Virtual>) {
        if !self.is_dead(now) {
            self.back.carried += 1;
            self.back.flying.insert((now + self.path.rtt / 2, self.back.carried), segment);
        }
    }

    fn is_dead(&self, now: Time) -> bool {
        self.path.outages.iter().any(|&(from, until)| from <= now && now < until)
    }
}

impl Wire {
    fn next(&self) -> Time {
        self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    fn take(&mut self, now: Time) -> Option<Segment<Virtual>> {
        self.flying.first_entry().filter(|entry| entry.key().0 <= now).map(|entry| entry.remove())
    }
}

impl Random {
    /// A number from zero (included) to one.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

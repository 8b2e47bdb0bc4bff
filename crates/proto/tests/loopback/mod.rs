//! Two engines back to back in memory, with as little as possible between them: the cost of a run is the cost of the engine. The
//! client sends endlessly on all of its streams; the payload is only a length.

use std::collections::VecDeque;

use anabranch_cc::{Settings, registry};
use anabranch_proto::{
    AckPolicy, Address, Config, Connection, Event, Form, FourTuple, Read, Secret, Segment, SeqNumber, Sid, State,
    Virtual,
};
use anabranch_units::{Span, Time};

pub(crate) struct Loopback {
    now: Time,
    client: Connection<Virtual>,
    server: Connection<Virtual>,
    /// The paths, in the order of their set-up.
    ways: Vec<Way>,
    /// One of this many segments to the server is lost; zero loses none.
    lose_each: u64,
    carried: u64,
    /// Bytes that the server's application has read.
    read: u64,
}

/// A path in both directions.
struct Way {
    tuple: FourTuple,
    up: Wire,
    down: Wire,
}

/// A FIFO queue with a rate and a delay.
struct Wire {
    spacing: Span,
    free_at: Time,
    flying: VecDeque<(Time, Segment<Virtual>)>,
}

impl Loopback {
    /// An established connection with so many streams and paths. In the TCP form each segment is acknowledged. If several may
    /// share an ACK, the form is sealed: every second segment is acknowledged, or fewer if the sender requests it.
    pub(crate) fn new(streams: u8, paths: u8, lose_each: u64, share_ack: u8) -> Self {
        let law = Settings::default_for(registry::find("anabranch").expect("it is the default"));
        let config = Config { streams: streams.into(), paths_max: paths, ..Config::new(law) };
        let config = if share_ack > 1 {
            let acks = AckPolicy { every: 2, delay: Span::from_millis(5) };
            Config { form: Form::Sealed, acks, ack_requests: share_ack, ack_interval: Span::ZERO, ..config }
        } else {
            config
        };
        let tuple = tuple(0);
        let mut loopback = Self {
            now: Time::ZERO,
            client: Connection::connect(Time::ZERO, config.clone(), tuple, Secret::predictable(SeqNumber(0)))
                .expect("it can work"),
            server: Connection::listen(Time::ZERO, config, tuple.reversed(), Secret::predictable(SeqNumber(0)))
                .expect("it can work"),
            ways: (0..paths).map(Way::new).collect(),
            lose_each: 0,
            carried: 0,
            read: 0,
        };
        loopback.drain();
        while loopback.client.state() != State::Established {
            loopback.step();
        }
        for path in 1..paths {
            loopback.client.paths().add(loopback.now, self::tuple(path)).expect("it was negotiated");
        }
        for _ in 0..streams {
            let sid = loopback.client.streams().open().expect("it was granted");
            loopback.write(sid);
        }
        loopback.lose_each = lose_each;
        loopback.drain();
        loopback
    }

    /// Runs until the server has received `segments` more. Returns how many bytes its application read meanwhile.
    pub(crate) fn run(&mut self, segments: u64) -> u64 {
        let (until, before) = (self.server.arrived() + segments, self.read);
        while self.server.arrived() < until {
            self.step();
        }
        self.read - before
    }

    /// Segments in flight, and retransmitted segments, on all paths.
    pub(crate) fn flight(&self) -> (f64, u64) {
        let reports = self.client.path_reports();
        reports.fold((0.0, 0), |(flight, again), (_, path)| (flight + path.flight, again + path.tally.sent_again))
    }

    fn step(&mut self) {
        let timer = self.client.poll_timeout().min(self.server.poll_timeout());
        let next = self.ways.iter().map(|way| way.up.next().min(way.down.next())).min().unwrap_or(Time::NEVER);
        self.now = self.now.max(timer.min(next));
        let now = self.now;
        assert!(now < Time::NEVER, "something always happens: the client has data for ever");
        for way in &mut self.ways {
            if let Some(segment) = way.up.take(now) {
                self.server.handle_segment(now, way.tuple.reversed(), segment);
            }
            if let Some(segment) = way.down.take(now) {
                self.client.handle_segment(now, way.tuple, segment);
            }
        }
        self.drain();
        // The deadline is read only when there is nothing left to send, as the engine's contract requires.
        let are_due = [&mut self.client, &mut self.server].map(|end| {
            let is_due = end.poll_timeout() <= now;
            if is_due {
                end.handle_timeout(now);
            }
            is_due
        });
        if are_due.contains(&true) {
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                self.carried += 1;
                if self.lose_each == 0 || !self.carried.is_multiple_of(self.lose_each) {
                    self.ways[usize::from(transmit.tuple.local.port)].up.carry(self.now, transmit.segment);
                }
            }
            let Some(event) = self.client.poll_event() else { break };
            if let Event::Writable(sid) = event {
                self.write(sid);
            }
        }
        loop {
            while let Some(event) = self.server.poll_event() {
                if let Event::Readable(sid) = event {
                    while let Ok(Read::Data(payload)) = self.server.streams().read(sid, u32::MAX) {
                        self.read += u64::from(payload.0);
                    }
                }
            }
            let Some(transmit) = self.server.poll_transmit(self.now) else { break };
            self.ways[usize::from(transmit.tuple.local.port)].down.carry(self.now, transmit.segment);
        }
    }

    fn write(&mut self, sid: Sid) {
        let _ = self.client.streams().write(sid, &mut Virtual(u32::MAX));
    }
}

impl Way {
    fn new(path: u8) -> Self {
        Self { tuple: tuple(path), up: Wire::new(SPACING), down: Wire::new(Span::ZERO) }
    }
}

impl Wire {
    fn new(spacing: Span) -> Self {
        Self { spacing, free_at: Time::ZERO, flying: VecDeque::new() }
    }

    fn next(&self) -> Time {
        self.flying.front().map_or(Time::NEVER, |flying| flying.0)
    }

    fn take(&mut self, now: Time) -> Option<Segment<Virtual>> {
        if self.next() > now {
            return None;
        }
        self.flying.pop_front().map(|(_, segment)| segment)
    }

    fn carry(&mut self, now: Time, segment: Segment<Virtual>) {
        self.free_at = self.free_at.max(now) + self.spacing;
        self.flying.push_back((self.free_at + DELAY, segment));
    }
}

/// The number of the path serves as the port of both ends.
fn tuple(path: u8) -> FourTuple {
    let end = |address| Address { address, port: path.into() };
    FourTuple { local: end(1), remote: end(2) }
}

/// The transmission time of a segment of 1500 B at 1.2 Gbit/s.
const SPACING: Span = Span::from_micros(10);

/// With [`SPACING`], a round trip is 1000 segments.
const DELAY: Span = Span::from_millis(5);

//! Two engines, the wires between them, and virtual time, so that a test reads as a dialogue.

use std::collections::BTreeMap;

use anabranch_cc::{Settings, registry};
use anabranch_units::{Span, Time};

use crate::{
    Config, Connection, Endpoint, Event, FourTuple, Options, PathId, PathReport, PathState, Payload, Read, Segment,
    SeqNumber, Sid, State,
};

/// Bytes that know where in their stream they stand: so a test sees what was lost, doubled or confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) tag: u32,
    pub(crate) start: u64,
    pub(crate) len: u32,
}

impl Payload for Marked {
    fn len(&self) -> u32 {
        self.len
    }

    fn split_to(&mut self, at: u32) -> Self {
        assert!(at <= self.len, "no more is taken off than there is");
        let part = Self { len: at, ..*self };
        (self.start, self.len) = (self.start + u64::from(at), self.len - at);
        part
    }

    fn join(&mut self, other: Self) -> Result<(), Self> {
        if other.tag != self.tag || other.start != self.start + u64::from(self.len) {
            return Err(other);
        }
        self.len += other.len;
        Ok(())
    }
}

/// What happens to one segment on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Lose,
    Duplicate,
    Delay(Span),
}

/// One direction between the two.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Span,
    /// How long a full segment takes on the wire; zero is infinitely fast.
    pub(crate) spacing: Span,
    /// By the number of the segment on this wire, from 0.
    pub(crate) faults: BTreeMap<u64, Fault>,
    /// Loses everything.
    pub(crate) is_cut: bool,
    /// Takes the permission of SACK out of every SYN.
    pub(crate) is_without_sack: bool,
    /// Segments so far.
    pub(crate) count: u64,
    free_at: Time,
    flying: BTreeMap<(Time, u64), Segment<Marked>>,
    /// What entered it.
    pub(crate) log: Vec<(Time, Segment<Marked>)>,
}

/// One end and its application.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) connection: Connection<Marked>,
    pub(crate) tuple: FourTuple,
    /// Whether segments may go where nobody is any more.
    pub(crate) has_moved: bool,
    /// Whether the application takes what comes.
    pub(crate) is_reading: bool,
    /// What the application has of each stream: bytes, and streams of that name that ended.
    pub(crate) received: BTreeMap<Sid, u64>,
    pub(crate) ended: BTreeMap<Sid, u32>,
    /// Bytes written to each stream, and what is still to be.
    written: BTreeMap<Sid, u64>,
    pending: BTreeMap<Sid, u64>,
    pub(crate) events: Vec<Event>,
    pub(crate) event_times: Vec<(Time, Event)>,
}

pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) client: End,
    pub(crate) server: End,
    /// From the client to the server.
    pub(crate) up: Wire,
    pub(crate) down: Wire,
    /// Further ways between the two.
    pub(crate) routes: Vec<Route>,
    order: u64,
}

/// One more way between the two.
#[derive(Debug)]
pub(crate) struct Route {
    /// Its ends, as each of the two sees them.
    pub(crate) client: FourTuple,
    pub(crate) server: FourTuple,
    pub(crate) up: Wire,
    pub(crate) down: Wire,
}

/// The law that the tests of the engine run on: plain Reno.
pub(crate) fn config() -> Config {
    let law = Settings::default_for(registry::find("reno").unwrap());
    Config { mss: 1000, streams: 8, ..Config::new(law) }
}

pub(crate) fn ms(count: u64) -> Span {
    Span::from_millis(count)
}

impl Pair {
    /// Two ends with the usual settings, 50 ms away from each other; nothing has been sent.
    pub(crate) fn new() -> Self {
        Self::with(config(), config())
    }

    pub(crate) fn with(client: Config, server: Config) -> Self {
        let end = |address| Endpoint { address, port: 7 };
        let tuple = FourTuple { local: end(1), remote: end(2) };
        // Both begin just below the end of their numbers, so every test sees them wrap.
        let (ours, theirs) = (SeqNumber(u32::MAX - 5000), SeqNumber(u32::MAX - 3));
        let client = Connection::connect(Time::ZERO, client, tuple, ours).unwrap();
        let server = Connection::listen(Time::ZERO, server, tuple.reversed(), theirs).unwrap();
        Self {
            now: Time::ZERO,
            client: End::new(client, tuple),
            server: End::new(server, tuple.reversed()),
            up: Wire::new(),
            down: Wire::new(),
            routes: Vec::new(),
            order: 0,
        }
    }

    /// One more way between the two, with this delay in each direction. Nobody has used it yet.
    pub(crate) fn route(&mut self, delay: Span) -> FourTuple {
        let address = 10 + 2 * self.routes.len() as u128;
        let tuple =
            FourTuple { local: Endpoint { address, port: 7 }, remote: Endpoint { address: address + 1, port: 7 } };
        let wire = || Wire { delay, ..Wire::new() };
        self.routes.push(Route { client: tuple, server: tuple.reversed(), up: wire(), down: wire() });
        tuple
    }

    /// The same, used by the client and validated by both.
    #[track_caller]
    pub(crate) fn join(&mut self, delay: Span) -> PathId {
        let tuple = self.route(delay);
        let id = self.client.connection.paths().add(self.now, tuple).expect("paths are negotiated");
        self.run_for(delay * 4);
        let server = self.server.connection.paths().find(&tuple.reversed()).expect("the server has been asked");
        for (end, id) in [(&self.client, id), (&self.server, server)] {
            assert_eq!(end.connection.path(id).map(|path| path.state), Some(PathState::Live));
        }
        id
    }

    /// The same after the handshake.
    pub(crate) fn established(client: Config, server: Config) -> Self {
        let mut pair = Self::with(client, server);
        pair.run_for(ms(150));
        assert_eq!(pair.states(), (State::Established, State::Established));
        pair.up.count = 0;
        pair.down.count = 0;
        pair.up.log.clear();
        pair.down.log.clear();
        pair
    }

    pub(crate) fn states(&self) -> (State, State) {
        (self.client.connection.state(), self.server.connection.state())
    }

    /// Opens a stream from the client and writes so many bytes to it.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: u64) -> Sid {
        let sid = self.client.open();
        self.client.write(sid, bytes);
        self.drain();
        sid
    }

    /// Loses these segments, counted on the wire to the server from 0.
    pub(crate) fn lose(&mut self, numbers: &[u64]) {
        self.up.faults.extend(numbers.iter().map(|&number| (number, Fault::Lose)));
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        self.drain();
        while self.next() <= until {
            self.step();
        }
        self.now = until;
    }

    /// Runs until `is_done`, for a minute at most.
    #[track_caller]
    pub(crate) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        self.run_until_each(is_done);
    }

    /// The same, and `look` may look at each step.
    #[track_caller]
    pub(crate) fn run_until_each(&mut self, mut look: impl FnMut(&Self) -> bool) {
        let limit = self.now + Span::from_secs(60);
        self.drain();
        while !look(self) {
            assert!(self.next() <= limit, "nothing came of it in a minute: {:?}", self.states());
            self.step();
        }
    }

    /// Runs until the server has so much of the stream, and returns how long that took.
    #[track_caller]
    pub(crate) fn run_until_received(&mut self, sid: Sid, bytes: u64) -> Span {
        let begin = self.now;
        self.run_until(|pair| pair.server.received(sid) >= bytes);
        self.now - begin
    }

    /// Nothing is lost, delayed or cut any more, and both applications read.
    pub(crate) fn heal(&mut self) {
        let more = self.routes.iter_mut().flat_map(|route| [&mut route.up, &mut route.down]);
        for wire in [&mut self.up, &mut self.down].into_iter().chain(more) {
            wire.faults.clear();
            wire.is_cut = false;
        }
        (self.client.is_reading, self.server.is_reading) = (true, true);
    }

    /// The paths of both ends and the ways between them, for messages.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (name, end) in [("client", &self.client), ("server", &self.server)] {
            for (id, path) in end.connection.path_reports() {
                let (from, to) = (path.tuple.local, path.tuple.remote);
                let ends = format!("{}:{} to {}:{}", from.address, from.port, to.address, to.port);
                text += &format!("\n{name} {id:?} {ends} {:?}, {} in flight", path.state, path.flight);
            }
        }
        let primary = (self.client.tuple, self.server.tuple);
        for (client, server) in
            [primary].into_iter().chain(self.routes.iter().map(|route| (route.client, route.server)))
        {
            text += &format!(
                "\nway of {}:{}, seen as {}:{}",
                client.local.address, client.local.port, server.remote.address, server.remote.port
            );
        }
        text
    }

    fn next(&self) -> Time {
        let timers = [self.client.connection.poll_timeout(), self.server.connection.poll_timeout()];
        let wires =
            [&self.up, &self.down].into_iter().chain(self.routes.iter().flat_map(|route| [&route.up, &route.down]));
        let arrivals = wires.map(|wire| wire.flying.keys().next().map_or(Time::NEVER, |key| key.0));
        timers.into_iter().chain(arrivals).min().unwrap()
    }

    fn step(&mut self) {
        self.now = self.now.max(self.next());
        let now = self.now;
        for route in &mut self.routes {
            for (wire, end, tuple) in
                [(&mut route.up, &mut self.server, route.server), (&mut route.down, &mut self.client, route.client)]
            {
                if let Some(segment) = wire.deliver(now) {
                    end.connection.handle_segment(now, tuple, segment);
                }
            }
        }
        for (wire, end) in [(&mut self.up, &mut self.server), (&mut self.down, &mut self.client)] {
            if let Some(segment) = wire.deliver(now) {
                end.connection.handle_segment(now, end.tuple, segment);
            }
            if end.connection.poll_timeout() <= now {
                end.connection.handle_timeout(now);
            }
        }
        self.drain();
    }

    /// What a driver does after each input.
    pub(crate) fn drain(&mut self) {
        let Self { up, down, client, server, routes, .. } = self;
        for (is_client, wire, end) in [(true, up, client), (false, down, server)] {
            loop {
                while let Some(transmit) = end.connection.poll_transmit(self.now) {
                    self.order += 2;
                    let route = routes.iter_mut().find(|route| transmit.tuple == route.tuple(is_client));
                    match route {
                        Some(route) if is_client => route.up.carry(self.now, self.order, transmit.segment),
                        Some(route) => route.down.carry(self.now, self.order, transmit.segment),
                        None if transmit.tuple == end.tuple => wire.carry(self.now, self.order, transmit.segment),
                        // It leads nowhere any more.
                        None => assert!(end.has_moved, "{:?}", transmit.tuple),
                    }
                }
                if !end.serve(self.now) {
                    break;
                }
            }
        }
    }
}

impl Route {
    fn tuple(&self, is_client: bool) -> FourTuple {
        if is_client { self.client } else { self.server }
    }
}

impl Wire {
    fn new() -> Self {
        Self {
            delay: ms(50),
            spacing: Span::ZERO,
            faults: BTreeMap::new(),
            is_cut: false,
            is_without_sack: false,
            count: 0,
            free_at: Time::ZERO,
            flying: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn carry(&mut self, now: Time, order: u64, mut segment: Segment<Marked>) {
        if let Options::Handshake(handshake) = &mut segment.options {
            handshake.sack_permitted &= !self.is_without_sack;
        }
        let number = self.count;
        self.count += 1;
        self.log.push((now, segment));
        let fault = self.faults.remove(&number);
        if self.is_cut || fault == Some(Fault::Lose) {
            return;
        }
        let size = Span::from_ticks(self.spacing.ticks() * u64::from(segment.wire_size()) / 1040);
        self.free_at = self.free_at.max(now) + size;
        let arrival = self.free_at + self.delay;
        let arrival = if let Some(Fault::Delay(span)) = fault { arrival + span } else { arrival };
        self.flying.insert((arrival, order), segment);
        if fault == Some(Fault::Duplicate) {
            self.flying.insert((arrival, order + 1), segment);
        }
    }

    /// What has arrived, if anything has.
    fn deliver(&mut self, now: Time) -> Option<Segment<Marked>> {
        let entry = self.flying.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// Segments with data.
    pub(crate) fn data(&self) -> impl Iterator<Item = &(Time, Segment<Marked>)> {
        self.log.iter().filter(|(_, segment)| !segment.content.is_empty())
    }
}

impl End {
    fn new(connection: Connection<Marked>, tuple: FourTuple) -> Self {
        Self {
            connection,
            tuple,
            has_moved: false,
            is_reading: true,
            received: BTreeMap::new(),
            ended: BTreeMap::new(),
            written: BTreeMap::new(),
            pending: BTreeMap::new(),
            events: Vec::new(),
            event_times: Vec::new(),
        }
    }

    #[track_caller]
    pub(crate) fn open(&mut self) -> Sid {
        self.connection.streams().open().expect("a stream is left")
    }

    /// Writes so many bytes, as soon as there is room.
    pub(crate) fn write(&mut self, sid: Sid, bytes: u64) {
        *self.pending.entry(sid).or_default() += bytes;
    }

    /// Writes as much as there is room for.
    pub(crate) fn write_now(&mut self, sid: Sid, bytes: u32) {
        let before = self.pending.insert(sid, bytes.into());
        self.write_some(sid);
        self.pending.insert(sid, before.unwrap_or(0));
    }

    /// Bytes that the engine took.
    pub(crate) fn written(&self, sid: Sid) -> u64 {
        self.written.get(&sid).copied().unwrap_or(0)
    }

    pub(crate) fn received(&self, sid: Sid) -> u64 {
        self.received.get(&sid).copied().unwrap_or(0)
    }

    pub(crate) fn ended(&self, sid: Sid) -> u32 {
        self.ended.get(&sid).copied().unwrap_or(0)
    }

    pub(crate) fn path(&self) -> PathReport {
        self.connection.path(PathId::FIRST).expect("there is one path")
    }

    /// What the application does; whether it did anything.
    fn serve(&mut self, now: Time) -> bool {
        let mut is_busy = false;
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
            self.event_times.push((now, event));
            is_busy = true;
        }
        for sid in self.pending.iter().filter(|(_, bytes)| **bytes > 0).map(|(sid, _)| *sid).collect::<Vec<_>>() {
            is_busy |= self.write_some(sid);
        }
        if self.is_reading {
            for number in 1..=255 {
                is_busy |= self.read_some(Sid::new(number), u32::MAX);
            }
        }
        is_busy
    }

    fn write_some(&mut self, sid: Sid) -> bool {
        let (start, bytes) = (self.written.get(&sid).copied().unwrap_or(0), self.pending[&sid]);
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut payload = Marked { tag: sid.number().into(), start, len };
        let taken = self.connection.streams().write(sid, &mut payload).unwrap_or(0);
        assert_eq!(payload.len, len - taken);
        *self.written.entry(sid).or_default() += u64::from(taken);
        *self.pending.get_mut(&sid).unwrap() -= u64::from(taken);
        taken > 0
    }

    /// Reads and checks that it is what comes next.
    #[track_caller]
    pub(crate) fn read_some(&mut self, sid: Sid, most: u32) -> bool {
        match self.connection.streams().read(sid, most) {
            Err(_) | Ok(Read::Nothing) => false,
            Ok(Read::End) => {
                *self.ended.entry(sid).or_default() += 1;
                true
            }
            Ok(Read::Data(payload)) => {
                let received = self.received.entry(sid).or_default();
                assert_eq!((payload.tag, payload.start), (sid.number().into(), *received), "in order, once");
                *received += u64::from(payload.len);
                true
            }
        }
    }
}

//! Two engines, the wires between them, and virtual time, for tests that read like dialogues.

mod payload;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_cc::{Settings, registry};
use anabranch_units::{Span, Time};

pub(crate) use self::payload::Marked;
pub(crate) use self::wire::{Fault, Wire, removes_mss, removes_multistream, removes_sack, removes_scale};
use crate::{
    Address, Config, Connection, Event, FourTuple, OpenError, Pacing, PathId, PathReport, PathState, Read, ReadError,
    Secret, SendDatagramError, SeqNumber, Sid, State, Urgency, WriteError,
};

/// A stream from its opening to its end, from the view of the application that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) sid: Sid,
    /// Bytes that the engine took.
    pub(crate) bytes: u64,
    pub(crate) is_finished: bool,
    pub(crate) is_reset: bool,
}

/// One end and its application.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) connection: Connection<Marked>,
    pub(crate) tuple: FourTuple,
    /// Whether segments may go to an address that nobody has any more.
    pub(crate) has_moved: bool,
    /// The number of streams, once agreed.
    names: u16,
    /// Whether the application reads.
    pub(crate) is_reading: bool,
    /// Whether it reads datagrams, and those that it has read.
    pub(crate) reads_datagrams: bool,
    pub(crate) datagrams: Vec<Marked>,
    /// The number of datagrams that it has sent.
    datagrams_made: u64,
    /// Streams that the application does not read nevertheless.
    pub(crate) neglected: BTreeSet<Sid>,
    /// For each SID: the bytes that the application has read, and the number of streams that ended.
    pub(crate) received: BTreeMap<Sid, u64>,
    pub(crate) ended: BTreeMap<Sid, u32>,
    /// Streams whose reset it has read, and the error code.
    pub(crate) resets: Vec<(Sid, u16)>,
    /// The opened streams. A payload's tag is the index of its stream in this list; in plain TCP it is 0.
    pub(crate) stories: Vec<Story>,
    /// What is being read of each SID: the tag, and the bytes so far. An entry is removed at the end of its stream.
    reading: BTreeMap<Sid, (u32, u64)>,
    /// Tags and bytes of the streams with content that were read to their end.
    pub(crate) whole: Vec<(u32, u64)>,
    /// Tags of the streams that it stopped while reading them; and the SIDs of those of which it had read nothing.
    pub(crate) stopped: Vec<u32>,
    pub(crate) stopped_unread: Vec<Sid>,
    /// Bytes still to be written to each stream.
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
    /// Further links between the two ends.
    pub(crate) routes: Vec<Route>,
    order: u64,
    /// Steps since time last went on.
    steps: u32,
}

/// One more link between the two ends.
#[derive(Debug)]
pub(crate) struct Route {
    /// The path's four-tuple, as each of the two ends sees it.
    pub(crate) client: FourTuple,
    pub(crate) server: FourTuple,
    pub(crate) up: Wire,
    pub(crate) down: Wire,
}

/// The settings for tests of the engine, with plain Reno.
pub(crate) fn config() -> Config {
    let law = Settings::default_for(registry::find("reno").unwrap());
    // A dialogue tests what is sent, not when.
    Config { mss: 1000, streams: 8, pacing: Pacing::ByLaw, timer: Span::ZERO, ..Config::new(law) }
}

pub(crate) fn ms(count: u64) -> Span {
    Span::from_millis(count)
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

pub(crate) fn secs(count: u64) -> Time {
    Time::ZERO + Span::from_secs(count)
}

/// The tag of a datagram's payload.
const DATAGRAM: u32 = u32::MAX;

/// The steps of one instant: more than a thousand arrivals, with the timers of each.
const STEPS_MAX: u32 = 10_000;

/// Both sequence numbers begin just below the wrap, so every test covers it.
const CLIENT: SeqNumber = SeqNumber(u32::MAX - 5000);
const SERVER: SeqNumber = SeqNumber(u32::MAX - 3);

impl Pair {
    /// Two ends with the default settings and a one-way delay of 50 ms. Nothing has been sent.
    pub(crate) fn new() -> Self {
        Self::with(config(), config())
    }

    pub(crate) fn with(client: Config, server: Config) -> Self {
        let end = |address| Address { address, port: 7 };
        let tuple = FourTuple { local: end(1), remote: end(2) };
        let client = Connection::connect(Time::ZERO, client, tuple, Secret::predictable(CLIENT)).unwrap();
        let server = Connection::listen(Time::ZERO, server, tuple.reversed(), Secret::predictable(SERVER)).unwrap();
        Self {
            now: Time::ZERO,
            client: End::new(client, tuple),
            server: End::new(server, tuple.reversed()),
            up: Wire::new(),
            down: Wire::new(),
            routes: Vec::new(),
            order: 0,
            steps: 0,
        }
    }

    /// Adds a link with this one-way delay. It is not used yet.
    pub(crate) fn route(&mut self, delay: Span) -> FourTuple {
        let address = 10 + 2 * self.routes.len() as u128;
        let tuple =
            FourTuple { local: Address { address, port: 7 }, remote: Address { address: address + 1, port: 7 } };
        let wire = || Wire { delay, ..Wire::new() };
        self.routes.push(Route { client: tuple, server: tuple.reversed(), up: wire(), down: wire() });
        tuple
    }

    /// Adds a link that the client uses as a path, validated by both ends.
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

    /// Two ends after the handshake.
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

    /// The sequence number of an offset in what the client sends.
    pub(crate) fn client_at(&self, offset: u64) -> SeqNumber {
        CLIENT.plus(offset)
    }

    /// The sequence number of an offset in what the server sends.
    pub(crate) fn server_at(&self, offset: u64) -> SeqNumber {
        SERVER.plus(offset)
    }

    /// The client's next sequence number if all earlier data was sent, for forged segments.
    pub(crate) fn client_seq(&self) -> SeqNumber {
        CLIENT.plus(self.client.connection.sent())
    }

    /// The server's next sequence number, likewise.
    pub(crate) fn server_seq(&self) -> SeqNumber {
        SERVER.plus(self.server.connection.sent())
    }

    /// Opens a stream at the client and writes `bytes` bytes to it.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: u64) -> Sid {
        let sid = self.client.open();
        self.client.write(sid, bytes);
        self.drain();
        sid
    }

    /// Sends `bytes` bytes on a new stream, and runs until they have arrived.
    #[track_caller]
    pub(crate) fn transfer(&mut self, bytes: u64) -> Sid {
        let sid = self.send(bytes);
        self.run_until_received(sid, bytes);
        sid
    }

    /// Loses these segments to the server, counted on the wire from 0.
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

    /// Runs until `is_done`, for at most a minute.
    #[track_caller]
    pub(crate) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        self.run_until_each(is_done);
    }

    /// As [`Self::run_until`]; `look` is called after each step.
    #[track_caller]
    pub(crate) fn run_until_each(&mut self, mut look: impl FnMut(&Self) -> bool) {
        let limit = self.now + Span::from_secs(60);
        self.drain();
        while !look(self) {
            assert!(self.next() <= limit, "nothing came of it in a minute: {:?}", self.states());
            self.step();
        }
    }

    /// Runs until the server has `bytes` bytes of the stream. Returns how long that took.
    #[track_caller]
    pub(crate) fn run_until_received(&mut self, sid: Sid, bytes: u64) -> Span {
        let begin = self.now;
        self.run_until(|pair| pair.server.received(sid) >= bytes);
        self.now - begin
    }

    /// Ends all losses, delays and cuts, and lets both applications read.
    pub(crate) fn heal(&mut self) {
        let more = self.routes.iter_mut().flat_map(|route| [&mut route.up, &mut route.down]);
        for wire in [&mut self.up, &mut self.down].into_iter().chain(more) {
            wire.faults.clear();
            wire.is_cut = false;
        }
        for end in [&mut self.client, &mut self.server] {
            end.is_reading = true;
            end.neglected.clear();
        }
    }

    /// The paths of both ends and the links between them, for failure messages.
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
        let now = self.now.max(self.next());
        self.steps = if now > self.now { 0 } else { self.steps + 1 };
        assert!(self.steps < STEPS_MAX, "steps without end at {now}: {}", self.describe());
        self.now = now;
        for route in &mut self.routes {
            for (wire, end, tuple) in
                [(&mut route.up, &mut self.server, route.server), (&mut route.down, &mut self.client, route.client)]
            {
                if let Some((segment, ecn)) = wire.deliver(now) {
                    end.connection.handle_marked(now, tuple, ecn, segment);
                }
            }
        }
        for (wire, end) in [(&mut self.up, &mut self.server), (&mut self.down, &mut self.client)] {
            if let Some((segment, ecn)) = wire.deliver(now) {
                end.connection.handle_marked(now, end.tuple, ecn, segment);
            }
            if end.connection.poll_timeout() <= now {
                end.connection.handle_timeout(now);
            }
        }
        self.drain();
    }

    /// The steps of a driver after each input.
    pub(crate) fn drain(&mut self) {
        let Self { up, down, client, server, routes, .. } = self;
        for (is_client, wire, end) in [(true, up, client), (false, down, server)] {
            loop {
                while let Some(transmit) = end.connection.poll_transmit(self.now) {
                    self.order += 2;
                    let route = routes.iter_mut().find(|route| transmit.tuple == route.tuple(is_client));
                    match route {
                        Some(route) if is_client => route.up.carry(self.now, self.order, transmit),
                        Some(route) => route.down.carry(self.now, self.order, transmit),
                        None if transmit.tuple == end.tuple => wire.carry(self.now, self.order, transmit),
                        // This address leads nowhere any more.
                        None => assert!(end.has_moved, "{:?}", transmit.tuple),
                    }
                }
                if !end.serve(self.now) {
                    break;
                }
            }
            end.connection.check();
        }
        self.client.connection.check_with(&self.server.connection);
        self.server.connection.check_with(&self.client.connection);
    }
}

impl Route {
    fn tuple(&self, is_client: bool) -> FourTuple {
        if is_client { self.client } else { self.server }
    }
}

impl End {
    fn new(connection: Connection<Marked>, tuple: FourTuple) -> Self {
        Self {
            connection,
            tuple,
            has_moved: false,
            is_reading: true,
            reads_datagrams: true,
            datagrams: Vec::new(),
            datagrams_made: 0,
            names: 0,
            neglected: BTreeSet::new(),
            received: BTreeMap::new(),
            ended: BTreeMap::new(),
            resets: Vec::new(),
            stories: vec![Story { sid: Sid::PLAIN, bytes: 0, is_finished: false, is_reset: false }],
            reading: BTreeMap::new(),
            whole: Vec::new(),
            stopped: Vec::new(),
            stopped_unread: Vec::new(),
            pending: BTreeMap::new(),
            events: Vec::new(),
            event_times: Vec::new(),
        }
    }

    #[track_caller]
    pub(crate) fn open(&mut self) -> Sid {
        self.try_open().expect("a stream is left")
    }

    pub(crate) fn try_open(&mut self) -> Result<Sid, OpenError> {
        let sid = self.connection.streams().open()?;
        self.stories.push(Story { sid, bytes: 0, is_finished: false, is_reset: false });
        Ok(sid)
    }

    /// The index of the last stream with this SID.
    fn tag(&self, sid: Sid) -> usize {
        self.stories.iter().rposition(|story| story.sid == sid).unwrap_or(0)
    }

    pub(crate) fn finish(&mut self, sid: Sid) -> Result<(), WriteError> {
        let tag = self.tag(sid);
        self.connection.streams().finish(sid)?;
        self.stories[tag].is_finished = true;
        Ok(())
    }

    pub(crate) fn reset(&mut self, sid: Sid, code: u16) -> Result<(), WriteError> {
        let tag = self.tag(sid);
        self.connection.streams().reset(sid, code)?;
        self.stories[tag].is_reset = true;
        Ok(())
    }

    pub(crate) fn stop(&mut self, sid: Sid, code: u16) -> Result<(), ReadError> {
        self.connection.streams().stop(sid, code)?;
        match self.reading.remove(&sid) {
            Some((tag, _)) => self.stopped.push(tag),
            None => self.stopped_unread.push(sid),
        }
        Ok(())
    }

    /// The tag and the bytes of the stream of this SID that is being read.
    pub(crate) fn reading(&self, sid: Sid) -> Option<(u32, u64)> {
        self.reading.get(&sid).copied()
    }

    /// Writes `bytes` bytes, as soon as there is room.
    pub(crate) fn write(&mut self, sid: Sid, bytes: u64) {
        *self.pending.entry(sid).or_default() += bytes;
    }

    /// Writes as much as there is room for.
    pub(crate) fn write_now(&mut self, sid: Sid, bytes: u32) {
        let before = self.pending.insert(sid, bytes.into());
        self.write_some(sid);
        self.pending.insert(sid, before.unwrap_or(0));
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

    /// The application's actions. Returns whether there were any.
    fn serve(&mut self, now: Time) -> bool {
        let mut is_busy = false;
        while let Some(event) = self.connection.poll_event() {
            if let Event::Stopped { sid, .. } = event {
                let tag = self.tag(sid);
                self.stories[tag].is_reset = true;
            }
            if let Event::Established { streams } = event {
                self.names = streams.unwrap_or(1);
            }
            self.events.push(event);
            self.event_times.push((now, event));
            is_busy = true;
        }
        for sid in self.pending.iter().filter(|(_, bytes)| **bytes > 0).map(|(sid, _)| *sid).collect::<Vec<_>>() {
            is_busy |= self.write_some(sid);
        }
        if self.reads_datagrams {
            self.datagrams.extend(std::iter::from_fn(|| self.connection.datagrams().read()));
        }
        if self.is_reading {
            for sid in (1..=self.names).map(Sid::new) {
                is_busy |= !self.neglected.contains(&sid) && self.read_some(sid, u32::MAX);
            }
        }
        is_busy
    }

    /// Sends a datagram of `len` bytes, whose start is its number.
    pub(crate) fn send_datagram(&mut self, now: Time, len: u32, expires: Time) -> Result<(), SendDatagramError> {
        self.send_datagram_as(now, len, expires, Urgency::Usual)
    }

    /// As [`Self::send_datagram`], of this urgency.
    pub(crate) fn send_datagram_as(
        &mut self,
        now: Time,
        len: u32,
        expires: Time,
        urgency: Urgency,
    ) -> Result<(), SendDatagramError> {
        let payload = Marked { tag: DATAGRAM, start: self.datagrams_made, len };
        self.connection.datagrams().send(now, payload, expires, urgency)?;
        self.datagrams_made += 1;
        Ok(())
    }

    /// The numbers of the datagrams that it has read, in the order of arrival.
    pub(crate) fn datagram_numbers(&self) -> Vec<u64> {
        assert!(self.datagrams.iter().all(|datagram| datagram.tag == DATAGRAM));
        self.datagrams.iter().map(|datagram| datagram.start).collect()
    }

    fn write_some(&mut self, sid: Sid) -> bool {
        let (tag, bytes) = (self.tag(sid), self.pending[&sid]);
        let len = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut payload = Marked { tag: tag as u32, start: self.stories[tag].bytes, len };
        let taken = self.connection.streams().write(sid, &mut payload).unwrap_or(0);
        assert_eq!(payload.len, len - taken);
        self.stories[tag].bytes += u64::from(taken);
        *self.pending.get_mut(&sid).unwrap() -= u64::from(taken);
        taken > 0
    }

    /// Reads, and checks that the data is what must come next: no part of a stream is missing, and a new stream of a SID is a
    /// later one.
    #[track_caller]
    pub(crate) fn read_some(&mut self, sid: Sid, most: u32) -> bool {
        match self.connection.streams().read(sid, most) {
            Err(_) | Ok(Read::Nothing) => false,
            Ok(Read::End) => {
                *self.ended.entry(sid).or_default() += 1;
                self.whole.extend(self.reading.remove(&sid));
                true
            }
            Ok(Read::Reset(code)) => {
                self.resets.push((sid, code));
                self.reading.remove(&sid);
                true
            }
            Ok(Read::Data(payload)) => {
                let (tag, bytes) = self.reading.entry(sid).or_insert((payload.tag, 0));
                assert_eq!((payload.tag, payload.start), (*tag, *bytes), "in order, once");
                *bytes += u64::from(payload.len);
                *self.received.entry(sid).or_default() += u64::from(payload.len);
                true
            }
        }
    }
}

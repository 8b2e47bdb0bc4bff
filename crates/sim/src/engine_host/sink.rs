//! The receiving end of the transport as a host.

use anabranch_proto::{Config, ConfigError, Connection, Event, Read, Secret, Sid, Virtual};
use anabranch_units::{SimTime, Time};

use super::messages::{Expected, Requests};
use super::{INITIAL, engine_time, lane, number, picoseconds, tuple_of_sink};
use crate::account::{Account, Portion};
use crate::datagrams::Datagrams;
use crate::history::{Detail, History, remember_count};
use crate::host::{Arrival, Host, Transmit, Way};

/// The end that accepts the connection and reads all data.
#[derive(Debug)]
pub struct EngineSink {
    pub(super) connection: Connection<Virtual>,
    datagrams: Datagrams,
    ways: Vec<Way>,
    /// Bytes that the application has read, over all streams.
    pub(super) read: u64,
    /// Bytes on the wire that arrived (`wire`), and the number of data segments in them.
    pub(super) wire: u64,
    /// The largest amount of unread data after the application has read.
    pub(super) buffered_max: u64,
    /// The sum of the first arrival times of segments with content, in picoseconds.
    pub(super) arrivals: u128,
    /// Bytes of content in a full segment.
    payload: u64,
    /// The number of held segments over time, if recorded.
    pub(super) held: Option<History<(SimTime, u32)>>,
    /// The reads, if recorded.
    pub(super) deliveries: Option<History<Portion>>,
    /// The messages that it expects, if any.
    pub(super) expected: Option<Expected>,
}

impl EngineSink {
    /// A sink that has received nothing.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let payload = u64::from(config.payload().max(1));
        let datagrams = Datagrams::new(config.form);
        let connection = Connection::listen(Time::ZERO, config, tuple_of_sink(0), Secret::predictable(INITIAL))?;
        Ok(Self {
            datagrams,
            arrivals: 0,
            payload,
            held: None,
            connection,
            ways: Vec::new(),
            read: 0,
            wire: 0,
            buffered_max: 0,
            deliveries: None,
            expected: None,
        })
    }

    /// The same sink with several paths, in the order of the source's.
    #[must_use]
    pub fn multihomed(self, ways: Vec<Way>) -> Self {
        Self { ways, ..self }
    }

    /// The same sink, recording its reads in this detail.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        Self { deliveries: Some(History::new(detail)), held: Some(History::new(detail)), ..self }
    }

    /// The same sink, recording when each message of these sizes is complete. They arrive one after the other, on one stream.
    #[must_use]
    pub fn expecting(self, sizes: &[u64]) -> Self {
        Self { expected: Some(Expected::new(sizes)), ..self }
    }

    /// The same sink, sending a request for each of the messages that it expects.
    #[must_use]
    pub fn asking(self, requests: Requests) -> Self {
        Self { expected: self.expected.map(|expected| expected.asking(requests)), ..self }
    }

    /// Bytes that the application has read, over all streams.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Bytes on the wire that arrived.
    pub fn wire(&self) -> u64 {
        self.wire
    }

    /// The largest amount of data in the receive buffer after the application has read. That is data above a hole in its stream,
    /// or above a hole of a connection without streams.
    pub fn buffered_max(&self) -> u64 {
        self.buffered_max
    }

    /// The largest number of held segments: above a hole in their stream, or on a connection without streams.
    pub fn held_max(&self) -> u64 {
        self.buffered_max.div_ceil(self.payload)
    }

    /// The number of held segments over time, if recorded.
    pub fn held(&self) -> Option<&[(SimTime, u32)]> {
        self.held.as_ref().map(History::entries)
    }

    /// The reads, if recorded.
    pub fn deliveries(&self) -> Option<&[Portion]> {
        self.deliveries.as_ref().map(History::entries)
    }

    /// The connection of the sink.
    pub fn connection(&self) -> &Connection<Virtual> {
        &self.connection
    }

    /// Records what remains in the receive buffer after reading.
    fn note_held(&mut self, now: SimTime) {
        let buffered = self.connection.buffered();
        self.buffered_max = self.buffered_max.max(buffered);
        let Some(held) = &mut self.held else { return };
        // Fewer than 2^32 segments fit into the largest buffer.
        let count = buffered.div_ceil(self.payload) as u32;
        remember_count(held, now, count);
    }

    fn read_all(&mut self, now: SimTime, sid: Sid) {
        let mut bytes = 0;
        loop {
            match self.connection.streams().read(sid, u32::MAX) {
                Ok(Read::Data(payload)) => bytes += u64::from(payload.0),
                Ok(Read::End | Read::Reset(_)) => {}
                Ok(Read::Nothing) | Err(_) => break,
            }
        }
        self.read += bytes;
        if let Some(expected) = &mut self.expected {
            expected.note_read(now, self.read);
        }
        if let Some(deliveries) = self.deliveries.as_mut().filter(|_| bytes > 0) {
            deliveries.push(Portion { time: now, stream: lane(sid), bits: 8 * bytes });
        }
    }
}

impl Host for EngineSink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        let came_by = Way::came_by(&self.ways, &arrival).unwrap_or(0);
        self.wire += u64::from(arrival.size);
        if let Some(segment) = self.datagrams.receive(arrival.body) {
            let before = self.connection.arrived();
            let (read, at) = (engine_time(now), engine_time(arrival.at));
            self.connection.handle_late(read, at, tuple_of_sink(came_by), arrival.ecn, segment);
            self.arrivals += picoseconds(now) * u128::from(self.connection.arrived() - before);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.connection.handle_timeout(engine_time(now));
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if let Some(transmit) = self.datagrams.poll() {
            return Some(transmit);
        }
        loop {
            if let Some(transmit) = self.connection.poll_transmit(engine_time(now)) {
                let (ways, path) = (&self.ways, number(transmit.tuple.remote));
                return Some(self.datagrams.send(transmit, |packet| Way::sent_by(ways, path, packet)));
            }
            let Some(event) = self.connection.poll_event() else {
                if self.expected.as_mut().is_some_and(|expected| expected.ask(now, &mut self.connection)) {
                    continue;
                }
                self.note_held(now);
                return None;
            };
            match event {
                Event::Readable(sid) => self.read_all(now, sid),
                Event::Established { .. } => {
                    if let Some(expected) = &mut self.expected {
                        expected.begin(now);
                    }
                }
                Event::Writable(_)
                | Event::DatagramsReadable
                | Event::Finished(_)
                | Event::PathValidated(_)
                | Event::PathFailed(_)
                | Event::PathRestored(_)
                | Event::PathGone(_)
                | Event::Stopped { .. }
                | Event::Stalled
                | Event::PeerClosed
                | Event::Closed(_) => {}
            }
        }
    }

    fn poll_timeout(&self) -> SimTime {
        let due = self.expected.as_ref().map_or(SimTime::NEVER, Expected::due);
        due.min(self.connection.poll_timeout().rescale())
    }

    fn account(&self) -> &dyn Account {
        self
    }
}

//! One end of an association: what arrives, what that triggers, and in which order answers leave.
//!
//! ```text
//! Closed --start--> CookieWait --INIT-ACK--> CookieEchoed --COOKIE-ACK--> Established
//! Closed --COOKIE-ECHO--> Established
//! ```
//!
//! A packet's chunks are handled one by one. Then all answers leave in one packet, then a SACK, then new data. ns-2 bundles none
//! of these with another.
//!
//! Quirks of ns-2:
//! * While it waits for the second or fourth step of the handshake, it accepts any chunk as that step.
//! * Data waits until every destination has answered a heartbeat. Only the end that opened the association sends heartbeats after
//!   the handshake.
//! * Only an arriving packet triggers new data. If the application offers data when everything is acknowledged, that data is
//!   never sent. Data offered earlier is sent with the next SACK.

use std::collections::VecDeque;

use anabranch_units::SimTime;

use super::config::{DestinationConfig, EndpointConfig};
use super::counts::{Counters, Delivery, Departure, Gauges, Received};
use super::destination::{Destination, Status};
use super::packet::{Chunk, Data, Greeting, Heartbeat, Packet};
use super::receiver::{Fate, Receiver};
use super::send_buffer::SendBuffer;
use super::timers::{Clock, Timer, Timers};
use crate::random::Mrg32k3a;

/// One end of an association of ns-2.35's SCTP.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) config: EndpointConfig,
    pub(super) clock: Clock,
    pub(super) state: State,
    pub(super) timers: Timers,
    pub(super) random: Mrg32k3a,

    pub(super) destinations: Vec<Destination>,
    pub(super) primary: usize,
    /// The destination for new data (`spNewTxDest`).
    pub(super) current: usize,
    /// The source of the last packet, to which answers go.
    reply: usize,
    /// Consecutive timeouts, over all destinations.
    pub(super) association_errors: u32,
    pub(super) init_retries: u32,
    /// When the heartbeat timer was set.
    pub(super) heartbeat_since: f64,

    /// TSN of the last new chunk.
    pub(super) tsn: u32,
    /// The destination whose turn it is. It is a 16-bit number; where it wraps, the rotation skips.
    pub(super) turn: u16,
    /// Next SSN per stream.
    pub(super) ssn: Vec<u16>,
    pub(super) supply: Supply,
    pub(super) buffer: SendBuffer,
    /// Free receive buffer at the peer (`uiPeerRwnd`).
    pub(super) peer_window: u32,
    /// The receive window in the peer's last SACK.
    pub(super) peer_window_said: u32,
    pub(super) cumulative: u32,
    /// `uiHighestTsnNewlyAcked`.
    pub(super) highest_newly_acked: u32,
    pub(super) highest_sent: u32,
    pub(super) recover: u32,
    pub(super) may_send_new: bool,
    pub(super) is_any_marked: bool,
    pub(super) is_burst_limited: bool,
    pub(super) burst: u32,
    /// Destination to which CMT sent new data last.
    pub(super) served: Option<usize>,

    receiver: Receiver,
    wants_sack: bool,

    pub(super) counters: Counters,
    received: Received,
    out: VecDeque<Departure>,
    deliveries: VecDeque<Delivery>,
}

/// The state of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    CookieWait,
    CookieEchoed,
    Established,
}

/// The source of the data.
#[derive(Clone, Debug)]
pub(super) enum Supply {
    /// Endless data, in chunks of the configured size.
    Endless,
    /// Messages of the application: stream and payload bytes of each chunk.
    Messages(VecDeque<(u16, u32)>),
}

impl Endpoint {
    /// An endpoint that has not started. Each of `destinations` is an address of the peer; the first is the primary. `random`
    /// stands for ns-2's default stream: heartbeats and ties draw from it.
    ///
    /// # Panics
    /// If the configuration is impossible, if there is no destination, or if there are more than [`Endpoint::DESTINATIONS_MAX`].
    pub fn new(config: EndpointConfig, destinations: &[DestinationConfig], random: Mrg32k3a) -> Self {
        assert!(config.is_possible(), "a packet holds a chunk: {config:?}");
        assert!((1..=Self::DESTINATIONS_MAX).contains(&destinations.len()), "1 to 255 destinations");
        Self {
            config,
            clock: Clock::default(),
            state: State::Closed,
            timers: Timers::default(),
            random,
            destinations: destinations.iter().map(|&it| Destination::new(&config, it)).collect(),
            primary: 0,
            current: 0,
            reply: 0,
            association_errors: 0,
            init_retries: 0,
            heartbeat_since: 0.0,
            tsn: 0,
            turn: 0,
            ssn: vec![0; config.streams.into()],
            supply: Supply::Messages(VecDeque::new()),
            buffer: SendBuffer::default(),
            peer_window: 0,
            peer_window_said: 0,
            cumulative: 0,
            highest_newly_acked: 0,
            highest_sent: 0,
            recover: 0,
            may_send_new: false,
            is_any_marked: false,
            is_burst_limited: false,
            burst: 0,
            served: None,
            receiver: Receiver::new(config.receive_buffer),
            wants_sack: false,
            counters: Counters::default(),
            received: Received::default(),
            out: VecDeque::new(),
            deliveries: VecDeque::new(),
        }
    }

    /// Limit on the destinations of an endpoint: their indices are a byte on the wire.
    pub const DESTINATIONS_MAX: usize = 255;

    /// Limit on the chunks that wait for their first transmission.
    pub const MESSAGES_MAX: usize = 1 << 20;

    /// Makes `destination` the primary one.
    ///
    /// # Panics
    /// If there is no such destination.
    pub fn set_primary(&mut self, destination: usize) {
        assert!(destination < self.destinations.len(), "there is no destination {destination}");
        (self.primary, self.current) = (destination, destination);
    }

    /// The application sends endless data from now on; the association opens.
    pub fn produce_endlessly(&mut self, now: SimTime) {
        self.clock.now = now;
        self.supply = Supply::Endless;
        self.produced();
    }

    /// The application sends `bytes` on `stream`, in as many chunks as needed. Chunks beyond [`Endpoint::MESSAGES_MAX`] are
    /// discarded. ns-2's own interface has stream 0 only.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn produce(&mut self, now: SimTime, stream: u16, bytes: u64) {
        assert!(stream < self.config.streams, "there is no stream {stream}");
        self.clock.now = now;
        // A chunk must fit with its padding. ns-2 cuts data to the room of a packet without rounding it down. If the room is not
        // a multiple of four, it sends empty packets for ever.
        let most = self.config.room() / 4 * 4 - Data::HEADER;
        if let Supply::Messages(messages) = &mut self.supply {
            let mut rest = bytes;
            while rest > 0 && messages.len() < Self::MESSAGES_MAX {
                let length = rest.min(most.into()) as u32;
                messages.push_back((stream, length));
                rest -= u64::from(length);
            }
        }
        self.produced();
    }

    /// The application sends nothing new from now on; outstanding data is still delivered. ns-2's FTP cannot stop an SCTP agent.
    pub fn stop(&mut self) {
        self.supply = Supply::Messages(VecDeque::new());
    }

    /// The current time in seconds by ns-2's own float clock. Call it before every other call, or never.
    pub fn handle_clock(&mut self, seconds: f64) {
        self.clock.float = Some(seconds);
    }

    /// A packet of `size` bytes arrived.
    pub fn handle(&mut self, now: SimTime, packet: &Packet, size: u32) {
        self.clock.now = now;
        self.reply = usize::from(packet.source).min(self.destinations.len() - 1);
        if packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_))) && self.state == State::Established {
            self.received.packets += 1;
            self.received.bytes += u64::from(size);
        }
        let mut answers = vec![];
        let mut is_first_data = true;
        for chunk in &packet.chunks {
            self.handle_chunk(chunk, &mut is_first_data, &mut answers);
        }
        if !answers.is_empty() {
            self.emit(self.reply, answers);
        }
        if self.wants_sack {
            self.send_sack(self.receiver.packets);
            self.wants_sack = false;
        }
        // CMT sends new data even while lost data waits for retransmission, as it may go to another destination.
        if self.may_send_new && (!self.is_any_marked || self.config.cmt().is_some()) {
            self.send_much();
            self.may_send_new = false;
        }
    }

    /// Handles the timeout that [`Endpoint::poll_timeout`] announced. One call handles one timer.
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.clock.now = now;
        match self.timers.take_due(now) {
            None => {}
            Some(Timer::Init) => self.retry_handshake(Timer::Init),
            Some(Timer::Cookie) => self.retry_handshake(Timer::Cookie),
            Some(Timer::Sack) => {
                // The count is cleared first, so CMT's SACK acknowledges zero packets and counts as no missing report.
                self.receiver.packets = 0;
                self.send_sack(0);
            }
            Some(Timer::Heartbeat) => self.on_heartbeat_due(),
            Some(Timer::Retransmission(destination)) => self.on_data_timeout(destination),
            Some(Timer::Idle(destination)) => self.on_idle(destination),
            Some(Timer::HeartbeatAck(destination)) => self.on_heartbeat_timeout(destination),
        }
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self) -> Option<Departure> {
        self.out.pop_front()
    }

    /// When [`Endpoint::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> SimTime {
        self.timers.next().map_or(SimTime::NEVER, |next| next.at)
    }

    /// The time of [`Self::poll_timeout`] in seconds of ns-2's clock, and when that timer was set. Among timers that are due at
    /// the same time, the one set first is handled first.
    pub fn poll_due(&self) -> Option<(f64, SimTime)> {
        self.timers.next().map(|next| (next.seconds, next.set_at))
    }

    /// The next chunk for the application. Chunks accumulate until they are polled.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// The random stream of this endpoint. In a world that agrees with ns-2, all endpoints share one.
    pub fn random(&mut self) -> &mut Mrg32k3a {
        &mut self.random
    }

    /// The configuration of the endpoint.
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Whether the association is established, so that data may be sent.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// The sender's counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The receiver's counters.
    pub fn received(&self) -> Received {
        self.received
    }

    /// The variables of a destination.
    ///
    /// # Panics
    /// If there is no such destination.
    pub fn gauges(&self, destination: usize) -> Gauges {
        let it = &self.destinations[destination];
        Gauges {
            window: it.window,
            ssthresh: it.ssthresh,
            in_flight: it.outstanding,
            rto_s: it.rto.timeout_s(),
            srtt_s: it.rto.srtt_s(),
        }
    }

    /// The number of destinations.
    pub fn destinations(&self) -> usize {
        self.destinations.len()
    }

    /// TSN of the last chunk sent for the first time, 0 before the first.
    pub fn tsn(&self) -> u32 {
        self.tsn
    }

    /// Highest cumulative TSN acknowledged, 0 before the first.
    pub fn acked_tsn(&self) -> u32 {
        self.cumulative
    }

    /// Chunks that wait for an earlier one in their stream.
    pub fn held_chunks(&self) -> u32 {
        self.receiver.held
    }

    /// Room in our receive buffer, in bytes.
    pub fn receive_window(&self) -> u32 {
        self.receiver.window
    }

    /// Room in the peer's receive buffer as far as known, in bytes.
    pub fn peer_window(&self) -> u32 {
        self.peer_window
    }

    /// Puts a packet on the wire.
    pub(super) fn emit(&mut self, destination: usize, chunks: Vec<Chunk>) {
        self.counters.sent_packets += 1;
        let packet = Packet { source: self.destinations[destination].interface, chunks };
        self.out.push_back(Departure { destination, packet });
    }

    /// Bytes outstanding at all destinations.
    pub(super) fn outstanding(&self) -> u32 {
        self.destinations.iter().fold(0_u32, |sum, it| sum.wrapping_add(it.outstanding as u32))
    }

    /// Computes the free part of the peer's receive window, from its last SACK and the data in flight.
    pub(super) fn update_peer_window(&mut self) {
        self.peer_window = self.peer_window_said.saturating_sub(self.outstanding());
    }

    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.timers.cancel_all();
        self.buffer.clear();
        self.supply = Supply::Messages(VecDeque::new());
        self.receiver.clear();
    }

    /// The application has produced data: opens the association or sends.
    fn produced(&mut self) {
        match self.state {
            State::Closed => {
                self.state = State::CookieWait;
                let rto = self.destinations[self.primary].rto.timeout_s();
                self.timers.set(Timer::Init, &self.clock, rto);
                let greeting = self.greeting();
                self.emit(self.primary, vec![Chunk::Init(greeting)]);
            }
            State::CookieWait | State::CookieEchoed => {}
            State::Established => {
                if self.may_send_new && !self.is_any_marked {
                    self.send_much();
                    self.may_send_new = false;
                }
            }
        }
    }

    fn greeting(&self) -> Greeting {
        Greeting { window: self.config.receive_buffer, streams: self.config.streams }
    }

    fn greet(&mut self, greeting: &Greeting) {
        self.peer_window = greeting.window;
        self.peer_window_said = greeting.window;
        self.receiver.open_streams(greeting.streams);
    }

    fn retry_handshake(&mut self, timer: Timer) {
        self.init_retries += 1;
        if self.init_retries > self.config.init_retries_max {
            self.close();
            return;
        }
        self.destinations[self.primary].rto.back_off();
        let rto = self.destinations[self.primary].rto.timeout_s();
        let chunk = if timer == Timer::Init { Chunk::Init(self.greeting()) } else { Chunk::CookieEcho };
        self.emit(self.primary, vec![chunk]);
        self.timers.set(timer, &self.clock, rto);
    }

    fn handle_chunk(&mut self, chunk: &Chunk, is_first_data: &mut bool, answers: &mut Vec<Chunk>) {
        match (self.state, chunk) {
            (State::Closed, Chunk::Init(greeting)) => {
                self.greet(greeting);
                answers.push(Chunk::InitAck(self.greeting()));
            }
            (State::Closed, Chunk::CookieEcho) => {
                answers.push(Chunk::CookieAck);
                self.state = State::Established;
                self.watch_idle();
            }
            (State::Closed, _) => {}
            (State::CookieWait, chunk) => {
                self.timers.cancel(Timer::Init);
                if let Chunk::InitAck(greeting) = chunk {
                    self.greet(greeting);
                }
                answers.push(Chunk::CookieEcho);
                let rto = self.destinations[self.primary].rto.timeout_s();
                self.timers.set(Timer::Cookie, &self.clock, rto);
                self.state = State::CookieEchoed;
            }
            (State::CookieEchoed, _) => {
                self.timers.cancel(Timer::Cookie);
                self.state = State::Established;
                for destination in 0..self.destinations.len() {
                    self.destinations[destination].status = Status::Unconfirmed;
                    self.send_heartbeat(destination);
                }
                self.may_send_new = false;
            }
            (State::Established, Chunk::Data(data)) => self.handle_data(data, is_first_data),
            (State::Established, Chunk::Sack(sack)) => {
                self.on_sack(sack);
                self.may_send_new = true;
            }
            (State::Established, &Chunk::Heartbeat(heartbeat)) => answers.push(Chunk::HeartbeatAck(heartbeat)),
            (State::Established, Chunk::HeartbeatAck(heartbeat)) => self.handle_heartbeat_ack(heartbeat),
            // The peer may have missed the COOKIE-ACK.
            (State::Established, Chunk::CookieEcho) => answers.push(Chunk::CookieAck),
            (State::Established, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::CookieAck) => {}
        }
    }

    fn handle_heartbeat_ack(&mut self, heartbeat: &Heartbeat) {
        let destination = usize::from(heartbeat.destination);
        let before = self.destinations[destination].status;
        self.on_heartbeat_ack(destination, heartbeat.sent_s);
        if before == Status::Unconfirmed {
            if self.destinations.iter().all(|it| it.status != Status::Unconfirmed) {
                self.may_send_new = true;
                self.watch_idle();
            }
        } else if before == Status::Inactive && self.config.cmt().is_some() {
            // CMT may have had no usable destination: chunks that timed out are retransmitted first.
            self.retransmit_timed_out(destination);
            if !self.buffer.is_any_marked() {
                self.update_peer_window();
                self.may_send_new = true;
            }
        }
    }

    fn handle_data(&mut self, data: &Data, is_first_data: &mut bool) {
        let cmt = self.config.cmt();
        // RFC 4960, section 5.1: the first chunk is acknowledged at once. CMT does not.
        let is_at_once = cmt.is_none() && data.tsn == 1;
        match self.config.sack_delay {
            Some(delay) if !is_at_once => {
                if std::mem::take(is_first_data) {
                    self.receiver.packets += 1;
                    match self.receiver.packets {
                        1 => self.timers.set(Timer::Sack, &self.clock, delay.as_secs_f64()),
                        SACK_TRIGGER => {
                            // CMT's SACK still carries the number.
                            self.receiver.packets = if cmt.is_some() { SACK_TRIGGER } else { 0 };
                            self.timers.cancel(Timer::Sack);
                            self.wants_sack = true;
                        }
                        _ => {}
                    }
                }
            }
            _ => self.wants_sack = true,
        }
        let Self { receiver, received, deliveries, clock, .. } = self;
        let fate = receiver.take(data, |data| {
            received.delivered_bytes += u64::from(data.payload());
            deliveries.push_back(Delivery { stream: data.stream, tsn: data.tsn, bytes: data.payload() });
        });
        match fate {
            Fate::New => {
                received.unique_chunks += 1;
                received.reordered_chunks += u64::from(data.tsn < received.tsn_max);
                received.tsn_max = received.tsn_max.max(data.tsn);
                received.unique_bytes += u64::from(data.payload());
                let delay = clock.now.since(data.first_sent_at);
                received.delay_sum = received.delay_sum.saturating_add(delay);
                received.held_chunks_max = received.held_chunks_max.max(receiver.held);
            }
            Fate::Duplicate => self.wants_sack = true,
            Fate::Refused => self.wants_sack = false,
        }
        // RFC 4960, section 6.7: while there is a gap, SACKs are not delayed.
        if self.receiver.has_gaps() && !cmt.is_some_and(|cmt| cmt.delayed_ack) {
            self.receiver.packets = 0;
            self.timers.cancel(Timer::Sack);
            self.wants_sack = true;
        }
    }

    fn send_sack(&mut self, packets: u32) {
        let packets = if self.config.cmt().is_some() {
            self.receiver.packets = 0;
            packets as u8
        } else {
            0
        };
        let sack = self.receiver.sack(self.config.room(), packets);
        self.emit(self.reply, vec![Chunk::Sack(sack)]);
    }
}

/// RFC 4960, section 6.2: a SACK for every second packet.
const SACK_TRIGGER: u32 = 2;

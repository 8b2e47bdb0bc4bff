//! A connection: the façade over its parts.
//!
//! ```text
//!             Listen ──SYN──┐                                       ┌──> CloseWait ──close──> LastAck ──────┐
//! SynSent ──SYN──> SynReceived ──ACK──> Established ──FIN───────────┘                                       v
//!    └──SYN|ACK──────────────────────────────^  └──close──> FinWait1 ──ACK──> FinWait2 ──FIN──> TimeWait > Closed
//!                                                               └──FIN──> Closing ──ACK──────────^
//! ```
//!
//! `handshake` negotiates. `liveness` has the timeouts and keep-alive probes, `peer_window` the peer's window and zero-window
//! probes, `timestamps` the option. `sender` holds data to send and in flight, `receiver` the received data and the receive
//! window. `chooser` selects a path for new data, `limits` accounts for what limits the sender. `input` processes segments
//! according to [rfc-9293] sec. 3.10.7, `output` decides what is sent next, `streams` is the application's view of streams.
//! `paths` sets up, monitors and abandons paths.

mod ack_requests;
mod chooser;
mod datagrams;
mod genuine;
mod handshake;
mod input;
mod limits;
mod liveness;
mod mtu;
mod output;
mod paths;
mod peer_window;
mod rate_limit;
mod receive_buffer;
mod receiver;
mod send_memory;
mod sender;
mod streams;
mod timestamps;
mod tokens;
mod trace;
mod way_back;

use anabranch_cc::Gauges;
use anabranch_units::{Rate, Span, Time};

use self::ack_requests::AckRequest;
use self::chooser::Chooser;
pub use self::datagrams::Datagrams;
use self::handshake::Handshake;
use self::limits::Rests;
pub use self::limits::{Limit, Limits};
use self::liveness::{Activity, Liveness};
use self::mtu::Mtu;
pub use self::paths::Paths;
use self::paths::{Path, Table};
use self::rate_limit::RateLimit;
use self::receiver::Receiver;
use self::sender::{Sender, Sent};
pub use self::streams::Streams;
use self::timestamps::Clock;
use crate::config::{Config, ConfigError, Form};
use crate::ecn::EcnCodepoint;
use crate::event::{CloseReason, Event, Events};
use crate::path::{FourTuple, PathId, PathState, PathStatus};
use crate::payload::Payload;
use crate::random::{Random, Role, Secret};
use crate::receive::acks::Acks;
use crate::recovery::control::{PathControl, Tally};
use crate::segment::{Segment, Sid};
use crate::seq::SeqNumber;
use crate::stream::flow_control::FlowControl;
use crate::stream::inbound::Freed;
use crate::stream::outbound::Framing;

/// One end of a connection, without a clock, a socket or a thread.
///
/// The driver passes inputs: [`Connection::handle_segment`], [`Connection::handle_timeout`], and commands through
/// [`Connection::streams`] and [`Connection::paths`]. After each input it sends everything from [`Connection::poll_transmit`],
/// takes every [`Connection::poll_event`], then reads [`Connection::poll_timeout`].
#[derive(Debug)]
pub struct Connection<P> {
    config: Config,
    state: State,
    handshake: Handshake,
    /// The source of unpredictable numbers.
    random: Random,
    peer: Peer,
    paths: Table,
    chooser: Chooser,
    rate_limit: RateLimit,
    sender: Sender<P>,
    /// Whether the application has closed its side.
    is_closing: bool,
    receiver: Receiver<P>,
    flow_control: FlowControl,
    acks: Acks,
    /// The acknowledgement frequency that was requested from the peer.
    ack_request: AckRequest,
    /// The age of the segment being processed: the time since it arrived.
    late: Span,
    reply: Option<Reply>,
    clock: Clock,
    liveness: Liveness,
    /// When TIME-WAIT ends.
    forget_at: Time,
    events: Events,
    /// Until this time there is nothing to send: the last poll found nothing, and no input came since.
    resting_until: Option<Time>,
    /// The sender's limits, as found when nothing was left to send.
    rests: Rests,
    /// Losses have cast doubt on the MTU of a path since the host has asked.
    has_mtu_doubt: bool,
}

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// The path on which it is sent.
    pub path: PathId,
    /// Its source and destination.
    pub tuple: FourTuple,
    /// The segment to send.
    pub segment: Segment<P>,
    /// In the sealed form, the largest datagram of the path, in bytes of UDP payload.
    pub datagram_max: u32,
    /// In the sealed form, the size to which the datagram must be padded, in bytes of UDP payload.
    pub pad_to: u32,
    /// The ECN codepoint for its packet.
    pub ecn: Option<EcnCodepoint>,
}

/// The state of a connection ([rfc-9293] sec. 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no connection, or it is over.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Waits for the answer to its SYN.
    SynSent,
    /// Waits for the acknowledgement of its SYN.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Has sent a FIN; waits for its acknowledgement and for the peer's FIN.
    FinWait1,
    /// Waits for the peer's FIN.
    FinWait2,
    /// The peer has closed; the application has not.
    CloseWait,
    /// Both ends have sent a FIN; waits for the acknowledgement of its own.
    Closing,
    /// Closed after the peer; waits for the acknowledgement of its FIN.
    LastAck,
    /// Closed before the peer; waits for old segments to expire.
    TimeWait,
}

/// A snapshot of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathReport {
    /// Its source and destination.
    pub tuple: FourTuple,
    /// Whether it carries data.
    pub state: PathState,
    /// Whether it is active or a backup.
    pub status: PathStatus,
    /// Its weight relative to other paths. Used by [`crate::Scheduling::Weighted`].
    pub weight: u32,
    /// In the sealed form, the largest confirmed datagram, in bytes of UDP payload.
    pub datagram_max: u32,
    /// Whether segments on it allow ECN marks ([`Config::ecn`]).
    pub has_ecn: bool,
    /// The congestion window, in segments of the law: full segments of a path whose MTU is not yet known.
    pub window: f64,
    /// Segments in flight.
    pub flight: f64,
    /// The smoothed RTT (SRTT).
    pub rtt_smoothed: Option<Span>,
    /// The minimum RTT sample of a data segment.
    pub rtt_min: Option<Span>,
    /// The largest delivery rate of recent rounds, in bytes per second.
    pub delivery_rate: Option<f64>,
    /// The pacing rate; `None` if the window alone releases segments.
    pub pacing_rate: Option<Rate>,
    /// The current limit of the path, and the duration of each limit; see [`Limits::until`].
    pub limits: Limits,
    /// Counters since the path was set up.
    pub tally: Tally,
    /// The gauges of the congestion law.
    pub gauges: Gauges,
}

/// The peer's supported options and announcements.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// The negotiated largest sequence space of a segment.
    mss: u32,
    /// The unit of controllers in bytes: a full segment on a path whose MTU is not yet known. It is constant, so a window has the
    /// same size in bytes whatever the paths carry.
    segment: u32,
    has_sack: bool,
    /// Whether acknowledgements have nonces.
    has_nonces: bool,
    /// Whether segments with content say their extent.
    has_extents: bool,
    /// Bytes of options in each segment with content.
    options: u32,
    framing: Framing,
}

/// An answer other than an ordinary acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// A reset, with this sequence number and acknowledgement.
    Reset { seq: SeqNumber, ack: Option<SeqNumber>, why: Why },
}

/// The reason that a reset tells. It stands in the field of the window, which means nothing in a reset, and is believed in the sealed
/// form alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Unsaid = 0,
    /// The connection had to give way to another one.
    GaveWay = 1,
}

impl<P: Payload> Connection<P> {
    /// Opens a connection actively. `secret` must be unique to this connection.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn connect(now: Time, config: Config, tuple: FourTuple, secret: Secret) -> Result<Self, ConfigError> {
        let mut connection = Self::new(now, config, tuple, &secret, State::SynSent)?;
        connection.handshake.send();
        Ok(connection)
    }

    /// Waits for a connection on this four-tuple. `secret` must be unique to this connection.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn listen(now: Time, config: Config, tuple: FourTuple, secret: Secret) -> Result<Self, ConfigError> {
        Self::new(now, config, tuple, &secret, State::Listen)
    }

    fn new(now: Time, config: Config, tuple: FourTuple, secret: &Secret, state: State) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = Random::new(secret, if state == State::Listen { Role::Listens } else { Role::Opens });
        let offset = u32::from_be_bytes(random.draw());
        let mss = u32::from(config.mss);
        let controller = config.law.row().build(&config.law);
        let control = PathControl::new(now, PathId::FIRST, controller, mss.into(), config.timing());
        Ok(Self {
            state,
            handshake: Handshake::new(),
            peer: Peer {
                mss,
                segment: mss,
                has_sack: false,
                has_nonces: false,
                has_extents: false,
                options: 0,
                framing: Framing::Plain,
            },
            paths: Table::new(Path::live(tuple, control, Mtu::new(&config, &tuple), mss), config.failover),
            chooser: Chooser::new(&config),
            rate_limit: RateLimit::new(&config),
            sender: Sender::new(secret.initial(), &config),
            is_closing: false,
            receiver: Receiver::new(
                (config.receive_buffer, config.receive_buffer_max),
                config.datagram_receive_buffer,
                mss.into(),
            ),
            flow_control: FlowControl::none(),
            acks: Acks::new(config.acks),
            ack_request: AckRequest::NONE,
            late: Span::ZERO,
            reply: None,
            clock: Clock::new(secret.clock().unwrap_or(offset)),
            random,
            liveness: Liveness::new(now, &config),
            forget_at: Time::NEVER,
            events: Events::new(),
            resting_until: None,
            rests: Rests::default(),
            has_mtu_doubt: false,
            config,
        })
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// The application's view of paths.
    pub fn paths(&mut self) -> Paths<'_, P> {
        self.resting_until = None;
        Paths { connection: self }
    }

    /// The application's view of streams.
    pub fn streams(&mut self) -> Streams<'_, P> {
        self.resting_until = None;
        Streams { connection: self }
    }

    /// Closes this side: finishes all streams and sends a FIN after the waiting data. The peer may still send.
    pub fn close(&mut self) {
        self.resting_until = None;
        match self.state {
            State::Listen | State::SynSent => self.end(CloseReason::Finished),
            // [rfc-9293] sec. 3.10.4: in SYN-RECEIVED, too, the FIN waits for the data before it.
            State::SynReceived | State::Established | State::CloseWait => {
                self.is_closing = true;
                self.sender.outbound.finish_all();
            }
            State::Closed | State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait => {}
        }
    }

    /// Ends the connection at once with a reset; waiting data is lost.
    pub fn abort(&mut self) {
        self.resting_until = None;
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::TimeWait => {}
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                let ack = Some(self.receiver.expected_number());
                self.reply = Some(Reply::Reset { seq: self.sender.next_number(), ack, why: Why::Unsaid });
            }
        }
        if self.state != State::Closed {
            self.end(CloseReason::Aborted);
        }
    }

    /// As [`Connection::abort`], and tells the peer that the place is needed for another connection.
    pub(crate) fn give_way(&mut self) {
        self.abort();
        if let Some(Reply::Reset { why, .. }) = &mut self.reply {
            *why = Why::GaveWay;
        }
    }

    /// Ends the connection for another reason. The reset reports it to the peer, the event to the application.
    fn abort_because(&mut self, reason: CloseReason) {
        self.abort();
        if let Some(Event::Closed(last)) = self.events.back_mut() {
            *last = reason;
        }
    }

    /// Handles the timeout that [`Connection::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: Time) {
        self.resting_until = None;
        if self.state == State::Closed {
            return;
        }
        if self.forget_at <= now {
            self.end(CloseReason::Finished);
            return;
        }
        let activity = self.activity();
        if self.liveness.is_over(now, activity) {
            let is_stalled = self.config.form == Form::Sealed && self.liveness.is_stalled(now, activity);
            return self.abort_because(if is_stalled { CloseReason::Stalled } else { CloseReason::TimedOut });
        }
        self.handshake.handle_timeout(now);
        self.acks.handle_timeout(now);
        self.liveness.handle_timeout(now, activity);
        self.sender.peer_window.handle_timeout(now);
        self.handle_path_timeouts(now);
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Connection::handle_timeout`]; [`Time::NEVER`] if there is no deadline.
    pub fn poll_timeout(&self) -> Time {
        self.resting_until.unwrap_or_else(|| self.deadline())
    }

    // Inlined with what else is asked of the paths, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline(always)]
    fn deadline(&self) -> Time {
        if self.state == State::Closed {
            return Time::NEVER;
        }
        let has_paths = self.state.has_paths();
        let paths = self.paths.deadline(has_paths);
        let acks = self.handshake.deadline().min(self.acks.deadline());
        let near = paths.min(acks).min(self.sender.peer_window.deadline()).min(self.forget_at);
        // Nearly always, another deadline comes long before those of liveness.
        let least = self.liveness.deadline_least();
        debug_assert!(
            least <= self.liveness.deadline(self.activity()),
            "{least} is not the least: {:?}",
            self.liveness
        );
        if near <= least { near } else { near.min(self.liveness.deadline(self.activity())) }
    }

    /// The connection's activity. It decides what the peer's silence means.
    fn activity(&self) -> Activity {
        let (has_flight, waits_for_window) = (!self.sender.board.is_empty(), self.sender.peer_window.is_waited_for());
        Activity { state: self.state, has_flight, waits_for_window }
    }

    /// Asks the peer for a sign of life by a short segment.
    pub fn ask(&mut self) {
        if self.state.has_paths() {
            self.liveness.probe();
            self.resting_until = None;
        }
    }

    /// When the last segment arrived from the peer.
    pub fn heard_at(&self) -> Time {
        self.liveness.heard_at()
    }

    /// When data last arrived or was acknowledged. Keep-alive probes do not count.
    pub(crate) fn worked_at(&self) -> Time {
        self.liveness.worked_at()
    }

    /// A snapshot of a path; `None` if there is no such path.
    pub fn path(&self, id: PathId) -> Option<PathReport> {
        let path = self.paths.get(id)?;
        let control = &path.control;
        let mut gauges = Gauges::default();
        control.gauges(&mut gauges);
        Some(PathReport {
            tuple: path.tuple,
            state: path.state(),
            status: path.status,
            weight: path.weight,
            datagram_max: path.datagram_max(),
            has_ecn: control.ecn.is_on(),
            window: control.window(),
            flight: self.sender.board.flight(id) as f64 / f64::from(self.peer.segment),
            rtt_smoothed: control.rtt_smoothed(),
            rtt_min: control.rtt_min(),
            delivery_rate: control.delivery_rate(),
            pacing_rate: control.pacing_rate(),
            limits: self.path_limits(path),
            tally: control.tally,
            gauges,
        })
    }

    /// The state of a path; `None` if there is no such path.
    pub fn path_state(&self, id: PathId) -> Option<PathState> {
        self.paths.get(id).map(Path::state)
    }

    /// The sum of all RTT samples on the current paths.
    pub fn rtt_sum(&self) -> Span {
        self.paths.iter().fold(Span::ZERO, |sum, (_, path)| sum.saturating_add(path.control.tally.rtt_sum))
    }

    /// A snapshot of each path.
    pub fn path_reports(&self) -> impl Iterator<Item = (PathId, PathReport)> + '_ {
        self.paths.iter().filter_map(|(id, _)| Some((id, self.path(id)?)))
    }

    /// Bytes of sequence space that have been sent, the SYN included.
    pub fn sent(&self) -> u64 {
        self.sender.board.next()
    }

    /// Bytes of sequence space that the peer has acknowledged cumulatively, the SYN included.
    pub fn acked(&self) -> u64 {
        self.sender.board.acked()
    }

    /// Bytes of sequence space that have arrived below any hole, the SYN included.
    pub fn received(&self) -> u64 {
        self.receiver.expected()
    }

    /// Whether a byte of the peer's sequence space, given by its offset, has arrived.
    pub fn has_arrived(&self, offset: u64) -> bool {
        self.receiver.has_arrived(offset)
    }

    /// Whether this segment, which is sent now, has the last of the data that was written. The host pushes it ([rfc-9293] sec. 3.9.1.2).
    pub fn is_last_data(&self, segment: &Segment<P>) -> bool {
        let end = segment.header.seq.plus(segment.space());
        !segment.content.is_empty() && self.sender.outbound.is_drained() && end == self.sender.next_number()
    }

    /// Bytes of the receive buffer that are in use: data that has arrived and was neither read nor dropped.
    pub fn buffered(&self) -> u64 {
        self.receiver.buffered()
    }

    /// Segments with content that arrived for the first time.
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived().0
    }

    /// Segments of [`Self::arrived`] that arrived after a later one ([rfc-4737] sec. 3.3), such as a retransmitted one.
    pub fn reordered(&self) -> u64 {
        self.receiver.arrived().1
    }

    /// Returns flow-control credit for data of a stream that no longer needs a buffer.
    fn free(&mut self, sid: Sid, freed: Freed) {
        self.receiver.free(freed);
        let mut record = self.flow_control.consume(sid, freed.payload);
        // After a FIN the peer sends no stream, so it needs no credit.
        if freed.is_over && self.receiver.fin().is_none() {
            record = self.flow_control.end(sid).or(record);
        }
        if let Some(record) = record {
            self.sender.outbound.records.push(record);
        }
    }

    /// For tests: the streams hold exactly the received and unread data, within the buffer and within their credit. Each counter
    /// of sent data equals what it counts.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.sender.board.check();
        self.paths.iter().for_each(|(_, path)| path.control.check(&self.sender.board));
        if self.peer.framing == Framing::Plain {
            return;
        }
        let unread = self.receiver.inbound.unread();
        let space = unread.payload + u64::from(unread.records);
        assert_eq!(self.buffered(), space, "of {unread:?}");
        let capacity = self.receiver.window.capacity();
        assert!(
            space <= capacity && capacity <= self.config.receive_buffer_ceiling(),
            "{unread:?} in {capacity} bytes"
        );
        let Some((promised, arrived)) = self.flow_control.totals() else { return };
        assert_eq!(arrived, unread.payload);
        if self.config.stream_buffer == crate::StreamBuffer::Shared && self.config.receive_buffer > 4096 {
            assert!(promised < capacity, "{promised} bytes are promised");
        }
    }

    /// For tests: no stream has sent more than the peer has counted and granted credit for.
    #[cfg(test)]
    pub(crate) fn check_with(&self, peer: &Self) {
        if self.peer.framing == Framing::Plain || peer.peer.framing == Framing::Plain {
            return;
        }
        for (sid, used, credit) in self.sender.outbound.credits() {
            let limit = peer.flow_control.limit(sid);
            assert!(used <= credit && credit <= limit, "stream {sid}: {used} of {credit}, allowed {limit}");
        }
    }

    /// A reset that is believed.
    fn on_reset(&mut self, segment: &Segment<P>) {
        self.end(match self.state {
            State::SynReceived => CloseReason::Refused,
            // Both ends have received all data.
            State::TimeWait => CloseReason::Finished,
            _ if segment.header.window == Why::GaveWay as u16 && self.config.form == Form::Sealed => {
                CloseReason::GaveWay
            }
            _ => CloseReason::Reset,
        });
    }

    /// The connection is over.
    fn end(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.events.push_back(Event::Closed(reason));
    }
}

#[cfg(test)]
mod tests;

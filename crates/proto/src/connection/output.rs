//! What leaves next.
//!
//! In this order: a reset, the handshake, an acknowledgement that says what data cannot, lost segments (the lowest first), a tail
//! loss probe, new data, a FIN, an acknowledgement.

use anabranch_cc::Transmission;
use anabranch_units::{Span, Time};

use super::{Connection, Persist, Reply, Sent, State, Transmit};
use crate::options::{AcknowledgementOptions, Options, SackBlocks};
use crate::path::PathId;
use crate::payload::Payload;
use crate::segment::{Content, Flags, Header, Segment, StreamHeader};
use crate::seq::{Offset, SeqNumber};
use crate::stream::outbound::Framing;

impl<P: Payload> Connection<P> {
    /// The next segment to send, now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<P>> {
        if let Some(Reply::Reset { seq, ack }) = self.reply.take() {
            return Some(self.transmit(reset(seq, ack)));
        }
        self.clock.on_time(now);
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived => self.poll_handshake(now),
            State::TimeWait => self.poll_ack(),
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                if self.acks.is_pure() {
                    return self.poll_ack();
                }
                let data = self.poll_data(now).or_else(|| self.poll_window_probe(now));
                data.or_else(|| self.poll_question(now)).or_else(|| self.poll_ack())
            }
        }
    }

    fn poll_handshake(&mut self, now: Time) -> Option<Transmit<P>> {
        if !self.handshake.is_due() {
            return None;
        }
        self.handshake.on_sent(now);
        let is_answer = self.state == State::SynReceived;
        let options = self.handshake_options(is_answer);
        let multistream = if options.multistream.is_some() { Flags::MSE } else { Flags::default() };
        let (flags, ack) = if is_answer {
            (Flags::SYN | Flags::ACK | multistream, self.initial_peer.plus(self.arrivals.expected()))
        } else {
            (Flags::SYN | multistream, SeqNumber(0))
        };
        // The shift is not set before the handshake is over, so this is the unscaled window that a SYN has.
        let window = self.window.advertise(self.arrivals.expected());
        self.clock.on_ack_sent(self.arrivals.expected());
        let header = Header { seq: self.initial, ack, flags, window };
        let segment =
            Segment { header, options: Options::Handshake(options), stream_header: None, content: Content::Nothing };
        Some(self.transmit(segment))
    }

    /// A pure acknowledgement, if one is due.
    fn poll_ack(&mut self) -> Option<Transmit<P>> {
        if !self.acks.is_due() {
            return None;
        }
        let sack = if self.peer.has_sack { self.arrivals.report(self.initial_peer) } else { SackBlocks::default() };
        let options = self.stamp(AcknowledgementOptions::new(sack, self.acks.answer));
        let segment = self.segment(self.board.next(), Flags::default(), None, Content::Nothing);
        Some(self.transmit(Segment { options, ..segment }))
    }

    fn poll_data(&mut self, now: Time) -> Option<Transmit<P>> {
        if self.board.is_empty() && self.outbound.is_empty() && !self.owes_fin() {
            return None;
        }
        let path = PathId::FIRST;
        let release = self.paths[path.index()].control.release(now);
        if release > now {
            self.paths[path.index()].paced_until = release;
            return None;
        }
        if let Some(index) = self.board.lowest_lost() {
            let (_, len, _) = self.board.segment(index);
            let is_admitted = self.paths[path.index()].control.admit_again(&self.board, len.into());
            return is_admitted.then(|| self.resend(now, path, index));
        }
        if self.paths[path.index()].control.is_probe_due() {
            // [rfc-8985] sec. 7.3: new data if there is some, whatever the window says, else the last segment again.
            return self.send_new(now, path, Admission::Probe).or_else(|| {
                let last = self.board.last()?;
                Some(self.resend(now, path, last))
            });
        }
        self.send_new(now, path, Admission::Window)
    }

    /// Sends a segment again.
    fn resend(&mut self, now: Time, path: PathId, index: u64) -> Transmit<P> {
        let control = &mut self.paths[path.index()].control;
        let added = self.board.resend(index, path, control.departure(now));
        let (offset, len, sent) = self.board.segment(index);
        let sent = sent.clone();
        control.on_sent(now, &self.board, len.into(), added, Transmission::Again);
        self.segment_of(offset, sent)
    }

    /// Sends something that has not been sent.
    fn send_new(&mut self, now: Time, path: PathId, admission: Admission) -> Option<Transmit<P>> {
        if self.board.len() >= SEGMENTS_MAX {
            return None;
        }
        let space = match self.outbound.peek(self.peer.mss) {
            Some(space) => space,
            None if self.owes_fin() => 1,
            None => return None,
        };
        if admission == Admission::Window && self.waits_for_more(space) {
            return None;
        }
        let space = self.fit(now, path, space)?;
        let control = &mut self.paths[path.index()].control;
        control.on_demand(now, &self.board);
        if admission == Admission::Window && !control.admit(&self.board, space.into()) {
            return None;
        }
        if self.board.is_empty() {
            // The peer's silence counts from here on.
            self.heard = now;
        }
        let sent = match self.outbound.cut(space, self.peer.mss, &mut self.events) {
            Some((stream_header, content)) => Sent { stream_header, content, is_fin: false },
            None => {
                self.on_fin_sent();
                Sent { stream_header: None, content: Content::Nothing, is_fin: true }
            }
        };
        let offset = self.board.next();
        let control = &mut self.paths[path.index()].control;
        self.board.send(sent.clone(), space, path, control.departure(now));
        control.on_sent(now, &self.board, space.into(), space.into(), Transmission::First);
        Some(self.segment_of(offset, sent))
    }

    /// [rfc-9293] sec. 3.7.4: whether a segment is short, might still become longer, and something is unacknowledged.
    fn waits_for_more(&self, space: u32) -> bool {
        self.config.nagle && !self.board.is_empty() && space < self.peer.mss && self.outbound.may_grow()
    }

    /// How much of `space` the peer's window takes; `None` if the sender waits for more.
    ///
    /// [rfc-9293] sec. 3.8.6.2.1: a window that is less than half of what it was is not filled by shorter segments, unless
    /// there has been nothing better for a while.
    fn fit(&mut self, now: Time, path: PathId, space: u32) -> Option<u32> {
        let usable = self.peer.edge.saturating_sub(self.board.next());
        if u64::from(space) <= usable {
            self.persist = Persist::Open;
            return Some(space);
        }
        // Less than the window's width, which is below a segment: it fits.
        let usable = usable as u32;
        let header = if self.peer.framing == Framing::Streams { StreamHeader::LEN } else { 0 };
        let is_worth = u64::from(usable) * 2 >= self.peer.window_max || matches!(self.persist, Persist::Due { .. });
        if usable > header && self.outbound.can_shorten() && is_worth {
            self.persist = Persist::Open;
            return Some(usable);
        }
        if self.board.is_empty() && self.persist == Persist::Open {
            // [rfc-9293] sec. 3.8.6.1: the first probe after a retransmission timeout.
            self.heard = now;
            self.persist =
                Persist::Waiting { at: now.saturating_add(self.paths[path.index()].control.rto()), probes: 0 };
        }
        None
    }

    /// A probe of a window that is shut: an old sequence number, which the peer answers with an acknowledgement.
    fn poll_window_probe(&mut self, now: Time) -> Option<Transmit<P>> {
        let Persist::Due { probes } = self.persist else { return None };
        let rto = self.paths[PathId::FIRST.index()].control.rto();
        let wait = rto.saturating_mul(2 << probes.min(PROBES_DOUBLED)).min(PERSIST_MAX.max(rto));
        self.persist = Persist::Waiting { at: now.saturating_add(wait), probes: probes + 1 };
        let segment = self.segment(self.board.acked() - 1, Flags::default(), None, Content::Nothing);
        Some(self.transmit(segment))
    }

    /// Whether a FIN is the next thing to send.
    fn owes_fin(&self) -> bool {
        let can_send = matches!(self.state, State::Established | State::CloseWait);
        self.is_closing && can_send && self.outbound.is_drained()
    }

    fn on_fin_sent(&mut self) {
        self.outbound.records.close();
        self.grants.close();
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            state => unreachable!("no FIN is sent in {state:?}"),
        };
    }

    fn segment_of(&mut self, offset: Offset, sent: Sent<P>) -> Transmit<P> {
        let flags = if sent.is_fin { Flags::FIN } else { Flags::default() };
        let segment = self.segment(offset, flags, sent.stream_header, sent.content);
        self.transmit(segment)
    }

    /// A segment that acknowledges what has arrived.
    pub(super) fn segment(
        &mut self,
        offset: Offset,
        flags: Flags,
        stream_header: Option<StreamHeader>,
        content: Content<P>,
    ) -> Segment<P> {
        let multistream = if self.peer.framing == Framing::Streams { Flags::MSE } else { Flags::default() };
        let expected = self.arrivals.expected();
        let header = Header {
            seq: self.initial.plus(offset),
            ack: self.initial_peer.plus(expected),
            flags: flags | Flags::ACK | multistream,
            window: self.window.advertise(expected),
        };
        self.acks.on_sent();
        self.clock.on_ack_sent(expected);
        Segment { header, options: self.stamp(AcknowledgementOptions::default()), stream_header, content }
    }

    /// With our clock, if it is to be told.
    fn stamp(&self, options: AcknowledgementOptions) -> Options {
        let is_on = self.clock.is_on();
        Options::Acknowledgement(if is_on { options.with_timestamps(self.clock.timestamps()) } else { options })
    }

    pub(super) fn transmit(&self, segment: Segment<P>) -> Transmit<P> {
        let path = PathId::FIRST;
        Transmit { path, tuple: self.paths[path.index()].tuple, segment }
    }
}

/// What lets a new segment leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// The congestion window.
    Window,
    /// A tail loss probe is due.
    Probe,
}

fn reset<P>(seq: SeqNumber, ack: Option<SeqNumber>) -> Segment<P> {
    let flags = if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
    let header = Header { seq, ack: ack.unwrap_or_default(), flags, window: 0 };
    Segment { header, options: Options::default(), stream_header: None, content: Content::Nothing }
}

/// Segments that are not acknowledged cumulatively, at most: half of what a stream's 24 bits can tell apart. With segments of
/// 1460 bytes that is a window of 12 GB, more than TCP has.
const SEGMENTS_MAX: usize = 1 << 23;

/// Probes of a shut window come once a minute at least ([rfc-9293] sec. 3.8.6.1 leaves it open).
const PERSIST_MAX: Span = Span::from_secs(60);

/// Beyond that many doublings any timeout is longer than [`PERSIST_MAX`].
const PROBES_DOUBLED: u32 = 20;

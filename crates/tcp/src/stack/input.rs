//! What arrives: packets, segments, and what routers say of those that were sent.

use anabranch_proto::wire::{self, Checksum};
use anabranch_proto::{Address, CloseReason, EcnCodepoint, Flags, FourTuple, Options, Segment, State};
use anabranch_units::Time;
use bytes::Bytes;

use super::urgent::{self, Mark};
use super::{Answer, Socket, Stack, has_data, is_host};
use crate::packet::{Body, Notice, NoticeKind, Packet, Sum, Unfit};
use crate::parts::{Part, Parts};

impl Stack {
    /// Handles an IP packet.
    pub(crate) fn handle_with(&mut self, now: Time, bytes: &Bytes, sum: Sum) {
        self.tally.packets += 1;
        match Packet::read(bytes) {
            Ok(Packet { tuple, ecn, body }) => {
                let is_own = |end: Address| self.addresses.contains(&end.address);
                if !is_own(tuple.local) || is_own(tuple.remote) || !is_host(tuple.remote) {
                    self.tally.not_ours += 1;
                    return;
                }
                match body {
                    Body::Segment(segment) => self.handle_bytes(now, tuple, ecn, segment, sum),
                    Body::Notice(notice) => self.handle_notice(now, tuple, notice),
                    Body::Ping(message) => self.answer(Answer::Pong(tuple, message)),
                }
            }
            Err(Unfit::Fragment | Unfit::Malformed | Unfit::OtherProtocol | Unfit::Icmp) => {
                self.tally.unfit += 1;
            }
        }
    }

    /// Handles an encoded segment, which may be a part of one that was sent.
    pub(super) fn handle_bytes(
        &mut self,
        now: Time,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        bytes: Bytes,
        sum: Sum,
    ) {
        let checksum = match sum {
            Sum::Computed => Checksum::of_path(tuple.reversed()),
            Sum::Vouched => Checksum::None,
        };
        let socket = self.by_tuple.get(&tuple).and_then(|id| self.sockets.get_mut(id));
        let parts = socket.and_then(|socket| socket.parts(&bytes));
        let bytes = match parts {
            Some((expected, parts)) => match parts.take(bytes, checksum, expected) {
                Part::Whole(bytes) => bytes,
                Part::Kept => {
                    self.tally.parts += 1;
                    return;
                }
                Part::Mangled { is_hopeless } => {
                    self.tally.mangled += 1;
                    if is_hopeless {
                        self.give_up_mangled(tuple);
                    }
                    return;
                }
            },
            None => bytes,
        };
        let pointer = urgent::pointer(&bytes);
        match wire::decode(bytes, checksum) {
            Ok((_, segment)) if tuple.remote.port > 0 => {
                let (seq, space) = (segment.header.seq, segment.space());
                let socket = self.by_tuple.get(&tuple).and_then(|id| self.sockets.get(id));
                let expected = socket.map_or(0, |socket| socket.connection.received());
                self.handle_segment(now, tuple, ecn, segment);
                if let Some(pointer) = pointer {
                    self.on_mark(tuple, Mark { seq, space, pointer }, expected);
                }
            }
            Ok(_) | Err(_) => self.tally.unfit += 1,
        }
    }

    /// A middlebox takes from segments what streams need.
    pub(super) fn give_up_mangled(&mut self, tuple: FourTuple) {
        let Some(&id) = self.by_tuple.get(&tuple) else { return };
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.fate = Some(CloseReason::Mangled);
            socket.connection.abort();
            self.touch(id);
        }
    }

    pub(super) fn handle_segment(
        &mut self,
        now: Time,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        segment: Segment<Bytes>,
    ) {
        if let Some(&id) = self.by_tuple.get(&tuple)
            && let Some(socket) = self.sockets.get_mut(&id)
        {
            let is_of_other_path = segment.has(Flags::RST) && tuple != socket.tuple;
            if is_of_other_path && socket.is_reset_of_path(now, &tuple, segment.header.seq) {
                return self.touch(id);
            }
            let before = socket.connection.state();
            let has_timestamps = self.settings.connection.timestamps;
            let is_new =
                self.listeners.contains_key(&tuple.local.port) && socket.is_succeeded_by(&segment, has_timestamps);
            if before != State::Closed && !is_new {
                let (is_syn, seq) = (segment.has(Flags::SYN), segment.header.seq);
                socket.connection.handle_marked(now, tuple, ecn, segment);
                // [rfc-2525] sec. 2.17. What nobody will read is not acknowledged before.
                if socket.is_released && socket.streams.is_none() && has_data(&mut socket.connection) {
                    socket.connection.abort();
                }
                let is_taken = before == State::SynSent && socket.connection.state() != State::SynSent;
                if is_syn && is_taken {
                    socket.peer_initial = Some(seq);
                    socket.parts = socket.connection.extents().map(|(_, theirs)| Box::new(Parts::new(theirs)));
                }
                return self.touch(id);
            }
            self.forget(id);
        }
        if matches!(segment.options, Options::Path(_)) {
            return self.begin_path(now, tuple, ecn, &segment);
        }
        if self.listeners.contains_key(&tuple.local.port) && !segment.has(Flags::RST) {
            match (segment.has(Flags::SYN), segment.has(Flags::ACK)) {
                (true, false) => return self.begin(now, tuple, segment),
                (false, true) if self.redeem(now, tuple, &segment) => return,
                _ => {}
            }
        }
        if let Some((seq, ack)) = segment.refusal() {
            self.tally.resets += 1;
            self.answer(Answer::Segment(tuple, Segment::reset(seq, ack)));
        }
    }

    /// [rfc-5927] sec. 4.1: only a message about a segment in flight counts, and a connection that is open survives it ([rfc-1122] sec. 4.2.3.9 asks
    /// otherwise, and [rfc-5461] sec. 4.1 has the reason). It is told to the application ([`Stack::soft_error`]).
    pub(super) fn handle_notice(&mut self, now: Time, tuple: FourTuple, Notice { kind, seq }: Notice) {
        let Some(&id) = self.by_tuple.get(&tuple) else { return };
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let Socket { connection, initial, .. } = socket;
        let is_opening = matches!(connection.state(), State::SynSent | State::SynReceived);
        let flight = if is_opening { 0..1 } else { connection.acked()..connection.sent() };
        if !seq.offset_from(*initial, flight.end).is_some_and(|offset| flight.contains(&offset)) {
            return;
        }
        self.tally.notices += 1;
        match kind {
            NoticeKind::PortUnreachable if connection.state() == State::SynSent => {
                socket.fate = Some(CloseReason::PortClosed);
                connection.abort();
                self.touch(id);
            }
            NoticeKind::TooBig(mtu) => {
                self.tally.too_big += 1;
                self.on_too_big(now, tuple, mtu);
                self.touch(id);
            }
            NoticeKind::PortUnreachable | NoticeKind::Unreachable | NoticeKind::TimeExceeded => {
                socket.soft_error = Some((kind, connection.acked()));
            }
        }
    }
}

//! Path segments: challenge, response and leave.

use anabranch_units::{Span, Time};

use super::super::tokens::Token;
use super::super::{Connection, Transmit};
use super::{CHALLENGES_MAX, Farewell, Origin, Path, Phase};
use crate::config::Form;
use crate::event::Event;
use crate::options::{Options, PathOption};
use crate::path::{FourTuple, PathId, PathState};
use crate::payload::Payload;
use crate::seal::Seal;
use crate::segment::{Content, Flags, Header, Segment};
use crate::stream::outbound::Framing;

impl<P: Payload> Connection<P> {
    /// A path segment arrived.
    pub(in crate::connection) fn on_path_option(&mut self, now: Time, option: PathOption, segment: &Segment<P>) {
        if !self.has_challenges() || !self.is_plausible(segment) {
            return;
        }
        let id = self.acks.via();
        match option {
            PathOption::Leave(_) if !self.paths.are_negotiated => {}
            PathOption::Challenge(token) => {
                let path = &mut self.paths[id];
                (path.asked, path.response) = (Some(token), Some(token));
                self.paths.pending_options.insert(id);
            }
            PathOption::Response(token) => self.on_response(now, id, token),
            PathOption::Leave(token) => {
                if !self.is_farewell(id, token) {
                    return;
                }
                if self.paths.live().iter().any(|other| other != id) {
                    self.drop_path(now, id);
                } else if self.paths[id].is_live() {
                    // Both ends have abandoned paths at the same time, and this is the last one: it is challenged until the peer
                    // accepts it.
                    self.suspect(now, id);
                }
            }
        }
    }

    /// Whether both ends answer challenges: several paths were negotiated, or the sealed form is in use.
    fn has_challenges(&self) -> bool {
        self.paths.are_negotiated || self.config.form == Form::Sealed && self.peer.framing == Framing::Streams
    }

    /// The next path segment to send.
    pub(in crate::connection) fn poll_path_option(&mut self, now: Time) -> Option<Transmit<P>> {
        if let Some(Farewell { path, tuple, token }) = self.paths.farewells.pop_front() {
            return Some(self.path_segment(PathOption::Leave(token), (path, tuple), 0));
        }
        self.paths.pending_options.remove(PathId::NOWHERE);
        if !self.has_challenges() {
            return None;
        }
        for id in self.paths.pending_options.iter() {
            let path = &mut self.paths[id];
            let mut ecn = None;
            let (option, len) = if let Some(token) = path.response.take() {
                (PathOption::Response(token), Seal::DATAGRAM_FIRST)
            } else if let Some(len) = path.challenge(now) {
                let token = self.random.draw();
                path.tokens.on_sent(now, token, len);
                (PathOption::Challenge(token), len)
            } else if path.is_live() && path.control.ecn.is_probe_due(now) {
                let (token, rto) = (self.random.draw(), path.control.rto());
                path.tokens.on_sent(now, token, Seal::DATAGRAM_FIRST);
                ecn = Some(path.control.ecn.on_probe_sent(now, token, rto));
                (PathOption::Challenge(token), Seal::DATAGRAM_FIRST)
            } else {
                if path.is_live() {
                    self.paths.pending_options.remove(id);
                }
                continue;
            };
            let tuple = path.tuple;
            return Some(Transmit { ecn, ..self.path_segment(option, (id, tuple), len) });
        }
        None
    }

    /// The segment has no content and acknowledges only what arrived in order, so an ACK that is due remains due.
    fn path_segment(&mut self, option: PathOption, (path, tuple): (PathId, FourTuple), len: u32) -> Transmit<P> {
        let (acked, nonces) = self.receiver.arrivals.acknowledge(self.peer.has_sack);
        let header = Header {
            seq: self.sender.next_number(),
            ack: self.receiver.number(acked),
            flags: Flags::ACK | Flags::MSE,
            window: self.receiver.advertise(acked),
            nonce: 0,
            nonce_sum: if self.peer.has_nonces { nonces } else { 0 },
        };
        let segment =
            Segment { header, options: Options::Path(option), stream_header: None, content: Content::Nothing };
        Transmit { path, tuple, segment, datagram_max: len.max(Seal::DATAGRAM_FIRST), pad_to: len, ecn: None }
    }

    fn on_response(&mut self, now: Time, id: PathId, answered: Token) {
        let path = &mut self.paths[id];
        let Some((sent_at, len)) = path.tokens.on_answer(answered) else { return };
        path.control.ecn.on_answer(answered);
        let Phase::Challenged { is_suspect, .. } = path.phase else {
            path.mtu.on_answer(now, len);
            return self.on_mtu(now, id);
        };
        // Each challenge has its own token, so Karn's rule does not apply.
        let sample = Some((now - self.late).since(sent_at));
        if is_suspect {
            return self.revive(now, id, sample);
        }
        let Path { origin, tuple, .. } = self.paths[id];
        let is_stale = |path: &Path| match origin {
            Origin::Rebinding(since) => path.is_live() && path.tuple.local == tuple.local && path.arrived < since,
            Origin::Handshake | Origin::Own | Origin::Peer | Origin::Moved(_) => false,
        };
        if self.paths[id].is_uninvited() && self.paths.count() >= usize::from(self.config.paths_max) {
            // The limit of paths is reached. A path that does not answer is replaced; otherwise the new one is refused.
            let is_useless = |path: &Path| path.state() == PathState::Suspect || is_stale(path);
            let useless = self.paths.iter().filter(|(_, path)| is_useless(path));
            let Some(useless) = useless.min_by_key(|(_, path)| path.arrived).map(|(id, _)| id) else {
                let farewell = self.farewell(id);
                self.paths.say_farewell(farewell);
                return self.drop_path(now, id);
            };
            self.drop_path(now, useless);
        }
        let path = &mut self.paths[id];
        path.phase = Phase::Live;
        path.control.establish(now, self.peer.segment.into(), sample);
        self.paths.settle(&self.sender.board);
        self.chooser.on_path(id);
        self.events.push_back(Event::PathValidated(id));
        for before in (0..self.paths.slots.len()).map(PathId::new) {
            if before != id && self.paths.get(before).is_some_and(is_stale) {
                self.suspect(now, before);
            }
        }
        if let Origin::Moved(from) = origin {
            self.leave_behind(now, from);
        }
    }
}

impl Path {
    /// Whether a challenge is due, for validation or as an MTU probe. Returns the size of its datagram.
    fn challenge(&mut self, now: Time) -> Option<u32> {
        let rto = self.control.rto();
        match &mut self.phase {
            Phase::Challenged { sent, at, is_suspect } if *at <= now => {
                let wait = rto.saturating_mul(1 << (*sent).min(CHALLENGES_MAX));
                let wait = if *is_suspect { wait.min(SUSPECT_WAIT_MAX.max(rto)) } else { wait };
                (*sent, *at) = (sent.saturating_add(1), now.saturating_add(wait));
                Some(Seal::DATAGRAM_FIRST)
            }
            Phase::Challenged { .. } => None,
            Phase::Live => {
                let len = self.mtu.due(now)?;
                self.mtu.on_probe_sent(now, rto);
                Some(len)
            }
        }
    }
}

/// The longest interval between challenges on a suspected path. A link that recovers is then found early enough to be useful.
const SUSPECT_WAIT_MAX: Span = Span::from_secs(4);

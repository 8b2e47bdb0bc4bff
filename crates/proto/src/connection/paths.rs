//! Paths: set-up, validation, failure detection and abandonment.
//!
//! ```text
//!        add ──challenge──> Validating ──response──> Live ──silence after a probe──> Suspect
//!                                │                     ^                                │
//!                                └──> gone             └────────────response────────────┘
//! ```
//!
//! A challenge carries no data; its token must come back on the same path. Each end validates a path for itself: an end that gets
//! a challenge on an unknown four-tuple sends one back. So a path carries data in a direction only after the far end has proved,
//! by a token, that it is reachable there.
//!
//! If a plausible segment without a challenge arrives on an unknown four-tuple, a NAT or a move has changed the peer's address.
//! That address is challenged, too. When it answers, paths of the same local address that have been silent since are probed at
//! once.
//!
//! A *leave* carries a token that a challenge of the peer brought on the same path, so an off-path attacker cannot remove a path.
//!
//! If the address of this end goes away, `moves` sets up a path from the one that the system chooses instead.
//!
//! An abandoned path is refused for a while, because a challenge may have crossed the leave on the way.
//!
//! A path is silent if no ACK that arrived on it acknowledges what was sent on it; see `PathControl::suspect_at`. A single path
//! is never suspected, since there is no alternative to its own timers. Without [`crate::Failover`] no path is suspected.

mod moves;
mod segments;
mod table;

use anabranch_units::{Span, Time};

pub(super) use self::table::Table;
use super::limits::Limits;
use super::mtu::{self, Mtu};
use super::tokens::{Token, Tokens};
use super::way_back::WayBack;
use super::{Connection, State};
use crate::config::{Config, Form};
use crate::event::Event;
use crate::options::{Options, PathOption};
use crate::path::{AddPathError, FourTuple, PATHS_MAX, PathId, PathState, PathStatus, RemovePathError, UNINVITED_MAX};
use crate::payload::Payload;
use crate::recovery::control::PathControl;
use crate::recovery::detection::Detection;
use crate::segment::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::stream::outbound::Framing;

/// The last message of this end about a path: its leave.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    path: PathId,
    tuple: FourTuple,
    /// The token that the peer accepts from us.
    token: Token,
}

/// A path of a connection.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) tuple: FourTuple,
    pub(super) control: PathControl,
    /// When the pacer releases the next segment.
    pub(super) paced_until: Time,
    /// What limited it, and for how long.
    pub(super) limits: Limits,
    pub(super) status: PathStatus,
    pub(super) weight: u32,
    /// When a segment last arrived on it.
    pub(super) arrived: Time,
    origin: Origin,
    phase: Phase,
    /// Challenges sent on it.
    tokens: Tokens,
    /// The token of the latest challenge received on it.
    asked: Option<Token>,
    /// The token to send back in a response.
    response: Option<Token>,
    /// Its datagram sizes, and the sequence space of a segment that fills one.
    mtu: Mtu,
    pub(super) mss: u32,
    /// The losses of the peer's datagrams.
    pub(super) way_back: WayBack,
}

/// Why a path exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The handshake ran on it.
    Handshake,
    /// This end set it up.
    Own,
    /// The peer set it up.
    Peer,
    /// The peer's address changed, at this time.
    Rebinding(Time),
    /// This end moved here from the path with this four-tuple.
    Moved(FourTuple),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Challenged {
        /// Challenges sent.
        sent: u32,
        /// When the next challenge is due.
        at: Time,
        /// Whether the path was live before, so that it is suspected and not new.
        is_suspect: bool,
    },
}

/// The paths of a connection. Every call is an input: the driver must poll the connection afterwards.
#[derive(Debug)]
pub struct Paths<'a, P> {
    pub(super) connection: &'a mut Connection<P>,
}

impl<P: Payload> Paths<'_, P> {
    /// Sets up a path on another four-tuple. [`Event::PathValidated`] or [`Event::PathGone`] follows.
    ///
    /// # Errors
    /// If no more paths are possible, or this path already exists.
    pub fn add(&mut self, now: Time, tuple: FourTuple) -> Result<PathId, AddPathError> {
        let Connection { paths, state, config, .. } = &mut *self.connection;
        if !paths.are_negotiated || !state.has_paths() {
            return Err(AddPathError::NotNegotiated);
        }
        if paths.find(&tuple).is_some() {
            return Err(AddPathError::InUse);
        }
        paths.left.retain(|(left, _)| left.tuple != tuple);
        paths.farewells.retain(|left| left.tuple != tuple);
        if paths.count() >= usize::from(config.paths_max) {
            return Err(AddPathError::TooMany);
        }
        let id = paths.free().ok_or(AddPathError::TooMany)?;
        self.connection.open_path(now, id, tuple, Origin::Own);
        Ok(id)
    }

    /// In the TCP form: a path carries segments of at most so many bytes of options and content. Longer ones that were sent before come again as they are;
    /// the host splits them.
    pub fn set_segment_max(&mut self, now: Time, id: PathId, bytes: u32) {
        let connection = &mut *self.connection;
        if connection.config.form == Form::Tcp
            && let Some(path) = connection.paths.get_mut(id)
        {
            path.mtu.set(bytes.max(Config::MSS_MIN.into()));
            connection.on_mtu(now, id);
        }
    }

    /// Abandons a path. Its data in flight is retransmitted on others, and [`Event::PathGone`] follows.
    ///
    /// # Errors
    /// If there is no such path, or no other path carries data.
    pub fn remove(&mut self, now: Time, id: PathId) -> Result<(), RemovePathError> {
        self.connection.paths.get(id).ok_or(RemovePathError::Unknown)?;
        if !self.connection.paths.live().iter().any(|other| other != id) {
            return Err(RemovePathError::OnlyPath);
        }
        let farewell = self.connection.farewell(id);
        let paths = &mut self.connection.paths;
        paths.say_farewell(farewell);
        paths.left.retain(|(left, until)| left.tuple != farewell.tuple && *until > now);
        if paths.left.len() == PATHS_MAX {
            paths.left.pop_front();
        }
        // When it is sent, the identifier may belong to another path.
        let farewell = Farewell { path: PathId::NOWHERE, ..farewell };
        paths.left.push_back((farewell, now.saturating_add(LEFT_FOR)));
        self.connection.drop_path(now, id);
        Ok(())
    }

    /// Sets whether a path is active or a backup. It affects only what this end sends.
    pub fn set_status(&mut self, id: PathId, status: PathStatus) {
        if let Some(path) = self.connection.paths.get_mut(id) {
            path.status = status;
            self.connection.paths.settle(&self.connection.sender.board);
        }
    }

    /// Sets the weight of a path relative to others; at least 1. It affects only [`crate::Scheduling::Weighted`].
    pub fn set_weight(&mut self, id: PathId, weight: u32) {
        if let Some(path) = self.connection.paths.get_mut(id) {
            path.weight = weight.max(1);
        }
    }

    /// The identifiers of all paths.
    pub fn ids(&self) -> impl Iterator<Item = PathId> + '_ {
        self.connection.paths.iter().map(|(id, _)| id)
    }

    /// The path with this four-tuple.
    pub fn find(&self, tuple: &FourTuple) -> Option<PathId> {
        self.connection.paths.find(tuple)
    }
}

impl<P: Payload> Connection<P> {
    /// A segment arrived on an unknown four-tuple. If it may begin a path, returns that path.
    pub(super) fn open_peer_path(&mut self, now: Time, tuple: FourTuple, segment: &Segment<P>) -> Option<PathId> {
        if !self.paths.are_negotiated || !self.state.has_paths() || !self.is_plausible(segment) {
            return None;
        }
        if let Some(farewell) = self.paths.left_at(now, &tuple) {
            match segment.options {
                // The peer accepts the token of its latest challenge only.
                Options::Path(PathOption::Challenge(token)) => farewell.token = token,
                Options::Path(PathOption::Leave(_)) => return None,
                Options::Path(PathOption::Response(_)) | Options::Acknowledgement(_) | Options::Handshake(_) => {}
            }
            let farewell = *farewell;
            self.paths.say_farewell(farewell);
            return None;
        }
        let origin = match segment.options {
            Options::Path(PathOption::Challenge(_)) => Origin::Peer,
            Options::Path(PathOption::Response(_) | PathOption::Leave(_)) => return None,
            Options::Acknowledgement(_) | Options::Handshake(_) => Origin::Rebinding(now),
        };
        if self.paths.iter().filter(|(_, path)| path.is_uninvited()).count() >= UNINVITED_MAX {
            return None;
        }
        let id = self.paths.free()?;
        self.open_path(now, id, tuple, origin);
        Some(id)
    }

    /// Whether an out-of-order segment can be the peer's. Its acknowledgement must be of data that is or was in flight. Its
    /// offset must be within two windows of the expected one, or as old as a slow path allows.
    pub(super) fn is_plausible(&self, segment: &Segment<P>) -> bool {
        let other = [Flags::SYN, Flags::RST].into_iter().any(|flag| segment.has(flag));
        if other || !segment.has(Flags::ACK) {
            return false;
        }
        self.sender.is_near(segment.header.ack, self.paths.are_negotiated)
            && self.receiver.is_near(segment.header.seq, AGE_MIN)
    }

    pub(super) fn handle_path_timeouts(&mut self, now: Time) {
        for index in 0..self.paths.slots.len() {
            let id = PathId::new(index);
            let Self { paths, sender, .. } = self;
            let board = &mut sender.board;
            let Some(path) = paths.get_mut(id) else { continue };
            if path.paced_until <= now {
                path.paced_until = Time::NEVER;
            }
            let timeouts = path.control.tally.timeouts;
            path.control.handle_timeout(now, board);
            if path.control.tally.timeouts > timeouts
                && path.control.is_backed_off()
                && self.config.form == Form::Sealed
            {
                self.liveness.probe_stall();
            }
            if !self.state.has_paths() {
                continue;
            }
            path.mtu.handle_timeout(now);
            path.control.handle_ecn_timeout(now);
            self.on_mtu(now, id);
            let path = &mut self.paths[id];
            match path.phase {
                Phase::Live if path.suspect_at() <= now => self.suspect(now, id),
                Phase::Challenged { sent: CHALLENGES_MAX.., at, is_suspect: false, .. } if at <= now => {
                    self.drop_path(now, id);
                }
                Phase::Live | Phase::Challenged { .. } => {}
            }
        }
    }

    fn open_path(&mut self, now: Time, id: PathId, tuple: FourTuple, origin: Origin) {
        let controller = self.config.law.row().build(&self.config.law);
        let mut control = PathControl::new(now, id, controller, self.peer.segment.into(), self.config.timing());
        // Without SACK a duplicate ACK does not tell which segment is missing, so only the first path counts them.
        if self.peer.has_sack {
            control.detect_by(Detection::of(self.config.loss_detection, true));
        }
        control.set_ecn(self.has_ecn());
        self.sender.board.open_lane(id);
        self.acks.open_lane(id);
        let phase = Phase::Challenged { sent: 0, at: now, is_suspect: false };
        let mut mtu = Mtu::new(&self.config, &tuple);
        mtu.limit(self.peer.mss + self.options_space());
        self.paths.put(id, Path { origin, phase, arrived: now, ..Path::live(tuple, control, mtu, 0) });
        self.on_mtu(now, id);
        self.paths.settle(&self.sender.board);
    }

    fn drop_path(&mut self, now: Time, id: PathId) {
        let Some(mut path) = self.paths.take(id) else { return };
        self.paths.settle(&self.sender.board);
        path.control.abandon(now, &mut self.sender.board);
        self.acks.close_lane(id, self.paths.main());
        self.events.push_back(Event::PathGone(id));
    }

    fn suspect(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id];
        path.control.abandon(now, &mut self.sender.board);
        path.phase = Phase::Challenged { sent: 0, at: now, is_suspect: true };
        path.paced_until = Time::NEVER;
        self.paths.settle(&self.sender.board);
        self.events.push_back(Event::PathFailed(id));
    }

    /// The datagram size of a path may have changed: new segments must fit it.
    pub(super) fn on_mtu(&mut self, now: Time, id: PathId) {
        let most = self.peer.mss;
        let options = self.options_space();
        let path = &mut self.paths[id];
        if path.control.take_doubt() {
            // A timeout, or several losses of the same segment.
            path.mtu.on_doubt(now);
            self.has_mtu_doubt = true;
        }
        path.mss = most.min(mtu::content(path.mtu.datagram_max()).saturating_sub(options));
        if path.is_live() && (path.mtu.due(now).is_some() || path.control.ecn.is_probe_due(now)) {
            self.paths.pending_options.insert(id);
        }
        self.paths.settle_mss();
    }

    /// Whether segments may carry ECT. The peer counts marks only in acknowledgements that name streams.
    pub(super) fn has_ecn(&self) -> bool {
        self.config.ecn && self.config.form == Form::Sealed && self.peer.framing == Framing::Streams
    }

    /// Bytes of options in each segment with content.
    pub(super) fn options_space(&self) -> u32 {
        self.peer.options
    }

    /// The last message of this end about a path.
    fn farewell(&self, id: PathId) -> Farewell {
        let Path { tuple, asked, .. } = self.paths[id];
        let token = asked.unwrap_or_else(|| handshake_token(self.receiver.initial(), self.sender.initial()));
        Farewell { path: id, tuple, token }
    }

    /// Whether data for a path may reach its far end: the peer has answered there, or the application has named the address.
    pub(crate) fn reaches(&self, id: PathId) -> bool {
        self.paths.get(id).is_some_and(|path| {
            matches!(path.origin, Origin::Own | Origin::Moved(_)) || path.state() != PathState::Validating
        })
    }

    /// Whether this is a valid leave of the peer.
    fn is_farewell(&self, id: PathId, token: Token) -> bool {
        let Path { origin, tokens, .. } = &self.paths[id];
        let is_of_handshake =
            || *origin == Origin::Handshake && token == handshake_token(self.sender.initial(), self.receiver.initial());
        tokens.has(token) || is_of_handshake()
    }

    fn revive(&mut self, now: Time, id: PathId, sample: Option<Span>) {
        let path = &mut self.paths[id];
        path.phase = Phase::Live;
        path.control.revive(now, sample);
        // The path may lead elsewhere by now.
        path.mtu.on_doubt(now);
        self.on_mtu(now, id);
        self.paths.settle(&self.sender.board);
        self.chooser.on_path(id);
        self.events.push_back(Event::PathRestored(id));
    }
}

impl State {
    /// Whether several paths are possible.
    pub(super) fn has_paths(self) -> bool {
        match self {
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived | Self::TimeWait => false,
            Self::Established | Self::FinWait1 | Self::FinWait2 | Self::CloseWait | Self::Closing | Self::LastAck => {
                true
            }
        }
    }
}

impl Path {
    /// The path of the handshake, which needs no challenge.
    pub(super) fn live(tuple: FourTuple, control: PathControl, mtu: Mtu, mss: u32) -> Self {
        Self {
            tuple,
            control,
            mtu,
            mss,
            paced_until: Time::NEVER,
            limits: Limits::default(),
            status: PathStatus::default(),
            weight: 1,
            arrived: Time::ZERO,
            origin: Origin::Handshake,
            phase: Phase::Live,
            tokens: Tokens::default(),
            asked: None,
            response: None,
            way_back: WayBack::NEW,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// Whether the peer set it up and has not yet answered a challenge on it.
    fn is_uninvited(&self) -> bool {
        matches!(self.origin, Origin::Peer | Origin::Rebinding(_)) && self.state() == PathState::Validating
    }

    pub(super) fn state(&self) -> PathState {
        match self.phase {
            Phase::Live => PathState::Live,
            Phase::Challenged { is_suspect: false, .. } => PathState::Validating,
            Phase::Challenged { is_suspect: true, .. } => PathState::Suspect,
        }
    }

    /// The path's deadline. Challenges count only if the peer can answer them.
    // Inlined with what else is asked of the paths, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline(always)]
    pub(super) fn deadline(&self, has_paths: bool) -> Time {
        let phase = match self.phase {
            Phase::Live if has_paths => self.suspect_at().min(self.challenge_at()),
            Phase::Live => self.suspect_at(),
            Phase::Challenged { at, .. } if has_paths => at,
            Phase::Challenged { .. } => Time::NEVER,
        };
        self.control.deadline().min(self.paced_until).min(phase)
    }

    /// When a live path is challenged next, to probe a datagram size or a codepoint.
    fn challenge_at(&self) -> Time {
        self.mtu.deadline().min(self.control.ecn.deadline())
    }

    /// A segment that fills its datagram is sent. Returns whether a probe is due.
    pub(super) fn on_full(&mut self, now: Time) -> bool {
        self.mtu.on_full(now)
    }

    /// The largest datagram.
    pub(super) fn datagram_max(&self) -> u32 {
        self.mtu.datagram_max()
    }

    /// Limits the content of segments.
    pub(super) fn limit_mtu(&mut self, content: u32) {
        self.mtu.limit(content);
    }

    fn suspect_at(&self) -> Time {
        self.control.suspect_at()
    }
}

/// The token on the path of the handshake, known to no third party off the path: the initial sequence number of the receiver,
/// then that of the sender.
fn handshake_token(receiver: SeqNumber, sender: SeqNumber) -> Token {
    (u64::from(receiver.0) << 32 | u64::from(sender.0)).to_be_bytes()
}

/// Limit on challenges on a path that never answered. They take about a minute, with an RTO of a second before the first sample.
const CHALLENGES_MAX: u32 = 6;

/// How long an abandoned path is remembered, so that a challenge that crossed the leave does not restore it.
const LEFT_FOR: Span = Span::from_secs(10);

/// A segment on a slow path may be as old as all that a fast path has carried since it was sent, however narrow the window is:
/// here 2 s at 1 Gbit/s. A guess among all sequence numbers then succeeds once in sixteen attempts. Each attempt costs an answer
/// only; no path is set up or removed without a token. `docs/wire.md` 2.5 states this number, since it bounds the peer's delay.
pub(super) const AGE_MIN: u64 = 1 << 28;

//! The local address of a path goes away and another one takes its place, or the same one comes back.
//!
//! The driver knows from an error of the system that datagrams cannot leave from an address, or from the system's routes that it would now send from
//! another one. Then a path from that address to the same address of the peer is set up. When the peer has
//! answered there, the old path is dropped, and its data in flight is retransmitted. The peer sees a new four-tuple, and validates
//! it as any path; so both ends must have negotiated several paths.
//!
//! A path beside others, which was added for its own local address, moves only if nothing can leave from there: what the system would choose is no
//! news of it, and to drop it would make one path of two.

use anabranch_units::{Span, Time};

use super::{Farewell, Origin, PATHS_MAX, Paths, Phase};
use crate::config::Failover;
use crate::connection::Connection;
use crate::event::CloseReason;
use crate::path::{Address, FourTuple, PathId, PathState};
use crate::payload::Payload;

impl<P: Payload> Paths<'_, P> {
    /// Datagrams of this four-tuple cannot leave. `instead` is the address from which the system would send to the same
    /// destination; `None` if it would not send at all. Other paths take over at once. Otherwise a path from that address is set
    /// up, and the present one is dropped when the peer has answered there.
    pub fn on_unreachable(&mut self, now: Time, tuple: FourTuple, instead: Option<Address>) {
        let connection = &mut *self.connection;
        let Some(id) = connection.paths.find(&tuple) else { return };
        if !connection.paths.are_negotiated || !connection.state.has_paths() {
            return;
        }
        let has_others = connection.paths.live().iter().any(|other| other != id);
        if has_others && connection.paths[id].is_live() && connection.config.failover == Failover::OnSilence {
            connection.suspect(now, id);
        }
        if let Some(local) = instead {
            connection.move_to(now, FourTuple { local, ..tuple }, tuple);
        }
    }

    /// A path of this four-tuple is silent, and by now the system would send from `instead`: as [`Self::on_unreachable`], unless the path was
    /// added beside others for its local address.
    pub fn on_other_route(&mut self, now: Time, tuple: FourTuple, instead: Address) {
        let paths = &self.connection.paths;
        let is_beside = |id| paths[id].origin == Origin::Own && paths.count() > 1;
        if paths.find(&tuple).is_some_and(|id| !is_beside(id)) {
            self.on_unreachable(now, tuple, Some(instead));
        }
    }

    /// Datagrams of this four-tuple can leave again, or should be tried again: what waits for a timeout is sent now.
    pub fn on_reachable(&mut self, now: Time, tuple: FourTuple) {
        let Connection { paths, sender, .. } = &mut *self.connection;
        let Some(path) = paths.find(&tuple).and_then(|id| paths.get_mut(id)) else { return };
        match &mut path.phase {
            Phase::Live => path.control.on_reopened(now, &mut sender.board),
            Phase::Challenged { sent, at, .. } => (*sent, *at) = ((*sent).min(1), now),
        }
    }

    /// Something else was sent to the remote port of this four-tuple. A short segment follows, so that a relay on the way which
    /// answers to the latest sender alone keeps this one; its answer shows that the peer is there.
    pub fn on_asked(&mut self, tuple: FourTuple) {
        let connection = &mut *self.connection;
        if connection.paths.find(&tuple).is_some() {
            connection.ask();
        }
    }

    /// The network says that the remote port of this four-tuple is closed. That is a hint which anybody may forge: it ends the
    /// connection only if it is repeated after three round trips at least, and 400 ms, in which the peer is silent on its only path.
    /// Returns after which time that is, if it is still to be repeated.
    pub fn on_refused(&mut self, now: Time, tuple: FourTuple) -> Option<Span> {
        let connection = &mut *self.connection;
        let id = connection.paths.find(&tuple)?;
        if connection.silent() != Some(tuple) || !connection.state.has_paths() {
            return None;
        }
        let rtt = connection.paths[id].control.rtt_smoothed().unwrap_or(Span::ZERO);
        let again = connection.liveness.on_refused(now, rtt.saturating_mul(3));
        if again.is_none() {
            connection.abort_because(CloseReason::PortClosed);
        }
        again
    }
}

impl<P: Payload> Connection<P> {
    /// Whether a path has this four-tuple.
    pub(crate) fn has_path(&self, tuple: &FourTuple) -> bool {
        self.paths.find(tuple).is_some()
    }

    /// The only live path, if nothing was acknowledged on it since a retransmission timeout, or a keep-alive probe got no answer.
    pub(crate) fn silent(&self) -> Option<FourTuple> {
        let mut live = self.paths.live().iter();
        let (Some(id), None) = (live.next(), live.next()) else { return None };
        let path = &self.paths[id];
        (path.control.is_silent() || self.liveness.is_unanswered()).then_some(path.tuple)
    }

    fn move_to(&mut self, now: Time, tuple: FourTuple, from: FourTuple) {
        if self.paths.find(&tuple).is_some() {
            return;
        }
        self.paths.left.retain(|(left, _)| left.tuple != tuple);
        self.paths.farewells.retain(|left| left.tuple != tuple);
        if self.paths.count() > self.config.paths_max.into() {
            // The path to drop counts, too; so one more is possible. The one that has been silent for longest makes room.
            let silent = self.paths.iter().filter(|(_, path)| path.state() != PathState::Live && path.tuple != from);
            let Some(silent) = silent.min_by_key(|(_, path)| path.arrived).map(|(id, _)| id) else { return };
            self.drop_path(now, silent);
        }
        if let Some(id) = self.paths.free() {
            self.open_path(now, id, tuple, Origin::Moved(from));
        }
    }

    /// The peer has answered on the path to which this end moved: drops the path from which it came. If that address comes back,
    /// a challenge of the peer is answered with a leave.
    pub(super) fn leave_behind(&mut self, now: Time, from: FourTuple) {
        let Some(id) = self.paths.find(&from) else { return };
        if self.paths.live().iter().all(|other| other == id) {
            return;
        }
        let farewell = Farewell { path: PathId::NOWHERE, ..self.farewell(id) };
        self.paths.left.retain(|(left, until)| left.tuple != from && *until > now);
        if self.paths.left.len() == PATHS_MAX {
            self.paths.left.pop_front();
        }
        self.paths.left.push_back((farewell, now.saturating_add(MOVED_FOR)));
        self.drop_path(now, id);
    }
}

/// How long the path from which this end has moved is remembered. The peer challenges it every few seconds; an address that comes
/// back after a walk or a meeting is then not taken for a second path.
const MOVED_FOR: Span = Span::from_secs(3600);

//! Chooses the path for new data: the scheduler selects among the paths with room, unless the guard of the peer's buffer excludes
//! them.

use anabranch_units::{Span, Time};

use super::Path;
use super::paths::Table;
use super::sender::Sender;
use crate::config::Config;
use crate::guard::{Guard, Outlook};
use crate::path::{PathId, PathSet};
use crate::payload::Payload;
use crate::scheduler::{Candidate, Copies, Demand, Scheduler, quickest};

/// Chooses paths for new data.
#[derive(Debug)]
pub(super) struct Chooser {
    scheduler: Box<dyn Scheduler>,
    /// Whether the scheduler must be informed of each segment sent, or has some of them copied.
    hears_sent: bool,
    copies: Copies,
    /// Keeps slow paths from filling the peer's buffer.
    guard: Guard,
    /// The candidates of one choice; rebuilt for each.
    candidates: Vec<Candidate>,
}

impl Chooser {
    pub(super) fn new(config: &Config) -> Self {
        let scheduler = config.scheduling.build();
        let copies = scheduler.copies();
        let hears_sent = scheduler.hears_sent() || copies != Copies::None;
        Self { hears_sent, copies, scheduler, guard: Guard::new(), candidates: vec![] }
    }

    /// A path starts to carry data, or does so again.
    pub(super) fn on_path(&mut self, id: PathId) {
        self.scheduler.on_path(id);
    }

    /// New data of `space` bytes of sequence space is sent. Returns whether [`Self::on_counted`] must be told of it.
    pub(super) fn on_sent(&mut self, now: Time, path: PathId, space: u64) -> bool {
        self.guard.on_sent(now, path, space);
        self.hears_sent
    }

    /// As [`Self::on_sent`], for a scheduler that counts or copies. Returns which segments are copied.
    pub(super) fn on_counted(&mut self, path: PathId, weight: u32, space: u64) -> Copies {
        self.scheduler.on_sent(path, weight, space);
        self.copies
    }

    /// The path for `len` bytes of new data: one of `may_send`, the paths whose pacers release a segment. `segment` is the unit
    /// of windows in bytes.
    // Inlined, without what several paths need, it takes 1.1 % fewer instructions of the engine with 1 stream.
    #[inline(always)]
    pub(super) fn choose<P: Payload>(
        &mut self,
        now: Time,
        (len, may_send): (u64, PathSet),
        segment: u32,
        paths: &mut Table,
        sender: &mut Sender<P>,
    ) -> Option<PathId> {
        if !paths.has_several() {
            let control = &mut paths[PathId::FIRST].control;
            control.on_demand(now, &sender.board);
            return (may_send.contains(PathId::FIRST) && control.admit(&sender.board, len)).then_some(PathId::FIRST);
        }
        self.choose_among(now, (len, may_send), segment, paths, sender)
    }

    /// As [`Self::choose`], for a connection with several paths.
    fn choose_among<P: Payload>(
        &mut self,
        now: Time,
        (len, may_send): (u64, PathSet),
        segment: u32,
        paths: &mut Table,
        sender: &mut Sender<P>,
    ) -> Option<PathId> {
        let Self { scheduler, guard, candidates, .. } = self;
        let board = &sender.board;
        let (usable, mss) = (paths.usable(), f64::from(segment));
        let (mut has_open, mut outlook) = (false, Outlook::NONE);
        candidates.clear();
        for id in usable.iter() {
            let Path { control, weight, .. } = &mut paths[id];
            control.on_demand(now, board);
            let candidate = Candidate {
                id,
                window: control.window() * mss,
                flight: board.flight(id),
                flying: board.flying(id),
                rtt: control.rtt_smoothed(),
                rtt_min: None,
                rtt_latest: None,
                delivery_rate: None,
                weight: *weight,
                has_room: may_send.contains(id) && control.admit(board, len),
            };
            has_open |= candidate.has_room;
            outlook.add(candidate.window, candidate.flying, candidate.rtt, control.rtt_min());
            candidates.push(candidate);
        }
        let largest = sender.peer_window.largest();
        let is_guarded = scheduler.is_guarded() && usable.has_several() && !guard.lets_all(&outlook, len, largest);
        if !has_open && !is_guarded {
            return None;
        }
        let demand = Demand { len, peer_window: sender.peer_window.room(board.acked()) };
        let mut count = candidates.len();
        if is_guarded {
            for Candidate { id, rtt_min, rtt_latest, delivery_rate, .. } in candidates.iter_mut() {
                let control = &paths[*id].control;
                (*rtt_min, *rtt_latest, *delivery_rate) =
                    (control.rtt_min(), control.tally.rtt_latest, control.delivery_rate());
            }
            count = guard.keep(now, candidates, len, largest);
            if count < candidates.len() {
                scheduler.on_left_out(&candidates[count..], &candidates[..count]);
            }
        }
        match &candidates[..count] {
            [] => None,
            // The peer may be waiting for a record, so it takes the path with the least RTT.
            candidates if sender.outbound.has_records() && scheduler.spreads() => quickest(candidates),
            candidates => scheduler.choose(candidates, &demand),
        }
    }

    /// The path for a copy of a segment of `space` bytes of sequence space that leaves on `path`: of the others that carry new
    /// data and a segment of this size, the one with the least RTT among those with room, or among all.
    pub(super) fn second(path: PathId, space: u64, paths: &Table) -> Option<PathId> {
        let carries = |id: &PathId| *id != path && u64::from(paths[*id].mss) >= space;
        let urgency = |id: &PathId| {
            let control = &paths[*id].control;
            (!control.has_room(space), control.rtt_smoothed().unwrap_or(Span::MAX))
        };
        paths.usable().iter().filter(carries).min_by_key(urgency)
    }

    /// The peer's window is full. Informs the guard if a slow path blocks the window while a faster path of `may_send` has room.
    pub(super) fn on_stop<P: Payload>(&mut self, now: Time, may_send: PathSet, paths: &Table, sender: &Sender<P>) {
        let rtt = |path: &Path| path.control.rtt_smoothed().unwrap_or(Span::MAX);
        let Some(slow) = sender.board.front().and_then(|path| paths.get(path)).map(rtt) else { return };
        let waits = |id: PathId| {
            let path = &paths[id];
            may_send.contains(id) && rtt(path) < slow && path.control.has_room(path.mss.into())
        };
        if paths.usable().iter().any(waits) {
            self.guard.on_stop(now, sender.board.next() - sender.board.acked(), slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_cc::{Settings, registry};

    use super::*;
    use crate::path::{Address, FourTuple};
    use crate::payload::Virtual;
    use crate::random::Secret;
    use crate::recovery::control::PathControl;
    use crate::seq::SeqNumber;

    /// Even if the window has room, the pacer must release the segment.
    #[test]
    fn one_path_needs_its_pacers_leave() {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let config = Config { mss: 1000, ..Config::new(law) };
        let end = |address| Address { address, port: 0 };
        let tuple = FourTuple { local: end(1), remote: end(2) };
        let controller = config.law.row().build(&config.law);
        let control = PathControl::new(Time::ZERO, PathId::FIRST, controller, 1000, config.timing());
        let mtu = super::super::mtu::Mtu::new(&config, &tuple);
        let mut paths = Table::new(Path::live(tuple, control, mtu, 1000), config.failover);
        let mut sender = Sender::<Virtual>::new(Secret::predictable(SeqNumber(0)).initial(), &config);
        let mut chooser = Chooser::new(&config);
        let mut may_send = PathSet::default();
        may_send.insert(PathId::FIRST);
        let mut choose = |len, may_send| chooser.choose(Time::ZERO, (len, may_send), 1000, &mut paths, &mut sender);
        assert_eq!(choose(1000, PathSet::default()), None, "the pacer has not let it go");
        assert_eq!(choose(1000, may_send), Some(PathId::FIRST));
    }
}

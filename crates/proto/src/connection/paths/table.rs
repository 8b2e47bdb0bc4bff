//! The paths of a connection by identifier: which exist, which carry data, and which have path segments to send.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use anabranch_cc::PathSummary;
use anabranch_units::{Span, Time};

use super::{Farewell, Path};
use crate::config::Failover;
use crate::path::{FourTuple, PATHS_MAX, PathId, PathSet, PathStatus, SLOTS_MAX};
use crate::recovery::scoreboard::Scoreboard;

/// The paths of a connection by identifier.
#[derive(Debug)]
pub(in crate::connection) struct Table {
    pub(super) slots: Vec<Option<Path>>,
    /// The paths that carry data.
    live: PathSet,
    /// The live paths that carry new data.
    usable: PathSet,
    /// Paths with a path segment to send, now or later; [`PathId::NOWHERE`] if there are farewells.
    pub(super) pending_options: PathSet,
    /// The largest sequence space of a segment on any path that carries data.
    mss_max: u32,
    failover: Failover,
    /// Whether several paths were negotiated.
    pub(in crate::connection) are_negotiated: bool,
    /// Abandoned paths, and until when a peer that still uses one is sent a leave.
    pub(super) left: VecDeque<(Farewell, Time)>,
    /// Leaves to send now.
    pub(super) farewells: VecDeque<Farewell>,
}

impl Table {
    /// A table with one live path.
    pub(in crate::connection) fn new(first: Path, failover: Failover) -> Self {
        let first_mss = first.mss;
        Self {
            slots: vec![Some(first)],
            live: PathSet::only(PathId::FIRST),
            usable: PathSet::only(PathId::FIRST),
            pending_options: PathSet::default(),
            mss_max: first_mss,
            failover,
            are_negotiated: false,
            left: VecDeque::new(),
            farewells: VecDeque::new(),
        }
    }

    /// Whether a tail loss probe is due on any path.
    pub(in crate::connection) fn has_probe_due(&self) -> bool {
        self.slots.iter().flatten().any(|path| path.control.is_probe_due())
    }

    /// The earliest deadline of all paths.
    pub(in crate::connection) fn deadline(&self, has_paths: bool) -> Time {
        self.slots.iter().flatten().map(|path| path.deadline(has_paths)).min().unwrap_or(Time::NEVER)
    }

    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (PathId, &Path)> {
        self.slots.iter().enumerate().filter_map(|(index, path)| Some((PathId::new(index), path.as_ref()?)))
    }

    pub(in crate::connection) fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Path)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, path)| Some((PathId::new(index), path.as_mut()?)))
    }

    pub(in crate::connection) fn get(&self, id: PathId) -> Option<&Path> {
        self.slots.get(id.index())?.as_ref()
    }

    pub(in crate::connection) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// The path with this four-tuple; nearly always it is `latest`.
    pub(in crate::connection) fn find_near(&self, tuple: &FourTuple, latest: PathId) -> Option<PathId> {
        if self.get(latest).is_some_and(|path| path.tuple == *tuple) { Some(latest) } else { self.find(tuple) }
    }

    /// The path with this four-tuple.
    pub(in crate::connection) fn find(&self, tuple: &FourTuple) -> Option<PathId> {
        let is_it = |path: &Option<Path>| path.as_ref().is_some_and(|path| path.tuple == *tuple);
        self.slots.iter().position(is_it).map(PathId::new)
    }

    /// The paths that carry data.
    pub(in crate::connection) fn live(&self) -> PathSet {
        self.live
    }

    /// The least number above all identifiers in use.
    pub(in crate::connection) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is more than one path.
    pub(in crate::connection) fn has_several(&self) -> bool {
        self.slots.len() > 1
    }

    /// Paths for new data: the active ones, or all live paths if no active one is live.
    pub(in crate::connection) fn usable(&self) -> PathSet {
        self.usable
    }

    /// Whether a path segment may have to be sent.
    pub(in crate::connection) fn have_options(&self) -> bool {
        !self.pending_options.is_empty()
    }

    /// Schedules a challenge on a path.
    pub(in crate::connection) fn ask(&mut self, id: PathId) {
        self.pending_options.insert(id);
    }

    /// The largest sequence space of a segment on any path that carries data.
    pub(in crate::connection) fn mss_max(&self) -> u32 {
        self.mss_max
    }

    /// The main path of the connection: the first live path.
    pub(in crate::connection) fn main(&self) -> PathId {
        self.live.first().or_else(|| self.iter().next().map(|(id, _)| id)).unwrap_or(PathId::FIRST)
    }

    /// The path with the least RTT among those heard of lately; `latest` if none has a sample.
    pub(in crate::connection) fn quickest(&self, latest: PathId) -> PathId {
        if !self.has_several() {
            return latest;
        }
        let now = self.get(latest).map_or(Time::ZERO, |path| path.arrived);
        let is_fresh = |path: &Path| path.is_live() && path.arrived.saturating_add(FRESH) >= now;
        let fresh = self.iter().filter(|(_, path)| is_fresh(path));
        let quickest = fresh.min_by_key(|(_, path)| path.control.rtt_smoothed().unwrap_or(Span::MAX));
        quickest.map_or(latest, |(id, _)| id)
    }

    /// The number of paths that count towards the limit: validated by either end, or set up by this one.
    pub(super) fn count(&self) -> usize {
        self.iter().filter(|(_, path)| !path.is_uninvited()).count()
    }

    pub(super) fn free(&self) -> Option<PathId> {
        (0..SLOTS_MAX).find(|&index| self.slots.get(index).is_none_or(Option::is_none)).map(PathId::new)
    }

    pub(super) fn put(&mut self, id: PathId, path: Path) {
        while self.slots.len() <= id.index() {
            self.slots.push(None);
        }
        self.slots[id.index()] = Some(path);
    }

    pub(super) fn take(&mut self, id: PathId) -> Option<Path> {
        self.slots.get_mut(id.index())?.take()
    }

    /// A path has changed: updates the sets of paths, and whether other paths could take over.
    pub(super) fn settle<T>(&mut self, board: &Scoreboard<T>) {
        let (mut live, mut active) = (PathSet::default(), PathSet::default());
        for (id, path) in self.iter().filter(|(_, path)| path.is_live()) {
            live.insert(id);
            if path.status == PathStatus::Active {
                active.insert(id);
            }
        }
        (self.live, self.usable) = (live, if active.is_empty() { live } else { active });
        self.settle_mss();
        self.pending_options =
            if self.farewells.is_empty() { PathSet::default() } else { PathSet::only(PathId::NOWHERE) };
        for (index, path) in self.slots.iter_mut().enumerate() {
            let Some(path) = path else { continue };
            if self.failover == Failover::OnSilence {
                path.control.set_others(live.has_several(), board);
            }
            if path.response.is_some() || !path.is_live() || path.challenge_at() < Time::NEVER {
                self.pending_options.insert(PathId::new(index));
            }
        }
    }

    pub(super) fn settle_mss(&mut self) {
        let most = self.usable.iter().filter_map(|id| self.get(id)).map(|path| path.mss).max();
        // Without a path that carries data, no segment is made.
        self.mss_max = most.unwrap_or(self.mss_max);
    }

    pub(super) fn left_at(&mut self, now: Time, tuple: &FourTuple) -> Option<&mut Farewell> {
        self.left.iter_mut().find(|(left, until)| left.tuple == *tuple && *until > now).map(|(left, _)| left)
    }

    pub(super) fn say_farewell(&mut self, farewell: Farewell) {
        if self.farewells.len() < PATHS_MAX {
            self.farewells.push_back(farewell);
            self.pending_options.insert(PathId::NOWHERE);
        }
    }

    /// There is nothing to send on any of these paths.
    // Inlined with what else is asked of the paths, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    pub(in crate::connection) fn on_short(&mut self) {
        self.slots.iter_mut().flatten().for_each(|path| path.control.on_short());
    }

    /// [`anabranch_cc::Controller::on_group`], for the controller of this path.
    pub(in crate::connection) fn report_group(&mut self, now: Time, own: PathId) {
        let Some(first) = self.get(own).map(|path| path.control.summary(own)) else { return };
        let mut group: [PathSummary; SLOTS_MAX] = [first; SLOTS_MAX];
        let mut count = 0;
        for (place, (_, path)) in group.iter_mut().zip(self.iter().filter(|(_, path)| path.is_live())) {
            *place = path.control.summary(own);
            count += 1;
        }
        self[own].control.on_group(now, &group[..count]);
    }
}

/// Panics if the path does not exist.
impl Index<PathId> for Table {
    type Output = Path;

    // Inlined with what else is asked of the paths, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    fn index(&self, id: PathId) -> &Path {
        self.get(id).expect("the path is there")
    }
}

impl IndexMut<PathId> for Table {
    // Inlined with what else is asked of the paths, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    fn index_mut(&mut self, id: PathId) -> &mut Path {
        self.get_mut(id).expect("the path is there")
    }
}

/// A path counts as working if a segment arrived on it within this time.
const FRESH: Span = Span::from_secs(1);

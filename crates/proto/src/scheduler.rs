//! Which path takes what is sent next: [multihoming-2010] sec. III.A calls it the path selector.
//!
//! A scheduler sees the paths that may carry data, and chooses one or none; what it chose is told back, so that it can count. It
//! knows no segments and no times but RTTs. To add one: a type, its line in [`Scheduling`].

use std::fmt;

use anabranch_units::Span;

use crate::path::{PathId, SLOTS_MAX};

/// How data is spread over the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// In proportion to the congestion windows, each of which has that share of the peer's window as well
    /// ([multihoming-2010] sec. III).
    Window,
    /// The path with the least RTT that has room. One that is so much slower that the others would have to wait for what it
    /// carries is left alone.
    #[default]
    MinRtt,
    /// In proportion to the weights of the paths, whatever they can carry: the path that is slowest for its weight holds the others
    /// back.
    Weighted,
    /// All on the path of the lowest name; the others wait until it fails.
    Backup,
}

impl Scheduling {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Window, Self::MinRtt, Self::Weighted, Self::Backup];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::MinRtt => "min_rtt",
            Self::Weighted => "weighted",
            Self::Backup => "backup",
        }
    }

    pub(crate) fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Window => Box::new(ByWindow),
            Self::MinRtt => Box::new(MinRtt),
            Self::Weighted => Box::new(Weighted::default()),
            Self::Backup => Box::new(Backup),
        }
    }
}

/// Chooses a path for each segment.
pub(crate) trait Scheduler: fmt::Debug + Send {
    /// The path for the next segment, one that has room; none if it had better wait. At least one path is there.
    fn choose(&self, paths: &[Candidate], demand: &Demand) -> Option<PathId>;

    /// A segment of so many bytes that had not been sent before left on a path of this weight.
    fn on_sent(&mut self, path: PathId, weight: u32, bytes: u64) {
        let _ = (path, weight, bytes);
    }

    /// From now on a path may carry data.
    fn on_path(&mut self, path: PathId) {
        let _ = path;
    }
}

/// A path that may carry data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) id: PathId,
    /// The congestion window and what is in flight, in bytes.
    pub(crate) window: f64,
    pub(crate) flight: u64,
    pub(crate) rtt: Option<Span>,
    pub(crate) weight: u32,
    /// Whether its window and its pacer let the segment go.
    pub(crate) has_room: bool,
}

/// What is to be sent, and what the peer takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    /// Bytes of the segment.
    pub(crate) len: u64,
    /// How much the peer's window takes of what is not acknowledged.
    pub(crate) peer_window: u64,
    /// The largest window that the peer has announced: about its buffer.
    pub(crate) peer_window_max: u64,
}

#[derive(Debug)]
struct ByWindow;

#[derive(Debug)]
struct MinRtt;

#[derive(Debug, Default)]
struct Weighted {
    /// By path: bytes sent per weight, in parts that are small enough for any weight.
    served: [u128; SLOTS_MAX],
}

#[derive(Debug)]
struct Backup;

impl Scheduler for ByWindow {
    fn choose(&self, paths: &[Candidate], demand: &Demand) -> Option<PathId> {
        let sum: f64 = paths.iter().map(|path| path.window).sum();
        let after = |path: &Candidate| (path.flight + demand.len) as f64;
        // [multihoming-2010] sec. III: "divides the global advertised window among all its subflows (paths) proportional to their
        // congestion window sizes". One segment is always somebody's.
        let has_share =
            |path: &&Candidate| path.flight == 0 || after(path) <= demand.peer_window as f64 * path.window / sum;
        let open = paths.iter().filter(|path| path.has_room).filter(has_share);
        let filled = |path: &Candidate| after(path) / path.window;
        open.min_by(|a, b| filled(a).total_cmp(&filled(b))).map(|path| path.id)
    }
}

impl Scheduler for MinRtt {
    fn choose(&self, paths: &[Candidate], demand: &Demand) -> Option<PathId> {
        let rtt = |path: &Candidate| path.rtt.unwrap_or(Span::MAX);
        let best = paths.iter().filter(|path| path.has_room).min_by_key(|path| rtt(path))?;
        // What goes on a slow path keeps what is sent after it on faster ones in the peer's buffer until it arrives, and the word of
        // it comes back on the fastest: for half of each RTT. What the faster ones carry in that time has to fit. If it does
        // not, all of them together are slower with this path than without it.
        let faster = paths.iter().filter(|path| rtt(path) < rtt(best));
        let Some(fastest) = faster.clone().map(rtt).min() else { return Some(best.id) };
        let blocked = (rtt(best) / 2 + fastest / 2).as_secs_f64();
        let carried: f64 = faster.map(|path| path.window / rtt(path).as_secs_f64() * blocked).sum();
        (carried <= demand.peer_window_max as f64).then_some(best.id)
    }
}

impl Scheduler for Weighted {
    fn choose(&self, paths: &[Candidate], _demand: &Demand) -> Option<PathId> {
        let turn = paths.iter().min_by_key(|path| self.served[path.id.index()])?;
        turn.has_room.then_some(turn.id)
    }

    fn on_sent(&mut self, path: PathId, weight: u32, bytes: u64) {
        self.served[path.index()] += (u128::from(bytes) << 32) / u128::from(weight.max(1));
    }

    /// What it has missed is not made up for.
    fn on_path(&mut self, path: PathId) {
        self.served[path.index()] = self.served.into_iter().max().unwrap_or(0);
    }
}

impl Scheduler for Backup {
    fn choose(&self, paths: &[Candidate], _demand: &Demand) -> Option<PathId> {
        let first = paths.iter().min_by_key(|path| path.id)?;
        first.has_room.then_some(first.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows in segments of 1000 bytes, RTTs in milliseconds.
    fn path(index: usize, window: u64, flight: u64, rtt_ms: u64) -> Candidate {
        Candidate {
            id: PathId::new(index),
            window: 1000.0 * window as f64,
            flight: 1000 * flight,
            rtt: Some(Span::from_millis(rtt_ms)),
            weight: 1,
            has_room: flight < window,
        }
    }

    fn choose(scheduling: Scheduling, paths: &[Candidate], peer_window: u64) -> Option<usize> {
        let demand = Demand { len: 1000, peer_window, peer_window_max: peer_window };
        scheduling.build().choose(paths, &demand).map(PathId::index)
    }

    /// Forty segments over windows of 30 and 10 that nothing empties.
    #[test]
    fn windows_are_filled_in_proportion() {
        let (scheduler, mut paths) = (Scheduling::Window.build(), [path(0, 30, 0, 50), path(1, 10, 0, 20)]);
        let demand = Demand { len: 1000, peer_window: 1 << 30, peer_window_max: 1 << 30 };
        for sent in 1..=20 {
            let id = scheduler.choose(&paths, &demand).unwrap();
            paths[id.index()].flight += 1000;
            if sent % 4 == 0 {
                assert_eq!(paths[0].flight, 3 * paths[1].flight, "after {sent}");
            }
        }
    }

    /// A peer that takes eight segments gives six to the window of 30 and two to that of 10.
    #[test]
    fn the_window_of_the_peer_is_divided_as_well() {
        assert_eq!(choose(Scheduling::Window, &[path(0, 30, 6, 50), path(1, 10, 1, 50)], 8000), Some(1));
        assert_eq!(choose(Scheduling::Window, &[path(0, 30, 6, 50), path(1, 10, 2, 50)], 8000), None);
    }

    #[test]
    fn the_fastest_path_with_room_is_chosen() {
        assert_eq!(choose(Scheduling::MinRtt, &[path(0, 10, 9, 50), path(1, 10, 9, 20)], 1 << 30), Some(1));
        assert_eq!(choose(Scheduling::MinRtt, &[path(0, 10, 9, 50), path(1, 10, 10, 20)], 1 << 30), Some(0));
        assert_eq!(choose(Scheduling::MinRtt, &[path(0, 10, 10, 50), path(1, 10, 10, 20)], 1 << 30), None);
    }

    /// 100 segments in 20 ms, for the 110 ms that a segment on the slow path takes there and the word of it back: 550.
    #[test]
    fn a_slow_path_is_left_alone_if_the_buffer_does_not_hold_what_it_blocks() {
        let paths = [path(0, 100, 100, 20), path(1, 100, 10, 200)];
        assert_eq!(choose(Scheduling::MinRtt, &paths, 551_000), Some(1));
        assert_eq!(choose(Scheduling::MinRtt, &paths, 549_000), None);
    }

    #[test]
    fn weights_say_who_gets_how_much() {
        let mut scheduler = Scheduling::Weighted.build();
        let paths = [Candidate { weight: 3, ..path(0, 10, 0, 20) }, path(1, 10, 0, 20)];
        let demand = Demand { len: 1000, peer_window: 1 << 30, peer_window_max: 1 << 30 };
        let mut counts = [0, 0];
        for _ in 0..400 {
            let id = scheduler.choose(&paths, &demand).unwrap();
            scheduler.on_sent(id, paths[id.index()].weight, 1000);
            counts[id.index()] += 1;
        }
        assert_eq!(counts, [300, 100]);
        let full = [Candidate { has_room: false, ..paths[0] }, paths[1]];
        assert_eq!(scheduler.choose(&full, &demand), None, "whose turn it is has no room");
    }

    #[test]
    fn a_backup_waits() {
        assert_eq!(choose(Scheduling::Backup, &[path(0, 10, 9, 50), path(1, 10, 0, 20)], 1 << 30), Some(0));
        assert_eq!(choose(Scheduling::Backup, &[path(0, 10, 10, 50), path(1, 10, 0, 20)], 1 << 30), None);
    }
}

//! Chooses the path for new data: the path selector of [multihoming-2010] sec. III.A.
//!
//! A scheduler gets the paths that may carry data, and chooses one or none. It is informed of the data sent, so that it can
//! count. It knows neither segments nor times, except RTTs. To add a scheduler, add its type and its line in [`Scheduling`].
//!
//! If the peer's buffer is too small for all windows, a slow path delays the others, whatever the scheduler does. The
//! [guard](crate::guard) in front of it excludes such paths.
//!
//! # Copies
//!
//! [`Scheduling::Redundant`] and [`Scheduling::Latency`] place new data as [`Scheduling::MinRtt`] does, and also say which segments
//! are sent twice ([`Copies`]). The copy is another entry of the scoreboard, on another path: see [`crate::recovery::scoreboard`].
//! It is *owed* from the moment when the original leaves, leaves as soon as its path has room, and is cancelled if the original
//! is acknowledged before. So the slower path never delays the faster one, and carries what it can.

use std::fmt;

use anabranch_units::Span;

use crate::path::{PathId, SLOTS_MAX};

/// How data is distributed over the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// In proportion to the congestion windows. Each path also gets that share of the peer's window ([multihoming-2010] sec.
    /// III). As in the paper, this is the only scheduler that spreads data without the guard: if the peer's buffer is small, a
    /// path that is ten times slower than another costs more than it carries.
    Window,
    /// The path with the least RTT among those with room.
    #[default]
    MinRtt,
    /// In proportion to configured weights, whatever the capacities are: the path that is slowest for its weight delays the
    /// others.
    Weighted,
    /// All data goes over the active path with the lowest identifier. The others are used when it fails.
    Backup,
    /// As [`Self::MinRtt`], and each segment is copied on another path. The first copy counts, so a loss or a stall on one path
    /// seldom delays anything. All paths together carry no more than the best one.
    Redundant,
    /// As [`Self::MinRtt`], and the last ten segments before the sender has nothing left to send are copied, as are datagrams: short messages are
    /// as safe as with [`Self::Redundant`], and the inside of a long transfer costs nothing.
    Latency,
}

impl Scheduling {
    /// Every scheduler, in order.
    pub const ALL: [Self; 6] =
        [Self::Window, Self::MinRtt, Self::Weighted, Self::Backup, Self::Redundant, Self::Latency];

    /// The name of the scheduler in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::MinRtt => "min_rtt",
            Self::Weighted => "weighted",
            Self::Backup => "backup",
            Self::Redundant => "redundant",
            Self::Latency => "latency",
        }
    }

    /// The scheduler with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheduling| scheduling.name() == name)
    }

    pub(crate) fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Window => Box::new(ByWindow),
            Self::MinRtt => Box::new(MinRtt { copies: Copies::None }),
            Self::Weighted => Box::new(Weighted::default()),
            Self::Backup => Box::new(Backup),
            Self::Redundant => Box::new(MinRtt { copies: Copies::Each }),
            Self::Latency => Box::new(MinRtt { copies: Copies::Tail }),
        }
    }
}

/// Chooses a path for each segment.
pub(crate) trait Scheduler: fmt::Debug + Send {
    /// The path for the next segment, among those with room; `None` to wait. `paths` is not empty.
    fn choose(&self, paths: &[Candidate], demand: &Demand) -> Option<PathId>;

    /// A new segment of `bytes` bytes was sent on a path of this weight.
    fn on_sent(&mut self, path: PathId, weight: u32, bytes: u64) {
        let _ = (path, weight, bytes);
    }

    /// Whether it must be informed of the data sent. The answer is constant.
    fn hears_sent(&self) -> bool {
        false
    }

    /// Which segments are sent on a second path, too. The answer is constant.
    fn copies(&self) -> Copies {
        Copies::None
    }

    /// Whether it may use several paths at a time.
    fn spreads(&self) -> bool {
        true
    }

    /// Whether the [guard](crate::guard) excludes paths.
    fn is_guarded(&self) -> bool {
        self.spreads()
    }

    /// A path may carry data from now on.
    fn on_path(&mut self, path: PathId) {
        let _ = path;
    }

    /// The guard has excluded `left_out`, but not `others`.
    fn on_left_out(&mut self, left_out: &[Candidate], others: &[Candidate]) {
        let _ = (left_out, others);
    }
}

/// The segments that are sent on a second path, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    None,
    Each,
    /// Datagrams, and segments behind which less than a tail waits.
    Tail,
}

impl Copies {
    /// Whether a segment is copied, behind which `waiting` bytes wait in segments of `mss` bytes.
    pub(crate) fn wants(self, is_datagram: bool, waiting: u64, mss: u64) -> bool {
        match self {
            Self::None => false,
            Self::Each => true,
            Self::Tail => is_datagram || waiting < TAIL * mss,
        }
    }
}

/// The segments of a tail: an initial window ([rfc-6928]), which is what a message can be long without being a transfer.
const TAIL: u64 = 10;

/// A path that may carry data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) id: PathId,
    /// The congestion window and the flight in bytes.
    pub(crate) window: f64,
    pub(crate) flight: u64,
    /// Bytes in flight that no ACK on another path has reported.
    pub(crate) flying: u64,
    pub(crate) rtt: Option<Span>,
    /// Set only if the guard is in use.
    pub(crate) rtt_min: Option<Span>,
    pub(crate) rtt_latest: Option<Span>,
    /// The largest recent delivery rate in bytes per second. Set only if the guard is in use.
    pub(crate) delivery_rate: Option<f64>,
    pub(crate) weight: u32,
    /// Whether the path's window and pacer release the segment.
    pub(crate) has_room: bool,
}

/// The segment to send, and the peer's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Demand {
    /// Bytes of the segment.
    pub(crate) len: u64,
    /// Bytes of unacknowledged data that the peer's window allows.
    pub(crate) peer_window: u64,
}

/// The path with the least RTT among those with room.
pub(crate) fn quickest(paths: &[Candidate]) -> Option<PathId> {
    let open = paths.iter().filter(|path| path.has_room);
    open.min_by_key(|path| path.rtt.unwrap_or(Span::MAX)).map(|path| path.id)
}

#[derive(Debug)]
struct ByWindow;

#[derive(Debug)]
struct MinRtt {
    copies: Copies,
}

#[derive(Debug, Default)]
struct Weighted {
    /// Bytes sent per weight, by path, in units small enough for any weight.
    served: [u128; SLOTS_MAX],
}

#[derive(Debug)]
struct Backup;

impl Scheduler for ByWindow {
    fn choose(&self, paths: &[Candidate], demand: &Demand) -> Option<PathId> {
        let sum: f64 = paths.iter().map(|path| path.window).sum();
        let after = |path: &Candidate| (path.flight + demand.len) as f64;
        // [multihoming-2010] sec. III: "divides the global advertised window among all its subflows (paths) proportional to their
        // congestion window sizes". A path always has room for one segment.
        let has_share =
            |path: &&Candidate| path.flight == 0 || after(path) <= demand.peer_window as f64 * path.window / sum;
        let open = paths.iter().filter(|path| path.has_room).filter(has_share);
        let filled = |path: &Candidate| after(path) / path.window;
        open.min_by(|a, b| filled(a).total_cmp(&filled(b))).map(|path| path.id)
    }

    fn is_guarded(&self) -> bool {
        false
    }
}

impl Scheduler for MinRtt {
    fn choose(&self, paths: &[Candidate], _demand: &Demand) -> Option<PathId> {
        quickest(paths)
    }

    fn copies(&self) -> Copies {
        self.copies
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

    fn hears_sent(&self) -> bool {
        true
    }

    /// A new path does not catch up on what it missed.
    fn on_path(&mut self, path: PathId) {
        self.served[path.index()] = self.served.into_iter().max().unwrap_or(0);
    }

    /// An excluded path does not catch up either. Otherwise the others would wait for it later.
    fn on_left_out(&mut self, left_out: &[Candidate], others: &[Candidate]) {
        let turn = others.iter().map(|path| self.served[path.id.index()]).min().unwrap_or(0);
        for path in left_out {
            let served = &mut self.served[path.id.index()];
            *served = turn.max(*served);
        }
    }
}

impl Scheduler for Backup {
    fn choose(&self, paths: &[Candidate], _demand: &Demand) -> Option<PathId> {
        let first = paths.iter().min_by_key(|path| path.id)?;
        first.has_room.then_some(first.id)
    }

    fn spreads(&self) -> bool {
        false
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
            flying: 1000 * flight,
            rtt: Some(Span::from_millis(rtt_ms)),
            has_room: flight < window,
            rtt_min: None,
            rtt_latest: None,
            delivery_rate: None,
            weight: 1,
        }
    }

    fn choose(scheduling: Scheduling, paths: &[Candidate], peer_window: u64) -> Option<usize> {
        let demand = Demand { len: 1000, peer_window };
        scheduling.build().choose(paths, &demand).map(PathId::index)
    }

    /// Forty segments over windows of 30 and 10, without acknowledgements.
    #[test]
    fn windows_are_filled_in_proportion() {
        let (scheduler, mut paths) = (Scheduling::Window.build(), [path(0, 30, 0, 50), path(1, 10, 0, 20)]);
        let demand = Demand { len: 1000, peer_window: 1 << 30 };
        for sent in 1..=20 {
            let id = scheduler.choose(&paths, &demand).unwrap();
            paths[id.index()].flight += 1000;
            if sent % 4 == 0 {
                assert_eq!(paths[0].flight, 3 * paths[1].flight, "after {sent}");
            }
        }
    }

    /// If the peer accepts eight segments, six go to the window of 30 and two to that of 10.
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

    #[test]
    fn weights_say_who_gets_how_much() {
        let mut scheduler = Scheduling::Weighted.build();
        let paths = [Candidate { weight: 3, ..path(0, 10, 0, 20) }, path(1, 10, 0, 20)];
        let demand = Demand { len: 1000, peer_window: 1 << 30 };
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

    /// Of two equal paths the second is excluded for a hundred segments. Afterwards it gets its half again, and no more.
    #[test]
    fn excluded_path_does_not_catch_up() {
        let mut scheduler = Scheduling::Weighted.build();
        let paths = [path(0, 10, 0, 20), path(1, 10, 0, 200)];
        let demand = Demand { len: 1000, peer_window: 1 << 30 };
        for _ in 0..100 {
            scheduler.on_left_out(&paths[1..], &paths[..1]);
            assert_eq!(scheduler.choose(&paths[..1], &demand), Some(PathId::FIRST));
            scheduler.on_sent(PathId::FIRST, 1, 1000);
        }
        let mut second = 0;
        for _ in 0..100 {
            let id = scheduler.choose(&paths, &demand).unwrap();
            scheduler.on_sent(id, 1, 1000);
            second += id.index();
        }
        assert!(second.abs_diff(50) <= 1, "{second}");
    }

    /// The last ten segments of 1000 bytes: behind the first of them nine wait.
    #[test]
    fn tail_of_ten_segments_is_copied() {
        let copies = |scheduling: Scheduling| scheduling.build().copies();
        let latency = copies(Scheduling::Latency);
        assert!(
            !latency.wants(false, 10_000, 1000) && latency.wants(false, 9999, 1000) && latency.wants(false, 0, 1000)
        );
        assert!(latency.wants(true, 1 << 40, 1000), "each datagram");
        assert!(copies(Scheduling::Redundant).wants(false, 1 << 40, 1000));
        for scheduling in [Scheduling::Window, Scheduling::MinRtt, Scheduling::Weighted, Scheduling::Backup] {
            assert_eq!(copies(scheduling), Copies::None);
        }
    }

    #[test]
    fn a_backup_waits() {
        assert_eq!(choose(Scheduling::Backup, &[path(0, 10, 9, 50), path(1, 10, 0, 20)], 1 << 30), Some(0));
        assert_eq!(choose(Scheduling::Backup, &[path(0, 10, 10, 50), path(1, 10, 0, 20)], 1 << 30), None);
    }
}

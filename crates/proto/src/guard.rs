//! The guard excludes slow paths when the peer's buffer is too small for them. It stands in front of every scheduler that spreads
//! data, except that of the paper.
//!
//! A segment on a slow path keeps everything sent after it in the peer's buffer until it arrives, and until the ACK has returned
//! on the fastest path. That takes B = (RTT of the slow path + RTT of the fastest path)/2. Meanwhile the faster paths continue to
//! send. If the buffer cannot hold that data, they stall until the slow segment arrives, and the lost time is never recovered. So
//! a slow path gets the part of the buffer that the faster paths leave:
//!
//! ```text
//! share  =  reach − B × (sum of the rates of faster paths) − bytes in flight on slower ones
//! a segment may be sent  if  it and the bytes in flight on its path fit into the share
//! ```
//!
//! Segments of a slow path are spaced to at most one share in a time B, because a burst would queue and block for longer. A
//! buffer that holds all windows is no limit: then the scheduler decides alone. If the buffer does not hold what the faster paths
//! carry in B, the slow path gets nothing. In between, all paths together carry reach/B, and no schedule can do better: in a time
//! B that ends when a segment of the slow path arrives, no more can be delivered than the buffer holds.
//!
//! *reach* is the usable part of the peer's window; the streams' credit may be smaller than the window. When a fast path stalls
//! because of a slow one, reach falls to slightly below the bytes in flight. It grows with the bytes sent: slowly if stalls are
//! regular, and faster the longer there was none. This matters because a stream begins with little credit and may have a thousand
//! times as much a second later.
//!
//! Citation: [blest-2016], which estimates how long a slow path would block before it sends there, and corrects the estimate if
//! the window was full nevertheless. Differs from it in: it uses rates instead of windows over RTTs; it handles more than two
//! paths; the slow path's own share is counted and spaced; the correction applies to the buffer.

use anabranch_units::{Span, Time};

use crate::path::{PathId, SLOTS_MAX};
use crate::scheduler::Candidate;

/// The limits of slow paths on the peer's buffer.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The usable bytes in flight, as far as known.
    reach: f64,
    /// `reach` at the last stall, and the bytes sent since.
    reach_at_stop: f64,
    sent: f64,
    /// A stall before this time is the same stall.
    known_until: Time,
    /// The spacing of each path.
    spacings: [Spacing; SLOTS_MAX],
    /// Whether any path is spaced.
    has_bounds: bool,
}

/// Upper bounds over all paths, cheaper than each path's share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// The least and the greatest RTT.
    shortest: Span,
    longest: Span,
    /// The sum of windows, or of bytes in flight where that is more.
    bytes: f64,
}

/// The spacing of segments on one slow path.
#[derive(Clone, Copy, Debug)]
struct Spacing {
    /// When the next segment may be sent.
    free_at: Time,
    /// The share that the spacing enforces; `None` without a limit.
    bound: Option<Share>,
}

/// The share of a slow path.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    /// The share in bytes of the peer's buffer.
    bytes: f64,
    /// The time in seconds for which each segment blocks the buffer.
    blocks: f64,
}

impl Guard {
    pub(crate) fn new() -> Self {
        let spacings = [Spacing { free_at: Time::ZERO, bound: None }; SLOTS_MAX];
        Self {
            reach: f64::INFINITY,
            reach_at_stop: f64::INFINITY,
            sent: 0.0,
            known_until: Time::ZERO,
            spacings,
            has_bounds: false,
        }
    }

    /// Whether all paths may send `len` bytes without any limit, because the buffer holds twice what they can have in it. A
    /// segment blocks for at most the longest RTT, and meanwhile each other path carries at most a window per shortest RTT.
    pub(crate) fn lets_all(&self, outlook: &Outlook, len: u64, window: u64) -> bool {
        // All values are below 2^63, and converting signed numbers is faster.
        let reach = self.reach.min(window.cast_signed() as f64);
        let [shortest, longest] =
            [outlook.shortest, outlook.longest].map(|rtt| rtt.ticks().max(1).cast_signed() as f64);
        !self.has_bounds && 2.0 * (outlook.bytes + len as f64) * longest <= reach * shortest
    }

    /// Moves the paths that may send `len` bytes to the front; returns their number. `window` is the peer's window above the
    /// acknowledged offset. The fastest path is always among them.
    pub(crate) fn keep(&mut self, now: Time, paths: &mut [Candidate], len: u64, window: u64) -> usize {
        let reach = self.reach.min(window as f64);
        let mut may = [true; SLOTS_MAX];
        for (may, path) in may.iter_mut().zip(paths.iter()) {
            let Some(share) = Share::of(path, paths, reach) else { continue };
            let spacing = &mut self.spacings[path.id.index()];
            spacing.bound = share.is_bound(path.window).then_some(share);
            // If the faster paths need most of the buffer, a scheduler must not wait for a slow path that has no room.
            let is_ready = path.has_room || share.bytes >= reach / 2.0;
            let is_due = spacing.bound.is_none() || spacing.free_at <= now;
            *may = (path.flying + len) as f64 <= share.bytes && is_ready && is_due;
        }
        self.has_bounds = self.spacings.iter().any(|spacing| spacing.bound.is_some());
        let mut kept = 0;
        for index in (0..paths.len()).filter(|&index| may[index]) {
            if kept < index {
                paths.swap(kept, index);
            }
            kept += 1;
        }
        kept
    }

    /// New data of `bytes` bytes was sent on a path.
    pub(crate) fn on_sent(&mut self, now: Time, path: PathId, bytes: u64) {
        // Before the first stall, reach is infinite and the bytes sent are not counted.
        if self.reach < f64::INFINITY {
            self.sent += bytes as f64;
            let quiet = self.sent / (QUIET * self.reach_at_stop);
            self.reach += bytes as f64 / RISE * (1.0 + quiet * quiet);
        }
        if !self.has_bounds {
            return;
        }
        let Spacing { free_at, bound } = &mut self.spacings[path.index()];
        if let Some(share) = bound {
            // The delay for which it may make up.
            let slack = Span::from_secs_f64(share.blocks / SLACK_PART);
            let latest = Time::ZERO + now.since(Time::ZERO).saturating_sub(slack);
            // Seconds per byte.
            let pace = share.blocks / share.bytes;
            *free_at = (*free_at).max(latest).saturating_add(Span::from_secs_f64(pace * bytes as f64));
        }
    }

    /// A path stalls: the peer's window is full until data in flight on a slower path, with this RTT, arrives. `out` bytes are in
    /// flight.
    pub(crate) fn on_stop(&mut self, now: Time, out: u64, rtt: Span) {
        if now >= self.known_until {
            self.known_until = now.saturating_add(rtt);
            self.reach = self.reach.min(out as f64) * (1.0 - 1.0 / FALL);
            (self.reach_at_stop, self.sent) = (self.reach, 0.0);
        }
    }
}

impl Share {
    /// `None` if nothing limits the path: no other path is faster, or their RTTs are unknown.
    fn of(path: &Candidate, paths: &[Candidate], reach: f64) -> Option<Self> {
        let rtt = path.rtt?;
        let faster = |other: &Candidate| other.rtt.is_some_and(|theirs| theirs < rtt);
        let back = paths.iter().filter(|other| faster(other)).filter_map(|other| other.rtt_min.or(other.rtt)).min()?;
        // On an empty path the latest RTT, measured with a queue, no longer holds.
        let there = if path.flight == 0 { path.rtt_min } else { path.rtt_latest };
        let blocks = (there.map_or(rtt, |there| there.min(rtt)) / 2 + back / 2).as_secs_f64();
        let taken =
            |other: &Candidate| if faster(other) { other.delivery_rate() * blocks } else { other.flying as f64 };
        let others = paths.iter().filter(|other| other.id != path.id).map(taken).sum::<f64>();
        Some(Self { bytes: reach - others, blocks })
    }

    /// Whether the share limits a path with this window.
    fn is_bound(&self, window: f64) -> bool {
        0.0 < self.bytes && self.bytes < window && self.blocks > 0.0
    }
}

impl Outlook {
    pub(crate) const NONE: Self = Self { shortest: Span::MAX, longest: Span::ZERO, bytes: 0.0 };

    /// Adds a path.
    pub(crate) fn add(&mut self, window: f64, flying: u64, rtt: Option<Span>, rtt_min: Option<Span>) {
        self.bytes += window.max(flying.cast_signed() as f64);
        if let Some(rtt) = rtt {
            let least = rtt_min.unwrap_or(rtt);
            self.shortest = self.shortest.min(rtt).min(least);
            self.longest = self.longest.max(rtt).max(least);
        }
    }
}

impl Candidate {
    /// The path's rate in bytes per second: its best delivery rate, limited by its current window.
    fn delivery_rate(&self) -> f64 {
        let Some(rtt) = self.rtt_min.or(self.rtt) else { return 0.0 };
        // An RTT is at least a nanosecond.
        let most = self.window / rtt.as_secs_f64().max(1e-9);
        self.delivery_rate.map_or(most, |rate| rate.min(most))
    }
}

/// A stall reduces reach by a 64th, about one segment in fifty. The next stall is then about as short, and the average loss while
/// reach grows back is below one percent.
const FALL: f64 = 64.0;

/// The bytes sent per byte of growth: reach recovers from a stall after four buffers. So stalls are rare, and a larger buffer is
/// found within a few seconds.
const RISE: f64 = 256.0;

/// After this many buffers without a stall, reach grows twice as fast, and then with the square of their number. This is four
/// times the recovery from a stall, so it hardly matters while stalls are regular. A buffer thirty times as large is found after
/// 180 buffers of the old size.
const QUIET: f64 = 16.0;

/// A sixteenth of the blocking time. ACKs of other paths, which trigger sending, come in bursts; the queue of such a burst blocks
/// for at most this much longer.
const SLACK_PART: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    /// Bytes in thousands, RTTs in milliseconds.
    fn path(index: usize, window: u64, flying: u64, rtt_ms: u64) -> Candidate {
        let rtt = Some(Span::from_millis(rtt_ms));
        let (window, flight) = (1000.0 * window as f64, 1000 * flying);
        Candidate {
            id: PathId::new(index),
            window,
            flight,
            flying: flight,
            rtt,
            rtt_min: rtt,
            rtt_latest: rtt,
            delivery_rate: Some(window / (rtt_ms as f64 / 1e3)),
            weight: 1,
            has_room: true,
        }
    }

    fn kept(guard: &mut Guard, now: Time, paths: &[Candidate], window: u64) -> Vec<usize> {
        let mut paths = paths.to_vec();
        let count = guard.keep(now, &mut paths, 1000, window);
        paths[..count].iter().map(|path| path.id.index()).collect()
    }

    /// The fast path sends 100 kB in 20 ms. A segment on the slow path blocks for 110 ms, which is 550 kB. The slow path's own
    /// share is 11 kB.
    #[test]
    fn a_slow_path_gets_what_the_fast_one_leaves() {
        let paths = [path(0, 100, 100, 20), path(1, 500, 10, 200)];
        assert_eq!(kept(&mut Guard::new(), at(0), &paths, 561_000), [0, 1]);
        assert_eq!(kept(&mut Guard::new(), at(0), &paths, 560_999), [0]);
    }

    /// Of three paths at 20, 100 and 200 ms, the last one blocks the others for 110 ms: 550 kB and 110 kB.
    #[test]
    fn the_slowest_of_three_gets_what_both_others_leave() {
        let paths = [path(0, 100, 100, 20), path(1, 100, 100, 100), path(2, 500, 10, 200)];
        assert_eq!(kept(&mut Guard::new(), at(0), &paths, 671_000), [0, 1, 2]);
        assert_eq!(kept(&mut Guard::new(), at(0), &paths, 670_999), [0, 1]);
    }

    /// 50 kB are left for 110 ms: a segment of 1000 B every 2.2 ms, ten in 22 ms. At first a sixteenth of 110 ms may be sent at
    /// once.
    #[test]
    fn remaining_departures_are_spaced() {
        let (mut guard, paths) = (Guard::new(), [path(0, 100, 100, 20), path(1, 500, 0, 200)]);
        let mut count = |now| {
            let mut count = 0_u64;
            while kept(&mut guard, now, &paths, 600_000).contains(&1) {
                guard.on_sent(now, PathId::new(1), 1000);
                count += 1;
            }
            count
        };
        assert_eq!((count(at(1000)), count(at(1001))), (4, 0));
        assert_eq!((1002..=1022).map(|ms| count(at(ms))).sum::<u64>(), 10);
    }

    /// A stall at 560 kB, although the window is 1 MB: 550 kB plus less than a 64th leave no room for a slow path until some
    /// buffers have been sent.
    #[test]
    fn a_stop_says_what_can_be_out() {
        let (mut guard, paths) = (Guard::new(), [path(0, 100, 100, 20), path(1, 500, 0, 200)]);
        assert_eq!(kept(&mut guard, at(0), &paths, 1_000_000), [0, 1]);
        guard.on_stop(at(0), 558_000, Span::from_millis(200));
        assert_eq!(kept(&mut guard, at(0), &paths, 1_000_000), [0]);
        guard.on_sent(at(0), PathId::FIRST, 10_000_000);
        assert_eq!(kept(&mut guard, at(0), &paths, 1_000_000), [0, 1]);
    }

    /// A stall at 30 kB, then no more. After `x` times that was sent, reach is 1 + x/256 + x³/(3 × 256 × 16²) of it: 32 times at
    /// x = 182.4.
    #[test]
    fn a_buffer_that_has_grown_is_found() {
        let (mut guard, paths) = (Guard::new(), [path(0, 100, 100, 20), path(1, 500, 0, 200)]);
        guard.on_stop(at(0), 30_477, Span::from_millis(200));
        let room = |guard: &mut Guard| kept(guard, at(0), &paths, 10_000_000).len() == 2;
        // The fast path needs 550 kB, the segment 1 kB: 551/30 = 18.4 times the reach.
        let sent = (1_u64..).find(|_| {
            guard.on_sent(at(0), PathId::FIRST, 1000);
            room(&mut guard)
        });
        let times = sent.unwrap() as f64 / 30.0;
        let reach = 1.0 + times / 256.0 + times.powi(3) / (3.0 * 256.0 * 256.0);
        assert!((reach - 551.0 / 30.0).abs() < 0.1, "{times} {reach}");
    }

    /// An empty slow path: its queue has drained, so its minimum RTT counts.
    #[test]
    fn a_slow_path_that_is_empty_is_as_fast_as_it_ever_was() {
        let queued = |flying| {
            let ms = |ms| Some(Span::from_millis(ms));
            Candidate { rtt: ms(300), rtt_latest: ms(300), ..path(1, 500, flying, 200) }
        };
        let fast = path(0, 100, 100, 20);
        assert_eq!(kept(&mut Guard::new(), at(0), &[fast, queued(1)], 700_000), [0]);
        assert_eq!(kept(&mut Guard::new(), at(0), &[fast, queued(0)], 700_000), [0, 1]);
    }

    /// The quick check agrees with the shares: no path is excluded, and nothing is spaced.
    #[test]
    fn guard_that_admits_all_admits_each() {
        let mut counts = [0, 0];
        for window in (0..14).map(|power| 100_000 << power) {
            for (flying, rtt_ms) in [(0, 20), (10, 21), (100, 40), (600, 200), (90, 2000)] {
                let mut paths = [path(0, 100, 100, 20), path(1, 500, flying, rtt_ms), path(2, 50, 50, 30)];
                paths[1].has_room = flying == 0;
                let mut outlook = Outlook::NONE;
                paths.iter().for_each(|path| outlook.add(path.window, path.flying, path.rtt, path.rtt_min));
                let mut guard = Guard::new();
                let lets_all = guard.lets_all(&outlook, 1000, window);
                let count = guard.keep(at(0), &mut paths, 1000, window);
                assert!(!lets_all || count == 3 && !guard.has_bounds, "{window} {flying} {rtt_ms}");
                counts[usize::from(lets_all)] += 1;
            }
        }
        assert!(counts.into_iter().all(|count| count > 10), "{counts:?}");
    }
}

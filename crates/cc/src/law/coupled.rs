//! Which other paths of a connection wait in this path's queue, and what part of their rates is this path's.
//!
//! ```text
//! share = x_r / Σ x_p            over this path and those that share its queue, x = w/RTT
//! path p shares the queue of r:  their queueing delays, RTT − least RTT, differ by at most an eighth of the larger, or half a millisecond, for 8 rounds
//! and no longer after:           8 rounds in which they differ by more
//! ```
//!
//! Citation: ours, in the manner of wvegas-2012 and rfc-6356 sec. 2 (goal 2).
//!
//! Limits. Two links of the same rate without other traffic have equal queueing delays, too, and count as one link. A shared queue is not recognised if the base
//! RTT of a path is wrong, as that of a late comer.

use super::lia;
use crate::controller::PathSummary;

/// The other paths, each with the recent rounds in which its queueing delay was like this path's.
#[derive(Clone, Debug, Default)]
pub(super) struct Coupled {
    others: Vec<Other>,
}

/// Another path.
#[derive(Clone, Copy, Debug)]
struct Other {
    path: u32,
    /// From 0, never alike, to [`ROUNDS`], always alike.
    alike: u32,
    /// Whether it shares a bottleneck with this path.
    meets: bool,
}

impl Coupled {
    /// The share of this path after a round; `None` if its own rate is not known.
    pub(super) fn share(&mut self, group: &[PathSummary]) -> Option<f64> {
        let own = group.iter().find(|path| path.own)?;
        if let Some(queueing) = queueing(own) {
            self.compare(queueing, group);
        }
        let rate = |of: &PathSummary| lia::known(std::slice::from_ref(of)).map(|(window, rtt)| window / rtt).next();
        let meets = |path: &PathSummary| self.others.iter().any(|other| other.path == path.path && other.meets);
        let shared: f64 = group.iter().filter(|path| path.own || meets(path)).filter_map(rate).sum();
        Some(rate(own)? / shared)
    }

    /// Compares the queueing delays of the other paths with this path's, `own` seconds.
    fn compare(&mut self, own: f64, group: &[PathSummary]) {
        self.others.retain(|other| group.iter().any(|path| path.path == other.path));
        for path in group.iter().filter(|path| !path.own) {
            let Some(queueing) = queueing(path) else { continue };
            let index = self.others.iter().position(|other| other.path == path.path).unwrap_or_else(|| {
                self.others.push(Other { path: path.path, alike: 0, meets: false });
                self.others.len() - 1
            });
            let other = &mut self.others[index];
            let tolerance = (own.max(queueing) / 8.0).max(TOLERANCE_S);
            if (own - queueing).abs() <= tolerance {
                other.alike = (other.alike + 1).min(ROUNDS);
            } else {
                other.alike = other.alike.saturating_sub(1);
            }
            other.meets = if other.meets { other.alike > 0 } else { other.alike == ROUNDS };
        }
    }
}

/// The queueing delay of a path in seconds, if it is known.
fn queueing(path: &PathSummary) -> Option<f64> {
    Some(path.rtt_smoothed?.saturating_sub(path.rtt_min?).as_secs_f64())
}

/// Rounds that must agree: the smoothed RTT follows a change within about as many.
const ROUNDS: u32 = 8;

/// The difference of queueing delays that clocks and bursts may cause.
const TOLERANCE_S: f64 = 0.0005;

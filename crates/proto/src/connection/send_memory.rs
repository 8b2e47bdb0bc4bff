//! How much memory a sender spends on what it has sent.
//!
//! A peer says how much it takes, and acknowledges when it likes: with a window of a gigabyte, and all acknowledged but the first segment,
//! it would have a gigabyte kept for it. So what is not acknowledged cumulatively has limits of our own:
//!
//! * what its paths send in a few round trips of the slowest, which is how long repairs take that are lost as well; so it follows the
//!   paths by itself;
//! * whatever the windows say, the part of [`Config::send_memory`] that is not for what waits;
//! * nothing new at all while the lowest segment has been sent [`TRANSMISSIONS_MAX`] times and is still missing.

use anabranch_units::Span;

use super::Path;
use super::paths::Table;
use crate::config::Config;

/// How much memory a sender may spend, and how much it is allowed now.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendMemory {
    /// Bytes that what is not acknowledged may take, as it was looked up last, and at most.
    unacked_max: u64,
    most: u64,
}

impl SendMemory {
    pub(super) fn new(config: &Config) -> Self {
        Self { unacked_max: 0, most: config.send_memory - waiting_max(config) }
    }

    /// Whether more than `memory` may be kept until it is acknowledged, the lowest segment of which has been sent `transmissions` times. The limit is
    /// looked up when the last one is reached: it is a matter of round trips, and asked for each segment. `segment` is what windows count in.
    #[inline]
    pub(super) fn admits(
        &mut self,
        memory: u64,
        transmissions: impl FnOnce() -> u32,
        paths: &Table,
        segment: u32,
    ) -> bool {
        if memory <= MEMORY_LEAST {
            self.unacked_max = MEMORY_LEAST.min(self.most);
        } else if transmissions() >= TRANSMISSIONS_MAX {
            return false;
        } else if memory >= self.unacked_max {
            self.unacked_max = wanted(paths, segment).max(MEMORY_LEAST).min(self.most);
        }
        memory < self.unacked_max
    }

    /// Whether there was no more room, as it was found last.
    pub(super) fn was_full(&self, memory: u64, transmissions: impl FnOnce() -> u32) -> bool {
        let is_full = memory >= self.unacked_max && memory > 0;
        is_full || memory > MEMORY_LEAST && transmissions() >= TRANSMISSIONS_MAX
    }
}

/// What the paths send in a few round trips of the slowest: while a segment is on its way there, the others send window after window.
fn wanted(paths: &Table, segment: u32) -> u64 {
    let rtt = |path: &Path| path.control.rtt_smoothed().map_or(0.0, |rtt| rtt.as_secs_f64());
    let longest = paths.iter().map(|(_, path)| rtt(path)).fold(0.0, f64::max);
    let rounds = |path: &Path| if rtt(path) > 0.0 { longest / rtt(path) } else { 1.0 };
    let windows: f64 = paths.iter().map(|(_, path)| path.control.window() * rounds(path)).sum();
    (windows * f64::from(segment) * WINDOWS) as u64
}

/// How much may wait on a stream: what the paths carry while an application sleeps.
pub(super) fn carried_asleep(paths: &Table) -> u64 {
    let rate: f64 = paths.iter().filter_map(|(_, path)| path.control.delivery_rate()).sum();
    (rate * ASLEEP.as_secs_f64()) as u64
}

/// Bytes that may wait to be sent on all streams together.
pub(super) fn waiting_max(config: &Config) -> u64 {
    config.send_memory / WAITING_PART
}

/// What waits need not be more than what refills a path while the application sleeps; what has been sent waits for round trips.
const WAITING_PART: u64 = 4;

/// A machine that is not idle leaves an application waiting for some milliseconds now and then.
const ASLEEP: Span = Span::from_millis(10);

/// A segment that is lost, and its first repairs as well, has four windows sent after it. An entry takes about an eighth of a full segment,
/// for which there is room as well.
const WINDOWS: f64 = 5.0;

/// A limit below this is not worth a thought.
const MEMORY_LEAST: u64 = 1 << 20;

/// With a tenth of all segments lost one in a million is sent so often; it then delays others for as long as it is missing.
const TRANSMISSIONS_MAX: u32 = 7;

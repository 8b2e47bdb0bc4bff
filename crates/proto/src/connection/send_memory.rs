//! Limits the memory for sent data.
//!
//! A malicious peer could announce a window of a gigabyte and acknowledge all but the first segment, so that the sender holds a
//! gigabyte. So data above the cumulative acknowledgement is limited:
//! * to what its paths send in a few round trips of the slowest, the time for retransmissions that are lost as well; this limit
//!   follows the paths;
//! * to the part of [`Config::send_memory`] that is not for waiting data, whatever the windows are;
//! * to nothing new while the lowest segment has been sent [`TRANSMISSIONS_MAX`] times and is still missing.

use anabranch_units::Span;

use super::Path;
use super::paths::Table;
use crate::config::Config;
use crate::recovery::scoreboard::Kept;

/// The memory limit of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendMemory {
    /// The present limit on the weight of unacknowledged data, as the paths are.
    weight_max: u64,
    /// The limit on its memory.
    most: u64,
}

impl SendMemory {
    pub(super) fn new(config: &Config) -> Self {
        Self { weight_max: 0, most: config.send_memory - waiting_max(config) }
    }

    /// Whether more than what is `kept` may be unacknowledged; the lowest segment has been sent `transmissions` times. The limit is
    /// recomputed only when it is reached, since this runs for each segment. `segment` is the unit of windows in bytes.
    #[inline]
    pub(super) fn admits(
        &mut self,
        kept: Kept,
        transmissions: impl FnOnce() -> u32,
        paths: &Table,
        segment: u32,
    ) -> bool {
        let Kept { weight, memory } = kept;
        if weight <= WEIGHT_LEAST {
            self.weight_max = WEIGHT_LEAST;
        } else if transmissions() >= TRANSMISSIONS_MAX {
            return false;
        } else if weight >= self.weight_max {
            self.weight_max = wanted(paths, segment).max(WEIGHT_LEAST);
        }
        weight < self.weight_max && memory < self.most
    }

    /// Whether the memory was full at the last check.
    pub(super) fn was_full(&self, kept: Kept, transmissions: impl FnOnce() -> u32) -> bool {
        let Kept { weight, memory } = kept;
        let is_full = weight > 0 && (weight >= self.weight_max || memory >= self.most);
        is_full || weight > WEIGHT_LEAST && transmissions() >= TRANSMISSIONS_MAX
    }
}

/// The data that the paths send in a few round trips of the slowest path: while a segment travels there, the other paths send
/// window after window.
fn wanted(paths: &Table, segment: u32) -> u64 {
    let rtt = |path: &Path| path.control.rtt_smoothed().map_or(0.0, |rtt| rtt.as_secs_f64());
    let longest = paths.iter().map(|(_, path)| rtt(path)).fold(0.0, f64::max);
    let rounds = |path: &Path| if rtt(path) > 0.0 { longest / rtt(path) } else { 1.0 };
    let windows: f64 = paths.iter().map(|(_, path)| path.control.window() * rounds(path)).sum();
    (windows * f64::from(segment) * WINDOWS) as u64
}

/// The limit of waiting data on a stream: what the paths carry while an application sleeps.
pub(super) fn carried_asleep(paths: &Table) -> u64 {
    let rate: f64 = paths.iter().filter_map(|(_, path)| path.control.delivery_rate()).sum();
    (rate * ASLEEP.as_secs_f64()) as u64
}

/// Bytes that may wait to be sent on all streams together.
pub(super) fn waiting_max(config: &Config) -> u64 {
    config.send_memory / WAITING_PART
}

/// Waiting data only has to refill a path while the application sleeps; sent data is kept for round trips.
const WAITING_PART: u64 = 4;

/// A busy machine delays an application by some milliseconds now and then.
const ASLEEP: Span = Span::from_millis(10);

/// While a segment and its first retransmissions are lost, four windows are sent after it. What entries weigh, a fifteenth of a full
/// segment each, is included.
const WINDOWS: f64 = 5.0;

/// Below this a limit is not worth checking.
const WEIGHT_LEAST: u64 = 1 << 20;

/// At 10 % loss one segment in a million is sent this often; the sender then pauses until it arrives.
const TRANSMISSIONS_MAX: u32 = 7;

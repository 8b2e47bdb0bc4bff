//! Limits the memory for sent data.
//!
//! A malicious peer could announce a window of a gigabyte and acknowledge all but the first segment; the sender would then hold a
//! gigabyte. So unacknowledged data is limited in three ways:
//! * to what the paths send in a few round trips of the slowest path, which leaves time for lost retransmissions; this limit
//!   adapts to the paths;
//! * to the part of [`Config::send_memory`] that is not for waiting data, whatever the windows are;
//! * no new data is sent while the lowest segment has been sent [`TRANSMISSIONS_MAX`] times and is still missing.

use anabranch_units::Span;

use super::Path;
use super::paths::Table;
use crate::config::Config;
use crate::recovery::scoreboard::Kept;

/// The memory limit of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendMemory {
    /// The current limit on the weight of unacknowledged data; it depends on the paths.
    weight_max: u64,
    /// The limit on the memory of unacknowledged data.
    most: u64,
}

impl SendMemory {
    pub(super) fn new(config: &Config) -> Self {
        Self { weight_max: 0, most: config.send_memory - waiting_max(config) }
    }

    /// Whether more data than `kept` may be unacknowledged. The lowest segment has been sent `transmissions` times; `segment` is
    /// the unit of windows in bytes. This runs for each segment, so the limit is recomputed only when it is reached.
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
}

/// The bytes that the paths send in a few round trips of the slowest path. While a segment is on the slowest path, the other
/// paths send several windows.
fn wanted(paths: &Table, segment: u32) -> u64 {
    let rtt = |path: &Path| path.control.rtt_smoothed().map_or(0.0, |rtt| rtt.as_secs_f64());
    let longest = paths.iter().map(|(_, path)| rtt(path)).fold(0.0, f64::max);
    let rounds = |path: &Path| if rtt(path) > 0.0 { longest / rtt(path) } else { 1.0 };
    let windows: f64 = paths.iter().map(|(_, path)| path.control.window() * rounds(path)).sum();
    (windows * f64::from(segment) * WINDOWS) as u64
}

/// The limit on waiting data of a stream: what the paths carry while the application is not scheduled.
pub(super) fn carried_asleep(paths: &Table) -> u64 {
    let rate: f64 = paths.iter().filter_map(|(_, path)| path.control.delivery_rate()).sum();
    (rate * ASLEEP.as_secs_f64()) as u64
}

/// Bytes that may wait to be sent on all streams together.
pub(super) fn waiting_max(config: &Config) -> u64 {
    config.send_memory / WAITING_PART
}

/// Waiting data only has to fill the paths while the application is not scheduled; sent data is kept for several round trips.
const WAITING_PART: u64 = 4;

/// A busy machine now and then delays an application by some milliseconds.
const ASLEEP: Span = Span::from_millis(10);

/// While a segment and its first retransmissions are lost, four windows are sent after it. The weight of entries, a fifteenth of
/// a full segment each, is included.
const WINDOWS: f64 = 5.0;

/// Below this weight the number of transmissions is not checked.
const WEIGHT_LEAST: u64 = 1 << 20;

/// At 10 % loss, one segment in a million is sent this often. The sender then pauses until it arrives.
const TRANSMISSIONS_MAX: u32 = 7;

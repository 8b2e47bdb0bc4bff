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

use super::{Connection, Path};
use crate::config::Config;
use crate::payload::Payload;

impl<P: Payload> Connection<P> {
    /// Whether more may be sent that is to be kept until it is acknowledged. The limit is looked up when the last one is reached: it is a
    /// matter of round trips, and asked for each segment.
    pub(super) fn may_keep_more(&mut self) -> bool {
        let memory = self.board.memory();
        if memory <= MEMORY_LEAST {
            self.unacked_max = MEMORY_LEAST.min(unacked_max(&self.config));
        } else if self.board.front_transmissions() >= TRANSMISSIONS_MAX {
            return false;
        } else if memory >= self.unacked_max {
            self.unacked_max = self.wanted().max(MEMORY_LEAST).min(unacked_max(&self.config));
        }
        memory < self.unacked_max
    }

    /// An application wrote more than may wait on a stream. Whether from now on more may: what the paths carry while it sleeps.
    pub(super) fn tune_send_buffer(&mut self) -> bool {
        let (limit, max) = (self.outbound.limit(), self.config.send_buffer_max);
        if limit >= max {
            return false;
        }
        let rate: f64 = self.paths.iter().filter_map(|(_, path)| path.control.delivery_rate()).sum();
        let wanted = ((rate * ASLEEP.as_secs_f64()) as u64).min(max);
        let is_more = wanted > limit;
        if is_more {
            self.outbound.set_limit(wanted);
        }
        is_more
    }

    /// Whether there was no more room for another segment, as it was found last.
    pub(super) fn keeps_all_it_may(&self) -> bool {
        let memory = self.board.memory();
        let is_full = memory >= self.unacked_max && memory > 0;
        is_full || memory > MEMORY_LEAST && self.board.front_transmissions() >= TRANSMISSIONS_MAX
    }

    /// What the paths send in a few round trips of the slowest: while a segment is on its way there, the others send window after window.
    fn wanted(&self) -> u64 {
        let rtt = |path: &Path| path.control.rtt_smoothed().map_or(0.0, |rtt| rtt.as_secs_f64());
        let longest = self.paths.iter().map(|(_, path)| rtt(path)).fold(0.0, f64::max);
        let rounds = |path: &Path| if rtt(path) > 0.0 { longest / rtt(path) } else { 1.0 };
        let windows: f64 = self.paths.iter().map(|(_, path)| path.control.window() * rounds(path)).sum();
        (windows * f64::from(self.peer.segment) * WINDOWS) as u64
    }
}

/// Bytes that may wait to be sent on all streams together.
pub(super) fn waiting_max(config: &Config) -> u64 {
    config.send_memory / WAITING_PART
}

fn unacked_max(config: &Config) -> u64 {
    config.send_memory - waiting_max(config)
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

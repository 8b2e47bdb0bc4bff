//! Timeouts, heartbeats, and the handling of a destination that does not answer (RFC 4960, section 8).
//!
//! Quirks of ns-2:
//! * An unanswered heartbeat doubles the RTO and counts as an error, like unanswered data.
//! * To "never" change the primary destination, ns-2 stores -1 as an unsigned number but compares it as a signed one, and every
//!   number of errors is larger. So the first timeout makes the current destination the primary one, and after a failover nothing
//!   leads back.
//! * A window that is idle for one RTO is halved, down to 4 packets; a window of 3 packets grows to 4. Idle means that nothing
//!   was *sent*: a full window without SACKs counts as idle, too.

use super::config::Dormant;
use super::destination::Status;
use super::endpoint::Endpoint;
use super::packet::{Chunk, Heartbeat};
use super::retransmission::WINDOW_FLOOR;
use super::timers::Timer;

impl Endpoint {
    /// The retransmission timer of a destination has fired.
    pub(super) fn on_data_timeout(&mut self, destination: usize) {
        let is_cmt = self.config.cmt().is_some();
        let packet = self.config.room() as i32;
        let floor = packet * if is_cmt { self.config.window_floor as i32 } else { WINDOW_FLOOR };
        let it = &mut self.destinations[destination];
        it.is_timer_running = false;
        if is_cmt || it.window > packet {
            it.halve(floor);
            it.window = packet;
        }
        it.is_measuring = false;
        self.timers.cancel(Timer::Idle(destination));
        if !self.count_error(destination) {
            return;
        }
        self.retransmit_timed_out(destination);
        if self.destinations[destination].status == Status::Inactive && self.config.heartbeat_s.is_some() {
            self.send_heartbeat(destination);
        }
    }

    /// A heartbeat was not answered in time.
    pub(super) fn on_heartbeat_timeout(&mut self, destination: usize) {
        if !self.count_error(destination) {
            return;
        }
        let is_unconfirmed = self.destinations[destination].status == Status::Unconfirmed;
        if self.config.heartbeat_s.is_some() || is_unconfirmed {
            self.send_heartbeat(destination);
        }
    }

    /// A heartbeat was answered.
    pub(super) fn on_heartbeat_ack(&mut self, destination: usize, sent_s: f64) {
        self.association_errors = 0;
        let now = self.clock.seconds();
        let it = &mut self.destinations[destination];
        it.status = Status::Active;
        it.errors = 0;
        it.rto.sample(now - sent_s);
        self.timers.cancel(Timer::HeartbeatAck(destination));
        self.return_to_primary(destination);
    }

    /// The heartbeat timer is due: sends a heartbeat to the destination that has been idle longest, if it was idle since this
    /// timer was set.
    pub(super) fn on_heartbeat_due(&mut self) {
        let idle = |it: usize| self.destinations[it].idle_since;
        let longest =
            (1..self.destinations.len()).fold(0, |longest, it| if idle(it) < idle(longest) { it } else { longest });
        if idle(longest) <= self.heartbeat_since {
            self.send_heartbeat(longest);
        }
        self.set_heartbeat_timer(longest);
    }

    /// Starts to watch for idle destinations.
    pub(super) fn watch_idle(&mut self) {
        if self.config.heartbeat_s.is_some() {
            self.set_heartbeat_timer(self.primary);
            let now = self.clock.seconds();
            self.destinations.iter_mut().for_each(|it| it.idle_since = now);
        }
    }

    pub(super) fn send_heartbeat(&mut self, destination: usize) {
        let sent_s = self.clock.seconds();
        self.emit(destination, vec![Chunk::Heartbeat(Heartbeat { sent_s, destination: destination as u8 })]);
        let it = &mut self.destinations[destination];
        it.idle_since = sent_s;
        self.timers.set(Timer::HeartbeatAck(destination), &self.clock, it.rto.timeout_s());
    }

    /// Called when nothing was sent to a destination for one RTO.
    pub(super) fn on_idle(&mut self, destination: usize) {
        let packet = self.config.room() as i32;
        let it = &mut self.destinations[destination];
        if it.window > self.config.window_floor as i32 * packet {
            it.window = (it.window / 2).max(WINDOW_FLOOR * packet);
        }
        self.timers.set(Timer::Idle(destination), &self.clock, it.rto.timeout_s());
    }

    /// The primary destination is alive again: new data goes there.
    pub(super) fn return_to_primary(&mut self, destination: usize) {
        if destination == self.primary {
            self.current = self.primary;
        }
    }

    /// The next destination that has not failed. If all have failed, the configured one (`GetNextDest`).
    pub(super) fn next_destination(&self, destination: usize) -> usize {
        let count = self.destinations.len();
        let is_alive = |it: &usize| self.destinations[*it].status != Status::Inactive;
        let others = (destination + 1..count).chain(0..=destination);
        others.clone().find(is_alive).unwrap_or(match self.config.dormant {
            Dormant::Hop => (destination + 1) % count,
            Dormant::Primary => self.primary,
            Dormant::Last => destination,
        })
    }

    /// Counts one more consecutive error. Returns whether the association stays open.
    fn count_error(&mut self, destination: usize) -> bool {
        self.counters.timeouts += 1;
        let it = &mut self.destinations[destination];
        it.rto.back_off();
        it.errors += 1;
        self.counters.timeouts_in_row_max = self.counters.timeouts_in_row_max.max(it.errors);
        if it.status == Status::Active {
            self.association_errors += 1;
            if it.errors > self.config.path_errors_max {
                it.status = Status::Inactive;
                if destination == self.current {
                    self.current = self.next_destination(destination);
                }
            }
            if self.association_errors > self.config.association_errors_max {
                self.close();
                return false;
            }
        }
        if destination == self.primary {
            self.primary = self.current;
        }
        true
    }

    fn set_heartbeat_timer(&mut self, destination: usize) {
        let Some(interval) = self.config.heartbeat_s else { return };
        let rto = self.destinations[destination].rto.timeout_s();
        // RFC 4960, section 8.3: jitter of plus or minus half an RTO.
        let delay = rto + f64::from(interval) + rto * self.random.uniform() - rto / 2.0;
        self.timers.set(Timer::Heartbeat, &self.clock, delay);
        self.heartbeat_since = self.clock.seconds();
    }
}

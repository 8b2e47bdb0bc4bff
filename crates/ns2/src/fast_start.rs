//! `Agent/TCP/FS`: Tahoe with fast start (Padmanabhan & Katz 1998).
//!
//! Tahoe: the third duplicate ACK halves `ssthresh`, drops the window to one packet and resumes behind the last ACK. After an
//! idle time longer than the timeout, fast start goes on with nearly the old window instead of slow start.
//!
//! Differs from the paper in: ns-2's `Agent/TCP/FS` is Tahoe unless one asks for Reno or New Reno, and its fast loss recovery
//! and reset timer are off; what remains for a source that is never idle is Tahoe with limited transmit. A reset of the
//! timer on leaving fast start and the low priority of its packets are therefore not built here.

use anabranch_units::SimTime;

use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;
use crate::reno::open_after_syn;

#[derive(Clone, Debug)]
pub(crate) struct FastStart {
    /// When the last ACK arrived.
    last_received: SimTime,
}

impl Default for FastStart {
    fn default() -> Self {
        Self { last_received: SimTime::ZERO }
    }
}

impl FastStart {
    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        self.last_received = core.now;
        if ack.seq > core.last_ack {
            core.new_ack(ack);
            core.open_window();
            open_after_syn(core);
        } else if ack.seq == core.last_ack {
            core.duplicates += 1;
            if core.duplicates == DUPLICATES {
                self.on_third_duplicate(core);
            } else if core.duplicates < DUPLICATES {
                self.resume(core);
                core.send_one();
            }
        }
        // ns-2 tries to send on every ACK, duplicates included.
        self.send_much(core, core.config.burst_max);
    }

    fn on_third_duplicate(&mut self, core: &mut Core) {
        if core.highest_ack > core.recover || core.highest_ack == 0 {
            core.recover = core.max_seq;
            core.last_action = LastAction::FastRetransmit;
            core.reduce(Reduction::HalveAndRestart);
            core.restart_timer_after_loss(BackOff::Keep);
            core.go_back();
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        core.time_out();
        self.send_much(core, core.config.burst_max);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        if core.next <= core.highest_ack + core.usable_window() && core.next < core.produced {
            self.resume(core);
        }
        core.send_much(burst);
    }

    /// After an idle time with nothing outstanding: a window that is safe to resume with, half of it in slow start, one less
    /// otherwise.
    fn resume(&self, core: &mut Core) {
        let idle = core.now.since(self.last_received);
        if idle > core.rtt.idle_threshold() && core.max_seq == core.highest_ack && core.window > 1.0 {
            let slow_start = core.window < f64::from(core.ssthresh);
            core.window = if slow_start { f64::from((core.window / 2.0) as i32) } else { core.window - 1.0 };
        }
    }
}

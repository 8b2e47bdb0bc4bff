//! `Agent/TCP/FS`: Tahoe with fast start (Padmanabhan & Katz 1998).
//!
//! Tahoe: the third duplicate ACK halves `ssthresh`, sets the window to one packet, and sends again from the last ACK on. After
//! an idle time longer than the timeout, fast start continues with nearly the old window instead of slow start.
//!
//! Differs from the paper in: ns-2's `Agent/TCP/FS` is Tahoe unless a script selects Reno or New Reno, and its fast loss recovery
//! and reset timer are off. For a source that is never idle, this is Tahoe with limited transmit. So the reset of the timer at
//! the end of fast start and the low priority of its packets are not implemented here.

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

    /// After an idle time with nothing outstanding: the window with which it is safe to resume. That is half the window in slow
    /// start, else one packet less.
    fn resume(&self, core: &mut Core) {
        let idle = core.now.since(self.last_received);
        if idle > core.rtt.idle_threshold() && core.max_seq == core.highest_ack && core.window > 1.0 {
            let slow_start = core.window < f64::from(core.ssthresh);
            core.window = if slow_start { f64::from((core.window / 2.0) as i32) } else { core.window - 1.0 };
        }
    }
}

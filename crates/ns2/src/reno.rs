//! `Agent/TCP/Reno`: fast retransmit and fast recovery by window inflation.
//!
//! The third duplicate ACK halves the window and retransmits the first unacknowledged packet. It and each further duplicate
//! inflate the window by one packet. The next ACK of new data ends recovery, whatever it acknowledges.
//!
//! Differs from RFC 5681 in: within one window of data there is no second fast retransmit, unless the last loss was found by fast
//! retransmit, too (ns-2's `bugFix_`). Limited transmit is on. A halving starts from the inflated window.

use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;

#[derive(Clone, Debug, Default)]
pub(crate) struct Reno;

impl Reno {
    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        if ack.seq > core.last_ack {
            if core.last_action == LastAction::FastRetransmit {
                core.last_action = LastAction::Recovered;
            }
            core.inflation = 0;
            core.new_ack(ack);
            core.open_window();
            open_after_syn(core);
        } else if ack.seq == core.last_ack {
            core.duplicates += 1;
            if core.duplicates == DUPLICATES {
                self.on_third_duplicate(core);
            } else if core.duplicates > DUPLICATES && core.last_action == LastAction::FastRetransmit {
                core.inflation += 1;
            } else if core.duplicates < DUPLICATES {
                core.send_one();
            }
        }
        if core.duplicates == 0 || core.duplicates >= DUPLICATES {
            core.send_much(core.config.burst_max);
        }
    }

    fn on_third_duplicate(&mut self, core: &mut Core) {
        let again = core.last_action == LastAction::FastRetransmit;
        if core.highest_ack > core.recover || again || core.highest_ack == 0 {
            core.recover = core.max_seq;
            core.last_action = LastAction::FastRetransmit;
            core.reduce(Reduction::Halve);
            core.restart_timer_after_loss(BackOff::Keep);
            core.output(core.last_ack + 1);
            core.inflation = DUPLICATES;
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        time_out(core);
        core.send_much(core.config.burst_max);
    }
}

/// A timeout of the Reno family.
pub(crate) fn time_out(core: &mut Core) {
    core.inflation = 0;
    core.duplicates = 0;
    core.recover = core.max_seq;
    core.time_out();
}

/// When the SYN is acknowledged, the window becomes the initial window (`delay_growth_`).
pub(crate) fn open_after_syn(core: &mut Core) {
    if core.last_ack == 0 {
        core.window = core.initial_window();
    }
}

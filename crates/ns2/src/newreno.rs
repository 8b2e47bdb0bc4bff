//! `Agent/TCP/Newreno`: Reno that stays in fast recovery until everything sent before recovery is acknowledged.
//!
//! A *partial* ACK acknowledges new data below the recovery point. It retransmits the next hole at once and deflates the window
//! by what it acknowledged (RFC 6582). The retransmission timer restarts with the first partial ACK only ("impatient"), or with
//! each one (old ns-2); see [`NewRenoOptions::impatient`].
//!
//! Differs from RFC 6582 in: the full ACK ends recovery at the halved window, whatever the flight is.

use crate::config::NewRenoOptions;
use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;
use crate::reno::{open_after_syn, time_out};

#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    options: NewRenoOptions,
    /// A partial ACK of this episode has been seen (`firstpartial_`).
    partial_seen: bool,
}

impl NewReno {
    pub(crate) fn new(options: NewRenoOptions) -> Self {
        Self { options, partial_seen: false }
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        if ack.seq > core.last_ack {
            if ack.seq >= core.recover || core.last_action != LastAction::FastRetransmit {
                if core.inflation > 0 {
                    core.inflation = 0;
                    if core.last_action == LastAction::FastRetransmit {
                        core.last_action = LastAction::Recovered;
                    }
                }
                self.partial_seen = false;
                core.new_ack(ack);
                core.open_window();
                open_after_syn(core);
            } else {
                self.on_partial_ack(core, ack);
            }
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
        if core.duplicates == 0 {
            core.send_much(core.config.burst_max);
        } else if core.duplicates >= DUPLICATES {
            // During recovery, an ACK sends at most two packets.
            core.send_much(2);
        }
    }

    fn on_partial_ack(&mut self, core: &mut Core, ack: &Packet) {
        if !self.options.impatient || !self.partial_seen {
            self.partial_seen = true;
            core.restart_timer(ack.seq);
        }
        // [RFC 6582] 3.2 step 3: deflate by what was acknowledged, and add one packet. The inflation stays above zero, as it also
        // marks fast recovery.
        let acked = ack.seq - core.last_ack;
        if core.inflation > acked {
            core.inflation -= acked - 1;
        } else {
            core.window -= f64::from(acked - core.inflation);
            core.inflation = 1;
        }
        core.window = core.window.max(1.0);
        core.last_ack = ack.seq;
        core.highest_ack = ack.seq;
        core.next = core.next.max(ack.seq + 1);
        core.forget_acked();
        core.note_rtt(ack);
        // This ACK ends the timing of the timed packet, but the RTT is not used.
        if core.timed_by(ack.seq).is_some() {
            core.rtt.end_back_off();
        }
        core.output(core.last_ack + 1);
    }

    fn on_third_duplicate(&mut self, core: &mut Core) {
        if core.highest_ack > core.recover || core.highest_ack == 0 {
            core.recover = core.max_seq;
            core.restart_timer_after_loss(BackOff::Keep);
            core.last_action = LastAction::FastRetransmit;
            core.reduce(Reduction::Halve);
            core.output(core.last_ack + 1);
            core.inflation = DUPLICATES;
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        time_out(core);
        core.send_much(core.config.burst_max);
    }
}

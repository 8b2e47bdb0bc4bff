//! `Agent/TCP/Linux` without `select_ca`: the loss recovery of Linux 2.6 around ns-2's own window law.
//!
//! ACKs are handled by Linux' states (open, recovery, loss). A scoreboard marks each packet as in flight, sacked, lost or resent,
//! and gives the number in flight. A loss halves the window. *Rate halving* then sends one packet for every second ACK until the
//! flight has come down.
//!
//! The window law is that of the other agents; Linux uses only its whole packets. `window_` is the first `ssthresh` and bounds
//! the window no further. For this reason, not for a better law, this agent is faster than the others on paths without a queue.
//!
//! Differs from Linux in: there is no reordering detection, no undo, no F-RTO, and no delayed window reduction state (CWR).

use crate::config::SenderConfig;
use crate::core::{BackOff, Core, LastAction, Reduction};
use crate::linux_scoreboard::{Report, Scoreboard};
use crate::packet::Packet;

#[derive(Clone, Debug)]
pub(crate) struct Linux {
    scoreboard: Scoreboard,
    state: State,
    /// The window and `ssthresh` as Linux has them, in whole packets (`snd_cwnd`, `snd_ssthresh`).
    window: i32,
    ssthresh: i32,
    /// Packets in flight that rate halving allows (`next_pkts_in_flight_`).
    allowed: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// Packets that the window may send at once after recovery (`tcp_max_burst`).
const BURST_MAX: i32 = 3;

impl Linux {
    pub(crate) fn new(config: &SenderConfig) -> Self {
        Self {
            scoreboard: Scoreboard::default(),
            state: State::Open,
            window: config.window_initial as i32,
            ssthresh: config.window as i32,
            allowed: 0,
        }
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        // An ACK of packets that were not sent, or below the last ACK, is ignored.
        if ack.seq + 1 > core.next || ack.seq < core.highest_ack {
            return;
        }
        let new_data = ack.seq > core.highest_ack;
        if new_data {
            core.highest_ack = ack.seq;
            core.max_seq = core.max_seq.max(ack.seq);
            core.next = core.next.max(ack.seq + 1);
            core.forget_acked();
            core.note_rtt(ack);
        }
        let mut report = Report::default();
        if !ack.sack.is_empty() || !self.scoreboard.is_empty() {
            report = self.scoreboard.update(core.highest_ack, &ack.sack);
        }
        if let Some(sent) = core.timed_by(ack.seq) {
            core.rtt.end_back_off();
            core.rtt.sample(sent, core.now);
        }
        // The next packet is always above the ACK, so the timer always runs.
        core.set_timer();
        let dubious = !new_data || report.sacked || self.state != State::Open;
        if new_data && (!dubious || self.state != State::Recovery) {
            core.open_window();
            self.load(core);
        }
        if dubious {
            self.on_dubious(core, report);
        }
        self.send_much(core, core.config.burst_max);
    }

    /// Handles an ACK that signals loss or comes in recovery (`tcp_fastretrans_alert`).
    fn on_dubious(&mut self, core: &mut Core, report: Report) {
        if self.state != State::Open && core.highest_ack >= core.recover {
            self.scoreboard.clear();
            self.load(core);
            if self.window < self.ssthresh {
                self.window = self.ssthresh.min(self.in_flight(core) + BURST_MAX);
            }
            self.state = State::Open;
            self.allowed = 0;
            return;
        }
        if self.state != State::Recovery && report.lost {
            core.recover = core.max_seq;
            core.last_action = LastAction::FastRetransmit;
            self.allowed = self.window;
            core.reduce_from(Reduction::Halve, f64::from(self.window), self.window);
            self.load(core);
            self.state = State::Recovery;
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        core.last_action = LastAction::Timeout;
        let back_off = if core.highest_ack == core.max_seq {
            core.reduce_from(Reduction::Initial, f64::from(self.window), self.window);
            self.load(core);
            BackOff::Keep
        } else {
            core.reduce_from(Reduction::HalveAndRestart, f64::from(self.window), self.window);
            self.load(core);
            core.recover = core.max_seq;
            self.state = State::Loss;
            self.scoreboard.mark_all_lost(core.highest_ack + 1, core.next);
            core.counters.timeouts += 1;
            BackOff::Double
        };
        core.restart_timer_after_loss(back_off);
        self.allowed = 0;
        core.window = f64::from(self.window);
        core.ssthresh = self.ssthresh;
        core.last_ack = core.highest_ack;
        self.send_much(core, 0);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        self.allowed = self.allowed.min(self.in_flight(core) + 1);
        let mut sent = 0;
        while self.in_flight(core) < self.window.max(self.allowed) {
            let seq = match self.scoreboard.next_lost() {
                Some(seq) => {
                    self.scoreboard.mark_resent(core.next);
                    seq
                }
                None if core.next >= core.produced => return,
                None => {
                    core.next += 1;
                    core.next - 1
                }
            };
            core.output(seq);
            self.allowed = self.allowed.min((self.in_flight(core) - 1).max(1));
            core.next = core.next.max(seq + 1);
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }

    fn in_flight(&self, core: &Core) -> i32 {
        core.next - (core.highest_ack + 1) - self.scoreboard.out_of_network()
    }

    /// Copies the window into Linux' variables (`load_to_linux`). While rate halving allows more than the window, it copies into
    /// `allowed` instead.
    fn load(&mut self, core: &Core) {
        self.ssthresh = core.ssthresh;
        let window = core.window as i32;
        if self.allowed > self.window && core.window >= f64::from(self.window) {
            self.allowed = window;
        } else {
            self.window = window;
        }
    }
}

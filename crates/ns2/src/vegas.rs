//! `Agent/TCP/Vegas`: congestion avoidance by delay (Brakmo & Peterson 1995).
//!
//! Once per round trip, where `n` packets were sent, with their mean RTT `rtt` and the minimum RTT `base`:
//!
//! ```text
//! backlog = ⌊flight − n · base / rtt + ½⌋
//! backlog < alpha:  one packet more in the next round trip        backlog > beta:  one packet less at once
//! slow start: the window doubles every other round trip; at backlog > gamma it ends and the window loses 1/8
//! ```
//!
//! Each packet has a fine-grained timeout. The first duplicate ACK, and the first two ACKs after a retransmission, resend an
//! overdue packet. A loss reduces the window by a quarter, at most once for the packets sent before the last reduction.
//!
//! Differs from the paper, and from ns-2's other agents, in: a packet carries no headers (1500 bytes, not 1540), and the SYN is a
//! full packet. The *second* ACK sets the initial window. The array of send times is as long as the receiver's window and is not
//! cleared across its wrap; so Karn's rule discards some samples.

use anabranch_cc::law::vegas::{self, Step};
use anabranch_units::{SimSpan, SimTime};

use crate::config::VegasOptions;
use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    options: VegasOptions,
    /// Times are seconds since the first packet was sent, as in ns-2: the law computes with them.
    first_ack_seen: bool,
    rtt_base: f64,
    /// Eight times the smoothed RTT, four times its deviation, and the fine-grained timeout that follows from them.
    rtt_smoothed: f64,
    rtt_deviation: f64,
    timeout: f64,
    /// Sum and number of the RTT samples of this round trip.
    rtt_sum: f64,
    rtt_count: u32,
    /// First packet of the next round trip, and when this round trip began.
    round_end: i32,
    round_began: f64,
    /// The growth of the window per ACK in this round trip.
    increment: f64,
    /// Whether slow start may grow in this round trip.
    growing: bool,
    /// How many more ACKs after a retransmission check for another overdue packet (`v_worried_`).
    checks: i32,
    /// The window without inflation at the last loss (`v_newcwnd_`).
    window_deflated: f64,
    window_changed: f64,
    /// When each packet was last sent, and how often. The index is the packet's number modulo the receiver's window.
    sent: Vec<(f64, i32)>,
}

/// Marks a base RTT that was not measured yet.
const NO_RTT: f64 = 1e9;

/// Packets in flight after a timeout (`v_slowstart_`).
const WINDOW_AFTER_TIMEOUT: f64 = 2.0;

impl Vegas {
    pub(crate) fn new(options: VegasOptions, window: f64) -> Self {
        Self {
            options,
            first_ack_seen: false,
            rtt_base: NO_RTT,
            rtt_smoothed: 0.0,
            rtt_deviation: 0.0,
            timeout: 1000.0,
            rtt_sum: 0.0,
            rtt_count: 0,
            round_end: 0,
            round_began: 0.0,
            increment: 0.0,
            growing: true,
            checks: 0,
            window_deflated: 0.0,
            window_changed: 0.0,
            sent: vec![(-1.0, 0); (window as usize).max(1)],
        }
    }

    pub(crate) fn rtt_base(&self) -> Option<SimSpan> {
        (self.rtt_base < NO_RTT).then(|| SimSpan::from_secs_f64(self.rtt_base))
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        let now = core.clock();
        if !self.first_ack_seen {
            self.first_ack_seen = true;
            self.rtt_base = now;
            self.rtt_smoothed = now * 8.0;
            self.rtt_deviation = now;
            self.timeout = (self.rtt_smoothed / 4.0 + self.rtt_deviation) / 2.0;
        }
        if ack.seq > core.last_ack {
            self.on_new_ack(core, ack, now);
        } else if ack.seq == core.last_ack {
            self.on_duplicate(core, ack, now);
        }
        if core.duplicates == 0 || core.duplicates >= DUPLICATES {
            self.send_much(core, core.config.burst_max);
        }
    }

    fn on_new_ack(&mut self, core: &mut Core, ack: &Packet, now: f64) {
        if core.last_ack == 0 {
            core.window = core.initial_window();
        }
        if core.duplicates > DUPLICATES && core.window > self.window_deflated {
            core.window = self.window_deflated;
            core.ssthresh = 2;
        }
        let acked_before = core.last_ack;
        core.new_ack(ack);
        if ack.seq >= self.round_end {
            self.on_round(core, now);
        }
        let slow_start_over = self.increment >= 1.0 && core.window >= f64::from(core.ssthresh);
        if slow_start_over {
            self.increment = 0.0;
        }
        // The window grows only while the flight is at most two packets below it.
        if self.increment > 0.0 && core.window - f64::from(core.next - core.last_ack) <= 2.0 {
            core.window += self.increment;
        }
        self.sample(acked_before, ack.seq, now);
        if self.checks > 0 {
            self.checks -= 1;
            match self.overdue(ack.seq, now) {
                Some(seq) => {
                    core.duplicates = DUPLICATES;
                    self.output(core, seq);
                }
                None => self.checks = 0,
            }
        }
    }

    /// Once per round trip: decides how the window changes in the next one.
    fn on_round(&mut self, core: &mut Core, now: f64) {
        let rtt = if self.rtt_count > 0 { self.rtt_sum / f64::from(self.rtt_count) } else { now - self.round_began };
        self.rtt_sum = 0.0;
        self.rtt_count = 0;
        let sent_in_round = core.next - self.round_end;
        if rtt > 0.0 {
            if rtt < self.rtt_base || sent_in_round <= 1 {
                self.rtt_base = rtt;
            }
            let actual = f64::from(sent_in_round) / rtt;
            let expected = f64::from(core.next - core.last_ack) / self.rtt_base;
            let backlog = (vegas::diff(expected, actual, self.rtt_base) + 0.5) as i32;
            if core.window < f64::from(core.ssthresh) {
                self.growing = !self.growing;
                self.increment = 0.0;
                if self.growing && backlog > self.options.gamma {
                    core.ssthresh = 2;
                    core.window = vegas::leave_slow_start(core.window);
                } else if self.growing {
                    self.increment = 1.0;
                }
            } else {
                let (alpha, beta) = (f64::from(self.options.alpha), f64::from(self.options.beta));
                self.increment = match vegas::step(f64::from(backlog), alpha, beta) {
                    Step::Up => 1.0 / core.window,
                    Step::Hold => 0.0,
                    Step::Down => {
                        core.window = vegas::step_down(core.window);
                        0.0
                    }
                };
            }
        }
        self.round_end = core.next;
        self.round_began = now;
    }

    /// Takes the RTT sample of the acknowledged packet if it was sent once, and clears the entries up to it.
    fn sample(&mut self, acked_before: i32, acked: i32, now: f64) {
        let length = self.sent.len() as i32;
        let last = acked.rem_euclid(length);
        let (sent, transmissions) = self.sent[last as usize];
        let mut index = (acked_before + 1).rem_euclid(length);
        let mut left = acked - acked_before;
        // ns-2's loop: across the wrap of the array it clears nothing.
        while index <= last && left > 0 {
            self.sent[index as usize] = (-1.0, 0);
            index = (index + 1) % length;
            left -= 1;
        }
        // A send time of zero belongs to the SYN, which gives no sample.
        if sent == 0.0 || transmissions != 1 {
            return;
        }
        let rtt = now - sent;
        self.rtt_sum += rtt;
        self.rtt_count += 1;
        if rtt > 0.0 {
            self.rtt_base = self.rtt_base.min(rtt);
            let error = rtt - self.rtt_smoothed / 8.0;
            self.rtt_smoothed += error;
            self.rtt_deviation += error.abs() - self.rtt_deviation / 4.0;
            self.timeout = (self.rtt_smoothed / 4.0 + self.rtt_deviation) / 2.0;
            self.timeout += self.timeout / 16.0;
        }
    }

    fn on_duplicate(&mut self, core: &mut Core, ack: &Packet, now: f64) {
        core.duplicates += 1;
        let overdue = self.overdue(ack.seq, now);
        if overdue.is_none() && core.duplicates != DUPLICATES {
            if core.duplicates > DUPLICATES {
                core.window += 1.0;
            }
            return;
        }
        let (sent, transmissions) = self.sent[self.index(core.last_ack + 1)];
        if core.highest_ack <= core.recover && core.last_action == LastAction::Timeout {
            return;
        }
        let usable = core.usable_window();
        core.last_action = LastAction::FastRetransmit;
        core.recover = core.max_seq;
        self.checks = 2.min(core.next - core.last_ack);
        self.timeout += if transmissions > 1 { self.timeout } else { self.timeout / 8.0 };
        if self.window_changed < sent {
            let reduced = match usable {
                ..=3 => 2,
                _ if transmissions > 1 => usable >> 1,
                _ => usable - (usable >> 2),
            };
            self.window_deflated = f64::from(reduced);
            core.window = self.window_deflated + f64::from(core.duplicates);
            self.window_changed = now;
        }
        core.restart_timer_after_loss(BackOff::Double);
        self.output(core, overdue.unwrap_or(core.last_ack + 1));
        if transmissions == 1 {
            core.duplicates = DUPLICATES;
        }
    }

    /// The packet after `acked`, if its fine-grained timeout has passed.
    fn overdue(&self, acked: i32, now: f64) -> Option<i32> {
        let (sent, _) = self.sent[self.index(acked + 1)];
        (now - sent >= self.timeout).then_some(acked + 1)
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        core.duplicates = 0;
        core.recover = core.max_seq;
        core.last_action = LastAction::Timeout;
        // The timer is set before the window changes, and always backed off.
        core.restart_timer_after_loss(BackOff::Double);
        core.go_back();
        core.counters.timeouts += 1;
        core.reduce(Reduction::HalveAndRestart);
        core.window = WINDOW_AFTER_TIMEOUT;
        self.window_deflated = 0.0;
        self.window_changed = core.clock();
        self.send_much(core, 0);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        core.note_first();
        let mut sent = 0;
        while core.next <= core.highest_ack + core.usable_window() && core.next < core.produced {
            self.output(core, core.next);
            core.next += 1;
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }

    fn output(&mut self, core: &mut Core, seq: i32) {
        if seq == 0 {
            self.sent.fill((-1.0, 0));
        }
        let index = self.index(seq);
        let (_, transmissions) = self.sent[index];
        self.sent[index] = (core.clock(), transmissions + 1);
        core.emit(seq, core.config.packet_size());
        if core.rto_deadline == SimTime::NEVER {
            core.set_timer();
        }
    }

    fn index(&self, seq: i32) -> usize {
        seq.rem_euclid(self.sent.len() as i32) as usize
    }
}

//! `Agent/TCP/Fack`: recovery controlled by the *forward* ACK, the highest packet that the receiver is known to have (Mathis &
//! Mahdavi 1996).
//!
//! In flight are the packets sent above the forward ACK, plus the retransmitted ones. A loss is detected when three packets lie
//! between the cumulative and the forward ACK. Holes are retransmitted while the flight is below the window. If a retransmitted
//! packet is still missing when a packet sent after it arrives, nothing is sent until the timer fires.
//!
//! Differs from the paper in: on a loss, ns-2's version sets the window to one packet, and during recovery it slow-starts to the
//! halved threshold. Its *rampdown* is off by default and not implemented here. Every ACK that is not in order gives an RTT
//! sample, those of retransmissions included. Such an ACK ends the back-off only if it acknowledges the timed packet.

use std::collections::VecDeque;

use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::{Packet, SackBlocks};

#[derive(Clone, Debug)]
pub(crate) struct Fack {
    scoreboard: Scoreboard,
    recovering: bool,
    /// A retransmission was lost: nothing is sent until the timer fires (`timeout_`).
    stalled: bool,
    /// Highest packet that the receiver is known to have.
    forward_ack: i32,
    /// Retransmitted packets thought to be in flight (`retran_data_`).
    resent: i32,
}

impl Default for Fack {
    fn default() -> Self {
        Self { scoreboard: Scoreboard::default(), recovering: false, stalled: false, forward_ack: -1, resent: 0 }
    }
}

impl Fack {
    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        if self.recovering {
            self.on_ack_in_recovery(core, ack);
            self.send_much(core, core.config.burst_max);
            return;
        }
        if ack.seq > core.last_ack && ack.sack.is_empty() {
            core.new_ack(ack);
            core.open_window();
            self.forward_ack = core.last_ack;
            self.forget();
        } else if ack.seq >= core.last_ack {
            self.resent -= self.scoreboard.update(core.highest_ack, &ack.sack);
            self.on_out_of_order(core, ack);
            core.duplicates = self.forward_ack - core.last_ack - 1;
            if core.duplicates >= DUPLICATES {
                self.enter_recovery(core);
            }
        }
        if core.duplicates == 0 {
            self.send_much(core, core.config.burst_max);
        }
    }

    fn enter_recovery(&mut self, core: &mut Core) {
        core.recover = core.next;
        core.last_action = LastAction::FastRetransmit;
        core.reduce(Reduction::HalveAndRestart);
        core.restart_timer_after_loss(BackOff::Keep);
        self.recovering = true;
        self.scoreboard.mark_resent(core.last_ack + 1, core.next);
        self.resent += 1;
        core.output(core.last_ack + 1);
    }

    fn on_ack_in_recovery(&mut self, core: &mut Core, ack: &Packet) {
        self.on_out_of_order(core, ack);
        self.resent -= self.scoreboard.update(core.highest_ack, &ack.sack);
        self.stalled |= self.scoreboard.lost_again(&ack.sack);
        core.open_window();
        if ack.sack.is_empty() && core.last_ack >= core.recover {
            self.recovering = false;
            self.forget();
            core.duplicates = 0;
        }
    }

    /// Handles an ACK that leaves holes, or any ACK in recovery (`oldack`), and updates the forward ACK.
    fn on_out_of_order(&mut self, core: &mut Core, ack: &Packet) {
        core.last_ack = ack.seq;
        core.highest_ack = ack.seq;
        self.forward_ack = self.forward_ack.max(core.highest_ack);
        core.max_seq = core.max_seq.max(core.highest_ack);
        core.next = core.next.max(ack.seq + 1);
        core.forget_acked();
        core.note_rtt(ack);
        core.restart_timer(ack.seq);
        if core.timed_by(ack.seq).is_some() {
            core.rtt.end_back_off();
        }
        core.rtt.sample(ack.echo, core.now);
        let highest_sacked = ack.sack.as_slice().iter().map(|&(_, right)| right - 1).max();
        self.forward_ack = self.forward_ack.max(highest_sacked.unwrap_or(-1));
        core.next = core.next.max(self.forward_ack + 1);
    }

    fn forget(&mut self) {
        self.stalled = false;
        self.scoreboard.clear();
        self.resent = 0;
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        // If a recovery is in progress, it continues.
        core.last_ack = core.last_ack.max(core.highest_ack);
        self.forget();
        core.last_action = LastAction::Timeout;
        if core.highest_ack == core.max_seq {
            core.reduce(Reduction::Initial);
            core.restart_timer_after_loss(BackOff::Keep);
        } else {
            core.counters.timeouts += 1;
            core.reduce(Reduction::HalveAndRestart);
            core.restart_timer_after_loss(BackOff::Double);
        }
        self.forward_ack = core.last_ack;
        core.next = core.last_ack + 1;
        self.send_much(core, 0);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        let mut sent = 0;
        while !self.stalled && core.next <= self.forward_ack + core.usable_window() - self.resent {
            let seq = match self.scoreboard.next_hole() {
                Some(hole) => {
                    self.scoreboard.mark_resent(hole, core.next);
                    self.resent += 1;
                    hole
                }
                None => {
                    let limited = self.recovering && core.next > core.highest_ack + core.receiver_window();
                    if core.next >= core.produced || limited {
                        break;
                    }
                    core.next += 1;
                    core.next - 1
                }
            };
            core.output(seq);
            core.next = core.next.max(seq + 1);
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }
}

/// One entry per packet, from the first unacknowledged one to the highest sacked one.
#[derive(Clone, Debug, Default)]
struct Scoreboard {
    first: i32,
    entries: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    sacked: bool,
    resent: bool,
    /// The next new packet when this one was retransmitted. If that one or a later one arrives first, the retransmission is lost.
    next_when_resent: i32,
}

impl Scoreboard {
    fn clear(&mut self) {
        self.entries.clear();
    }

    /// Processes the blocks of an ACK. Returns how many retransmitted packets it acknowledges.
    fn update(&mut self, acked: i32, sack: &SackBlocks) -> i32 {
        let mut accounted = 0;
        while self.first <= acked
            && let Some(entry) = self.entries.pop_front()
        {
            accounted += i32::from(entry.resent);
            self.first += 1;
        }
        if self.entries.is_empty() && !sack.is_empty() {
            self.first = acked + 1;
            self.entries.push_back(Entry::default());
        }
        for &(left, right) in sack.as_slice() {
            while self.first + (self.entries.len() as i32) < right {
                self.entries.push_back(Entry::default());
            }
            for seq in left.max(self.first)..right {
                let entry = &mut self.entries[(seq - self.first) as usize];
                entry.sacked = true;
                accounted += i32::from(std::mem::take(&mut entry.resent));
            }
        }
        accounted
    }

    /// Whether a retransmitted packet is still missing although a packet sent after it has arrived. It may then be retransmitted
    /// once more.
    fn lost_again(&mut self, sack: &SackBlocks) -> bool {
        let mut lost = false;
        for &(_, right) in sack.as_slice() {
            let below = (right - self.first).clamp(0, self.entries.len() as i32) as usize;
            for entry in self.entries.iter_mut().take(below) {
                if entry.resent && entry.next_when_resent < right {
                    *entry = Entry { sacked: entry.sacked, ..Entry::default() };
                    lost = true;
                }
            }
        }
        lost
    }

    fn next_hole(&self) -> Option<i32> {
        let index = self.entries.iter().position(|entry| !entry.sacked && !entry.resent)?;
        Some(self.first + index as i32)
    }

    fn mark_resent(&mut self, seq: i32, next: i32) {
        let index = usize::try_from(seq - self.first).ok();
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.resent = true;
            entry.next_when_resent = next;
        }
    }
}

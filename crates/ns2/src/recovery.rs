//! Recovery by a SACK scoreboard and an estimate of the packets in the pipe, as in ns-2's SACK and FAST senders.
//!
//! In recovery each ACK takes a packet out of the *pipe*. While the pipe holds less than the window, a hole is retransmitted, or
//! a new packet is sent if there is no hole. Recovery ends when everything sent before it is acknowledged (Fall & Floyd 1996).
//!
//! Differs from RFC 6675 in: the pipe is a counter, not derived from the scoreboard. A partial ACK takes two packets out of it.
//! After a timeout the scoreboard is discarded, and duplicates are ignored until the next ACK of new data. The cumulative ACK
//! that limits the window is frozen during recovery.

use crate::core::{BackOff, Core, LastAction, Reduction};
use crate::packet::Packet;
use crate::sacked::Sacked;

#[derive(Clone, Debug)]
pub(crate) struct PipeRecovery {
    pub(crate) scoreboard: Sacked,
    /// A timeout happened, and no new data has been acknowledged since (`timeout_`).
    after_timeout: bool,
    recovering: bool,
    /// Packets thought to be in flight during recovery (`pipe_`).
    pipe: i32,
}

/// The effect of an ACK on recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Recovering,
    Recovered,
}

/// The part of sending in which the two agents differ.
pub(crate) trait Outlet {
    /// Whether there may be something to send.
    fn has_data(&self, core: &Core) -> bool;
    /// A packet to send before holes and new packets.
    fn overdue(&self, core: &Core, scoreboard: &Sacked) -> Option<i32>;
    fn output(&mut self, core: &mut Core, seq: i32);
}

impl PipeRecovery {
    pub(crate) fn new() -> Self {
        Self { scoreboard: Sacked::new(), after_timeout: false, recovering: false, pipe: -1 }
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Everything is acknowledged: clears the scoreboard.
    pub(crate) fn clear(&mut self) {
        self.after_timeout = false;
        self.scoreboard.clear();
    }

    /// Processes a duplicate ACK outside recovery. True if it reports something new; only then it counts.
    pub(crate) fn on_duplicate(&mut self, core: &Core, ack: &Packet) -> bool {
        !self.after_timeout && self.scoreboard.update(core.highest_ack, &ack.sack)
    }

    /// Halves the window and sets the pipe. The caller sends the first hole.
    pub(crate) fn begin(&mut self, core: &mut Core) {
        core.recover = core.max_seq;
        // The packets that the duplicate ACKs report have left the pipe.
        self.pipe = core.max_seq - core.highest_ack - core.duplicates;
        core.restart_timer_after_loss(BackOff::Keep);
        self.recovering = true;
        core.last_action = LastAction::FastRetransmit;
        core.reduce(Reduction::Halve);
    }

    /// Processes an ACK in recovery.
    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) -> Progress {
        self.pipe -= 1;
        if ack.seq >= core.recover {
            core.recover = 0;
            self.recovering = false;
            core.new_ack(ack);
            self.clear();
            return Progress::Recovered;
        }
        if ack.seq > core.highest_ack {
            // A partial ACK: the window's left edge stays, as `last_ack` is frozen.
            core.highest_ack = ack.seq;
            core.forget_acked();
            core.note_rtt(ack);
            self.scoreboard.update(core.highest_ack, &ack.sack);
            self.pipe -= 1;
            core.restart_timer(ack.seq);
            core.rtt.end_back_off();
        } else if self.on_duplicate(core, ack) && core.duplicates > 0 {
            core.duplicates += 1;
        }
        Progress::Recovering
    }

    /// A timeout: discards the scoreboard.
    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        core.duplicates = 0;
        core.last_ack = core.last_ack.max(core.highest_ack);
        self.clear();
        self.recovering = false;
        self.after_timeout = true;
    }

    /// Sends what window and pipe allow, at most `burst` packets; 0 is no limit.
    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32, outlet: &mut impl Outlet) {
        core.note_first();
        let mut sent = 0;
        loop {
            let room = if self.recovering {
                self.pipe < core.window as i32
            } else {
                core.next <= core.last_ack + core.usable_window()
            };
            if !room || !outlet.has_data(core) {
                break;
            }
            let limit = core.highest_ack + core.receiver_window();
            let resend = outlet.overdue(core, &self.scoreboard).or_else(|| self.scoreboard.next_hole());
            let seq = match resend {
                Some(hole) if core.recover > 0 && hole <= limit => {
                    self.scoreboard.mark_resent(hole);
                    hole
                }
                Some(_) => break,
                None => {
                    let window = if self.recovering { limit } else { core.highest_ack + core.usable_window() };
                    if core.next > window || core.next >= core.produced {
                        break;
                    }
                    core.next
                }
            };
            core.next = core.next.max(seq + 1);
            outlet.output(core, seq);
            self.pipe += 1;
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }
}

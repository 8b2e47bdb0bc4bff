//! `Agent/TCP/Sack1`: recovery by SACK scoreboard and an estimate of the packets in the pipe; Composite TCP on top of it.
//!
//! The third duplicate ACK that reports something new halves the window and resends the first hole. In recovery each ACK
//! takes a packet out of the *pipe*, and while the pipe holds less than the window a hole is resent, or a new packet sent if
//! there is none. Recovery ends when what was sent before it is acknowledged (Fall & Floyd 1996, in the manner of RFC 6675).
//!
//! Differs from RFC 6675 in: the pipe is counted, not derived from the scoreboard; a partial ACK takes two packets out of
//! it; the scoreboard is forgotten after a timeout and duplicates are ignored until the next ACK of new data; the cumulative
//! ACK that limits the window is frozen during recovery.

use crate::composite::{Composite, Verdict};
use crate::config::CompositeOptions;
use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;
use crate::reno::open_after_syn;
use crate::sacked::Sacked;

#[derive(Clone, Debug)]
pub(crate) struct Sack {
    scoreboard: Sacked,
    /// A timeout happened and nothing new has been acknowledged since (`timeout_`).
    after_timeout: bool,
    recovering: bool,
    /// Packets thought to be in flight, in recovery (`pipe_`).
    pipe: i32,
    composite: Option<Composite>,
}

impl Sack {
    pub(crate) fn new(composite: Option<CompositeOptions>) -> Self {
        Self {
            scoreboard: Sacked::new(),
            after_timeout: false,
            recovering: false,
            pipe: -1,
            composite: composite.map(Composite::new),
        }
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        if self.recovering {
            self.on_ack_in_recovery(core, ack);
            self.send_much(core, core.config.burst_max);
            return;
        }
        if ack.seq > core.last_ack {
            if let Some(composite) = &mut self.composite {
                composite.on_new_ack(core, ack);
            }
            core.new_ack(ack);
            core.open_window();
            self.on_recovered();
            open_after_syn(core);
        } else if ack.seq == core.last_ack && !self.after_timeout {
            // A duplicate counts only if its blocks tell something new.
            if self.scoreboard.update(core.highest_ack, &ack.sack) {
                core.duplicates += 1;
                self.on_duplicate(core);
            }
        }
        if core.duplicates == 0 {
            self.send_much(core, core.config.burst_max);
        }
    }

    fn on_duplicate(&mut self, core: &mut Core) {
        if let Some(composite) = &mut self.composite
            && core.duplicates >= DUPLICATES
        {
            match composite.on_duplicate(core, &self.scoreboard) {
                Verdict::Random => {
                    core.restart_timer_after_loss(BackOff::Keep);
                    self.scoreboard.mark_resent(core.highest_ack + 1);
                    core.output(core.last_ack + 1);
                    return;
                }
                Verdict::StillRandom => return,
                Verdict::Congestion => {}
            }
            if core.duplicates > DUPLICATES {
                // A second hole takes back what the third duplicate decided. The first one is on its way already.
                self.begin_recovery(core);
                self.send_much(core, core.config.burst_max);
                return;
            }
        }
        if core.duplicates == DUPLICATES {
            if core.highest_ack > core.recover || core.highest_ack == 0 {
                self.enter_recovery(core);
            }
        } else if core.duplicates < DUPLICATES {
            core.send_one();
        }
    }

    fn enter_recovery(&mut self, core: &mut Core) {
        self.begin_recovery(core);
        self.scoreboard.mark_resent(core.highest_ack + 1);
        core.output(core.last_ack + 1);
    }

    fn begin_recovery(&mut self, core: &mut Core) {
        core.recover = core.max_seq;
        // What the duplicates report has left the pipe.
        self.pipe = core.max_seq - core.highest_ack - core.duplicates;
        core.restart_timer_after_loss(BackOff::Keep);
        self.recovering = true;
        core.last_action = LastAction::FastRetransmit;
        core.reduce(Reduction::Halve);
    }

    fn on_ack_in_recovery(&mut self, core: &mut Core, ack: &Packet) {
        self.pipe -= 1;
        if ack.seq >= core.recover {
            core.recover = 0;
            self.recovering = false;
            core.new_ack(ack);
            self.on_recovered();
        } else if ack.seq > core.highest_ack {
            // A partial ACK: the window stays where it was, `last_ack` is frozen.
            core.highest_ack = ack.seq;
            core.forget_acked();
            core.note_rtt(ack);
            self.scoreboard.update(core.highest_ack, &ack.sack);
            self.pipe -= 1;
            core.restart_timer(ack.seq);
            core.rtt.end_back_off();
        } else if !self.after_timeout && self.scoreboard.update(core.highest_ack, &ack.sack) && core.duplicates > 0 {
            core.duplicates += 1;
        }
    }

    fn on_recovered(&mut self) {
        self.after_timeout = false;
        self.scoreboard.clear();
        if let Some(composite) = &mut self.composite {
            composite.on_recovered();
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        core.duplicates = 0;
        self.recovering = false;
        core.last_ack = core.last_ack.max(core.highest_ack);
        self.on_recovered();
        self.after_timeout = true;
        core.time_out();
        self.send_much(core, core.config.burst_max);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        if core.next == 0 {
            core.first_sent = core.now;
        }
        let mut sent = 0;
        loop {
            let room = if self.recovering {
                self.pipe < core.window as i32
            } else {
                core.next <= core.last_ack + core.usable_window()
            };
            if !room || core.last_ack + 1 >= core.produced {
                break;
            }
            let limit = core.highest_ack + core.receiver_window();
            let seq = match self.scoreboard.next_hole() {
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
            core.output(seq);
            self.pipe += 1;
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }
}

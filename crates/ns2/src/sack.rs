//! `Agent/TCP/Sack1`: SACK with the pipe algorithm; Composite TCP on top of it.
//!
//! The third duplicate ACK that reports something new halves the window and retransmits the first hole. Then [`crate::recovery`]
//! takes over.

use crate::composite::{Composite, Verdict};
use crate::config::CompositeOptions;
use crate::core::{BackOff, Core, DUPLICATES};
use crate::packet::Packet;
use crate::recovery::{Outlet, PipeRecovery, Progress};
use crate::reno::open_after_syn;
use crate::sacked::Sacked;

#[derive(Clone, Debug)]
pub(crate) struct Sack {
    recovery: PipeRecovery,
    composite: Option<Composite>,
}

impl Sack {
    pub(crate) fn new(composite: Option<CompositeOptions>) -> Self {
        Self { recovery: PipeRecovery::new(), composite: composite.map(Composite::new) }
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        if self.recovery.is_recovering() {
            if self.recovery.on_ack(core, ack) == Progress::Recovered {
                self.end_filling();
            }
            self.send_much(core, core.config.burst_max);
            return;
        }
        if ack.seq > core.last_ack {
            if let Some(composite) = &mut self.composite {
                composite.on_new_ack(core, ack);
            }
            core.new_ack(ack);
            core.open_window();
            self.recovery.clear();
            self.end_filling();
            open_after_syn(core);
        } else if ack.seq == core.last_ack && self.recovery.on_duplicate(core, ack) {
            core.duplicates += 1;
            self.on_duplicate(core);
        }
        if core.duplicates == 0 {
            self.send_much(core, core.config.burst_max);
        }
    }

    fn on_duplicate(&mut self, core: &mut Core) {
        let composite = self.composite.as_mut().filter(|_| core.duplicates >= DUPLICATES);
        match composite.map(|composite| composite.on_duplicate(core, &self.recovery.scoreboard)) {
            Some(Verdict::Random) => {
                core.restart_timer_after_loss(BackOff::Keep);
                self.recovery.scoreboard.mark_resent(core.highest_ack + 1);
                core.output(core.last_ack + 1);
            }
            Some(Verdict::StillRandom) => {}
            // A second hole revokes the decision of the third duplicate ACK. The first hole was already retransmitted.
            Some(Verdict::Congestion) if core.duplicates > DUPLICATES => {
                self.recovery.begin(core);
                self.send_much(core, core.config.burst_max);
            }
            Some(Verdict::Congestion) | None => {
                if core.duplicates == DUPLICATES {
                    if core.highest_ack > core.recover || core.highest_ack == 0 {
                        self.recovery.begin(core);
                        self.recovery.scoreboard.mark_resent(core.highest_ack + 1);
                        core.output(core.last_ack + 1);
                    }
                } else if core.duplicates < DUPLICATES {
                    core.send_one();
                }
            }
        }
    }

    fn end_filling(&mut self) {
        if let Some(composite) = &mut self.composite {
            composite.on_recovered();
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        self.recovery.on_timeout(core);
        self.end_filling();
        core.time_out();
        self.send_much(core, core.config.burst_max);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        self.recovery.send_much(core, burst, &mut Plain);
    }
}

/// Sends holes, then new packets; no packet has priority.
struct Plain;

impl Outlet for Plain {
    fn has_data(&self, core: &Core) -> bool {
        core.last_ack + 1 < core.produced
    }

    fn overdue(&self, _core: &Core, _scoreboard: &Sacked) -> Option<i32> {
        None
    }

    fn output(&mut self, core: &mut Core, seq: i32) {
        core.output(seq);
    }
}

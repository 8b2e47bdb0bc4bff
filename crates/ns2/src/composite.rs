//! The loss policy of ctcp-2019 (Composite TCP), on top of the SACK sender.
//!
//! At the third duplicate ACK: if the SACK blocks show one hole only and the RTT is not above its mean, the loss is random.
//! It is resent, window and `ssthresh` stay, and there is no recovery; each further duplicate sends one new packet, so that
//! the flight keeps its size. Otherwise the sender recovers as SACK does.
//!
//! Differs from the paper in: nothing that it says. It leaves open which RTT is compared, when, and what duplicates do while
//! the hole is being filled; [`CompositeOptions`] has the readings and the default is the one that fits its tables best.

use anabranch_cc::{Cause, Evidence, classify};

use crate::config::{CompositeOptions, HoleTest, RttTest, SendRule};
use crate::core::{Core, DUPLICATES};
use crate::packet::Packet;
use crate::rtt::TICK;
use crate::sacked::Sacked;

#[derive(Clone, Debug)]
pub(crate) struct Composite {
    options: CompositeOptions,
    /// A random loss is being filled, without recovery.
    filling: bool,
}

/// What a duplicate ACK from the third on means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The loss is random: resend it and go on.
    Random,
    /// It was found random before, and nothing speaks against it.
    StillRandom,
    /// Recover from congestion, or be in that recovery already.
    Congestion,
}

impl Composite {
    pub(crate) fn new(options: CompositeOptions) -> Self {
        Self { options, filling: false }
    }

    pub(crate) fn on_recovered(&mut self) {
        self.filling = false;
    }

    pub(crate) fn on_duplicate(&mut self, core: &mut Core, scoreboard: &Sacked, ack: &Packet) -> Verdict {
        if core.duplicates == DUPLICATES {
            let random = self.judge(core, scoreboard, ack) == Cause::Random;
            self.filling = random;
            core.counters.random_losses += u64::from(random);
            return if random { Verdict::Random } else { Verdict::Congestion };
        }
        if !self.filling {
            return Verdict::StillRandom;
        }
        if self.options.holes == HoleTest::WholeWindow && scoreboard.holes() > 1 {
            self.filling = false;
            return Verdict::Congestion;
        }
        self.send_new(core);
        Verdict::StillRandom
    }

    fn judge(&self, core: &Core, scoreboard: &Sacked, ack: &Packet) -> Cause {
        // Ticks ×8 keep the fixed point of the smoothed RTT out of the comparison of whole ticks, and serve the fine one.
        let (latest, smoothed) = match self.options.rtt {
            RttTest::Ignored => (0.0, 0.0),
            RttTest::Coarse => (f64::from(core.rtt.rtt_ticks()), f64::from(core.rtt.srtt_ticks())),
            RttTest::Fine => {
                let tick = TICK.as_secs_f64();
                (core.now.since(ack.echo).as_secs_f64(), f64::from(core.rtt.srtt_ticks()) * tick)
            }
        };
        let holes = if self.options.holes == HoleTest::Ignored { 1 } else { scoreboard.holes() };
        classify(&Evidence { holes, rtt_latest: Some(latest), rtt_smoothed: Some(smoothed) })
    }

    fn send_new(&self, core: &mut Core) {
        let within_receiver_window = core.next <= core.highest_ack + core.receiver_window();
        match self.options.send {
            SendRule::Nothing => {}
            SendRule::OnePerDuplicate => {
                if within_receiver_window && core.next < core.produced {
                    core.output(core.next);
                    core.next += 1;
                }
            }
            SendRule::ReplaceDelivered => {
                let limit = core.highest_ack + core.usable_window() + core.duplicates;
                while core.next <= limit && core.next < core.produced {
                    core.output(core.next);
                    core.next += 1;
                }
            }
        }
    }
}

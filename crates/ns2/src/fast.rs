//! `Agent/TCP/Fast`: FAST TCP as in the CUBIN module v1.1.3 for ns-2, with the extensions of the papers.
//!
//! ```text
//! each ACK of new data:   baseRTT ← min(baseRTT, rtt);  avgRTT ← avgRTT + (rtt − avgRTT)/256
//! avgRTT − baseRTT small: w ← w + 1
//! every second RTT:       w ← (1 − gamma) w + gamma (old · baseRTT/avgRTT + alpha)        old: in flight when the packet was sent
//! third duplicate ACK:    w ← w/2, then recovery as SACK's, during which the law is suspended
//! timeout:                w ← 2
//! ```
//!
//! The law is `anabranch_cc::law::fast`; this file is the module's version of it. It differs from fast-2006 in:
//! * The SYN gives an RTT sample. It has only 40 bytes, so baseRTT is less than any data packet can reach, and some packets
//!   always count as queued. That is why a small alpha stays below capacity.
//! * An increase is cut to whole packets and spread over the ACKs; a decrease is applied at once. So the equilibrium is a band of
//!   windows. If the window reaches it from below, it stops two packets short of alpha.
//! * For a packet that was sent twice, the RTT sample is avgRTT itself.
//! * In recovery, the oldest packet is retransmitted first once it is older than two RTTs. By an off-by-one error the module
//!   looks at the packet *before* the hole. That was acknowledged, and therefore looks very old: every recovery retransmits one
//!   packet that the receiver has.
//! * A timeout does not back off the timer, and there is no slow start.
//! * After the first timeout, duplicate ACKs that began no recovery (as the losses are older than the timeout) are taken for an
//!   inflated window. The next ACK of new data sets the window to the number of packets in flight, and also sets `old` of each of
//!   these packets to it.

use anabranch_cc::law::fast::base_rtt::{Reroute, Route};
use anabranch_cc::law::fast::module::{BASE_TO_SPREAD, Round, Steps, target};
use anabranch_cc::law::fast::refill::{Ccafr, Facts, Mode, Refill};
use anabranch_cc::law::fast::window::{self, Goal};
use anabranch_units::{SimSpan, SimTime};

use crate::composite::{Composite, Verdict};
use crate::config::{Average, BaseRtt, FastOptions, LossPolicy};
use crate::core::{BackOff, Core, DUPLICATES, LastAction, Reduction};
use crate::packet::Packet;
use crate::recovery::{Outlet, PipeRecovery, Progress};
use crate::sacked::Sacked;

#[derive(Clone, Debug)]
pub(crate) struct Fast {
    options: FastOptions,
    recovery: PipeRecovery,
    composite: Option<Composite>,
    sent: Flights,
    /// RTTs in seconds. Times count from the first packet, as in the module. `None` before the first ACK.
    rtts: Option<Rtts>,
    /// When an update of the window was last due, whether it changed the window or not (`cwnd_update_time`).
    updated: f64,
    round: Round,
    steps: Steps,
    ccafr: Ccafr,
    reroute: Reroute,
    /// Highest ACK of new data outside recovery (`last_natural_ack_number_`).
    natural_ack: i32,
    resets: u64,
    /// Whether the timer has ever fired. `newcwnd_` is 0 from then on; before, it is above any window.
    has_timed_out: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rtts {
    base: f64,
    average: f64,
    latest: f64,
}

/// The state of each packet in flight. The index is the packet's number modulo the receiver's window.
#[derive(Clone, Debug)]
struct Flights {
    places: Vec<Flight>,
    /// Packets in flight at the last ACK (`avg_cwnd_last_RTT_`).
    in_flight: f64,
    average: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Flight {
    sent: f64,
    in_flight: f64,
    transmissions: i32,
}

impl Flight {
    const NONE: Self = Self { sent: -1.0, in_flight: -1.0, transmissions: 0 };
}

/// The window after a timeout (`slowstart_`).
const WINDOW_AFTER_TIMEOUT: f64 = 2.0;

impl Fast {
    pub(crate) fn new(options: FastOptions, window: f64) -> Self {
        let composite = match options.loss {
            LossPolicy::Halve => None,
            LossPolicy::Composite(options) => Some(Composite::new(options)),
        };
        Self {
            options,
            recovery: PipeRecovery::new(),
            composite,
            sent: Flights { places: vec![Flight::NONE; (window as usize).max(1)], in_flight: 0.0, average: 0.0 },
            rtts: None,
            updated: 0.0,
            round: Round::new(0.0),
            steps: Steps::new(),
            ccafr: Ccafr::new(),
            reroute: Reroute::new(),
            natural_ack: -1,
            resets: 0,
            has_timed_out: false,
        }
    }

    /// baseRTT and avgRTT.
    pub(crate) fn rtts(&self) -> Option<(SimSpan, SimSpan)> {
        self.rtts.map(|rtts| (SimSpan::from_secs_f64(rtts.base), SimSpan::from_secs_f64(rtts.average)))
    }

    /// The last RTT sample.
    pub(crate) fn rtt(&self) -> Option<SimSpan> {
        self.rtts.map(|rtts| SimSpan::from_secs_f64(rtts.latest))
    }

    /// The number of longer routes recognised.
    pub(crate) fn resets(&self) -> u64 {
        self.resets
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    pub(crate) fn on_ack(&mut self, core: &mut Core, ack: &Packet) {
        let now = core.clock();
        if self.rtts.is_none() {
            self.rtts = Some(Rtts { base: now, average: now, latest: now });
            self.sent.average = now;
        }
        if let Refill::Ccafr(rule) = &self.options.refill {
            self.ccafr.on_arrival(now, rule);
        }
        if self.recovery.is_recovering() {
            self.updated = now;
            if self.recovery.on_ack(core, ack) == Progress::Recovered {
                self.end_filling();
                if matches!(self.options.refill, Refill::Ccafr(_)) {
                    self.ccafr.begin();
                }
            }
            self.send_much(core, core.config.burst_max);
            return;
        }
        if ack.seq > core.last_ack {
            self.on_new_ack(core, ack, now);
        } else if ack.seq == core.last_ack && self.recovery.on_duplicate(core, ack) {
            core.duplicates += 1;
            self.on_duplicate(core);
        }
        if core.duplicates == 0 {
            self.send_much(core, core.config.burst_max);
        }
    }

    fn on_new_ack(&mut self, core: &mut Core, ack: &Packet, now: f64) {
        if core.last_ack == 0 {
            core.window = core.initial_window();
        }
        // Under the loss policy of ctcp-2019, duplicate ACKs that begin no recovery are intended.
        if core.duplicates > DUPLICATES && self.has_timed_out && self.composite.is_none() {
            core.next = core.next.max(ack.seq);
            core.window = f64::from(core.next - ack.seq + 1);
            core.duplicates = 0;
            self.sent.places.iter_mut().for_each(|flight| flight.in_flight = core.window);
        }
        let flight = self.sent.take(self.natural_ack, ack.seq);
        let average = self.rtts.map_or(now, |rtts| rtts.average);
        let is_sample = core.next > ack.seq && flight.transmissions == 1 && now - flight.sent > 0.0;
        let rtt = if is_sample { now - flight.sent } else { average };
        if let Some(composite) = &mut self.composite {
            composite.on_new_ack(core, ack);
        }
        core.new_ack(ack);
        self.recovery.clear();
        self.end_filling();
        self.estimate(core, ack, rtt, now);
        self.control(core, rtt, flight.in_flight, now);
        self.natural_ack = ack.seq;
    }

    /// Updates baseRTT, avgRTT and the packets in flight (`fast_est`).
    fn estimate(&mut self, core: &Core, ack: &Packet, rtt: f64, now: f64) {
        let Some(rtts) = &mut self.rtts else { return };
        rtts.base = rtts.base.min(rtt);
        self.sent.in_flight = f64::from(core.next - ack.seq - core.duplicates);
        // The arithmetic follows the module's, operation by operation: in equilibrium the last bits of avgRTT matter.
        let scale = self.sent.in_flight / 3.0;
        rtts.average = if scale > 256.0 {
            ((scale - 1.0) * rtts.average + rtt) / scale
        } else {
            (rtts.average * 255.0 + rtt) / 256.0
        };
        rtts.latest = rtt;
        if let BaseRtt::Reroute(rule, average) = &self.options.base
            && self.reroute.on_rtt(now, rtt, rtts.base, rule) == Route::Longer
        {
            // avgRTT restarts with baseRTT. A lower avgRTT would look like an empty queue for 256 samples.
            rtts.base = rtt;
            if *average == Average::Restarted {
                rtts.average = rtt;
            }
            self.resets += 1;
        }
        self.sent.average = rtts.average;
    }

    /// The window law (`fast_cc`).
    fn control(&mut self, core: &mut Core, rtt: f64, old: f64, now: f64) {
        let Some(rtts) = self.rtts else { return };
        // The authors' prototype of CCaFR does not update the module's rounds before the first hole.
        if self.ccafr.mode() != Mode::FirstSeries {
            self.round.on_ack(now, rtt);
        }
        let FastOptions { alpha, beta, gamma, mi_threshold, period, .. } = self.options;
        let goal = Goal { alpha, beta, gamma };
        if let Refill::Ccafr(rule) = &self.options.refill {
            let facts = Facts { window: core.window, old, acked: 1.0, rtt, base: rtts.base, average: rtts.average };
            if let Some(window) = self.ccafr.on_ack(&facts, &goal, rule) {
                core.window = window;
                return;
            }
        }
        if window::increases_multiplicatively(rtts.base, rtts.average, mi_threshold) {
            core.window += 1.0;
            self.updated = now;
            return;
        }
        if now >= self.updated + period && self.round.is_open() {
            let before = core.window;
            let is_missed = goal.is_missed(old, rtts.base, rtts.average);
            let target = if is_missed { target(before, old, rtts.base, rtts.average, &goal) } else { before };
            let acks_per_period = self.round.acks_in(period, rtts.average);
            let window = self.steps.turn_to(before, target, rtts.base, acks_per_period);
            core.window = self.steps.on_ack(window);
            if let BaseRtt::Reroute(rule, _) = &self.options.base {
                self.reroute.on_update(now, before, target, rtt, rule);
            }
            self.updated = now;
        } else if rtts.base >= BASE_TO_SPREAD {
            core.window = self.steps.on_ack(core.window);
        }
    }

    fn on_duplicate(&mut self, core: &mut Core) {
        let composite = self.composite.as_mut().filter(|_| core.duplicates >= DUPLICATES);
        match composite.map(|composite| composite.on_duplicate(core, &self.recovery.scoreboard)) {
            Some(Verdict::Random) => {
                core.restart_timer_after_loss(BackOff::Keep);
                self.resend_first(core);
            }
            Some(Verdict::StillRandom) => {}
            Some(Verdict::Congestion) if core.duplicates > DUPLICATES => {
                self.ccafr.end();
                self.recovery.begin(core);
                self.send_much(core, core.config.burst_max);
            }
            Some(Verdict::Congestion) | None => {
                if core.duplicates == DUPLICATES {
                    if core.highest_ack > core.recover {
                        self.ccafr.end();
                        self.recovery.begin(core);
                        self.resend_first(core);
                    }
                } else if core.duplicates < DUPLICATES {
                    self.send_one(core);
                }
            }
        }
    }

    fn resend_first(&mut self, core: &mut Core) {
        self.recovery.scoreboard.mark_resent(core.highest_ack + 1);
        self.sent.output(core, core.last_ack + 1);
    }

    fn send_one(&mut self, core: &mut Core) {
        if core.may_send_one() {
            self.sent.output(core, core.next);
            core.next += 1;
        }
    }

    fn end_filling(&mut self) {
        if let Some(composite) = &mut self.composite {
            composite.on_recovered();
        }
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core) {
        self.has_timed_out = true;
        self.recovery.on_timeout(core);
        self.end_filling();
        self.ccafr.end();
        core.recover = core.max_seq;
        core.last_action = LastAction::Timeout;
        core.restart_timer_after_loss(BackOff::Keep);
        core.go_back();
        core.counters.timeouts += 1;
        core.reduce(Reduction::HalveAndRestart);
        core.window = WINDOW_AFTER_TIMEOUT;
        self.send_much(core, core.config.burst_max);
    }

    pub(crate) fn send_much(&mut self, core: &mut Core, burst: u32) {
        self.recovery.send_much(core, burst, &mut self.sent);
    }
}

impl Flights {
    fn index(&self, seq: i32) -> usize {
        seq.rem_euclid(self.places.len() as i32) as usize
    }

    /// Returns the state of packet `acked`, and removes all after `natural_ack` up to it.
    fn take(&mut self, natural_ack: i32, acked: i32) -> Flight {
        let flight = self.places[self.index(acked)];
        for seq in natural_ack + 1..=acked {
            let index = self.index(seq);
            self.places[index] = Flight::NONE;
        }
        flight
    }
}

impl Outlet for Flights {
    fn has_data(&self, core: &Core) -> bool {
        core.next < core.produced
    }

    fn overdue(&self, core: &Core, scoreboard: &Sacked) -> Option<i32> {
        let oldest = scoreboard.first_missing_from(core.last_ack)?;
        let age = core.clock() - self.places[self.index(oldest)].sent;
        (age > 2.0 * self.average).then_some(oldest)
    }

    fn output(&mut self, core: &mut Core, seq: i32) {
        if seq == 0 {
            self.places.fill(Flight::NONE);
            core.produce_syn();
        }
        let index = self.index(seq);
        let transmissions = self.places[index].transmissions + 1;
        self.places[index] = Flight { sent: core.clock(), in_flight: self.in_flight, transmissions };
        core.emit(seq, core.size_of(seq));
        if core.rto_deadline == SimTime::NEVER {
            core.set_timer();
        }
    }
}

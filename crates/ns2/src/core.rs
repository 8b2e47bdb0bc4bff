//! The part that all one-way TCP senders of ns-2 share (its `TcpAgent`): sequence numbers, window, timer, output.
//!
//! All counts are in packets. There is no handshake: packet 0 is a 40-byte SYN, sent when the flow starts. The window is 1 until
//! the SYN is acknowledged.

use std::collections::VecDeque;

use anabranch_cc::law::reno;
use anabranch_units::{SimSpan, SimTime};

use crate::config::SenderConfig;
use crate::counters::Counters;
use crate::packet::{Kind, Packet, SackBlocks};
use crate::rtt::{Deviation, RttEstimator};

/// Bytes of the headers of TCP and IP (ns-2's `tcpip_base_hdr_size_`): the size of a SYN, and of an ACK without SACK blocks.
pub const HEADER: u32 = 40;

/// Duplicate ACKs that trigger fast retransmit (`numdupacks_`).
pub(crate) const DUPLICATES: i32 = 3;

/// Packets of an endless source (`TCP_MAXSEQ`): ns-2's sources are all finite.
const ENDLESS: i32 = 1 << 30;

/// Upper bound of the retransmission timeout (`maxrto_`). The Linux agent doubles it.
const RTO_MAX: SimSpan = SimSpan::from_secs(60);

/// Why the window last changed, other than by growth on ACKs (`last_cwnd_action_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastAction {
    None,
    FastRetransmit,
    Timeout,
    /// Fast recovery ended.
    Recovered,
}

/// The effect of a reduction on the window. All but the last two also change `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// `ssthresh` and window to half.
    Halve,
    /// `ssthresh` to half, window to one packet.
    HalveAndRestart,
    /// Window to one packet.
    Restart,
    /// Window to the initial one.
    Initial,
}

#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) config: SenderConfig,
    pub(crate) now: SimTime,
    /// `now` in seconds by ns-2's float clock, if that is known: see [`Core::clock`].
    pub(crate) float_now: Option<f64>,
    /// Next packet to send (`t_seqno_`); a timeout moves it back.
    pub(crate) next: i32,
    /// First packet that the application has not produced (`curseq_`).
    pub(crate) produced: i32,
    /// Highest cumulative ACK (`highest_ack_`), -1 before the first.
    pub(crate) highest_ack: i32,
    /// As `highest_ack`, but some agents freeze it during recovery (`last_ack_`).
    pub(crate) last_ack: i32,
    /// Cumulative ACK before the last one (`prev_highest_ack_`).
    pub(crate) previous_ack: i32,
    /// Highest packet sent (`maxseq_`), -1 before the first.
    pub(crate) max_seq: i32,
    /// Highest packet sent when recovery began (`recover_`).
    pub(crate) recover: i32,
    pub(crate) duplicates: i32,
    pub(crate) window: f64,
    /// Packets by which duplicate ACKs inflate the window of the Reno family (`dupwnd_`); 0 in other agents.
    pub(crate) inflation: i32,
    /// Slow start threshold, an integer as in ns-2.
    pub(crate) ssthresh: i32,
    /// Packets of the receiver's buffer that this sender may fill: `window_`, or with several paths this path's share.
    pub(crate) share: f64,
    /// Highest packet that the receiver has room for, if other paths fill its buffer, too.
    pub(crate) edge: Option<i32>,
    pub(crate) last_action: LastAction,
    pub(crate) rtt: RttEstimator,
    /// The packet whose RTT is measured, and when it was sent (`rtt_active_`, `rtt_seq_`, `rtt_ts_`).
    timed: Option<(i32, SimTime)>,
    /// Highest packet that was ever timed. No packet is timed twice (Karn's algorithm).
    timed_max: i32,
    pub(crate) rto_deadline: SimTime,
    /// When the first packet was sent last, in seconds (`firstsent_`).
    first_sent: f64,
    window_initial: f64,
    /// Times of first transmission of `highest_ack + 1 ..= max_seq`.
    first_sent_at: VecDeque<SimTime>,
    first_sent_base: i32,
    pub(crate) counters: Counters,
    out: VecDeque<Packet>,
}

impl Core {
    pub(crate) fn new(config: SenderConfig) -> Self {
        let linux = matches!(config.agent, crate::config::Agent::Linux);
        let (deviation, rto_max) =
            if linux { (Deviation::Damped, RTO_MAX * 2) } else { (Deviation::Symmetric, RTO_MAX) };
        Self {
            config,
            now: SimTime::ZERO,
            float_now: None,
            next: 0,
            produced: 0,
            highest_ack: -1,
            last_ack: -1,
            previous_ack: -1,
            max_seq: -1,
            recover: 0,
            duplicates: 0,
            // `syn_` and `delay_growth_`: one packet until the SYN is acknowledged. The Linux agent starts at once.
            window: if linux || !config.syn { config.window_initial } else { 1.0 },
            inflation: 0,
            ssthresh: config.window as i32,
            share: config.window,
            edge: None,
            last_action: LastAction::None,
            rtt: RttEstimator::new(config.clock_phase, config.rto_min, rto_max, deviation),
            timed: None,
            timed_max: -1,
            rto_deadline: SimTime::NEVER,
            first_sent: 0.0,
            window_initial: config.window_initial,
            first_sent_at: VecDeque::new(),
            first_sent_base: 0,
            counters: Counters::default(),
            out: VecDeque::new(),
        }
    }

    /// The application produces `packets` more, or an endless supply if `None`.
    pub(crate) fn produce(&mut self, packets: Option<i32>) {
        self.produced = match packets {
            Some(packets) => self.produced.saturating_add(packets).min(ENDLESS),
            None => ENDLESS,
        };
    }

    /// The application has produced everything before packet `end`, or an endless supply if `None`.
    pub(crate) fn supply(&mut self, end: Option<i32>) {
        self.produced = end.unwrap_or(ENDLESS).min(ENDLESS);
    }

    /// Reserves a sequence number for the SYN, if there is one, before the application's data.
    pub(crate) fn produce_syn(&mut self) {
        if self.config.syn {
            self.produced = self.produced.saturating_add(1).min(ENDLESS);
        }
    }

    /// Bytes on the wire of packet `seq`. A SYN is a bare header. If there is no SYN, ns-2 does not count the header of packet 0.
    pub(crate) fn size_of(&self, seq: i32) -> u32 {
        match seq {
            0 if self.config.syn => HEADER,
            0 => self.config.payload,
            _ => self.config.packet_size(),
        }
    }

    /// The application stops: data that was not yet sent is discarded (`advance 0`).
    pub(crate) fn stop(&mut self) {
        self.produced = self.max_seq;
    }

    /// Window in whole packets: inflated by duplicate ACKs, bounded by the receiver's window.
    pub(crate) fn usable_window(&self) -> i32 {
        (self.window as i32 + self.inflation).min(self.receiver_window())
    }

    /// As [`Self::usable_window`], with the fraction (`windowd()`).
    pub(crate) fn precise_window(&self) -> f64 {
        (self.window + f64::from(self.inflation)).min(self.share)
    }

    pub(crate) fn receiver_window(&self) -> i32 {
        self.edge.map_or(self.share as i32, |edge| edge - self.highest_ack)
    }

    pub(crate) fn initial_window(&self) -> f64 {
        self.window_initial
    }

    /// Grows the window for one ACK of new data (`opencwnd`).
    pub(crate) fn open_window(&mut self) {
        self.window = if self.window < f64::from(self.ssthresh) {
            reno::slow_start(self.window)
        } else {
            reno::congestion_avoidance(self.window)
        };
    }

    /// Reduces window and `ssthresh` (`slowdown`). The window before is `precise`, of which `whole` packets are usable.
    pub(crate) fn reduce_from(&mut self, reduction: Reduction, precise: f64, whole: i32) {
        let half = if self.config.precise_halving { precise / 2.0 } else { f64::from(whole / 2) };
        if matches!(reduction, Reduction::Halve | Reduction::HalveAndRestart) {
            self.ssthresh = half as i32;
        }
        self.window = match reduction {
            Reduction::Halve => half,
            Reduction::HalveAndRestart | Reduction::Restart => 1.0,
            Reduction::Initial => f64::from(self.window_initial as i32),
        };
        // Only `ssthresh` has a floor. If a window of one packet is halved, nothing is sent until the timer fires.
        self.ssthresh = self.ssthresh.max(2);
        self.counters.window_cuts += 1;
    }

    pub(crate) fn reduce(&mut self, reduction: Reduction) {
        let precise = self.precise_window();
        self.reduce_from(reduction, precise, precise as i32);
    }

    /// Sends packet `seq`, for the first time or again (`output`).
    pub(crate) fn output(&mut self, seq: i32) {
        let size = self.size_of(seq);
        if seq == 0 && self.max_seq == -1 {
            self.produce_syn();
        }
        let nothing_outstanding = self.highest_ack == self.max_seq;
        self.emit(seq, size);
        if self.rto_deadline == SimTime::NEVER || nothing_outstanding {
            self.set_timer();
        }
    }

    /// Puts packet `seq` on the wire and updates the counters. The timer stays as it is.
    pub(crate) fn emit(&mut self, seq: i32, size: u32) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(size);
        let first_sent_at = if seq > self.max_seq {
            // `seq` jumps if the peer acknowledged packets that this sender did not know of. The deque must have no gap, so fill it.
            while self.first_sent_base + (self.first_sent_at.len() as i32) < seq {
                self.first_sent_at.push_back(self.now);
            }
            self.first_sent_at.push_back(self.now);
            self.max_seq = seq;
            if self.timed.is_none() && seq > self.timed_max {
                self.timed = Some((seq, self.now));
                self.timed_max = seq;
            }
            self.now
        } else {
            self.counters.retransmitted_packets += 1;
            let index = usize::try_from(seq - self.first_sent_base).ok();
            index.and_then(|index| self.first_sent_at.get(index)).copied().unwrap_or(self.now)
        };
        self.out.push_back(Packet {
            kind: Kind::Data,
            size,
            seq,
            sent_at: self.now,
            first_sent_at,
            echo: SimTime::ZERO,
            sack: SackBlocks::default(),
        });
    }

    /// Sends what the window allows (`send_much` of the agents without SACK), at most `burst` packets; 0 is no limit.
    pub(crate) fn send_much(&mut self, burst: u32) {
        self.note_first();
        let mut sent = 0;
        while self.next <= self.highest_ack + self.usable_window() && self.next < self.produced {
            self.output(self.next);
            self.next += 1;
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }

    /// Limited transmit (RFC 3042): whether the first and second duplicate ACK may each send one new packet (`send_one`).
    pub(crate) fn may_send_one(&self) -> bool {
        self.next <= self.highest_ack + self.receiver_window()
            && self.next < self.produced
            && f64::from(self.next) <= f64::from(self.highest_ack) + self.window + f64::from(self.duplicates)
    }

    pub(crate) fn send_one(&mut self) {
        if self.may_send_one() {
            self.output(self.next);
            self.next += 1;
        }
    }

    /// Records the time of the first packet. Called before anything is sent.
    pub(crate) fn note_first(&mut self) {
        if self.next == 0 {
            self.first_sent = self.seconds();
        }
    }

    /// Seconds since the first packet was sent (`vegastime()`, `fasttime()`). Some laws compare times that are equal in exact
    /// arithmetic. So the value is computed from ns-2's own float clock where that is known.
    pub(crate) fn clock(&self) -> f64 {
        self.seconds() - self.first_sent
    }

    fn seconds(&self) -> f64 {
        self.float_now.unwrap_or_else(|| self.now.as_secs_f64())
    }

    pub(crate) fn set_timer(&mut self) {
        self.rto_deadline = self.now.saturating_add(self.rtt.timeout());
    }

    pub(crate) fn cancel_timer(&mut self) {
        self.rto_deadline = SimTime::NEVER;
    }

    /// Restarts the timer after an ACK of `seq` if packets are outstanding (`newtimer`).
    pub(crate) fn restart_timer(&mut self, seq: i32) {
        if self.next > seq || seq < self.max_seq || self.window < 1.0 {
            self.set_timer();
        } else {
            self.cancel_timer();
        }
    }

    /// Restarts the timer after a loss and stops the RTT measurement in progress (`reset_rtx_timer`).
    pub(crate) fn restart_timer_after_loss(&mut self, back_off: BackOff) {
        if back_off == BackOff::Double {
            self.rtt.back_off();
        }
        self.set_timer();
        self.timed = None;
    }

    /// Goes back to the packet after the last ACK: everything in flight is taken for lost.
    pub(crate) fn go_back(&mut self) {
        self.next = self.highest_ack + 1;
    }

    /// An ACK of new data: updates sequence numbers, RTT and timer (`newack`).
    pub(crate) fn new_ack(&mut self, ack: &Packet) {
        self.duplicates = 0;
        self.last_ack = ack.seq;
        self.previous_ack = self.highest_ack;
        self.highest_ack = ack.seq;
        self.next = self.next.max(ack.seq + 1);
        self.forget_acked();
        self.note_rtt(ack);
        if let Some(sent) = self.timed_by(ack.seq) {
            self.rtt.end_back_off();
            self.rtt.sample(sent, self.now);
        }
        self.restart_timer(ack.seq);
    }

    /// If `seq` acknowledges the timed packet, returns when that was sent, and ends the timing.
    pub(crate) fn timed_by(&mut self, seq: i32) -> Option<SimTime> {
        let (timed, sent) = self.timed?;
        (seq >= timed).then(|| {
            self.timed = None;
            sent
        })
    }

    /// Measures the fine-grained RTT, and counts whether the receiver's window is the limit. Only the report reads these: Vegas
    /// is the only ns-2 agent with a fine-grained RTT.
    pub(crate) fn note_rtt(&mut self, ack: &Packet) {
        self.counters.rtt_samples += 1;
        self.counters.rtt_sum = self.counters.rtt_sum.saturating_add(self.now.since(ack.echo));
        let is_limited = self.window as i32 + self.inflation >= self.receiver_window();
        self.counters.window_limited_acks += u64::from(is_limited);
    }

    /// Drops the first transmission times of the packets up to `highest_ack`.
    pub(crate) fn forget_acked(&mut self) {
        while self.first_sent_base <= self.highest_ack {
            self.first_sent_at.pop_front();
            self.first_sent_base += 1;
        }
    }

    /// A timeout's effect on the window, the timer and the next packet (`TcpAgent::timeout` up to its `send_much`).
    pub(crate) fn time_out(&mut self) {
        self.window = self.window.max(1.0);
        self.recover = self.max_seq;
        if self.highest_ack == -1 && self.window_initial > 1.0 {
            // The SYN was lost, so there is no large initial window (`bugfix_ss_`).
            self.window_initial = 1.0;
        }
        if self.highest_ack == self.max_seq {
            self.reduce(Reduction::Restart);
            self.restart_timer_after_loss(BackOff::Keep);
        } else {
            self.counters.timeouts += 1;
            self.last_action = LastAction::Timeout;
            self.reduce(Reduction::HalveAndRestart);
            self.restart_timer_after_loss(BackOff::Double);
        }
        self.go_back();
        self.last_action = LastAction::Timeout;
    }

    pub(crate) fn in_flight(&self) -> i32 {
        (self.next - self.highest_ack - 1).max(0)
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }
}

/// Whether a restart of the timer doubles the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackOff {
    Keep,
    Double,
}

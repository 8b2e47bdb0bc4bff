//! A sender: one of the agents with the common core, driven by the four methods of a host.

use anabranch_units::{SimSpan, SimTime};

use crate::config::{Agent, SenderConfig};
use crate::core::Core;
use crate::counters::Counters;
use crate::fack::Fack;
use crate::fast::Fast;
use crate::fast_start::FastStart;
use crate::linux::Linux;
use crate::newreno::NewReno;
use crate::packet::Packet;
use crate::reno::Reno;
use crate::rtt::TICK;
use crate::sack::Sack;
use crate::vegas::Vegas;

/// A one-way TCP sender of ns-2.35.
#[derive(Clone, Debug)]
pub struct Sender {
    pub(crate) core: Core,
    variant: Variant,
}

#[derive(Clone, Debug)]
enum Variant {
    Reno(Reno),
    NewReno(NewReno),
    Sack(Sack),
    Fack(Fack),
    Vegas(Vegas),
    FastStart(FastStart),
    Linux(Linux),
    Fast(Box<Fast>),
}

/// The current variables of a sender, for traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauges {
    /// Congestion window in packets.
    pub window: f64,
    /// Slow start threshold in packets.
    pub ssthresh: f64,
    /// Last RTT: exact in FAST, in whole ticks of the coarse clock in the other agents.
    pub rtt: SimSpan,
    /// Smoothed RTT: avgRTT in FAST, in whole ticks of the coarse clock in the other agents.
    pub rtt_smoothed: SimSpan,
    /// Minimum RTT, in agents that keep one.
    pub rtt_base: Option<SimSpan>,
    /// Packets sent and not yet cumulatively acknowledged.
    pub in_flight: i32,
    /// Detected reroutes; see [`Sender::reroutes`].
    pub reroutes: u64,
}

impl Counters {
    /// The sum of two counters.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            sent_packets: self.sent_packets + other.sent_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            retransmitted_packets: self.retransmitted_packets + other.retransmitted_packets,
            window_cuts: self.window_cuts + other.window_cuts,
            timeouts: self.timeouts + other.timeouts,
            random_losses: self.random_losses + other.random_losses,
            rtt_samples: self.rtt_samples + other.rtt_samples,
            rtt_sum: self.rtt_sum.saturating_add(other.rtt_sum),
            window_limited_acks: self.window_limited_acks + other.window_limited_acks,
        }
    }
}

impl Sender {
    /// A sender that has not started.
    pub fn new(config: SenderConfig) -> Self {
        let variant = match config.agent {
            Agent::Reno => Variant::Reno(Reno),
            Agent::NewReno(options) => Variant::NewReno(NewReno::new(options)),
            Agent::Sack => Variant::Sack(Sack::new(None)),
            Agent::Composite(options) => Variant::Sack(Sack::new(Some(options))),
            Agent::Fack => Variant::Fack(Fack::default()),
            Agent::Vegas(options) => Variant::Vegas(Vegas::new(options, config.window)),
            Agent::FastStart => Variant::FastStart(FastStart::default()),
            Agent::Linux => Variant::Linux(Linux::new(&config)),
            Agent::Fast(options) => Variant::Fast(Box::new(Fast::new(options, config.window))),
        };
        Self { core: Core::new(config), variant }
    }

    /// The application produces `packets` more, or an endless supply if `None`. What fits the window is sent now.
    pub fn produce(&mut self, now: SimTime, packets: Option<u32>) {
        self.core.now = now;
        self.core.produce(packets.map(|packets| i32::try_from(packets).unwrap_or(i32::MAX)));
        self.send();
    }

    /// The application stops: nothing new is sent from now on.
    pub fn stop(&mut self, now: SimTime) {
        self.core.now = now;
        self.core.stop();
        self.send();
    }

    /// The current time in seconds by ns-2's own float clock. Call it before every other call, or never.
    pub fn handle_clock(&mut self, seconds: f64) {
        self.core.float_now = Some(seconds);
    }

    /// An ACK arrived.
    pub fn handle(&mut self, now: SimTime, ack: &Packet) {
        let core = &mut self.core;
        core.now = now;
        match &mut self.variant {
            Variant::Reno(reno) => reno.on_ack(core, ack),
            Variant::NewReno(newreno) => newreno.on_ack(core, ack),
            Variant::Sack(sack) => sack.on_ack(core, ack),
            Variant::Fack(fack) => fack.on_ack(core, ack),
            Variant::Vegas(vegas) => vegas.on_ack(core, ack),
            Variant::FastStart(fast_start) => fast_start.on_ack(core, ack),
            Variant::Linux(linux) => linux.on_ack(core, ack),
            Variant::Fast(fast) => fast.on_ack(core, ack),
        }
    }

    /// Handles the timeout that [`Sender::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: SimTime) {
        let core = &mut self.core;
        if core.rto_deadline > now {
            return;
        }
        core.now = now;
        // A timer that fired is idle until sending sets it again.
        core.rto_deadline = SimTime::NEVER;
        match &mut self.variant {
            Variant::Reno(reno) => reno.on_timeout(core),
            Variant::NewReno(newreno) => newreno.on_timeout(core),
            Variant::Sack(sack) => sack.on_timeout(core),
            Variant::Fack(fack) => fack.on_timeout(core),
            Variant::Vegas(vegas) => vegas.on_timeout(core),
            Variant::FastStart(fast_start) => fast_start.on_timeout(core),
            Variant::Linux(linux) => linux.on_timeout(core),
            Variant::Fast(fast) => fast.on_timeout(core),
        }
    }

    /// The next packet to put on the wire.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.core.poll_transmit()
    }

    /// When [`Sender::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> SimTime {
        self.core.rto_deadline
    }

    /// The configuration of the sender.
    pub fn config(&self) -> &SenderConfig {
        &self.core.config
    }

    /// Highest packet sent, -1 before the first (`maxseq_`): the papers' "delivered packets".
    pub fn max_seq(&self) -> i32 {
        self.core.max_seq
    }

    /// Highest packet acknowledged cumulatively, -1 before the first (`ack_`).
    pub fn acked_seq(&self) -> i32 {
        self.core.highest_ack
    }

    /// The counters since the start.
    pub fn counters(&self) -> Counters {
        self.core.counters
    }

    /// How often FAST with the rule of rrfast-2017 detected a longer route.
    pub fn reroutes(&self) -> u64 {
        match &self.variant {
            Variant::Fast(fast) => fast.resets(),
            _ => 0,
        }
    }

    /// The current variables.
    pub fn gauges(&self) -> Gauges {
        let core = &self.core;
        let ticks = |ticks: i32| TICK * u64::from(ticks.max(0).unsigned_abs());
        let (rtt, rtt_smoothed) = (ticks(core.rtt.rtt_ticks()), ticks(core.rtt.srtt_ticks()));
        let (rtt, rtt_smoothed, rtt_base) = match &self.variant {
            Variant::Vegas(vegas) => (rtt, rtt_smoothed, vegas.rtt_base()),
            Variant::Fast(fast) => {
                let (base, average) = fast.rtts().unzip();
                (fast.rtt().unwrap_or(rtt), average.unwrap_or(rtt_smoothed), base)
            }
            _ => (rtt, rtt_smoothed, None),
        };
        Gauges {
            window: core.window,
            ssthresh: f64::from(core.ssthresh),
            rtt,
            rtt_smoothed,
            rtt_base,
            in_flight: core.in_flight(),
            reroutes: self.reroutes(),
        }
    }

    /// Whether the agent would send if it had more room: its duplicate count is zero.
    pub(crate) fn may_send(&self) -> bool {
        self.core.duplicates == 0 || matches!(&self.variant, Variant::Fast(fast) if fast.is_recovering())
    }

    /// Sends what fits the window.
    pub(crate) fn send(&mut self) {
        let core = &mut self.core;
        let burst = core.config.burst_max;
        match &mut self.variant {
            Variant::Reno(_) | Variant::NewReno(_) => core.send_much(burst),
            Variant::Sack(sack) => sack.send_much(core, burst),
            Variant::Fack(fack) => fack.send_much(core, burst),
            Variant::Vegas(vegas) => vegas.send_much(core, burst),
            Variant::FastStart(fast_start) => fast_start.send_much(core, burst),
            Variant::Linux(linux) => linux.send_much(core, burst),
            Variant::Fast(fast) => fast.send_much(core, burst),
        }
    }
}

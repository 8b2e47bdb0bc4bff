//! The phases of the clocks of ns-2's agents, and the starts of flows.

use std::collections::BTreeMap;

use anabranch_ns2::TICK;
use anabranch_ns2::config::Agent;
use anabranch_ns2::random::Mrg32k3a;
use anabranch_sim::{Builder, Stream};
use anabranch_units::{SimSpan, SimTime};

use crate::scenario::transport::Transport;
use crate::scenario::{Clock, Flow, Scenario};

/// The random times that are drawn before a run.
pub(super) struct Clocks {
    /// The start of each flow.
    pub(super) starts: Vec<SimTime>,
    /// The phase of each agent's clock.
    pub(super) phases: Vec<SimSpan>,
    /// The random stream that ns-2's hosts share, with ns-2's clock.
    pub(super) random: Option<Mrg32k3a>,
}

pub(super) fn clocks(scenario: &Scenario, builder: &Builder) -> Clocks {
    let mut arrivals = Arrivals::default();
    let starts = scenario.flows.iter().map(|flow| arrivals.start(flow, builder)).collect();
    let (phases, random) = phases(scenario, builder);
    Clocks { starts, phases, random }
}

/// The arrivals of flows, in the order of the file.
#[derive(Default)]
struct Arrivals<'a> {
    /// The time from its own start to the arrival of the last flow of each class, and the stream for the times between.
    classes: BTreeMap<&'a str, (Option<SimSpan>, Stream)>,
}

impl<'a> Arrivals<'a> {
    /// The start of the next flow. A flow without jitter and random arrivals draws nothing.
    fn start(&mut self, flow: &'a Flow, builder: &Builder) -> SimTime {
        let mut start = flow.start;
        if let Some(class) = &flow.class {
            let first = || (None, builder.stream(&format!("class.{}.arrivals", class.name)));
            let (after, stream) = self.classes.entry(&class.name).or_insert_with(first);
            // The first flow arrives at once, unless arrivals are random.
            let is_due = after.is_some() || class.spacing.every_mean.is_some();
            let span = if is_due { class.spacing.next(stream) } else { SimSpan::ZERO };
            let sum = after.unwrap_or(SimSpan::ZERO).saturating_add(span);
            *after = Some(sum);
            start = start.saturating_add(sum);
        }
        if flow.start_jitter.is_zero() {
            return start;
        }
        let share = builder.stream(&format!("flow.{}.start", flow.id)).uniform();
        start.saturating_add(SimSpan::from_secs_f64(share * flow.start_jitter.as_secs_f64()))
    }
}

/// The phases of the agents' clocks, and the stream that their hosts share. With ns-2's clock both are ns-2's: each agent draws a phase
/// when it is created, and all draw again at the start of the simulation, in the order of creation and from one stream; SCTP draws
/// from the rest of this stream. Otherwise each flow has streams of its own, so that a new flow does not change those of others.
fn phases(scenario: &Scenario, builder: &Builder) -> (Vec<SimSpan>, Option<Mrg32k3a>) {
    let agents: Vec<(&Flow, Agent)> = scenario
        .flows
        .iter()
        .filter_map(|flow| match &flow.transport {
            Transport::Ns2 { sender, .. } => Some((flow, sender.agent)),
            Transport::Multihomed { config, .. } => Some((flow, config.agent.agent)),
            Transport::Sctp { .. } | Transport::Engine { .. } | Transport::Cbr(_) | Transport::OnOff(_) => None,
        })
        .collect();
    let phase = |uniform: f64| SimSpan::from_secs_f64(uniform * TICK.as_secs_f64());
    match scenario.clock {
        Clock::Exact => {
            let own = |flow: &Flow| builder.stream(&format!("flow.{}.clock", flow.id)).uniform();
            (agents.iter().map(|(flow, _)| phase(own(flow))).collect(), None)
        }
        Clock::Ns2 => {
            // ns-2's seeds have 31 bits; further bits of ours would be lost, so they are folded in.
            let seed = (scenario.seed ^ scenario.seed >> 31) & 0x7fff_ffff;
            let mut stream = Mrg32k3a::new(seed as u32);
            for _ in 0..agents.iter().map(|(_, agent)| agent.draws_at_creation()).sum() {
                stream.uniform();
            }
            let phases = agents.iter().map(|_| phase(stream.uniform())).collect();
            (phases, Some(stream))
        }
    }
}

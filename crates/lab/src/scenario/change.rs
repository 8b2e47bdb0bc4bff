//! A scenario with one input a fifth smaller or larger, for a sensitivity run.
//!
//! | input | the changed settings, of all flows or links at once |
//! | --- | --- |
//! | alpha | `alpha` and `beta` of the laws that have them, so that a dead band keeps its shape |
//! | queues | the limits of queues; also the thresholds of RED and the target of CoDel |
//! | window | the limit of data in flight: `window`, or the receive buffer |
//! | error rate | loss probabilities; for a burst model the probability of turning bad, for a periodic one the period |
//!
//! Counts are rounded, and change by at least one: a queue of 10 packets becomes 8 or 12, one of 3 becomes 2 or 4. Losses at given times
//! or of given packets have no rate.

use std::fmt;

use anabranch_cc::registry::{Kind, Parameter, Settings, Value};
use anabranch_ns2::config::{Agent, SenderConfig};
use anabranch_sim::{ErrorSpec, QueueSpec};
use anabranch_units::settings::Part;
use anabranch_units::{Bytes, SimSpan};

use super::Scenario;
use super::transport::{RBUF_MAX, Transport};

/// The input that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// The packets that a delay-based law keeps queued.
    Alpha,
    /// The sizes of queues.
    Queues,
    /// The limits of data in flight.
    Window,
    /// The error rates of links.
    ErrorRate,
}

/// The direction of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A fifth less.
    Less,
    /// A fifth more.
    More,
}

/// A change of one input by a fifth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The input that changes.
    pub input: Input,
    /// The direction of the change.
    pub way: Way,
}

impl Change {
    /// Every input in both directions.
    pub fn all() -> impl Iterator<Item = Self> {
        let inputs = [Input::Alpha, Input::Queues, Input::Window, Input::ErrorRate];
        inputs.into_iter().flat_map(|input| [Way::Less, Way::More].map(|way| Self { input, way }))
    }
}

/// `alpha -20 %`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = match self.input {
            Input::Alpha => "alpha",
            Input::Queues => "queues",
            Input::Window => "window",
            Input::ErrorRate => "error rate",
        };
        let way = match self.way {
            Way::Less => "-20 %",
            Way::More => "+20 %",
        };
        write!(f, "{input} {way}")
    }
}

impl Scenario {
    /// The changed scenario; `None` if it has nothing to change.
    pub(crate) fn changed(&self, change: Change) -> Option<Self> {
        let mut scenario = self.clone();
        let mut scale = Scale { way: change.way, has_changed: false };
        match change.input {
            Input::Alpha => scenario.flows.iter_mut().for_each(|flow| scale.alpha(&mut flow.transport)),
            Input::Queues => scenario.links.iter_mut().for_each(|link| scale.queue(&mut link.spec.queue)),
            Input::Window => scenario.flows.iter_mut().for_each(|flow| scale.window(&mut flow.transport)),
            Input::ErrorRate => {
                scenario.links.iter_mut().flat_map(|link| &mut link.spec.errors).for_each(|error| scale.error(error));
            }
        }
        scale.has_changed.then_some(scenario)
    }
}

/// Changes numbers, and records whether there was a change.
struct Scale {
    way: Way,
    has_changed: bool,
}

impl Scale {
    fn number(&mut self, number: f64) -> f64 {
        let factor = match self.way {
            Way::Less => 0.8,
            Way::More => 1.2,
        };
        let changed = number * factor;
        self.has_changed |= changed.total_cmp(&number).is_ne();
        changed
    }

    /// Changes a count by at least one, but not below `least`.
    fn count(&mut self, count: u64, least: u64) -> u64 {
        let step = (count as f64 / 5.0).round().max(1.0) as u64;
        let changed = match self.way {
            Way::Less => count.saturating_sub(step).max(least.min(count)),
            Way::More => count.saturating_add(step),
        };
        self.has_changed |= changed != count;
        changed
    }

    /// [`Scale::count`] for smaller types. A result that does not fit leaves the count as it is; no scenario comes near that.
    fn small<T: TryFrom<u64> + Into<u64> + Copy>(&mut self, count: T, least: u64) -> T {
        T::try_from(self.count(count.into(), least)).unwrap_or(count)
    }

    fn probability(&mut self, probability: f64) -> f64 {
        let had_changed = self.has_changed;
        let changed = self.number(probability).min(1.0);
        self.has_changed = had_changed || changed.total_cmp(&probability).is_ne();
        changed
    }

    fn alpha(&mut self, transport: &mut Transport) {
        match transport {
            Transport::Ns2 { sender, .. } => self.alpha_of_agent(sender),
            Transport::Multihomed { config, .. } => self.alpha_of_agent(&mut config.agent),
            Transport::Engine { config, .. } => self.alpha_of_law(&mut config.law),
            Transport::Sctp { .. } | Transport::Cbr(_) | Transport::OnOff(_) => {}
        }
    }

    fn alpha_of_agent(&mut self, sender: &mut SenderConfig) {
        match &mut sender.agent {
            Agent::Fast(fast) => {
                fast.alpha = self.number(fast.alpha);
                fast.beta = self.number(fast.beta);
            }
            Agent::Vegas(vegas) => {
                // Whole packets, at least 0.
                let mut whole = |count: i32| self.count(count.unsigned_abs().into(), 0) as i32;
                (vegas.alpha, vegas.beta) = (whole(vegas.alpha), whole(vegas.beta));
            }
            Agent::Reno
            | Agent::NewReno(_)
            | Agent::Sack
            | Agent::Fack
            | Agent::FastStart
            | Agent::Linux
            | Agent::Composite(_) => {}
        }
    }

    fn alpha_of_law(&mut self, law: &mut Settings) {
        for name in ["alpha", "beta"] {
            let parameter = law.parameters().into_iter().find(|parameter| parameter.name == name);
            if let Some(Parameter { kind: Kind::Number { least, most }, value: Value::Number(number), .. }) = parameter
            {
                let changed = self.number(number).clamp(least, most);
                law.set(name, &changed.to_string()).expect("a number between the least and the most is possible");
            }
        }
    }

    fn queue(&mut self, queue: &mut QueueSpec) {
        let sizes = queue.parameters().into_iter().filter_map(|one| Some((one.name, one.value, one.size?)));
        let changed = sizes.filter_map(|(name, value, least)| {
            let value = match value {
                Value::Whole(count) => Value::Whole(self.count(count, least)),
                Value::Bytes(bytes) => Value::Bytes(Bytes::new(self.count(bytes.count(), least))),
                Value::Time(span) => Value::Time(self.span(span)),
                Value::Number(number) => Value::Number(self.number(number)),
                _ => return None,
            };
            Some((name, value))
        });
        queue.put(changed.collect()).expect("a fifth more still fits");
    }

    fn span(&mut self, span: SimSpan) -> SimSpan {
        self.has_changed = true;
        match self.way {
            Way::Less => span * 4 / 5,
            Way::More => span * 6 / 5,
        }
    }

    fn window(&mut self, transport: &mut Transport) {
        match transport {
            Transport::Ns2 { sender, .. } => sender.window = self.count(sender.window as u64, 1) as f64,
            Transport::Multihomed { config, .. } => {
                // At least a packet for each path.
                config.agent.window = self.count(config.agent.window as u64, config.paths as u64) as f64;
            }
            Transport::Sctp { config, .. } => {
                config.receive_buffer = self.small(config.receive_buffer, config.chunk.into());
            }
            Transport::Engine { config, .. } => {
                config.receive_buffer = self.count(config.receive_buffer, config.mss.into()).min(RBUF_MAX);
            }
            Transport::Cbr(_) | Transport::OnOff(_) => {}
        }
    }

    fn error(&mut self, error: &mut ErrorSpec) {
        match error {
            ErrorSpec::PerPacket(p) | ErrorSpec::PerByte(p) => *p = self.probability(*p),
            ErrorSpec::GilbertElliott(model) => model.to_bad = self.probability(model.to_bad),
            ErrorSpec::Periodic { period, burst, .. } => {
                // A shorter period means more losses.
                let mut inverse = Self { way: self.way.opposite(), has_changed: false };
                *period = inverse.count(*period, *burst);
                self.has_changed |= inverse.has_changed;
            }
            ErrorSpec::Nothing
            | ErrorSpec::List(_)
            | ErrorSpec::At(_)
            | ErrorSpec::Policer { .. }
            | ErrorSpec::Outage { .. }
            | ErrorSpec::Outages { .. } => {}
        }
    }
}

impl Way {
    fn opposite(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::More => Self::Less,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    const SCENARIO: &str = r#"
duration = "1s"
[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1Mbit/s"
delay = "1ms"
queue = { kind = "drop_tail", packets = 10 }
error = { kind = "uniform", rate = 0.01 }
reverse = { queue = { kind = "drop_tail", packets = 2 } }
[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "ns2/fast"
window = 50
cc = { name = "fast", alpha = 8, beta = 2 }
[[flow]]
id = "g"
from = "n0"
to = "n1"
transport = "anabranch"
cc = { name = "fast", alpha = 10 }
rbuf = "100kB"
"#;

    #[track_caller]
    fn scenario(sets: &[&str]) -> Scenario {
        let mut document = Document::parse("s.toml", SCENARIO).unwrap();
        sets.iter().for_each(|set| document.set(set).unwrap());
        Scenario::parse(&document).unwrap()
    }

    /// A changed scenario must equal the scenario that is written with the changed numbers.
    #[track_caller]
    fn is_written_as(sets: &[&str], input: Input, way: Way, written: &[&str]) {
        let changed = scenario(sets).changed(Change { input, way }).unwrap();
        let written = scenario(&[sets, written].concat());
        assert_eq!(format!("{changed:?}"), format!("{written:?}"));
    }

    #[test]
    fn each_input_is_a_fifth_off_and_nothing_else_moves() {
        let alphas = ["flow.f.cc.alpha=6.4", "flow.f.cc.beta=1.6", "flow.g.cc.alpha=8"];
        is_written_as(&[], Input::Alpha, Way::Less, &alphas);
        let alphas = ["flow.f.cc.alpha=9.6", "flow.f.cc.beta=2.4", "flow.g.cc.alpha=12"];
        is_written_as(&[], Input::Alpha, Way::More, &alphas);
        // A queue of 2 packets becomes 3, but never 1, which would pass nothing.
        is_written_as(&[], Input::Queues, Way::Less, &["link.a.queue.packets=8"]);
        is_written_as(&[], Input::Queues, Way::More, &["link.a.queue.packets=12", "link.a.reverse.queue.packets=3"]);
        is_written_as(&[], Input::Window, Way::Less, &["flow.f.window=40", "flow.g.rbuf=80kB"]);
        is_written_as(&[], Input::Window, Way::More, &["flow.f.window=60", "flow.g.rbuf=120kB"]);
        is_written_as(&[], Input::ErrorRate, Way::Less, &["link.a.error.rate=0.008"]);
        is_written_as(&[], Input::ErrorRate, Way::More, &["link.a.error.rate=0.012"]);
    }
}

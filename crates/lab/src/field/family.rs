//! The families of networks: what each asks, what it draws, and the figures of a run.

mod alone;
mod beside;
mod host;
mod kind;
mod policer;
mod radio;
mod route;
mod short;
mod silence;

use serde::Serialize;

use super::Fact;
use super::draw::Draw;
use super::measure::Measure;
use super::scenario::Bottleneck;
use super::summary::{Column, Statistic};
use crate::evaluation::Contender;
use crate::expression::Expression;

/// A family of random networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One flow, with any buffer and random losses.
    Alone,
    /// Two to fifty flows of one law.
    Kind,
    /// Beside one flow of a rival; either of them is first.
    Beside,
    /// A transfer that begins into the queue of a rival.
    Short,
    /// A route that becomes longer and shorter.
    Route,
    /// A radio link: rates, frames, pauses, hand-overs.
    Radio,
    /// A policer, which drops what exceeds a rate.
    Policer,
    /// Hosts that wake up late.
    Host,
    /// A link that is silent for a while.
    Silence,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureKind {
    /// Its name: `used`.
    pub name: &'static str,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Which values are better.
    pub better: Better,
    /// What it is.
    pub what: &'static str,
}

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Large values are better.
    High,
    /// Small values are better.
    Low,
}

/// What a family is, beside its draws.
struct Description {
    name: &'static str,
    question: &'static str,
    drawn: &'static str,
    figures: &'static [FigureKind],
    columns: &'static [Column],
}

impl Family {
    /// All families, in the order of a report.
    pub const ALL: [Self; 9] = [
        Self::Alone,
        Self::Kind,
        Self::Beside,
        Self::Short,
        Self::Route,
        Self::Radio,
        Self::Policer,
        Self::Host,
        Self::Silence,
    ];

    fn description(self) -> &'static Description {
        match self {
            Self::Alone => &alone::DESCRIPTION,
            Self::Kind => &kind::DESCRIPTION,
            Self::Beside => &beside::DESCRIPTION,
            Self::Short => &short::DESCRIPTION,
            Self::Route => &route::DESCRIPTION,
            Self::Radio => &radio::DESCRIPTION,
            Self::Policer => &policer::DESCRIPTION,
            Self::Host => &host::DESCRIPTION,
            Self::Silence => &silence::DESCRIPTION,
        }
    }

    /// The family of this name.
    ///
    /// # Errors
    /// If there is none. The error says which there are.
    pub fn find(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            format!("there is no family `{name}`; the families are {}", names.join(", "))
        })
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// What it asks.
    pub fn question(self) -> &'static str {
        self.description().question
    }

    /// The distributions that it draws from.
    pub fn drawn(self) -> &'static str {
        self.description().drawn
    }

    /// The figures of a run. The worst draws are by the first.
    pub fn figures(self) -> &'static [FigureKind] {
        self.description().figures
    }

    /// The columns of its table.
    pub fn columns(self) -> &'static [Column] {
        self.description().columns
    }

    /// Whether it runs once for each rival.
    pub fn needs_rival(self) -> bool {
        matches!(self, Self::Beside | Self::Short)
    }

    /// The number of draws on one network, one after the other.
    pub(super) fn turns(self) -> u32 {
        if self == Self::Beside { beside::TURNS } else { 1 }
    }

    /// The position of a figure, if the family has it.
    pub(super) fn figure(self, name: &str) -> Option<usize> {
        self.figures().iter().position(|kind| kind.name == name)
    }

    /// The draw of this number.
    pub(super) fn draw(self, index: u32, draw: &mut Draw) -> Case {
        match self {
            Self::Alone => alone::draw(draw),
            Self::Kind => kind::draw(draw),
            Self::Beside => beside::draw(index, draw),
            Self::Short => short::draw(draw),
            Self::Route => route::draw(draw),
            Self::Radio => radio::draw(draw),
            Self::Policer => policer::draw(draw),
            Self::Host => host::draw(draw),
            Self::Silence => silence::draw(draw),
        }
    }
}

/// A drawn network. Its scenario still lacks the laws.
pub(super) struct Case {
    facts: Vec<Fact>,
    text: String,
    measures: Vec<(String, Measure)>,
    /// Expressions of the figures, in the order of [`Family::figures`]. `{goodput}` is the measure of this name, `{goodput#}` a list of all whose names
    /// begin so.
    figures: Vec<String>,
}

/// The mark of the law under test in a scenario, and of a rival.
const LAW: &str = "$LAW";
const RIVAL: &str = "$RIVAL";

/// The head of the measures, which are the end of a scenario.
pub(super) const MEASURE: &str = "\n[measure]\n";

impl Case {
    /// The scenario with a law, and with a rival if the family needs one. Its measures are the figures.
    pub(super) fn scenario(&self, family: Family, law: &Contender, rival: Option<&Contender>) -> String {
        let text = self.text.replace(LAW, &law.table());
        let text = rival.map_or(text.clone(), |rival| text.replace(RIVAL, &rival.table()));
        let named = family.figures().iter().zip(&self.figures);
        let figures = named.map(|(kind, figure)| {
            let figure = self.measures.iter().fold(figure.clone(), |figure, (name, measure)| {
                let list = format!("{{{}#}}", name.trim_end_matches(|digit: char| digit.is_ascii_digit()));
                figure.replace(&format!("{{{name}}}"), &measure.expression()).replace(&list, &measure.of_each())
            });
            format!("{} = \"{figure}\"\n", kind.name)
        });
        text + MEASURE + &figures.collect::<String>()
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The value of a fact, if the family has it.
    pub(super) fn fact(&self, name: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value)
    }

    /// The measures by name.
    pub(super) fn measures(&self) -> &[(String, Measure)] {
        &self.measures
    }

    /// The figures of a run with these values, in the order of the measures. Without a value, as where no flow has anything, a figure is 0.
    pub(super) fn figures(&self, values: &[f64]) -> Vec<f64> {
        let value = |figure: &String| {
            let measures = || self.measures.iter().zip(values);
            let mut text = figure.clone();
            for ((name, _), value) in measures() {
                text = text.replace(&format!("{{{name}}}"), &value.to_string());
            }
            if let Some((head, (name, tail))) =
                text.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once("#}")?)))
            {
                let all = measures().filter(|((known, _), _)| known.starts_with(name));
                let all: Vec<String> = all.map(|(_, value)| value.to_string()).collect();
                text = (head.to_owned() + &all.join(", ") + tail).replace(&format!("{{{name}#}}"), &all.join(", "));
            }
            let value = Expression::parse(&text).and_then(|figure| figure.evaluate(&mut |_, _| Ok(f64::NAN)));
            value.ok().filter(|value| value.is_finite()).unwrap_or(0.0)
        };
        self.figures.iter().map(value).collect()
    }
}

/// The buffers of the field in bandwidth-delay products.
const BUFFERS: [f64; 6] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0];

/// A bottleneck of 5 to 200 Mbit/s and 10 to 250 ms.
fn bottleneck(draw: &mut Draw) -> Bottleneck {
    Bottleneck { rate: draw.log_uniform(5.0, 200.0), rtt: draw.log_uniform(10.0, 250.0), buffer: draw.one_of(&BUFFERS) }
}

fn facts(link: Bottleneck, more: &[(&'static str, f64)]) -> Vec<Fact> {
    let common = [("rate_mbit_per_s", link.rate), ("rtt_ms", link.rtt), ("buffer_bdp", link.buffer)];
    common.iter().chain(more).map(|&(name, value)| Fact { name, value }).collect()
}

/// A named measure: the mean goodput of a flow in Mbit/s between two times in seconds.
fn goodput(name: &str, flow: usize, from: f64, to: f64) -> (String, Measure) {
    (name.to_owned(), Measure::Goodput { flow, from, to })
}

/// The mean queue of the bottleneck in packets.
fn queue(from: f64, to: f64) -> (String, Measure) {
    ("queue".to_owned(), Measure::Queue { from, to })
}

/// The part of a link of `rate` Mbit/s that a goodput uses.
fn used(goodput: &str, rate: f64) -> String {
    format!("{goodput} / {rate}")
}

/// The percentage of packets of 1500 bytes that were dropped in so many seconds.
fn lost(seconds: f64) -> String {
    format!("100 * {{drops}} / max({{goodput}} * {} + {{drops}}, 1)", 1e6 * seconds / 12_000.0)
}

/// The delay of a queue of so many packets of 1500 bytes in ms, where a link has `rate` Mbit/s.
fn delay_ms(packets: &str, rate: f64) -> String {
    format!("{packets} * 12 / {rate}")
}

/// In place of a goodput of 0 below a fraction, in Mbit/s.
const NOTHING: &str = "0.000000001";

const USED: FigureKind =
    FigureKind { name: "used", unit: "", better: Better::High, what: "goodput over the rate of the link" };
const QUEUE: FigureKind =
    FigureKind { name: "queue", unit: "ms", better: Better::Low, what: "mean delay of the bottleneck's queue" };
const LOST: FigureKind = FigureKind {
    name: "lost",
    unit: "%",
    better: Better::Low,
    what: "packets that were dropped, of those that were sent",
};

const fn column(figure: usize, statistic: Statistic) -> Column {
    Column { figure, statistic }
}
const MEAN: Statistic = Statistic::Mean;
const fn p(percent: u8) -> Statistic {
    Statistic::Quantile(percent as f64 / 100.0)
}

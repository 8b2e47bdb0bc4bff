//! Arithmetic over what a run measured: `flow.f0.max_seq + flow.f1.max_seq`,
//! `100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)`, `flow.f0.dropped_packets == 0`.
//!
//! Grammar, loosest first:
//!
//! ```text
//! assertion = sum [("==" | "!=" | "<=" | ">=" | "<" | ">") sum]
//! sum       = product {("+" | "-") product}
//! product   = factor {("*" | "/") factor}
//! factor    = "-" factor | number | "(" sum ")" | ("min" | "max") "(" sum {"," sum} ")" | name [ "(" label {"," label} ")" ]
//!           | function "(" series [comparison sum] {"," sum} ")"
//! series    = name | ("bins" | "pauses" | "falls") "(" name "," sum ")"
//! label     = "'" text "'"
//! ```
//!
//! Series have the functions of `FUNCTIONS`, below.
//!
//! A name has letters, digits, `_`, `.` and, between two of them, `-`: a minus sign has a space before or behind it. In the place
//! of an id it may have a `*`: the sum over all.

mod parser;

use std::fmt;

use self::parser::Parser;
use crate::comparison::Comparison;
pub use crate::series::Series;
use crate::series::{self, Extreme, Kind};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Tree);

/// A comparison of two expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    left: Expression,
    comparison: Comparison,
    right: Expression,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Number(f64),
    /// A measure or a gauge of a run, at the variant that the labels name.
    Name(String, Vec<String>),
    Negative(Box<Tree>),
    Binary(Operator, Box<Tree>, Box<Tree>),
    Least(Vec<Tree>),
    Most(Vec<Tree>),
    /// A question to a series of a run.
    Asked(Box<Question>),
}

impl Tree {
    fn may_be_negative(&self) -> bool {
        match self {
            Self::Number(number) => *number < 0.0,
            Self::Name(..) | Self::Asked(_) => false,
            Self::Negative(_) | Self::Binary(Operator::Subtract, ..) => true,
            Self::Binary(_, left, right) => left.may_be_negative() || right.may_be_negative(),
            Self::Least(all) | Self::Most(all) => all.iter().any(Self::may_be_negative),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Question {
    function: Function,
    series: String,
    /// What is made of it before it is asked, and of what width or share.
    made: Option<(Made, Tree)>,
    condition: Option<(Comparison, Tree)>,
    times: Vec<Tree>,
}

/// What can be made of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Their size per second in bins: a variable.
    Bins,
    /// The times without one: events.
    Pauses,
    /// The times at which a variable falls to a share of itself: events.
    Falls,
}

impl Made {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bins" => Self::Bins,
            "pauses" => Self::Pauses,
            "falls" => Self::Falls,
            _ => return None,
        })
    }

    /// Of what kind of series it is made, and what it is.
    fn kinds(self) -> (Kind, Kind) {
        match self {
            Self::Bins => (Kind::Events, Kind::Variable),
            Self::Pauses => (Kind::Events, Kind::Events),
            Self::Falls => (Kind::Variable, Kind::Events),
        }
    }
}

/// What can be asked of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    ValueAt,
    Least,
    Most,
    Mean,
    TimeOfLeast,
    TimeOfMost,
    Sum,
    Largest,
    Count,
    FirstTime,
    LastTime,
    Quantile,
}

/// Functions of series, for the reference: how they are written, and what they are.
pub(crate) const FUNCTIONS: [(&str, &str); 17] = [
    ("value_at(S, t)", "what it was at t"),
    ("min(S, t0, t1)", "its least value from t0 to t1"),
    ("max(S, t0, t1)", "its largest value from t0 to t1"),
    ("mean(S, t0, t1)", "its mean over that time; of events, their size per second"),
    ("time_of_min(S, t0, t1)", "when it was first at its least value"),
    ("time_of_max(S, t0, t1)", "when it was first at its largest value"),
    ("first_time(S >= x, t0)", "the first time from t0 on; also with `> <= < == !=`; of events, `first_time(E, t0)`"),
    ("last_time(S >= x, t1)", "the last time up to t1; of events, `last_time(E, t1)`"),
    ("count(S >= x, t0, t1)", "how often it came to be so from t0 on and before t1"),
    ("count(E, t0, t1)", "how many events there were from t0 on and before t1"),
    ("sum(E, t0, t1)", "their size"),
    ("quantile(S, q, t0, t1)", "at most so much it was for a share q of the time: 0.95 is the 95th percentile"),
    ("quantile(E, q, t0, t1)", "the size that a share q of them has at most"),
    ("largest(E, t0, t1)", "the size of the largest; 0 if there is none"),
    (
        "bins(E, w)",
        "a variable in place of an S: the size of the events per second, in bins of w seconds from 0 to the end of the run",
    ),
    (
        "pauses(E, w)",
        "events in place of an E: the times of more than w seconds from one event to the next, or to the end of the run; each \
         happens when it begins, and its size are its seconds",
    ),
    (
        "falls(S, q)",
        "events in place of an E: the times at which a variable falls to at most a share q of what it was just before, 0.5 where a \
         window is halved; its size is by how much it falls",
    ),
];

impl Function {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "value_at" => Self::ValueAt,
            "min" => Self::Least,
            "max" => Self::Most,
            "mean" => Self::Mean,
            "time_of_min" => Self::TimeOfLeast,
            "time_of_max" => Self::TimeOfMost,
            "sum" => Self::Sum,
            "largest" => Self::Largest,
            "count" => Self::Count,
            "first_time" => Self::FirstTime,
            "last_time" => Self::LastTime,
            "quantile" => Self::Quantile,
            _ => return None,
        })
    }

    /// How many numbers it is told: times, and before them the share of a quantile.
    fn times(self) -> usize {
        match self {
            Self::Quantile => 3,
            Self::ValueAt | Self::FirstTime | Self::LastTime => 1,
            _ => 2,
        }
    }

    /// Whether it can be asked of variables, and of events.
    fn suits(self, kind: Kind) -> bool {
        match self {
            Self::Mean | Self::FirstTime | Self::LastTime | Self::Count | Self::Quantile => true,
            Self::Sum | Self::Largest => kind == Kind::Events,
            _ => kind == Kind::Variable,
        }
    }

    fn compares(self, kind: Kind) -> bool {
        matches!(self, Self::FirstTime | Self::LastTime | Self::Count) && kind == Kind::Variable
    }

    /// Whether it can be asked of a run that ends at `end`, as far as its numbers are known.
    fn check(self, made: Option<(Made, f64)>, numbers: &[Option<f64>], end: f64) -> Result<(), String> {
        match made {
            Some((Made::Bins, width)) => _ = series::bin_count(width, end)?,
            Some((Made::Pauses, width)) if !(0.0..end).contains(&width) => {
                return Err(format!(
                    "no pause of more than {width} s is in a run of {end} s: use 0 or more, and less than that"
                ));
            }
            _ => {}
        }
        let times = match (self, numbers) {
            (Self::Quantile, [share, times @ ..]) => {
                share.map_or(Ok(()), series::check_share)?;
                times
            }
            (_, times) => times,
        };
        // Seconds are sums and products of decimals, and nothing happens within a nanosecond.
        let is_inside = |time: f64| (0.0..=end + 1e-9).contains(&time);
        if let Some(time) = times.iter().flatten().find(|&&time| !is_inside(time)) {
            return Err(format!("{time} s is outside the run, which ends at {end} s: ask from 0 to {end}"));
        }
        match *times {
            [Some(from), Some(to)] if from > to => {
                Err(format!("{from} s is later than {to} s: write the earlier time first"))
            }
            [Some(from), Some(to)] if from >= to && !self.asks_instants() => {
                Err(format!("there is no time from {from} s to {to} s: make the second later"))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is an answer where the second time is the first.
    fn asks_instants(self) -> bool {
        matches!(self, Self::Least | Self::Most | Self::TimeOfLeast | Self::TimeOfMost)
    }
}

impl Question {
    fn answer(&self, lookups: &mut Lookups<'_, '_>) -> Result<f64, ExpressionError> {
        let mut value = |tree: &Tree| tree.evaluate(lookups);
        let made = match &self.made {
            Some((made, width)) => Some((*made, value(width)?)),
            None => None,
        };
        let condition = match &self.condition {
            Some((comparison, right)) => Some((*comparison, value(right)?)),
            None => None,
        };
        let times = self.times.iter().map(value).collect::<Result<Vec<f64>, _>>()?;
        let Found { series, end } = (lookups.series)(&self.series)?;
        let asked = || {
            let Some(series) = series else {
                let width = self.made.as_ref().and_then(|(made, width)| Some((*made, width.constant()?)));
                let times: Vec<_> = self.times.iter().map(Tree::constant).collect();
                return self.function.check(width, &times, end).map(|()| 1.0);
            };
            self.function.check(made, &times.iter().copied().map(Some).collect::<Vec<_>>(), end)?;
            let series = match made {
                Some((Made::Bins, width)) => series.bins(width, end)?,
                Some((Made::Pauses, width)) => series.pauses(width, end),
                Some((Made::Falls, share)) => series.falls(share),
                None => series,
            };
            let first = times[0];
            let second = times.get(1).copied().unwrap_or(first);
            match self.function {
                Function::ValueAt => series.value_at(first),
                Function::Least => series.extreme(Extreme::Least, first, second).map(|(_, value)| value),
                Function::Most => series.extreme(Extreme::Most, first, second).map(|(_, value)| value),
                Function::TimeOfLeast => series.extreme(Extreme::Least, first, second).map(|(time, _)| time),
                Function::TimeOfMost => series.extreme(Extreme::Most, first, second).map(|(time, _)| time),
                Function::Mean => series.mean(first, second),
                Function::Sum => Ok(series.sum(first, second)),
                Function::Largest => Ok(series.largest(first, second)),
                Function::Count => Ok(series.count(condition, first, second)),
                Function::FirstTime => series.first_time(condition, first),
                Function::LastTime => series.last_time(condition, first),
                Function::Quantile => series.quantile(first, second, times[2]),
            }
        };
        asked().map_err(|error| ExpressionError(format!("`{}`: {error}", self.series)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Why a text is not an expression, or has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError(pub(crate) String);

impl ExpressionError {
    /// For whoever looks names up.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::error::Error for ExpressionError {}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Expression {
    /// Parses `text`.
    ///
    /// # Errors
    /// If it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let tree = parser.sum(0)?;
        parser.end()?;
        Ok(Self(tree))
    }

    /// `name('label', ...)`.
    pub(crate) fn name(name: &str, labels: &[&str]) -> Self {
        Self(Tree::Name(name.to_owned(), labels.iter().map(|&label| label.to_owned()).collect()))
    }

    /// `self - other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self(Tree::Binary(Operator::Subtract, Box::new(self.0.clone()), Box::new(other.0.clone())))
    }

    /// Whether anything in it can make it negative: no gauge, and nothing that can be asked of a series, is below zero by itself.
    pub(crate) fn may_be_negative(&self) -> bool {
        self.0.may_be_negative()
    }

    /// `self / other`.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(Tree::Binary(Operator::Divide, Box::new(self.0.clone()), Box::new(other.0.clone())))
    }

    /// Computes it; `value` knows what a name at some labels is. There are no series.
    ///
    /// # Errors
    /// What `value` says.
    pub fn evaluate(&self, value: &mut Lookup<'_>) -> Result<f64, ExpressionError> {
        self.evaluate_run(value, &mut |name| {
            Err(ExpressionError(format!(
                "`{name}` is a series of one run; give what you ask of it a name in [measure]"
            )))
        })
    }

    /// The same for one run, whose series `series` knows.
    ///
    /// # Errors
    /// What `value` and `series` say, and what has no answer.
    pub fn evaluate_run(&self, value: &mut Lookup<'_>, series: &mut SeriesLookup<'_>) -> Result<f64, ExpressionError> {
        self.0.evaluate(&mut Lookups { value, series })
    }

    /// Whether it asks for series.
    pub(crate) fn asks_series(&self) -> bool {
        self.0.asks_series()
    }

    /// The names of the series that it asks for.
    pub(crate) fn series(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.series(&mut names);
        names
    }
}

/// A series by its name.
pub type SeriesLookup<'a> = dyn FnMut(&str) -> Result<Found, ExpressionError> + 'a;

/// A series that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What happened; `None` before the run. What is asked of it is then 1, if it can be asked.
    pub series: Option<Series>,
    /// When its run ends, in seconds.
    pub end: f64,
}

struct Lookups<'a, 'b> {
    value: &'a mut Lookup<'b>,
    series: &'a mut SeriesLookup<'b>,
}

/// What a name with some labels is worth.
pub type Lookup<'a> = dyn FnMut(&str, &[String]) -> Result<f64, ExpressionError> + 'a;

impl Assertion {
    /// Parses `text`, which compares two expressions.
    ///
    /// # Errors
    /// If it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let left = Expression(parser.sum(0)?);
        let comparison = parser.comparison()?;
        let right = Expression(parser.sum(0)?);
        parser.end()?;
        Ok(Self { left, comparison, right })
    }

    /// The two sides and whether they compare as asserted.
    ///
    /// # Errors
    /// What `value` and `series` say, and what has no answer.
    pub fn evaluate(
        &self,
        value: &mut Lookup<'_>,
        series: &mut SeriesLookup<'_>,
    ) -> Result<(f64, f64, bool), ExpressionError> {
        let (left, right) = (self.left.evaluate_run(value, series)?, self.right.evaluate_run(value, series)?);
        Ok((left, right, self.comparison.holds(left, right)))
    }

    /// The names of the series that it asks for.
    pub fn series(&self) -> Vec<String> {
        [&self.left, &self.right].into_iter().flat_map(Expression::series).collect()
    }
}

impl Tree {
    fn asks_series(&self) -> bool {
        match self {
            Self::Number(_) | Self::Name(..) => false,
            Self::Negative(term) => term.asks_series(),
            Self::Binary(_, left, right) => left.asks_series() || right.asks_series(),
            Self::Least(terms) | Self::Most(terms) => terms.iter().any(Self::asks_series),
            Self::Asked(_) => true,
        }
    }

    /// Its value, if no run is needed to know it.
    fn constant(&self) -> Option<f64> {
        let unknown = || ExpressionError::new("only a run tells");
        self.evaluate(&mut Lookups { value: &mut |_, _| Err(unknown()), series: &mut |_| Err(unknown()) }).ok()
    }

    fn series(&self, names: &mut Vec<String>) {
        match self {
            Self::Number(_) | Self::Name(..) => {}
            Self::Negative(term) => term.series(names),
            Self::Binary(_, left, right) => [left, right].into_iter().for_each(|side| side.series(names)),
            Self::Least(terms) | Self::Most(terms) => terms.iter().for_each(|term| term.series(names)),
            Self::Asked(question) => {
                names.push(question.series.clone());
                let Question { made, condition, times, .. } = question.as_ref();
                let width = made.as_ref().map(|(_, width)| width);
                let right = condition.as_ref().map(|(_, right)| right);
                width.into_iter().chain(right).chain(times).for_each(|term| term.series(names));
            }
        }
    }

    fn evaluate(&self, lookups: &mut Lookups<'_, '_>) -> Result<f64, ExpressionError> {
        let mut extreme = |terms: &[Self], better: fn(f64, f64) -> f64| {
            let mut values = Vec::with_capacity(terms.len());
            for term in terms {
                values.push(term.evaluate(lookups)?);
            }
            Ok(values.into_iter().reduce(better).expect("the parser wants at least one"))
        };
        Ok(match self {
            Self::Number(number) => *number,
            Self::Name(name, labels) => (lookups.value)(name, labels)?,
            Self::Negative(term) => -term.evaluate(lookups)?,
            Self::Asked(question) => question.answer(lookups)?,
            Self::Least(terms) => extreme(terms, f64::min)?,
            Self::Most(terms) => extreme(terms, f64::max)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(lookups)?, right.evaluate(lookups)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;

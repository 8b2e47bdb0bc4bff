//! Arithmetic over what a run measured: `flow.f0.max_seq + flow.f1.max_seq`,
//! `100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)`, `flow.f0.dropped_packets == 0`.
//!
//! Grammar, loosest first:
//!
//! ```text
//! assertion = sum [("==" | "!=" | "<=" | ">=" | "<" | ">") sum]
//! sum       = product {("+" | "-") product}
//! product   = factor {("*" | "/") factor}
//! factor    = "-" factor | number | "(" sum ")" | list "(" sum {"," sum} ")" | name [ "(" label {"," label} ")" ]
//!           | function "(" series [comparison sum] {"," sum} ")"
//! list      = "min" | "max" | "total" | "jain"
//! series    = name | ("bins" | "pauses" | "falls") "(" name "," sum ")"
//! label     = "'" text "'"
//! ```
//!
//! `FUNCTIONS`, below, lists the functions of series.
//!
//! A name has letters, digits, `_`, `.` and, between two of these, `-`; a minus sign has a space on one side. A `*` in place
//! of an id is the sum over all. A `#` in a list repeats its term for each id: `max(mean(flow.#.goodput, 30, 90))` is the
//! largest of the flows' means, and `rival#` stands for the ids that begin with `rival`.

mod list;
mod parser;

use std::fmt;

pub(crate) use self::list::LISTS;
use self::list::List;
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
    /// A measure or a gauge of a run, at the variant with these labels.
    Name(String, Vec<String>),
    Negative(Box<Tree>),
    Binary(Operator, Box<Tree>, Box<Tree>),
    List(List, Vec<Tree>),
    /// A function of a series.
    Asked(Box<Question>),
}

impl Tree {
    fn may_be_negative(&self) -> bool {
        match self {
            Self::Number(number) => *number < 0.0,
            // A gauge is never below zero; another measure may be.
            Self::Name(name, _) => !name.contains('.'),
            Self::Asked(_) => false,
            Self::Negative(_) | Self::Binary(Operator::Subtract, ..) => true,
            Self::Binary(_, left, right) => left.may_be_negative() || right.may_be_negative(),
            Self::List(_, all) => all.iter().any(Self::may_be_negative),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Question {
    function: Function,
    series: String,
    /// The transformation of the series, with its width or share.
    made: Option<(Made, Tree)>,
    condition: Option<(Comparison, Tree)>,
    times: Vec<Tree>,
}

/// A transformation of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Size per second in bins: a variable.
    Bins,
    /// Intervals without events: events.
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

    /// The kinds of series of its argument and its result.
    fn kinds(self) -> (Kind, Kind) {
        match self {
            Self::Bins => (Kind::Events, Kind::Variable),
            Self::Pauses => (Kind::Events, Kind::Events),
            Self::Falls => (Kind::Variable, Kind::Events),
        }
    }
}

/// A function of a series.
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

/// Functions of series for the reference: syntax and meaning.
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

    /// The number of its time arguments, after the share of a quantile.
    fn times(self) -> usize {
        match self {
            Self::Quantile => 3,
            Self::ValueAt | Self::FirstTime | Self::LastTime => 1,
            _ => 2,
        }
    }

    /// Whether it applies to variables, and to events.
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

    /// Checks the arguments for a run that ends at `end`, as far as they are known.
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
        // Times are sums and products of decimals; the tolerance is a nanosecond.
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

    /// Whether it is defined if both times are equal.
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
    /// An error for a function that looks up names.
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
    /// Parses an expression.
    ///
    /// # Errors
    /// If `text` does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let tree = parser.sum(0)?;
        parser.end()?;
        Ok(Self(tree))
    }

    /// The expression without `#`: each term of a list with a `#` is repeated for each id. `ids` lists the ids of `flow` and `link`.
    ///
    /// # Errors
    /// If a `#` is outside of a list, matches no id, or one term has several.
    pub fn written_out(mut self, ids: &dyn Fn(&str) -> Vec<String>) -> Result<Self, ExpressionError> {
        self.0.write_out(ids)?;
        match self.0.numbered() {
            Some(name) => Err(ExpressionError(format!(
                "`{name}` is of each, and stands in no list: write min(...), max(...), total(...) or jain(...) around it"
            ))),
            None => Ok(self),
        }
    }

    /// `name('label', ...)`.
    pub(crate) fn name(name: &str, labels: &[&str]) -> Self {
        Self(Tree::Name(name.to_owned(), labels.iter().map(|&label| label.to_owned()).collect()))
    }

    /// `self - other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        Self(Tree::Binary(Operator::Subtract, Box::new(self.0.clone()), Box::new(other.0.clone())))
    }

    /// Whether it can be negative, judged by its form: only differences, signs and other measures can make it so.
    pub(crate) fn may_be_negative(&self) -> bool {
        self.0.may_be_negative()
    }

    /// `self / other`.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(Tree::Binary(Operator::Divide, Box::new(self.0.clone()), Box::new(other.0.clone())))
    }

    /// Evaluates it without series; `value` looks up a name at some labels.
    ///
    /// # Errors
    /// The error of `value`.
    pub fn evaluate(&self, value: &mut Lookup<'_>) -> Result<f64, ExpressionError> {
        self.evaluate_run(value, &mut |name| {
            Err(ExpressionError(format!(
                "`{name}` is a series of one run; give what you ask of it a name in [measure]"
            )))
        })
    }

    /// Evaluates it for one run, whose series `series` looks up.
    ///
    /// # Errors
    /// The errors of `value` and `series`, and undefined results.
    pub fn evaluate_run(&self, value: &mut Lookup<'_>, series: &mut SeriesLookup<'_>) -> Result<f64, ExpressionError> {
        self.0.evaluate(&mut Lookups { value, series })
    }

    /// Whether it uses series.
    pub(crate) fn asks_series(&self) -> bool {
        self.0.asks_series()
    }

    /// The names of the series that it uses.
    pub(crate) fn series(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.series(&mut names);
        names
    }
}

/// Looks up a series by name.
pub type SeriesLookup<'a> = dyn FnMut(&str) -> Result<Found, ExpressionError> + 'a;

/// A series that exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The series; `None` before the run: then a valid function of it gives 1.
    pub series: Option<Series>,
    /// The end of its run in seconds.
    pub end: f64,
}

struct Lookups<'a, 'b> {
    value: &'a mut Lookup<'b>,
    series: &'a mut SeriesLookup<'b>,
}

/// Looks up the value of a name at some labels.
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

    /// The two sides, and whether the comparison holds.
    ///
    /// # Errors
    /// The errors of `value` and `series`, and undefined results.
    pub fn evaluate(
        &self,
        value: &mut Lookup<'_>,
        series: &mut SeriesLookup<'_>,
    ) -> Result<(f64, f64, bool), ExpressionError> {
        let (left, right) = (self.left.evaluate_run(value, series)?, self.right.evaluate_run(value, series)?);
        Ok((left, right, self.comparison.holds(left, right)))
    }

    /// Both sides as [`Expression::written_out`].
    ///
    /// # Errors
    /// As there.
    pub fn written_out(self, ids: &dyn Fn(&str) -> Vec<String>) -> Result<Self, ExpressionError> {
        Ok(Self { left: self.left.written_out(ids)?, right: self.right.written_out(ids)?, ..self })
    }

    /// The names of the series that it uses.
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
            Self::List(_, terms) => terms.iter().any(Self::asks_series),
            Self::Asked(_) => true,
        }
    }

    /// Its value, if it is constant.
    fn constant(&self) -> Option<f64> {
        let unknown = || ExpressionError::new("only a run tells");
        self.evaluate(&mut Lookups { value: &mut |_, _| Err(unknown()), series: &mut |_| Err(unknown()) }).ok()
    }

    fn series(&self, names: &mut Vec<String>) {
        match self {
            Self::Number(_) | Self::Name(..) => {}
            Self::Negative(term) => term.series(names),
            Self::Binary(_, left, right) => [left, right].into_iter().for_each(|side| side.series(names)),
            Self::List(_, terms) => terms.iter().for_each(|term| term.series(names)),
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
        Ok(match self {
            Self::Number(number) => *number,
            Self::Name(name, labels) => (lookups.value)(name, labels)?,
            Self::Negative(term) => -term.evaluate(lookups)?,
            Self::Asked(question) => question.answer(lookups)?,
            Self::List(list, terms) => {
                let mut values = Vec::with_capacity(terms.len());
                for term in terms {
                    values.push(term.evaluate(lookups)?);
                }
                list.of(&values)
            }
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

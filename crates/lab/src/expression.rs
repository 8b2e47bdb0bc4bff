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
//! series    = name | ("bins" | "pauses") "(" name "," sum ")"
//! label     = "'" text "'"
//! ```
//!
//! Series have the functions of `FUNCTIONS`, below.
//!
//! A name has letters, digits, `_`, `.` and, between two of them, `-`: a minus sign has a space before or behind it. In the place
//! of an id it may have a `*`: the sum over all.

use std::fmt;

pub use crate::series::Series;
use crate::series::{Extreme, Kind};

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

#[derive(Clone, Debug, PartialEq)]
struct Question {
    function: Function,
    series: String,
    /// What is made of its events before it is asked, and of what width.
    made: Option<(Made, Tree)>,
    condition: Option<(Comparison, Tree)>,
    times: Vec<Tree>,
}

/// What can be made of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Their size per second in bins: a variable.
    Bins,
    /// The times without one: events.
    Pauses,
}

impl Made {
    fn named(name: &str) -> Option<(Self, Kind)> {
        Some(match name {
            "bins" => (Self::Bins, Kind::Variable),
            "pauses" => (Self::Pauses, Kind::Events),
            _ => return None,
        })
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
pub(crate) const FUNCTIONS: [(&str, &str); 16] = [
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
    ("bins(E, w)", "a variable in place of an S: the size of the events per second, in bins of w seconds from 0 on"),
    (
        "pauses(E, w)",
        "events in place of an E: the times of more than w seconds from one event to the next, or to the end of the run; each \
         happens when it begins, and its size are its seconds",
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
        let Some((series, end)) = (lookups.series)(&self.series)? else { return Ok(1.0) };
        let asked = || {
            let series = match made {
                Some((Made::Bins, width)) => series.bins(width, end)?,
                Some((Made::Pauses, width)) => series.pauses(width, end),
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

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Below,
    Above,
}

impl Comparison {
    /// Longer signs first: `<=` begins with `<`.
    const SIGNS: [(&str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Below),
        (">", Self::Above),
    ];

    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        let order = left.partial_cmp(&right);
        match self {
            Self::Equal => order == Some(std::cmp::Ordering::Equal),
            Self::Unequal => order.is_some_and(std::cmp::Ordering::is_ne),
            Self::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Self::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Self::Below => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::Above => order.is_some_and(std::cmp::Ordering::is_gt),
        }
    }
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

/// A longer text is no expression that a person wrote, and trees are walked on the stack.
const LENGTH_MAX: usize = 4096;

/// Brackets may stand this deep: more is no expression that a person wrote, and the parser uses the stack.
const DEPTH_MAX: usize = 64;

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

/// A series by its name and the time at which its run ended; `None` where only the name is checked: what is asked of it is then
/// 1.
pub type SeriesLookup<'a> = dyn FnMut(&str) -> Result<Option<(Series, f64)>, ExpressionError> + 'a;

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

    /// Whether it asks for series.
    pub fn asks_series(&self) -> bool {
        self.left.asks_series() || self.right.asks_series()
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

/// The series that a question is about.
struct Subject<'a> {
    name: &'a str,
    /// Of what is made of it.
    kind: Kind,
    made: Option<(Made, Tree)>,
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, ExpressionError> {
        match text.len() {
            0..=LENGTH_MAX => Ok(Self { text, rest: text }),
            length => {
                Err(ExpressionError(format!("an expression of {length} bytes is too long: at most {LENGTH_MAX}")))
            }
        }
    }

    fn sum(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match () {
                () if self.take("+") => Operator::Add,
                () if self.take("-") => Operator::Subtract,
                () => return Ok(left),
            };
            left = Tree::Binary(operator, Box::new(left), Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        let mut left = self.factor(depth)?;
        loop {
            let operator = match () {
                () if self.take("*") => Operator::Multiply,
                () if self.take("/") => Operator::Divide,
                () => return Ok(left),
            };
            left = Tree::Binary(operator, Box::new(left), Box::new(self.factor(depth)?));
        }
    }

    fn factor(&mut self, depth: usize) -> Result<Tree, ExpressionError> {
        if depth >= DEPTH_MAX {
            return Err(self.fault("fewer brackets"));
        }
        if self.take("-") {
            return self.factor(depth + 1).map(|term| Tree::Negative(Box::new(term)));
        }
        if self.take("(") {
            let tree = self.sum(depth + 1)?;
            return self.expect(")").map(|()| tree);
        }
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let length = self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
            let number = self.rest[..length].parse().map_err(|_| self.fault("a number"))?;
            self.rest = &self.rest[length..];
            return Ok(Tree::Number(number));
        }
        let name = self.name().ok_or_else(|| self.fault("a number, a name or a bracket"))?;
        if crate::series::kind(name).is_some() {
            return Err(ExpressionError(format!(
                "`{name}` is a series: ask for one of its values, as value_at({name}, 5)"
            )));
        }
        if !self.take("(") {
            return Ok(Tree::Name(name.to_owned(), Vec::new()));
        }
        if let Some(function) = Function::named(name)
            && let Some(subject) = self.series(depth)?
        {
            let tree = self.question(name, function, subject, depth)?;
            return self.expect(")").map(|()| tree);
        }
        let tree = match name {
            "min" => Tree::Least(self.list(|parser| parser.sum(depth + 1))?),
            "max" => Tree::Most(self.list(|parser| parser.sum(depth + 1))?),
            _ => Tree::Name(name.to_owned(), self.list(Self::label)?),
        };
        self.expect(")").map(|()| tree)
    }

    /// A series in brackets behind a function, and what is made of it; nothing if something else stands there.
    fn series(&mut self, depth: usize) -> Result<Option<Subject<'a>>, ExpressionError> {
        let before = self.rest;
        self.rest = self.rest.trim_start();
        let name = self.name().unwrap_or_default();
        if let Some((made, kind)) = Made::named(name)
            && self.take("(")
        {
            self.rest = self.rest.trim_start();
            let name = self.name().filter(|name| crate::series::kind(name) == Some(Kind::Events));
            let name = name.ok_or_else(|| self.fault("a series of events, such as flow.f0.goodput"))?;
            self.expect(",")?;
            let width = self.sum(depth + 1)?;
            self.expect(")")?;
            return Ok(Some(Subject { name, kind, made: Some((made, width)) }));
        }
        match crate::series::kind(name) {
            Some(kind) => Ok(Some(Subject { name, kind, made: None })),
            None => {
                self.rest = before;
                Ok(None)
            }
        }
    }

    fn question(
        &mut self,
        name: &str,
        function: Function,
        Subject { name: series, kind, made }: Subject<'_>,
        depth: usize,
    ) -> Result<Tree, ExpressionError> {
        if !function.suits(kind) {
            return Err(ExpressionError(match kind {
                Kind::Events => format!("`{series}` has events, and no {name}: write {name}(bins({series}, 0.1), ...)"),
                Kind::Variable => format!("`{series}` is a variable, and has no {name}: use mean, min or max"),
            }));
        }
        let condition = match function.compares(kind) {
            true => Some((self.comparison()?, self.sum(depth + 1)?)),
            false => None,
        };
        let mut times = Vec::new();
        for _ in 0..function.times() {
            self.expect(",")?;
            times.push(self.sum(depth + 1)?);
        }
        Ok(Tree::Asked(Box::new(Question { function, series: series.to_owned(), made, condition, times })))
    }

    fn comparison(&mut self) -> Result<Comparison, ExpressionError> {
        let found = Comparison::SIGNS.iter().find(|(sign, _)| self.take(sign));
        found.map(|&(_, comparison)| comparison).ok_or_else(|| self.fault("one of == != <= >= < >"))
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<Vec<T>, ExpressionError> {
        let mut items = vec![item(self)?];
        while self.take(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn label(&mut self) -> Result<String, ExpressionError> {
        self.expect("'")?;
        let length = self.rest.find('\'').ok_or_else(|| self.fault("a closing '"))?;
        let label = self.rest[..length].to_owned();
        self.rest = &self.rest[length + 1..];
        Ok(label)
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let bytes = self.rest.as_bytes();
        let mut length = 0;
        while let Some(&byte) = bytes.get(length) {
            let joins = byte == b'-' && length > 0 && bytes.get(length + 1).is_some_and(|&next| is_inner(next.into()));
            // `flow.*.goodput`: all flows.
            let is_all = byte == b'*' && self.rest[..length].ends_with('.') && bytes.get(length + 1) == Some(&b'.');
            if !is_inner(byte.into()) && !joins && !is_all {
                break;
            }
            length += 1;
        }
        let (name, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.trim_start().strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take(sign) { Ok(()) } else { Err(self.fault(&format!("`{sign}`"))) }
    }

    fn end(&self) -> Result<(), ExpressionError> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.fault("the end")) }
    }

    fn fault(&self, expected: &str) -> ExpressionError {
        let rest = self.rest.trim_start();
        let found = if rest.is_empty() { "the end".to_owned() } else { format!("`{rest}`") };
        ExpressionError(format!("in `{}`: expected {expected}, found {found}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, labels: &[String]) -> Result<f64, ExpressionError> {
        match (name, labels) {
            ("flow.my-flow.max_seq", []) => Ok(7.0),
            ("delivered", [agent, error]) if agent == "CTCP" && error == "error=0.01" => Ok(12102.0),
            ("delivered", [agent, _]) if agent == "Vegas" => Ok(8456.0),
            _ => Err(ExpressionError(format!("unknown {name}"))),
        }
    }

    /// A window of 1, 5 from 2 s and 3 from 4 s on; drops at 1 s and 3 s. The run ends at 10 s.
    fn series(name: &str) -> Result<Option<(Series, f64)>, ExpressionError> {
        let series = match name {
            "flow.f.window" => Series::variable([(0.0, 1.0), (2.0, 5.0), (4.0, 3.0)]),
            "link.a.drops" => Series::events([(1.0, 1.0), (3.0, 1.0)]),
            _ => return Err(ExpressionError(format!("unknown {name}"))),
        };
        Ok(Some((series, 10.0)))
    }

    #[track_caller]
    fn assert_asked(text: &str, expected: f64) {
        let expression = Expression::parse(text).unwrap();
        assert!(expression.asks_series());
        let got = expression.evaluate_run(&mut value, &mut series).unwrap();
        assert!((got - expected).abs() < 1e-9, "{text}: expected {expected}, got {got}");
    }

    #[test]
    fn functions_ask_series() {
        assert_asked("value_at(flow.f.window, 3)", 5.0);
        assert_asked("max(flow.f.window, 0, 9) - min(flow.f.window, 3, 9)", 2.0);
        assert_asked("mean(flow.f.window, 2, 6)", 4.0);
        assert_asked("time_of_max(flow.f.window, 0, 9) + time_of_min(flow.f.window, 3, 9)", 6.0);
        assert_asked("first_time(flow.f.window >= 2 + 1, 0)", 2.0);
        assert_asked("last_time(flow.f.window > 4, 9)", 4.0);
        assert_asked("first_time(link.a.drops, 2) - first_time(link.a.drops, 0)", 2.0);
        assert_asked("last_time(link.a.drops, 9)", 3.0);
        assert_asked("count(link.a.drops, 0, 3)", 1.0);
        assert_asked("quantile(flow.f.window, 0.5, 0, 10) + quantile(link.a.drops, 0.95, 0, 10)", 4.0);
        assert_asked("count(flow.f.window >= 3, 0, 9)", 1.0);
        assert_asked("sum(link.a.drops, 0, 3.5)", 2.0);
        assert_asked("mean(link.a.drops, 0, 4)", 0.5);
        assert_asked("max(bins(link.a.drops, 0.5), 0, 10)", 2.0);
        assert_asked("count(pauses(link.a.drops, 1), 0, 10) + largest(pauses(link.a.drops, 1), 0, 10)", 9.0);
        assert_asked("first_time(pauses(link.a.drops, 2), 0) + sum(pauses(link.a.drops, 2), 0, 10)", 10.0);
        assert_asked("value_at(flow.f.window, first_time(link.a.drops, 2))", 5.0);
        assert_asked("max(1, value_at(flow.f.window, 3))", 5.0);
    }

    #[test]
    fn questions_that_have_no_answer_say_why() {
        let parse = |text: &str| Expression::parse(text).unwrap_err().to_string();
        assert_eq!(
            parse("flow.f.window + 1"),
            "`flow.f.window` is a series: ask for one of its values, as value_at(flow.f.window, 5)"
        );
        assert_eq!(
            parse("max(link.a.drops, 0, 1)"),
            "`link.a.drops` has events, and no max: write max(bins(link.a.drops, 0.1), ...)"
        );
        assert_eq!(
            parse("sum(flow.f.window, 0, 1)"),
            "`flow.f.window` is a variable, and has no sum: use mean, min or max"
        );
        assert_eq!(parse("max(flow.f.window, 0)"), "in `max(flow.f.window, 0)`: expected `,`, found `)`");
        assert_eq!(
            parse("first_time(flow.f.window, 0)"),
            "in `first_time(flow.f.window, 0)`: expected one of == != <= >= < >, found `, 0)`"
        );
        let never = Expression::parse("first_time(flow.f.window > 9, 0)").unwrap();
        assert_eq!(
            never.evaluate_run(&mut value, &mut series).unwrap_err().to_string(),
            "`flow.f.window`: it never happens from 0 s on"
        );
        assert_eq!(
            never.evaluate(&mut value).unwrap_err().to_string(),
            "`flow.f.window` is a series of one run; give what you ask of it a name in [measure]"
        );
    }

    #[track_caller]
    fn assert_value(text: &str, expected: f64) {
        let got = Expression::parse(text).and_then(|expression| expression.evaluate(&mut value)).unwrap();
        assert!((got - expected).abs() < 1e-9, "{text}: expected {expected}, got {got}");
    }

    #[test]
    fn arithmetic_binds_as_usual() {
        assert_value("1 + 2 * 3", 7.0);
        assert_value("(1 + 2) * 3", 9.0);
        assert_value("8 / 2 / 2 - 1", 1.0);
        assert_value("-2 * -3", 6.0);
        assert_value("min(3, 1 + 1, 5) + max(1, 4)", 6.0);
    }

    #[test]
    fn a_minus_inside_a_name_belongs_to_it() {
        assert_value("flow.my-flow.max_seq - 1", 6.0);
        assert_value("flow.my-flow.max_seq -1", 6.0);
    }

    /// The paper's 43.1 %: 12102 / 8456 = 1.43117.
    #[test]
    fn measures_are_asked_at_labels() {
        let text = "100 * (delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01') - 1)";
        let gain = Expression::parse(text).unwrap().evaluate(&mut value).unwrap();
        assert!((gain - 43.117).abs() < 0.001, "{gain}");
    }

    #[test]
    fn assertions_compare() {
        let holds = |text: &str| Assertion::parse(text).unwrap().evaluate(&mut value, &mut series).unwrap().2;
        assert!(holds("flow.my-flow.max_seq == 7"));
        assert!(holds("1 <= 1") && holds("1 >= 1") && holds("1 != 2"));
        assert!(!holds("1 < 1") && !holds("1 > 1") && !holds("0 / 0 == 0 / 0"));
    }

    #[test]
    fn errors_say_what_was_expected() {
        let message = |text: &str| Expression::parse(text).unwrap_err().to_string();
        assert_eq!(message("1 +"), "in `1 +`: expected a number, a name or a bracket, found the end");
        assert_eq!(message("(1"), "in `(1`: expected `)`, found the end");
        assert_eq!(message("1 2"), "in `1 2`: expected the end, found `2`");
        assert_eq!(message("f('a"), "in `f('a`: expected a closing ', found `a`");
        assert!(message(&"(".repeat(1000)).contains("expected fewer brackets"));
        assert_eq!(message(&"1+".repeat(3000)), "an expression of 6000 bytes is too long: at most 4096");
        assert_eq!(
            Assertion::parse("1").unwrap_err().to_string(),
            "in `1`: expected one of == != <= >= < >, found the end"
        );
    }
}

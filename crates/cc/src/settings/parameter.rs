//! A setting with its range and value.

use std::fmt;

use anabranch_units::Span;

/// A setting and its present value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its key in scenarios and on the command line, prefixed by its part and a dot.
    pub name: String,
    /// A description in one line without a full stop.
    pub help: &'static str,
    /// The unit of a number, `""` if it has none.
    pub unit: &'static str,
    /// The valid values.
    pub kind: Kind,
    /// The present value.
    pub value: Value,
    /// The kind of its part that has it; `None` if all kinds have it.
    pub only: Option<&'static str>,
}

/// The valid values of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number from `least` to `most`, both included.
    Number {
        /// Least value allowed.
        least: f64,
        /// Largest value allowed.
        most: f64,
    },
    /// A duration from `least` to `most`, both included, written with its unit.
    Span {
        /// Least value allowed.
        least: Span,
        /// Largest value allowed.
        most: Span,
    },
    /// `true` or `false`.
    Switch,
    /// One of several words.
    Choice {
        /// The valid words.
        options: Vec<&'static str>,
    },
}

impl Kind {
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self {
            Self::Number { least, most } => {
                let number = text.parse::<f64>().ok()?;
                (*least <= number && number <= *most).then_some(Value::Number(number))
            }
            Self::Span { least, most } => {
                let span = text.parse::<Span>().ok()?;
                (*least <= span && span <= *most).then_some(Value::Span(span))
            }
            Self::Switch => text.parse().ok().map(Value::Switch),
            Self::Choice { options } => options.iter().copied().find(|&option| option == text).map(Value::Choice),
        }
    }
}

/// The valid values for an error or a help text: `a number from 1 to 1000`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Span { least, most } => write!(f, "a length of time from {least} to {most}"),
            Self::Switch => write!(f, "true or false"),
            Self::Choice { options } => write!(f, "one of {}", options.join(", ")),
        }
    }
}

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number in the setting's unit.
    Number(f64),
    /// A duration, written with its unit.
    Span(Span),
    /// On or off.
    Switch(bool),
    /// One of the valid words.
    Choice(&'static str),
}

/// In the syntax for setting it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Span(span) => span.fmt(f),
            Self::Switch(switch) => switch.fmt(f),
            Self::Choice(choice) => choice.fmt(f),
        }
    }
}

/// Whether `key` is a setting of the part `name`.
pub(super) fn is_in(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

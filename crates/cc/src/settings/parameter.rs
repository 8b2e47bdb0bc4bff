//! What can be set, what it may be, and what it is set to.

use std::fmt;

use anabranch_units::Span;

/// Something that can be set, and what it is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in scenarios and on the command line; that of its part and a dot stand before it.
    pub name: String,
    /// What it does, in one line without a full stop.
    pub help: &'static str,
    /// Unit of a number, `""` if it has none.
    pub unit: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is set to.
    pub value: Value,
    /// The kind of its part that has it; `None` if all have it.
    pub only: Option<&'static str>,
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number from `least` to `most`, both included.
    Number {
        /// Least value allowed.
        least: f64,
        /// Largest value allowed.
        most: f64,
    },
    /// A length of time from `least` to `most`, both included, written with its unit.
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
        /// The words.
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

/// What is allowed, as an error or a help text says it: `a number from 1 to 1000`.
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

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, in the parameter's unit.
    Number(f64),
    /// A length of time.
    Span(Span),
    /// On or off.
    Switch(bool),
    /// One of the parameter's words.
    Choice(&'static str),
}

/// As it would be written to set it.
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

/// Whether `key` is that of a setting of the part `name`.
pub(super) fn is_in(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

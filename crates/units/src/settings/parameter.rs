//! A setting with its range and value.

use std::collections::BTreeMap;
use std::fmt;

use super::part::PartTable;
use crate::{Bytes, Rate, SimSpan, SimTime, Span};

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
    /// Whether a file must have it.
    pub is_required: bool,
    /// Of a size of its part, the least value that a change of all sizes may give it.
    pub size: Option<u64>,
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
    /// A number of packets: at least 1, at most [`PACKETS_MAX`].
    Packets,
    /// A whole number from 0 on.
    Whole,
    /// An amount of data, written with its unit.
    Bytes,
    /// A length of simulated time, written with its unit.
    Time,
    /// A rate above 0, written with its unit.
    Rate,
    /// A list of whole numbers.
    Wholes,
    /// A list of simulated times.
    Times,
    /// A part of its own.
    Part(PartTable),
}

/// The most packets of a queue or a window: a larger limit is the same as none, and sums of such numbers stay within 32 bits.
pub const PACKETS_MAX: u32 = 1_000_000_000;

impl Kind {
    /// A number from 0 to 1, a probability.
    pub const PROBABILITY: Self = Self::Number { least: 0.0, most: 1.0 };

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
            Self::Packets | Self::Whole => text.parse().ok().map(Value::Whole).filter(|value| self.allows(value)),
            Self::Bytes => text.parse().ok().map(Value::Bytes),
            Self::Time => text.parse().ok().map(Value::Time),
            Self::Rate => text.parse().ok().map(Value::Rate).filter(|value| self.allows(value)),
            Self::Wholes | Self::Times | Self::Part(_) => None,
        }
    }

    /// Whether a value of this type lies within the range.
    pub(super) fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number { least, most }, Value::Number(number)) => (*least..=*most).contains(number),
            (Self::Span { least, most }, Value::Span(span)) => (*least..=*most).contains(span),
            (Self::Packets, Value::Whole(packets)) => (1..=u64::from(PACKETS_MAX)).contains(packets),
            (Self::Rate, Value::Rate(rate)) => rate.bits_per_second() > 0,
            _ => true,
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
            Self::Packets => write!(f, "a whole number of packets from 1 to {PACKETS_MAX}"),
            Self::Whole => write!(f, "a whole number, not below 0"),
            Self::Bytes => write!(f, "an amount of data, such as \"1500B\""),
            Self::Time => write!(f, "a length of time, such as \"100ms\""),
            Self::Rate => write!(f, "a rate above 0, such as \"1.5Mbit/s\""),
            Self::Wholes => write!(f, "a list of whole numbers"),
            Self::Times => write!(f, "a list of times"),
            Self::Part(_) => write!(f, "a table with the key `kind`"),
        }
    }
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number in the setting's unit.
    Number(f64),
    /// A duration, written with its unit.
    Span(Span),
    /// On or off.
    Switch(bool),
    /// One of the valid words.
    Choice(&'static str),
    /// A whole number.
    Whole(u64),
    /// An amount of data.
    Bytes(Bytes),
    /// A length of simulated time.
    Time(SimSpan),
    /// A rate in bits per second.
    Rate(Rate),
    /// Several whole numbers.
    Wholes(Vec<u64>),
    /// Several simulated times.
    Times(Vec<SimTime>),
    /// The kind of a part, and its settings.
    Part(&'static str, BTreeMap<String, Value>),
    /// None: the setting is one of several alternatives, or has no default.
    Absent,
}

/// In the syntax for setting it; of a list, the first eight.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Span(span) => span.fmt(f),
            Self::Switch(switch) => switch.fmt(f),
            Self::Choice(choice) => choice.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Time(span) => span.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Wholes(numbers) => write_list(f, numbers),
            Self::Times(times) => write_list(f, times),
            Self::Part(word, _) => f.write_str(word),
            Self::Absent => f.write_str("none"),
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, list: &[impl fmt::Display]) -> fmt::Result {
    let shown: Vec<String> = list.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    let more = if list.len() > LISTED_MAX { ", …" } else { "" };
    write!(f, "[{}{more}]", shown.join(", "))
}

/// The limit of elements in a list that is shown.
const LISTED_MAX: usize = 8;

/// The type of a field that holds a [`Value`].
pub trait Scalar: Sized {
    /// The value that the field has now.
    fn value(&self) -> Value;

    /// The field with this value; `None` if the value has another type, or does not fit.
    fn of(value: Value) -> Option<Self>;
}

/// A type with a variant of its own.
macro_rules! scalar {
    ($($type:ty => $variant:ident),*) => {$(
        impl Scalar for $type {
            fn value(&self) -> Value {
                Value::$variant(self.clone())
            }

            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value),
                    _ => None,
                }
            }
        }
    )*};
}

scalar!(f64 => Number, bool => Switch, Bytes => Bytes, SimSpan => Time, Rate => Rate, Vec<u64> => Wholes, Vec<SimTime> => Times);

impl Scalar for u64 {
    fn value(&self) -> Value {
        Value::Whole(*self)
    }

    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Whole(number) => Some(number),
            Value::Bytes(bytes) => Some(bytes.count()),
            _ => None,
        }
    }
}

impl Scalar for u32 {
    fn value(&self) -> Value {
        Value::Whole((*self).into())
    }

    fn of(value: Value) -> Option<Self> {
        u64::of(value)?.try_into().ok()
    }
}

impl<T: Scalar> Scalar for Option<T> {
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Absent, T::value)
    }

    fn of(value: Value) -> Option<Self> {
        T::of(value).map(Some)
    }
}

/// Whether `key` is a setting of the part `name`.
pub(super) fn is_in(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

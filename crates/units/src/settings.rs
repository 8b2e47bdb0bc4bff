//! Settings of laws and of the parts of a simulation: a typed struct for each, and a nested table for each part.
//!
//! Its owner reads fields, so a typo does not compile. Each struct is a [`Table`]: it lists its fields to a visitor, [`Fields`], each
//! with name, unit, range and help. The same visit lists the settings for people and sets one by its name, so nothing is declared
//! twice. The defaults in a row are a value of the struct.
//!
//! A part with several kinds is a [`Choice`]: the key of the part selects the kind, and the settings of that kind follow after a
//! dot: `refill`, `refill.ipd_weight`. A setting of another kind is refused.
//!
//! Parts of a simulation (queues, error models) list their settings to the same visitor: [`Part`].

mod error;
mod parameter;
mod part;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::mem::{discriminant, take};
use std::ops::RangeInclusive;

use crate::{Bytes, SimTime, Span};

use self::parameter::is_in;

pub use self::error::SettingError;
pub use self::parameter::{Kind, PACKETS_MAX, Parameter, Scalar, Value};
pub use self::part::{Flaw, Part, PartKind, PartTable, word_of};

/// The settings of a law, or of a part of one.
pub trait Table: Clone + fmt::Debug + Send + Sync + 'static {
    /// Lists every field, in the order for readers.
    fn visit(&mut self, fields: &mut Fields<'_>);
}

/// One of several words, or of several kinds with settings of their own.
pub trait Choice: Clone + 'static {
    /// The words, each with its default value.
    const KINDS: &'static [(&'static str, Self)];

    /// Lists the fields of the present kind.
    fn visit(&mut self, _fields: &mut Fields<'_>) {}

    /// The word for the present kind.
    fn word(&self) -> &'static str {
        let mut kinds = Self::KINDS.iter();
        let kind = kinds.find(|(_, kind)| discriminant(kind) == discriminant(self));
        kind.expect("every kind has a word").0
    }
}

/// The visitor of a [`Table`]: each method takes one field.
pub struct Fields<'a> {
    /// The part whose fields are visited; `""` at the top.
    part: &'static str,
    /// The kind of that part.
    only: Option<&'static str>,
    task: Task<'a>,
    /// Whether a file must have the next field.
    is_required: bool,
    /// [`Parameter::size`] of the next field.
    size: Option<u64>,
}

enum Task<'a> {
    /// Lists the settings.
    List(&'a mut Vec<Parameter>),
    /// Sets `key` to `value`.
    Set { law: &'static str, key: &'a str, value: &'a str, outcome: &'a mut Option<Result<(), SettingError>> },
    /// Sets fields to these values, and takes each that was set.
    Put(&'a mut BTreeMap<String, Value>),
}

impl<'a> Fields<'a> {
    const fn new(part: &'static str, only: Option<&'static str>, task: Task<'a>) -> Self {
        Self { part, only, task, is_required: false, size: None }
    }
}

impl Fields<'_> {
    /// A file must have the next field.
    pub fn required(&mut self) -> &mut Self {
        self.is_required = true;
        self
    }

    /// The next field is a size: a change of all sizes makes it smaller or larger, but not smaller than `least`.
    pub fn size(&mut self, least: u64) -> &mut Self {
        self.size = Some(least);
        self
    }

    /// A number of packets, at least 1.
    pub fn packets(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::Packets, field, help);
    }

    /// A whole number from 0 on.
    pub fn whole(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::Whole, field, help);
    }

    /// An amount of data.
    pub fn bytes(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::Bytes, field, help);
    }

    /// A length of simulated time.
    pub fn time(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::Time, field, help);
    }

    /// A rate above 0.
    pub fn rate(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::Rate, field, help);
    }

    /// A number from 0 to 1, the probability of something.
    pub fn probability(&mut self, name: &'static str, field: &mut impl Scalar, help: &'static str) {
        self.field(name, Kind::PROBABILITY, field, help);
    }

    /// A list of whole numbers.
    pub fn wholes(&mut self, name: &'static str, field: &mut Vec<u64>, help: &'static str) {
        self.field(name, Kind::Wholes, field, help);
    }

    /// A list of simulated times.
    pub fn times(&mut self, name: &'static str, field: &mut Vec<SimTime>, help: &'static str) {
        self.field(name, Kind::Times, field, help);
    }

    /// A part of its own: a table within the table.
    pub fn part<P: Part>(&mut self, name: &'static str, part: &mut P, help: &'static str) {
        let now = Value::Part(part.word(), BTreeMap::new());
        let Some(value) = self.scalar(name, Kind::Part(P::table()), now, "", help) else { return };
        let found = if let Value::Part(word, values) = &value { P::with(word, values.clone()).ok() } else { None };
        match (found, &mut self.task) {
            (Some(found), _) => *part = found,
            (None, Task::Put(values)) => drop(values.insert(name.to_owned(), value)),
            (None, _) => {}
        }
    }

    fn field(&mut self, name: &'static str, kind: Kind, field: &mut impl Scalar, help: &'static str) {
        let now = match (&kind, field.value()) {
            (Kind::Bytes, Value::Whole(bytes)) => Value::Bytes(Bytes::new(bytes)),
            (_, value) => value,
        };
        let Some(value) = self.scalar(name, kind, now, "", help) else { return };
        match (Scalar::of(value.clone()), &mut self.task) {
            (Some(value), _) => *field = value,
            (None, Task::Put(values)) => drop(values.insert(name.to_owned(), value)),
            (None, _) => {}
        }
    }

    /// A number, with its unit or `""`.
    pub fn number(
        &mut self,
        name: &'static str,
        field: &mut f64,
        range: RangeInclusive<f64>,
        unit: &'static str,
        help: &'static str,
    ) {
        let kind = Kind::Number { least: *range.start(), most: *range.end() };
        if let Some(Value::Number(number)) = self.scalar(name, kind, Value::Number(*field), unit, help) {
            *field = number;
        }
    }

    /// A duration, which the law has in seconds.
    pub fn seconds(&mut self, name: &'static str, field: &mut f64, range: RangeInclusive<Span>, help: &'static str) {
        let kind = Kind::Span { least: *range.start(), most: *range.end() };
        let now = Value::Span(Span::from_secs_f64(*field));
        if let Some(Value::Span(span)) = self.scalar(name, kind, now, "", help) {
            *field = span.as_secs_f64();
        }
    }

    /// `true` or `false`.
    pub fn switch(&mut self, name: &'static str, field: &mut bool, help: &'static str) {
        self.field(name, Kind::Switch, field, help);
    }

    /// The window before the first ACK, in segments; every law of the project has it.
    pub fn initial_window(&mut self, field: &mut f64) {
        self.number("initial_window", field, 1.0..=1000.0, "segments", "window before the first ACK");
    }

    /// One of several words, or a part with several kinds and their settings. A part that changes its kind starts with the defaults
    /// of that kind.
    pub fn choice<C: Choice>(&mut self, name: &'static str, field: &mut C, help: &'static str) {
        let kind = Kind::Choice { options: C::KINDS.iter().map(|&(word, _)| word).collect() };
        let word = field.word();
        if let Some(Value::Choice(wanted)) = self.scalar(name, kind, Value::Choice(word), "", help)
            && wanted != word
        {
            let (_, default) = C::KINDS.iter().find(|(word, _)| *word == wanted).expect("it is one of the words");
            *field = default.clone();
        }
        match &mut self.task {
            Task::List(list) => {
                for (kind, default) in C::KINDS {
                    let mut default = default.clone();
                    let shown = if *kind == word { &mut *field } else { &mut default };
                    shown.visit(&mut Fields::new(name, Some(*kind), Task::List(list)));
                }
            }
            Task::Set { law, key, value, outcome } => {
                let (law, key, value) = (*law, *key, *value);
                if outcome.is_some() || !is_in(key, name) {
                    return;
                }
                field.visit(&mut Fields::new(name, Some(word), Task::Set { law, key, value, outcome }));
                if outcome.is_some() {
                    return;
                }
                let mut others = Vec::new();
                for (kind, default) in C::KINDS.iter().filter(|(kind, _)| *kind != word) {
                    default.clone().visit(&mut Fields::new(name, Some(*kind), Task::List(&mut others)));
                }
                if let Some(kind) = others.iter().find(|other| other.name == key).and_then(|other| other.only) {
                    **outcome =
                        Some(Err(SettingError::OtherKind { law, key: key.to_owned(), part: name, kind, is: word }));
                }
            }
            Task::Put(values) => field.visit(&mut Fields::new(name, Some(word), Task::Put(values))),
        }
    }

    /// A part that is always present, with settings of its own.
    pub fn table(&mut self, name: &'static str, table: &mut impl Table) {
        let task = match &mut self.task {
            Task::List(list) => Task::List(list),
            Task::Set { law, key, value, outcome } => Task::Set { law, key, value, outcome },
            Task::Put(values) => Task::Put(values),
        };
        table.visit(&mut Fields::new(name, None, task));
    }

    /// The value to set, if the key is this field's.
    fn scalar(
        &mut self,
        name: &'static str,
        kind: Kind,
        value: Value,
        unit: &'static str,
        help: &'static str,
    ) -> Option<Value> {
        let name = if self.part.is_empty() { name.to_owned() } else { format!("{}.{name}", self.part) };
        let (is_required, size) = (take(&mut self.is_required), self.size.take());
        let parameter = Parameter { name, help, unit, kind, value, only: self.only, is_required, size };
        match &mut self.task {
            Task::List(list) => {
                list.push(parameter);
                None
            }
            Task::Set { law, key, value, outcome } => {
                let is_choice = matches!(parameter.kind, Kind::Choice { .. });
                let named = key.strip_suffix(KIND).filter(|_| is_choice).unwrap_or(key);
                if named != parameter.name || outcome.is_some() {
                    return None;
                }
                let parsed = parameter.kind.parse(value);
                **outcome = Some(match parsed {
                    Some(_) => Ok(()),
                    None => Err(SettingError::bad_value(law, parameter, value)),
                });
                parsed
            }
            Task::Put(values) => values.remove(&parameter.name),
        }
    }
}

fn list(visit: impl FnOnce(&mut Fields<'_>)) -> Vec<Parameter> {
    let mut list = Vec::new();
    visit(&mut Fields::new("", None, Task::List(&mut list)));
    list
}

/// The suffix of the key of a part's kind.
const KIND: &str = ".kind";

/// A [`Table`] with its type erased.
pub trait AnyTable: fmt::Debug + Send + Sync {
    /// The settings and their values, in the table's order.
    fn parameters(&self) -> Vec<Parameter>;

    /// Sets `key` to `value`, for the law of this name.
    ///
    /// # Errors
    /// The table has no such field, or not with such a value.
    fn set(&mut self, law: &'static str, key: &str, value: &str) -> Result<(), SettingError>;

    /// A copy of it.
    fn copy(&self) -> Box<dyn AnyTable>;

    /// For a downcast to the type.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Table> AnyTable for T {
    fn parameters(&self) -> Vec<Parameter> {
        list(|fields| self.clone().visit(fields))
    }

    fn set(&mut self, law: &'static str, key: &str, value: &str) -> Result<(), SettingError> {
        let mut outcome = None;
        let task = Task::Set { law, key, value, outcome: &mut outcome };
        self.visit(&mut Fields::new("", None, task));
        outcome.unwrap_or_else(|| Err(SettingError::unknown_key(law, key, &self.parameters())))
    }

    fn copy(&self) -> Box<dyn AnyTable> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests;

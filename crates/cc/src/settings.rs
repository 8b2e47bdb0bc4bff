//! What can be set: a typed struct a law, and a nested table a part.
//!
//! A law reads fields, so a typo in it does not compile. Each struct is a [`Table`]: it shows its fields to a visitor, [`Fields`], each with
//! name, unit, range and help. The same walk lists them for people and sets one by its name, so nothing is declared twice. What a row has by
//! default is a value of the struct.
//!
//! A part that can be of several kinds is a [`Choice`]: the word for its kind has the part's name, and what this kind can be set to is named
//! after a dot: `refill`, `refill.ipd_weight`. What belongs to another kind is refused.

mod error;
mod parameter;

use std::any::Any;
use std::fmt;
use std::mem::discriminant;
use std::ops::RangeInclusive;

use anabranch_units::Span;

use self::parameter::is_in;

pub use self::error::SettingError;
pub use self::parameter::{Kind, Parameter, Value};

/// What a law, or a part of one, is set to.
pub trait Table: Clone + fmt::Debug + Send + Sync + 'static {
    /// Shows every field, in the order in which people are to read them.
    fn visit(&mut self, fields: &mut Fields<'_>);
}

/// One of several words, or a part that can be of several kinds, of which each has settings of its own.
pub trait Choice: Clone + 'static {
    /// The words, and what each of them is by default.
    const KINDS: &'static [(&'static str, Self)];

    /// Shows the fields of the kind that it is.
    fn visit(&mut self, _fields: &mut Fields<'_>) {}

    /// The word for the kind that it is.
    fn word(&self) -> &'static str {
        let mut kinds = Self::KINDS.iter();
        let kind = kinds.find(|(_, kind)| discriminant(kind) == discriminant(self));
        kind.expect("every kind has a word").0
    }
}

/// The visitor of a [`Table`]: each of its methods is shown one field.
pub struct Fields<'a> {
    /// The part whose fields are shown; `""` at the top.
    part: &'static str,
    /// The kind of that part.
    only: Option<&'static str>,
    task: Task<'a>,
}

enum Task<'a> {
    /// Writes down what there is.
    List(&'a mut Vec<Parameter>),
    /// Sets `key` to `value`.
    Set { law: &'static str, key: &'a str, value: &'a str, outcome: &'a mut Option<Result<(), SettingError>> },
}

impl Fields<'_> {
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

    /// A length of time that the law has in seconds.
    pub fn seconds(&mut self, name: &'static str, field: &mut f64, range: RangeInclusive<Span>, help: &'static str) {
        let kind = Kind::Span { least: *range.start(), most: *range.end() };
        let now = Value::Span(Span::from_secs_f64(*field));
        if let Some(Value::Span(span)) = self.scalar(name, kind, now, "", help) {
            *field = span.as_secs_f64();
        }
    }

    /// `true` or `false`.
    pub fn switch(&mut self, name: &'static str, field: &mut bool, help: &'static str) {
        if let Some(Value::Switch(switch)) = self.scalar(name, Kind::Switch, Value::Switch(*field), "", help) {
            *field = switch;
        }
    }

    /// The window before the first ACK; every law of the project has it.
    pub fn initial_window(&mut self, field: &mut f64) {
        self.number("initial_window", field, 1.0..=1000.0, "segments", "window before the first ACK");
    }

    /// One of several words, or a part of one of several kinds and what this kind can be set to. A part that becomes of another kind begins with
    /// what that is by default.
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
                    shown.visit(&mut Fields { part: name, only: Some(*kind), task: Task::List(list) });
                }
            }
            Task::Set { law, key, value, outcome } => {
                let (law, key, value) = (*law, *key, *value);
                if outcome.is_some() || !is_in(key, name) {
                    return;
                }
                field.visit(&mut Fields { part: name, only: Some(word), task: Task::Set { law, key, value, outcome } });
                if outcome.is_some() {
                    return;
                }
                let mut others = Vec::new();
                for (kind, default) in C::KINDS.iter().filter(|(kind, _)| *kind != word) {
                    default.clone().visit(&mut Fields { part: name, only: Some(*kind), task: Task::List(&mut others) });
                }
                if let Some(kind) = others.iter().find(|other| other.name == key).and_then(|other| other.only) {
                    **outcome =
                        Some(Err(SettingError::OtherKind { law, key: key.to_owned(), part: name, kind, is: word }));
                }
            }
        }
    }

    /// A part that is always there, with settings of its own.
    pub fn table(&mut self, name: &'static str, table: &mut impl Table) {
        let task = match &mut self.task {
            Task::List(list) => Task::List(list),
            Task::Set { law, key, value, outcome } => Task::Set { law, key, value, outcome },
        };
        table.visit(&mut Fields { part: name, only: None, task });
    }

    /// The value to be set, if it is this field's.
    fn scalar(
        &mut self,
        name: &'static str,
        kind: Kind,
        value: Value,
        unit: &'static str,
        help: &'static str,
    ) -> Option<Value> {
        let name = if self.part.is_empty() { name.to_owned() } else { format!("{}.{name}", self.part) };
        let parameter = Parameter { name, help, unit, kind, value, only: self.only };
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
        }
    }
}

/// How the name of a part ends where its settings stand in a table, of which the kind is one.
const KIND: &str = ".kind";

/// A [`Table`] whose type only its law knows.
pub trait AnyTable: fmt::Debug + Send + Sync {
    /// What there is and what it is set to, in the table's order.
    fn parameters(&self) -> Vec<Parameter>;

    /// Sets `key` to what `value` says, for the law of this name.
    ///
    /// # Errors
    /// As [`crate::registry::Settings::set`].
    fn set(&mut self, law: &'static str, key: &str, value: &str) -> Result<(), SettingError>;

    /// A copy of it.
    fn copy(&self) -> Box<dyn AnyTable>;

    /// To get back its type.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Table> AnyTable for T {
    fn parameters(&self) -> Vec<Parameter> {
        let mut list = Vec::new();
        self.clone().visit(&mut Fields { part: "", only: None, task: Task::List(&mut list) });
        list
    }

    fn set(&mut self, law: &'static str, key: &str, value: &str) -> Result<(), SettingError> {
        let mut outcome = None;
        let task = Task::Set { law, key, value, outcome: &mut outcome };
        self.visit(&mut Fields { part: "", only: None, task });
        outcome.unwrap_or_else(|| Err(SettingError::unknown_key(law, key, &self.parameters())))
    }

    fn copy(&self) -> Box<dyn AnyTable> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What a law is set to that has nothing to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSettings;

impl Table for NoSettings {
    fn visit(&mut self, _fields: &mut Fields<'_>) {}
}

/// What a law is set to that has nothing else to set than its first window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowSettings {
    /// Segments.
    pub initial_window: f64,
}

impl WindowSettings {
    /// What it is if nobody says.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW };
}

impl Table for WindowSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
    }
}

/// The window before the first ACK in segments, if nobody says (RFC 6928 sec. 2).
pub const INITIAL_WINDOW: f64 = 10.0;

#[cfg(test)]
mod tests;

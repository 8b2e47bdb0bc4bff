//! What a law is set to: parsed once, so that a law never sees a value outside its range.

use std::fmt;

use anabranch_units::Span;

use super::{Kind, Parameter, Row, rows};

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

/// A value for each parameter of one law.
#[derive(Clone, Debug)]
pub struct Settings {
    row: &'static Row,
    /// In the order of the row's parameters, each of its parameter's kind and within its range.
    values: Vec<Value>,
}

impl Settings {
    /// Everything at its default.
    pub fn default_for(row: &'static Row) -> Self {
        Self { row, values: row.parameters.iter().map(|parameter| parameter.kind.default_value()).collect() }
    }

    /// The defaults, changed by pairs of key and value in their order.
    ///
    /// # Errors
    /// As [`Settings::set`], at the first pair that does not fit.
    pub fn parse<'a>(
        row: &'static Row,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut settings = Self::default_for(row);
        for (key, value) in pairs {
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    /// Sets the parameter `key` to what `value` says.
    ///
    /// # Errors
    /// [`SettingError::UnknownKey`] with the nearest key if the law has no such parameter, [`SettingError::BadValue`] with
    /// what is allowed if the value is not of its kind or not in its range. Nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let position = self.position(key).ok_or_else(|| SettingError::unknown_key(self.row, key))?;
        let parameter = &self.row.parameters[position];
        self.values[position] = parse(&parameter.kind, value).ok_or_else(|| SettingError::BadValue {
            law: self.row.name,
            parameter,
            value: value.to_owned(),
            nearest: match parameter.kind {
                Kind::Choice { options, .. } => nearest(value, options.iter().copied()),
                _ => None,
            },
        })?;
        Ok(())
    }

    /// The law these are for.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// Parameters and their values, in the row's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Value)> + '_ {
        self.row.parameters.iter().zip(self.values.iter().copied())
    }

    /// The value of a number.
    ///
    /// # Panics
    /// If the row declares no number called `name`, as do the three below for their kinds: a law asks for what its own row
    /// declares.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number,
            other => panic!("`{name}` of {} is a number, not {other:?}", self.row.name),
        }
    }

    /// The value of a length of time.
    pub fn span(&self, name: &str) -> Span {
        match self.value(name) {
            Value::Span(span) => span,
            other => panic!("`{name}` of {} is a length of time, not {other:?}", self.row.name),
        }
    }

    /// The value of a switch.
    pub fn switch(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Switch(switch) => switch,
            other => panic!("`{name}` of {} is a switch, not {other:?}", self.row.name),
        }
    }

    /// The value of a choice.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(choice) => choice,
            other => panic!("`{name}` of {} is a choice, not {other:?}", self.row.name),
        }
    }

    /// Settings for another law: its defaults, changed by what both laws can set. For laws that wrap another one.
    ///
    /// # Panics
    /// If the two laws declare a parameter of one name differently.
    pub(crate) fn carried_to(&self, row: &'static Row) -> Self {
        let mut carried = Self::default_for(row);
        for (parameter, value) in self.iter() {
            if let Some(position) = carried.position(parameter.name) {
                assert_eq!(
                    *parameter, row.parameters[position],
                    "a name means the same in a law and in the law it wraps"
                );
                carried.values[position] = value;
            }
        }
        carried
    }

    fn value(&self, name: &str) -> Value {
        let position = self.position(name).unwrap_or_else(|| panic!("{} declares `{name}`", self.row.name));
        self.values[position]
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.row.parameters.iter().position(|parameter| parameter.name == key)
    }
}

fn parse(kind: &Kind, value: &str) -> Option<Value> {
    let value = value.trim();
    match *kind {
        Kind::Number { least, most, .. } => {
            let number = value.parse::<f64>().ok()?;
            (least <= number && number <= most).then_some(Value::Number(number))
        }
        Kind::Span { least, most, .. } => {
            let span = value.parse::<Span>().ok()?;
            (least <= span && span <= most).then_some(Value::Span(span))
        }
        Kind::Switch { .. } => value.parse().ok().map(Value::Switch),
        Kind::Choice { options, .. } => options.iter().copied().find(|&option| option == value).map(Value::Choice),
    }
}

/// Why a law cannot be found or set.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingError {
    /// There is no such law.
    UnknownLaw {
        /// What was asked for.
        name: String,
        /// The known name most like it.
        nearest: Option<&'static str>,
    },
    /// The law has no such parameter.
    UnknownKey {
        /// The law.
        law: &'static str,
        /// What was to be set.
        key: String,
        /// The known key most like it.
        nearest: Option<&'static str>,
    },
    /// The value is not what the parameter may be.
    BadValue {
        /// The law.
        law: &'static str,
        /// The parameter, which knows what it may be.
        parameter: &'static Parameter,
        /// What it was to be set to.
        value: String,
        /// The known word most like it.
        nearest: Option<&'static str>,
    },
}

impl SettingError {
    pub(super) fn unknown_law(name: &str) -> Self {
        Self::UnknownLaw { name: name.to_owned(), nearest: nearest(name, rows().iter().map(|row| row.name)) }
    }

    fn unknown_key(row: &'static Row, key: &str) -> Self {
        let known = row.parameters.iter().map(|parameter| parameter.name);
        Self::UnknownKey { law: row.name, key: key.to_owned(), nearest: nearest(key, known) }
    }
}

impl std::error::Error for SettingError {}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = match self {
            Self::UnknownLaw { name, nearest } => {
                write!(f, "there is no congestion law `{name}`")?;
                if nearest.is_none() {
                    let names: Vec<_> = rows().iter().map(|row| row.name).collect();
                    write!(f, "; there are {}", names.join(", "))?;
                }
                nearest
            }
            Self::UnknownKey { law, key, nearest } => {
                write!(f, "{law} has no parameter `{key}`")?;
                if nearest.is_none() {
                    let row = rows().iter().find(|row| row.name == *law);
                    let names: Vec<_> = row.iter().flat_map(|row| row.parameters).map(|known| known.name).collect();
                    write!(f, "; it has {}", names.join(", "))?;
                }
                nearest
            }
            Self::BadValue { law, parameter: Parameter { name, unit, kind, .. }, value, nearest } => {
                write!(f, "`{name}` of {law} cannot be `{value}`: it is {kind}")?;
                if !unit.is_empty() {
                    write!(f, " {unit}")?;
                }
                nearest
            }
        };
        nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean `{nearest}`?"))
    }
}

/// The one of `known` that is most like `text`, if it is like it at all: half of the letters may differ.
fn nearest(text: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let text = text.to_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&text, name), name))
        .filter(|&(distance, name)| distance * 2 <= name.chars().count().max(text.chars().count()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

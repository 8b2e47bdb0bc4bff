//! A row of the registry: the description, settings and constructor of a law.

use std::any::Any;
use std::fmt;

use crate::controller::Controller;
use crate::settings::{AnyTable, Parameter, SettingError, Table, Value};

/// A law as a row of the registry, with the contract that the conformance model tests.
#[derive(Debug)]
pub struct Row {
    /// The name in scenarios and on the command line.
    pub name: &'static str,
    /// A description in one line without a full stop.
    pub summary: &'static str,
    /// Keys of `docs/bibliography.md`, the law's own first.
    pub citation: &'static str,
    /// The contract that the conformance model tests.
    pub loss_contract: LossContract,
    /// The [`Law`]: its settings and constructor.
    pub law: &'static dyn AnyLaw,
}

impl Row {
    /// The settings with their defaults.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.law.defaults().parameters()
    }

    /// A new controller for one path.
    ///
    /// # Panics
    /// If `settings` belong to another row: they would be silently ignored.
    pub fn build(&self, settings: &Settings) -> Box<dyn Controller> {
        assert_eq!(self.name, settings.row().name, "the settings are those of this law");
        self.law.make(&*settings.table)
    }
}

/// The constructor of a law with settings of the type `T`.
pub struct Law<T> {
    /// The default settings.
    pub defaults: T,
    /// Makes a controller from settings.
    pub make: fn(settings: &T) -> Box<dyn Controller>,
}

impl<T> fmt::Debug for Law<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Law")
    }
}

/// A [`Law`] with its type of settings erased.
pub trait AnyLaw: fmt::Debug + Sync {
    /// The default settings.
    fn defaults(&self) -> Box<dyn AnyTable>;

    /// Makes a controller from settings.
    ///
    /// # Panics
    /// If `table` has another type.
    fn make(&self, table: &dyn AnyTable) -> Box<dyn Controller>;
}

impl<T: Table> AnyLaw for Law<T> {
    fn defaults(&self) -> Box<dyn AnyTable> {
        Box::new(self.defaults.clone())
    }

    fn make(&self, table: &dyn AnyTable) -> Box<dyn Controller> {
        (self.make)(table.as_any().downcast_ref().expect("settings come from the defaults of their own law"))
    }
}

/// A law's promises about losses, which `tests/conformance.rs` checks for every law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossContract {
    /// A loss by duplicate ACKs shrinks a window above this many segments.
    pub shrinks_above: f64,
    /// The largest window right after a timeout, in segments.
    pub timeout_window_max: f64,
    /// The response to a loss by duplicate ACKs, by its cause.
    pub loss: LossResponse,
}

/// Which losses by duplicate ACKs shrink the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossResponse {
    /// All of them.
    Shrinks,
    /// All except those classified as random, which leave it unchanged; the citation gives the source.
    ShrinksUnlessRandom {
        /// The key and section of the source.
        citation: &'static str,
    },
    /// It depends on the settings and on earlier losses; the citation gives the source.
    MayHold {
        /// The key and section of the source.
        citation: &'static str,
    },
    /// A loss alone does not shrink it; the citation gives the source.
    Holds {
        /// The key and section of the source.
        citation: &'static str,
    },
}

/// A law with its settings: parsed once, so that a law never sees a value outside its range.
#[derive(Debug)]
pub struct Settings {
    row: &'static Row,
    /// The settings, of the type of the row's law.
    table: Box<dyn AnyTable>,
}

impl Clone for Settings {
    fn clone(&self) -> Self {
        Self { row: self.row, table: self.table.copy() }
    }
}

impl Settings {
    /// Settings of the type of the row's law.
    pub(crate) fn of_table(row: &'static Row, table: Box<dyn AnyTable>) -> Self {
        Self { row, table }
    }

    /// The default settings of a law.
    pub fn default_for(row: &'static Row) -> Self {
        Self { row, table: row.law.defaults() }
    }

    /// The defaults, changed by pairs of key and value in order.
    ///
    /// # Errors
    /// As [`Settings::set`], at the first invalid pair.
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

    /// Sets `key` to `value`. A part is set by the name of its kind: `refill` to `ccafr`, or `refill.kind`; the settings of that
    /// kind follow: `refill.ipd_weight`. A part that changes its kind starts with the defaults of that kind.
    ///
    /// # Errors
    /// [`SettingError::UnknownKey`] if the law has no such key, [`SettingError::OtherKind`] if the key belongs to another kind of
    /// its part, so that the value would be ignored, [`SettingError::BadValue`] if the value is invalid or out of range. Each lists
    /// the valid ones. Nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        self.table.set(self.row.name, key, value)
    }

    /// The law these are for.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// The settings and their values, in the law's order, including those of kinds that are not selected.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.table.parameters()
    }

    /// The value of `key`; `None` if there is no such key, or its part has another kind.
    pub fn value(&self, key: &str) -> Option<Value> {
        let parameters = self.parameters();
        let part = key.split_once('.').and_then(|(part, _)| parameters.iter().find(|known| known.name == part));
        let is = part.map(|part| &part.value);
        let fits = |only: Option<&'static str>| only.is_none_or(|only| is == Some(&Value::Choice(only)));
        parameters.iter().find(|known| known.name == key && fits(known.only)).map(|known| known.value.clone())
    }

    /// The typed settings, if they have this type.
    pub fn table<T: Any>(&self) -> Option<&T> {
        self.table.as_any().downcast_ref()
    }
}

//! One law: what people need to know to choose it, what it is set to, and how it is made.

use std::any::Any;
use std::fmt;

use crate::controller::Controller;
use crate::settings::{AnyTable, Parameter, SettingError, Table, Value};

/// One law: what people need to know to choose and set it, and what the conformance model holds it to.
#[derive(Debug)]
pub struct Row {
    /// What it is called in scenarios and on the command line.
    pub name: &'static str,
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// Keys of `docs/bibliography.md`, the law's own first.
    pub citation: &'static str,
    /// What the conformance model expects of it.
    pub loss_contract: LossContract,
    /// A [`Law`]: what can be set, and how one is made.
    pub law: &'static dyn AnyLaw,
}

impl Row {
    /// What can be set, and what it is if nobody says.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.law.defaults().parameters()
    }

    /// A new controller for one path.
    ///
    /// # Panics
    /// If `settings` were made for another row: they would be silently ignored.
    pub fn build(&self, settings: &Settings) -> Box<dyn Controller> {
        assert_eq!(self.name, settings.row().name, "the settings are those of this law");
        self.law.make(&*settings.table)
    }
}

/// How a law is made from settings of the type `T`.
pub struct Law<T> {
    /// What it is set to if nobody says.
    pub defaults: T,
    /// Makes one.
    pub make: fn(settings: &T) -> Box<dyn Controller>,
}

impl<T> fmt::Debug for Law<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Law")
    }
}

/// A [`Law`] whatever its settings are.
pub trait AnyLaw: fmt::Debug + Sync {
    /// What it is set to if nobody says.
    fn defaults(&self) -> Box<dyn AnyTable>;

    /// Makes one.
    ///
    /// # Panics
    /// If `table` is of another law's type.
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

/// What a law promises to do about losses, checked for every law by `tests/conformance.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossContract {
    /// A loss by duplicate ACKs shrinks a window above this many segments.
    pub shrinks_above: f64,
    /// The largest window right after a timeout, in segments.
    pub timeout_window_max: f64,
    /// What a loss by duplicate ACKs does, by its cause.
    pub loss: LossResponse,
}

/// Which losses by duplicate ACKs shrink the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossResponse {
    /// All of them.
    Shrinks,
    /// All but those classified as random, which leave it exactly as it is; the citation says who says so.
    ShrinksUnlessRandom {
        /// Key and section.
        citation: &'static str,
    },
    /// It depends on the settings and on what was lost before; the citation says who says that a loss may leave it.
    MayHold {
        /// Key and section.
        citation: &'static str,
    },
    /// A loss alone does not shrink it; the citation says who says so.
    Holds {
        /// Key and section.
        citation: &'static str,
    },
}

/// A law, and what it is set to: parsed once, so that a law never sees a value outside its range.
#[derive(Debug)]
pub struct Settings {
    row: &'static Row,
    /// Of the type of the row's law.
    table: Box<dyn AnyTable>,
}

impl Clone for Settings {
    fn clone(&self) -> Self {
        Self { row: self.row, table: self.table.copy() }
    }
}

impl Settings {
    /// What is set, of the type of the row's law.
    pub(crate) fn of_table(row: &'static Row, table: Box<dyn AnyTable>) -> Self {
        Self { row, table }
    }

    /// Everything at its default.
    pub fn default_for(row: &'static Row) -> Self {
        Self { row, table: row.law.defaults() }
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

    /// Sets the parameter `key` to what `value` says. A part is named by its kind: `refill` to `ccafr`, or `refill.kind`; then
    /// what that kind can be set to follows: `refill.ipd_weight`. A part that becomes of another kind begins with the defaults of that kind.
    ///
    /// # Errors
    /// [`SettingError::UnknownKey`] if the law has no such parameter, [`SettingError::OtherKind`] if it is that of a part which is of another kind,
    /// so that the value would be ignored, [`SettingError::BadValue`] if the value is not of its kind or not in its range. Each says
    /// what would do. Nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        self.table.set(self.row.name, key, value)
    }

    /// The law these are for.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// Parameters and what they are set to, in the law's order. Those of kinds of which their part is not are among them.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.table.parameters()
    }

    /// What `key` is set to; `None` if there is no such parameter, or if its part is of another kind.
    pub fn value(&self, key: &str) -> Option<Value> {
        let parameters = self.parameters();
        let part = key.split_once('.').and_then(|(part, _)| parameters.iter().find(|known| known.name == part));
        let is = part.map(|part| part.value);
        let fits = |only: Option<&'static str>| only.is_none_or(|only| is == Some(Value::Choice(only)));
        parameters.iter().find(|known| known.name == key && fits(known.only)).map(|known| known.value)
    }

    /// The settings themselves, if they are of this type.
    pub fn table<T: Any>(&self) -> Option<&T> {
        self.table.as_any().downcast_ref()
    }
}

//! The one table of congestion laws: what there is, what can be set, and how to build it.
//!
//! ```
//! use anabranch_cc::registry::{self, Settings};
//!
//! let row = registry::find("reno")?;
//! let mut settings = Settings::default_for(row);
//! settings.set("initial_window", "4")?;
//! assert_eq!(row.build(&settings).window(), 4.0);
//! # Ok::<(), anabranch_cc::registry::SettingError>(())
//! ```

mod settings;

use std::fmt;

use anabranch_units::Span;

pub use settings::{SettingError, Settings, Value};

use crate::controller::Controller;
use crate::law;

/// Every law, in alphabetical order.
pub fn rows() -> &'static [Row] {
    law::ROWS
}

/// The law called `name`.
///
/// # Errors
/// [`SettingError::UnknownLaw`] with the nearest name if there is none.
pub fn find(name: &str) -> Result<&'static Row, SettingError> {
    rows().iter().find(|row| row.name == name).ok_or_else(|| SettingError::unknown_law(name))
}

/// One law: what people need to know to choose and set it, and what the conformance model holds it to.
#[derive(Debug)]
pub struct Row {
    /// What it is called in scenarios and on the command line.
    pub name: &'static str,
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// Keys of `docs/bibliography.md`, the law's own first.
    pub citation: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// What the conformance model expects of it.
    pub loss_contract: LossContract,
    /// Makes one. `settings` is for this row.
    pub make: fn(settings: &Settings) -> Box<dyn Controller>,
}

impl Row {
    /// A new controller for one path.
    ///
    /// # Panics
    /// If `settings` were made for another row: they would be silently ignored.
    pub fn build(&self, settings: &Settings) -> Box<dyn Controller> {
        assert_eq!(self.name, settings.row().name, "the settings are those of this law");
        (self.make)(settings)
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

/// Something that can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// What it does, in one line without a full stop.
    pub help: &'static str,
    /// Unit of a number, `""` if it has none.
    pub unit: &'static str,
    /// What it may be, and what it is if nobody says.
    pub kind: Kind,
}

/// What a parameter may be, and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number from `least` to `most`, both included.
    Number {
        /// If nobody says.
        default: f64,
        /// Least value allowed.
        least: f64,
        /// Largest value allowed.
        most: f64,
    },
    /// A length of time from `least` to `most`, both included, written with its unit.
    Span {
        /// If nobody says.
        default: Span,
        /// Least value allowed.
        least: Span,
        /// Largest value allowed.
        most: Span,
    },
    /// `true` or `false`.
    Switch {
        /// If nobody says.
        default: bool,
    },
    /// One of several words.
    Choice {
        /// If nobody says; one of `options`.
        default: &'static str,
        /// The words.
        options: &'static [&'static str],
    },
}

impl Kind {
    /// The default.
    pub const fn default_value(&self) -> Value {
        match *self {
            Self::Number { default, .. } => Value::Number(default),
            Self::Span { default, .. } => Value::Span(default),
            Self::Switch { default } => Value::Switch(default),
            Self::Choice { default, .. } => Value::Choice(default),
        }
    }
}

/// What is allowed, as an error or a help text says it: `a number from 1 to 1000`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { least, most, .. } => write!(f, "a number from {least} to {most}"),
            Self::Span { least, most, .. } => write!(f, "a length of time from {least} to {most}"),
            Self::Switch { .. } => write!(f, "true or false"),
            Self::Choice { options, .. } => write!(f, "one of {}", options.join(", ")),
        }
    }
}

/// The window before the first ACK; every law has it.
pub(crate) const INITIAL_WINDOW: Parameter = Parameter {
    name: "initial_window",
    help: "window before the first ACK",
    unit: "segments",
    // RFC 6928 sec. 2: ten segments.
    kind: Kind::Number { default: 10.0, least: 1.0, most: 1000.0 },
};

/// Declares the modules of the laws and gathers their rows: one word a law.
macro_rules! laws {
    ($($name:ident),+ $(,)?) => {
        $(pub mod $name;)+

        pub(crate) const ROWS: &[Row] = &[$($name::ROW),+];
    };
}
pub(crate) use laws;

#[cfg(test)]
mod tests;

//! The registry of congestion laws: names, settings, and construction.
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

use crate::law;
pub use crate::row::{AnyLaw, Law, LossContract, LossResponse, Row, Settings};
pub use crate::settings::{
    AnyTable, Choice, Fields, INITIAL_WINDOW, Kind, NoSettings, Parameter, SettingError, Table, Value, WindowSettings,
};

/// Every law, in alphabetical order.
pub fn rows() -> &'static [Row] {
    law::ROWS
}

/// The law called `name`.
///
/// # Errors
/// [`SettingError::UnknownLaw`] with all names if there is none.
pub fn find(name: &str) -> Result<&'static Row, SettingError> {
    let unknown = || SettingError::unknown_law(name, rows().iter().map(|row| row.name));
    rows().iter().find(|row| row.name == name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests;

//! Settings of laws: [`anabranch_units::settings`], and what many laws share.

pub use anabranch_units::settings::{
    AnyTable, Choice, Fields, Kind, PACKETS_MAX, Parameter, Scalar, SettingError, Table, Value,
};

/// The settings of a law that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSettings;

impl Table for NoSettings {
    fn visit(&mut self, _fields: &mut Fields<'_>) {}
}

/// The settings of a law that has only an initial window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
}

impl WindowSettings {
    /// The default settings.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW };
}

impl Table for WindowSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
    }
}

/// The default window before the first ACK, in segments (RFC 6928 sec. 2).
pub const INITIAL_WINDOW: f64 = 10.0;

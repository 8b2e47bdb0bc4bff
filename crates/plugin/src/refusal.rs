//! Why a file is no controller, and why a setting of one cannot take a value.

use std::fmt;

/// Why a file is no valid controller: the file's name, the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleError(pub(crate) String);

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModuleError {}

/// Why a setting cannot take a value, and which values it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.remedy)
    }
}

impl std::error::Error for SettingFault {}

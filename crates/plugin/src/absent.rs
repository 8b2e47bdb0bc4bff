//! The interface of a program that cannot run modules: there is no [`Module`], and so no [`Law`] of one.

use std::sync::Arc;

use anabranch_cc::Settings;

use crate::fault::Faults;
use crate::refusal::{ModuleError, SettingFault};

/// A module; there is none without the interpreter.
#[derive(Debug)]
pub enum Module {}

impl Module {
    /// Refuses every file.
    ///
    /// # Errors
    /// Always.
    pub fn new(name: &str, _bytes: Vec<u8>) -> Result<Self, ModuleError> {
        Err(ModuleError(format!(
            "{name} cannot be run here: this program was built without the interpreter of modules"
        )))
    }

    /// Its name in messages and reports.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// The SHA-256 of its file in hexadecimal digits.
    pub fn digest(&self) -> &str {
        match *self {}
    }

    /// The bytes of its file.
    pub fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

/// A module with values for its settings; there is none without the interpreter.
#[derive(Clone, Debug)]
pub struct Law(Arc<Module>);

impl Law {
    /// The module with the default values of its settings.
    pub fn new(module: Arc<Module>) -> Self {
        Self(module)
    }

    /// The module of the law.
    pub fn module(&self) -> &Module {
        &self.0
    }

    /// Sets a setting.
    ///
    /// # Errors
    /// None: there is no law to set one of.
    pub fn set(&mut self, _key: &str, _value: &str) -> Result<(), SettingFault> {
        match *self.0 {}
    }

    /// Settings that build a controller for each path.
    pub fn settings(&self, _flow: &str, _faults: &Faults) -> Settings {
        match *self.0 {}
    }
}

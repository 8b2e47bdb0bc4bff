//! The settings of an agent's law, which its function takes one by one.

use std::collections::BTreeMap;

use crate::diagnostic::{Fault, suggestion};
use crate::document::Path;
use crate::load::Checked;
use crate::load::values::{LawKeys, Setting};

/// The settings of a law in a file. A function takes the settings that the law has; the rest is unknown.
pub(super) struct Settings {
    pub(super) rest: BTreeMap<String, Setting>,
    /// The keys that the law has, for error messages.
    pub(super) known: Vec<&'static str>,
    pub(super) path: Path,
}

impl Settings {
    pub(super) fn new(keys: Option<&LawKeys>, path: Path) -> Self {
        Self { rest: keys.map(|keys| keys.0.clone()).unwrap_or_default(), known: Vec::new(), path }
    }

    pub(super) fn of_law(keys: Option<&LawKeys>, path: Path) -> Checked<Self> {
        let settings = Self::new(keys, path);
        if keys.is_some() && !settings.rest.contains_key("name") {
            let fault = Fault::new("the key `name` is missing").remedy("add the name of the law");
            return Err((settings.path, fault));
        }
        Ok(settings)
    }

    /// The place of a setting: the settings of a part are in a table of their own.
    pub(super) fn place(&self, key: &str) -> Path {
        match key.split_once('.') {
            Some((part, key)) => self.path.key(part).key(key),
            None => self.path.key(key),
        }
    }

    /// Takes a whole number.
    pub(super) fn take(&mut self, key: &'static str, default: i32) -> Checked<i32> {
        self.known.push(key);
        let Some(setting) = self.rest.remove(key) else { return Ok(default) };
        setting.0.parse().map_err(|_| {
            let fault = Fault::new(format!("`{key}` cannot be `{}`", setting.0));
            (self.place(key), fault.remedy("it is a whole number"))
        })
    }

    /// Takes one of several words.
    pub(super) fn choose<T: Copy>(&mut self, key: &'static str, default: T, options: &[(&str, T)]) -> Checked<T> {
        self.known.push(key);
        let Some(setting) = self.rest.remove(key) else { return Ok(default) };
        options.iter().find(|(name, _)| *name == setting.0).map(|(_, option)| *option).ok_or_else(|| {
            let fault = Fault::new(format!("`{key}` cannot be `{}`", setting.0));
            (self.place(key), fault.remedy(suggestion(&setting.0, options.iter().map(|(name, _)| *name))))
        })
    }

    /// Checks that nothing is left but the law's name, and that it is this one.
    pub(super) fn finish(mut self, law: &str) -> Checked<()> {
        if let Some(name) = self.rest.remove("name").filter(|name| name.0 != law) {
            let fault = Fault::new(format!("this transport has the law `{law}`, not `{}`", name.0));
            return Err((
                self.path.key("name"),
                fault.remedy(format!("write name = \"{law}\" or choose another transport")),
            ));
        }
        match self.rest.first_key_value() {
            None => Ok(()),
            Some((key, _)) => {
                let fault = Fault::new(format!("`{key}` is not a parameter of this law"));
                Err((self.place(key), fault.remedy(suggestion(key, self.known.iter().copied()))))
            }
        }
    }
}

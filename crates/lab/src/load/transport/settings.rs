//! Settings that an agent takes one by one, and what they can be.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use anabranch_units::SimSpan;

use crate::diagnostic::{Fault, suggestion};
use crate::document::Path;
use crate::load::Checked;
use crate::load::values::{LawKeys, Setting};

/// What a parameter of a law or an option of an agent can be: to add an agent, add its name to
/// `TransportKeys`, its arm to [`Drive::of`](super::Drive), and a function that takes its parameters, as `vegas` in `agent.rs`.
pub(super) trait Parameter: std::str::FromStr {
    const EXPECTED: &'static str;

    fn is_possible(&self) -> bool {
        true
    }
}

impl Parameter for bool {
    const EXPECTED: &'static str = "true or false";
}

impl Parameter for i32 {
    const EXPECTED: &'static str = "a whole number";
}

impl Parameter for u32 {
    const EXPECTED: &'static str = "a whole number, zero or more";
}

impl Parameter for NonZeroU8 {
    const EXPECTED: &'static str = "a whole number from 1 to 255";
}

impl Parameter for f64 {
    const EXPECTED: &'static str = "a number, zero or more";

    fn is_possible(&self) -> bool {
        self.is_finite() && *self >= 0.0
    }
}

impl Parameter for SimSpan {
    const EXPECTED: &'static str = "a length of time, such as \"0.75ms\"";
}

/// Settings that an agent takes one by one; what is left is unknown.
pub(super) struct Settings {
    pub(super) rest: BTreeMap<String, Setting>,
    /// What was asked for: what there is.
    pub(super) known: Vec<&'static str>,
    pub(super) path: Path,
    what: &'static str,
}

impl Settings {
    pub(super) fn new(rest: BTreeMap<String, Setting>, path: Path, what: &'static str) -> Self {
        Self { rest, known: Vec::new(), path, what }
    }

    pub(super) fn of_law(keys: Option<&LawKeys>, path: Path) -> Checked<Self> {
        let settings = Self::new(keys.map(|keys| keys.0.clone()).unwrap_or_default(), path, "a parameter of this law");
        if keys.is_some() && !settings.rest.contains_key("name") {
            let fault = Fault::new("the key `name` is missing").remedy("add the name of the law");
            return Err((settings.path, fault));
        }
        Ok(settings)
    }

    /// Where a setting stands: that of a part is in a table of its own.
    pub(super) fn place(&self, key: &str) -> Path {
        match key.split_once('.') {
            Some((part, key)) => self.path.key(part).key(key),
            None => self.path.key(key),
        }
    }

    pub(super) fn take<T: Parameter>(&mut self, key: &'static str, default: T) -> Checked<T> {
        self.known.push(key);
        let Some(setting) = self.rest.remove(key) else { return Ok(default) };
        setting.0.parse().ok().filter(T::is_possible).ok_or_else(|| {
            let fault = Fault::new(format!("`{key}` cannot be `{}`", setting.0));
            (self.place(key), fault.remedy(format!("it is {}", T::EXPECTED)))
        })
    }

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
                let fault = Fault::new(format!("`{key}` is not {}", self.what));
                Err((self.place(key), fault.remedy(suggestion(key, self.known.iter().copied()))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What FAST's parameters will be: numbers and a threshold of time.
    #[test]
    fn settings_are_numbers_times_and_switches() {
        let setting = |text: &str| Setting(text.to_owned());
        let given = [("alpha", "8"), ("gamma", "-1"), ("threshold", "0.75ms"), ("refill", "maybe")];
        let given = given.map(|(key, text)| (key.to_owned(), setting(text)));
        let mut settings = Settings::new(BTreeMap::from(given), Path::default(), "a parameter");
        let number = |taken: Checked<f64>| taken.map(|number| number.to_string()).map_err(|(_, fault)| fault);
        assert_eq!(settings.take("threshold", SimSpan::ZERO).unwrap(), SimSpan::from_micros(750));
        assert_eq!(number(settings.take("alpha", 200.0)).unwrap(), "8");
        assert_eq!(number(settings.take("beta", 2.5)).unwrap(), "2.5");
        assert!(number(settings.take("gamma", 0.5)).is_err() && settings.take("refill", false).is_err());
    }
}

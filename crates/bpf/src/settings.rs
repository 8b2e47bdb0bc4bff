//! The settings of a law as the C code reads them (`struct ab_settings` of `c/state.h` and of `c/anabranch/settings.h`).

use std::fmt;

use anabranch_cc::registry::{self, SettingError, Value};
use anabranch_units::Span;

use crate::law::Law;

/// The settings of a law in the kernel: the numbers of `struct ab_settings`, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    law: Law,
    words: Vec<u64>,
}

/// Why settings are refused.
#[derive(Debug)]
pub enum Problem {
    /// The law has no such setting, or the value is out of its range.
    Setting(SettingError),
    /// The Rust law has the setting, the C law does not: the name.
    NotInKernel(Law, String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(error) => error.fmt(f),
            Self::NotInKernel(law, key) => {
                let names: Vec<&str> = keys(*law).iter().map(|key| key.name).collect();
                write!(f, "the law has no `{key}` in the kernel; there are {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for Problem {}

impl Settings {
    /// The size of the name in C.
    const NAME: usize = 16;
    /// The place of `base` in the settings of FAST's C: `enum ab_base`.
    const BASE: usize = 6;

    /// The defaults of a law, which are those in Rust.
    pub fn of(law: Law) -> Self {
        Self::encode(law, &registry::Settings::default_for(law.row())).expect("the defaults exist in C")
    }

    /// Sets `key` to `value`, as in a scenario.
    ///
    /// # Errors
    /// If the law has no such setting, in Rust or in C, or the value is invalid. Nothing is changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let mut settings = self.decode();
        settings.set(key, value).map_err(Problem::Setting)?;
        *self = Self::encode(self.law, &settings)?;
        Ok(())
    }

    /// The law in Rust with these settings.
    pub fn decode(&self) -> registry::Settings {
        let mut settings = registry::Settings::default_for(self.law.row());
        for (key, value) in self.pairs() {
            settings.set(key, &value).expect("what was encoded is valid");
        }
        settings
    }

    /// Names and values, as [`Self::set`] takes them.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let settings = registry::Settings::default_for(self.law.row());
        let has = |key: &Key| settings.value(key.name).is_some();
        keys(self.law)
            .iter()
            .filter(|key| has(key))
            .map(|key| (key.name, key.scale.show(self.words[key.place])))
            .collect()
    }

    /// The bytes of `struct ab_settings`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(self.law.name().bytes());
        bytes.resize(8 * self.words.len() + Self::NAME, 0);
        bytes
    }

    /// The settings of `law` from the bytes of `struct ab_settings`; `None` if there are too few or too many, or a word is out of its range.
    pub fn from_bytes(law: Law, bytes: &[u8]) -> Option<Self> {
        let mut found = Self::of(law);
        if bytes.len() != found.to_bytes().len() {
            return None;
        }
        for (word, from) in found.words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(from.try_into().expect("a chunk has 8 bytes"));
        }
        let mut settings = registry::Settings::default_for(law.row());
        let is_valid = found.pairs().iter().all(|(key, value)| settings.set(key, value).is_ok());
        (is_valid && Self::encode(law, &settings).is_ok()).then_some(found)
    }

    fn encode(law: Law, settings: &registry::Settings) -> Result<Self, Problem> {
        // The defaults with what C has: everything else has to be equal.
        let mut plain = registry::Settings::default_for(law.row());
        for key in keys(law) {
            if let Some(value) = settings.value(key.name) {
                plain.set(key.name, &value.to_string()).map_err(Problem::Setting)?;
            }
        }
        for parameter in settings.parameters() {
            if settings.value(&parameter.name) != plain.value(&parameter.name) {
                return Err(Problem::NotInKernel(law, parameter.name.to_string()));
            }
        }
        let fast = registry::Settings::default_for(Law::Fast.row());
        let mut words = vec![0; keys(law).iter().map(|key| key.place + 1).max().unwrap_or_default()];
        for key in keys(law) {
            // Standard TCP has none of FAST's settings; its C does not read them.
            let value = settings.value(key.name).or_else(|| fast.value(key.name)).expect("FAST has every setting");
            let word = key.scale.word(value).ok_or_else(|| Problem::NotInKernel(law, key.name.to_owned()))?;
            words[key.place] = word;
        }
        if law == Law::Composite {
            words[Self::BASE] = 1;
            words[FAST[FAST.len() - 1].place] = 1;
        }
        Ok(Self { law, words })
    }
}

/// A setting that exists in C.
#[derive(Clone, Copy)]
struct Key {
    name: &'static str,
    /// Its place in `struct ab_settings`.
    place: usize,
    scale: Scale,
}

/// How a value becomes a word.
#[derive(Clone, Copy)]
enum Scale {
    /// A number with this many bits after the point.
    Bits(u32),
    /// A span in nanoseconds.
    Span,
    /// The words for 0 and for 1.
    Choice([&'static str; 2]),
}

/// The settings of a law.
fn keys(law: Law) -> &'static [Key] {
    match law {
        Law::Anabranch => &ANABRANCH,
        Law::Fast | Law::Emfast | Law::Rrfast | Law::Composite => &FAST,
    }
}

const ANABRANCH: [Key; 7] = [
    Key { name: "initial_window", place: 0, scale: Scale::Bits(24) },
    Key { name: "alpha", place: 1, scale: Scale::Bits(24) },
    Key { name: "drain_interval", place: 2, scale: Scale::Span },
    Key { name: "drain_part", place: 3, scale: Scale::Bits(32) },
    Key { name: "decrease", place: 4, scale: Scale::Bits(32) },
    Key { name: "ours", place: 5, scale: Scale::Bits(32) },
    Key { name: "rival", place: 6, scale: Scale::Choice(["cubic", "yield"]) },
];

const FAST: [Key; 9] = [
    Key { name: "initial_window", place: 0, scale: Scale::Bits(24) },
    Key { name: "alpha", place: 1, scale: Scale::Bits(24) },
    Key { name: "beta", place: 2, scale: Scale::Bits(24) },
    Key { name: "gamma", place: 3, scale: Scale::Bits(16) },
    Key { name: "multiplicative_increase.threshold", place: 4, scale: Scale::Span },
    Key { name: "average_weight", place: 5, scale: Scale::Bits(32) },
    Key { name: "refill", place: 7, scale: Scale::Choice(["per_rtt", "ccafr"]) },
    Key { name: "base_rtt", place: 8, scale: Scale::Choice(["min", "reroute"]) },
    Key { name: "loss", place: 9, scale: Scale::Choice(["halve", "composite"]) },
];

impl Scale {
    /// The word for a value; `None` if C has none.
    fn word(self, value: Value) -> Option<u64> {
        match (self, value) {
            (Self::Bits(bits), Value::Number(number)) => Some((number * (1_u64 << bits) as f64).round() as u64),
            (Self::Span, Value::Span(span)) => Some(span.ticks()),
            (Self::Choice(words), Value::Choice(word)) => {
                words.iter().position(|known| *known == word).map(|at| at as u64)
            }
            _ => None,
        }
    }

    /// The value of a word, as text.
    fn show(self, word: u64) -> String {
        match self {
            Self::Bits(bits) => {
                // The shortest text of this word: 0.15 and not 0.149999….
                let number = word as f64 / (1_u64 << bits) as f64;
                let texts = (0..=bits as usize).map(|digits| format!("{number:.digits$}"));
                let is_same =
                    |text: &String| text.parse().is_ok_and(|number| self.word(Value::Number(number)) == Some(word));
                texts.into_iter().find(is_same).unwrap_or_else(|| number.to_string())
            }
            Self::Span => Span::from_ticks(word).to_string(),
            Self::Choice(words) => usize::try_from(word).ok().and_then(|at| words.get(at)).unwrap_or(&"?").to_string(),
        }
    }
}

#[cfg(test)]
mod tests;

//! The settings of a law as the C code reads them (`struct ab_settings` of `c/state.h`).

use std::fmt;

use anabranch_cc::registry::{self, SettingError, Value};
use anabranch_units::Span;

use crate::law::Law;

/// The settings of a law in the kernel: the numbers of `struct ab_settings`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    law: Law,
    words: [u64; Self::WORDS],
}

/// Why settings are refused.
#[derive(Debug)]
pub enum Problem {
    /// The law has no such setting, or the value is out of its range.
    Setting(SettingError),
    /// The Rust law has the setting, the C law does not: the name.
    NotInKernel(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(error) => error.fmt(f),
            Self::NotInKernel(key) => {
                write!(f, "the law has no `{key}` in the kernel; there are {}", KEYS.map(|key| key.name).join(", "))
            }
        }
    }
}

impl std::error::Error for Problem {}

impl Settings {
    /// The number of words in C.
    const WORDS: usize = KEYS.len() + 1;
    /// The size of the name in C.
    const NAME: usize = 16;
    /// The size in bytes in C.
    pub const BYTES: usize = 8 * Self::WORDS + Self::NAME;
    /// The place of `base`: `enum ab_base`.
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
        KEYS.iter().filter(|key| has(key)).map(|key| (key.name, key.scale.show(self.words[key.place]))).collect()
    }

    /// The bytes of `struct ab_settings`.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let name = self.law.name().as_bytes();
        bytes[8 * Self::WORDS..][..name.len()].copy_from_slice(name);
        bytes
    }

    /// The settings of `law` from the bytes of `struct ab_settings`; `None` if a word is out of its range.
    pub fn from_bytes(law: Law, bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut words = [0; Self::WORDS];
        for (word, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(from.try_into().expect("a chunk has 8 bytes"));
        }
        let found = Self { law, words };
        let mut settings = registry::Settings::default_for(law.row());
        let is_valid = found.pairs().iter().all(|(key, value)| settings.set(key, value).is_ok());
        (is_valid && Self::encode(law, &settings).is_ok()).then_some(found)
    }

    fn encode(law: Law, settings: &registry::Settings) -> Result<Self, Problem> {
        // The defaults with what C has: everything else has to be equal.
        let mut plain = registry::Settings::default_for(law.row());
        for key in &KEYS {
            if let Some(value) = settings.value(key.name) {
                plain.set(key.name, &value.to_string()).map_err(Problem::Setting)?;
            }
        }
        for parameter in settings.parameters() {
            if settings.value(&parameter.name) != plain.value(&parameter.name) {
                return Err(Problem::NotInKernel(parameter.name.to_string()));
            }
        }
        let fast = registry::Settings::default_for(Law::Fast.row());
        let mut words = [0; Self::WORDS];
        for key in &KEYS {
            // Standard TCP has none of FAST's settings; its C does not read them.
            let value = settings.value(key.name).or_else(|| fast.value(key.name)).expect("FAST has every setting");
            words[key.place] = key.scale.word(value).ok_or_else(|| Problem::NotInKernel(key.name.to_owned()))?;
        }
        if law == Law::Composite {
            words[Self::BASE] = 1;
            words[KEYS[KEYS.len() - 1].place] = 1;
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

const KEYS: [Key; 9] = [
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
            Self::Bits(bits) => (word as f64 / (1_u64 << bits) as f64).to_string(),
            Self::Span => Span::from_ticks(word).to_string(),
            Self::Choice(words) => usize::try_from(word).ok().and_then(|at| words.get(at)).unwrap_or(&"?").to_string(),
        }
    }
}

#[cfg(test)]
mod tests;

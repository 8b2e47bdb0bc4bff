//! Errors of the registry, which list the valid names and values.

use std::fmt;

use super::parameter::{Kind, Parameter, is_in};

/// Why a law cannot be found, or a setting cannot be set.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingError {
    /// There is no law of this name.
    UnknownLaw {
        /// The requested name.
        name: String,
        /// The names of all laws.
        known: Vec<&'static str>,
    },
    /// The law has no setting of this name.
    UnknownKey {
        /// The name of the law.
        law: &'static str,
        /// The requested key.
        key: String,
        /// The keys of the law.
        known: Vec<String>,
    },
    /// The key belongs to another kind of its part.
    OtherKind {
        /// The name of the law.
        law: &'static str,
        /// The requested key.
        key: String,
        /// The name of the part.
        part: &'static str,
        /// The kind that has the key.
        kind: &'static str,
        /// The present kind of the part.
        is: &'static str,
    },
    /// The value is invalid or out of range.
    BadValue {
        /// The name of the law.
        law: &'static str,
        /// The setting with its range.
        parameter: Box<Parameter>,
        /// The requested value.
        value: String,
    },
}

impl SettingError {
    /// There is no law `name`; `known` are the names of all.
    pub fn unknown_law(name: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self::UnknownLaw { name: name.to_owned(), known: known.into_iter().collect() }
    }

    pub(super) fn unknown_key(law: &'static str, key: &str, known: &[Parameter]) -> Self {
        let mut known: Vec<_> = known.iter().map(|parameter| parameter.name.clone()).collect();
        // Several kinds of a part may have a setting of one name.
        known.dedup();
        Self::UnknownKey { law, key: key.to_owned(), known }
    }

    pub(super) fn bad_value(law: &'static str, parameter: Parameter, value: &str) -> Self {
        Self::BadValue { law, parameter: Box::new(parameter), value: value.to_owned() }
    }
}

impl std::error::Error for SettingError {}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did_you_mean = |f: &mut fmt::Formatter<'_>, known: &str| write!(f, "; did you mean `{known}`?");
        match self {
            Self::UnknownLaw { name, known } => {
                write!(f, "there is no congestion law `{name}`")?;
                match nearest(name, known.iter().copied()) {
                    Some(known) => did_you_mean(f, known),
                    None => write!(f, "; there are {}", known.join(", ")),
                }
            }
            Self::UnknownKey { law, key, known } => {
                write!(f, "{law} has no parameter `{key}`")?;
                let within: Vec<&str> = known.iter().map(String::as_str).filter(|name| is_in(name, key)).collect();
                match nearest(key, known.iter().map(String::as_str)) {
                    _ if !within.is_empty() => write!(f, "; it is a table: {}", within.join(", ")),
                    Some(known) => did_you_mean(f, known),
                    None if known.is_empty() => write!(f, "; it has none"),
                    None => write!(f, "; it has {}", known.join(", ")),
                }
            }
            Self::OtherKind { law, key, part, kind, is } => {
                write!(f, "`{key}` of {law} is a setting of `{kind}`, and `{part}` is `{is}`")?;
                write!(f, "; write {part} = {{ kind = \"{kind}\", ... }} or remove it")
            }
            Self::BadValue { law, parameter, value } => {
                let Parameter { name, unit, kind, .. } = &**parameter;
                write!(f, "`{name}` of {law} cannot be `{value}`: it is {kind}")?;
                if !unit.is_empty() {
                    write!(f, " {unit}")?;
                }
                match kind {
                    Kind::Choice { options } => {
                        nearest(value, options.iter().copied()).map_or(Ok(()), |known| did_you_mean(f, known))
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The name in `known` that is most similar to `text`, if at most half of the letters differ.
fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_ascii_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&text, name), name))
        .filter(|&(distance, name)| distance * 2 <= name.chars().count().max(text.chars().count()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

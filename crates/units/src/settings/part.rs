//! Parts of a simulation that have several kinds: a queue, an error model.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::discriminant;

use super::{Fields, Parameter, Task, Value, list};

/// A part of a simulation: in a file, a table whose key `kind` selects the kind, with the settings of that kind.
pub trait Part: Clone + 'static {
    /// The name of the part in documents.
    const NAME: &'static str;
    /// A sentence about it.
    const HELP: &'static str;

    /// The kinds, in the order for readers.
    fn kinds() -> Vec<PartKind<Self>>;

    /// The word for the present kind.
    fn word(&self) -> &'static str {
        word_of(self).expect("every variant is a kind")
    }

    /// Lists the fields of the present kind.
    fn visit(&mut self, fields: &mut Fields<'_>);

    /// Checks what the ranges of single fields do not tell.
    ///
    /// # Errors
    /// The first flaw.
    fn check(&self) -> Result<(), Flaw> {
        Ok(())
    }

    /// What a table of the part may hold.
    fn table() -> PartTable {
        let kinds = || {
            let kinds = Self::kinds().into_iter();
            kinds.map(|PartKind { word, synonyms, help, .. }| PartKind { word, synonyms, help, default: () }).collect()
        };
        let parameters = |word: &str| {
            let kind = Self::kinds().into_iter().find(|kind| kind.word == word);
            kind.map_or_else(Vec::new, |kind| kind.default.parameters())
        };
        PartTable { name: Self::NAME, help: Self::HELP, kinds, parameters }
    }

    /// The part of the kind `word` with these settings.
    ///
    /// # Errors
    /// If there is no such kind, or a setting cannot have its value.
    fn with(word: &str, values: BTreeMap<String, Value>) -> Result<Self, Flaw> {
        let kind = Self::kinds().into_iter().find(|kind| kind.word == word);
        let mut part = kind.ok_or_else(|| Flaw::new("kind", format!("unknown kind `{word}`"), "use another"))?.default;
        part.put(values)?;
        Ok(part)
    }

    /// The settings of the present kind.
    fn parameters(&self) -> Vec<Parameter> {
        list(|fields| self.clone().visit(fields))
    }

    /// Sets the settings with these names.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot hold the value.
    fn put(&mut self, mut values: BTreeMap<String, Value>) -> Result<(), Flaw> {
        self.visit(&mut Fields::new("", None, Task::Put(&mut values)));
        match values.pop_first() {
            None => Ok(()),
            Some((key, value)) => {
                let message = format!("`{key}` cannot be `{value}`");
                Err(Flaw { key, message, remedy: "use a smaller value".to_owned() })
            }
        }
    }

    /// The first flaw of its settings, if there is one.
    fn flaw(&self) -> Option<Flaw> {
        if let Err(flaw) = self.check() {
            return Some(flaw);
        }
        for Parameter { name, kind, value, .. } in self.parameters() {
            if !kind.allows(&value) {
                let message = format!("`{name}` cannot be `{value}`");
                return Some(Flaw { key: name, message, remedy: format!("it is {kind}") });
            }
        }
        None
    }

    /// The present kind and its settings, such as `drop_tail, packets 50`.
    fn shown(&self) -> String {
        let mut text = self.word().to_owned();
        for Parameter { name, value, .. } in self.parameters().into_iter().filter(|one| one.value != Value::Absent) {
            text.push_str(&format!(", {name} {value}"));
        }
        text
    }
}

/// What a table of a [`Part`] may hold, whatever its type.
#[derive(Clone, Copy, Debug)]
pub struct PartTable {
    /// The name of the part in documents, [`Part::NAME`].
    pub name: &'static str,
    /// The sentence about it for the reference, [`Part::HELP`].
    pub help: &'static str,
    kinds: fn() -> Vec<PartKind<()>>,
    parameters: fn(&str) -> Vec<Parameter>,
}

impl PartTable {
    /// The kinds, in the order for readers.
    pub fn kinds(&self) -> Vec<PartKind<()>> {
        (self.kinds)()
    }

    /// The default settings of the kind `word`; none if there is no such kind.
    pub fn parameters(&self, word: &str) -> Vec<Parameter> {
        (self.parameters)(word)
    }
}

/// A part has one name.
impl PartialEq for PartTable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A kind of a [`Part`].
#[derive(Clone, Copy, Debug)]
pub struct PartKind<T> {
    /// The word for it.
    pub word: &'static str,
    /// Words of others that mean the same.
    pub synonyms: &'static [&'static str],
    /// A description for the reference.
    pub help: &'static str,
    /// The kind with its default settings.
    pub default: T,
}

/// The word for the present kind of a part whose kinds are the variants of an enum.
pub fn word_of<T: Part>(part: &T) -> Option<&'static str> {
    let is_it = |kind: &PartKind<T>| discriminant(&kind.default) == discriminant(part);
    T::kinds().into_iter().find(is_it).map(|kind| kind.word)
}

/// Why the settings of a part are impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The setting; empty if several are to blame.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Flaw {
    /// A flaw of the setting `key`.
    pub fn new(key: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for Flaw {}

//! What is wrong with an input, where, and what to do about it.

use std::fmt;
use std::sync::Arc;

/// One mistake in a scenario, an experiment or a `--set`: where it stands, what it is, and the remedy.
///
/// ```text
/// chain.toml:9:1: unknown key `quque`; did you mean `queue`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as it was named to us.
    pub file: Arc<str>,
    /// Where in the file, or in which override.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What would be right, if we can tell.
    pub remedy: Option<String>,
}

/// Where a key or a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole: it cannot be read.
    File,
    /// In the file; both count from 1, columns count characters.
    Line {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In a file that this one extends. A diagnostic has that file, and the line in it, instead.
    Base {
        /// Which.
        file: Arc<str>,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// Not in the file but in `--set`, with its whole argument.
    Set(Arc<str>),
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File => write!(f, "{}: ", self.file)?,
            Place::Line { line, column } => write!(f, "{}:{line}:{column}: ", self.file)?,
            Place::Base { file, line, column } => write!(f, "{file}:{line}:{column}: ")?,
            Place::Set(argument) => write!(f, "{}: --set {argument}: ", self.file)?,
        }
        write!(f, "{}", self.message)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// What is wrong, before it is known which file it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
}

impl Fault {
    /// What it quotes is shortened: an id of a megabyte is no message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: shortened(&message.into()), remedy: None }
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Says where it is; whoever stood closer to the mistake has said so before.
    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.place.get_or_insert_with(|| place.clone());
        self
    }

    pub(crate) fn in_file(self, file: &Arc<str>) -> Diagnostic {
        let (file, place) = match self.place {
            Some(Place::Base { file, line, column }) => (file, Place::Line { line, column }),
            place => (Arc::clone(file), place.unwrap_or(Place::File)),
        };
        Diagnostic { file, place, message: self.message, remedy: self.remedy }
    }
}

/// Whether a terminal takes a character for a command. Lines and tabs only move what is behind them.
pub fn is_command(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// A text in which quotes, between two backticks, have at most [`QUOTE_LENGTH_MAX`] characters.
fn shortened(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        // Every other part is a quote.
        match part.char_indices().nth(QUOTE_LENGTH_MAX) {
            Some((end, _)) if index % 2 == 1 => format!("{}…", &part[..end]),
            _ => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// What is longer than a line tells no more.
const QUOTE_LENGTH_MAX: usize = 100;

/// Names that a message lists; of more, it says how many.
const LISTED_MAX: usize = 50;

/// `did you mean ...?` where one of `known` is like `text`, else a list of all that is known.
pub fn suggestion<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(text, &known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None if known.len() > LISTED_MAX => {
            format!("there are {} and {} more", known[..LISTED_MAX].join(", "), known.len() - LISTED_MAX)
        }
        None => format!("there are {}", known.join(", ")),
    }
}

/// The one of `known` that is most like `text`, if one is.
pub(crate) fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = text.to_lowercase();
    if lower.len() > QUOTE_LENGTH_MAX {
        // Nothing so long is a misspelling of something.
        return None;
    }
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), *name))
        // Half of the letters may differ: `quque` is `queue`, but `colour` is not `rate`.
        .filter(|&(distance, name)| distance * 2 <= name.chars().count().max(lower.chars().count()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

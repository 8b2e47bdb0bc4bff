//! Errors in an input: what, where, and the remedy.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use anabranch_units::shown;

/// An error in a scenario, an experiment or a `--set`: its place, its message, and the remedy.
///
/// ```text
/// chain.toml:9:1: unknown key `quque`; did you mean `queue`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the file.
    pub file: Arc<str>,
    /// Where in the file, or in which override.
    pub place: Place,
    /// The mistake found.
    pub message: String,
    /// The remedy, if it is known.
    pub remedy: Option<String>,
    /// The line of the file; `None` if the error is in an override, or concerns the whole file.
    pub excerpt: Option<Box<Excerpt>>,
}

/// A line of a file with the marked part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the line, from 1.
    pub number: usize,
    /// The line, without its end.
    pub line: String,
    /// The marked key or value, in bytes of the line.
    pub span: Range<usize>,
}

impl Excerpt {
    /// The line around a place of a text. The marked part begins there: a string up to its quote, else a word.
    pub(crate) fn of(text: &str, number: usize, column: usize) -> Option<Self> {
        let line = text.lines().nth(number.checked_sub(1)?).filter(|line| line.len() <= LINE_LENGTH_MAX)?;
        let start = line.char_indices().nth(column.checked_sub(1)?).map_or(line.len(), |(offset, _)| offset);
        let rest = &line[start..];
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let mut is_escaped = false;
                let is_end = |c: char| {
                    let is_end = c == quote && !is_escaped;
                    is_escaped = c == '\\' && quote == '"' && !is_escaped;
                    is_end
                };
                rest[1..].find(is_end).map_or(rest.len(), |end| end + 2)
            }
            Some(_) => rest.find(|c: char| c.is_whitespace() || "=,]}".contains(c)).unwrap_or(rest.len()),
            None => 0,
        };
        // A sign by itself is marked, too.
        let least = rest.chars().next().map_or(0, char::len_utf8);
        let end = start + length.max(least).min(rest.ceil_char_boundary(QUOTE_LENGTH_MAX));
        Some(Self { number, line: line.to_owned(), span: start..end })
    }
}

/// The place of a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole file: it cannot be read.
    File,
    /// A place in the file; line and column count from 1, columns in characters.
    Line {
        /// The line number.
        line: usize,
        /// The column number.
        column: usize,
    },
    /// A place in a file that this one extends. In a [`Diagnostic`] it is replaced by that file and a `Line` in it.
    Base {
        /// The extended file.
        file: Arc<str>,
        /// The line number.
        line: usize,
        /// The column number.
        column: usize,
    },
    /// A `--set`, with its whole argument.
    Set(Arc<str>),
    /// A run of the file, whose input is right: a controller of a flow's own has failed.
    Run,
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File | Place::Run => write!(f, "{}: ", shown(&*self.file))?,
            Place::Line { line, column } => write!(f, "{}:{line}:{column}: ", shown(&*self.file))?,
            Place::Base { file, line, column } => write!(f, "{}:{line}:{column}: ", shown(&**file))?,
            Place::Set(argument) => write!(f, "{}: --set {argument}: ", shown(&*self.file))?,
        }
        write!(f, "{}", self.message)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// An error whose file is not yet known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
}

impl Fault {
    /// Quotes in the message are shortened.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: shortened(&message.into()), remedy: None }
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Sets the place, unless an inner caller has set it.
    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.place.get_or_insert_with(|| place.clone());
        self
    }

    /// The diagnostic about a file or a folder as a whole, without its text.
    pub(crate) fn about(self, name: &str) -> Diagnostic {
        let place = self.place.unwrap_or(Place::File);
        Diagnostic { file: name.into(), place, message: self.message, remedy: self.remedy, excerpt: None }
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in messages.
    pub file: Arc<str>,
    /// The whole text of the file.
    pub text: Arc<str>,
}

/// Whether a character could be a command to a terminal. Line breaks and tabs are none.
pub fn is_command(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// A text whose quotes, between two backticks, have at most [`QUOTE_LENGTH_MAX`] characters.
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

/// The limit of a line in bytes: nobody writes longer ones by hand.
const LINE_LENGTH_MAX: usize = 10_000;

/// The limit of a quote: longer ones do not help.
const QUOTE_LENGTH_MAX: usize = 100;

/// The limit of names in a list; the message counts the rest.
const LISTED_MAX: usize = 50;

/// `did you mean ...?` if one of `known` is similar to `text`, else a list of all.
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

/// The name in `known` most similar to `text`, if one is similar.
pub(crate) fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    if lower.len() > QUOTE_LENGTH_MAX {
        // A text this long is not a misspelling.
        return None;
    }
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase()), *name))
        // Half of the letters may differ: `quque` is `queue`, but `colour` is not `rate`.
        .filter(|&(distance, name)| distance * 2 <= name.chars().count().max(lower.chars().count()))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_marks_the_key_or_the_value() {
        let text = "a = 1\nµ = \"x \\\" y\" # z\nlist = [12, 'it''s']\n=\n";
        let marked = |line, column| {
            let Excerpt { line, span, .. } = Excerpt::of(text, line, column).unwrap();
            line[span].to_owned()
        };
        assert_eq!([marked(1, 1), marked(1, 5), marked(2, 1)], ["a", "1", "µ"]);
        assert_eq!([marked(2, 5), marked(3, 9), marked(3, 13)], ["\"x \\\" y\"", "12", "'it'"]);
        assert_eq!([marked(4, 1), marked(4, 2), marked(4, 99)], ["=", "", ""]);
        assert_eq!(Excerpt::of(text, 9, 1), None);
        assert_eq!(Excerpt::of(text, 0, 1), None);
    }
}

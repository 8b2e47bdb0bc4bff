//! Reads the text of a script, and knows its lines.

use std::fmt;
use std::str::FromStr;

/// What is wrong with a script, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The rest of a script.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn wrong(&self, what: &str) -> Wrong {
        Wrong { line: self.line, what: what.to_owned() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Goes on by `len` bytes, and returns them.
    fn skip(&mut self, len: usize) -> &'a str {
        let (part, rest) = self.rest.split_at(len);
        self.line += part.matches('\n').count();
        self.rest = rest;
        part
    }

    /// Skips blanks, tabs and continued lines, not the end of a line.
    pub(crate) fn spaces(&mut self) {
        loop {
            if self.rest.starts_with([' ', '\t']) {
                self.skip(1);
            } else if self.rest.starts_with("\\\n") {
                self.skip(2);
            } else {
                return;
            }
        }
    }

    /// Skips blanks, ends of lines and comments.
    pub(crate) fn blanks(&mut self) -> Result<(), Wrong> {
        loop {
            if self.rest.starts_with(char::is_whitespace) {
                let len = self.rest.chars().next().map_or(0, char::len_utf8);
                self.skip(len);
            } else if self.rest.starts_with("//") || self.rest.starts_with('#') {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.skip(len);
            } else if self.rest.starts_with("/*") {
                let len = self.rest.find("*/").ok_or_else(|| self.wrong("the comment has no end"))?;
                self.skip(len + 2);
            } else {
                return Ok(());
            }
        }
    }

    /// Whether the rest began with `text`, which is taken.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let is_there = self.rest.starts_with(text);
        if is_there {
            self.skip(text.len());
        }
        is_there
    }

    pub(crate) fn expect(&mut self, text: &str) -> Result<(), Wrong> {
        if self.take(text) { Ok(()) } else { Err(self.wrong(&format!("`{text}` is missing"))) }
    }

    /// What comes before this letter, which is taken, too.
    pub(crate) fn until(&mut self, end: char) -> Result<String, Wrong> {
        let len = self.rest.find(end).ok_or_else(|| self.wrong(&format!("`{end}` is missing")))?;
        let part = self.skip(len).to_owned();
        self.skip(end.len_utf8());
        Ok(part)
    }

    /// What comes before this text, which is taken, too.
    pub(crate) fn until_text(&mut self, end: &str) -> Result<String, Wrong> {
        let len = self.rest.find(end).ok_or_else(|| self.wrong(&format!("`{end}` is missing")))?;
        let part = self.skip(len).to_owned();
        self.skip(end.len());
        Ok(part)
    }

    /// The rest of the line, without a comment.
    pub(crate) fn rest_of_line(&mut self) -> String {
        let len = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.skip(len);
        line.split("//").next().unwrap_or_default().trim().to_owned()
    }

    /// Everything up to a blank or a bracket.
    pub(crate) fn word(&mut self) -> String {
        let len = self.rest.find(|letter: char| letter.is_whitespace() || letter == '(').unwrap_or(self.rest.len());
        self.skip(len).to_owned()
    }

    pub(crate) fn number<N: FromStr>(&mut self) -> Result<N, Wrong> {
        let len = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        let digits = &self.rest[..len];
        let number = digits.parse().map_err(|_| self.wrong("a number that fits is missing"))?;
        self.skip(len);
        Ok(number)
    }

    /// A time in seconds, as nanoseconds; `None` if there is none.
    pub(crate) fn seconds(&mut self) -> Result<Option<u64>, Wrong> {
        let mut len = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        let mut fraction = "";
        // Three dots are a range.
        if self.rest[len..].starts_with('.') && !self.rest[len..].starts_with("..") {
            let after = &self.rest[len + 1..];
            let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            fraction = &after[..digits];
            if len + digits == 0 {
                return Ok(None);
            }
            let whole = &self.rest[..len];
            len += 1 + digits;
            let time = nanoseconds(whole, fraction).ok_or_else(|| self.wrong("the time is no number"))?;
            self.skip(len);
            return Ok(Some(time));
        }
        if len == 0 {
            return Ok(None);
        }
        let time = nanoseconds(&self.rest[..len], fraction).ok_or_else(|| self.wrong("the time is no number"))?;
        self.skip(len);
        Ok(Some(time))
    }

    /// The arguments in brackets, of which the first is taken already, at the commas outside of inner brackets.
    pub(crate) fn arguments(&mut self) -> Result<Vec<String>, Wrong> {
        let (mut depth, mut arguments, mut argument) = (0, vec![], String::new());
        for (at, letter) in self.rest.char_indices() {
            match letter {
                ')' if depth == 0 => {
                    self.skip(at + 1);
                    if !argument.trim().is_empty() || !arguments.is_empty() {
                        arguments.push(argument.trim().to_owned());
                    }
                    return Ok(arguments);
                }
                ',' if depth == 0 => {
                    arguments.push(argument.trim().to_owned());
                    argument.clear();
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            argument.push(letter);
        }
        Err(self.wrong("`)` is missing"))
    }
}

fn nanoseconds(whole: &str, fraction: &str) -> Option<u64> {
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = fraction.get(..9.min(fraction.len()))?;
    let fraction: u64 = format!("{digits:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

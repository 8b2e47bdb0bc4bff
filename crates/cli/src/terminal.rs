//! Terminal output: tables, colours on a terminal only, progress.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_lab::diagnostic::{Excerpt, is_command};
use anabranch_units::deceives;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use textwrap::{Options, WordSeparator, WordSplitter};
use unicode_width::UnicodeWidthStr;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const NOTABLE: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const PLAIN: Style = Style::new();

/// Prints an error to stderr.
pub(crate) fn complain(message: &str) {
    // If even stderr is gone, the exit code remains.
    let _ = writeln!(anstream::stderr(), "{BAD}error{BAD:#}: {}", shown(message));
}

/// Shows the wrong line on stderr.
pub(crate) fn show(excerpt: &Excerpt) {
    let _ = writeln!(anstream::stderr(), "{}", drawn(excerpt));
}

/// The line with its number, and a mark under the key or value. A long line is cut around it.
fn drawn(Excerpt { number, line, span }: &Excerpt) -> String {
    let (before, meant, after) = (&line[..span.start], &line[span.clone()], &line[span.end..]);
    let [before, meant, after] = [before, meant, after].map(shown);
    let marked = AnnotationKind::Primary.span(before.len()..before.len() + meant.len());
    let snippet = Snippet::source(format!("{before}{meant}{after}")).line_start(*number).annotation(marked);
    Renderer::styled().term_width(WIDTH).render(&[Group::with_level(Level::ERROR).element(snippet)])
}

/// A text from elsewhere, such as an artifact's content, without control sequences and without marks that reverse or hide letters.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_unwanted = |c: char| is_command(c) || deceives(c) && !c.is_control();
    match text.contains(is_unwanted) {
        false => text.into(),
        true => text.chars().map(|c| if is_unwanted(c) { char::REPLACEMENT_CHARACTER } else { c }).collect(),
    }
}

/// A terminal that is written to by somebody else: it shows control characters, but for line ends and tabs, and obeys none.
pub(crate) struct Tame<W> {
    to: W,
    /// The begin of a letter whose end has not come.
    begun: Vec<u8>,
}

impl<W> Tame<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, begun: vec![] }
    }
}

impl<W: std::io::Write> std::io::Write for Tame<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.begun.extend(bytes);
        let tail = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => self.begun.split_off(error.valid_up_to()),
            _ => vec![],
        };
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun = tail;
        let plain = |letter: char| if deceives(letter) { char::REPLACEMENT_CHARACTER } else { letter };
        let shown: String =
            text.chars().map(|letter| if matches!(letter, '\n' | '\t') { letter } else { plain(letter) }).collect();
        self.to.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// The name of a file in a message, on one line.
pub(crate) fn named(path: impl AsRef<OsStr>) -> String {
    anabranch_units::shown(path)
}

/// The width of a paragraph, which fits a page and a narrow terminal.
const WIDTH: usize = 100;

/// `text` wrapped with an indent; the first line begins with `bullet`.
pub(crate) fn paragraph(bullet: &str, text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let indent = " ".repeat(bullet.width());
    let options = Options::new(WIDTH)
        .initial_indent(bullet)
        .subsequent_indent(&indent)
        .word_separator(WordSeparator::AsciiSpace)
        // A hyphenated name could not be copied.
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(&words, options) + "\n"
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table whose columns are as wide as their widest cell.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|&(head, align)| (head.to_owned(), align)).collect(), rows: Vec::new() }
    }

    /// A table with columns of text, and columns of numbers after them.
    pub(crate) fn of(texts: &[&str], numbers: &[&str]) -> Self {
        let with = |heads: &[&str], align| heads.iter().map(|&head| (head.to_owned(), align)).collect::<Vec<_>>();
        Self { columns: [with(texts, Align::Left), with(numbers, Align::Right)].concat(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<(String, Style)>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Omits columns that are entirely empty.
    pub(crate) fn render(&self, indent: &str) -> String {
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].0.as_str());
        let columns: Vec<(usize, usize)> = (0..self.columns.len())
            .filter(|&column| cells(column).any(|cell| !cell.is_empty()))
            .map(|column| {
                let head = self.columns[column].0.as_str();
                (column, cells(column).chain([head]).map(UnicodeWidthStr::width).max().unwrap_or(0))
            })
            .collect();
        let mut text = String::new();
        let mut line = |cell: &dyn Fn(usize) -> (String, Style)| {
            text.push_str(indent);
            for (position, &(column, width)) in columns.iter().enumerate() {
                let (content, style) = cell(column);
                let style = if content.is_empty() { PLAIN } else { style };
                let padding = " ".repeat(width - content.width());
                let is_last = position + 1 == columns.len();
                let _ = match self.columns[column].1 {
                    Align::Left if is_last => write!(text, "{style}{content}{style:#}"),
                    Align::Left => write!(text, "{style}{content}{style:#}{padding}"),
                    Align::Right => write!(text, "{padding}{style}{content}{style:#}"),
                };
                if !is_last {
                    text.push_str("  ");
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        };
        line(&|column| (self.columns[column].0.clone(), DIM));
        for row in &self.rows {
            line(&|column| row[column].clone());
        }
        text
    }
}

/// A progress bar on stderr: drawn on a terminal only, after a second, and removed at the end.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Updates the elapsed time.
    ticker: Option<JoinHandle<()>>,
}

impl Progress {
    /// A bar for a number of runs.
    pub(crate) fn of_runs() -> Self {
        Self::new("{elapsed:>4} {bar:40.green/black.bright} {pos}/{len} runs, {eta} to go")
    }

    /// A bar for the progress of one run.
    pub(crate) fn of_a_run() -> Self {
        Self::new("{elapsed:>4} {bar:40.green/black.bright} {percent} % of the run, {eta} to go")
    }

    /// A bar for bytes, with a message.
    pub(crate) fn of_bytes() -> Self {
        Self::new(
            "{elapsed:>4} {bar:30.green/black.bright} {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} to go{msg}",
        )
    }

    /// Sets the message beside the bar.
    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.expect("the template is well-formed").progress_chars("━━─"));
        if !std::io::stderr().is_terminal() {
            return Self { bar, ticker: None };
        }
        let ticked = bar.clone();
        let tick = move || {
            thread::park_timeout(PATIENCE);
            while !ticked.is_finished() {
                if ticked.is_hidden() {
                    ticked.set_draw_target(ProgressDrawTarget::stderr());
                }
                ticked.tick();
                thread::park_timeout(TICK);
            }
        };
        // Without a thread there is no bar.
        Self { bar, ticker: thread::Builder::new().spawn(tick).ok() }
    }

    /// Prints with the bar hidden.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(crate) fn set(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // A ticker's panic has been reported.
            _ = ticker.join();
        }
    }
}

/// Shorter work needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// The redraw interval, fast enough to look alive.
const TICK: Duration = Duration::from_millis(200);

/// A number with four significant digits, whole from 1000 on.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if !value.is_finite() || size >= 1000.0 || (value - value.round()).abs() < 1e-9 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    // A rounded `-0` becomes `0`.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escape sequences begin with ESC or with the one character CSI.
    #[test]
    fn shown_text_has_no_escape_sequences() {
        assert_eq!(shown("a\u{1b}[2J\u{9b}2J\r\tb\n"), "a\u{fffd}[2J\u{fffd}2J\u{fffd}\tb\n");
        assert!(matches!(shown("plain"), Cow::Borrowed("plain")));
        // Marks that reverse what follows make `exe.pdf` of `fdp.exe`.
        assert_eq!(shown("a\u{202e}fdp.exe \u{2066}\u{200f}"), "a\u{fffd}fdp.exe \u{fffd}\u{fffd}");
    }

    #[test]
    fn tables_are_aligned_and_drop_empty_columns() {
        let mut table =
            Table::new(&[("name", Align::Left), ("none", Align::Left), ("n", Align::Right), ("last", Align::Left)]);
        for (name, number, last) in [("a", "1", "x"), ("µµµµµ", "10", "")] {
            let cells = [name, "", number, last].map(|cell| (cell.to_owned(), PLAIN));
            table.row(cells.to_vec());
        }
        let text = anstream::adapter::strip_str(&table.render("  ")).to_string();
        assert_eq!(text, "  name    n  last\n  a       1  x\n  µµµµµ  10\n");
    }

    /// A Chinese character takes two columns, and a combining accent none.
    #[test]
    fn columns_are_as_wide_as_they_look() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        for name in ["队列长度", "e\u{301}te\u{301}"] {
            table.row(vec![(name.to_owned(), PLAIN), ("1".to_owned(), PLAIN)]);
        }
        let text = anstream::adapter::strip_str(&table.render("")).to_string();
        assert_eq!(text, "name      n\n队列长度  1\ne\u{301}te\u{301}       1\n");
    }

    #[test]
    fn an_excerpt_shows_the_line_and_marks_what_is_meant() {
        let shown = |line: &str, span: std::ops::Range<usize>| {
            let excerpt = Excerpt { number: 9, line: line.to_owned(), span };
            anstream::adapter::strip_str(&drawn(&excerpt)).to_string()
        };
        assert_eq!(shown("dealy = \"20ms\"", 0..5), "  |\n9 | dealy = \"20ms\"\n  | ^^^^^");
        let hostile = shown("a = \"\u{1b}[2J\" # \u{9b}", 4..10);
        assert!(hostile.contains("^^^^^^") && !hostile.contains(['\u{1b}', '\u{9b}']), "{hostile}");
        let long = shown(&format!("{} = 1 # {}", "a".repeat(500), "b".repeat(5000)), 503..504);
        assert!(long.lines().all(|line| line.chars().count() <= 2 * WIDTH), "{long}");
    }

    #[test]
    fn paragraphs_are_wrapped_under_their_bullet() {
        let text = paragraph("- ", &"word ".repeat(30));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn numbers_show_what_they_are_worth() {
        let shown = [24762.0, 17974.24, 43.117, 1.0132, 0.25, -0.00001, 0.0, 146_302.0].map(number);
        assert_eq!(shown, ["24762", "17974", "43.12", "1.013", "0.2500", "0", "0", "146302"]);
    }
}

//! Functions of a list of terms, and terms with `#` that are repeated: `max(mean(flow.#.goodput, 30, 90))`.

use super::{ExpressionError, Question, Tree};

/// A function of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Least,
    Most,
    Total,
    Jain,
}

/// Functions of lists for the reference: syntax and meaning.
pub(crate) const LISTS: [(&str, &str); 4] = [
    ("min(x, y, ...)", "the least of some numbers"),
    ("max(x, y, ...)", "the largest"),
    ("total(x, y, ...)", "their sum"),
    (
        "jain(x, y, ...)",
        "their fairness by Jain's index, `(x + y + ...)^2 / (n (x^2 + y^2 + ...))`: 1 if all are equal, 1/n if one has all",
    ),
];

/// The sign for each id; after some letters, for each id that begins with these.
const EACH: char = '#';

impl List {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Least,
            "max" => Self::Most,
            "total" => Self::Total,
            "jain" => Self::Jain,
            _ => return None,
        })
    }

    /// The value for at least one term. Sums are computed from the first to the last.
    pub(super) fn of(self, values: &[f64]) -> f64 {
        let reduced = |values: &mut dyn Iterator<Item = f64>, by: fn(f64, f64) -> f64| {
            values.reduce(by).expect("the parser wants at least one, and a `#` stands for at least one")
        };
        let all = &mut values.iter().copied();
        match self {
            Self::Least => reduced(all, f64::min),
            Self::Most => reduced(all, f64::max),
            Self::Total => reduced(all, |a, b| a + b),
            Self::Jain => {
                let total = reduced(all, |a, b| a + b);
                let squares = reduced(&mut values.iter().map(|value| value * value), |a, b| a + b);
                total * total / values.len() as f64 / squares
            }
        }
    }
}

impl Tree {
    /// Repeats each term with a `#` for each id, the innermost lists first.
    pub(super) fn write_out(&mut self, ids: &dyn Fn(&str) -> Vec<String>) -> Result<(), ExpressionError> {
        match self {
            Self::Number(_) | Self::Name(..) => {}
            Self::Negative(term) => term.write_out(ids)?,
            Self::Binary(_, left, right) => {
                left.write_out(ids)?;
                right.write_out(ids)?;
            }
            Self::Asked(question) => {
                for part in parts(question) {
                    part.write_out(ids)?;
                }
            }
            Self::List(_, terms) => {
                let mut all = Vec::with_capacity(terms.len());
                for mut term in std::mem::take(terms) {
                    term.write_out(ids)?;
                    match term.numbered() {
                        Some(name) => all.extend(each(&term, &name, ids)?),
                        None => all.push(term),
                    }
                }
                *terms = all;
            }
        }
        Ok(())
    }

    /// The first name that has a `#`.
    pub(super) fn numbered(&self) -> Option<String> {
        match self {
            Self::Number(_) => None,
            Self::Name(name, _) => name.contains(EACH).then(|| name.clone()),
            Self::Negative(term) => term.numbered(),
            Self::Binary(_, left, right) => left.numbered().or_else(|| right.numbered()),
            Self::List(_, terms) => terms.iter().find_map(Self::numbered),
            Self::Asked(question) if question.series.contains(EACH) => Some(question.series.clone()),
            Self::Asked(question) => {
                let Question { made, condition, times, .. } = question.as_ref();
                let width = made.as_ref().map(|(_, width)| width);
                let right = condition.as_ref().map(|(_, right)| right);
                width.into_iter().chain(right).chain(times).find_map(Self::numbered)
            }
        }
    }

    /// Replaces the beginning `pattern` of names by `own`: `flow.#.` by `flow.f0.`.
    fn put(&mut self, pattern: &str, own: &str) {
        let put = |name: &mut String| {
            if let Some(rest) = name.strip_prefix(pattern) {
                *name = format!("{own}{rest}");
            }
        };
        match self {
            Self::Number(_) => {}
            Self::Name(name, _) => put(name),
            Self::Negative(term) => term.put(pattern, own),
            Self::Binary(_, left, right) => {
                left.put(pattern, own);
                right.put(pattern, own);
            }
            Self::List(_, terms) => terms.iter_mut().for_each(|term| term.put(pattern, own)),
            Self::Asked(question) => {
                put(&mut question.series);
                parts(question).for_each(|part| part.put(pattern, own));
            }
        }
    }
}

/// The expressions in a question.
fn parts(question: &mut Question) -> impl Iterator<Item = &mut Tree> {
    let Question { made, condition, times, .. } = question;
    let width = made.as_mut().map(|(_, width)| width);
    let right = condition.as_mut().map(|(_, right)| right);
    width.into_iter().chain(right).chain(times)
}

/// A term, repeated for each id that the pattern in `name` matches.
fn each(term: &Tree, name: &str, ids: &dyn Fn(&str) -> Vec<String>) -> Result<Vec<Tree>, ExpressionError> {
    let fail = |message: String| Err(ExpressionError(format!("`{name}`: {message}")));
    let mut parts = name.split('.');
    let (place, pattern) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Some(beginning) = pattern.strip_suffix(EACH) else {
        return fail(format!("`{EACH}` stands in the place of an id or at its end, as in flow.{EACH}.goodput_bps"));
    };
    let known = ids(place);
    let meant: Vec<&String> = known.iter().filter(|id| id.starts_with(beginning)).collect();
    if meant.is_empty() {
        return fail(format!("no {place} is called `{pattern}`; there are {}", known.join(", ")));
    }
    let one = |id: &&String| {
        let mut one = term.clone();
        one.put(&format!("{place}.{pattern}."), &format!("{place}.{id}."));
        one
    };
    let all: Vec<Tree> = meant.iter().map(one).collect();
    match all[0].numbered() {
        Some(other) => fail(format!("a second `{EACH}` stands beside it, in `{other}`: leave one in a term")),
        None => Ok(all),
    }
}

//! The names of things in a report.

use maud::{Markup, html};

use crate::experiment::{ClaimKind, Source};
pub(super) use crate::reproduce::item_name as item;
use crate::reproduce::{ExperimentOutcome, JudgedClaim, Paper, item_rank};
use crate::verdict::Verdict;

/// The look of a verdict. The sign is for readers who do not see its colour.
pub(super) struct Look {
    /// Class in style.css.
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) word: &'static str,
    /// The word for several claims.
    pub(super) plural: &'static str,
}

/// A claim and its anchor.
pub(super) type Anchored<'a> = (String, &'a JudgedClaim);

pub(super) const REPRODUCED: Look = Look { class: "reproduced", sign: "✓", word: "reproduced", plural: "reproduced" };
pub(super) const HOLDS: Look = Look { class: "holds", sign: "✓", word: "holds", plural: "hold" };
pub(super) const DEVIATES: Look = Look { class: "deviates", sign: "≠", word: "deviates", plural: "deviate" };
pub(super) const MISSED: Look =
    Look { class: "missed", sign: "≠", word: "deviates, unexplained", plural: "deviate, unexplained" };
pub(super) const NOT_REPRODUCIBLE: Look =
    Look { class: "impossible", sign: "∅", word: "not reproducible", plural: "not reproducible" };

pub(super) const MET: Look = Look { class: "reproduced", sign: "✓", word: "met", plural: "met" };
pub(super) const BOUND_MISSED: Look = Look { class: "missed", sign: "≠", word: "missed", plural: "missed" };
pub(super) const NOT_JUDGED: Look = Look { class: "unjudged", sign: "–", word: "not judged", plural: "not judged" };

pub(super) fn look(claim: &JudgedClaim) -> Look {
    match claim.verdict {
        Verdict::Reproduced if claim.source == Source::Criterion => MET,
        Verdict::Deviates if claim.source == Source::Criterion && claim.is_missed => BOUND_MISSED,
        Verdict::Reproduced => REPRODUCED,
        Verdict::Holds => HOLDS,
        Verdict::Deviates if claim.is_missed || claim.is_open => MISSED,
        Verdict::Deviates => DEVIATES,
        Verdict::NotReproducible => NOT_REPRODUCIBLE,
    }
}

/// A verdict as a sign and a word.
pub(super) fn verdict(look: &Look) -> Markup {
    html! { span class={ "verdict " (look.class) } { span.sign aria-hidden="true" { (look.sign) } " " span.word { (look.word) } } }
}

/// Whether a claim is a statement for the checklist rather than a number of a table.
pub(super) fn is_statement(claim: &JudgedClaim) -> bool {
    claim.item == "text" || claim.kind != ClaimKind::Number
}

/// The name of the numbers that ours are compared with.
pub(super) fn theirs(source: Source) -> &'static str {
    match source {
        Source::Paper | Source::Published => "published",
        Source::Analytic => "derived",
        Source::Oracle | Source::Simulator => "theirs",
        Source::Real => "real",
        Source::Aim => "aim",
        Source::Criterion => "bound",
        Source::Regression => "before",
    }
}

/// Each of several texts once, in their order.
pub(super) fn unique<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut unique: Vec<&str> = Vec::new();
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

/// The citation of a claim without the key of its paper, as the section is that of the paper.
pub(super) fn cite<'a>(paper: &Paper, claim: &'a JudgedClaim) -> &'a str {
    claim.cite.strip_prefix(&paper.key).and_then(|cite| cite.strip_prefix(", ")).unwrap_or(&claim.cite)
}

/// The source, if it is not the paper.
pub(super) fn source(source: Source) -> Option<&'static str> {
    match source {
        Source::Paper => None,
        Source::Analytic => Some("derived from the laws"),
        Source::Published => Some("figures of others"),
        Source::Oracle => Some("ns-2"),
        Source::Simulator => Some("ns-3"),
        Source::Real => Some("real links"),
        Source::Aim => Some("aims of our own"),
        Source::Criterion => Some("criterion"),
        Source::Regression => Some("regression"),
    }
}

/// Row and column of a claim.
pub(super) fn place(claim: &JudgedClaim) -> String {
    match (claim.row.as_str(), claim.column.as_str()) {
        (row, "") => row.to_owned(),
        ("", column) => column.to_owned(),
        (row, column) => format!("{row}, {column}"),
    }
}

/// A text with what stands between backticks as code.
pub(super) fn with_code(text: &str) -> Markup {
    html! { @for (index, part) in text.split('`').enumerate() { @if index % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// A number with a typographic minus sign.
pub(super) fn number(text: &str) -> String {
    text.replace('-', "−")
}

/// Experiments in the order of the terminal's output: tables, then figures, then the rest.
pub(super) fn ordered(paper: &Paper) -> Vec<&ExperimentOutcome> {
    let mut experiments: Vec<&ExperimentOutcome> = paper.experiments.iter().collect();
    experiments.sort_by_key(|experiment| item_rank(&experiment.item));
    experiments
}

pub(super) fn paper_anchor(paper: &Paper) -> String {
    slug(&paper.key)
}

pub(super) fn experiment_anchor(paper: &Paper, experiment: &ExperimentOutcome) -> String {
    slug(&format!("{}-{}", paper.key, experiment.item))
}

pub(super) fn claim_anchor(paper: &Paper, experiment: &ExperimentOutcome, index: usize) -> String {
    format!("{}-{}", experiment_anchor(paper, experiment), index + 1)
}

/// The text as an anchor.
pub(super) fn slug(text: &str) -> String {
    text.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign.to_ascii_lowercase() } else { '-' }).collect()
}

/// The class of the cell with the published value.
pub(super) fn number_class(claim: &JudgedClaim) -> &'static str {
    if claim.published.is_number() { "number" } else { "number words" }
}

/// The text with a capital letter, for the beginning of a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut signs = text.chars();
    // `ns-2` has no capital letter anywhere.
    match signs.next() {
        Some(first) if !text.starts_with("ns-2") => first.to_uppercase().chain(signs).collect(),
        _ => text.to_owned(),
    }
}

/// `1 claim`, `2 claims`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A text as a value in the fragment of an address: all but letters, digits and some signs as `%` and two hexadecimal digits (RFC 3986, section 2.1).
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => encoded.push(byte.into()),
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

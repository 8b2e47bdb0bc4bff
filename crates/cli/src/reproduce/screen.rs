//! The summary of a paper on a terminal: claims by outcome, and deviations with shortened reasons.

use anabranch_lab::experiment::ClaimKind;
use anabranch_lab::reproduce::{EngineCount, JudgedClaim, Paper, Total, Under, item_name, item_rank};
use anabranch_lab::verdict::Verdict;

use crate::terminal::{BAD, BOLD, DIM, GOOD, NOTABLE, PLAIN, Table, paragraph};

/// With more titles, a line is an item, such as all of Table 4.
const TITLES_MAX: usize = 24;
/// The limit of a title in characters; no other column is wider.
const TITLE_MAX: usize = 72;
/// The claims shown with one reason.
const CLAIMS_MAX: usize = 3;
/// The limit of reasons for explained deviations; unexplained ones are all shown.
const REASONS_MAX: usize = 8;
/// The limit of a reason in characters: two lines.
const REASON_MAX: usize = 180;

pub(super) fn text(paper: &Paper) -> String {
    let totals = paper.totals();
    // A paper's own claims; for the other keys, the claims of their main source.
    let main = totals.first().map_or(Under::Paper, |total| total.under);
    let claims: Vec<&JudgedClaim> = paper.claims().filter(|claim| claim.under() == main).collect();
    let mut text = format!("{BOLD}{}{BOLD:#}  {}\n\n", paper.key, paper.title);
    text += &table(&claims);
    text += &deviations(paper, main);
    text + &besides(paper, &totals, main) + "\n"
}

/// Claims and outcomes, a line for each title.
fn table(claims: &[&JudgedClaim]) -> String {
    let mut claims = claims.to_vec();
    claims.sort_by_key(|claim| item_rank(&claim.item));
    let mut titles: Vec<&str> = claims.iter().map(|claim| claim.title.as_str()).collect();
    titles.dedup();
    let is_by_title = titles.len() <= TITLES_MAX;
    let name = |claim: &JudgedClaim| if is_by_title { claim.title.clone() } else { item_name(&claim.item) };
    let mut table = Table::of(&[""], &["claims", "reproduced", "deviate", "not reproducible"]);
    for group in claims.chunk_by(|a, b| name(a) == name(b)) {
        let count = |wanted: &dyn Fn(&JudgedClaim) -> bool| group.iter().filter(|claim| wanted(claim)).count();
        let shown = |count: usize| if count > 0 { count.to_string() } else { String::new() };
        let good = count(&|claim| matches!(claim.verdict, Verdict::Reproduced | Verdict::Holds));
        let deviate = count(&|claim| claim.verdict == Verdict::Deviates);
        let is_unexplained = group.iter().any(|claim| claim.is_missed || claim.is_open);
        table.row(vec![
            (cut(&name(group[0]), TITLE_MAX), PLAIN),
            (group.len().to_string(), PLAIN),
            (shown(good), GOOD),
            (shown(deviate), if is_unexplained { BAD } else { NOTABLE }),
            (shown(count(&|claim| claim.verdict == Verdict::NotReproducible)), NOTABLE),
        ]);
    }
    table.render("  ")
}

/// Deviations grouped by reason: those of the paper's claims, and all that are unexplained.
fn deviations(paper: &Paper, main: Under) -> String {
    let odd = paper.claims().filter(|claim| {
        let is_odd = matches!(claim.verdict, Verdict::Deviates | Verdict::NotReproducible);
        is_odd && (claim.under() == main || claim.is_missed || claim.is_open)
    });
    let mut groups: Vec<Vec<&JudgedClaim>> = Vec::new();
    for claim in odd {
        let is_same = |group: &&mut Vec<&JudgedClaim>| {
            let alike = |claim: &JudgedClaim| (claim.verdict, claim.is_missed, claim.is_open, claim.because.clone());
            alike(group[0]) == alike(claim)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(claim),
            None => groups.push(vec![claim]),
        }
    }
    // Unexplained deviations come first, and are all shown.
    let is_unexplained = |group: &Vec<&JudgedClaim>| group[0].is_missed || group[0].is_open;
    groups.sort_by_key(|group| !is_unexplained(group));
    let shown = groups.iter().filter(|group| is_unexplained(group)).count().max(REASONS_MAX);
    let mut text = String::new();
    for group in groups.iter().take(shown) {
        let (style, verdict) = match group[0].verdict {
            Verdict::NotReproducible => (NOTABLE, "not reproducible"),
            _ if is_unexplained(group) => (BAD, "unexplained"),
            _ => (NOTABLE, if group.len() == 1 { "deviates" } else { "deviate" }),
        };
        let most = if group[0].is_missed { usize::MAX } else { CLAIMS_MAX };
        let named: Vec<String> = group.iter().take(most).map(|claim| which(claim)).collect();
        let more = group.len().saturating_sub(most);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let count = group.len();
        text += &paragraph("  ", &format!("{style}{count} {verdict}{style:#}: {}{more}.", named.join("; ")));
        if let Some(because) = &group[0].because {
            text += &format!("{DIM}{}{DIM:#}", paragraph("    ", &cut(because, REASON_MAX)));
        }
    }
    let engine = paper.claims().filter(|claim| claim.engine.as_ref().is_some_and(|engine| engine.is_missed));
    for claim in engine {
        let engine = claim.engine_shown().unwrap_or_default();
        let stands = claim.engine_stand_shown().unwrap_or_default();
        let which = which(claim);
        text +=
            &paragraph("  ", &format!("{BAD}our transport, unexplained{BAD:#}: {which}; it gives {engine}, {stands}."));
    }
    if groups.len() > shown {
        text += &format!("  {DIM}and {} more reasons{DIM:#}\n", groups.len() - shown);
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A claim, its value, and ours.
fn which(claim: &JudgedClaim) -> String {
    let place: Vec<&str> =
        [claim.row.as_str(), claim.column.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
    let ours = match (claim.ours_shown(), claim.kind) {
        (None, _) => "nothing".to_owned(),
        (Some(ours), ClaimKind::Order) => match claim.sd_shown() {
            Some(sd) => format!("ahead by {ours} ± {sd}"),
            None => format!("ahead by {ours}"),
        },
        (Some(ours), _) => format!("ours {ours}"),
    };
    format!("{}, {} ({}, {ours})", item_name(&claim.item), place.join(", "), claim.published)
}

/// The other claims of the same experiments.
fn besides(paper: &Paper, totals: &[Total], main: Under) -> String {
    let mut parts: Vec<String> = Vec::new();
    for total in totals.iter().filter(|total| total.under != main) {
        parts.push(format!("{} {} of {}", total.under.name(), total.good, total.claims));
    }
    let [numbers, others] = EngineCount::of(paper.claims());
    if numbers.claims + others.claims > 0 {
        let (agree, claims) = (numbers.agree + others.agree, numbers.claims + others.claims);
        parts.push(format!("our transport in the place of ns-2's agents {agree} of {claims}"));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("\n{}", paragraph("  ", &format!("besides: {}", parts.join(", ")))),
    }
}

/// Shortens a text to whole words, with a mark.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if shown.chars().count() + word.chars().count() + 3 > most {
            break;
        }
        shown += if shown.is_empty() { "" } else { " " };
        shown += word;
    }
    shown + " …"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_line_ends_in_ellipsis_between_words() {
        assert_eq!(cut("a word or two", 13), "a word or two");
        assert_eq!(cut("a word or two", 12), "a word or …");
        assert_eq!(cut("a word or two", 8), "a word …");
        assert_eq!(cut("a word or two", 7), "a …");
    }
}

//! The full tables of a paper: every published number beside ours, reasons, and remarks.

use anabranch_lab::reproduce::{JudgedClaim, Paper, item_rank};
use anabranch_lab::verdict::Verdict;

use crate::terminal::{Align, BAD, BOLD, DIM, GOOD, NOTABLE, PLAIN, Table, paragraph};

pub(super) fn text(paper: &Paper) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", paper.key);
    let claims: Vec<&JudgedClaim> = paper.claims().collect();
    // The claims of an item may be in several files. Tables come first, then figures, then the text's claims.
    let mut items: Vec<&str> = Vec::new();
    for claim in &claims {
        if !items.contains(&claim.item.as_str()) {
            items.push(&claim.item);
        }
    }
    items.sort_by_key(|item| item_rank(item));
    for item in items {
        let claims: Vec<&JudgedClaim> = claims.iter().copied().filter(|claim| claim.item == item).collect();
        let mut titles: Vec<&str> = claims.iter().map(|claim| claim.title.as_str()).collect();
        titles.dedup();
        for title in titles {
            let group: Vec<&JudgedClaim> = claims.iter().copied().filter(|claim| claim.title == title).collect();
            text += &table(title, &group);
        }
        let notes = paper.experiments.iter().flat_map(|experiment| &experiment.notes);
        for note in notes.filter(|note| note.item == item) {
            text += &paragraph("  * ", &note.text);
        }
    }
    text
}

fn table(title: &str, claims: &[&JudgedClaim]) -> String {
    let has_engine = claims.iter().any(|claim| claim.engine.is_some());
    let mut columns = vec![
        ("", Align::Left),
        ("", Align::Left),
        ("published", Align::Right),
        ("ours", Align::Right),
        ("± sd", Align::Right),
        ("difference", Align::Right),
        ("", Align::Left),
        ("must lie", Align::Left),
        ("verdict", Align::Left),
    ];
    if has_engine {
        columns.extend([("engine", Align::Right), ("to ours", Align::Right)]);
    }
    let mut table = Table::new(&columns);
    for claim in claims {
        let style = match claim.verdict {
            Verdict::Reproduced | Verdict::Holds => GOOD,
            Verdict::Deviates if claim.is_missed || claim.is_open => BAD,
            Verdict::Deviates | Verdict::NotReproducible => NOTABLE,
        };
        let mut row = vec![
            (claim.row.clone(), PLAIN),
            (claim.column.clone(), PLAIN),
            (claim.published.to_string(), PLAIN),
            (claim.ours_shown().unwrap_or_else(|| "–".to_owned()), PLAIN),
            (claim.sd_shown().unwrap_or_default(), DIM),
            (claim.difference_shown().unwrap_or_default(), PLAIN),
            (claim.unit.clone(), DIM),
            (claim.band_shown().unwrap_or_default(), DIM),
            (claim.verdict.to_string(), style),
        ];
        if has_engine {
            let style = match &claim.engine {
                Some(engine) if engine.is_missed => BAD,
                Some(engine) if !engine.agrees => NOTABLE,
                _ => GOOD,
            };
            row.push((claim.engine_shown().unwrap_or_default(), PLAIN));
            row.push((claim.engine_stand_shown().unwrap_or_default(), style));
        }
        table.row(row);
    }
    let mut text = format!("\n  {BOLD}{title}{BOLD:#}\n{}", table.render("  "));
    let mut reasons: Vec<&str> = claims.iter().filter_map(|claim| claim.because.as_deref()).collect();
    reasons.dedup();
    for because in reasons {
        text += &paragraph("  because: ", because);
    }
    let engines = claims.iter().filter_map(|claim| claim.engine.as_ref());
    let mut reasons: Vec<&str> = engines.filter_map(|engine| engine.because.as_deref()).collect();
    reasons.dedup();
    for because in reasons {
        text += &paragraph("  engine: ", because);
    }
    text
}

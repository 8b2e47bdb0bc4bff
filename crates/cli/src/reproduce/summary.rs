//! The totals over all papers.

use anabranch_lab::reproduce::{Outcome, Total};

use crate::terminal::{Align, BAD, BOLD, DIM, GOOD, NOTABLE, PLAIN, Table};

/// Claims by source: results first, then checks that are not results.
fn totals(outcome: &Outcome) -> String {
    let totals = outcome.totals();
    let columns = [
        ("claims", Align::Left),
        ("", Align::Right),
        ("from places", Align::Right),
        ("reproduced", Align::Right),
        ("of them coarse", Align::Right),
        ("deviate", Align::Right),
        ("unexplained", Align::Right),
        ("not reproducible", Align::Right),
    ];
    let shown = |count: usize| if count > 0 { count.to_string() } else { String::new() };
    let row = |total: &Total| {
        let unexplained = total.open + total.missed;
        vec![
            (total.under.name().to_owned(), PLAIN),
            (total.claims.to_string(), PLAIN),
            (total.places.to_string(), DIM),
            (total.good.to_string(), GOOD),
            (shown(total.coarse), NOTABLE),
            (shown(total.deviate()), NOTABLE),
            (shown(unexplained), BAD),
            (shown(total.not_reproducible), NOTABLE),
        ]
    };
    let mut text = format!("\n{BOLD}Totals by source{BOLD:#}\n");
    let mut results = Table::new(&columns);
    totals.iter().filter(|total| total.under.is_result()).for_each(|total| results.row(row(total)));
    if !results.is_empty() {
        text += &results.render("  ");
    }
    if totals.iter().any(|total| total.coarse > 0) {
        text +=
            &format!("  {DIM}coarse: no change of alpha, queues, window or error rates by a fifth flips it{DIM:#}\n");
    }
    let others: Vec<&Total> = totals.iter().filter(|total| !total.under.is_result()).collect();
    if !others.is_empty() {
        let mut table = Table::new(&columns.map(|(head, align)| match head {
            "claims" => ("not results", align),
            "reproduced" => ("hold", align),
            other => (other, align),
        }));
        others.iter().for_each(|total| table.row(row(total)));
        text += &format!("\n{}", table.render("  "));
    }
    text
}

pub(super) fn text(outcome: &Outcome) -> String {
    let Outcome { runs, wall_seconds, hash, .. } = outcome;
    let mut text = totals(outcome);
    let [numbers, others] = outcome.engine_counts();
    if numbers.claims + others.claims > 0 {
        text += &format!(
            "\nour transport in place of ns-2's agents: {} of {} numbers within 5 %, {} of {} orders, times and shapes hold",
            numbers.agree, numbers.claims, others.agree, others.claims
        );
        if others.kept_by_none > 0 {
            text += &format!(" ({} do not with ns-2's agents either)", others.kept_by_none);
        }
        match outcome.engine_missed() {
            0 => text += "; the experiments say why the others do not",
            missed => text += &format!("; {BAD}{missed} are not explained{BAD:#}"),
        }
    }
    text + &format!("\n{DIM}{runs} runs in {wall_seconds:.1} s, hash {hash}{DIM:#}\n")
}

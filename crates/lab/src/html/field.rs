//! The report of a field: for each family the table of its laws, a distribution of each figure over the draws, and the worst draws of each law.

use maud::{Markup, html};

use crate::field::{Fact, FamilyOutcome, Field, FigureKind, LawOutcome, Statistic, WORST_FOLDER, Worst};

use super::{cdf, experiment, page, words};

/// A field as an HTML document. Its links and commands are relative to the folder of the report, where the worst scenarios are in [`WORST_FOLDER`].
pub fn field_page(field: &Field) -> String {
    let title = format!("{} on random networks", field.laws[0]);
    let body = html! {
        @for one in &field.families { (family(one)) }
        (colophon(field))
    };
    page::document(&title, &masthead(field, &title), &contents(field), &body)
}

fn masthead(field: &Field, title: &str) -> Markup {
    let Field { laws, draws, seed, families, runs, hash, .. } = field;
    let lead = html! {
        (words::count(families.len(), "question")) " on " (words::count(*draws as usize, "network")) " each, drawn from seed " (seed) ", in "
        (words::count(*runs, "simulation"))
        @if laws.len() > 1 { ". On the same networks: " (laws[1..].join(", ")) } "."
    };
    let facts = html! {
        div { dt { "version" } dd { (env!("CARGO_PKG_VERSION")) } }
        div { dt { "seed" } dd { (seed) } }
        div { dt { "hash" } dd { code { (hash) } } }
    };
    page::head(title, &lead, &facts)
}

fn contents(field: &Field) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                @for family in &field.families { li { a href={ "#" (anchor(family)) } { (family.name) } } }
                li { a href="#how" { "How to read this" } }
            }
        }
    }
}

fn anchor(family: &FamilyOutcome) -> String {
    words::slug(&format!("family {}", family.name))
}

fn family(family: &FamilyOutcome) -> Markup {
    html! {
        section.paper id=(anchor(family)) {
            header { h2 { (family.name) } p.question { (family.question) } p.about { "Drawn: " (family.drawn) "." } }
            (table(family))
            div.cdfs { @for index in 0..family.figures.len() { (distribution(family, index)) } }
            @for (index, law) in family.laws.iter().enumerate() { (worst(family, law, index == 0)) }
        }
    }
}

/// A line for each law.
fn table(family: &FamilyOutcome) -> Markup {
    html! {
        div.group { div.scroll tabindex="0" role="region" aria-label={ "Figures of " (family.name) } {
            table.claims {
                thead { tr {
                    th scope="col" { "law" }
                    @for column in &family.columns {
                        th.number scope="col" { (named(&family.figures[column.figure])) " " (column.statistic.name()) }
                    }
                } }
                tbody { @for law in &family.laws { tr {
                    th.row scope="row" { (law.law) }
                    @for (value, column) in law.values.iter().zip(&family.columns) {
                        @let kind = &family.figures[column.figure];
                        td.number { @if matches!(column.statistic, Statistic::Within(..)) { (format!("{value:.2}")) } @else { (shown(*value, kind)) } }
                    }
                } } }
            }
        } }
    }
}

fn distribution(family: &FamilyOutcome, index: usize) -> Markup {
    let kind = &family.figures[index];
    let curves: Vec<(String, Vec<f64>)> = family
        .laws
        .iter()
        .map(|law| {
            let mut values = law.figures[index].clone();
            values.sort_by(f64::total_cmp);
            (law.law.clone(), values)
        })
        .collect();
    let curves: Vec<(String, &[f64])> = curves.iter().map(|(law, values)| (law.clone(), values.as_slice())).collect();
    cdf::drawn(&html! { (named(kind)) " " span.quiet { (kind.what) } }, kind.what, &curves)
}

/// The worst draws of a law. Those of the law under test are open.
fn worst(family: &FamilyOutcome, law: &LawOutcome, is_open: bool) -> Markup {
    let kind = &family.figures[0];
    html! {
        details.source open[is_open] {
            summary { "The worst " (law.worst.len()) " of " (family.draws.len()) " for " code { (law.law) } ", by " (kind.name) }
            @for one in &law.worst { (draw(kind, &family.draws[one.draw], one)) }
        }
    }
}

fn draw(kind: &FigureKind, facts: &[Fact], one: &Worst) -> Markup {
    let facts: Vec<String> = facts.iter().map(|fact| format!("{} {}", fact.name, fact.value)).collect();
    html! {
        details.draw {
            summary { (kind.name) " " b { (shown(one.value, kind)) } @if !kind.unit.is_empty() { " " (kind.unit) } ": " span.quiet { (facts.join(", ")) } }
            p.command { code { "anabranch sim run " (WORST_FOLDER) "/" (one.file) } }
            pre { code { @for line in one.scenario.lines() { (experiment::source_line(line)) "\n" } } }
        }
    }
}

/// The name of a figure with its unit.
fn named(kind: &FigureKind) -> String {
    if kind.unit.is_empty() { kind.name.to_owned() } else { format!("{} {}", kind.name, kind.unit) }
}

/// Ratios have two decimals, times and percentages one.
fn shown(value: f64, kind: &FigureKind) -> String {
    if kind.unit.is_empty() { format!("{value:.2}") } else { format!("{value:.1}") }
}

fn colophon(field: &Field) -> Markup {
    html! {
        section.colophon #how {
            h2 { "How to read this" }
            dl.terms {
                div { dt { "draw" } dd { "A network whose numbers come from a random stream. Each depends on the seed, the family and its number alone; all laws run on the same." } }
                div { dt { "distribution" } dd { "Upward: the share of the draws whose figure is at most so large. A line for each law." } }
                div { dt { "worst" } dd {
                    "The draws with the worst values of the family's first figure. The command runs one again, in the folder of this report; its text is below. "
                    "The figure comes from counters, and the measures in the file from series, so they differ a little."
                } }
                div { dt { "figures" } dd { "The headers are 7 % of a packet, so 0.93 of a link is all of it." } }
            }
            p {
                "anabranch " (env!("CARGO_PKG_VERSION")) ", document " code { (field.schema) } ", " (words::count(field.runs, "run")) ", hash " code { (field.hash) }
                ". Two fields with one hash were computed from runs that were the same to the bit, on any machine. To run everything again: "
                code { (field.command) } "."
            }
            p.about { (page::ABOUT) }
        }
    }
}

//! The frame of a report.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::papers;
use crate::reproduce::{Outcome, Under};

use super::experiment::Charts;
use super::{charts, overview, paper, words};

/// The style of all pages.
pub const STYLE: &str = include_str!("assets/style.css");
/// The typeface, as a style with its data.
pub const FONT: &str = include_str!("assets/inter.css");
/// The script of colours and themes, which `report.js` and the playground use.
pub const THEME: &str = include_str!("assets/theme.js");
const SCRIPT: &str = include_str!("assets/report.js");
/// uPlot, which draws charts.
pub const UPLOT: &str = include_str!("assets/uPlot.iife.min.js");
/// The style of its charts.
pub const UPLOT_STYLE: &str = include_str!("assets/uPlot.min.css");

/// The content security policy: nothing is fetched, as the file contains everything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; font-src data:; \
                      base-uri 'none'; form-action 'none'";

/// An outcome as an HTML document.
pub fn page(outcome: &Outcome) -> String {
    page_beside(outcome, None)
}

/// The same with links to the playground, a file in the same folder that has the outcome's experiments.
pub fn page_beside(outcome: &Outcome, playground: Option<&str>) -> String {
    let mut drawn = Charts::new(charts::points_of_a_series(outcome));
    let body = html! {
        (overview::overview(outcome))
        @for one in &outcome.papers { (paper::paper(one, playground, &mut drawn)) }
        (colophon(outcome))
    };
    document(&format!("Published and ours: {}", titles(outcome)), &masthead(outcome), &contents(outcome), &body)
}

/// A document with its frame, which all reports have in common.
pub(super) fn document(title: &str, masthead: &Markup, contents: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "anabranch " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(FONT)) (PreEscaped(UPLOT_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "To the content" }
                (masthead)
                div.columns {
                    (contents)
                    main #content { (body) }
                }
                script { (PreEscaped(UPLOT)) }
                script { (PreEscaped(THEME)) (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The head of a report: its title, a sentence, and a list of facts.
pub(super) fn head(title: &str, lead: &Markup, facts: &Markup) -> Markup {
    html! {
        header.masthead {
            div {
                p.brand { "anabranch" }
                h1 { (title) }
                p.lead { (lead) }
            }
            div.facts {
                dl { (facts) }
                button #theme type="button" hidden aria-label="Light or dark" { "Dark" }
            }
        }
    }
}

pub(super) fn facts(outcome: &Outcome) -> Markup {
    html! {
        div { dt { "version" } dd { (outcome.version) } }
        div { dt { "seeds" } dd { @if let Some(seeds) = outcome.seeds { (seeds) " a variant" } @else { "each experiment's own" } } }
        div { dt { "hash" } dd { code { (outcome.hash) } } }
    }
}

/// The credits of a report.
pub(super) const ABOUT: &str = "Charts by uPlot 1.6.32 (Leon Sorokin, MIT licence); type is Inter 4.1 (The Inter Project Authors, SIL Open Font License 1.1).";

fn titles(outcome: &Outcome) -> String {
    outcome.papers.iter().map(|paper| paper.key.as_str()).collect::<Vec<_>>().join(", ")
}

fn masthead(outcome: &Outcome) -> Markup {
    let papers = outcome.papers.iter().filter(|paper| papers::is_paper(&paper.key)).count();
    let count = |under| outcome.claims().filter(|claim| claim.under() == under).count();
    let beside = [
        (Under::Published, "of others' laws"),
        (Under::Oracle, "of ns-2"),
        (Under::Simulator, "of ns-3"),
        (Under::Analytic, "of the laws"),
        (Under::Real, "of real links"),
        (Under::Aim, "that we aim at"),
        (Under::Criterion, "that criteria ask"),
    ];
    let beside = beside.map(|(under, whose)| (count(under), whose));
    let beside: Vec<String> =
        beside.iter().filter(|(count, _)| *count > 0).map(|(count, whose)| format!("{count} {whose}")).collect();
    let lead = html! {
        (words::count(count(Under::Paper), "result")) " of " (words::count(papers, "paper"))
        @if !beside.is_empty() { ", and beside them " (beside.join(", ")) }
        ", computed from scratch in " (words::count(outcome.runs, "simulation")) " and held against what is printed."
    };
    head("Published and ours", &lead, &facts(outcome))
}

fn contents(outcome: &Outcome) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                li { a href="#overview" { "Overview" } }
                @for paper in &outcome.papers {
                    li {
                        a href={ "#" (words::paper_anchor(paper)) } { (paper.key) }
                        ol { @for experiment in words::ordered(paper) {
                            li { a href={ "#" (words::experiment_anchor(paper, experiment)) } { (words::item(&experiment.item)) } }
                        } }
                    }
                }
                li { a href="#how" { "How to read this" } }
            }
        }
    }
}

fn colophon(outcome: &Outcome) -> Markup {
    html! {
        section.colophon #how {
            h2 { "How to read this" }
            dl.terms {
                div { dt { "reproduced" } dd {
                    "Ours is within the band that the experiment's file gives. A number that must be equal leaves nothing to choose. Other "
                    "bands follow from what is printed or from a law, or were judged by us, some of them after a first run."
                } }
                div { dt { "holds" } dd {
                    "The same of what is no result: a " em { "derivation" } " is arithmetic on printed numbers, or so by construction; an "
                    em { "input" } " is what the experiment was given; a " em { "regression" } " is an earlier run of ours."
                } }
                div { dt { "coarse" } dd {
                    "Reproduced, and no change of alpha, queues, windows or error rates by a fifth flips that: it says less than others do."
                } }
                div { dt { "deviates" } dd { "Ours is not, and the reason stands under Anomalies; " em { "unexplained" } " if there is none yet." } }
                div { dt { "not reproducible" } dd { "The paper does not contain enough information to compute it; the reason is given." } }
                div { dt { "exact" } dd { "Every run gives the published number, to the bit." } }
                div { dt { "prediction interval" } dd {
                    "A number that a paper got from one random run is one draw. It is reproduced if it lies where 95 of 100 further "
                    "runs of ours would lie; the interval of our mean would shrink with every seed until no draw lies in it."
                } }
                div { dt { "engine" } dd {
                    "The same with our own transport in the place of ns-2's agents of the papers' protocols: how far its number is from "
                    "theirs, or whether an order, a time or a shape holds with it. More than 5 % needs a reason, which stands below the claims."
                } }
                div { dt { "ns-2, derived from the laws" } dd {
                    "What another program gives, run by us, with prototypes of what it has not; or what follows from a law on paper. Both "
                    "check the laboratory, and are counted apart from the papers' claims."
                } }
                div { dt { "figures" } dd { "The first run of each variant; curves are thinned out so that every extreme of every pixel stays." } }
            }
            p {
                "anabranch " (outcome.version) ", document " code { (outcome.schema) } ", " (words::count(outcome.runs, "run")) ", hash "
                code { (outcome.hash) } ". Two outcomes with one hash were computed from runs that were the same to the bit, on whatever machine. "
                "To run everything again: " code { (outcome.command) } "."
            }
            p.about { (ABOUT) }
        }
    }
}

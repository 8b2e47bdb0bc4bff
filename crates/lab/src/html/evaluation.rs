//! The report of an evaluation: the criteria with their verdicts, then each with its numbers and curves, then the scenarios.

mod criterion;
mod curve;

use maud::{Markup, html};

use crate::evaluation::{Evaluation, JudgedCriterion, Ruling};
use crate::reproduce::{ExperimentOutcome, JudgedClaim, Paper};

use super::experiment::Charts;
use super::words::{self, BOUND_MISSED, Look, MET, NOT_JUDGED};
use super::{charts, experiment, page, setup};

/// An evaluation as an HTML document.
pub fn evaluation_page(evaluation: &Evaluation) -> String {
    evaluation_page_beside(evaluation, None)
}

/// The same with links to the playground, a file in the same folder that has the evaluation's scenarios.
pub fn evaluation_page_beside(evaluation: &Evaluation, playground: Option<&str>) -> String {
    let mut drawn = Charts::new(charts::points_of_a_series(&evaluation.outcome));
    let title = format!("Evaluation of {}", evaluation.law);
    let body = html! {
        (verdicts(evaluation))
        (laws(evaluation))
        @for one in &evaluation.criteria { (criterion::criterion(evaluation, one, &mut drawn)) }
        (coverage(evaluation))
        (scenarios(evaluation, playground))
        (colophon(evaluation))
    };
    page::document(&title, &masthead(evaluation), &contents(evaluation), &body)
}

/// How the verdict of a criterion looks.
fn look(criterion: &JudgedCriterion) -> Look {
    match criterion.ruling {
        Ruling::Met => MET,
        Ruling::Missed => BOUND_MISSED,
        Ruling::NotJudged => NOT_JUDGED,
    }
}

/// The anchor of a criterion.
fn anchor(section: &str) -> String {
    format!("criterion-{}", section.replace('.', "-"))
}

/// A claim with its anchor and the experiment that it is from.
type Placed<'a> = (&'a Paper, &'a ExperimentOutcome, String, &'a JudgedClaim);

/// All claims of a section, in the order of the suite.
fn claims<'a>(evaluation: &'a Evaluation, section: &str) -> Vec<Placed<'a>> {
    let mut claims = Vec::new();
    for paper in &evaluation.outcome.papers {
        for experiment in &paper.experiments {
            for (index, claim) in experiment.claims.iter().enumerate().filter(|(_, claim)| claim.item == section) {
                claims.push((paper, experiment, words::claim_anchor(paper, experiment, index), claim));
            }
        }
    }
    claims
}

fn masthead(evaluation: &Evaluation) -> Markup {
    let Evaluation { law, against, outcome, quick, .. } = evaluation;
    let (met, missed) = (evaluation.count(Ruling::Met), evaluation.count(Ruling::Missed));
    let lead = html! {
        (met + missed) " criteria in " (words::count(outcome.runs, "simulation"))
        @if !against.is_empty() { ", beside " (against.join(", ")) }
        ": " (met) " met, " (missed) " missed."
        @if *quick { " A quick look: fewer points, one run of each." }
    };
    page::head(&format!("{law} by the criteria of RFC 9743"), &lead, &page::facts(outcome))
}

fn contents(evaluation: &Evaluation) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                li { a href="#verdicts" { "Verdicts" } }
                li { a href="#laws" { "Laws" } }
                li {
                    "Criteria"
                    ol { @for criterion in evaluation.criteria.iter().filter(|criterion| criterion.ruling != Ruling::NotJudged) {
                        li { a href={ "#" (anchor(&criterion.section)) } { (criterion.section) " " (criterion.title) } }
                    } }
                }
                li { a href="#coverage" { "Metrics and suites" } }
                li { a href="#scenarios" { "Scenarios" } }
                li { a href="#how" { "How to read this" } }
            }
        }
    }
}

/// Every criterion in a line.
fn verdicts(evaluation: &Evaluation) -> Markup {
    html! {
        section #verdicts {
            h2.visually-hidden { "Verdicts" }
            div.scroll tabindex="0" role="region" aria-label="Verdicts" {
                table.checklist {
                    thead { tr {
                        th scope="col" { span.visually-hidden { "verdict" } }
                        th scope="col" { "RFC 9743" }
                        th scope="col" { "criterion" }
                        th.number scope="col" { "bounds met" }
                        th scope="col" { "what decides" }
                    } }
                    tbody { @for criterion in &evaluation.criteria {
                        @let look = look(criterion);
                        tr {
                            td.check { span class={ "mark " (look.class) } title=(look.word) { (look.sign) span.visually-hidden { " " (look.word) } } }
                            td.column { (criterion.section) }
                            td {
                                @if criterion.ruling == Ruling::NotJudged { span.quiet { (criterion.title) } }
                                @else { a.what href={ "#" (anchor(&criterion.section)) } { (criterion.title) } }
                            }
                            td.number { @if criterion.ruling != Ruling::NotJudged { (criterion.met) " of " (criterion.claims) } }
                            td.statement { span class={ @if criterion.ruling == Ruling::NotJudged { "quiet" } } { (criterion.sentence) } }
                        }
                    } }
                }
            }
        }
    }
}

/// The law under test and the rivals, each with its source and the settings that are not the defaults.
fn laws(evaluation: &Evaluation) -> Markup {
    html! {
        section.paper #laws {
            header {
                h2 { "Laws" }
                p.question { "The law under test, and the rivals beside it. All flows use the transport of anabranch, paced; only the law differs." }
            }
            div.scroll tabindex="0" role="region" aria-label="Laws" {
                table.checklist {
                    thead { tr {
                        th scope="col" { "law" }
                        th scope="col" { "what it does" }
                        th scope="col" { "specification" }
                        th scope="col" { "settings that are not its defaults" }
                    } }
                    tbody { @for contender in &evaluation.laws {
                        tr {
                            td.column { (contender.name) }
                            td { span.what { (contender.summary) } }
                            td.statement { (contender.citation) }
                            td.statement { @if contender.settings.is_empty() { "none" } @else { code { (contender.settings.join(", ")) } } }
                        }
                    } }
                }
            }
        }
    }
}

/// The lists of other documents, with the criteria that cover them.
fn coverage(evaluation: &Evaluation) -> Markup {
    let Evaluation { coverage, criteria, .. } = evaluation;
    html! {
        section.paper #coverage {
            header {
                h2 { "Metrics and suites" }
                p.question { "The metrics of RFC 5166 and the scenarios of the Common TCP Evaluation Suite (draft-irtf-iccrg-tcpeval), with the criteria that cover them." }
            }
            div.scroll tabindex="0" role="region" aria-label="Metrics and suites" {
                table.checklist {
                    thead { tr {
                        th scope="col" { "document" }
                        th scope="col" { "lists" }
                        th scope="col" { "measured here" }
                        th scope="col" { "judged under" }
                    } }
                    tbody { @for entry in coverage {
                        tr {
                            td.column { (entry.document) }
                            td { span.what { (entry.asks) } }
                            td.statement { (entry.measured) }
                            td { @for section in &entry.criteria {
                                @if let Some(criterion) = criteria.iter().find(|criterion| criterion.section == *section) {
                                    span class={ "mark " (look(criterion).class) } title=(look(criterion).word) { (look(criterion).sign) }
                                    " " a href={ "#" (anchor(section)) } { (section) } " "
                                }
                            } }
                        }
                    } }
                }
            }
        }
    }
}

/// Every experiment of the evaluation with its network and its file.
fn scenarios(evaluation: &Evaluation, playground: Option<&str>) -> Markup {
    let placed =
        evaluation.outcome.papers.iter().flat_map(|paper| paper.experiments.iter().map(move |one| (paper, one)));
    html! {
        section.paper #scenarios {
            header {
                h2 { "Scenarios" }
                p.question { "The scenarios of this evaluation. Each file is shown as it was run: save it, change it, and run it with " code { "anabranch sim run" } "." }
            }
            @for (paper, one) in placed {
                section.experiment id=(words::experiment_anchor(paper, one)) {
                    h3 { (one.item) }
                    (experiment::question(one))
                    (setup::setup(one))
                    (experiment::source(one, playground))
                }
            }
        }
    }
}

fn colophon(evaluation: &Evaluation) -> Markup {
    let Evaluation { outcome, command, .. } = evaluation;
    html! {
        section.colophon #how {
            h2 { "How to read this" }
            dl.terms {
                div { dt { "criterion" } dd {
                    "What RFC 9743 (BCP 133) asks in sections 5 to 7, in our words. The RFC gives no numbers: the bounds are ours, each with its reason, and the same "
                    "for every law."
                } }
                div { dt { "met, missed" } dd { "Met: all claims of the criterion are within their bounds. Missed: at least one is not. The mean over the seeds decides." } }
                div { dt { "not judged" } dd { "No simulation can judge it." } }
                div { dt { "harm" } dd {
                    "The effect of a law on a rival's flow, compared with the effect of a second flow of the rival (Ware, Mukerjee, Seshan and Sherry: Beyond "
                    "Jain's Fairness Index, HotNets 2019). The bound is one and a half times: two thirds of the goodput, 1.5 times the losses and the delay."
                } }
                div { dt { "fair share" } dd { "The payload that the link can carry, divided by the number of flows." } }
                div { dt { "figures" } dd { "They show the first run of each variant. Curves are thinned out; the extremes within each pixel are kept." } }
            }
            p {
                "anabranch " (outcome.version) ", document " code { (evaluation.schema) } ", " (words::count(outcome.runs, "run")) ", hash "
                code { (outcome.hash) } ". Two evaluations with one hash were computed from runs that were the same to the bit, on any machine. "
                "To run everything again: " code { (command) } "."
            }
            p.about { (page::ABOUT) }
        }
    }
}

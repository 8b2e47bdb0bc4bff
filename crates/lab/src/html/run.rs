//! The report of one run, or of several beside each other: the network, the numbers, the series over time, and distributions.

use maud::{Markup, html};

use crate::picture::{DRAWN_MAX, Pictured};
use crate::report::{FlowReport, LinkReport};

use super::experiment::{self, Charts};
use super::{cdf, charts, page, setup, words};

/// Runs as an HTML document. Several runs first have their numbers and distributions beside each other, then a section each.
pub fn run_page(runs: &[Pictured]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = names.join(" beside ");
    let mut drawn = Charts::new(charts::points_of_figures(runs.iter().flat_map(|run| &run.shown.figures)));
    let is_alone = runs.len() == 1;
    let body = html! {
        section #numbers {
            h2 { "Numbers" }
            (flows(runs))
            (links(runs))
            @for run in runs { @for note in &run.report.notes { p.about { @if !is_alone { (run.name) ": " } (words::with_code(note)) } } }
        }
        section.paper #distributions {
            header { h2 { "Distributions" } p.about { "Upward: the share of the time in which it was at most so large." } }
            div.cdfs { @for index in 0..3 { (cdf::cdf(runs, index)) } }
        }
        @for (index, run) in runs.iter().enumerate() {
            section.paper id={ "run-" (index + 1) } {
                header { h2 { (run.name) } (experiment::question(&run.shown)) }
                @for figure in &run.shown.figures { (drawn.draw(figure)) }
                @if run.left_out[0] > 0 { p.about { "The first " (DRAWN_MAX) " flows are drawn, " (run.left_out[0]) " are not; of the links, the slowest." } }
                (setup::setup(&run.shown))
                (experiment::source(&run.shown, None))
            }
        }
        section.colophon { p.about { (page::ABOUT) } }
    };
    page::document(&title, &masthead(runs, &title), &contents(runs), &body)
}

fn masthead(runs: &[Pictured], title: &str) -> Markup {
    let first = &runs[0].report;
    let lead = html! {
        (words::count(first.flows.len(), "flow")) ", " (words::count(first.links.len(), "link direction")) ", " (shown(first.simulated_seconds)) " s"
        @if let [run] = runs { @if let Some(jain) = run.report.jain_index { ", Jain's index " (format!("{jain:.3}")) } }
        "."
    };
    let facts = html! {
        div { dt { "version" } dd { (env!("CARGO_PKG_VERSION")) } }
        @if let [run] = runs {
            div { dt { "seed" } dd { (run.report.seed) } }
            div { dt { "hash" } dd { code { (run.report.hash) } } }
        } @else {
            @for run in runs { div { dt { (run.name) } dd { "seed " (run.report.seed) ", hash " code { (run.report.hash) } } } }
        }
    };
    page::head(title, &lead, &facts)
}

fn contents(runs: &[Pictured]) -> Markup {
    html! {
        nav.contents aria-label="Contents" {
            ol {
                li { a href="#numbers" { "Numbers" } }
                li { a href="#distributions" { "Distributions" } }
                @for (index, run) in runs.iter().enumerate() { li { a href={ "#run-" (index + 1) } { (run.name) } } }
            }
        }
    }
}

/// A line for each flow and run, with the runs of a flow below each other.
fn flows(runs: &[Pictured]) -> Markup {
    let ids = words::unique(runs.iter().flat_map(|run| run.report.flows.iter().map(|flow| flow.id.as_str())));
    let find = |run: &'_ Pictured, id: &str| -> Option<FlowReport> {
        run.report.flows.iter().find(|flow| flow.id == id).cloned()
    };
    html! {
        div.group {
            h4 { "Flows" }
            div.scroll tabindex="0" role="region" aria-label="Flows" {
                table.claims {
                    thead { tr {
                        th scope="col" { "flow" }
                        @if runs.len() > 1 { th scope="col" { "run" } }
                        th scope="col" { "law" }
                        th.number scope="col" { "goodput Mbit/s" } th.number scope="col" { "share" }
                        th.number scope="col" { "RTT ms" } th.number scope="col" { "95 %" } th.number scope="col" { "99 %" }
                        th.number scope="col" { "sent" } th.number scope="col" { "lost" } th.number scope="col" { "sent again" } th.number scope="col" { "timeouts" }
                    } }
                    @for id in ids {
                        tbody { @for run in runs { @if let Some(flow) = find(run, id) {
                            @let total: f64 = run.report.flows.iter().map(|flow| flow.goodput_bps).sum();
                            tr {
                                th.row scope="row" { (id) }
                                @if runs.len() > 1 { td.column { (run.name) } }
                                td.column { (flow.cc.as_deref().unwrap_or(&flow.transport)) }
                                td.number.strong { (shown(flow.goodput_bps / 1e6)) }
                                td.number { @if total > 0.0 { (format!("{:.1} %", 100.0 * flow.goodput_bps / total)) } }
                                td.number { (milliseconds(flow.rtt_mean_s)) } td.number { (milliseconds(flow.rtt_p95_s)) } td.number { (milliseconds(flow.rtt_p99_s)) }
                                td.number { (flow.sent_packets) } td.number { (flow.dropped_packets) } td.number { (flow.retransmitted_packets) }
                                td.number { @if let Some(timeouts) = flow.timeouts { (timeouts) } }
                            }
                        } } }
                    }
                }
            }
            @if runs.len() > 1 { p.about { "Jain's index of the goodputs: "
                @for (index, run) in runs.iter().enumerate() {
                    @if index > 0 { ", " } (run.name) " " @if let Some(jain) = run.report.jain_index { (format!("{jain:.3}")) } @else { "–" }
                } "."
            } }
        }
    }
}

/// The same for links that carried packets.
fn links(runs: &[Pictured]) -> Markup {
    let used = |link: &&LinkReport| link.forwarded_packets + link.dropped_packets > 0;
    let ids =
        words::unique(runs.iter().flat_map(|run| run.report.links.iter().filter(used).map(|link| link.id.as_str())));
    html! {
        div.group {
            h4 { "Links" }
            div.scroll tabindex="0" role="region" aria-label="Links" {
                table.claims {
                    thead { tr {
                        th scope="col" { "link" }
                        @if runs.len() > 1 { th scope="col" { "run" } }
                        th.number scope="col" { "busy" } th.number scope="col" { "queue, mean" } th.number scope="col" { "95 %" } th.number scope="col" { "most" }
                        th.number scope="col" { "forwarded" } th.number scope="col" { "dropped" } th.number scope="col" { "marked" }
                    } }
                    @for id in ids {
                        tbody { @for run in runs { @if let Some(link) = run.report.links.iter().find(|link| link.id == id) {
                            tr {
                                th.row scope="row" { (id) }
                                @if runs.len() > 1 { td.column { (run.name) } }
                                td.number.strong { (format!("{:.1} %", 100.0 * link.utilisation)) }
                                td.number { (format!("{:.1}", link.queue_packets_mean)) } td.number { (link.queue_packets_p95) } td.number { (link.queue_packets_max) }
                                td.number { (link.forwarded_packets) } td.number { (link.dropped_packets) } td.number { (link.marked_packets) }
                            }
                        } } }
                    }
                }
            }
        }
    }
}

/// A number with four digits.
fn shown(value: f64) -> String {
    let decimals = [1000.0, 100.0, 10.0].iter().position(|limit| value.abs() >= *limit).unwrap_or(3);
    format!("{value:.decimals$}")
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| shown(1000.0 * seconds))
}

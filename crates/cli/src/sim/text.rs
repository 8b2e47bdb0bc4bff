//! A report for people: tables of flows, paths, links and the file's measures.

use anabranch_lab::report::Report;
use anstyle::Style;

use crate::terminal::{Align, BOLD, DIM, PLAIN, Table, number, paragraph};

/// The complete report.
pub(super) fn text(report: &Report) -> String {
    let Report { seed, hash, wall_seconds, simulated_seconds, events, .. } = report;
    let mut text = format!(
        "{DIM}seed {seed}, hash {hash}: {} s in {wall_seconds:.3} s, {events} events{DIM:#}\n\n",
        number(*simulated_seconds)
    );
    text += &flows(report).render("");
    if let Some(jain) = report.jain_index.filter(|_| report.flows.len() > 1) {
        text += &format!("{DIM}Jain's index of the goodputs{DIM:#} {}\n", number(jain));
    }
    for table in [paths(report), Some(links(report)), classes(report), measures(report)].into_iter().flatten() {
        text += &format!("\n{}", table.render(""));
    }
    for (index, note) in report.notes.iter().enumerate() {
        text += if index == 0 { "\n" } else { "" };
        text += &paragraph("note: ", note);
    }
    text
}

fn rate(bps: f64) -> (String, Style) {
    (format!("{} kbit/s", number(bps / 1000.0)), PLAIN)
}

fn count(count: u64) -> (String, Style) {
    (count.to_string(), PLAIN)
}

/// A dash for a missing value.
fn known(shown: Option<String>) -> (String, Style) {
    (shown.unwrap_or_else(|| "–".to_owned()), PLAIN)
}

fn milliseconds(seconds: Option<f64>) -> (String, Style) {
    known(seconds.map(|seconds| number(seconds * 1000.0)))
}

fn flows(report: &Report) -> Table {
    let mut table = Table::of(
        &["flow", "transport"],
        &[
            "goodput",
            "throughput",
            "sent",
            "delivered",
            "resent",
            "dropped",
            "rtt ms",
            "p50",
            "p95",
            "p99",
            "delay ms",
            "window",
        ],
    );
    for flow in &report.flows {
        table.row(vec![
            (flow.id.clone(), BOLD),
            (flow.transport.clone(), PLAIN),
            rate(flow.goodput_bps),
            rate(flow.throughput_bps),
            count(flow.sent_packets),
            count(flow.delivered_packets),
            count(flow.retransmitted_packets),
            count(flow.dropped_packets),
            milliseconds(flow.rtt_mean_s),
            milliseconds(flow.rtt_p50_s),
            milliseconds(flow.rtt_p95_s),
            milliseconds(flow.rtt_p99_s),
            milliseconds(flow.one_way_delay_mean_s),
            known(flow.window_final.map(number)),
        ]);
    }
    table
}

/// `None` if no flow has several paths.
fn paths(report: &Report) -> Option<Table> {
    let mut table = Table::of(&["path", "state"], &["delivered", "share %", "sent", "resent", "rtt ms", "window"]);
    for flow in &report.flows {
        let sum: f64 = flow.paths.iter().filter_map(|path| path.delivered_bps).sum();
        for path in &flow.paths {
            let share = |bps: f64| number(if sum > 0.0 { 100.0 * bps / sum } else { 0.0 });
            table.row(vec![
                (format!("{}.path.{}", flow.id, path.path), BOLD),
                known(path.state.clone()),
                path.delivered_bps.map_or_else(|| known(None), rate),
                known(path.delivered_bps.map(share)),
                count(path.sent_packets),
                count(path.retransmitted_packets),
                milliseconds(path.rtt_mean_s),
                (number(path.window_final), PLAIN),
            ]);
        }
    }
    report.flows.iter().any(|flow| !flow.paths.is_empty()).then_some(table)
}

fn links(report: &Report) -> Table {
    let mut table = Table::of(&["link"], &["forwarded", "dropped", "busy %", "queue mean", "p50", "p95", "p99", "max"]);
    for link in &report.links {
        table.row(vec![
            (link.id.clone(), BOLD),
            count(link.forwarded_packets),
            count(link.dropped_packets),
            (number(100.0 * link.utilisation), PLAIN),
            (number(link.queue_packets_mean), PLAIN),
            count(link.queue_packets_p50),
            count(link.queue_packets_p95),
            count(link.queue_packets_p99),
            count(link.queue_packets_max),
        ]);
    }
    table
}

/// `None` if no flow has a class. Ranges of sizes without messages are left out.
fn classes(report: &Report) -> Option<Table> {
    let mut table = Table::of(
        &["class"],
        &["messages", "finished", "completion ms", "p50", "p95", "p99", "slowdown", "p50", "p95", "p99"],
    );
    for class in report.classes.iter().filter(|class| class.messages > 0) {
        let ratio = |ratio: Option<f64>| known(ratio.map(number));
        table.row(vec![
            (class.id.clone(), BOLD),
            count(class.messages),
            count(class.finished),
            milliseconds(class.completion_mean_s),
            milliseconds(class.completion_p50_s),
            milliseconds(class.completion_p95_s),
            milliseconds(class.completion_p99_s),
            ratio(class.slowdown_mean),
            ratio(class.slowdown_p50),
            ratio(class.slowdown_p95),
            ratio(class.slowdown_p99),
        ]);
    }
    (!report.classes.is_empty()).then_some(table)
}

/// `None` if the file has no measures.
fn measures(report: &Report) -> Option<Table> {
    let mut table = Table::new(&[("measure", Align::Left), ("value", Align::Right), ("", Align::Left)]);
    for measure in &report.measures {
        let because = measure.because.clone().unwrap_or_default();
        table.row(vec![(measure.name.clone(), BOLD), known(measure.value.map(number)), (because, DIM)]);
    }
    (!report.measures.is_empty()).then_some(table)
}

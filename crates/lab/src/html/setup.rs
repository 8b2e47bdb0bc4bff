//! The setup of an experiment: its network, its axes, its flows and links.

use maud::{Markup, html};

use crate::reproduce::{DescribedFlow, DescribedLink, ExperimentOutcome, VariedAxis};

use super::alike::{self, Alike};
use super::drawing;

/// The number of values that are shown; the rest appears on a click.
const VALUES_MAX: usize = 8;
/// The number of flows that are shown; the rest is in the file.
const FLOWS_MAX: usize = 8;

/// The network and its axes.
pub(super) fn setup(experiment: &ExperimentOutcome) -> Markup {
    let axes = &experiment.axes;
    let alike = Alike::of(&experiment.topology, axes);
    html! {
        div.setup {
            @if let Some(drawing) = drawing::network(&alike) {
                div.scroll.drawing tabindex="0" role="region" aria-label="Network" { (drawing) }
            }
            dl {
                @for axis in axes {
                    div { dt { (axis.name) } dd { (values(axis)) } }
                }
                div { dt { "duration" } dd { (experiment.duration) } }
                div { dt { "seeds" } dd {
                    @if experiment.is_random { (experiment.seeds) " a variant, from " (experiment.seed) " on" } @else { "one run a variant, seed " (experiment.seed) }
                } }
                div { dt { "flows" } dd { (flows(axes, &alike)) } }
            }
            (links(axes, &alike))
        }
    }
}

/// The values of an axis, one a line, as values contain commas.
fn values(axis: &VariedAxis) -> Markup {
    let shown = axis.values.len().min(VALUES_MAX);
    // A single line more is shown, as the control for the click would need a line, too.
    let (shown, more) = axis.values.split_at(if axis.values.len() == shown + 1 { shown + 1 } else { shown });
    let list = |values: &[String]| html! { ul { @for value in values { li { (value) } } } };
    html! {
        (list(shown))
        @if !more.is_empty() {
            details { summary { "… and " (more.len()) " more" } (list(more)) }
        }
    }
}

fn flows(axes: &[VariedAxis], alike: &Alike<'_>) -> Markup {
    let flow = |group: &Vec<&DescribedFlow>| {
        let name = |of: fn(&DescribedFlow) -> &str| alike::range(group.iter().map(|flow| of(flow)));
        let (id, from, to) = (name(|flow| &flow.id), name(|flow| &flow.from), name(|flow| &flow.to));
        match alike::axis_of_flow(axes, group[0]) {
            Some(axis) => format!("{id}: {from} → {to} (by {axis})"),
            None => format!("{id}: {from} → {to} ({})", group[0].transport),
        }
    };
    let more: usize = alike.flows.iter().skip(FLOWS_MAX).map(Vec::len).sum();
    html! {
        ul {
            @for group in alike.flows.iter().take(FLOWS_MAX) { li { (flow(group)) (times(group.len())) } }
            @if more > 0 { li { "and " (more) " more" } }
        }
    }
}

/// A property of a link, and the axis that varies it.
fn property(axes: &[VariedAxis], link: &DescribedLink, key: &str, value: &str) -> Markup {
    let axis = alike::axis_of_link(axes, link, key);
    html! { @if let Some(axis) = axis { "by " em { (axis) } } @else { (value) } }
}

fn links(axes: &[VariedAxis], alike: &Alike<'_>) -> Markup {
    let has_errors = alike.links.iter().any(|group| group[0].error.is_some());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Links" {
            table.links {
                thead { tr {
                    th scope="col" { "link" } th scope="col" { } th.number scope="col" { "rate" } th.number scope="col" { "delay" }
                    th scope="col" { "queue" }
                    @if has_errors { th scope="col" { "loses" } }
                } }
                tbody { @for group in &alike.links {
                    @let link = group[0];
                    tr {
                        th.row scope="row" { (alike::range(group.iter().map(|link| link.id.as_str()))) (times(group.len())) }
                        td {
                            (alike::range(group.iter().map(|link| link.from.as_str())))
                            @if link.is_duplex { " ↔ " } @else { " → " }
                            (alike::range(group.iter().map(|link| link.to.as_str())))
                        }
                        td.number { (property(axes, link, "rate", &link.rate)) }
                        td.number { (property(axes, link, "delay", &link.delay)) }
                        td { (property(axes, link, "queue", &link.queue)) }
                        @if has_errors { td { (property(axes, link, "error", link.error.as_deref().unwrap_or_default())) } }
                    }
                } }
            }
        }
    }
}

/// The number of elements that a line stands for.
fn times(count: usize) -> Markup {
    html! { @if count > 1 { " " span.times { "× " (count) } } }
}

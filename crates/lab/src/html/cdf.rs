//! Cumulative distributions: the share of the time in which a quantity was at most so large, or of the draws of a field.

use maud::{Markup, html};

use crate::picture::{DRAWN_MAX, Pictured};

use super::ticks::ticks;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// The distribution at `index` of each run, all runs in one picture.
pub(super) fn cdf(runs: &[Pictured], index: usize) -> Markup {
    let all = runs.iter().flat_map(|run| {
        let name = |curve: &str| if runs.len() > 1 { format!("{}: {curve}", run.name) } else { curve.to_owned() };
        let curves =
            run.distributions.get(index).map(|distribution| distribution.curves.as_slice()).unwrap_or_default();
        curves.iter().map(move |(curve, values)| (name(curve), values))
    });
    let curves: Vec<(String, &Vec<f64>)> = all.take(DRAWN_MAX).collect();
    let Some(kind) = runs[0].distributions.get(index) else { return html! {} };
    let curves: Vec<(String, &[f64])> = curves.into_iter().map(|(name, values)| (name, values.as_slice())).collect();
    drawn(&html! { (kind.title) ", " (kind.unit) }, kind.title, &curves)
}

/// Curves in one picture, at most as many as there are colours. Each has a name and ascending values, which are evenly spaced in probability.
pub(super) fn drawn(title: &Markup, label: &str, curves: &[(String, &[f64])]) -> Markup {
    let curves = &curves[..curves.len().min(DRAWN_MAX)];
    if curves.iter().all(|(_, values)| values.is_empty()) {
        return html! {};
    }
    let ends = curves.iter().filter_map(|(_, values)| Some((*values.first()?, *values.last()?)));
    let (low, high) =
        ends.fold((f64::INFINITY, 0.0_f64), |(low, high), (first, last)| (low.min(first), high.max(last)));
    // A distribution that hardly varies is not magnified: the axis begins at zero unless all values are far from zero.
    let low = if low < 0.5 * high { 0.0 } else { low };
    let high = if high > low { high } else { low + 1.0 };
    let x = |value: f64| LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let y = |share: f64| HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
    let path = |values: &[f64]| {
        let last = values.len().saturating_sub(1).max(1) as f64;
        let point = |(index, value): (usize, &f64)| format!("{:.1} {:.1}", x(*value), y(index as f64 / last));
        format!("M{}", values.iter().enumerate().map(point).collect::<Vec<_>>().join("L"))
    };
    html! {
        figure.cdf {
            h4 { (title) }
            svg.curve viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ "Distribution: " (label) } {
                @for share in [0.0, 0.25, 0.5, 0.75, 0.95] {
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(format!("{:.1}", y(share))) y2=(format!("{:.1}", y(share))) {}
                    text.tick x=(LEFT - 6.0) y=(format!("{:.1}", y(share) + 4.0)) { (format!("{:.0} %", 100.0 * share)) }
                }
                @for (value, text) in ticks(low, high) { text.name x=(format!("{:.1}", x(value))) y=(HEIGHT - 9.0) { (text) } }
                @for (index, (_, values)) in curves.iter().enumerate() { path class={ "line l" (index) } d=(path(values)) {} }
            }
            figcaption { @for (index, (name, _)) in curves.iter().enumerate() { span.entry { span class={ "swatch s" (index) } {} (name) } " " } }
        }
    }
}

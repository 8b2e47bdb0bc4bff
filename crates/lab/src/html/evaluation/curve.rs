//! A measure over the varied parameter: one point for each claim, with the band in which it must lie.

use maud::{Markup, html};

use crate::reproduce::JudgedClaim;

use super::super::interval::shown;
use super::super::words;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;
/// The least distance of two numbers beside the axis.
const TICK_APART: f64 = 12.0;
/// The least number of points of a curve.
const POINTS_MIN: usize = 3;
/// The longest name, in characters, that fits side by side.
const NAME_MAX: usize = 12;

/// The picture of some claims, if they are points of a curve.
pub(super) fn curve(claims: &[&JudgedClaim]) -> Option<Markup> {
    let fits =
        claims.len() >= POINTS_MIN && claims.iter().all(|claim| (1..=NAME_MAX).contains(&claim.column.chars().count()));
    let values: Option<Vec<f64>> =
        claims.iter().map(|claim| claim.measured.ours.as_ref().map(|ours| ours.value)).collect();
    let values = values.filter(|values| fits && values.iter().all(|value| value.is_finite() && *value >= 0.0))?;
    let band = &claims[0].band;
    let ends = [band.low, band.high];
    let largest = values.iter().copied().chain(ends.into_iter().flatten()).fold(0.0, f64::max) * 1.1;
    if largest <= 0.0 {
        return None;
    }
    let most = values.iter().copied().fold(0.0, f64::max);
    let (bottom, span) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    let y = |value: f64| bottom - value / largest * span;
    let x = |index: usize| LEFT + (WIDTH - LEFT - RIGHT) * (index as f64 + 0.5) / claims.len() as f64;
    let (band_top, band_bottom) = (band.high.map_or(TOP, y), band.low.map_or(bottom, y));
    // Numbers beside the axis: the ends of the band, the largest value and zero, each if it does not overlap an earlier one.
    let mut ticks: Vec<f64> = Vec::new();
    for value in ends.into_iter().flatten().chain([most, 0.0]) {
        if ticks.iter().all(|&tick| (y(tick) - y(value)).abs() >= TICK_APART) {
            ticks.push(value);
        }
    }
    let points: Vec<String> =
        values.iter().enumerate().map(|(index, &value)| format!("{} {}", shown(x(index)), shown(y(value)))).collect();
    Some(html! {
        svg.curve viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ "Curve: " (claims[0].title) } {
            rect.band x=(LEFT) width=(WIDTH - LEFT - RIGHT) y=(shown(band_top)) height=(shown((band_bottom - band_top).max(0.0))) {}
            @for end in ends.into_iter().flatten() {
                line.bound x1=(LEFT) x2=(WIDTH - RIGHT) y1=(shown(y(end))) y2=(shown(y(end))) {}
            }
            line.base x1=(LEFT) x2=(WIDTH - RIGHT) y1=(bottom) y2=(bottom) {}
            @for value in ticks {
                text.tick x=(LEFT - 6.0) y=(shown(y(value) + 4.0)) {
                    @if value > 0.0 { (words::number(&claims[0].number_shown(value))) } @else { "0" }
                }
            }
            path.line d={ "M" (points.join("L")) } {}
            @for (index, claim) in claims.iter().enumerate() {
                circle class={ "point " (words::look(claim).class) } cx=(shown(x(index))) cy=(shown(y(values[index]))) r="4" {
                    title { (claim.column) ": " (claim.ours_shown().unwrap_or_default()) }
                }
                text.name x=(shown(x(index))) y=(HEIGHT - 8.0) { (claim.column) }
            }
        }
    })
}

//! A table as bars: a group of bars for each row, a bar for each column. Bars are our values with the 95 % prediction interval of one run,
//! diamonds the published ones. Only tables that involve chance have bars: equal integers need no picture.

use maud::{Markup, html};

use crate::reproduce::{JudgedClaim, PublishedValue};

use super::interval::shown;
use super::words;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 26.0;
/// The share of its space that a group of bars fills.
const FILLED: f64 = 0.72;
/// The limit of groups: more, or longer names, do not fit side by side.
const ROWS_MAX: usize = 14;
const NAME_MAX: usize = 14;
/// As many colours as style.css has.
const COLUMNS_MAX: usize = 8;

/// The picture of a table, if a picture is useful.
pub(super) fn bars(claims: &[&JudgedClaim]) -> Option<Markup> {
    let rows = words::unique(claims.iter().map(|claim| claim.row.as_str()));
    let columns = words::unique(claims.iter().map(|claim| claim.column.as_str()));
    let theirs = words::theirs(claims.first()?.source);
    let fits = (3..=ROWS_MAX).contains(&rows.len())
        && (2..=COLUMNS_MAX).contains(&columns.len())
        && rows.iter().all(|row| row.chars().count() <= NAME_MAX);
    let bars: Option<Vec<Bar<'_>>> = claims.iter().map(|claim| Bar::of(claim)).collect();
    let bars = bars.filter(|_| fits)?;
    let is_one_unit = claims.iter().all(|claim| claim.unit == claims[0].unit);
    if !is_one_unit || claims.iter().all(|claim| claim.band.kind == "exact") {
        return None;
    }
    let largest = bars.iter().map(|bar| bar.high.max(bar.published)).fold(0.0, f64::max);
    let step = step(largest)?;
    let top = (largest / step).ceil() * step;
    let (bottom, span) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    let y = |value: f64| bottom - value.max(0.0) / top * span;
    let place = (WIDTH - LEFT) / rows.len() as f64;
    let width = place * FILLED / columns.len() as f64;
    let x = |bar: &Bar<'_>| {
        let position = |names: &[&str], name: &str| names.iter().position(|known| *known == name).unwrap_or(0) as f64;
        LEFT + place * (position(&rows, bar.row) + (1.0 - FILLED) / 2.0) + width * position(&columns, bar.column)
    };
    let colour = |bar: &Bar<'_>| columns.iter().position(|known| *known == bar.column).unwrap_or(0);
    let ticks = (0..=(top / step).round() as u32).map(|tick| f64::from(tick) * step);
    let unit = &claims[0].unit;
    Some(html! {
        figure.bars {
            div.scroll tabindex="0" role="region" aria-label="The table as bars" {
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ "Bars: " (claims[0].title) } {
                    @for tick in ticks {
                        line.grid x1=(LEFT) x2=(WIDTH) y1=(shown(y(tick))) y2=(shown(y(tick))) {}
                        text.tick x=(LEFT - 7.0) y=(shown(y(tick) + 3.5)) { (tick) }
                    }
                    @for bar in &bars {
                        @let middle = x(bar) + width / 2.0;
                        rect class={ "bar s" (colour(bar)) } x=(shown(x(bar) + 1.5)) width=(shown(width - 3.0))
                            y=(shown(y(bar.ours))) height=(shown(bottom - y(bar.ours))) rx="1.5" {
                            title { (bar.row) ", " (bar.column) ": ours " (bar.ours) ", " (theirs) " " (bar.published) }
                        }
                        path.whisker d={
                            "M" (shown(middle)) " " (shown(y(bar.low))) "V" (shown(y(bar.high)))
                            "M" (shown(middle - 3.0)) " " (shown(y(bar.low))) "h6"
                            "M" (shown(middle - 3.0)) " " (shown(y(bar.high))) "h6"
                        } {}
                        path.published d={ "M" (shown(middle)) " " (shown(y(bar.published) - 4.5)) "l4.5 4.5l-4.5 4.5l-4.5 -4.5z" } {}
                    }
                    line.base x1=(LEFT) x2=(WIDTH) y1=(bottom) y2=(bottom) {}
                    @for (index, row) in rows.iter().enumerate() {
                        text.name x=(shown(LEFT + place * (index as f64 + 0.5))) y=(HEIGHT - 8.0) { (row) }
                    }
                }
            }
            figcaption {
                @for (index, column) in columns.iter().enumerate() {
                    span.entry { span class={ "swatch s" (index) } {} (column) }
                }
                span.entry { span.diamond {} (theirs) }
                span.entry { span.stroke {} "95 % of our runs" }
                @if !unit.is_empty() { span.entry.quiet { (unit) } }
            }
        }
    })
}

struct Bar<'a> {
    row: &'a str,
    column: &'a str,
    ours: f64,
    low: f64,
    high: f64,
    published: f64,
}

impl<'a> Bar<'a> {
    /// `None` if a number is missing, or below zero: bars start at zero.
    fn of(claim: &'a JudgedClaim) -> Option<Self> {
        let PublishedValue::Number(published) = claim.published else { return None };
        let ours = claim.measured.ours.as_ref()?;
        let is_good = [published, ours.value, ours.low, ours.high].iter().all(|value| value.is_finite());
        (is_good && published >= 0.0 && ours.value >= 0.0).then_some(Self {
            row: &claim.row,
            column: &claim.column,
            ours: ours.value,
            low: ours.low,
            high: ours.high,
            published,
        })
    }
}

/// The distance of grid lines: 1, 2 or 5 times a power of ten, so that there are four to eight lines; `None` if there is no height.
fn step(largest: f64) -> Option<f64> {
    if !largest.is_finite() || largest <= 0.0 {
        return None;
    }
    let mut power = 1.0;
    while power * 10.0 <= largest {
        power *= 10.0;
    }
    while power > largest {
        power /= 10.0;
    }
    [0.2, 0.5, 1.0].into_iter().map(|part| part * power).find(|step| largest / step <= 6.0).or(Some(2.0 * power))
}

//! A claim's numbers as a small picture: a band for the interval that decides, a tick for the published number, a dot for ours, and a
//! whisker for further runs of ours. Each picture has its own scale.

use maud::{Markup, html};

use crate::reproduce::{JudgedClaim, PublishedValue};

use super::words;

const WIDTH: f64 = 128.0;
const HEIGHT: f64 = 18.0;
/// The margin on either side, so that a dot at an end is drawn completely.
const MARGIN: f64 = 7.0;

/// Half the width of a picture for numbers that must be equal: five per cent of the number, so that a difference of 0.01 % looks small.
const EXACT_SHARE: f64 = 0.05;

/// The picture of a claim, if something was measured.
pub(super) fn interval(claim: &JudgedClaim) -> Option<Markup> {
    let ours = claim.measured.ours.as_ref().filter(|ours| ours.value.is_finite())?;
    let is_band = claim.band.kind != "exact";
    let published = match claim.published {
        PublishedValue::Number(value) => Some(value),
        PublishedValue::Words(_) => None,
    };
    // The band of a prediction is this whisker.
    let has_whisker = claim.band.kind != "prediction"
        && ours.seeds > 1
        && ours.sd > 0.0
        && ours.low.is_finite()
        && ours.high.is_finite();
    let whisker = has_whisker.then_some((ours.low, ours.high));
    let ends = whisker.map(|(low, high)| [Some(low), Some(high)]).unwrap_or_default();
    // Numbers that must be equal have no interval; the width of the picture is a share of the number itself.
    let scale = published.filter(|_| !is_band).map(|value| value.abs() * EXACT_SHARE);
    let around = published.zip(scale).map(|(value, half)| [Some(value - half), Some(value + half)]).unwrap_or_default();
    let marks =
        [published, Some(ours.value), claim.band.low, claim.band.high].into_iter().chain(ends).chain(around).flatten();
    let (low, high) =
        marks.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mark| (low.min(mark), high.max(mark)));
    // Equal to the bit: everything is drawn in the middle.
    let is_point = high - low <= f64::EPSILON * high.abs();
    let x = |value: f64| match is_point {
        true => WIDTH / 2.0,
        false => MARGIN + (value - low) / (high - low) * (WIDTH - 2.0 * MARGIN),
    };
    let from = claim.band.low.map_or(0.0, x);
    let to = claim.band.high.map_or(WIDTH, x);
    let whisker = whisker.map(|(low, high)| (x(low), x(high)));
    Some(html! {
        // The axis, the heights and the radius stand in style.css: there are two thousand of these pictures in a report.
        svg.interval viewBox={ "0 " (-HEIGHT / 2.0) " " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label(claim)) {
            @if is_band {
                rect.band x=(shown(from)) width=(shown((to - from).max(1.0))) {}
            }
            @if let Some((from, to)) = whisker {
                line.whisker x1=(shown(from)) x2=(shown(to)) {}
            }
            @if let Some(value) = published {
                line.published x1=(shown(x(value))) x2=(shown(x(value))) y1="-7.5" y2="7.5" {}
            }
            circle class={ "ours " (words::look(claim).class) } cx=(shown(x(ours.value))) {}
        }
    })
}

fn label(claim: &JudgedClaim) -> String {
    let ours = claim.ours_shown().unwrap_or_default();
    format!("published {}, ours {ours}", claim.published)
}

/// A coordinate in tenths of a pixel, which is more precise than visible.
pub(super) fn shown(pixels: f64) -> String {
    format!("{pixels:.1}")
}

//! Figures: their series as JSON that `report.js` turns into charts.
//!
//! ```json
//! { "from": 38, "tick": 0.0001, "ticks": 20000,
//!   "panels": [{ "title": "Window", "unit": "packets",
//!                "series": [{ "name": "f1", "style": "steps", "colour": 0, "t": [0, 12, 3], "v": [2, 3, null] }] }] }
//! ```
//!
//! A time is `from + tick · n`, where n is the sum of `t` so far: small integers are short. Values have five significant digits,
//! which is more than a chart of a thousand pixels shows.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use crate::decimate::decimate;
use crate::reproduce::{Figure, Outcome, Panel, Series, Style};

/// The limit of points in a whole report. A point takes about nine bytes and the rest of a report 3.6 MB; a report is to stay below 5 MB.
pub(super) const POINTS_MAX: usize = 150_000;
/// The limit of points in one series: two thousand slices, more than a wide screen has pixels.
const SERIES_POINTS_MAX: usize = 8_000;
/// The axis of time is divided into at least this many ticks, and less than ten times as many.
const TICKS_MIN: f64 = 20_000.0;
/// As many colours as style.css has.
const COLOURS: usize = 8;

/// The number of points that each series of an outcome may have.
pub(super) fn points_of_a_series(outcome: &Outcome) -> usize {
    points_of_figures(
        outcome.papers.iter().flat_map(|paper| &paper.experiments).flat_map(|experiment| &experiment.figures),
    )
}

/// The same of some figures.
pub(super) fn points_of_figures<'a>(figures: impl Iterator<Item = &'a Figure>) -> usize {
    let series = figures.flat_map(|figure| &figure.panels).flat_map(|panel| &panel.series);
    let lengths: Vec<usize> = series.map(|series| series.t.len().min(SERIES_POINTS_MAX)).collect();
    share(&lengths, POINTS_MAX).min(SERIES_POINTS_MAX)
}

/// One figure. `number` is unique in the report.
pub(super) fn figure(figure: &Figure, number: usize, points_max: usize) -> Markup {
    html! {
        figure.chart id={ "figure-" (number) } {
            div.head {
                h4 { (figure.title) }
                button.reset type="button" hidden { "Whole time" }
            }
            div.panels {}
            figcaption {
                @if !figure.caption.is_empty() { (figure.caption) " " }
                span.hint { "Drag to zoom, double-click for the whole time." }
            }
            noscript { p.about { "The curves need JavaScript; their points are in outcome.json." } }
            script.data type="application/json" { (PreEscaped(json(figure, points_max))) }
        }
    }
}

fn json(figure: &Figure, points_max: usize) -> String {
    let tick = tick(figure.to - figure.from);
    let ticks = ((figure.to - figure.from) / tick).round();
    let mut text = format!("{{\"from\":{},\"tick\":{tick},\"ticks\":{ticks},\"panels\":[", figure.from);
    let colours = colours(&figure.panels);
    for (index, panel) in figure.panels.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ =
            write!(text, "{comma}{{\"title\":{},\"unit\":{},\"series\":[", string(&panel.title), string(&panel.unit));
        for (place, series) in panel.series.iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            write_series(&mut text, series, colours[index][place], (figure.from, tick), points_max);
        }
        text.push_str("]}");
    }
    text.push_str("]}");
    text
}

fn write_series(text: &mut String, series: &Series, colour: usize, (from, tick): (f64, f64), points_max: usize) {
    let style = match series.style {
        Style::Steps => "steps",
        Style::Points => "points",
    };
    let _ = write!(text, "{{\"name\":{},\"style\":\"{style}\",\"colour\":{colour},\"t\":[", string(&series.name));
    let (times, values) = (&series.t, &series.v);
    assert_eq!(times.len(), values.len(), "a point has a time and a value");
    let span = times.first().zip(times.last()).map_or((0.0, 0.0), |(begin, end)| (*begin, *end));
    let kept = decimate(times.len(), |index| (times[index], values[index]), span, points_max);
    let mut before = 0.0;
    for (index, &point) in kept.iter().enumerate() {
        let now = ((series.t[point] - from) / tick).round();
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{}", now - before);
        before = now;
    }
    text.push_str("],\"v\":[");
    for (index, &point) in kept.iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        write_number(text, series.v[point]);
    }
    text.push_str("]}");
}

/// The largest number of points for each series such that all together have at most `total`: long series get what short ones do not
/// need.
fn share(lengths: &[usize], total: usize) -> usize {
    let mut lengths = lengths.to_vec();
    lengths.sort_unstable();
    let mut left = total;
    for (index, &length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index);
        if length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// Five significant digits, in the shorter of two notations.
fn write_number(text: &mut String, value: f64) {
    if !value.is_finite() {
        text.push_str("null");
        return;
    }
    let rounded: f64 = format!("{value:.4e}").parse().expect("what was printed can be read");
    // The largest numbers round up to infinity.
    let rounded = if rounded.is_finite() { rounded } else { value };
    let (plain, scientific) = (rounded.to_string(), format!("{rounded:e}"));
    text.push_str(if scientific.len() < plain.len() { &scientific } else { &plain });
}

/// The power of ten that divides `span` into at least [`TICKS_MIN`] ticks.
fn tick(span: f64) -> f64 {
    let mut tick = 1.0;
    while span / tick < TICKS_MIN && tick > 1e-12 {
        tick /= 10.0;
    }
    // In floats 0.1 · 0.1 is not 0.01, but it is printed so.
    format!("{tick:.0e}").parse().expect("what was printed can be read")
}

/// The colour of each series: one name has one colour in all panels, and a panel has no colour twice while there are enough. A
/// name such as `FAST: goodput` takes the colour of `FAST`.
fn colours(panels: &[Panel]) -> Vec<Vec<usize>> {
    fn family(name: &str) -> &str {
        name.split_once(": ").map_or(name, |(family, _)| family)
    }
    let mut known: Vec<(&str, usize)> = Vec::new();
    let mut colours = Vec::new();
    for panel in panels {
        let mut taken: Vec<usize> = Vec::new();
        let is_free = |colour: usize, taken: &[usize]| !taken.contains(&colour);
        for series in &panel.series {
            let same = known
                .iter()
                .find(|(name, _)| *name == series.name)
                .or_else(|| known.iter().find(|(name, _)| family(name) == family(&series.name)));
            let colour =
                same.map(|&(_, colour)| colour).filter(|&colour| is_free(colour, &taken)).unwrap_or_else(|| {
                    let unused =
                        |colour: &usize| is_free(*colour, &taken) && known.iter().all(|(_, known)| known != colour);
                    let free =
                        (0..COLOURS).find(unused).or_else(|| (0..COLOURS).find(|&colour| is_free(colour, &taken)));
                    free.unwrap_or(taken.len() % COLOURS)
                });
            taken.push(colour);
            known.push((&series.name, colour));
        }
        colours.push(taken);
    }
    colours
}

/// A JSON string without a character that ends a script or begins a comment in HTML.
fn string(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a string is JSON");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str) -> Series {
        Series { name: name.to_owned(), style: Style::Steps, t: vec![], v: vec![] }
    }

    fn panel(names: &[&str]) -> Panel {
        Panel { title: String::new(), unit: String::new(), series: names.iter().map(|name| series(name)).collect() }
    }

    #[test]
    fn a_variant_keeps_its_colour_in_all_panels() {
        let panels = [panel(&["SACK", "CTCP"]), panel(&["CTCP: goodput", "SACK: goodput", "SACK: throughput"])];
        assert_eq!(colours(&panels), [vec![0, 1], vec![1, 0, 2]]);
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let many = panel(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(colours(&[many])[0].iter().all(|&colour| colour < COLOURS));
    }

    #[test]
    fn numbers_are_short_and_exact_to_five_digits() {
        let shown = |value| {
            let mut text = String::new();
            write_number(&mut text, value);
            text
        };
        let values = [52.291_66, 1_466_666.6, 1e-9, 0.1 + 0.2, f64::INFINITY, -0.000_123_456, f64::MAX];
        assert_eq!(
            values.map(shown),
            ["52.292", "1466700", "1e-9", "0.3", "null", "-1.2346e-4", "1.7976931348623157e308"]
        );
    }

    #[test]
    fn ticks_are_powers_of_ten() {
        assert_eq!(
            [100.0, 99.0, 2.0, 20_000.0].map(tick).map(|tick| tick.to_string()),
            ["0.001", "0.001", "0.0001", "1"]
        );
    }

    #[test]
    fn times_are_sums_of_small_integers() {
        let series = Series {
            name: "<f>".to_owned(),
            style: Style::Points,
            t: vec![38.5, 38.934_04, 39.0],
            v: vec![1.0, 2.0, 3.0],
        };
        let mut text = String::new();
        write_series(&mut text, &series, 1, (38.0, 0.0001), 100);
        let expected = r#"{"name":"\u003cf\u003e","style":"points","colour":1,"t":[5000,4340,660],"v":[1,2,3]}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn short_series_leave_their_points_to_long_ones() {
        assert_eq!(share(&[10, 10], 100), usize::MAX);
        assert_eq!(share(&[10, 1000, 1000], 110), 50);
        assert_eq!(share(&[1000, 20, 1000, 20], 100), 30);
        assert_eq!(share(&[], 100), usize::MAX);
    }
}

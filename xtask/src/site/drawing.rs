//! Drawings as SVG: curves over time, bars, and ranges. A drawing looks well 350 pixels wide as well as 620.
//!
//! Only + - x / on floats, and rounding to tenths of a pixel: the same bytes on every machine.

use std::fmt::Write as _;

/// What every drawing looks like; the colours are of the light theme, or of the dark one where the reader's system is dark.
pub(super) const STYLE: &str = include_str!("../../site/drawing.css");
pub(super) const LIGHT: &str = include_str!("../../site/light.css");
pub(super) const DARK: &str = include_str!("../../site/dark.css");

/// The width of a drawing, and of what is left and right of the axes.
const WIDTH: f64 = 480.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;

/// The height of a panel of curves, and of a line of text.
const HEIGHT: f64 = 112.0;
const LINE: f64 = 18.0;

/// A curve whose value holds from each point to the next.
pub(super) struct Curve {
    /// The position of its name in the legend, which is also its colour.
    pub(super) name: usize,
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves on one axis.
pub(super) struct Panel {
    /// Quantity and unit.
    pub(super) title: String,
    pub(super) curves: Vec<Curve>,
}

/// Panels one below the other, from `from` to `to` seconds. `about` says in a sentence what is to be seen.
pub(super) fn curves(about: &str, names: &[&str], panels: &[Panel], (from, to): (f64, f64)) -> String {
    let mut body = String::new();
    let mut top = legend(names, &mut body);
    let x = |time: f64| LEFT + (time - from) / (to - from) * (WIDTH - LEFT - RIGHT);
    for panel in panels {
        text(&mut body, (0.0, top + 13.0), "", &panel.title);
        let end = top + LINE + 6.0 + HEIGHT;
        let shown: Vec<(usize, Vec<(f64, f64)>)> =
            panel.curves.iter().map(|curve| (curve.name, within(&curve.points, from, to))).collect();
        let highest = shown.iter().flat_map(|(_, points)| points).fold(0.0, |most: f64, point| most.max(point.1));
        let ceiling = if highest > 0.0 { highest * 1.06 } else { 1.0 };
        let y = |value: f64| end - value / ceiling * HEIGHT;
        for (value, label) in ticks(0.0, ceiling, 4) {
            line(&mut body, (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
            text(&mut body, (LEFT - 5.0, y(value) + 4.0), "q e", &label);
        }
        for (name, points) in shown {
            let _ = writeln!(body, "<path class=\"l l{name}\" d=\"{}\"/>", path(&points, to, x, y));
        }
        top = end + 8.0;
    }
    for (time, label) in ticks(from, to, 6) {
        text(&mut body, (x(time), top + 10.0), "q m", &label);
    }
    text(&mut body, (WIDTH - RIGHT, top + 26.0), "q e", "seconds");
    whole(about, top + 32.0, &body)
}

/// The points from `from` to `to`, with the value that holds at `from`.
fn within(points: &[(f64, f64)], from: f64, to: f64) -> Vec<(f64, f64)> {
    let first = points.iter().rev().find(|(time, _)| *time <= from).map(|&(_, value)| (from, value));
    first.into_iter().chain(points.iter().copied().filter(|(time, _)| from < *time && *time <= to)).collect()
}

/// Steps; of the points in a column of half a pixel the first, the least, the largest and the last are enough.
fn path(points: &[(f64, f64)], end: f64, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut d = String::new();
    let mut at = 0;
    while at < points.len() {
        let column = |index: usize| (x(points[index].0) * 2.0).floor();
        let next = (at..points.len()).find(|&index| column(index) > column(at)).unwrap_or(points.len());
        let values = || points[at..next].iter().map(|point| point.1);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let mut drawn = vec![points[at].1, least, most, points[next - 1].1];
        drawn.dedup_by(|a, b| a.to_bits() == b.to_bits());
        let (before, between) = if d.is_empty() { ("M", " ") } else { ("H", "V") };
        let _ = write!(d, "{before}{}{between}{}", short(x(points[at].0)), short(y(drawn[0])));
        for value in &drawn[1..] {
            let _ = write!(d, "V{}", short(y(*value)));
        }
        at = next;
    }
    if !d.is_empty() {
        let _ = write!(d, "H{}", short(x(end)));
    }
    d
}

/// Groups of bars: a label and a value for each name, of which some may be missing.
pub(super) fn bars(about: &str, title: &str, names: &[&str], groups: &[(String, Vec<Option<f64>>)]) -> String {
    const BAR: f64 = 13.0;
    let mut body = String::new();
    let mut top = legend(names, &mut body);
    text(&mut body, (0.0, top + 13.0), "", title);
    top += LINE + 8.0;
    let highest = groups.iter().flat_map(|(_, values)| values.iter().flatten()).fold(0.0, |a: f64, b| a.max(*b));
    let widest = groups.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) as f64;
    let left = (widest * 6.6 + 10.0).max(LEFT);
    // The value stands behind its bar.
    let x = |value: f64| value / highest * (WIDTH - left - 44.0);
    for (label, values) in groups {
        let height = values.iter().flatten().count() as f64 * (BAR + 2.0);
        text(&mut body, (left - 6.0, top + height / 2.0 + 3.0), "e", label);
        for (name, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let _ = writeln!(
                body,
                "<rect class=\"b{name}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\"/>",
                short(left),
                short(top),
                short(x(*value).max(0.5))
            );
            text(&mut body, (left + x(*value) + 4.0, top + BAR - 2.5), "q", &format!("{value:.1}"));
            top += BAR + 2.0;
        }
        top += 10.0;
    }
    whole(about, top, &body)
}

/// Groups of ranges from 0 to 1: a label, and for each name the least, middle and largest value. A line shows `fair`.
pub(super) fn ranges(
    about: &str,
    title: &str,
    names: &[&str],
    groups: &[(String, Vec<[f64; 3]>)],
    fair: f64,
) -> String {
    const ROW: f64 = 15.0;
    let mut body = String::new();
    let top = legend(names, &mut body);
    text(&mut body, (0.0, top + 13.0), "", title);
    let widest = groups.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) as f64;
    let left = (widest * 6.6 + 10.0).max(LEFT);
    let x = |share: f64| left + share * (WIDTH - left - RIGHT);
    let begin = top + LINE + 8.0;
    let rows: usize = groups.iter().map(|(_, ranges)| ranges.len()).sum();
    let end = begin + rows as f64 * ROW + groups.len() as f64 * 10.0;
    for (share, label) in ticks(0.0, 1.0, 5) {
        line(&mut body, (x(share), begin - 4.0), (x(share), end));
        text(&mut body, (x(share), end + 14.0), "q m", &label);
    }
    let _ = writeln!(body, "<path class=\"f\" d=\"M{} {}V{}\"/>", short(x(fair)), short(begin - 4.0), short(end));
    let mut y = begin;
    for (label, of) in groups {
        text(&mut body, (left - 6.0, y + of.len() as f64 * ROW / 2.0 + 3.0), "e", label);
        for (name, [least, middle, most]) in of.iter().enumerate() {
            let middle_of_row = short(y + ROW / 2.0);
            let _ = writeln!(
                body,
                "<path class=\"l l{name}\" d=\"M{} {middle_of_row}H{}\"/><circle class=\"b{name}\" cx=\"{}\" cy=\"{middle_of_row}\" r=\"4\"/>",
                short(x(*least)),
                short(x(*most)),
                short(x(*middle))
            );
            y += ROW;
        }
        y += 10.0;
    }
    whole(about, end + 22.0, &body)
}

/// A drawing without its own style, for a page that has it.
///
/// # Errors
/// If it is no drawing of this module.
pub(super) fn without_style(svg: &str) -> Result<String, String> {
    let (before, rest) = svg.split_once("<style>").ok_or("this is no drawing of `cargo xtask generate`")?;
    let (_, after) = rest.split_once("</style>\n").ok_or("a style has an end")?;
    Ok(format!("{before}{after}").trim_end().to_owned())
}

/// Names and their colours in as many lines as they need; returns where they end.
fn legend(names: &[&str], body: &mut String) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for (name, text_of) in names.iter().enumerate() {
        let width = text_of.chars().count() as f64 * 6.6 + 34.0;
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + LINE);
        }
        let _ = writeln!(
            body,
            "<rect class=\"b{name}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"4\"/>",
            short(x),
            short(y + 7.0)
        );
        text(body, (x + 19.0, y + 13.0), "", text_of);
        x += width;
    }
    if names.is_empty() { 0.0 } else { y + LINE + 6.0 }
}

fn line(body: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(body, "<path class=\"g\" d=\"M{} {}L{} {}\"/>", short(x1), short(y1), short(x2), short(y2));
}

fn text(body: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(body, "<text{class} x=\"{}\" y=\"{}\">{}</text>", short(x), short(y), escaped(text));
}

/// The whole drawing. It has no empty line, which would end HTML within Markdown.
fn whole(about: &str, height: f64, body: &str) -> String {
    let about = escaped(about);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{about}\">\n\
         <style>\n.drawing {{ {} }}\n@media (prefers-color-scheme: dark) {{ .drawing {{ {} }} }}\n{}</style>\n{body}</svg>\n",
        short(height),
        LIGHT.trim(),
        DARK.trim(),
        STYLE
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A place in tenths of a pixel.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, about `most` of them, with the decimals that they need.
fn ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let span = high - low;
    let (mut unit, mut decimals) = (1.0, 0);
    while unit * most as f64 > span {
        (unit, decimals) = (unit / 10.0, decimals + 1);
    }
    while unit * 10.0 * most as f64 <= span {
        unit *= 10.0;
    }
    let fits = |step: &f64| (span / step + 1e-9).floor() <= most as f64;
    let step = [1.0, 2.0, 5.0].into_iter().map(|part| part * unit).find(fits).unwrap_or(10.0 * unit);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let decimals = if step >= 1.0 { 0 } else { decimals };
    (first..=last).map(|index| (index as f64 * step, format!("{:.decimals$}", index as f64 * step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |low, high, most| ticks(low, high, most).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(shown(0.0, 83.0, 4), ["0", "20", "40", "60", "80"]);
        assert_eq!(shown(0.0, 0.43, 4), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(shown(38.5, 40.5, 6), ["38.5", "39.0", "39.5", "40.0", "40.5"]);
        assert_eq!(shown(0.0, 1.0, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(shown(10.0, 40.0, 6), ["10", "15", "20", "25", "30", "35", "40"]);
    }

    /// From 1 to 3 s, on an axis where a second is a pixel and a unit is one.
    #[test]
    fn curve_is_steps_that_begin_with_the_value_of_before() {
        let points = within(&[(0.0, 5.0), (2.0, 7.0), (4.0, 9.0)], 1.0, 3.0);
        assert_eq!(points, [(1.0, 5.0), (2.0, 7.0)]);
        assert_eq!(path(&points, 3.0, |x| x, |y| y), "M1 5H2V7H3");
    }

    /// A spike that is shorter than a column is still there.
    #[test]
    fn spike_within_a_column_is_drawn() {
        let points = [(0.0, 1.0), (0.1, 9.0), (0.2, 2.0), (3.0, 1.0)];
        assert_eq!(path(&points, 4.0, |x| x, |y| y), "M0 1V9V2H3V1H4");
    }

    #[test]
    fn drawing_is_one_block_of_html_whose_style_comes_off() {
        let svg = bars("a \"b\" <c>", "Mbit/s", &["x", "y"], &[("0 %".to_owned(), vec![Some(90.0), None])]);
        assert!(!svg.contains("\n\n") && svg.contains("a &quot;b&quot; &lt;c&gt;"), "{svg}");
        let bare = without_style(&svg).expect("it has a style");
        assert!(!bare.contains("style") && bare.contains("class=\"b0\"") && bare.ends_with("</svg>"), "{bare}");
        assert!(without_style("<svg></svg>").is_err());
    }
}

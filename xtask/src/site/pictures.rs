//! The pictures of the papers' pages: curves of runs of the papers' experiments.

use std::ops::ControlFlow;
use std::path::Path;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::run::{Records, run_recording};
use anabranch_units::SimSpan;

use super::drawing::{self, Curve, Panel};
use super::files::read;

/// What a picture shows.
struct Picture {
    name: &'static str,
    about: &'static str,
    file: &'static str,
    /// A name for the legend, and the labels of its variant.
    variants: &'static [(&'static str, &'static [&'static str])],
    panels: &'static [Drawn],
    from: f64,
    to: f64,
}

/// How a series is drawn.
enum By {
    /// The value of a variable.
    Value,
    /// Events a second, in bins of so many seconds.
    Bins(f64),
    /// All events so far.
    Total,
}

/// A panel: all variants, or several series of each.
struct Drawn {
    title: &'static str,
    /// Series of a run whose events are added, one list for each variant in turn, or one for all of them.
    series: &'static [&'static [&'static str]],
    by: By,
    scale: f64,
}

const TEN_FLOWS: &[&str] = &[
    "flow.f0.throughput",
    "flow.f1.throughput",
    "flow.f2.throughput",
    "flow.f3.throughput",
    "flow.f4.throughput",
    "flow.f5.throughput",
    "flow.f6.throughput",
    "flow.f7.throughput",
    "flow.f8.throughput",
    "flow.f9.throughput",
];

const PICTURES: [Picture; 5] = [
    Picture {
        name: "mfast",
        about: "One packet is lost at 38.93 s. FAST hands nothing to the application until it is there again, and holds 53 packets; MFast stops one of five streams, and holds 10.",
        file: "experiments/mfast-2019/fig6.toml",
        variants: &[("FAST", &["Fast TCP"]), ("MFast", &["MFast TCP"])],
        panels: &[
            Drawn {
                title: "Handed to the application, Mbit/s",
                series: &[&["flow.f.goodput"]],
                by: By::Bins(0.1),
                scale: 1e-6,
            },
            Drawn {
                title: "Held for the missing packet, packets",
                series: &[&["flow.f.held"]],
                by: By::Value,
                scale: 1.0,
            },
        ],
        from: 38.5,
        to: 40.0,
    },
    Picture {
        name: "emfast",
        about: "A packet is lost at 38.9 s, and the window is halved. MFast's window climbs back over five seconds, EMFast's within three.",
        file: "experiments/emfast-2019/fig4.toml",
        variants: &[("MFast", &["MFast TCP"]), ("EMFast", &["EMFast TCP"])],
        panels: &[
            Drawn { title: "Congestion window, packets", series: &[&["flow.f1.window"]], by: By::Value, scale: 1.0 },
            Drawn {
                title: "Arrives at the receiver, Mbit/s",
                series: &[&["flow.f1.throughput"]],
                by: By::Bins(0.5),
                scale: 1e-6,
            },
        ],
        from: 37.0,
        to: 48.0,
    },
    Picture {
        name: "multihoming",
        about: "Path 2 is overloaded half of the time. Again and again SCTP-CMT stops on path 1, too, which loses nothing; FAST multihoming does so less, and brings over more.",
        file: "experiments/multihoming-2010/fig10.toml",
        variants: &[("SCTP-CMT", &["cmt", "bursts"]), ("FAST multihoming", &["fast_mh", "bursts"])],
        panels: &[
            Drawn {
                title: "Handed to the application, MB in all",
                series: &[&["flow.cmt.goodput"], &["flow.mh.goodput"]],
                by: By::Total,
                scale: 1.0 / 8e6,
            },
            Drawn {
                title: "Arrives over path 1, packets/s",
                series: &[&["link.sink0.forwarded"]],
                by: By::Bins(0.5),
                scale: 1.0,
            },
        ],
        from: 0.0,
        to: 40.0,
    },
    Picture {
        name: "composite",
        about: "One packet in a hundred is lost at random. SACK halves its window at each loss; Composite TCP takes most of them for random, and its window stays larger.",
        file: "experiments/ctcp-2019/table2.toml",
        variants: &[("SACK", &["SACK", "error=0.01"]), ("Composite TCP", &["CTCP, third duplicate", "error=0.01"])],
        panels: &[
            Drawn { title: "Congestion window, packets", series: &[&["flow.f.window"]], by: By::Value, scale: 1.0 },
            Drawn {
                title: "Handed to the application, Mbit/s",
                series: &[&["flow.f.goodput"]],
                by: By::Bins(2.0),
                scale: 1e-6,
            },
        ],
        from: 0.0,
        to: 60.0,
    },
    Picture {
        name: "rrfast",
        about: "At 30 s the route becomes three times as long. FAST takes the longer round trip for a queue and uses 13 % of the link; RRFast forgets baseRTT and fills it again.",
        file: "experiments/rrfast-2017/rerouting.toml",
        variants: &[("FAST", &["FAST", "longer"]), ("RRFast", &["RRFast", "longer"])],
        panels: &[
            Drawn { title: "All ten flows, Mbit/s", series: &[TEN_FLOWS], by: By::Bins(1.0), scale: 1e-6 },
            Drawn {
                title: "What one flow takes for the empty path, ms",
                series: &[&["flow.f0.base_rtt"]],
                by: By::Value,
                scale: 1e3,
            },
        ],
        from: 20.0,
        to: 60.0,
    },
];

/// Every picture: its file, and the SVG.
pub(super) fn all(root: &Path) -> Result<Vec<(String, String)>, String> {
    PICTURES
        .iter()
        .map(|picture| Ok((format!("docs/explanation/pictures/{}.svg", picture.name), draw(root, picture)?)))
        .collect()
}

fn draw(root: &Path, picture: &Picture) -> Result<String, String> {
    let text = read(root, picture.file)?;
    let document =
        Document::parse_with(picture.file, &text, &mut |base| read(root, base)).map_err(|error| error.to_string())?;
    let experiment = Experiment::parse(document).map_err(|error| error.to_string())?;
    let mut panels: Vec<Panel> =
        picture.panels.iter().map(|panel| Panel { title: panel.title.to_owned(), curves: vec![] }).collect();
    for (name, (_, labels)) in picture.variants.iter().enumerate() {
        let variants = experiment.variants();
        let variant = variants.iter().find(|variant| experiment.labels(variant) == *labels);
        let variant = variant.ok_or_else(|| format!("{}: there is no variant {labels:?}", picture.file))?;
        let mut scenario = experiment.scenario(variant).map_err(|error| error.to_string())?;
        // The run need not be longer than what is drawn.
        scenario.duration = SimSpan::from_micros((picture.to * 1e6) as u64);
        let wanted = |drawn: &Drawn| drawn.series[name % drawn.series.len()];
        let series = picture.panels.iter().flat_map(wanted).map(|name| (*name).to_owned()).collect();
        let records = Records { series, ..Records::default() };
        let (_, trace) = run_recording(&scenario, records, |_, _| ControlFlow::Continue(()))
            .map_err(|error| format!("{}: {error}", picture.file))?;
        for (panel, drawn) in panels.iter_mut().zip(picture.panels) {
            let mut points = vec![];
            for series in wanted(drawn) {
                let found = trace.lookup(series).map_err(|error| format!("{}: {error}", picture.file))?;
                points.extend_from_slice(found.series.as_ref().map_or(&[][..], |series| series.points()));
            }
            match drawn.by {
                By::Value => {}
                By::Bins(width) => points = binned(&points, width, picture.to),
                By::Total => add_up(&mut points),
            }
            points.iter_mut().for_each(|point| point.1 *= drawn.scale);
            panel.curves.push(Curve { name, points });
        }
    }
    let names: Vec<&str> = picture.variants.iter().map(|(name, _)| *name).collect();
    Ok(drawing::curves(picture.about, &names, &panels, (picture.from, picture.to)))
}

/// The size of events per second, in bins of `width` seconds up to `end`.
fn binned(events: &[(f64, f64)], width: f64, end: f64) -> Vec<(f64, f64)> {
    let count = (end / width).round() as usize;
    let mut sums = vec![0.0; count];
    for (time, size) in events {
        if let Some(sum) = sums.get_mut((time / width) as usize) {
            *sum += size;
        }
    }
    sums.into_iter().enumerate().map(|(bin, sum)| (bin as f64 * width, sum / width)).collect()
}

/// Makes of each event the sum of all up to it.
fn add_up(events: &mut [(f64, f64)]) {
    let mut sum = 0.0;
    for (_, size) in events {
        sum += *size;
        *size = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bin_has_the_size_of_its_events_a_second() {
        let events = [(0.1, 3.0), (0.4, 1.0), (0.5, 7.0), (1.9, 5.0), (2.0, 9.0)];
        assert_eq!(binned(&events, 0.5, 2.0), [(0.0, 8.0), (0.5, 14.0), (1.0, 0.0), (1.5, 10.0)]);
    }
}

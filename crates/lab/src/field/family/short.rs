//! A transfer that begins beside a running flow of a rival: how long does it take?

use super::{Better, Case, Description, FigureKind, LAW, MEAN, Measure, RIVAL, column, facts, p};
use crate::field::draw::Draw;
use crate::field::scenario::{Bottleneck, Network};

pub(super) const DESCRIPTION: Description = Description {
    name: "short",
    question: "How long does a transfer take that begins beside a running flow of a rival?",
    drawn: "rate, round trip and buffer as beside; 0.1 to 20 MB, log-uniform, from 20 s after the rival's begin on; at most 180 s",
    figures: &[FigureKind {
        name: "slowdown",
        unit: "",
        better: Better::Low,
        what: "its time over that at half of the rate, one round trip for the handshake included",
    }],
    columns: &[column(0, p(50)), column(0, p(90)), column(0, MEAN)],
};

/// When the transfer begins, and the end of the run, in seconds.
const BEGIN: f64 = 20.0;
const END: f64 = 200.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = Bottleneck {
        rate: draw.log_uniform(8.0, 160.0),
        rtt: draw.log_uniform(10.0, 200.0),
        buffer: draw.one_of(&[0.25, 0.5, 1.0, 2.0, 4.0]),
    };
    let bytes = draw.log_uniform(1e5, 2e7);
    let fair = bytes * 8.0 / (link.rate / 2.0 * 1e6) + link.rtt / 1e3;
    // Ten times the fair time is as good as never.
    let end = (BEGIN + 10.0 * fair).clamp(BEGIN + 10.0, END).round();
    let mut network = Network::new(draw.seed(), end);
    network.bottleneck(link, "");
    let workload = format!("workload = {{ kind = \"messages\", bytes = \"{bytes:.0}B\", count = 1 }}\n");
    network.flow(0, LAW, BEGIN, &workload);
    network.flow(1, RIVAL, 0.0, "");
    Case {
        facts: facts(link, &[("bytes", bytes)]),
        text: network.text(),
        measures: vec![("time".to_owned(), Measure::Completion { bytes: bytes.round() as u64, from: BEGIN, to: end })],
        figures: vec![format!("{{time}} / {fair}")],
    }
}

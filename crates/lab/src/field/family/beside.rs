//! A flow beside one of a rival: what share does it have?

use super::{
    Better, Case, Description, FigureKind, LAW, MEAN, NOTHING, QUEUE, RIVAL, USED, column, delay_ms, facts, goodput, p,
    queue, used,
};
use crate::field::draw::Draw;
use crate::field::scenario::{Bottleneck, Network};
use crate::field::summary::Statistic;

pub(super) const DESCRIPTION: Description = Description {
    name: "beside",
    question: "What share does a flow have beside one of a rival?",
    drawn: "rate 8 to 160 Mbit/s and round trip 10 to 200 ms, both log-uniform; a drop-tail buffer of 0.25, 0.5, 1, 2 or 4 products; the second flow \
            begins 0.5 to 15 s after the first, two draws of each network: the law is first, and second; 60 s and 1500 round trips, at most 180 s, of which the first third \
            does not count",
    figures: &[
        FigureKind { name: "share", unit: "", better: Better::High, what: "the law's part of the goodput of both" },
        USED,
        QUEUE,
    ],
    columns: &[
        column(0, p(10)),
        column(0, p(50)),
        column(0, p(90)),
        column(0, Statistic::Within(0.3, 0.7)),
        column(1, MEAN),
        column(2, p(50)),
    ],
};

/// The law is first, and then second.
pub(super) const TURNS: u32 = 2;

pub(super) fn draw(index: u32, draw: &mut Draw) -> Case {
    let link = Bottleneck {
        rate: draw.log_uniform(8.0, 160.0),
        rtt: draw.log_uniform(10.0, 200.0),
        buffer: draw.one_of(&[0.25, 0.5, 1.0, 2.0, 4.0]),
    };
    let gap = draw.uniform(0.5, 15.0);
    let is_first = index.is_multiple_of(TURNS);
    let end = (60.0 + 1.5 * link.rtt).min(180.0).round();
    let begin = (end / 3.0).round();
    let mut network = Network::new(draw.seed(), end);
    network.bottleneck(link, "");
    // In the order of their begin, so that two rivals have one run in which either is the law.
    let ours = usize::from(!is_first);
    let flows = if is_first { [LAW, RIVAL] } else { [RIVAL, LAW] };
    network.flow(0, flows[0], 0.0, "");
    network.flow(1, flows[1], gap, "");
    Case {
        facts: facts(
            link,
            &[("law_begins_s", if is_first { 0.0 } else { gap }), ("rival_begins_s", if is_first { gap } else { 0.0 })],
        ),
        text: network.text(),
        measures: vec![goodput("first", 0, begin, end), goodput("second", 1, begin, end), queue(begin, end)],
        figures: vec![
            format!("{} / max({{first}} + {{second}}, {NOTHING})", ["{first}", "{second}"][ours]),
            used("({first} + {second})", link.rate),
            delay_ms("{queue}", link.rate),
        ],
    }
}

//! Flows of one law on a link: do they share it?

use super::{
    Better, Case, Description, FigureKind, LAW, MEAN, NOTHING, QUEUE, USED, column, delay_ms, facts, goodput, p, queue,
    used,
};
use crate::field::draw::Draw;
use crate::field::scenario::Network;

pub(super) const DESCRIPTION: Description = Description {
    name: "kind",
    question: "Do flows of one law share a link, with a short queue?",
    drawn: "rate, round trip and buffer as alone; 2, 3, 5, 10, 20 or 50 flows that begin within 10 s; 90 s, of which the first 30 do not count",
    figures: &[
        FigureKind { name: "jain", unit: "", better: Better::High, what: "Jain's index of the goodputs" },
        FigureKind { name: "least", unit: "", better: Better::High, what: "the least goodput over the mean" },
        USED,
        QUEUE,
    ],
    columns: &[
        column(0, p(10)),
        column(0, p(50)),
        column(1, p(10)),
        column(2, MEAN),
        column(3, p(50)),
        column(3, p(90)),
    ],
};

/// When the measurement begins and ends, in seconds.
const BEGIN: f64 = 30.0;
const END: f64 = 90.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = super::bottleneck(draw);
    let flows = draw.one_of(&[2, 3, 5, 10, 20, 50]);
    let mut network = Network::new(draw.seed(), END);
    network.bottleneck(link, "");
    for index in 0..flows {
        network.flow(index, LAW, draw.uniform(0.0, 10.0), "");
    }
    let mut measures: Vec<_> = (0..flows).map(|index| goodput(&format!("goodput{index}"), index, BEGIN, END)).collect();
    measures.push(queue(BEGIN, END));
    Case {
        facts: facts(link, &[("flows", flows as f64)]),
        text: network.text(),
        measures,
        figures: vec![
            "jain({goodput#})".to_owned(),
            format!("min({{goodput#}}) * {flows} / max(total({{goodput#}}), {NOTHING})"),
            used("total({goodput#})", link.rate),
            delay_ms("{queue}", link.rate),
        ],
    }
}

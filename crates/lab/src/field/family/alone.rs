//! One flow on a link: does it fill it, and how long is its queue?

use super::{Case, Description, LAW, MEAN, QUEUE, USED, column, delay_ms, facts, goodput, p, queue, used};
use crate::field::draw::Draw;
use crate::field::scenario::Network;

pub(super) const DESCRIPTION: Description = Description {
    name: "alone",
    question: "Does one flow fill the link, with a short queue?",
    drawn: "rate 5 to 200 Mbit/s and round trip 10 to 250 ms, both log-uniform; a drop-tail buffer of 0.1, 0.25, 0.5, 1, 2 or 4 products; random loss \
            of 0 (two fifths), 0.1, 1 or 3 %; 20 s and 200 round trips, of which the first third does not count",
    figures: &[USED, QUEUE],
    columns: &[column(0, p(5)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = super::bottleneck(draw);
    let loss = draw.one_of(&[0.0, 0.0, 0.001, 0.01, 0.03]);
    let end = (20.0 + link.rtt / 5.0).round();
    let begin = (end / 3.0).round();
    let mut network = Network::new(draw.seed(), end);
    let error = if loss > 0.0 { format!("error = {{ kind = \"uniform\", rate = {loss} }}\n") } else { String::new() };
    network.bottleneck(link, &error);
    network.flow(0, LAW, 0.0, "");
    Case {
        facts: facts(link, &[("loss", loss)]),
        text: network.text(),
        measures: vec![goodput("goodput", 0, begin, end), queue(begin, end)],
        figures: vec![used("{goodput}", link.rate), delay_ms("{queue}", link.rate)],
    }
}

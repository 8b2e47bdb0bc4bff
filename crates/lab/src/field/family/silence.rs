//! A link that is silent for a while: does the flow go on after it, and without sending more than fits?

use super::{Case, Description, LAW, LOST, MEAN, Measure, USED, column, facts, goodput, lost, p, used};
use crate::field::draw::Draw;
use crate::field::scenario::{Bottleneck, Network};

pub(super) const DESCRIPTION: Description = Description {
    name: "silence",
    question: "Does a flow go on after a silence of the link, and without losses of its own?",
    drawn: "rate 5 to 200 Mbit/s and round trip 10 to 200 ms, both log-uniform; a drop-tail buffer of 0.5, 1, 2 or 4 products; every 8 to 20 s the link \
            is silent for 0.2 to 5 s, log-uniform: it loses everything, or keeps it and has 20 kbit/s; 60 s, of which the first 5 do not count",
    figures: &[USED, LOST],
    columns: &[column(0, p(10)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

/// When the measurement begins and ends, in seconds.
const BEGIN: f64 = 5.0;
const END: f64 = 60.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = Bottleneck {
        rate: draw.log_uniform(5.0, 200.0),
        rtt: draw.log_uniform(10.0, 200.0),
        buffer: draw.one_of(&[0.5, 1.0, 2.0, 4.0]),
    };
    let loses = draw.below(2);
    // As the scenario has them.
    let every = libm::round(draw.uniform(8.0, 20.0) * 10.0) / 10.0;
    let silence = libm::round(draw.log_uniform(0.2, 5.0) * 100.0) / 100.0;
    let more = match loses {
        0 => format!(
            "rate_changes = [{{ at = \"{:.2}s\", rate = \"20kbit/s\" }}]\nrate_period = \"{every:.1}s\"\n",
            every - silence
        ),
        _ => format!("outages = [{{ from = \"{every:.1}s\", every = \"{every:.1}s\", for = \"{silence:.2}s\" }}]\n"),
    };
    let mut network = Network::new(draw.seed(), END);
    network.bottleneck(link, &more);
    network.flow(0, LAW, 0.0, "");
    // What the link carries in the mean of its periods.
    let rate = link.rate * (1.0 - silence / every);
    Case {
        facts: facts(link, &[("loses", loses as f64), ("every_s", every), ("silence_s", silence)]),
        text: network.text(),
        measures: vec![
            goodput("goodput", 0, BEGIN, END),
            ("drops".to_owned(), Measure::Drops { from: BEGIN, to: END }),
        ],
        figures: vec![used("{goodput}", rate), lost(END - BEGIN)],
    }
}

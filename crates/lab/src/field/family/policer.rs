//! A policer: how much of its rate does a flow get, and what does it lose?

use super::{Case, Description, LAW, LOST, MEAN, Measure, USED, column, facts, goodput, lost, p, used};
use crate::field::draw::Draw;
use crate::field::scenario::{Bottleneck, Network};

pub(super) const DESCRIPTION: Description = Description {
    name: "policer",
    question: "How much does a flow get through a policer, and what does it lose?",
    drawn: "rate 10 to 200 Mbit/s and round trip 10 to 150 ms, both log-uniform; a policer of 0.2 to 0.8 of the rate with a bucket of 15 to 500 kB, \
            log-uniform; 30 s, of which the first 10 do not count",
    figures: &[USED, LOST],
    columns: &[column(0, p(10)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

/// When the measurement begins and ends, in seconds.
const BEGIN: f64 = 10.0;
const END: f64 = 30.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = Bottleneck { rate: draw.log_uniform(10.0, 200.0), rtt: draw.log_uniform(10.0, 150.0), buffer: 1.0 };
    let share = draw.uniform(0.2, 0.8);
    let bucket = draw.log_uniform(15.0, 500.0);
    // As the scenario has it.
    let rate = libm::round(link.rate * share * 1e3) / 1e3;
    let mut network = Network::new(draw.seed(), END);
    let policer = format!("error = {{ kind = \"policer\", rate = \"{rate:.3}Mbit/s\", burst = \"{bucket:.0}kB\" }}\n");
    network.bottleneck(link, &policer);
    network.flow(0, LAW, 0.0, "");
    Case {
        facts: facts(link, &[("policed_mbit_per_s", rate), ("bucket_kb", bucket)]),
        text: network.text(),
        measures: vec![
            goodput("goodput", 0, BEGIN, END),
            ("drops".to_owned(), Measure::Drops { from: BEGIN, to: END }),
        ],
        figures: vec![used("{goodput}", rate), lost(END - BEGIN)],
    }
}

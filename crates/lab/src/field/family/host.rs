//! Hosts whose programs are woken late: does the flow fill the link?

use super::{Case, Description, LAW, MEAN, QUEUE, USED, column, delay_ms, facts, goodput, p, queue, used};
use crate::field::draw::Draw;
use crate::field::scenario::Network;

pub(super) const DESCRIPTION: Description = Description {
    name: "host",
    question: "Does a flow fill the link if its hosts wake up late?",
    drawn: "rate, round trip and buffer as alone, no loss; each wake-up of both hosts is 0.1 to 5 ms late on average, exponential; 30 s, of which the first \
            10 do not count",
    figures: &[USED, QUEUE],
    columns: &[column(0, p(10)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

/// When the measurement begins and ends, in seconds.
const BEGIN: f64 = 10.0;
const END: f64 = 30.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = super::bottleneck(draw);
    let late = draw.log_uniform(0.1, 5.0);
    let mut network = Network::new(draw.seed(), END);
    network.bottleneck(link, "");
    network.flow(0, LAW, 0.0, "");
    for node in ["S", "D"] {
        network.add(&format!(
            "\n[[host]]\nnode = \"{node}\"\nreads = \"batch\"\ndelay = {{ kind = \"exponential\", mean = \"{late}ms\" }}\n"
        ));
    }
    Case {
        facts: facts(link, &[("late_ms", late)]),
        text: network.text(),
        measures: vec![goodput("goodput", 0, BEGIN, END), queue(BEGIN, END)],
        figures: vec![used("{goodput}", link.rate), delay_ms("{queue}", link.rate)],
    }
}

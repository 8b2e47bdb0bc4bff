//! A radio link: does the flow use what it has?

use super::{Case, Description, LAW, MEAN, QUEUE, USED, column, delay_ms, facts, goodput, p, queue, used};
use crate::field::draw::Draw;
use crate::field::scenario::{Bottleneck, Network};

pub(super) const DESCRIPTION: Description = Description {
    name: "radio",
    question: "Does a flow use a radio link: steps of the rate, frames, acknowledgements in batches, pauses, hand-overs?",
    drawn: "rate 5 to 100 Mbit/s and round trip 20 to 120 ms, both log-uniform; a drop-tail buffer of 1, 2 or 4 products; one of: the rate falls to a \
            tenth to four fifths and returns, every 2 to 10 s; frames every 2 to 12 ms; acknowledgements every 4 to 40 ms; pauses of up to 20 to 100 ms \
            about every second; a hand-over every 5 to 20 s that cuts the link for 20 to 150 ms and changes the round trip by up to 30 %; 40 s, of which \
            the first 10 do not count",
    figures: &[USED, QUEUE],
    columns: &[column(0, p(10)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

/// When the measurement begins and ends, in seconds.
const BEGIN: f64 = 10.0;
const END: f64 = 40.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = Bottleneck {
        rate: draw.log_uniform(5.0, 100.0),
        rtt: draw.log_uniform(20.0, 120.0),
        buffer: draw.one_of(&[1.0, 2.0, 4.0]),
    };
    let kind = draw.below(5);
    let (a, b) = (draw.uniform(0.0, 1.0), draw.uniform(0.0, 1.0));
    let between = |low: f64, high: f64, part: f64| low + (high - low) * part;
    // The mean rate over the nominal one.
    let mut carried = 1.0;
    let more = match kind {
        0 => {
            let (share, half) = (between(0.1, 0.8, a), between(1.0, 5.0, b));
            carried = f64::midpoint(1.0, share);
            format!(
                "rate_changes = [{{ at = \"{half:.2}s\", rate = \"{:.3}Mbit/s\" }}]\nrate_period = \"{:.2}s\"\n",
                link.rate * share,
                2.0 * half
            )
        }
        1 => format!("hold = {{ kind = \"grid\", every = \"{:.1}ms\" }}\n", between(2.0, 12.0, a)),
        2 => format!(
            "reverse = {{ hold = {{ kind = \"grid\", every = \"{:.1}ms\" }}, queue = {{ kind = \"drop_tail\", packets = 1000000 }} }}\n",
            between(4.0, 40.0, a)
        ),
        3 => format!("hold = {{ kind = \"stalls\", every = \"1s\", most = \"{:.0}ms\" }}\n", between(20.0, 100.0, a)),
        _ => {
            let (every, cut) = (between(5.0, 20.0, a), between(20.0, 150.0, b));
            format!(
                "delay_changes = [{{ at = \"{every:.1}s\", delay = \"{:.3}ms\" }}]\ndelay_period = \"{:.1}s\"\n\
                 outages = [{{ from = \"{every:.1}s\", every = \"{every:.1}s\", for = \"{cut:.0}ms\" }}]\n",
                link.delay() + link.rtt * 0.3 * b / 2.0,
                2.0 * every
            )
        }
    };
    let mut network = Network::new(draw.seed(), END);
    network.bottleneck(link, &more);
    network.flow(0, LAW, 0.0, "");
    let rate = link.rate * carried;
    Case {
        facts: facts(link, &[("kind", kind as f64), ("first", a), ("second", b)]),
        text: network.text(),
        measures: vec![goodput("goodput", 0, BEGIN, END), queue(BEGIN, END)],
        figures: vec![used("{goodput}", rate), delay_ms("{queue}", rate)],
    }
}

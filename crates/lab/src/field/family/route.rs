//! A route that changes: does the flow fill the link afterwards?

use super::{Case, Description, LAW, MEAN, QUEUE, USED, column, delay_ms, facts, goodput, p, queue, used};
use crate::field::draw::Draw;
use crate::field::scenario::Network;

pub(super) const DESCRIPTION: Description = Description {
    name: "route",
    question: "Does a flow fill the link again after its route has become longer or shorter?",
    drawn: "rate, round trip and buffer as alone, no loss; the round trip becomes 1.15, 1.3, 1.6, 2.5 or 5 times as long at 20 s; in every third \
            draw it also returns at 60 s; from 10 s after each change on, for 30 s",
    figures: &[USED, QUEUE],
    columns: &[column(0, p(10)), column(0, p(50)), column(0, MEAN), column(1, p(50)), column(1, p(90))],
};

/// When the route changes first, from one change to the next, how long after a change the measurement begins, and how long it is, in seconds.
const FIRST: f64 = 20.0;
const NEXT: f64 = 40.0;
const LATER: f64 = 10.0;
const LONG: f64 = 30.0;

pub(super) fn draw(draw: &mut Draw) -> Case {
    let link = super::bottleneck(draw);
    let times = draw.one_of(&[1.15, 1.3, 1.6, 2.5, 5.0]);
    let changes: usize = draw.one_of(&[1, 1, 2]);
    let end = FIRST + NEXT * changes as f64;
    let mut network = Network::new(draw.seed(), end);
    let (near, far) = (link.delay(), link.delay() + link.rtt * (times - 1.0) / 2.0);
    let change = |index: usize| {
        let (at, delay) = (FIRST + NEXT * index as f64, if index.is_multiple_of(2) { far } else { near });
        format!("{{ at = \"{at:.0}s\", delay = \"{delay:.3}ms\" }}")
    };
    let changes_text: Vec<String> = (0..changes).map(change).collect();
    network.bottleneck(link, &format!("delay_changes = [{}]\n", changes_text.join(", ")));
    network.flow(0, LAW, 0.0, "");
    let mut measures = Vec::new();
    for index in 0..changes {
        let begin = FIRST + NEXT * index as f64 + LATER;
        measures.push(goodput(&format!("goodput{index}"), 0, begin, begin + LONG));
        let (_, measure) = queue(begin, begin + LONG);
        measures.push((format!("queue{index}"), measure));
    }
    let mean = |name: &str| {
        let terms: Vec<String> = (0..changes).map(|index| format!("{{{name}{index}}}")).collect();
        format!("total({}) / {changes}", terms.join(", "))
    };
    Case {
        facts: facts(link, &[("times", times), ("changes", changes as f64)]),
        text: network.text(),
        measures,
        figures: vec![used(&mean("goodput"), link.rate), delay_ms(&mean("queue"), link.rate)],
    }
}

use crate::controller::{Cause, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

fn mark(flow: &mut Flow) {
    flow.loss(Signal::Ecn, Cause::Congestion);
}

/// [rfc-8257] sec. 3.3: alpha begins with 1, so the first mark halves as Reno does. A round of 50 with half of them marked: alpha = 15/16 + 1/32.
#[test]
fn alpha_follows_the_share_of_marks() {
    let mut flow = Flow::new("dctcp", &[("initial_window", "100")]);
    mark(&mut flow);
    assert_near(flow.window(), 50.0, 1e-12);
    flow.newly_marked = 25.0;
    flow.round();
    assert_near(flow.gauge("alpha"), 15.0 / 16.0 + 1.0 / 32.0, 1e-12);
    // Without marks it decays by a sixteenth a round.
    flow.rounds(10);
    assert_near(flow.gauge("alpha"), 0.96875 * 0.524_460_5, 1e-6);
}

/// A mark reduces the window by alpha/2: after 100 rounds without a mark alpha is (15/16)^100 = 0.001574.
#[test]
fn a_rare_mark_takes_little() {
    let mut flow = Flow::new("dctcp", &[("initial_window", "100")]);
    mark(&mut flow);
    flow.rounds(100);
    let before = flow.window();
    mark(&mut flow);
    assert_near(flow.window(), before * (1.0 - 0.001_574 / 2.0), 1e-5);
    // The window grows by a segment a round, as Reno's.
    let before = flow.window();
    flow.round();
    assert_near(flow.window(), before + 1.0, 0.01);
}

/// If all segments are marked, alpha stays 1, and the law is Reno.
#[test]
fn all_marks_are_as_good_as_losses() {
    let mut flow = Flow::new("dctcp", &[("initial_window", "64")]);
    for _ in 0..5 {
        flow.newly_marked = flow.window();
        flow.round();
    }
    assert_near(flow.gauge("alpha"), 1.0, 1e-12);
    let before = flow.window();
    mark(&mut flow);
    assert_near(flow.window(), before / 2.0, 1e-12);
    flow.loss(Signal::DupAcks, Cause::Congestion);
    assert_near(flow.window(), before / 4.0, 1e-12);
    flow.undo();
    assert_near(flow.window(), before / 2.0, 1e-12);
}

/// [dctcp-2010] sec. 3.3: one flow on a path that holds 100 segments, with marks from K = 20 on. The queue varies by sqrt(2 (100 + 20))/2 = 7.7
/// segments below K + 1, so its mean is 17 and it is never empty; alpha is about sqrt(2/120) = 0.13.
#[test]
fn the_queue_swings_below_the_threshold() {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    path.marks_from = 20.0;
    let flow = path.flow("dctcp", &[], 100);
    path.run(60.0);
    let (queue, rates) = path.means(60.0);
    assert!((14.0..22.0).contains(&queue), "{queue}");
    assert_near(rates[0], 1000.0, 0.005);
    assert_near(path.gauge(flow, "alpha"), 0.129, 0.35);
    let mut reno = Bottleneck::new(1000.0);
    reno.paced = true;
    reno.marks_from = 20.0;
    reno.flow("reno", &[], 100);
    reno.run(60.0);
    let (_, rates) = reno.means(60.0);
    assert!(rates[0] < 950.0, "Reno halves, and the link runs dry: {}", rates[0]);
}

/// [dctcp-2010] sec. 3.1: two flows get equal rates.
#[test]
fn two_flows_share_the_link() {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    path.marks_from = 20.0;
    path.flow("dctcp", &[], 100);
    path.run(10.0);
    path.flow("dctcp", &[], 100);
    path.run(120.0);
    let (queue, rates) = path.means(60.0);
    assert!(rates[0] / rates[1] < 1.3 && rates[1] / rates[0] < 1.3 && queue < 25.0, "{rates:?}, {queue}");
}

//! Alpha by the rate, the detection of rivals, and competition: the parts that `anabranch` has and `yielding` has not.

use anabranch_units::Span;

use crate::controller::{Cause, Limit, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

/// alpha(x) = 20 √(x/6250): n flows with any RTT on a link of c segments a second have the queueing delay 20 √(n/(6250 c)) and a rate of c/n each.
#[test]
fn the_delay_grows_with_the_root_of_the_flows() {
    for (rate, count) in [(1000.0, 1), (1000.0, 4), (4000.0, 9)] {
        let mut path = Bottleneck::new(rate);
        // Without noise, and with flows that all know the path.
        let pairs = [("initial_window", "1"), ("noise", "off"), ("drain", "off")];
        (0..count).for_each(|number| _ = path.flow("anabranch", &pairs, 60 + 20 * number));
        path.run(120.0);
        let (queue, rates) = path.means(30.0);
        let (flows, delay) = (count as f64, queue / rate);
        // What is in flight is whole: of the eight segments that wait at 1000/s it may be one.
        assert_near(delay, 20.0 * (flows / (6250.0 * rate)).sqrt(), 0.13);
        for got in rates {
            assert_near(got, rate / flows, 0.1);
        }
    }
}

/// A route of 376 instead of 125 ms. The look that follows the change may fall into a drain; the next look is 2.5 s and six round trips later.
#[test]
fn a_longer_route_is_filled() {
    let mut path = Bottleneck::new(1250.0);
    let flow = path.flow("anabranch", &[], 125);
    path.run(30.0);
    path.reroute(flow, 376);
    path.run(25.0);
    assert_near(path.gauge(flow, "rtt_base_s"), 0.3768, 1e-6);
    // In the last ten seconds a drain takes half of the window for three round trips.
    let (_, rates) = path.means(10.0);
    assert!(rates[0] > 0.9 * 1250.0, "{} of 1250 segments/s", rates[0]);
}

/// Beside CUBIC, on a buffer of four pipes, the law without competition has the rate alpha/delay. With competition both flows have a share, and the
/// rival is not taken for a longer route.
#[test]
fn a_rival_does_not_starve_the_law() {
    let share = |name: &str| {
        let mut path = Bottleneck::new(2000.0);
        (path.buffer, path.paced) = (400.0, true);
        let flow = path.flow(name, &[], 50);
        path.run(15.0);
        path.flow("cubic", &[], 50);
        path.run(100.0);
        let (_, rates) = path.means(70.0);
        (rates[0] / 2000.0, path, flow)
    };
    let (yields, ..) = share("yielding");
    let (competes, path, flow) = share("anabranch");
    assert!(yields < 0.15, "{yields}");
    assert!((0.2..0.75).contains(&competes), "{competes}");
    assert!(path.gauge(flow, "reroutes") < 1.0, "a rival is no route");
}

/// A flow that has filled `rate` segments a second on a path of `base` ms. Its application, not its window, limits it.
fn filling(rate: f64, base: f64, window: &str) -> Flow {
    let mut flow = Flow::new("anabranch", &[("initial_window", window)]);
    (flow.limit, flow.flight_cap, flow.rtt) = (Limit::Application, rate * base / 1e3, Span::from_secs_f64(base / 1e3));
    flow.rounds(3);
    flow
}

/// Whether a loss begins a competition when a queue of `queue` ms has stood for three round trips.
fn competes_after(mut flow: Flow, queue: f64, signal: Signal) -> bool {
    flow.rtt += Span::from_secs_f64(queue / 1e3);
    flow.rounds(3);
    let window = flow.window();
    flow.loss(signal, Cause::Unknown);
    let competes = flow.gauge("competing") > 0.0;
    if competes && signal == Signal::DupAcks {
        assert_near(flow.window(), 0.7 * window, 1e-12);
    }
    competes
}

/// A loss is a rival's if the queueing delay was, for a round trip, 1.75 times that of alpha and of the least noise, a millisecond. At c segments a second
/// alpha has 20/√(6250 c): 2.4 ms at 100,000/9, with the noise √(2.4² + 1) = 2.6 ms; 4.8 ms at a quarter of that rate, with the noise 4.903 ms. At 50 a
/// second it has 36 ms, but a queue of more than 30 ms is not ours: 1.75/2.25 of that are 23.3 ms. At 1000 a second on a path of 600 ms alpha and noise have
/// 8.06 ms, but a look lets a thirty-second of the path pass, 18.75 ms: 1.75/2.25 of that are 14.58 ms.
#[test]
fn a_loss_shows_a_rival_from_seven_quarters_of_alphas_delay_on() {
    let cases = [
        (1e5 / 9.0, 50.0, "600", 4.55),
        (2.5e4 / 9.0, 50.0, "150", 8.5804),
        (50.0, 100.0, "20", 23.333),
        (1000.0, 600.0, "700", 14.583),
    ];
    for (rate, base, window, most) in cases {
        let competes = |queue: f64, signal| competes_after(filling(rate, base, window), queue, signal);
        assert!(!competes(0.98 * most, Signal::DupAcks), "{most} ms at {rate}/s are ours");
        assert!(competes(1.02 * most, Signal::DupAcks), "{most} ms at {rate}/s");
        assert!(competes(1.02 * most, Signal::Timeout));
        assert!(!competes(1.02 * most, Signal::Ecn), "a mark is no overflow");
    }
}

/// A queue is one that stands for a round trip, and a window of seven segments does not show whose it is.
#[test]
fn a_loss_behind_a_delay_of_a_moment_or_of_a_small_window_shows_no_rival() {
    let mut flow = filling(1e5 / 9.0, 50.0, "600");
    flow.rtt += Span::from_millis(50);
    flow.ack(1.0);
    flow.loss(Signal::DupAcks, Cause::Unknown);
    assert!(flow.gauge("competing") < 1.0, "one sample is no queue");
    assert!(competes_after(filling(80.0, 100.0, "8"), 25.0, Signal::DupAcks));
    assert!(!competes_after(filling(70.0, 100.0, "7"), 25.0, Signal::DupAcks));
}

/// At 444 segments a second alpha has 12 ms, with the least noise √(12² + 1) = 12.04 ms: a loss shows a rival at a queue of 1.75 times that, 21.1 ms. A stall of
/// 70.7 ms is a noise of 70.7² ms/s = 5 ms, and √(12² + 5²) = 13: then it takes 22.75 ms, also when the noise itself is over.
#[test]
fn a_queue_that_a_stall_has_left_is_no_rivals() {
    let quiet = || {
        let mut flow = filling(1600.0 / 3.6, 100.0, "50");
        flow.rounds(10);
        flow
    };
    let stalled = || {
        let mut flow = quiet();
        let (path, stall) = (flow.rtt, Span::from_micros(70_711));
        (flow.now, flow.rtt) = (flow.now + stall, path + stall);
        flow.ack(1.0);
        flow.rtt = path;
        flow.rounds(20);
        assert!(flow.gauge("noise_s") < 0.001, "{}", flow.gauge("noise_s"));
        flow
    };
    assert!(competes_after(quiet(), 22.0, Signal::DupAcks));
    assert!(!competes_after(stalled(), 22.0, Signal::DupAcks));
    assert!(competes_after(stalled(), 23.5, Signal::DupAcks));
}

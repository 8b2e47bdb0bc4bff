//! Alpha by the rate, the detection of rivals, and competition: the parts that `anabranch` has and `yielding` has not.

use crate::testing::assert_near;
use crate::testing::bottleneck::Bottleneck;

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

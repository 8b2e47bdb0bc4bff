use super::*;

/// A path of 125 ms on which the law shrinks the window at time 0 from 20 to `to` at `rtt` seconds; then samples of
/// `rtt_after` seconds arrive every 10 ms until one decides. Returns the conclusion.
fn after_decrease(reroute: &mut Reroute, rule: &Rule, to: f64, rtt: f64, rtt_after: f64) -> Route {
    reroute.on_update(0.0, 20.0, to, rtt, rule);
    for centi in 1..1000 {
        let now = f64::from(centi) * 0.01;
        if reroute.on_rtt(now, rtt_after, 0.125, rule) == Route::Longer {
            assert!(now >= rule.wait * rtt, "{now} s is before the end of the wait");
            return Route::Longer;
        }
    }
    Route::Same
}

#[track_caller]
fn expect(rule: Rule, to: f64, rtt: f64, rtt_after: f64, decreases: usize, route: Route) {
    let mut reroute = Reroute::new();
    let routes: Vec<_> = (0..decreases).map(|_| after_decrease(&mut reroute, &rule, to, rtt, rtt_after)).collect();
    assert_eq!(routes.last(), Some(&route), "{rule:?}: {routes:?}");
    assert!(routes[..decreases - 1].iter().all(|&route| route == Route::Same), "{rule:?}: {routes:?}");
}

/// rrfast-2017 scenario 1: 376 ms over a base of 125 ms, and no decrease helps. All readings see it, the third after two.
#[test]
fn a_longer_route_is_seen() {
    expect(Rule::NOT_NEAR, 19.9, 0.376, 0.376, 1, Route::Longer);
    expect(Rule::LITERAL, 19.9, 0.376, 0.376, 1, Route::Longer);
    expect(Rule::NO_FALL, 18.0, 0.376, 0.376, 2, Route::Longer);
}

/// A queue of 30 ms in equilibrium, where FAST shrinks by a hundredth of a segment at a constant RTT: only the literal reading
/// takes it for a reroute.
#[test]
fn an_equilibrium_is_no_route_but_literally() {
    expect(Rule::NOT_NEAR, 19.99, 0.155, 0.155, 9, Route::Same);
    expect(Rule::NO_FALL, 19.99, 0.155, 0.155, 9, Route::Same);
    expect(Rule::LITERAL, 19.99, 0.155, 0.155, 1, Route::Longer);
}

/// The thresholds are exact: 1.5 · 125 = 187.5 ms is near; 0.98 of 400 ms is no fall; a decrease of a tenth counts.
#[test]
fn thresholds_are_exact() {
    expect(Rule::NOT_NEAR, 19.0, 0.376, 0.1875, 1, Route::Same);
    expect(Rule::NOT_NEAR, 19.0, 0.376, 0.187_501, 1, Route::Longer);
    expect(Rule::NO_FALL, 18.0, 0.4, 0.98 * 0.4, 2, Route::Longer);
    expect(Rule::NO_FALL, 18.0, 0.4, 0.98 * 0.4 - 1e-6, 2, Route::Same);
    expect(Rule::NO_FALL, 18.001, 0.4, 0.4, 9, Route::Same);
}

/// A queue that drains: one sample near baseRTT within the wait is relief.
#[test]
fn one_low_sample_is_relief() {
    let mut reroute = Reroute::new();
    reroute.on_update(0.0, 20.0, 15.0, 0.3, &Rule::NOT_NEAR);
    for (now, rtt) in [(0.1, 0.3), (0.5, 0.13), (0.61, 0.3)] {
        assert_eq!(reroute.on_rtt(now, rtt, 0.125, &Rule::NOT_NEAR), Route::Same);
    }
}

/// Steps of 4 % each: the third one makes a tenth, long after the wait; a step up in between begins a new count.
#[test]
fn a_tenth_may_take_its_time() {
    for (third, route) in [(17.69, Route::Longer), (18.1, Route::Same), (18.5, Route::Same)] {
        let rule = Rule { futile_needed: 1, ..Rule::NO_FALL };
        let mut reroute = Reroute::new();
        let steps = [(0.0, 20.0, 19.2), (2.0, 19.2, 18.43), (4.0, 18.43, third)];
        let routes = steps.map(|(now, from, to)| {
            reroute.on_update(now, from, to, 0.376, &rule);
            reroute.on_rtt(now + 1.0, 0.376, 0.125, &rule)
        });
        assert_eq!(routes, [Route::Same, Route::Same, route], "to {third}");
    }
}

/// After relief in between, the futile decreases are no longer consecutive.
#[test]
fn futile_decreases_must_follow_each_other() {
    let mut reroute = Reroute::new();
    let routes = [0.4, 0.2, 0.4].map(|rtt| after_decrease(&mut reroute, &Rule::NO_FALL, 15.0, 0.4, rtt));
    assert_eq!(routes, [Route::Same; 3]);
}

/// Without samples there is no conclusion: the first sample after the wait decides.
#[test]
fn silence_is_no_evidence() {
    let mut reroute = Reroute::new();
    reroute.on_update(0.0, 20.0, 15.0, 0.376, &Rule::NOT_NEAR);
    assert_eq!(reroute.on_rtt(60.0, 0.13, 0.125, &Rule::NOT_NEAR), Route::Same);
}

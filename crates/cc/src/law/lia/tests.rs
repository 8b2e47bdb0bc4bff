use crate::law::lia::alpha;
use crate::testing::{Flow, assert_near, summary};

/// [rfc-6356] sec. 3: with one path alpha is one; of two equal ones 2w · (w/rtt²)/(2w/rtt)² = 1/2.
#[test]
fn alpha_is_one_over_the_number_of_equal_paths() {
    for count in 1..5_usize {
        let (alpha, total) = alpha(std::iter::repeat_n((30.0, 0.1), count)).unwrap();
        assert_near(alpha, 1.0 / count as f64, 1e-12);
        assert_near(total, 30.0 * count as f64, 1e-12);
    }
    assert_eq!(alpha(std::iter::empty()), None);
}

/// Windows 10 and 20, RTTs 50 and 200 ms: the maximum is 10/0.0025 = 4000, the rates are 200 + 100; alpha = 30 · 4000/90000 = 4/3.
#[test]
fn a_case_by_hand() {
    let (alpha, _) = alpha([(10.0, 0.05), (20.0, 0.2)].into_iter()).unwrap();
    assert_near(alpha, 4.0 / 3.0, 1e-12);
}

/// Two equal paths grow together as one TCP: a quarter of a segment each and round with alpha 1/2, as w/(2w) · 1/2.
#[test]
fn the_paths_together_grow_as_one() {
    let mut flow = Flow::new("lia", &[("initial_window", "40")]);
    flow.lose(crate::controller::Cause::Congestion);
    let group = [summary(0, 20.0, 100), summary(1, 20.0, 100)];
    flow.controller.on_group(&flow.view(), &group);
    flow.round();
    assert_near(flow.window(), 20.25, 1e-9);
    // On one path LIA is Reno.
    let mut flow = Flow::new("lia", &[("initial_window", "40")]);
    flow.lose(crate::controller::Cause::Congestion);
    flow.round();
    assert_near(flow.window(), 21.0, 0.03);
}

/// [rfc-6356] sec. 3: no path grows faster than a TCP would there, however short the RTT of another one is.
#[test]
fn no_path_is_more_aggressive_than_reno() {
    let mut flow = Flow::new("lia", &[("initial_window", "40")]);
    flow.lose(crate::controller::Cause::Congestion);
    let group = [summary(0, 20.0, 100), summary(1, 10.0, 1)];
    flow.controller.on_group(&flow.view(), &group);
    flow.round();
    assert!(flow.window() <= 21.0 && flow.window() > 20.9, "{}", flow.window());
}

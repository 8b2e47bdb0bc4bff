use anabranch_units::Span;

use super::mode::Mode;
use super::{Anabranch, AnabranchSettings};
use crate::controller::{Cause, Controller, Departure, Loss, PathSummary, Restart, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

const MODE: &str = "mode";
const GROW: f64 = 0.0;
const CRUISE: f64 = 1.0;

/// alpha(x) = 20 √(x/6250), and with the least noise, a millisecond, √(alpha² + (x ms)²): n flows on a link of c segments a second, x = c/n each, queue
/// n of it.
#[test]
fn queueing_delay_grows_with_root_of_flows() {
    for (rate, count) in [(2000.0, 1), (6250.0, 1), (20000.0, 1), (2000.0, 2)] {
        let mut path = Bottleneck::new(rate);
        path.paced = true;
        // Without drains, and with flows that all know the path.
        let pairs = [("initial_window", "1"), ("drain_interval", "60s")];
        (0..count).for_each(|number| _ = path.flow("anabranch", &pairs, 60 + 20 * number));
        // Before the base is forgotten.
        path.run(20.0);
        let (queue, rates) = path.means(8.0);
        let share = rate / count as f64;
        let alpha = (20.0 * 20.0 * share / 6250.0 + (share * 1e-3).powi(2)).sqrt();
        assert_near(queue, alpha * count as f64, 0.1);
        assert_near(rates.iter().sum::<f64>(), rate, 0.02);
    }
}

/// A flow that begins while others run sees the path in their common drains.
#[test]
fn late_comers_share_fairly_and_queue_stays_short() {
    let mut path = Bottleneck::new(4000.0);
    (path.buffer, path.paced) = (800.0, true);
    for _ in 0..3 {
        path.flow("anabranch", &[], 50);
        path.run(20.0);
    }
    path.run(60.0);
    let (queue, rates) = path.means(40.0);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(most < 1.3 * least, "{rates:?}");
    assert!(queue < 60.0, "{queue} of 800");
}

#[test]
fn longer_route_is_filled() {
    for factor in [2, 3] {
        let mut path = Bottleneck::new(1250.0);
        path.paced = true;
        let flow = path.flow("anabranch", &[], 125);
        path.run(30.0);
        path.reroute(flow, 125 * factor);
        path.run(30.0);
        // A segment takes 0.8 ms.
        assert_near(path.gauge(flow, "rtt_base_s"), 0.125 * factor as f64 + 0.0008, 0.02);
        let (_, rates) = path.means(10.0);
        assert!(rates[0] > 0.9 * 1250.0, "{} of 1250 segments/s", rates[0]);
    }
}

/// The share of the link beside one flow of the law `rival` in 70 s, from 110 s after the second has come.
fn share_beside(rival: &str, buffer: f64, ours_first: bool) -> f64 {
    let mut path = Bottleneck::new(2000.0);
    (path.buffer, path.paced) = (buffer, true);
    let names = if ours_first { ["anabranch", rival] } else { [rival, "anabranch"] };
    for name in names {
        path.flow(name, &[], 50);
        path.run(10.0);
    }
    path.run(100.0);
    let (_, rates) = path.means(70.0);
    rates[1 - usize::from(ours_first)] / 2000.0
}

/// On buffers of half to four pipes, whoever begins first: a third to two thirds beside one CUBIC, and the rival is not taken for a route.
#[test]
fn one_cubic_leaves_a_fair_part_whoever_begins() {
    for (buffer, ours_first) in
        [(50.0, true), (50.0, false), (100.0, true), (100.0, false), (400.0, true), (400.0, false)]
    {
        let share = share_beside("cubic", buffer, ours_first);
        assert!((0.3..0.7).contains(&share), "{share} with {buffer}, first: {ours_first}");
    }
}

/// Who comes second beside a CUBIC has a part soon: of what 24 paths carry in its first 30 s it has 0.3 in the median, and 0.2 in all but two. Without the
/// doubling these are 0.27 and 0.19, and where the CUBIC may be taken for a route, too, 0.28 and 0.14.
#[test]
fn late_comer_beside_cubic_has_a_part_soon() {
    let mut shares = vec![];
    for rate in [1000.0, 4000.0] {
        for rtt in [20, 50, 100] {
            for products in [0.5, 1.0, 2.0, 4.0] {
                let mut path = Bottleneck::new(rate);
                (path.buffer, path.paced) = (products * rate * rtt as f64 * 1e-3, true);
                path.flow("cubic", &[], rtt);
                path.run(10.0);
                let flow = path.flow("anabranch", &[], rtt);
                path.run(30.0);
                shares.push(path.means(30.0).1[flow] / rate);
            }
        }
    }
    shares.sort_by(f64::total_cmp);
    assert!(shares[11] > 0.3 && shares[2] > 0.2, "{shares:.2?}");
}

/// BBR empties the queue every 5 s, as we do, and then takes it back: a flow that its drains find aside competes.
#[test]
fn one_bbr_leaves_a_fair_part() {
    for (buffer, ours_first) in
        [(100.0, true), (100.0, false), (200.0, true), (200.0, false), (400.0, true), (400.0, false)]
    {
        let share = share_beside("bbr", buffer, ours_first);
        assert!((0.25..0.75).contains(&share), "{share} with {buffer}, first: {ours_first}");
    }
}

/// Who sends less than the window lets it has no burst to spread, so its messages do not wait for a pacer.
#[test]
fn start_is_paced_only_if_the_window_limits_it() {
    let mut flow = Flow::new("anabranch", &[]);
    flow.rounds(2);
    assert!(flow.controller.pacing_rate().is_some());
    flow.limit = crate::controller::Limit::Application;
    flow.ack(1.0);
    assert_eq!(flow.controller.pacing_rate(), None);
}

#[test]
fn rival_that_is_yielded_to_has_the_link() {
    let mut path = Bottleneck::new(2000.0);
    (path.buffer, path.paced) = (400.0, true);
    let flow = path.flow("anabranch", &[("rival", "yield")], 50);
    path.run(15.0);
    path.flow("cubic", &[], 50);
    path.run(60.0);
    let (_, rates) = path.means(30.0);
    assert!(rates[flow] < 0.2 * 2000.0, "{rates:?}");
}

/// Losses without a queue are random: the window stays that of the path.
#[test]
fn random_losses_do_not_reduce_the_rate() {
    let mut path = Bottleneck::new(2000.0);
    (path.damage, path.paced) = (0.01, true);
    let flow = path.flow("anabranch", &[], 100);
    path.run(60.0);
    let (_, rates) = path.means(40.0);
    assert!(rates[flow] > 0.9 * 0.99 * 2000.0, "{rates:?}");
    assert_near(path.gauge(flow, MODE), CRUISE, 1e-9);
}

/// A buffer shorter than alpha: each loss takes three tenths of alpha, not of the window.
#[test]
fn shallow_buffer_is_filled_with_few_losses() {
    let mut path = Bottleneck::new(6250.0);
    (path.buffer, path.paced) = (12.0, true);
    path.flow("anabranch", &[], 50);
    path.run(60.0);
    let (_, rates) = path.means(40.0);
    assert!(rates[0] > 0.9 * 6250.0, "{rates:?}");
}

#[test]
fn start_ends_without_loss_when_half_of_alpha_is_queued() {
    let mut path = Bottleneck::new(6250.0);
    (path.buffer, path.paced) = (600.0, true);
    let flow = path.flow("anabranch", &[], 100);
    path.run(3.0);
    assert_near(path.gauge(flow, MODE), CRUISE, 1e-9);
    assert_eq!(path.losses(flow), 0);
    // 625 segments and alpha.
    assert_near(path.gauge(flow, "window"), 650.0, 0.06);
}

/// A path that carries nothing for a while keeps what it was sent. Then the window is no larger than twice that of before.
#[test]
fn silence_does_not_widen_the_window() {
    for silence in [0.8, 3.0, 10.0] {
        let mut path = Bottleneck::new(4000.0);
        path.paced = true;
        let flow = path.flow("anabranch", &[], 50);
        path.run(20.0);
        let before = path.window(flow);
        path.stall(silence);
        for _ in 0..100 {
            path.run(0.1 + 0.01 * silence);
            let window = path.window(flow);
            assert!(window < 2.0 * before, "{window} after {silence} s, {before} before");
        }
    }
}

/// All is lost for two seconds. The start after that goes no further than before, as drains have shown the rate.
#[test]
fn start_after_outage_ends_at_the_window_of_before() {
    let mut path = Bottleneck::new(4000.0);
    (path.buffer, path.paced) = (200.0, true);
    let flow = path.flow("anabranch", &[], 50);
    path.run(30.0);
    let before = path.window(flow);
    path.damage = 1.0;
    path.run(2.0);
    path.damage = 0.0;
    let losses = path.losses(flow);
    for _ in 0..100 {
        path.run(0.05);
        assert!(path.window(flow) < 1.3 * before, "{} of {before}", path.window(flow));
    }
    assert!(path.means(2.0).1[flow] > 0.9 * 4000.0);
    assert!(path.losses(flow) < losses + 20, "{} of {losses}", path.losses(flow));
}

/// A timeout was spurious: the window is that of before, and the next ACKs do not reduce it to what a drain has shown.
#[test]
fn undone_timeout_leaves_the_window_of_before() {
    let flow = Flow::new("anabranch", &[]);
    let mut law = Anabranch::new(AnabranchSettings::DEFAULT);
    law.core.window = 400.0;
    let model = &mut law.core.model;
    (model.rate_shown, model.base, model.mean) = (1000.0, 0.05, 0.05);
    let loss = Loss { signal: Signal::Timeout, cause: Cause::Unknown, lost: 1.0, departure: Departure::default() };
    law.on_loss(&flow.view(), &loss);
    let Mode::Grow(grow) = law.mode else { panic!("no start") };
    assert_eq!((law.core.window, grow.known), (1.0, 50.0));
    law.on_undo(&flow.view());
    let Mode::Grow(grow) = law.mode else { panic!("no start") };
    assert_eq!((law.core.window, grow.known), (400.0, 400.0));
}

#[test]
fn timeout_leaves_one_segment_and_start_begins_anew() {
    let mut flow = Flow::new("anabranch", &[]);
    flow.rounds(4);
    flow.timeout();
    assert_eq!((flow.window(), flow.gauge(MODE)), (1.0, GROW));
}

/// The path carries nothing for a while, and a flight is lost. That does not end the start that follows the timeout.
#[test]
fn flight_lost_by_timeout_does_not_end_the_start() {
    let mut flow = Flow::new("anabranch", &[]);
    flow.rounds(4);
    flow.newly_lost = flow.window();
    flow.timeout();
    flow.rounds(6);
    assert_eq!((flow.window(), flow.gauge(MODE)), (64.0, GROW));
    // Losses after the timeout do.
    flow.newly_lost = 30.0;
    flow.ack(1.0);
    assert_near(flow.gauge(MODE), CRUISE, 1e-9);
}

/// A path that waits as long as ours and carries three times as much leaves us a quarter of alpha after eight rounds; on another path we are alone again.
#[test]
fn share_is_that_of_paths_that_wait_equally_long() {
    let mut flow = Flow::new("anabranch", &[]);
    flow.rounds(3);
    let summary = |path, window| PathSummary {
        path,
        own: path == 0,
        window,
        flight: window,
        rtt_smoothed: Some(Span::from_millis(60)),
        rtt_min: Some(Span::from_millis(50)),
        delivered: 0.0,
        lost: 0.0,
    };
    let group = [summary(0, 100.0), summary(1, 300.0)];
    for (rounds, share) in [(7, 1.0), (1, 0.25)] {
        (0..rounds).for_each(|_| flow.controller.on_group(&flow.view(), &group));
        assert_near(flow.gauge("share"), share, 1e-12);
    }
    flow.restart(Restart::PathChanged);
    assert_near(flow.gauge("share"), 1.0, 1e-12);
}

#[test]
fn spurious_loss_gives_the_window_back() {
    let mut flow = Flow::new("anabranch", &[]);
    flow.rounds(3);
    let window = flow.window();
    flow.loss(Signal::Timeout, Cause::Unknown);
    flow.undo();
    assert_near(flow.window(), window, 1e-12);
}

/// After idle time a flow goes on with what the path has carried: 10 segments, doubled four times. After five minutes it begins with the initial
/// window.
#[test]
fn window_is_kept_for_five_minutes() {
    for (idle, window) in [(2, 160.0), (299, 160.0), (301, 10.0)] {
        let mut flow = Flow::new("anabranch", &[]);
        flow.rounds(4);
        flow.now += Span::from_secs(idle);
        flow.restart(Restart::Idle);
        assert_near(flow.window(), window, 0.02);
    }
}

#[test]
fn changed_path_begins_anew() {
    let mut flow = Flow::new("anabranch", &[("initial_window", "7")]);
    flow.rounds(5);
    flow.restart(Restart::PathChanged);
    assert_eq!((flow.window(), flow.gauge("rtt_base_s")), (7.0, f64::INFINITY));
}

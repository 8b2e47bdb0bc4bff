use anabranch_units::{Bytes, Span, Time};

use super::*;
use crate::controller::{Departure, Progress};
use crate::testing::assert_near;

/// A fluid queue of 4000 segments a second on a path of 50 ms, in which others keep so many segments whatever we do.
struct Fluid {
    others: f64,
    now: f64,
}

impl Fluid {
    /// With `window` segments of our own, the RTT for which all that is in flight and all of the others' passes.
    fn rtt(&self, window: f64) -> f64 {
        (0.05_f64).max((window + self.others) / 4000.0)
    }

    /// Competes for so many seconds: when it left, if it did.
    fn compete(&mut self, competition: &mut Competition, seconds: f64) -> Option<f64> {
        let until = self.now + seconds;
        while self.now < until {
            let window = competition.window(&Rule::DEFAULT);
            let rtt = self.rtt(window);
            self.now += rtt / window;
            let now = Time::ZERO + Span::from_secs_f64(self.now);
            let span = Span::from_secs_f64(rtt);
            let mss = Bytes::new(1000);
            let progress = Progress::default();
            let path = PathView { now, flight: window, mss, rtt_smoothed: Some(span), rtt_min: Some(span), progress };
            let departure = Departure { time: now - span, window, flight: window, ..Departure::default() };
            let ack = Ack {
                newly_acked: 1.0,
                newly_lost: 0.0,
                newly_marked: 0.0,
                rtt: Some(span),
                size: mss,
                arrival: now,
                departure,
                limit: Limit::Window,
                phase: Phase::Open,
            };
            let facts = Facts { now: self.now, rtt, near: 0.053, base: 0.05 };
            if competition.on_ack(&path, &ack, &facts, &Rule::DEFAULT) != Turn::Stay {
                return Some(self.now);
            }
        }
        None
    }
}

/// Alone a window of 600 makes an RTT of 150 ms, and three quarters of it three quarters of that: after two probes it is over, two seconds and six round trips
/// after slow start has ended.
#[test]
fn alone_the_queue_is_elastic() {
    let mut fluid = Fluid { others: 0.0, now: 1.0 };
    let left = fluid.compete(&mut Competition::new(1.0, 600.0), 10.0);
    assert!((3.5..5.0).contains(&left.unwrap()), "{left:?}");
}

/// Beside as many segments of others the RTT falls by half as much as the window, and it stays for as long as they do.
#[test]
fn beside_others_it_is_half_as_elastic() {
    let mut fluid = Fluid { others: 600.0, now: 1.0 };
    let mut competition = Competition::new(1.0, 600.0);
    assert_eq!(fluid.compete(&mut competition, 15.0), None);
    fluid.others = 0.0;
    let left = fluid.compete(&mut competition, 10.0);
    assert!(left.unwrap() - 16.0 < 5.0, "{left:?}");
}

/// A look at a queue of 100 ms where 4 ms were ours: it falls by what is ours, and it is ours; it does not fall, and moved before, and twice that is a rival; it
/// does not move at all, and the route is longer.
#[test]
fn a_look_tells_whose_queue_it_is() {
    let look = |rtts: [f64; 8], left: f64| {
        let mut look = Look::new();
        for second in 0..8 {
            let now = f64::from(second) * 6.0;
            for (part, rtt) in rtts.iter().enumerate() {
                look.on_rtt(now + 0.05 * part as f64, (*rtt, *rtt), 0.15, 200.0);
            }
            let verdict = look.judge(now + 0.5, (0.1, left), 200.0, 0.01, 0.0005);
            if verdict != Verdict::Unsure {
                return verdict;
            }
        }
        Verdict::Unsure
    };
    let grows = [0.14, 0.142, 0.144, 0.146, 0.148, 0.15, 0.152, 0.154];
    assert_eq!(look(grows, 0.04), Verdict::Own);
    assert_eq!(look(grows, 0.09), Verdict::Rival);
    assert_eq!(look([0.15; 8], 0.1), Verdict::Route);
}

/// Fewer segments than a quarter of what they were have no say: a queue that rests for a moment may be a rival's.
#[test]
fn a_starved_window_sees_no_route() {
    let mut look = Look::new();
    look.on_rtt(0.0, (0.15, 0.15), 0.15, 200.0);
    assert_eq!(look.judge(1.0, (0.1, 0.1), 40.0, 0.01, 0.0), Verdict::Unsure);
    assert_eq!(look.judge(10.0, (0.1, 0.1), 40.0, 0.01, 0.0), Verdict::Rival);
    assert_near(look.own_delay(7.0, 10.0, None, 0.0), 2.25 * 10.0 * 0.15 / 200.0, 1e-12);
    assert_near(look.own_delay(7.0, 100.0, None, 0.0), LONG, 1e-12);
}

use anabranch_units::{Bytes, Span, Time};

use super::look::{Bottom, Look, Verdict};
use super::*;
use crate::controller::{Ack, Cause, Departure, Limit, Loss, PathView, Phase, Progress, Signal};
use crate::testing::assert_near;

/// A fluid queue of 4000 segments a second on a path of 50 ms, in which others keep `others` segments for any window of ours.
struct Fluid {
    others: f64,
    now: f64,
}

impl Fluid {
    /// The RTT with `window` segments of our own: the time in which all segments in flight pass, ours and those of others.
    fn rtt(&self, window: f64) -> f64 {
        (0.05_f64).max((window + self.others) / 4000.0)
    }

    /// The path's view at an ACK with a window, and the RTT in seconds.
    fn path(&self, window: f64) -> (PathView, f64) {
        let rtt = self.rtt(window);
        let (now, span) = (Time::ZERO + Span::from_secs_f64(self.now), Span::from_secs_f64(rtt));
        let (mss, progress) = (Bytes::new(1000), Progress::default());
        (PathView { now, flight: window, mss, rtt_smoothed: Some(span), rtt_min: Some(span), progress }, rtt)
    }

    /// Competes for `seconds`. Returns when and how the competition ended, if it did.
    fn compete(&mut self, competition: &mut Competition, seconds: f64) -> Option<(f64, Turn)> {
        self.compete_beside(competition, seconds, |others| others)
    }

    /// The same; `others` maps the segments of others to those at the next ACK.
    fn compete_beside(
        &mut self,
        competition: &mut Competition,
        seconds: f64,
        others: impl Fn(f64) -> f64,
    ) -> Option<(f64, Turn)> {
        let until = self.now + seconds;
        while self.now < until {
            let window = competition.window();
            self.now += self.rtt(window) / window;
            self.others = others(self.others);
            let (path, rtt) = self.path(window);
            let span = Span::from_secs_f64(rtt);
            let departure = Departure { time: path.now - span, window, flight: window, ..Departure::default() };
            let ack = Ack {
                newly_acked: 1.0,
                newly_lost: 0.0,
                newly_marked: 0.0,
                rtt: Some(span),
                size: path.mss,
                arrival: path.now,
                departure,
                limit: Limit::Window,
                phase: Phase::Open,
            };
            let facts = Facts { now: self.now, rtt, base: 0.05, grain: 0.0005 };
            match competition.on_ack(&path, &ack, &facts, &Rule::DEFAULT) {
                Turn::Stay => {}
                turn => return Some((self.now, turn)),
            }
        }
        None
    }

    /// A segment is lost.
    fn lose(&mut self, competition: &mut Competition) {
        let (path, rtt) = self.path(competition.window());
        let loss = Loss { signal: Signal::DupAcks, cause: Cause::Unknown, lost: 1.0, departure: Departure::default() };
        competition.on_loss(self.now, (rtt, 0.05), &path, &loss);
    }
}

/// Alone a window of 300 makes an RTT of 75 ms. A probe leaves 5/6 of the window and of the RTT. After two probes, two seconds and six round trips
/// later, the competition is over.
#[test]
fn alone_the_queue_is_elastic() {
    let mut fluid = Fluid { others: 0.0, now: 1.0 };
    let left = fluid.compete(&mut Competition::new(300.0, 4000.0), 10.0);
    let Some((at, Turn::Alone { rate })) = left else { panic!("{left:?}") };
    assert!((3.0..4.5).contains(&at), "{at}");
    assert_near(rate, 4000.0, 1.0);
}

/// Beside as many segments of others the RTT falls by half as much as the window, and the competition lasts as long as they are there.
#[test]
fn beside_others_it_is_half_as_elastic() {
    let mut fluid = Fluid { others: 300.0, now: 1.0 };
    let mut competition = Competition::new(300.0, 4000.0);
    assert_eq!(fluid.compete(&mut competition, 5.5), None);
    fluid.others = 0.0;
    let left = fluid.compete(&mut competition, 10.0);
    assert!(left.unwrap().0 - 6.5 < 5.0, "{left:?}");
}

/// It begins with slow start up to half of 4000 segments a second times the RTT: with 200 of others, x = (x + 200)/2.
#[test]
fn it_begins_with_half_of_the_link() {
    let mut fluid = Fluid { others: 200.0, now: 1.0 };
    let mut competition = Competition::new(50.0, 4000.0);
    assert_eq!(fluid.compete(&mut competition, 0.5), None);
    assert!((190.0..215.0).contains(&competition.window()), "{}", competition.window());
}

/// After a loss the window stays at 0.7 of what it was. If nobody fills the queue, the pause ends after two round trips and 4 s. If the others grow by
/// 20 segments a second, it lasts until the next loss; this loss and the next two have no pause.
#[test]
fn a_pause_shows_whether_somebody_fills_the_queue() {
    let mut fluid = Fluid { others: 150.0, now: 1.0 };
    let mut competition = Competition::new(200.0, 4000.0);
    fluid.lose(&mut competition);
    assert_near(competition.window(), 140.0, 1e-9);
    let left = fluid.compete(&mut competition, 10.0);
    let Some((at, Turn::Calm)) = left else { panic!("{left:?}") };
    assert!((5.0..5.6).contains(&at), "{at}");

    let mut competition = Competition::new(200.0, 4000.0);
    fluid.lose(&mut competition);
    // There are 4000 ACKs a second. 140/(140 + others) of them are ours, about 2000.
    assert_eq!(fluid.compete_beside(&mut competition, 6.0, |others| others + 0.01), None);
    assert_near(competition.window(), 140.0, 1e-9);
    for _ in 0..3 {
        fluid.lose(&mut competition);
        let lost = competition.window();
        assert_eq!(fluid.compete(&mut competition, 1.0), None);
        assert!(competition.window() > 1.02 * lost, "{} from {lost}", competition.window());
    }
    fluid.lose(&mut competition);
    let lost = competition.window();
    assert_eq!(fluid.compete(&mut competition, 1.0), None);
    assert_near(competition.window(), lost, 1e-9);
}

/// A loss that leaves no queue ends the competition.
#[test]
fn an_empty_queue_is_calm() {
    let mut fluid = Fluid { others: 50.0, now: 1.0 };
    let mut competition = Competition::new(180.0, 4000.0);
    fluid.lose(&mut competition);
    let left = fluid.compete(&mut competition, 10.0);
    let Some((at, Turn::Calm)) = left else { panic!("{left:?}") };
    assert!((1.1..1.3).contains(&at), "{at}");
}

/// A path of 50 ms, a queue of 100 ms where 10 may be ours, and a drain that leaves half of 200 segments.
const BOTTOM: Bottom =
    Bottom { now: 0.0, base: 0.05, before: 0.15, least: 0.15, window: 200.0, share: 0.5, own: 0.01, grain: 0.0005 };

/// The drain takes 3/8 of the RTT away: three quarters of the link are ours. It takes a quarter away, and the RTTs varied before: a rival's, at the second look.
/// It takes nothing away, and the RTTs are equal: the route is longer.
#[test]
fn a_look_tells_whose_queue_it_is() {
    let look = |rtts: [f64; 8], least: f64| {
        let mut look = Look::new();
        for second in 0..8 {
            let now = f64::from(second) * 6.0;
            for (part, rtt) in rtts.iter().enumerate() {
                look.on_rtt(now + 0.05 * part as f64, *rtt, 0.15, (0.0, 200.0));
            }
            let verdict = look.judge(&Bottom { now: now + 0.5, least, ..BOTTOM });
            if verdict != Verdict::Unsure {
                return verdict;
            }
        }
        Verdict::Unsure
    };
    let grows = [0.14, 0.142, 0.144, 0.146, 0.148, 0.15, 0.152, 0.154];
    assert_eq!(look(grows, 0.093), Verdict::Own);
    assert_eq!(look(grows, 0.1125), Verdict::Rival);
    assert_eq!(look([0.15; 8], 0.15), Verdict::Route);
}

/// A queue of less than 30 ms that is not ours is a rival's if it has grown from one look to the next. Otherwise there are no looks for 20 s.
#[test]
fn a_short_queue_is_a_rivals_if_it_grows() {
    let looks = |before: f64| {
        let mut look = Look::new();
        look.on_rtt(0.0, 0.06, 0.07, (4000.0, 200.0));
        look.on_rtt(0.01, 0.07, 0.07, (4000.0, 200.0));
        let first = Bottom { before: 0.07, least: 0.062, ..BOTTOM };
        assert_eq!(look.judge(&first), Verdict::Unsure);
        let verdict = look.judge(&Bottom { now: 3.1, before, least: before - 0.008, ..first });
        (verdict, look.is_muted(23.0), look.is_muted(23.2))
    };
    assert_eq!(looks(0.0715), (Verdict::Rival, false, false));
    assert_eq!(looks(0.0705), (Verdict::Own, true, false));
}

/// A window below a quarter of its recent maximum does not show a longer route: a queue that stays equal for a moment may be a rival's.
#[test]
fn a_starved_window_sees_no_route() {
    let mut look = Look::new();
    look.on_rtt(0.0, 0.15, 0.15, (1000.0, 200.0));
    let starved = Bottom { window: 40.0, grain: 0.0, ..BOTTOM };
    assert_eq!(look.judge(&Bottom { now: 1.0, ..starved }), Verdict::Unsure);
    assert_eq!(look.judge(&Bottom { now: 10.0, ..starved }), Verdict::Rival);
    // 2.25 times ten segments at a thousand a second; never more than 30 ms.
    assert_near(look.own_delay(10.0, None, 0.0), 0.0225, 1e-12);
    assert_near(look.own_delay(100.0, None, 0.0), 0.03, 1e-12);
}

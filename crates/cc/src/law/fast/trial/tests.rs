use super::*;
use crate::testing::assert_near;

const RULE: Rule = Rule { most: 0.05, span: 10.0 };

/// A path of 100 ms and a window of 100 segments: 1000 segments a second.
struct Path {
    trial: Trial,
    now: f64,
    window: f64,
    queueing: f64,
}

impl Path {
    fn new() -> Self {
        Self { trial: Trial::new(), now: 0.0, window: 100.0, queueing: 0.0 }
    }

    /// Segments arrive one by one; with the last of them one loss is detected if `is_one_lost`. Returns the first action other than `None`.
    fn arrive(&mut self, segments: u32, is_one_lost: bool) -> Action {
        for left in (0..segments).rev() {
            self.now += 0.1 / self.window;
            let lost = f64::from(u8::from(is_one_lost && left == 0));
            let facts =
                Facts { now: self.now, acked: 1.0, lost, rtt: 0.1, queueing: self.queueing, window: self.window };
            match self.trial.on_ack(&facts, &RULE) {
                Action::None | Action::Hold => {}
                Action::Fall(window) => {
                    self.window = window;
                    return Action::Fall(window);
                }
                Action::Return(target) => {
                    self.window = (self.window + RETURN).min(target);
                    return Action::Return(target);
                }
                Action::GiveWay(window) => return Action::GiveWay(window),
            }
        }
        Action::None
    }

    /// A path on which a trial has found a random share of 1 %, with the window back.
    #[track_caller]
    fn convinced() -> Self {
        let mut path = Self::trying();
        for _ in 0..4 {
            path.arrive(99, true);
        }
        while path.window < 100.0 {
            path.arrive(1, false);
        }
        path.arrive(102, false);
        path.arrive(102, false);
        assert!(path.trial.is_at_rest());
        assert_near(path.trial.known(), 0.01, 0.1);
        path
    }

    /// A path in congestion: a fifth of a window of 1000 segments was lost, with 40 ms queued, two round trips ago.
    fn congested() -> Self {
        let mut path = Self { window: 1000.0, queueing: 0.04, ..Self::new() };
        while path.arrive(3, true) == Action::None {}
        assert!(path.trial.is_congestion(path.now));
        assert_eq!(path.arrive(50, true), Action::None, "it left before the window fell");
        path.queueing = 0.0;
        path.now += 0.2;
        path
    }

    /// One of each hundred segments is lost, until there is an action.
    fn lose_one_percent(&mut self) -> (u32, Action) {
        (1..1000)
            .map(|lost| (lost, self.arrive(99, true)))
            .find(|(_, action)| *action != Action::None)
            .expect("1 % is more than is bearable")
    }

    /// The trial that a loss of 1 % causes, after the segments that left before it are settled.
    #[track_caller]
    fn trying() -> Self {
        let mut path = Self::new();
        let (_, action) = path.lose_one_percent();
        assert!(matches!(action, Action::Fall(_)), "{action:?}");
        // Two round trips of 74 segments, whose losses do not count.
        for _ in 0..15 {
            assert_eq!(path.arrive(9, true), Action::None);
        }
        assert_eq!(path.arrive(14, false), Action::None);
        path
    }
}

/// One loss in a thousand for a million segments, with a flight of ten thousand or of ten.
#[test]
fn what_is_bearable_needs_no_trial() {
    let mut path = Path::new();
    for _ in 0..1000 {
        assert_eq!(path.arrive(999, true), Action::None);
    }
    assert!(path.trial.is_at_rest() && !path.trial.is_congestion(path.now));
}

/// At a loss of 1 %, each loss adds one to the excess and 99 segments subtract a quarter: the eleventh loss exceeds 8. The trial leaves
/// three quarters of the 99 segments that arrive of a window.
#[test]
fn more_than_is_bearable_is_tried() {
    let mut path = Path::new();
    let (lost, action) = path.lose_one_percent();
    let Action::Fall(window) = action else { panic!("{action:?}") };
    assert_eq!(lost, 11);
    assert_near(window, 0.75 * 99.0, 0.001);
    assert!(!path.trial.is_at_rest());
}

/// Four losses in the trial, at any share up to a tenth, are random, and the window returns. Half as much again is bearable from then on.
#[test]
fn what_is_lost_all_the_same_is_random() {
    for each in [99, 49, 19] {
        let mut path = Path::trying();
        for _ in 0..3 {
            assert_eq!(path.arrive(each, true), Action::None);
        }
        assert_eq!(path.arrive(each - 1, false), Action::None);
        assert_eq!(path.arrive(1, true), Action::Return(100.0));
        while path.window < 100.0 {
            path.arrive(1, false);
        }
        assert_eq!(path.arrive(101, false), Action::Return(100.0));
        assert_eq!(path.arrive(101, false), Action::None);
        assert!(path.trial.is_at_rest());
        for _ in 0..1000 {
            assert_eq!(path.arrive(66, true), Action::None);
        }
    }
}

/// A trial with 17 losses may find two thirds of the true share: 1.5 % are lost, and it found 1 %. Later losses correct that, and the bearable
/// share is at most three times the one that was found.
#[test]
fn what_is_known_grows_with_what_is_seen() {
    let mut path = Path::convinced();
    for _ in 0..1000 {
        assert_eq!(path.arrive(66, true), Action::None);
    }
    assert_near(path.trial.known(), 0.015, 0.1);
    for _ in 0..1000 {
        assert_eq!(path.arrive(37, true), Action::None);
    }
    assert!(path.trial.known() < 0.0165, "{}", path.trial.known());
    let falls = (0..1000).any(|_| matches!(path.arrive(25, true), Action::Fall(_)));
    assert!(falls, "4 % are more than three times of 1 %");
}

/// Ten spurious losses in a row, five times, do not change the known share.
#[test]
fn what_was_no_loss_is_not_known_of() {
    let mut path = Path::convinced();
    let known = path.trial.known();
    for _ in 0..5 {
        for _ in 0..10 {
            assert_eq!(path.arrive(1, true), Action::None);
        }
        path.trial.forgive();
    }
    assert_near(path.trial.known(), known, 0.1);
}

/// With a known random share of 1 %, two to three per cent are bearable, which are two to three segments of a window. At a loss of 5 % each loss adds
/// one to the excess, and 19 segments subtract 0.38 to 0.57. The 23rd to 35th loss exceeds 14 to 15; the 13th to 19th would exceed eight.
#[test]
fn what_is_known_to_lose_at_random_is_tried_later() {
    let mut path = Path::convinced();
    let lost = (1..100).find(|_| path.arrive(19, true) != Action::None);
    assert!((23..=35).contains(&lost.unwrap()), "{lost:?}");
}

/// Eleven of the 1002 segments since the first loss were lost, so 24 losses are expected in 2186 segments. There are none: congestion, for
/// ten seconds.
#[test]
fn what_ends_when_less_is_sent_is_congestion() {
    let mut path = Path::trying();
    assert_eq!(path.arrive(2150, false), Action::None);
    assert_eq!(path.arrive(40, false), Action::GiveWay(100.0));
    let since = path.now;
    assert!(path.trial.is_congestion(since + 9.9) && !path.trial.is_congestion(since + 10.0));
    assert!(path.trial.known() <= 0.0);
}

/// The window of the trial is still too large if every second segment is lost. The 37th of 74 segments shows that, as one had come before.
#[test]
fn much_loss_in_a_trial_is_congestion() {
    let mut path = Path::trying();
    for _ in 0..36 {
        assert_eq!(path.arrive(1, true), Action::None);
    }
    assert_eq!(path.arrive(1, true), Action::GiveWay(100.0));
}

/// A stall ends: first thirteen losses are reported, then the arrivals. The losses are 5 % of all.
#[test]
fn losses_of_a_window_that_are_found_at_once_are_random() {
    let mut path = Path::trying();
    let now = path.now + 0.5;
    let facts = |lost| Facts { now, acked: 1.0, lost, rtt: 0.1, queueing: 0.0, window: 740.0 };
    assert_eq!(path.trial.on_ack(&facts(13.0), &RULE), Action::Hold);
    let acked = (1..300).find(|_| path.trial.on_ack(&facts(0.0), &RULE) != Action::Hold);
    assert_eq!(acked, Some(115), "13 are a tenth of 130, of which one had come before");
    assert!(matches!(path.trial.state, State::Returning { .. }));
}

/// A loss of more than a fifth of a window is congestion without a trial.
#[test]
fn a_fifth_is_never_random() {
    let mut path = Path::new();
    for _ in 0..25 {
        assert_eq!(path.arrive(3, true), Action::None);
    }
    assert_eq!(path.arrive(3, true), Action::GiveWay(100.0));
}

/// Twenty losses in a row after a stall, with a queue of twice our own: 2 % of a window, so a trial leaves three quarters of 98 %.
#[test]
fn losses_that_are_found_at_once_are_those_of_a_window() {
    let mut trial = Trial::new();
    let facts = |lost| Facts { now: 9.0, acked: 1.0, lost, rtt: 0.1, queueing: 0.004, window: 1000.0 };
    assert_eq!(trial.on_ack(&facts(20.0), &RULE), Action::None);
    let action = (0..500).map(|_| trial.on_ack(&facts(0.0), &RULE)).find(|action| *action != Action::None);
    assert_eq!(action, Some(Action::Fall(735.0)));
    // One of 400 is bearable; with the bearable losses of a window, eleven are one too many.
    let mut trial = Trial::new();
    assert_eq!(trial.on_ack(&facts(10.0), &RULE), Action::None);
    for _ in 0..1000 {
        assert_eq!(trial.on_ack(&facts(0.0), &RULE), Action::None);
    }
}

/// A timeout ends a trial, but not congestion. Spurious losses begin no trial.
#[test]
fn a_timeout_ends_a_trial() {
    let mut path = Path::trying();
    path.trial.on_answered();
    assert!(path.trial.is_at_rest());
    let mut path = Path::new();
    while path.arrive(1, true) == Action::None {}
    path.trial.on_answered();
    assert!(path.trial.is_congestion(path.now));
    let mut path = Path::new();
    for _ in 0..100 {
        assert_eq!(path.arrive(99, true), Action::None);
        path.trial.forgive();
    }
}

/// A window of 1000 segments lost a fifth with 40 ms queued, and 500 are left. Of 600 segments 1.5 losses are bearable, and with two standard
/// deviations 3.9: the fourth loss of a round trip halves the window, and the segments that left before do not count.
#[test]
fn well_below_the_window_that_lost_a_loss_may_be_chance() {
    let mut path = Path::congested();
    path.window = 600.0;
    for _ in 0..10 {
        for _ in 0..3 {
            assert_eq!(path.arrive(150, true), Action::None);
        }
        assert_eq!(path.arrive(151, false), Action::None);
    }
    for _ in 0..3 {
        assert_eq!(path.arrive(100, true), Action::None);
    }
    assert_eq!(path.arrive(100, true), Action::GiveWay(600.0));
    for _ in 0..10 {
        assert_eq!(path.arrive(110, true), Action::None);
    }
    // Now 600 is the window of the last congestion, but there was no queue.
    for time in [1.0, 2.0, 3.0].map(|later| path.now + later) {
        assert!(!path.trial.on_loss((time, 0.1), 3.0, (600.0, 0.0), &RULE));
        assert!(path.trial.on_loss((time, 0.1), 4.0, (600.0, 0.0), &RULE));
        assert!(!path.trial.on_loss((time + 0.1, 0.1), 4.0, (600.0, 0.0), &RULE), "it left before");
    }
}

/// With the same window and queue one loss is enough. With half of the delay it may be random.
#[test]
fn about_the_window_that_lost_each_loss_is_congestion() {
    let mut path = Path::congested();
    path.window = 760.0;
    path.queueing = 0.019;
    assert_eq!(path.arrive(10, true), Action::None);
    path.queueing = 0.021;
    path.arrive(800, false);
    assert_eq!(path.arrive(10, true), Action::GiveWay(760.0));
    let mut path = Path::congested();
    assert!(!path.trial.on_loss((path.now, 0.1), 1.0, (740.0, 0.04), &RULE));
    assert!(path.trial.on_loss((path.now, 0.1), 1.0, (760.0, 0.04), &RULE));
    // From then on 760 is the window of the last congestion: three quarters of it are 570.
    let later = (path.now + 0.2, 0.1);
    assert!(!path.trial.on_loss(later, 1.0, (560.0, 0.04), &RULE));
    assert!(path.trial.on_loss(later, 1.0, (580.0, 0.04), &RULE));
}

/// A window of 40 segments has 0.1 bearable losses, 0.7 with two standard deviations: each loss halves, as in Reno.
#[test]
fn of_a_small_window_each_loss_is_congestion() {
    let mut path = Path::congested();
    path.window = 40.0;
    assert_eq!(path.arrive(10, true), Action::GiveWay(40.0));
}

/// With a known random share of 1 %, a tenth is lost for a while, and 1 % again in the trial: the tenth is congestion. The known share stays at
/// 1 to 1.5 %: two losses of 240 segments do not show that it is less.
#[test]
fn congestion_is_told_from_what_is_lost_at_random() {
    let mut path = Path::convinced();
    let known = path.trial.known();
    while path.arrive(9, true) == Action::None {}
    assert!(!path.trial.is_at_rest());
    path.arrive(160, false);
    assert_eq!(path.arrive(99, true), Action::None);
    assert_eq!(path.arrive(99, true), Action::None);
    let action = path.arrive(99, false);
    assert!(matches!(action, Action::GiveWay(_)), "{action:?}");
    assert!((known..=1.51 * known).contains(&path.trial.known()), "{} of {known}", path.trial.known());
}

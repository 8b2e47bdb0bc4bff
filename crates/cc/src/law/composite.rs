//! Composite: standard TCP, or another law that responds only to losses, with the loss policy of ctcp-2019: [`crate::composite`].
//!
//! ```text
//! duplicate ACKs, cause random:    retransmit, and nothing else
//! all else:                        the law that `base` names
//! ```
//!
//! Citation: ctcp-2019 sec. 3.
//!
//! Differs from the paper in: see [`crate::composite`]. FAST has this policy as one of its own parts: `loss = "composite"`.

use crate::composite::Composite;
use crate::controller::{Controller, WINDOW_MIN};
use crate::law::cubic::{Cubic, CubicSettings};
use crate::law::linux::{Linux, LinuxSettings};
use crate::law::reno::{self, Reno};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Choice, Fields, INITIAL_WINDOW, Table, WindowSettings};

pub(crate) const ROW: Row = Row {
    name: "composite",
    summary: "Composite TCP: a random loss does not change the window",
    citation: "ctcp-2019",
    // The largest window that any of the base laws leaves after a loss or a timeout.
    loss_contract: LossContract {
        shrinks_above: reno::SSTHRESH_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::ShrinksUnlessRandom { citation: "ctcp-2019 sec. 3" },
    },
    law: &Law {
        defaults: CompositeSettings { initial_window: INITIAL_WINDOW, base: Base::Reno },
        make: |settings| Box::new(Composite::new(settings.base())),
    },
};

/// The settings of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompositeSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// The law for everything but random losses.
    pub base: Base,
}

/// The base law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Standard TCP: [`crate::law::reno`].
    Reno,
    /// ns-2's Linux agent: [`crate::law::linux`].
    Linux,
    /// CUBIC (RFC 9438): [`crate::law::cubic`].
    Cubic,
}

impl CompositeSettings {
    fn base(&self) -> Box<dyn Controller> {
        let initial_window = self.initial_window;
        match self.base {
            Base::Reno => Box::new(Reno::new(&WindowSettings { initial_window })),
            Base::Linux => Box::new(Linux::new(&LinuxSettings { initial_window, ..LinuxSettings::DEFAULT })),
            Base::Cubic => Box::new(Cubic::new(&CubicSettings { initial_window, ..CubicSettings::DEFAULT })),
        }
    }
}

impl Table for CompositeSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        fields.choice("base", &mut self.base, "the law for everything but random losses");
    }
}

impl Choice for Base {
    const KINDS: &'static [(&'static str, Self)] =
        &[("reno", Self::Reno), ("linux", Self::Linux), ("cubic", Self::Cubic)];
}

#[cfg(test)]
mod tests;

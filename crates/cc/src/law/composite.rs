//! Composite: standard TCP, or another law that only losses move, under the loss policy of ctcp-2019: [`crate::composite`].
//!
//! ```text
//! duplicate ACKs, cause random:    retransmit, and nothing else
//! all else:                        the law that `base` names
//! ```
//!
//! Citation: ctcp-2019 sec. 3.
//!
//! Differs from the paper in: what [`crate::composite`] says; nothing bounds how many losses seem random. FAST has the policy as a part of its own:
//! `loss = "composite"`.

use crate::composite::Composite;
use crate::controller::{Controller, WINDOW_MIN};
use crate::law::cubic::{Cubic, CubicSettings};
use crate::law::linux::{Linux, LinuxSettings};
use crate::law::reno::{self, Reno};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Choice, Fields, INITIAL_WINDOW, Table, WindowSettings};

pub(crate) const ROW: Row = Row {
    name: "composite",
    summary: "Composite TCP: a random loss leaves the window alone",
    citation: "ctcp-2019",
    // None of the bases leaves more after a loss or a timeout.
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

/// What the law is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompositeSettings {
    /// Segments.
    pub initial_window: f64,
    /// The law that moves the window otherwise.
    pub base: Base,
}

/// The law that moves the window unless a loss is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// [`crate::law::reno`].
    Reno,
    /// [`crate::law::linux`].
    Linux,
    /// [`crate::law::cubic`].
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
        fields.choice("base", &mut self.base, "the law that moves the window otherwise");
    }
}

impl Choice for Base {
    const KINDS: &'static [(&'static str, Self)] =
        &[("reno", Self::Reno), ("linux", Self::Linux), ("cubic", Self::Cubic)];
}

#[cfg(test)]
mod tests;

//! The specification of a link.

use anabranch_units::{Rate, SimSpan};

use crate::error_model::ErrorSpec;
use crate::hold::HoldSpec;
use crate::link::{RateSpec, ScatterSpec};
use crate::queue::QueueSpec;

/// The properties of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name, unique in the world. Its random streams are named after it. If `None`, the name is derived from its nodes.
    pub name: Option<String>,
    /// The transmission rate.
    pub rate: Rate,
    /// The propagation delay.
    pub delay: SimSpan,
    /// The queue before the transmitter.
    pub queue: QueueSpec,
    /// The error models before the queue, in order.
    pub errors: Vec<ErrorSpec>,
    /// The release of packets at the far end; `None` releases each at once.
    pub hold: Option<HoldSpec>,
    /// The variation of the rate; `None` keeps it constant.
    pub rates: Option<RateSpec>,
    /// Reordering and duplication at the far end; none by default.
    pub scatter: ScatterSpec,
    /// The MTU in bytes; `None` is unlimited. Longer packets are dropped silently.
    pub mtu: Option<u32>,
    /// Whether packets lose their ECN codepoint before the queue, as through a tunnel or a router that does not keep it.
    pub clears_ecn: bool,
}

impl LinkSpec {
    /// A link without losses and with an unlimited queue.
    pub fn new(rate: Rate, delay: SimSpan) -> Self {
        Self {
            name: None,
            rate,
            delay,
            queue: QueueSpec::unlimited(),
            errors: Vec::new(),
            hold: None,
            rates: None,
            scatter: ScatterSpec { delays: None, reorder: None, duplicates: 0.0 },
            mtu: None,
            clears_ecn: false,
        }
    }

    /// The same link with this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same link with this queue.
    #[must_use]
    pub fn queue(self, queue: QueueSpec) -> Self {
        Self { queue, ..self }
    }

    /// The same link, releasing packets in batches.
    #[must_use]
    pub fn hold(self, hold: HoldSpec) -> Self {
        Self { hold: Some(hold), ..self }
    }

    /// The same link with a varying rate.
    #[must_use]
    pub fn rates(self, rates: RateSpec) -> Self {
        Self { rates: Some(rates), ..self }
    }

    /// The same link with reordering and duplication.
    #[must_use]
    pub fn scatter(self, scatter: ScatterSpec) -> Self {
        Self { scatter, ..self }
    }

    /// The same link with this MTU in bytes.
    #[must_use]
    pub fn mtu(self, mtu: u32) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// The same link, which clears the ECN codepoint of each packet or does not.
    #[must_use]
    pub fn clears_ecn(self, clears_ecn: bool) -> Self {
        Self { clears_ecn, ..self }
    }

    /// The same link with another error model, after the existing ones.
    #[must_use]
    pub fn error(mut self, error: ErrorSpec) -> Self {
        self.errors.push(error);
        self
    }
}

//! What a link is like.

use anabranch_units::{Rate, SimSpan};

use crate::error_model::ErrorSpec;
use crate::hold::HoldSpec;
use crate::link::{RateSpec, ScatterSpec};
use crate::queue::QueueSpec;

/// What a link is like, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name, unique in the world; made from its nodes if none is given. Random streams are named after it.
    pub name: Option<String>,
    /// How fast it sends.
    pub rate: Rate,
    /// How long a bit is under way.
    pub delay: SimSpan,
    /// What may wait.
    pub queue: QueueSpec,
    /// What is lost in front of the queue, one model after the other.
    pub errors: Vec<ErrorSpec>,
    /// When packets come out at the far end; `None`: each as soon as it is there.
    pub hold: Option<HoldSpec>,
    /// How its rate varies; `None`: it does not.
    pub rates: Option<RateSpec>,
    /// How its end scatters packets in time; by default it does not.
    pub scatter: ScatterSpec,
    /// Bytes of the longest packet that it takes; `None`: any. What is longer is lost without a word.
    pub mtu: Option<u32>,
}

impl LinkSpec {
    /// A link without losses on which everything may wait.
    pub const fn new(rate: Rate, delay: SimSpan) -> Self {
        Self {
            name: None,
            rate,
            delay,
            queue: QueueSpec::Unlimited,
            errors: Vec::new(),
            hold: None,
            rates: None,
            scatter: ScatterSpec { delays: None, reorder: None, duplicates: 0.0 },
            mtu: None,
        }
    }

    /// The same with this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same with this queue.
    #[must_use]
    pub fn queue(self, queue: QueueSpec) -> Self {
        Self { queue, ..self }
    }

    /// The same with packets that come out in batches.
    #[must_use]
    pub fn hold(self, hold: HoldSpec) -> Self {
        Self { hold: Some(hold), ..self }
    }

    /// The same with a rate that varies.
    #[must_use]
    pub fn rates(self, rates: RateSpec) -> Self {
        Self { rates: Some(rates), ..self }
    }

    /// The same with packets that its end scatters in time.
    #[must_use]
    pub fn scatter(self, scatter: ScatterSpec) -> Self {
        Self { scatter, ..self }
    }

    /// The same for packets of at most so many bytes.
    #[must_use]
    pub fn mtu(self, mtu: u32) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// The same with one more error model, behind those that it has.
    #[must_use]
    pub fn error(mut self, error: ErrorSpec) -> Self {
        self.errors.push(error);
        self
    }
}

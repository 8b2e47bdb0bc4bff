//! Makes the simulator's settings of a varying link from its keys.

use anabranch_sim::{DeliveryTrace, RATE_MAX, RateSpec, ReorderSpec, STEP_MIN, STEPS_MAX, ScatterSpec, Steps};
use anabranch_units::{Rate, SimSpan};

use super::Checked;
use super::keys::{DelayChangeKeys, RateChangeKeys, ReorderKeys, TraceKeys};
use super::values::{Probability, Text};
use crate::diagnostic::Fault;
use crate::document::Path;

/// The keys for the rate of a link in one direction.
pub(super) struct Service<'a> {
    /// The rate; above zero if present.
    pub(super) rate: Option<Rate>,
    pub(super) changes: &'a [RateChangeKeys],
    pub(super) period: Option<Text<SimSpan>>,
    pub(super) trace: Option<&'a TraceKeys>,
}

impl Service<'_> {
    /// The rate of the link, for a trace its mean, and its variation.
    pub(super) fn check(&self, path: &Path) -> Checked<(Rate, Option<RateSpec>)> {
        match (self.rate, self.trace) {
            (Some(_), Some(_)) => {
                let fault = Fault::new("a link with a trace has no other rate");
                Err((path.key("trace"), fault.remedy("remove `rate` or `trace`")))
            }
            (None, None) => {
                Err((path.clone(), Fault::new("a link has no rate").remedy("write a `rate`, such as \"10Mbit/s\"")))
            }
            (None, Some(trace)) => self.replay(trace, path),
            (Some(rate), None) if self.changes.is_empty() => match self.period {
                None => Ok((rate, None)),
                Some(_) => {
                    let fault = Fault::new("there are no changes that could begin anew");
                    Err((path.key("rate_period"), fault.remedy("add `rate_changes`, or remove it")))
                }
            },
            (Some(rate), None) => {
                let changes = self.changes.iter().map(|change| (change.at.0, change.rate.0));
                let steps = steps(changes.collect(), self.period, "rate", path)?;
                for (index, change) in self.changes.iter().enumerate() {
                    if change.rate.0.bits_per_second() > RATE_MAX {
                        let fault = Fault::new(format!("no link sends {}", change.rate.0));
                        let path = path.key("rate_changes").index(index).key("rate");
                        return Err((path, fault.remedy("use a rate up to 1Tbit/s")));
                    }
                }
                let rates = RateSpec::Steps(steps);
                if !rates.is_valid(rate) {
                    let fault = Fault::new("the link ends at a rate of 0 bit/s, for ever");
                    let remedy = "add a later change, a `rate_period`, or use `outages`";
                    return Err((path.key("rate_changes"), fault.remedy(remedy)));
                }
                Ok((rate, Some(rates)))
            }
        }
    }

    fn replay(&self, trace: &TraceKeys, path: &Path) -> Checked<(Rate, Option<RateSpec>)> {
        let path = path.key("trace");
        if !self.changes.is_empty() || self.period.is_some() {
            let fault = Fault::new("a trace says how the rate changes");
            return Err((path, fault.remedy("remove `rate_changes` and `rate_period`, or `trace`")));
        }
        let TraceKeys(millis) = trace;
        if millis.len() > DeliveryTrace::OPPORTUNITIES_MAX {
            let fault = Fault::new(format!("a trace of {} opportunities", millis.len()));
            return Err((path, fault.remedy(format!("use at most {}", DeliveryTrace::OPPORTUNITIES_MAX))));
        }
        if let Some(index) = millis.windows(2).position(|pair| pair[1] < pair[0]) {
            let fault = Fault::new(format!("opportunity {} of the trace is before the one in front of it", index + 2));
            return Err((path, fault.remedy("put them in the order of time")));
        }
        let opportunities = millis.iter().map(|&ms| SimSpan::from_millis(ms.min(MILLIS_MAX))).collect();
        let trace = DeliveryTrace { opportunities };
        let (rate, rates) = (trace.rate(), RateSpec::Trace(trace));
        if rate.bits_per_second() == 0 || !rates.is_valid(rate) {
            let fault = Fault::new("the trace has no opportunity, or ends at once");
            return Err((path, fault.remedy("its last line is its length in milliseconds, above 0")));
        }
        Ok((rate, Some(rates)))
    }
}

/// The limit of a time in a trace: some months, less than the range of the simulator's clock.
const MILLIS_MAX: u64 = 10_000_000_000;

/// The delays of a link.
pub(super) fn delays(
    changes: &[DelayChangeKeys],
    period: Option<Text<SimSpan>>,
    path: &Path,
) -> Checked<Option<Steps<SimSpan>>> {
    if changes.is_empty() {
        return match period {
            None => Ok(None),
            Some(_) => {
                let fault = Fault::new("there are no changes that could begin anew");
                Err((path.key("delay_period"), fault.remedy("add `delay_changes`, or remove it")))
            }
        };
    }
    let changes = changes.iter().map(|change| (change.at.0, change.delay.0)).collect();
    steps(changes, period, "delay", path).map(Some)
}

/// The reordering and duplication of a link.
pub(super) fn scatter(
    reorder: Option<&ReorderKeys>,
    duplicate: Option<Probability>,
    delays: Option<Steps<SimSpan>>,
    path: &Path,
) -> Checked<ScatterSpec> {
    let reorder = reorder.map(|ReorderKeys { share, extra }| ReorderSpec { share: share.0, extra: extra.0 });
    let scatter = ScatterSpec { delays, reorder, duplicates: duplicate.map_or(0.0, |share| share.0) };
    if scatter.is_valid() {
        return Ok(scatter);
    }
    let fault = Fault::new("a share is from 0 to 1");
    Err((path.key("reorder"), fault.remedy("use such as share = 0.01")))
}

fn steps<T>(steps: Vec<(SimSpan, T)>, period: Option<Text<SimSpan>>, what: &str, path: &Path) -> Checked<Steps<T>> {
    let count = steps.len();
    let steps = Steps { steps, period: period.map(|period| period.0) };
    if steps.is_valid() {
        return Ok(steps);
    }
    let path = path.key(&format!("{what}_changes"));
    if count > STEPS_MAX {
        return Err((path, Fault::new(format!("{count} changes")).remedy(format!("use at most {STEPS_MAX}"))));
    }
    let fault = Fault::new(format!("the changes of the {what} are not in order, or do not fit their period"));
    let remedy =
        format!("put each at least {STEP_MIN} after the one before it, and all of them between 0s and `{what}_period`");
    Err((path, fault.remedy(remedy)))
}

//! The reports of classes of flows: the completion times of their messages.

use super::Simulation;
use crate::report::ClassReport;
use crate::scenario::class::{self, RANGES};

/// A message of a class.
struct Message {
    bytes: u64,
    /// The completion time in seconds and the slowdown against the empty path; `None` if it has not arrived.
    took: Option<(f64, f64)>,
}

impl Simulation<'_> {
    /// The reports of all classes, each followed by those of its ranges of sizes.
    pub(super) fn classes(&self) -> Vec<ClassReport> {
        let names = class::names(&self.scenario.flows).into_iter();
        names
            .flat_map(|name| {
                let messages = self.messages(name);
                RANGES.map(|(suffix, range)| {
                    let within: Vec<&Message> =
                        messages.iter().filter(|message| range.contains(&message.bytes)).collect();
                    class_report(format!("{name}{suffix}"), &within)
                })
            })
            .collect()
    }

    /// The messages of a class that were offered or requested.
    fn messages(&self, name: &str) -> Vec<Message> {
        let mut messages = Vec::new();
        for (flow, ends) in self.scenario.flows.iter().zip(&self.flows) {
            let Some(class) = flow.class.as_ref().filter(|class| class.name == name) else { continue };
            let (source, sink) = (self.world.account(ends.source), self.world.account(ends.sink));
            let Some(times) = sink.messages() else { continue };
            let is_asked = times.asked.is_some();
            let begun: Vec<_> = match times.asked {
                Some(asked) => asked.to_vec(),
                None => source.offered().into_iter().flatten().map(|portion| portion.time).collect(),
            };
            for (index, (&begun, &bytes)) in begun.iter().zip(&ends.messages).enumerate() {
                let took = times.finished.get(index).map(|finished| {
                    let seconds = finished.since(begun).as_secs_f64();
                    (seconds, seconds / class.empty_path.time_of(bytes, is_asked).as_secs_f64())
                });
                messages.push(Message { bytes, took });
            }
        }
        messages
    }
}

fn class_report(id: String, messages: &[&Message]) -> ClassReport {
    let took: Vec<(f64, f64)> = messages.iter().filter_map(|message| message.took).collect();
    let sorted = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = took.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (times, slowdowns) = (sorted(|it| it.0), sorted(|it| it.1));
    ClassReport {
        id,
        messages: messages.len() as u64,
        finished: took.len() as u64,
        completion_mean_s: mean(&times),
        completion_p50_s: percentile(&times, 50),
        completion_p95_s: percentile(&times, 95),
        completion_p99_s: percentile(&times, 99),
        slowdown_mean: mean(&slowdowns),
        slowdown_p50: percentile(&slowdowns, 50),
        slowdown_p95: percentile(&slowdowns, 95),
        slowdown_p99: percentile(&slowdowns, 99),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The percentile of sorted values: the least value that `percent` per cent do not exceed.
fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let of = |percent| percentile(&values, percent);
        assert_eq!((of(50), of(95), of(99)), (Some(5.0), Some(10.0), Some(10.0)));
        assert_eq!(percentile(&[], 50), None);
    }
}

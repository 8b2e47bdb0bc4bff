//! The outcome of a run: its report, and the measures of its series.

use std::collections::BTreeMap;

use super::Trace;
use crate::experiment::Experiment;
use crate::expression::{Expression, ExpressionError, Found};
use crate::report::Report;

/// A run, and what some measures of it are.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) report: Report,
    /// Those that ask for series; the others follow from the report.
    measures: BTreeMap<String, Result<f64, ExpressionError>>,
}

impl Run {
    /// Evaluates the measures of a run that has recorded their series.
    pub(super) fn measured<'a>(
        report: Report,
        trace: &Trace<'_>,
        measures: impl Iterator<Item = &'a (String, Expression)>,
    ) -> Self {
        // Measures often ask the same series, which takes longer to put together than to copy.
        let mut known: BTreeMap<String, Found> = BTreeMap::new();
        let mut lookup = |name: &str| match known.get(name) {
            Some(found) => Ok(found.clone()),
            None => {
                let found = trace.lookup(name)?;
                known.insert(name.to_owned(), found.clone());
                Ok(found)
            }
        };
        let value = |name: &str, _: &[String]| report.gauge(name).map_err(ExpressionError);
        let answer = |(name, expression): &(String, Expression)| {
            (name.clone(), expression.evaluate_run(&mut { value }, &mut lookup))
        };
        Self { measures: measures.map(answer).collect(), report }
    }

    /// The value of a measure or a gauge.
    pub(crate) fn value(&self, experiment: &Experiment, name: &str) -> Result<f64, ExpressionError> {
        if let Some(answer) = self.measures.get(name) {
            return answer.clone();
        }
        let gauge = |name: &str| self.report.gauge(name).map_err(ExpressionError);
        match experiment.measures().iter().find(|(known, _)| known == name) {
            // A measure is made of gauges alone: it has no labels, and cannot name itself.
            Some((_, expression)) => expression.evaluate(&mut |name, _| gauge(name)),
            None => gauge(name),
        }
    }
}

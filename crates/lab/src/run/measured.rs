//! The outcome of a run: its report, and the measures of its series.

use std::collections::BTreeMap;

use super::Trace;
use crate::experiment::Experiment;
use crate::expression::{Expression, ExpressionError, Found};
use crate::report::Report;

/// A run with the values of some measures.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) report: Report,
    /// The measures that use series; the others follow from the report.
    measures: BTreeMap<String, Result<f64, ExpressionError>>,
}

impl Run {
    /// Evaluates the measures of a run that has recorded their series.
    pub(super) fn measured<'a>(
        report: Report,
        trace: &Trace<'_>,
        measures: impl Iterator<Item = &'a (String, Expression)>,
    ) -> Self {
        // Measures often use the same series, and a copy is faster than a new evaluation.
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
            // A measure consists of gauges only: it has no labels, and cannot use itself.
            Some((_, expression)) => expression.evaluate(&mut |name, _| gauge(name)),
            None => gauge(name),
        }
    }
}

//! Judges claims: computes the sample of a claim, with a value for each seed, and compares it with the band.

use super::engine;
use super::outcome::{
    DescribedNetwork, ExperimentOutcome, JudgedBand, JudgedClaim, JudgedNote, Measured, Measurement, PublishedValue,
    VariedAxis,
};
use super::plan::{Column, Plan};
use super::totals::Under;
use crate::experiment::{Claim, CountsAs, Experiment, Piece, Published, Statistic, Variant};
use crate::expression::{Expression, ExpressionError};
use crate::run::Run;
use crate::statistics::{Interval, Sample};
use crate::verdict::Verdict;

/// The runs of an experiment, from which its claims are judged.
pub(super) struct Results<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) index: usize,
    pub(super) plan: &'a Plan<'a>,
    pub(super) runs: &'a [Option<Run>],
}

impl Results<'_> {
    /// The outcome without its figures.
    pub(super) fn outcome(&self, seeds: Option<u32>, command: String) -> ExperimentOutcome {
        let experiment = self.experiment;
        let first = experiment.first();
        ExperimentOutcome {
            item: experiment.name().to_owned(),
            question: experiment.question().to_owned(),
            file: experiment.file().to_owned(),
            seeds: seeds.unwrap_or(experiment.seeds),
            is_random: self.plan.variants.iter().any(|((index, ..), runs)| *index == self.index && runs.len() > 1),
            seed: first.seed,
            duration: first.duration.to_string(),
            axes: experiment
                .axes
                .iter()
                .map(|axis| VariedAxis {
                    name: axis.name.clone(),
                    values: axis.values.iter().map(|value| value.label.clone()).collect(),
                    keys: axis.keys(),
                })
                .collect(),
            topology: DescribedNetwork::of(first),
            claims: experiment.claims.iter().map(|claim| self.judge(claim)).collect(),
            notes: experiment
                .notes
                .iter()
                .map(|note| JudgedNote { item: note.item.clone(), text: self.text(&note.pieces) })
                .collect(),
            figures: Vec::new(),
            source: experiment.source(),
            command,
        }
    }

    pub(super) fn judge(&self, claim: &Claim) -> JudgedClaim {
        let sample = self.statistic(claim, Column::Own);
        let published = claim.published.number();
        // A claim without a measured value is not reproduced.
        let admitted = sample.as_ref().is_ok_and(|sample| claim.band.admits(published, sample));
        let under = Under::of(claim.source, claim.counts_as);
        let verdict = match (claim.not_reproducible, admitted) {
            (true, _) => Verdict::NotReproducible,
            (false, true) if under.is_result() => Verdict::Reproduced,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Deviates,
        };
        let because = match (&sample, verdict) {
            (_, Verdict::Reproduced | Verdict::Holds) => None,
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), _) => claim.because.clone(),
        };
        let band = sample
            .as_ref()
            .map_or(Interval { low: f64::NAN, high: f64::NAN }, |sample| claim.band.interval(published, sample));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let engine = self.has_engine(claim).then(|| self.statistic(claim, Column::Engine));
        JudgedClaim {
            item: claim.item.clone(),
            title: claim.title.clone(),
            source: claim.source,
            counts_as: claim.counts_as,
            cite: claim.cite.clone(),
            row: claim.row.clone(),
            column: claim.column.clone(),
            kind: claim.kind,
            unit: claim.unit.clone(),
            published: match &claim.published {
                Published::Number(number) => PublishedValue::Number(*number),
                Published::Words(words) => PublishedValue::Words(words.clone()),
            },
            measured: Measured {
                ours: sample.as_ref().ok().map(measurement),
                engine: engine.as_ref().and_then(|sample| sample.as_ref().ok()).map(measurement),
            },
            engine: engine.map(|engine| engine::beside(claim, verdict, &sample, &engine)),
            band: JudgedBand { kind: claim.band.kind(), low: finite(band.low), high: finite(band.high) },
            verdict,
            because,
            is_missed: verdict == Verdict::Deviates && (claim.because.is_none() || sample.is_err()),
            is_open: verdict == Verdict::Deviates && claim.is_open,
            is_coarse: verdict == Verdict::Reproduced && claim.is_coarse,
        }
    }

    /// The sample of a claim: a value for each seed.
    pub(super) fn statistic(&self, claim: &Claim, column: Column) -> Result<Sample, ExpressionError> {
        match &claim.statistic {
            Statistic::Value(expression) => self.sample(expression, column),
            Statistic::Order(expressions) => self.lead(expressions, column),
        }
    }

    /// Whether our own transport has run a part of the claim, and could give another value.
    fn has_engine(&self, claim: &Claim) -> bool {
        claim.counts_as == CountsAs::Result && self.has_column(claim, Column::Engine)
    }

    /// Whether a part of the claim was run in a column.
    pub(super) fn has_column(&self, claim: &Claim, column: Column) -> bool {
        let mut has_column = false;
        for expression in claim.statistic.expressions() {
            let ask = &mut |variant: &Variant, _: &str| {
                has_column |= self.plan.variants.contains_key(&(self.index, variant.clone(), column));
                Ok(1.0)
            };
            self.experiment.evaluate(expression, ask).expect("it was evaluated in the same way when it was read");
        }
        has_column
    }

    /// The samples of an expression, seed by seed. A variant that ran once counts for every seed.
    fn sample(&self, expression: &Expression, column: Column) -> Result<Sample, ExpressionError> {
        let mut seeds = 1;
        let count = &mut |variant: &Variant, _: &str| {
            seeds = seeds.max(self.runs(variant, column).len());
            Ok(1.0)
        };
        self.experiment.evaluate(expression, count)?;
        let mut value = |seed: usize| {
            let gauge = &mut |variant: &Variant, name: &str| {
                let runs = self.runs(variant, column);
                runs[seed % runs.len()]
                    .as_ref()
                    .expect("an experiment is judged when its last run is done")
                    .value(self.experiment, name)
            };
            self.experiment.evaluate(expression, gauge)
        };
        (0..seeds).map(&mut value).collect::<Result<_, _>>().map(Sample::new)
    }

    /// The smallest lead of each of several means over the next, as a sample.
    fn lead(&self, expressions: &[Expression], column: Column) -> Result<Sample, ExpressionError> {
        let mut least: Option<Sample> = None;
        for pair in expressions.windows(2) {
            let lead = self.sample(&pair[0].minus(&pair[1]), column)?;
            if least.as_ref().is_none_or(|least| lead.mean() < least.mean()) {
                least = Some(lead);
            }
        }
        Ok(least.expect("an order is of two things at least"))
    }

    /// The runs of a variant in a column. A run without our transport, or unchanged, is shared by all columns.
    fn runs(&self, variant: &Variant, column: Column) -> &[Option<Run>] {
        let of = |column| self.plan.variants.get(&(self.index, variant.clone(), column));
        let runs = of(column).or_else(|| of(Column::Own)).expect("every variant that is asked for was run");
        &self.runs[runs.clone()]
    }

    fn text(&self, pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(expression, decimals) => match self.sample(expression, Column::Own) {
                Ok(sample) => format!("{:.decimals$}", sample.mean()),
                Err(error) => format!("({error})"),
            },
        };
        pieces.iter().map(show).collect()
    }
}

fn measurement(sample: &Sample) -> Measurement {
    let Interval { low, high } = sample.prediction();
    Measurement { value: sample.mean(), seeds: sample.count(), sd: sample.sd(), low, high }
}

//! Totals of claims and verdicts by source. Checks that cannot fail, and regressions, are no results and are listed separately.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{JudgedClaim, Outcome, Paper};
use crate::experiment::{CountsAs, Source};
use crate::verdict::Verdict;

/// The category of a claim in the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Under {
    /// Results printed by a paper.
    Paper,
    /// Results of another implementation, ns-2, that we ran.
    Oracle,
    /// Results of another simulator, ns-3, with its own laws.
    Simulator,
    /// Results derived from a law.
    Analytic,
    /// Results of our transport over real links.
    Real,
    /// Aims for our own law.
    Aim,
    /// Publications of others about their laws and queues.
    Published,
    /// Criteria for any congestion law.
    Criterion,
    /// Derivations, which a simulation cannot fail.
    Derivation,
    /// Inputs of the experiments.
    Input,
    /// Regressions against our own earlier runs.
    Regression,
}

impl Under {
    /// Every category: results first.
    pub const ALL: [Self; 11] = [
        Self::Paper,
        Self::Published,
        Self::Oracle,
        Self::Simulator,
        Self::Analytic,
        Self::Real,
        Self::Aim,
        Self::Criterion,
        Self::Derivation,
        Self::Input,
        Self::Regression,
    ];

    /// The category of a claim.
    pub fn of(source: Source, counts_as: CountsAs) -> Self {
        match (counts_as, source) {
            (CountsAs::Derivation, _) => Self::Derivation,
            (CountsAs::Input, _) => Self::Input,
            (CountsAs::Result, Source::Paper) => Self::Paper,
            (CountsAs::Result, Source::Published) => Self::Published,
            (CountsAs::Result, Source::Oracle) => Self::Oracle,
            (CountsAs::Result, Source::Simulator) => Self::Simulator,
            (CountsAs::Result, Source::Analytic) => Self::Analytic,
            (CountsAs::Result, Source::Real) => Self::Real,
            (CountsAs::Result, Source::Aim) => Self::Aim,
            (CountsAs::Result, Source::Criterion) => Self::Criterion,
            (CountsAs::Result, Source::Regression) => Self::Regression,
        }
    }

    /// Whether these are results: from another source, and a simulation could give another value.
    pub fn is_result(self) -> bool {
        !matches!(self, Self::Derivation | Self::Input | Self::Regression)
    }

    /// The name beside a number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "the papers",
            Self::Published => "figures of others",
            Self::Oracle => "ns-2's golden runs",
            Self::Simulator => "ns-3's laws",
            Self::Analytic => "derived from the laws",
            Self::Real => "real links",
            Self::Aim => "aims of our own",
            Self::Criterion => "criteria",
            Self::Derivation => "derivations",
            Self::Input => "inputs",
            Self::Regression => "regressions",
        }
    }

    /// The definition of the category.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Paper => "what the papers print, computed from scratch",
            Self::Published => "what others have published of their laws and queues, papers and RFCs",
            Self::Oracle => "what ns-2 gave when we ran it, with prototypes of rules that it has not",
            Self::Simulator => "what ns-3's own laws did on the same network when we ran them",
            Self::Analytic => "what the laws give on paper",
            Self::Real => "what the transport did over real links when we measured it",
            Self::Aim => "what we want of the default law, written down before it could do that",
            Self::Criterion => "what congestion control is to do alone, beside others and on difficult paths",
            Self::Derivation => "arithmetic on printed numbers, or so by construction: no simulation can fail them",
            Self::Input => "what the experiments were given",
            Self::Regression => "our own earlier runs, to detect changes; no other source has these numbers",
        }
    }
}

/// The total of one category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Total {
    /// The category of these claims.
    pub under: Under,
    /// The number of claims.
    pub claims: usize,
    /// The number of cited places: a sentence or a table. One place may give claims for several alphas, networks, cells or
    /// readings.
    pub places: usize,
    /// Claims within their band.
    pub good: usize,
    /// Of these, claims that no change of a sensitivity run flips.
    pub coarse: usize,
    /// Claims outside their band for a given reason.
    pub explained: usize,
    /// Claims outside their band for a reason not yet known.
    pub open: usize,
    /// Claims outside their band without a reason.
    pub missed: usize,
    /// Claims known to be impossible to reproduce.
    pub not_reproducible: usize,
}

impl Total {
    fn none(under: Under) -> Self {
        Self { under, claims: 0, places: 0, good: 0, coarse: 0, explained: 0, open: 0, missed: 0, not_reproducible: 0 }
    }

    /// Claims outside their band.
    pub fn deviate(&self) -> usize {
        self.explained + self.open + self.missed
    }

    fn with(self, claim: &JudgedClaim) -> Self {
        let is = |what: bool| usize::from(what);
        let is_good = matches!(claim.verdict, Verdict::Reproduced | Verdict::Holds);
        let deviates = claim.verdict == Verdict::Deviates;
        let is_explained = deviates && !claim.is_open && !claim.is_missed;
        Self {
            under: self.under,
            claims: self.claims + 1,
            places: self.places,
            good: self.good + is(is_good),
            coarse: self.coarse + is(claim.is_coarse),
            explained: self.explained + is(is_explained),
            open: self.open + is(deviates && claim.is_open && !claim.is_missed),
            missed: self.missed + is(claim.is_missed),
            not_reproducible: self.not_reproducible + is(claim.verdict == Verdict::NotReproducible),
        }
    }

    /// The non-empty totals of some claims, in the order of [`Under::ALL`].
    pub fn of<'a>(claims: impl Iterator<Item = &'a JudgedClaim> + Clone) -> Vec<Self> {
        let total = |under: &Under| {
            let claims = claims.clone().filter(|claim| claim.under() == *under);
            let places: BTreeSet<&str> = claims.clone().map(|claim| claim.cite.as_str()).collect();
            Self { places: places.len(), ..claims.fold(Self::none(*under), Self::with) }
        };
        Under::ALL.iter().map(total).filter(|total| total.claims > 0).collect()
    }
}

impl JudgedClaim {
    /// The category in which it is counted.
    pub fn under(&self) -> Under {
        Under::of(self.source, self.counts_as)
    }
}

impl Paper {
    /// All its claims.
    pub fn claims(&self) -> impl Iterator<Item = &JudgedClaim> + Clone {
        self.experiments.iter().flat_map(|experiment| &experiment.claims)
    }

    /// The totals of its claims.
    pub fn totals(&self) -> Vec<Total> {
        Total::of(self.claims())
    }
}

impl Outcome {
    /// The totals of all claims.
    pub fn totals(&self) -> Vec<Total> {
        Total::of(self.claims())
    }
}

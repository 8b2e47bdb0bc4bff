//! How many claims there are, and what became of them, by who says so. What cannot fail and what holds the project to itself is no result
//! and stands apart.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{JudgedClaim, Outcome, Paper};
use crate::experiment::{CountsAs, Source};
use crate::verdict::Verdict;

/// Under which total a claim is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Under {
    /// Results that a paper prints.
    Paper,
    /// Results of another implementation, ns-2, that we ran.
    Oracle,
    /// Results that follow from a law on paper.
    Analytic,
    /// Results of the transport itself over real links.
    Real,
    /// Results that we want of our own law.
    Aim,
    /// Results that a criterion for congestion control asks of any law.
    Criterion,
    /// What no simulation can fail.
    Derivation,
    /// What the experiments were given.
    Input,
    /// Our own earlier runs.
    Regression,
}

impl Under {
    /// All of them: results first.
    pub const ALL: [Self; 9] = [
        Self::Paper,
        Self::Oracle,
        Self::Analytic,
        Self::Real,
        Self::Aim,
        Self::Criterion,
        Self::Derivation,
        Self::Input,
        Self::Regression,
    ];

    /// Where a claim is counted.
    pub fn of(source: Source, counts_as: CountsAs) -> Self {
        match (counts_as, source) {
            (CountsAs::Derivation, _) => Self::Derivation,
            (CountsAs::Input, _) => Self::Input,
            (CountsAs::Result, Source::Paper) => Self::Paper,
            (CountsAs::Result, Source::Oracle) => Self::Oracle,
            (CountsAs::Result, Source::Analytic) => Self::Analytic,
            (CountsAs::Result, Source::Real) => Self::Real,
            (CountsAs::Result, Source::Aim) => Self::Aim,
            (CountsAs::Result, Source::Criterion) => Self::Criterion,
            (CountsAs::Result, Source::Regression) => Self::Regression,
        }
    }

    /// Whether these are results: somebody else says what must come out, and a simulation could give something else.
    pub fn is_result(self) -> bool {
        matches!(self, Self::Paper | Self::Oracle | Self::Analytic | Self::Real | Self::Aim | Self::Criterion)
    }

    /// What it is called beside a number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "the papers",
            Self::Oracle => "ns-2's golden runs",
            Self::Analytic => "derived from the laws",
            Self::Real => "real links",
            Self::Aim => "aims of our own",
            Self::Criterion => "criteria",
            Self::Derivation => "derivations",
            Self::Input => "inputs",
            Self::Regression => "regressions",
        }
    }

    /// What is counted there.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Paper => "what the papers print, computed from scratch",
            Self::Oracle => "what ns-2 gave when we ran it, with prototypes of rules that it has not",
            Self::Analytic => "what the laws give on paper",
            Self::Real => "what the transport did over real links when we measured it",
            Self::Aim => "what we want of the default law, written down before it could do that",
            Self::Criterion => "what congestion control is to do beside others, alone and on difficult paths",
            Self::Derivation => "arithmetic on printed numbers, or so by construction: no simulation can fail them",
            Self::Input => "what the experiments were given",
            Self::Regression => "our own earlier runs: a change is to be noticed, nobody else says so",
        }
    }
}

/// How many claims are counted in one place, and what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Where.
    pub under: Under,
    /// All of them.
    pub claims: usize,
    /// From how many places they are, as they are cited: a sentence or a table. One of them may be claimed for several alphas, networks,
    /// cells or readings.
    pub places: usize,
    /// Within their band; of what is no result, they hold.
    pub good: usize,
    /// Of those, the ones that no change of a sensitivity run flips.
    pub coarse: usize,
    /// Not within their band, and the experiment says why.
    pub explained: usize,
    /// Not within their band, and the reason is still to be found.
    pub open: usize,
    /// Not within their band, and the experiment does not say why.
    pub missed: usize,
    /// Known to be impossible from what the paper tells.
    pub not_reproducible: usize,
}

impl Total {
    fn none(under: Under) -> Self {
        Self { under, claims: 0, places: 0, good: 0, coarse: 0, explained: 0, open: 0, missed: 0, not_reproducible: 0 }
    }

    /// Not within their band.
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

    /// What there is of some claims: the places that have any, in the order of [`Under::ALL`].
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
    /// Where it is counted.
    pub fn under(&self) -> Under {
        Under::of(self.source, self.counts_as)
    }
}

impl Paper {
    /// All its claims.
    pub fn claims(&self) -> impl Iterator<Item = &JudgedClaim> + Clone {
        self.experiments.iter().flat_map(|experiment| &experiment.claims)
    }

    /// Its claims, by who says so.
    pub fn totals(&self) -> Vec<Total> {
        Total::of(self.claims())
    }
}

impl Outcome {
    /// All claims, by who says so.
    pub fn totals(&self) -> Vec<Total> {
        Total::of(self.claims())
    }
}

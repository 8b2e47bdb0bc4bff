//! The sensitivity of claims: each is judged again with every input a fifth smaller and larger.

use std::ops::ControlFlow;

use super::asked::{Asked, asked_by};
use super::judge::Results;
use super::plan::{Column, Job, Plan};
use super::work::work;
use super::{Options, Under};
use crate::diagnostic::Diagnostic;
use crate::experiment::vary::seeds as seeds_of;
use crate::experiment::{Claim, Experiment};
use crate::run::Run;
use crate::scenario::change::Change;
use crate::statistics::Interval;

/// A reproduced claim, and its values with changed inputs.
#[derive(Clone, Debug)]
pub struct Shaken<'a> {
    /// The experiment of the claim.
    pub experiment: &'a Experiment,
    /// The claim that is tested.
    pub claim: &'a Claim,
    /// The value that is compared with the published number, with unchanged inputs; a mean if chance is involved.
    pub ours: f64,
    /// The range of the values with changed inputs, as far as they can be measured.
    pub changed: Interval,
    /// The changes that affect the claim's runs.
    pub tried: Vec<Change>,
    /// The changes that flip the verdict: the number leaves the band, or can no longer be measured.
    pub flips: Vec<Change>,
}

impl Shaken<'_> {
    /// Whether there were changes, and none flipped the verdict.
    pub fn is_coarse(&self) -> bool {
        !self.tried.is_empty() && self.flips.is_empty()
    }
}

/// Judges every claim that a paper prints as a result, and every reproduced one again with each [`Change`], in the order of
/// `experiments`. `on_run` receives the number of finished runs and of all runs.
///
/// The seeds are those of the experiments, so that the prediction intervals are the same as in `reproduce`.
///
/// # Errors
/// If a variant is no scenario, which is found before anything runs; or a controller of a flow's own fails.
pub fn shake(
    experiments: &[Experiment],
    options: Options,
    mut on_run: impl FnMut(usize, usize),
) -> Result<Vec<Shaken<'_>>, Diagnostic> {
    let plan = plan(experiments, options.seeds)?;
    let total = plan.jobs.len();
    let mut runs: Vec<Option<Run>> = (0..total).map(|_| None).collect();
    let mut done = 0;
    on_run(done, total);
    let all = work(&plan, options.jobs, |job, run, _| {
        runs[job] = Some(run);
        done += 1;
        on_run(done, total);
        ControlFlow::Continue(())
    })?;
    debug_assert!(all.is_continue(), "nobody stops it");
    let mut shaken = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        let results = Results { experiment, index, plan: &plan, runs: &runs };
        shaken.extend(claims(experiment).filter_map(|claim| results.shaken(experiment, claim)));
    }
    Ok(shaken)
}

/// The claims that can be tested.
fn claims(experiment: &Experiment) -> impl Iterator<Item = &Claim> {
    experiment
        .claims
        .iter()
        .filter(|claim| Under::of(claim.source, claim.counts_as) == Under::Paper && !claim.not_reproducible)
}

/// The plan of the runs that the papers' claims need, and of the same runs with every change that affects them.
fn plan(experiments: &[Experiment], seeds: Option<u32>) -> Result<Plan<'_>, Diagnostic> {
    let mut plan = Plan { experiments: experiments.iter().collect(), ..Plan::default() };
    for (index, experiment) in experiments.iter().enumerate() {
        for Asked { variant, judged, .. } in asked_by(experiment, claims(experiment)) {
            let scenario = experiment.scenario(&variant)?;
            let changes = Change::all().filter_map(|change| Some((Column::Changed(change), scenario.changed(change)?)));
            for (column, scenario) in [(Column::Own, scenario.clone())].into_iter().chain(changes) {
                let seeds = seeds_of(experiment, &variant, &scenario, seeds);
                let measures = judged.clone().unwrap_or_default();
                let job = Job { experiment: index, scenario, measures, shown: None };
                plan.add((index, variant.clone(), column), job, seeds);
            }
        }
    }
    Ok(plan)
}

impl Results<'_> {
    /// The effect of the changes on a claim of the experiment; `None` if the claim is not reproduced without a change.
    fn shaken<'a>(&self, experiment: &'a Experiment, claim: &'a Claim) -> Option<Shaken<'a>> {
        let judge = |column| {
            let sample = self.statistic(claim, column).ok()?;
            Some((sample.mean(), claim.band.admits(claim.published.number(), &sample)))
        };
        let (ours, true) = judge(Column::Own)? else { return None };
        let tried = Change::all().filter(|&change| self.has_column(claim, Column::Changed(change))).collect();
        let mut shaken =
            Shaken { experiment, claim, ours, changed: Interval { low: ours, high: ours }, tried, flips: Vec::new() };
        for &change in &shaken.tried {
            let judged = judge(Column::Changed(change));
            if let Some((value, _)) = judged {
                shaken.changed.low = shaken.changed.low.min(value);
                shaken.changed.high = shaken.changed.high.max(value);
            }
            if !judged.is_some_and(|(_, admits)| admits) {
                shaken.flips.push(change);
            }
        }
        Some(shaken)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::document::Document;
    use crate::scenario::change::{Input, Way};

    /// A window of 10 packets on a path of 200.8 ms, without a queue or errors: 49.8 packets a second.
    const WINDOW_LIMITED: &str = r#"# What limits it?
duration = "100s"
link = [{ id = "a", from = "x", to = "y", rate = "10Mbit/s", delay = "100ms" }]
flow = [{ id = "f", from = "x", to = "y", transport = "ns2/sack", packet = "1000B", window = 10 }]
[experiment]
paper = "test-2000"
[measure]
sent = "flow.f.max_seq"
full = "first_time(flow.f.in_flight >= 10, 0)"
lost = "flow.f.dropped_packets"
[[claim]]
item = "text"
title = "Rate"
cite = "T"
row = "within a tenth"
measure = "sent"
published = 4970
band = "±10%"
[[claim]]
item = "text"
title = "Rate"
cite = "T"
row = "within two fifths"
measure = "sent"
published = 4970
band = "±40%"
[[claim]]
item = "text"
title = "Window"
cite = "T"
row = "opens"
kind = "time"
measure = "full"
published = 1
band = "±2"
[[claim]]
item = "text"
title = "Losses"
cite = "T"
row = "one"
measure = "lost"
published = 1
band = "exact"
because = "it does not lose any"
"#;

    #[test]
    fn a_claim_is_coarse_if_no_change_of_what_it_hangs_on_flips_it() {
        let experiments = [Experiment::parse(Document::parse("test-2000/one.toml", WINDOW_LIMITED).unwrap()).unwrap()];
        let options = Options { jobs: NonZeroUsize::MIN, seeds: None };
        let shaken = shake(&experiments, options, |_, _| {}).unwrap();
        let change = |input, way| Change { input, way };
        let [less, more] = [Way::Less, Way::More].map(|way| change(Input::Window, way));
        // The scenario has a queue and a window. A claim that is not reproduced cannot be flipped.
        let tried = vec![change(Input::Queues, Way::Less), change(Input::Queues, Way::More), less, more];
        let of = |row: &str| shaken.iter().find(|it| it.claim.row == row).unwrap();
        assert_eq!(shaken.len(), 3);
        assert!(shaken.iter().all(|it| it.tried == tried));
        assert_eq!((&of("within a tenth").flips, of("within a tenth").is_coarse()), (&vec![less, more], false));
        assert_eq!((&of("within two fifths").flips, of("within two fifths").is_coarse()), (&vec![], true));
        // A window of 8 is never 10: a number that can no longer be measured is not reproduced.
        assert_eq!(of("opens").flips, [less]);
        let Interval { low, high } = of("within a tenth").changed;
        assert!((low / 3976.0 - 1.0).abs() < 0.01 && (high / 5964.0 - 1.0).abs() < 0.01, "{low} to {high}");
    }
}

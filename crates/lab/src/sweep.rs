//! Sweeps: runs every combination of a scenario's axes with several seeds, and computes the mean, spread and interval of every gauge.
//!
//! A point without randomness is run once, as other seeds would give the same result. `rows` keeps each run, so that a later sweep runs only the missing
//! ones. `merge` joins the runs of several machines. A run that fails is reported with its seed, and the others go on.

mod merge;
mod rows;
mod table;

use std::any::Any;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostic::Diagnostic;
use crate::experiment::{Axis, Experiment, Variant};
use crate::parallel;
use crate::run;
use crate::scenario::Scenario;

pub use merge::{Part, merge};
pub use rows::{ENGINE, Row, Rows, head};
pub use table::Table;
pub(crate) use table::{Line, quoted};

/// The options of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of parallel runs.
    pub jobs: NonZeroUsize,
    /// The number of seeds of each point of the grid, from the scenario's seed upwards.
    pub seeds: u32,
    /// The part of the grid: the points whose number modulo `count` is `index`.
    pub shard: Shard,
}

/// One of several equal parts of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0, below `count`.
    pub index: usize,
    /// The number of parts.
    pub count: NonZeroUsize,
}

impl Shard {
    /// The whole grid.
    pub const WHOLE: Self = Self { index: 0, count: NonZeroUsize::MIN };
}

/// `1/3` is the first of three.
impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse =
            |(index, count): (&str, &str)| Some((index.parse::<usize>().ok()?, count.parse::<NonZeroUsize>().ok()?));
        match text.split_once('/').and_then(parse) {
            Some((index, count)) if (1..=count.get()).contains(&index) => Ok(Self { index: index - 1, count }),
            _ => Err(format!("`{text}` is no shard; write I/N with 1 <= I <= N, such as 1/3")),
        }
    }
}

/// The outcome of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The mean, spread and interval of every gauge and measure.
    pub table: Table,
    /// The rows behind the table, in the order of the grid.
    pub rows: Vec<Row>,
    /// The runs that have no row, in the order of the grid.
    pub failed: Vec<Failed>,
    /// The number of runs that were kept from an earlier sweep.
    pub kept: usize,
    /// The number of points of the grid.
    pub points: usize,
    /// The number of points without randomness, which are run once.
    pub certain: usize,
}

/// A run that failed: a user's controller failed, or the run panicked, which is a bug of the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its place in the grid.
    pub place: GridPlace,
    /// The message of the controller or of the panic.
    pub because: String,
}

/// The results of the runs at given places.
#[derive(Clone, Debug)]
pub struct GridResults {
    /// The rows in the order of the places, without the failed runs.
    pub rows: Vec<Row>,
    /// The failed runs in the order of the places.
    pub failed: Vec<Failed>,
}

/// Observes a sweep. A closure observes only the number of runs.
pub trait Watch {
    /// `done` of the `total` runs that were missing are done.
    fn runs(&mut self, done: usize, total: usize);

    /// A run is done.
    fn row(&mut self, _row: &Row) {}

    /// Whether the sweep goes on.
    fn goes_on(&self) -> bool {
        true
    }
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// One run of a grid. A driver sends places to its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GridPlace {
    /// The number of its point, from 0; the last axis varies fastest.
    pub point: usize,
    /// The offset from the scenario's seed.
    pub seed: u32,
}

/// Runs the grid, except for the runs in `kept`.
///
/// # Errors
/// If a point of the grid is no valid scenario. This is found before anything runs.
///
/// # Panics
/// If `watch` stops the sweep; [`sweep_until`] is for that.
pub fn sweep(experiment: &Experiment, options: Options, kept: &Rows, watch: impl Watch) -> Result<Sweep, Diagnostic> {
    sweep_until(experiment, options, kept, watch).map(|sweep| sweep.expect("the watcher lets it go on"))
}

/// The same; `None` if `watch` stops the sweep: the present runs go on to their ends, and no other run begins.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_until(
    experiment: &Experiment,
    options: Options,
    kept: &Rows,
    watch: impl Watch,
) -> Result<Option<Sweep>, Diagnostic> {
    let mut plan = Plan::new(experiment, options, kept)?;
    let known = plan.jobs.iter().filter(|job| job.row.is_some()).count();
    let ControlFlow::Continue(failed) = run_missing(experiment, &mut plan.jobs, options.jobs, watch) else {
        return Ok(None);
    };
    Ok(Some(plan.finish(experiment, known, failed)))
}

/// The runs of the grid that are not in `kept`.
///
/// # Errors
/// As [`sweep`].
pub fn missing(experiment: &Experiment, options: Options, kept: &Rows) -> Result<Vec<GridPlace>, Diagnostic> {
    let Plan { jobs, .. } = Plan::new(experiment, options, kept)?;
    Ok(jobs.into_iter().filter(|job| job.row.is_none()).map(|job| job.place).collect())
}

/// The sweep of the runs in `kept`. Nothing is run, and missing runs have no row.
///
/// # Errors
/// As [`sweep`].
pub fn known(experiment: &Experiment, options: Options, kept: &Rows) -> Result<Sweep, Diagnostic> {
    let plan = Plan::new(experiment, options, kept)?;
    let known = plan.jobs.iter().filter(|job| job.row.is_some()).count();
    Ok(plan.finish(experiment, known, Vec::new()))
}

/// A run in words, for the message that it failed: `with rate = slow and seed 3`.
///
/// # Errors
/// As [`sweep`].
///
/// # Panics
/// If the grid has no such point.
pub fn describe(experiment: &Experiment, place: GridPlace) -> Result<String, Diagnostic> {
    let point = &experiment.variants()[place.point];
    let first = experiment.scenario(point)?.seed;
    Ok(words(experiment, &experiment.labels(point), first.wrapping_add(place.seed.into())))
}

/// The labels of a run and its seed in words.
fn words(experiment: &Experiment, labels: &[impl AsRef<str>], seed: u64) -> String {
    let label = |(axis, label): (&Axis, &_)| format!("{} = {}", axis.name, AsRef::<str>::as_ref(label));
    let labels: Vec<String> = experiment.axes.iter().zip(labels).map(label).collect();
    match labels.is_empty() {
        true => format!("with seed {seed}"),
        false => format!("with {} and seed {seed}", labels.join(", ")),
    }
}

/// Runs the given places of the grid, as a worker does; `None` if `watch` stops it.
///
/// # Errors
/// As [`sweep`].
///
/// # Panics
/// If the grid has no such point.
pub fn run_some(
    experiment: &Experiment,
    places: &[GridPlace],
    jobs: NonZeroUsize,
    watch: impl Watch,
) -> Result<Option<GridResults>, Diagnostic> {
    let points = experiment.variants();
    let job = |&place: &GridPlace| {
        let point = &points[place.point];
        Ok(Job::new(experiment, point, place, &experiment.scenario(point)?, &experiment.content(point)?))
    };
    let mut runs = places.iter().map(job).collect::<Result<Vec<_>, Diagnostic>>()?;
    let ControlFlow::Continue(failed) = run_missing(experiment, &mut runs, jobs, watch) else { return Ok(None) };
    Ok(Some(GridResults { rows: runs.into_iter().filter_map(|job| job.row).collect(), failed }))
}

/// All runs of a part of the grid.
struct Plan {
    /// The points with their numbers.
    points: Vec<(usize, Variant)>,
    jobs: Vec<Job>,
    /// For each point, the index after its last job.
    ends: Vec<usize>,
    /// The number of points without randomness.
    certain: usize,
}

impl Plan {
    fn new(experiment: &Experiment, options: Options, kept: &Rows) -> Result<Self, Diagnostic> {
        let points = points(experiment, options.shard);
        let (mut jobs, mut ends, mut certain) = (Vec::new(), Vec::with_capacity(points.len()), 0);
        for (number, point) in &points {
            let scenario = experiment.scenario(point)?;
            let content = experiment.content(point)?;
            let is_random = scenario.is_random();
            certain += usize::from(!is_random);
            for seed in 0..if is_random { options.seeds } else { 1 } {
                let mut job = Job::new(experiment, point, GridPlace { point: *number, seed }, &scenario, &content);
                job.row = kept.find(&job.identity).cloned();
                jobs.push(job);
            }
            ends.push(jobs.len());
        }
        Ok(Self { points, jobs, ends, certain })
    }

    /// The sweep after all jobs, except the failed ones, have their rows.
    fn finish(self, experiment: &Experiment, kept: usize, failed: Vec<Failed>) -> Sweep {
        let Self { points, jobs, ends, certain } = self;
        let (mut lines, mut rows) = (Vec::new(), Vec::with_capacity(jobs.len()));
        let mut jobs = jobs.into_iter().map(|job| job.row);
        let mut begin = 0;
        for ((_, point), end) in points.iter().zip(ends) {
            let of_point = rows.len();
            rows.extend(jobs.by_ref().take(end - begin).flatten());
            lines.extend(table::lines_of(experiment, point, &rows[of_point..]));
            begin = end;
        }
        let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
        Sweep { table: Table { axes, lines }, rows, failed, kept, points: points.len(), certain }
    }
}

/// One run of a point.
struct Job {
    place: GridPlace,
    labels: Vec<String>,
    scenario: Scenario,
    identity: String,
    /// The row, if the run is done.
    row: Option<Row>,
}

impl Job {
    fn new(experiment: &Experiment, point: &Variant, place: GridPlace, scenario: &Scenario, content: &str) -> Self {
        let scenario = seeded(scenario, place.seed);
        let identity = rows::identity(content, scenario.seed);
        let labels = experiment.labels(point).into_iter().map(str::to_owned).collect();
        Self { place, labels, scenario, identity, row: None }
    }
}

/// Runs the jobs that have no row, and returns those that fail, in the order of the grid.
fn run_missing(
    experiment: &Experiment,
    jobs: &mut [Job],
    threads: NonZeroUsize,
    mut watch: impl Watch,
) -> ControlFlow<(), Vec<Failed>> {
    let missing: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].row.is_none()).collect();
    let scenarios: Vec<Scenario> = missing.iter().map(|&job| jobs[job].scenario.clone()).collect();
    let mut done = 0;
    watch.runs(done, missing.len());
    if !watch.goes_on() {
        return ControlFlow::Break(());
    }
    let mut failed = Vec::new();
    let run = |scenario: &Scenario| run::run_measured(scenario, experiment);
    each_run(&scenarios, threads, run, |index, run| {
        let job = &mut jobs[missing[index]];
        done += 1;
        match run.and_then(|run| run.map_err(|error| error.to_string())) {
            Ok(run) => {
                let row = Row::of(experiment, &job.labels, &job.identity, &run);
                watch.row(&row);
                job.row = Some(row);
            }
            Err(because) => failed.push(Failed { place: job.place, because }),
        }
        watch.runs(done, missing.len());
        if watch.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failed.sort_by_key(|failed| failed.place);
    ControlFlow::Continue(failed)
}

/// The points of a part of the grid.
fn points(experiment: &Experiment, Shard { index, count }: Shard) -> Vec<(usize, Variant)> {
    experiment.variants().into_iter().enumerate().skip(index).step_by(count.get()).collect()
}

fn seeded(scenario: &Scenario, offset: u32) -> Scenario {
    Scenario { seed: scenario.seed.wrapping_add(offset.into()), ..scenario.clone() }
}

/// Runs scenarios in parallel and passes on each result when it is done, or the message of its panic. If `on_run` breaks, the present runs go on to their
/// ends, and no other run begins.
fn each_run<T: Send>(
    scenarios: &[Scenario],
    jobs: NonZeroUsize,
    run: impl Fn(&Scenario) -> T + Sync,
    mut on_run: impl FnMut(usize, Result<T, String>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let stopped = AtomicBool::new(false);
    // A run owns its world, and the rest of the world is dropped after a panic: no other code sees it half changed.
    let run = |scenario| panic::catch_unwind(AssertUnwindSafe(|| run(scenario))).map_err(|panic| said(&*panic));
    parallel::as_done(
        scenarios.len(),
        jobs,
        |job| (!stopped.load(Ordering::Relaxed)).then(|| run(&scenarios[job])),
        |job, run| {
            let Some(run) = run.filter(|_| !stopped.load(Ordering::Relaxed)) else { return };
            stopped.store(on_run(job, run).is_break(), Ordering::Relaxed);
        },
    );
    if stopped.into_inner() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::testing;

    const GRID: &str = "duration = '1s'\n\
        [[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '10ms'\n\
        queue = { kind = 'drop_tail', packets = 10 }\n\
        [[flow]]\nid = 'f0'\nfrom = 'a'\nto = 'b'\ntransport = 'ns2/sack'\npacket = '1500B'\n\
        [[axis]]\nname = 'rate'\nvalues = { slow = { \"link.l.rate\" = '1Mbit/s' }, fast = { \"link.l.rate\" = '2Mbit/s' } }\n\
        [measure]\nbits = 'flow.f0.goodput_bps'\n";

    fn options(seeds: u32) -> Options {
        Options { jobs: NonZeroUsize::new(2).unwrap(), seeds, shard: Shard::WHOLE }
    }

    fn experiment(text: &str) -> Experiment {
        Experiment::parse(Document::parse("grid.toml", text).unwrap()).unwrap()
    }

    /// With losses, so that seeds differ.
    fn random() -> Experiment {
        experiment(&GRID.replacen("queue =", "error = { kind = 'uniform', rate = 0.01 }\nqueue =", 1))
    }

    struct Until(usize);

    impl Watch for Until {
        fn runs(&mut self, done: usize, _: usize) {
            self.0 = self.0.saturating_sub(done.min(1));
        }

        fn goes_on(&self) -> bool {
            self.0 > 0
        }
    }

    #[test]
    fn each_run_of_a_grid_is_that_of_its_scenario() {
        let sweep = sweep(&random(), options(2), &Rows::default(), |_, _| {}).unwrap();
        let places: Vec<_> = sweep.rows.iter().map(|row| (row.labels()[0].as_str(), row.seed())).collect();
        assert_eq!(places, [("slow", 1), ("slow", 2), ("fast", 1), ("fast", 2)]);
        let text = GRID.replacen("queue =", "error = { kind = 'uniform', rate = 0.01 }\nqueue =", 1);
        let alone = testing::run(&text, &["link.l.rate=2Mbit/s", "seed=2"]);
        assert_eq!(sweep.rows[3].hash(), alone.hash);
        assert_eq!(sweep.rows[3].values()[0], ("bits".to_owned(), Some(alone.flows[0].goodput_bps)));
    }

    #[test]
    fn a_sweep_that_is_stopped_has_no_table() {
        assert!(sweep_until(&random(), options(20), &Rows::default(), Until(1)).unwrap().is_none());
        assert!(sweep_until(&random(), options(1), &Rows::default(), Until(9)).unwrap().is_some());
    }

    /// Two workers run the places of a driver in reverse order, and the driver's table is that of a single machine.
    #[test]
    fn shards_of_sweep_give_same_table() {
        let experiment = random();
        let alone = sweep(&experiment, options(3), &Rows::default(), |_, _| {}).unwrap();
        let mut places = missing(&experiment, options(3), &Rows::default()).unwrap();
        let place = |point, seed| GridPlace { point, seed };
        assert_eq!(places, [place(0, 0), place(0, 1), place(0, 2), place(1, 0), place(1, 1), place(1, 2)]);
        places.reverse();
        let mut rows = Rows::default();
        for part in places.chunks(4) {
            let told = run_some(&experiment, part, NonZeroUsize::MIN, |_, _| {}).unwrap();
            told.expect("nobody stops it").rows.into_iter().for_each(|row| rows.add(row));
        }
        assert!(missing(&experiment, options(3), &rows).unwrap().is_empty());
        let merged = known(&experiment, options(3), &rows).unwrap();
        assert_eq!((merged.kept, &merged.rows), (6, &alone.rows));
    }

    /// Points without randomness have one seed. After more seeds are requested, only these are missing.
    #[test]
    fn only_what_could_differ_is_missing() {
        fn count(experiment: &Experiment, seeds: u32, kept: &Rows) -> usize {
            missing(experiment, options(seeds), kept).unwrap().len()
        }
        assert_eq!(count(&experiment(GRID), 5, &Rows::default()), 2);
        let mut rows = Rows::default();
        let first = run_some(&random(), &[GridPlace { point: 1, seed: 0 }], NonZeroUsize::MIN, |_, _| {}).unwrap();
        first.expect("nobody stops it").rows.into_iter().for_each(|row| rows.add(row));
        assert_eq!((count(&random(), 1, &rows), count(&random(), 2, &rows)), (1, 3));
    }

    /// The seventh run of ten panics; the other nine end, on one thread and on three.
    #[test]
    fn a_run_that_panics_is_told_and_stops_no_other() {
        let of = |seed| Scenario { seed, ..random().scenario(&vec![0]).unwrap() };
        let scenarios: Vec<Scenario> = (1..=10).map(of).collect();
        let run = |scenario: &Scenario| {
            assert!(scenario.seed != 7, "seven is odd");
            run::run(scenario).unwrap().seed
        };
        for threads in [1, 3] {
            let mut told = vec![None; 10];
            let whole = each_run(&scenarios, NonZeroUsize::new(threads).unwrap(), run, |index, run| {
                told[index] = Some(run);
                ControlFlow::Continue(())
            });
            assert!(whole.is_continue());
            let seven = Err("seven is odd".to_owned());
            let expected = (1..=10).map(|seed| Some(if seed == 7 { seven.clone() } else { Ok(seed) }));
            assert_eq!(told, expected.collect::<Vec<_>>());
        }
    }

    /// If all runs of a point failed, it has no line. The other point has one seed left, so its spread is not known.
    #[test]
    fn failed_run_is_missing_in_table() {
        let experiment = random();
        let mut plan = Plan::new(&experiment, options(2), &Rows::default()).unwrap();
        let last = &mut plan.jobs[3..];
        assert!(run_missing(&experiment, last, NonZeroUsize::MIN, |_, _| {}).is_continue());
        let place = |point, seed| Failed { place: GridPlace { point, seed }, because: "why".to_owned() };
        let sweep = plan.finish(&experiment, 0, vec![place(0, 0), place(0, 1), place(1, 0)]);
        assert_eq!((sweep.rows.len(), sweep.rows[0].seed(), sweep.failed.len()), (1, 2, 3));
        assert!(sweep.table.lines.iter().all(|line| line.labels == ["fast"] && line.interval().is_none()));
        assert_eq!(describe(&experiment, sweep.failed[1].place).unwrap(), "with rate = slow and seed 2");
    }

    #[test]
    fn shards_count_from_one() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 1, count: NonZeroUsize::new(3).unwrap() }));
        for text in ["0/3", "4/3", "1/0", "1", "a/b", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}

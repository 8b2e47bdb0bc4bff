//! Runs every combination of a scenario's axes with several seeds, and tells mean, spread and interval of every gauge.
//!
//! A point without randomness is run once: other seeds would give the same. `rows` keeps each run, so that only what is missing is run.

mod rows;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostic::{Diagnostic, Fault};
use crate::experiment::{Experiment, Variant};
use crate::parallel;
use crate::run::{self, ControllerFailed, Run};
use crate::scenario::Scenario;
use crate::statistics::{Interval, Sample};

pub use rows::{Row, Rows, head};

/// How a sweep is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs at once.
    pub jobs: NonZeroUsize,
    /// Seeds of each point of the grid, counted up from the scenario's.
    pub seeds: u32,
    /// Which part of the grid: points whose number leaves `index` when divided by `count`.
    pub shard: Shard,
}

/// One of several equal parts of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0, below `count`.
    pub index: usize,
    /// How many there are.
    pub count: NonZeroUsize,
}

impl Shard {
    /// All of it.
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

/// The table of a sweep.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) axes: Vec<String>,
    pub(crate) lines: Vec<Line>,
}

/// A gauge or a measure at a point of the grid.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) labels: Vec<String>,
    pub(crate) gauge: String,
    /// The runs in which it was measured; nothing if it was in none.
    pub(crate) sample: Option<Sample>,
    /// Whether it is never below zero.
    pub(crate) is_positive: bool,
}

impl Line {
    /// The 95 % confidence interval of the mean, if there are several values. It does not go below zero where no value can.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let sample = self.sample.as_ref().filter(|sample| sample.count() > 1)?;
        let Interval { low, high } = sample.confidence();
        Some(Interval { low: if self.is_positive { low.max(0.0) } else { low }, high })
    }
}

/// The outcome of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Mean, spread and interval of everything.
    pub table: Table,
    /// The rows behind the table, in the order of the grid.
    pub rows: Vec<Row>,
    /// The number of runs that were kept from an earlier sweep.
    pub kept: usize,
    /// The number of points of the grid.
    pub points: usize,
    /// The number of points without randomness, which are run once.
    pub certain: usize,
}

/// Observes a sweep. A closure observes the number of runs alone.
pub trait Watch {
    /// `done` of the `total` runs that were missing are done.
    fn runs(&mut self, done: usize, total: usize);

    /// A run is done.
    fn row(&mut self, _row: &Row) {}

    /// Whether more is to be run.
    fn goes_on(&self) -> bool {
        true
    }
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// One run of a grid: so a driver tells others what to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of its point, from 0, the last axis fastest.
    pub point: usize,
    /// How many seeds after the scenario's.
    pub seed: u32,
}

/// Runs the grid, except for what `kept` has.
///
/// # Errors
/// If a point of the grid is no scenario. It is found before anything runs.
///
/// # Panics
/// If `watch` does not let it go on; [`sweep_until`] is for that.
pub fn sweep(experiment: &Experiment, options: Options, kept: &Rows, watch: impl Watch) -> Result<Sweep, Diagnostic> {
    sweep_until(experiment, options, kept, watch).map(|sweep| sweep.expect("the watcher lets it go on"))
}

/// The same; nothing if `watch` does not let it go on: what runs goes on to its end, and nothing more begins.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_until(
    experiment: &Experiment,
    options: Options,
    kept: &Rows,
    watch: impl Watch,
) -> Result<Option<Sweep>, Diagnostic> {
    let Plan { points, mut jobs, ends, certain } = Plan::new(experiment, options, kept)?;
    let known = jobs.iter().filter(|job| job.row.is_some()).count();
    if run_missing(experiment, &mut jobs, options.jobs, watch)?.is_break() {
        return Ok(None);
    }
    let rows = rows_of(jobs);
    let mut lines = Vec::new();
    let mut begin = 0;
    for ((_, point), &end) in points.iter().zip(&ends) {
        lines.extend(lines_of(experiment, point, &rows[begin..end]));
        begin = end;
    }
    let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
    Ok(Some(Sweep { table: Table { axes, lines }, rows, kept: known, points: points.len(), certain }))
}

/// The runs of the grid that `kept` does not have.
///
/// # Errors
/// As [`sweep`].
pub fn missing(experiment: &Experiment, options: Options, kept: &Rows) -> Result<Vec<Place>, Diagnostic> {
    let Plan { jobs, .. } = Plan::new(experiment, options, kept)?;
    Ok(jobs.into_iter().filter(|job| job.row.is_none()).map(|job| job.place).collect())
}

/// Runs some of the grid, as who was told to does; nothing if `watch` does not let it go on.
///
/// # Errors
/// As [`sweep`].
///
/// # Panics
/// If the grid has no such point.
pub fn run_some(
    experiment: &Experiment,
    places: &[Place],
    jobs: NonZeroUsize,
    watch: impl Watch,
) -> Result<Option<Vec<Row>>, Diagnostic> {
    let points = experiment.variants();
    let job = |&place: &Place| {
        let point = &points[place.point];
        Ok(Job::new(experiment, point, place, &experiment.scenario(point)?, &experiment.content(point)?))
    };
    let mut runs = places.iter().map(job).collect::<Result<Vec<_>, Diagnostic>>()?;
    let whole = run_missing(experiment, &mut runs, jobs, watch)?;
    Ok(whole.is_continue().then(|| rows_of(runs)))
}

/// All runs of a part of the grid.
struct Plan {
    /// With their numbers.
    points: Vec<(usize, Variant)>,
    jobs: Vec<Job>,
    /// Of each point, where its jobs end.
    ends: Vec<usize>,
    /// How many points have nothing random.
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
                let mut job = Job::new(experiment, point, Place { point: *number, seed }, &scenario, &content);
                job.row = kept.find(&job.identity).cloned();
                jobs.push(job);
            }
            ends.push(jobs.len());
        }
        Ok(Self { points, jobs, ends, certain })
    }
}

/// One run of a point.
struct Job {
    place: Place,
    labels: Vec<String>,
    scenario: Scenario,
    identity: String,
    /// Of a run that is done.
    row: Option<Row>,
}

impl Job {
    fn new(experiment: &Experiment, point: &Variant, place: Place, scenario: &Scenario, content: &str) -> Self {
        let scenario = seeded(scenario, place.seed);
        let identity = rows::identity(content, scenario.seed);
        let labels = experiment.labels(point).into_iter().map(str::to_owned).collect();
        Self { place, labels, scenario, identity, row: None }
    }
}

/// Runs the jobs that have no row.
///
/// # Errors
/// If a controller of a flow's own fails in one of them. All others run, and their rows are told before.
fn run_missing(
    experiment: &Experiment,
    jobs: &mut [Job],
    threads: NonZeroUsize,
    mut watch: impl Watch,
) -> Result<ControlFlow<()>, Diagnostic> {
    let missing: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].row.is_none()).collect();
    let scenarios: Vec<Scenario> = missing.iter().map(|&job| jobs[job].scenario.clone()).collect();
    let mut done = 0;
    watch.runs(done, missing.len());
    if !watch.goes_on() {
        return Ok(ControlFlow::Break(()));
    }
    // In the order of the grid, however many threads there are.
    let mut failed = BTreeMap::new();
    let whole = each_run(experiment, &scenarios, threads, |index, run| {
        let job = &mut jobs[missing[index]];
        done += 1;
        match run {
            Ok(run) => {
                let row = Row::of(experiment, &job.labels, &job.identity, &run);
                watch.row(&row);
                job.row = Some(row);
            }
            Err(error) => drop(failed.insert(index, failure(experiment, job, &error))),
        }
        watch.runs(done, missing.len());
        if watch.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let Some((_, first)) = failed.first_key_value().filter(|_| whole.is_continue()) else { return Ok(whole) };
    let fault = Fault::new(format!("{} of {} runs failed, the first {first}", failed.len(), missing.len()));
    Err(fault.about(experiment.file()))
}

/// Which run failed, and why.
fn failure(experiment: &Experiment, job: &Job, error: &ControllerFailed) -> String {
    let axes = experiment.axes.iter().map(|axis| &axis.name).zip(&job.labels);
    let values: String = axes.map(|(axis, label)| format!("{axis} = {label}, ")).collect();
    format!("with {values}seed = {}: {error}", job.scenario.seed)
}

fn rows_of(jobs: Vec<Job>) -> Vec<Row> {
    jobs.into_iter().map(|job| job.row.expect("every run is done or was kept")).collect()
}

/// The points of a part of the grid.
fn points(experiment: &Experiment, Shard { index, count }: Shard) -> Vec<(usize, Variant)> {
    experiment.variants().into_iter().enumerate().skip(index).step_by(count.get()).collect()
}

fn seeded(scenario: &Scenario, offset: u32) -> Scenario {
    Scenario { seed: scenario.seed.wrapping_add(offset.into()), ..scenario.clone() }
}

/// Runs scenarios in parallel and hands over each run when it is done. If `on_run` breaks, what runs goes on to its end, and nothing more
/// begins.
fn each_run(
    experiment: &Experiment,
    scenarios: &[Scenario],
    jobs: NonZeroUsize,
    mut on_run: impl FnMut(usize, Result<Run, ControllerFailed>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let stopped = AtomicBool::new(false);
    parallel::as_done(
        scenarios.len(),
        jobs,
        |job| (!stopped.load(Ordering::Relaxed)).then(|| run::run_measured(&scenarios[job], experiment)),
        |job, run| {
            let Some(run) = run.filter(|_| !stopped.load(Ordering::Relaxed)) else { return };
            stopped.store(on_run(job, run).is_break(), Ordering::Relaxed);
        },
    );
    if stopped.into_inner() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What the runs of a point give together.
fn lines_of(experiment: &Experiment, point: &Variant, runs: &[Row]) -> Vec<Line> {
    let labels: Vec<String> = experiment.labels(point).into_iter().map(str::to_owned).collect();
    let line = |(place, (gauge, _)): (usize, &(String, Option<f64>))| {
        let value = |run: &Row| match run.values.get(place) {
            Some((name, value)) if name == gauge => *value,
            // A run that measured other things than the first one.
            _ => run.values.iter().find(|(name, _)| name == gauge).and_then(|(_, value)| *value),
        };
        let values: Vec<f64> = runs.iter().filter_map(value).collect();
        let measure = experiment.measures().iter().find(|(name, _)| name == gauge);
        // No gauge is below zero.
        let is_positive = measure.is_none_or(|(_, expression)| !expression.may_be_negative());
        let sample = (!values.is_empty()).then(|| Sample::new(values));
        Line { labels: labels.clone(), gauge: gauge.clone(), sample, is_positive }
    };
    runs[0].values.iter().enumerate().map(line).collect()
}

impl Table {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Writes it as CSV: the axes, then `gauge,seeds,mean,sd,low,high`, where seeds are those in which it was measured, and low
    /// and high the 95 % confidence interval of the mean, not below zero where no value can be. What is not known, as the spread of one value, is empty.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let head = self.axes.iter().map(|axis| quoted(axis)).chain(["gauge,seeds,mean,sd,low,high".to_owned()]);
        writeln!(out, "{}", head.collect::<Vec<_>>().join(","))?;
        for line in &self.lines {
            for label in &line.labels {
                write!(out, "{},", quoted(label))?;
            }
            write!(out, "{},", quoted(&line.gauge))?;
            match (&line.sample, line.interval()) {
                (None, _) => writeln!(out, "0,,,,")?,
                // One value tells nothing about others.
                (Some(sample), None) => writeln!(out, "1,{},,,", sample.mean())?,
                (Some(sample), Some(Interval { low, high })) => {
                    writeln!(out, "{},{},{},{low},{high}", sample.count(), sample.mean(), sample.sd())?;
                }
            }
        }
        Ok(())
    }
}

/// A field of CSV (RFC 4180).
pub(crate) fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

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
        let mut document = Document::parse("grid.toml", &text).unwrap();
        document.set("link.l.rate=2Mbit/s").unwrap();
        document.set("seed=2").unwrap();
        let alone = run::run(&Scenario::parse(&document).unwrap());
        assert_eq!(sweep.rows[3].hash(), alone.hash);
        assert_eq!(sweep.rows[3].values()[0], ("bits".to_owned(), Some(alone.flows[0].goodput_bps)));
    }

    #[test]
    fn a_sweep_that_is_stopped_has_no_table() {
        assert!(sweep_until(&random(), options(20), &Rows::default(), Until(1)).unwrap().is_none());
        assert!(sweep_until(&random(), options(1), &Rows::default(), Until(9)).unwrap().is_some());
    }

    /// Two workers run what a driver deals out, each backwards, and the driver's table is that of who runs all alone.
    #[test]
    fn what_others_have_run_gives_the_same_table() {
        let experiment = random();
        let alone = sweep(&experiment, options(3), &Rows::default(), |_, _| {}).unwrap();
        let mut places = missing(&experiment, options(3), &Rows::default()).unwrap();
        let place = |point, seed| Place { point, seed };
        assert_eq!(places, [place(0, 0), place(0, 1), place(0, 2), place(1, 0), place(1, 1), place(1, 2)]);
        places.reverse();
        let mut rows = Rows::default();
        for part in places.chunks(4) {
            let told = run_some(&experiment, part, NonZeroUsize::MIN, |_, _| {}).unwrap();
            told.expect("nobody stops it").into_iter().for_each(|row| rows.add(row));
        }
        assert!(missing(&experiment, options(3), &rows).unwrap().is_empty());
        let merged = sweep(&experiment, options(3), &rows, |_, _| {}).unwrap();
        assert_eq!((merged.kept, &merged.rows), (6, &alone.rows));
    }

    /// Points without anything random have one seed; seeds that are added are all that is missing.
    #[test]
    fn only_what_could_differ_is_missing() {
        fn count(experiment: &Experiment, seeds: u32, kept: &Rows) -> usize {
            missing(experiment, options(seeds), kept).unwrap().len()
        }
        assert_eq!(count(&experiment(GRID), 5, &Rows::default()), 2);
        let mut rows = Rows::default();
        let first = run_some(&random(), &[Place { point: 1, seed: 0 }], NonZeroUsize::MIN, |_, _| {}).unwrap();
        first.expect("nobody stops it").into_iter().for_each(|row| rows.add(row));
        assert_eq!((count(&random(), 1, &rows), count(&random(), 2, &rows)), (1, 3));
    }

    #[test]
    fn shards_count_from_one() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 1, count: NonZeroUsize::new(3).unwrap() }));
        for text in ["0/3", "4/3", "1/0", "1", "a/b", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_table_is_csv() {
        let line = Line {
            labels: vec!["a,\"b\"".to_owned()],
            gauge: "m".to_owned(),
            sample: Some(Sample::new(vec![1.0, 1.0])),
            is_positive: true,
        };
        let unknown = Line { gauge: "n".to_owned(), sample: None, ..line.clone() };
        let single = Line { gauge: "o".to_owned(), sample: Some(Sample::new(vec![3.0])), ..line.clone() };
        let table = Table { axes: vec!["agent".to_owned()], lines: vec![line, unknown, single] };
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "agent,gauge,seeds,mean,sd,low,high\n\"a,\"\"b\"\"\",m,2,1,0,1,1\n\
             \"a,\"\"b\"\"\",n,0,,,,\n\"a,\"\"b\"\"\",o,1,3,,,\n"
        );
    }

    /// One value at 0 and one at 1: the interval of their mean is 0.5 ± 12.7 · 0.5.
    #[test]
    fn an_interval_does_not_go_below_zero_where_no_value_can() {
        let sample = Some(Sample::new(vec![0.0, 1.0]));
        let line = |is_positive| Line { labels: vec![], gauge: "m".to_owned(), sample: sample.clone(), is_positive };
        let (open, bounded) = (line(false).interval().unwrap(), line(true).interval().unwrap());
        assert!(open.low < -5.0 && bounded.low.to_bits() == 0, "{open:?} {bounded:?}");
        assert_eq!(open.high.to_bits(), bounded.high.to_bits());
    }
}

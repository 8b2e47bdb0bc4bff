//! Runs every combination of a scenario's axes with several seeds, and tells mean, spread and interval of every gauge.
//!
//! A point without randomness is run once: other seeds would give the same. `rows` keeps each run, so that only what is missing is run.

mod rows;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnostic::Diagnostic;
use crate::experiment::{Experiment, Variant};
use crate::parallel;
use crate::report::Report;
use crate::run::{self, Run};
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
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// One run of a grid.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The label of each axis.
    pub labels: Vec<String>,
    /// What was measured, the file's measures included.
    pub report: Report,
}

/// Runs the grid and returns every run, seed by seed and point by point, the last axis fastest; nothing if it was stopped. `on_run` is told
/// how many runs are done, of how many, and stops the sweep by breaking: what runs goes on to its end, and nothing more begins.
///
/// # Errors
/// If a point of the grid is no scenario. It is found before anything runs.
pub fn cells(
    experiment: &Experiment,
    options: Options,
    mut on_run: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Vec<Cell>>, Diagnostic> {
    let points = points(experiment, options.shard);
    let mut scenarios = Vec::new();
    for point in &points {
        let scenario = experiment.scenario(point)?;
        scenarios.extend((0..options.seeds).map(|offset| seeded(&scenario, offset)));
    }
    let seeds = options.seeds as usize;
    let (mut done, total) = (0, scenarios.len());
    let mut cells: Vec<Option<Cell>> = vec![None; total];
    if on_run(done, total).is_break() {
        return Ok(None);
    }
    let is_whole = each_run(experiment, &scenarios, options.jobs, |index, run| {
        let labels = experiment.labels(&points[index / seeds]).into_iter().map(str::to_owned).collect();
        cells[index] = Some(Cell { labels, report: run.into_report(experiment) });
        done += 1;
        on_run(done, total)
    });
    Ok(if is_whole.is_continue() { cells.into_iter().collect() } else { None })
}

/// Runs the grid, except for what `kept` has.
///
/// # Errors
/// If a point of the grid is no scenario. It is found before anything runs.
pub fn sweep(
    experiment: &Experiment,
    options: Options,
    kept: &Rows,
    mut watch: impl Watch,
) -> Result<Sweep, Diagnostic> {
    let points = points(experiment, options.shard);
    let mut jobs: Vec<Job<'_>> = Vec::new();
    // Of each point, where its jobs end.
    let mut ends = Vec::with_capacity(points.len());
    let mut certain = 0;
    for point in &points {
        let scenario = experiment.scenario(point)?;
        let content = experiment.content(point)?;
        let is_random = scenario.is_random();
        certain += usize::from(!is_random);
        for offset in 0..if is_random { options.seeds } else { 1 } {
            let scenario = seeded(&scenario, offset);
            let identity = rows::identity(&content, scenario.seed);
            let row = kept.find(&identity).cloned();
            jobs.push(Job { point, scenario, identity, row });
        }
        ends.push(jobs.len());
    }
    let missing: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].row.is_none()).collect();
    let scenarios: Vec<Scenario> = missing.iter().map(|&job| jobs[job].scenario.clone()).collect();
    let mut done = 0;
    watch.runs(done, missing.len());
    let _ = each_run(experiment, &scenarios, options.jobs, |index, run| {
        let job = &mut jobs[missing[index]];
        let row = Row::of(experiment, job.point, &job.identity, &run);
        done += 1;
        watch.row(&row);
        watch.runs(done, missing.len());
        job.row = Some(row);
        ControlFlow::Continue(())
    });
    let kept = jobs.len() - missing.len();
    let rows: Vec<Row> = jobs.into_iter().map(|job| job.row.expect("every run is done or was kept")).collect();
    let mut lines = Vec::new();
    let mut begin = 0;
    for (point, &end) in points.iter().zip(&ends) {
        lines.extend(lines_of(experiment, point, &rows[begin..end]));
        begin = end;
    }
    let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
    Ok(Sweep { table: Table { axes, lines }, rows, kept, points: points.len(), certain })
}

/// One run of a point.
struct Job<'a> {
    point: &'a Variant,
    scenario: Scenario,
    identity: String,
    /// Of a run that is done.
    row: Option<Row>,
}

/// The points of a part of the grid.
fn points(experiment: &Experiment, Shard { index, count }: Shard) -> Vec<Variant> {
    experiment.variants().into_iter().skip(index).step_by(count.get()).collect()
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
    mut on_run: impl FnMut(usize, Run) -> ControlFlow<()>,
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

    #[test]
    fn each_run_of_a_grid_is_that_of_its_scenario() {
        let experiment = Experiment::parse(Document::parse("grid.toml", GRID).unwrap()).unwrap();
        let cells = cells(&experiment, options(2), |_, _| ControlFlow::Continue(())).unwrap().expect("nobody stops it");
        let places: Vec<_> = cells.iter().map(|cell| (cell.labels[0].as_str(), cell.report.seed)).collect();
        assert_eq!(places, [("slow", 1), ("slow", 2), ("fast", 1), ("fast", 2)]);
        let mut document = Document::parse("grid.toml", GRID).unwrap();
        document.set("link.l.rate=2Mbit/s").unwrap();
        document.set("seed=2").unwrap();
        let alone = run::run(&Scenario::parse(&document).unwrap());
        assert_eq!(cells[3].report.hash, alone.hash);
        assert_eq!(cells[3].report.measures[0].value, Some(alone.flows[0].goodput_bps));
    }

    #[test]
    fn a_sweep_that_is_stopped_has_no_table() {
        let experiment = Experiment::parse(Document::parse("grid.toml", GRID).unwrap()).unwrap();
        let stop = |done, _| if done == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        assert!(cells(&experiment, options(20), stop).unwrap().is_none());
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

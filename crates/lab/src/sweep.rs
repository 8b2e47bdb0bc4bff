//! Runs every combination of a scenario's axes with several seeds, and tells mean, spread and interval of every gauge.
//!
//! A point without chance in it is run once: further seeds would give the same. `rows` keeps each run, so that only what is missing is run.

mod rows;

use std::io::{self, Write};
use std::num::NonZeroUsize;

use crate::diagnostic::Diagnostic;
use crate::experiment::{Experiment, Variant};
use crate::parallel;
use crate::run;
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

/// One of several equal parts.
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
    pub(crate) rows: Vec<Line>,
}

/// A gauge or a measure at a point.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) labels: Vec<String>,
    pub(crate) gauge: String,
    /// Of the runs in which it was measured; nothing if it was in none.
    pub(crate) sample: Option<Sample>,
    /// Whether it is never below zero, so that no interval of it is.
    pub(crate) is_positive: bool,
}

impl Line {
    /// The 95 % confidence interval of the mean, if there are several values.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let sample = self.sample.as_ref().filter(|sample| sample.count() > 1)?;
        let Interval { low, high } = sample.confidence();
        Some(Interval { low: if self.is_positive { low.max(0.0) } else { low }, high })
    }
}

/// What a sweep gave.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Mean, spread and interval of everything.
    pub table: Table,
    /// The rows that it is made of, in the order of the grid.
    pub rows: Vec<Row>,
    /// Runs that were done.
    pub ran: usize,
    /// Runs that were there already.
    pub kept: usize,
    /// Points of the grid.
    pub points: usize,
    /// Points without chance in them, which were run once.
    pub certain: usize,
}

/// Who is told how a sweep goes on. A closure hears of runs alone.
pub trait Watch {
    /// So many runs are done, of so many.
    fn runs(&mut self, done: usize, total: usize);

    /// A run is done.
    fn row(&mut self, _row: &Row) {}
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// Runs the grid, but for what `kept` has.
///
/// # Errors
/// If a point of the grid is no scenario. It is found before anything runs.
pub fn sweep(
    experiment: &Experiment,
    options: Options,
    kept: &Rows,
    mut watch: impl Watch,
) -> Result<Sweep, Diagnostic> {
    let Shard { index, count } = options.shard;
    let points: Vec<Variant> = experiment.variants().into_iter().skip(index).step_by(count.get()).collect();
    let mut jobs: Vec<Job> = Vec::new();
    // Of each point, where its jobs end.
    let mut ends = Vec::with_capacity(points.len());
    let mut certain = 0;
    for point in &points {
        let scenario = experiment.scenario(point)?;
        let content = experiment.content(point)?;
        certain += usize::from(!scenario.is_random());
        let seeds = if scenario.is_random() { u64::from(options.seeds) } else { 1 };
        for offset in 0..seeds {
            let seed = scenario.seed.wrapping_add(offset);
            let identity = rows::identity(&content, seed);
            let row = kept.find(&identity).cloned();
            jobs.push(Job { point: point.clone(), scenario: Scenario { seed, ..scenario.clone() }, identity, row });
        }
        ends.push(jobs.len());
    }
    let missing: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].row.is_none()).collect();
    let mut done = 0;
    watch.runs(done, missing.len());
    let mut made: Vec<(usize, Row)> = Vec::with_capacity(missing.len());
    parallel::each(
        missing.len(),
        options.jobs,
        |index| {
            let Job { point, scenario, identity, .. } = &jobs[missing[index]];
            Row::of(experiment, point, identity, &run::run_measured(scenario, experiment))
        },
        |index, row| {
            done += 1;
            watch.row(&row);
            watch.runs(done, missing.len());
            made.push((missing[index], row));
        },
    );
    let ran = made.len();
    made.into_iter().for_each(|(job, row)| jobs[job].row = Some(row));
    let rows: Vec<Row> = jobs.into_iter().map(|job| job.row.expect("every run is done or was kept")).collect();
    let mut lines = Vec::new();
    let mut begin = 0;
    for (point, &end) in points.iter().zip(&ends) {
        lines.extend(lines_of(experiment, point, &rows[begin..end]));
        begin = end;
    }
    let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
    let kept = rows.len() - ran;
    Ok(Sweep { table: Table { axes, rows: lines }, rows, ran, kept, points: points.len(), certain })
}

/// One run of a point.
struct Job {
    point: Variant,
    scenario: Scenario,
    identity: String,
    /// Of a run that is done.
    row: Option<Row>,
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
        self.rows.len()
    }

    /// Writes it as CSV: the axes, then `gauge,seeds,mean,sd,low,high`, where seeds are those in which it was measured, and low
    /// and high the 95 % confidence interval of the mean, which does not go below zero where no value can. What is not known, as the spread of one value, is empty.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let head = self.axes.iter().map(|axis| quoted(axis)).chain(["gauge,seeds,mean,sd,low,high".to_owned()]);
        writeln!(out, "{}", head.collect::<Vec<_>>().join(","))?;
        for line in &self.rows {
            let Line { labels, gauge, sample, .. } = line;
            for label in labels {
                write!(out, "{},", quoted(label))?;
            }
            write!(out, "{},", quoted(gauge))?;
            match (sample, line.interval()) {
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

    #[test]
    fn shards_count_from_one() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 1, count: NonZeroUsize::new(3).unwrap() }));
        for text in ["0/3", "4/3", "1/0", "1", "a/b", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_table_is_csv() {
        let row = Line {
            labels: vec!["a,\"b\"".to_owned()],
            gauge: "m".to_owned(),
            sample: Some(Sample::new(vec![1.0, 1.0])),
            is_positive: true,
        };
        let unknown = Line { gauge: "n".to_owned(), sample: None, ..row.clone() };
        let single = Line { gauge: "o".to_owned(), sample: Some(Sample::new(vec![3.0])), ..row.clone() };
        let table = Table { axes: vec!["agent".to_owned()], rows: vec![row, unknown, single] };
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "agent,gauge,seeds,mean,sd,low,high\n\"a,\"\"b\"\"\",m,2,1,0,1,1\n\
             \"a,\"\"b\"\"\",n,0,,,,\n\"a,\"\"b\"\"\",o,1,3,,,\n"
        );
    }

    /// One of two values at 0 and one at 1: the interval of their mean is 0.5 ± 12.7 · 0.5.
    #[test]
    fn an_interval_does_not_go_below_zero_where_no_value_can() {
        let sample = Some(Sample::new(vec![0.0, 1.0]));
        let line = |is_positive| Line { labels: vec![], gauge: "m".to_owned(), sample: sample.clone(), is_positive };
        let (open, bounded) = (line(false).interval().unwrap(), line(true).interval().unwrap());
        assert!(
            open.low < -5.0 && bounded.low.to_bits() == 0 && open.high.to_bits() == bounded.high.to_bits(),
            "{open:?} {bounded:?}"
        );
    }
}

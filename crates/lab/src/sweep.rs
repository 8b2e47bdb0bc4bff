//! Runs every combination of a scenario's axes with several seeds, and tells mean, spread and interval of every gauge.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use crate::diagnostic::Diagnostic;
use crate::experiment::{Experiment, Variant};
use crate::parallel;
use crate::run::{self, Run};
use crate::scenario::Scenario;
use crate::statistics::{Interval, Sample};

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
    axes: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    labels: Vec<String>,
    gauge: String,
    /// Of the runs in which it was measured; nothing if it was in none.
    sample: Option<Sample>,
}

/// Runs the grid. `on_run` is told how many runs are done, of how many.
///
/// # Errors
/// If a point of the grid is no scenario. It is found before anything runs.
pub fn sweep(
    experiment: &Experiment,
    options: Options,
    mut on_run: impl FnMut(usize, usize),
) -> Result<Table, Diagnostic> {
    let Shard { index, count } = options.shard;
    let points: Vec<Variant> = experiment.variants().into_iter().skip(index).step_by(count.get()).collect();
    let scenarios = points.iter().map(|point| experiment.scenario(point)).collect::<Result<Vec<_>, _>>()?;
    let seeds = options.seeds as usize;
    let total = points.len() * seeds;
    let mut done = 0;
    on_run(done, total);
    let reports = parallel::map(
        total,
        options.jobs,
        |job| {
            let scenario = &scenarios[job / seeds];
            let offset = (job % seeds) as u64;
            let scenario = Scenario { seed: scenario.seed.wrapping_add(offset), ..scenario.clone() };
            run::run_measured(&scenario, experiment)
        },
        || {
            done += 1;
            on_run(done, total);
        },
    );
    let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
    let rows = points.iter().zip(reports.chunks(seeds)).flat_map(|(point, runs)| rows(experiment, point, runs));
    Ok(Table { axes, rows: rows.collect() })
}

fn rows(experiment: &Experiment, point: &Variant, runs: &[Run]) -> Vec<Row> {
    let labels: Vec<String> = experiment.labels(point).into_iter().map(str::to_owned).collect();
    let row = |gauge: String, values: Vec<f64>| {
        let sample = (!values.is_empty()).then(|| Sample::new(values));
        Row { labels: labels.clone(), gauge, sample }
    };
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let measures = experiment.measures().iter().map(|(name, _)| {
        let values = runs.iter().filter_map(|run| run.value(experiment, name).ok().and_then(finite));
        row(name.clone(), values.collect())
    });
    let gauges = runs[0].report.gauges().into_iter().map(|(name, _)| {
        let values = runs.iter().filter_map(|run| run.report.gauge(&name).ok());
        row(name.clone(), values.collect())
    });
    measures.chain(gauges).collect()
}

impl Table {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Writes it as CSV: the axes, then `gauge,seeds,mean,sd,low,high`, where seeds are those in which it was measured, and low
    /// and high the 95 % confidence interval of the mean. What is not known, as the spread of one value, is empty.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let head = self.axes.iter().map(|axis| quoted(axis)).chain(["gauge,seeds,mean,sd,low,high".to_owned()]);
        writeln!(out, "{}", head.collect::<Vec<_>>().join(","))?;
        for Row { labels, gauge, sample } in &self.rows {
            for label in labels {
                write!(out, "{},", quoted(label))?;
            }
            write!(out, "{},", quoted(gauge))?;
            match sample {
                None => writeln!(out, "0,,,,")?,
                // One value tells nothing about others.
                Some(sample) if sample.count() == 1 => writeln!(out, "1,{},,,", sample.mean())?,
                Some(sample) => {
                    let Interval { low, high } = sample.confidence();
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
        let row = Row {
            labels: vec!["a,\"b\"".to_owned()],
            gauge: "m".to_owned(),
            sample: Some(Sample::new(vec![1.0, 1.0])),
        };
        let unknown = Row { gauge: "n".to_owned(), sample: None, ..row.clone() };
        let single = Row { gauge: "o".to_owned(), sample: Some(Sample::new(vec![3.0])), ..row.clone() };
        let table = Table { axes: vec!["agent".to_owned()], rows: vec![row, unknown, single] };
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "agent,gauge,seeds,mean,sd,low,high\n\"a,\"\"b\"\"\",m,2,1,0,1,1\n\
             \"a,\"\"b\"\"\",n,0,,,,\n\"a,\"\"b\"\"\",o,1,3,,,\n"
        );
    }
}

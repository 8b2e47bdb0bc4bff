//! Runs every combination of a scenario's axes with several seeds, and tells mean, spread and interval of every gauge.

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
    on_run: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Vec<Cell>>, Diagnostic> {
    let (points, runs) = runs(experiment, options, on_run)?;
    let Some(runs) = runs else { return Ok(None) };
    let seeds = options.seeds as usize;
    let cell = |(index, run): (usize, Run)| {
        let labels = experiment.labels(&points[index / seeds]).into_iter().map(str::to_owned).collect();
        Cell { labels, report: run.into_report(experiment) }
    };
    Ok(Some(runs.into_iter().enumerate().map(cell).collect()))
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
    let (points, runs) = runs(experiment, options, |done, total| {
        on_run(done, total);
        ControlFlow::Continue(())
    })?;
    let runs = runs.expect("nobody stops it");
    let axes = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
    let chunks = runs.chunks(options.seeds as usize);
    let rows = points.iter().zip(chunks).flat_map(|(point, runs)| rows(experiment, point, runs));
    Ok(Table { axes, rows: rows.collect() })
}

/// The points of the grid, and all runs, seeds fastest; nothing if it was stopped.
fn runs(
    experiment: &Experiment,
    options: Options,
    mut on_run: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Vec<Variant>, Option<Vec<Run>>), Diagnostic> {
    let Shard { index, count } = options.shard;
    let points: Vec<Variant> = experiment.variants().into_iter().skip(index).step_by(count.get()).collect();
    let scenarios = points.iter().map(|point| experiment.scenario(point)).collect::<Result<Vec<_>, _>>()?;
    let seeds = options.seeds as usize;
    let total = points.len() * seeds;
    let mut done = 0;
    let stopped = AtomicBool::new(on_run(done, total).is_break());
    let runs = parallel::in_order(
        total,
        options.jobs,
        |job| {
            if stopped.load(Ordering::Relaxed) {
                return None;
            }
            let scenario = &scenarios[job / seeds];
            let offset = (job % seeds) as u64;
            let scenario = Scenario { seed: scenario.seed.wrapping_add(offset), ..scenario.clone() };
            Some(run::run_measured(&scenario, experiment))
        },
        || {
            done += 1;
            if !stopped.load(Ordering::Relaxed) && on_run(done, total).is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        },
    );
    let is_stopped = stopped.into_inner();
    Ok((points, runs.into_iter().collect::<Option<Vec<_>>>().filter(|_| !is_stopped)))
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

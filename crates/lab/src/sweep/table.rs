//! The table of a sweep: the mean, spread and interval of each gauge and measure at each point of the grid.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Row;
use crate::experiment::{Experiment, Variant};
use crate::statistics::{Interval, Sample};

/// The table of a sweep.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) axes: Vec<String>,
    pub(crate) lines: Vec<Line>,
}

impl Table {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Writes the table as CSV: the axes, then `gauge,seeds,mean,sd,low,high`. `seeds` is the number of seeds with a value. `low` and `high` are the 95 %
    /// confidence interval of the mean, not below zero for a gauge that is never negative. Unknown values, such as the spread of one value, are empty.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let head = self.axes.iter().map(|axis| quoted(axis)).chain(["gauge,seeds,mean,sd,low,high".into()]);
        writeln!(out, "{}", head.collect::<Vec<_>>().join(","))?;
        for line in &self.lines {
            for label in &line.labels {
                write!(out, "{},", quoted(label))?;
            }
            write!(out, "{},", quoted(&line.gauge))?;
            match (&line.sample, line.interval()) {
                (None, _) => writeln!(out, "0,,,,")?,
                // One value has no spread.
                (Some(sample), None) => writeln!(out, "1,{},,,", sample.mean())?,
                (Some(sample), Some(Interval { low, high })) => {
                    writeln!(out, "{},{},{},{low},{high}", sample.count(), sample.mean(), sample.sd())?;
                }
            }
        }
        Ok(())
    }
}

/// A gauge or a measure at a point of the grid.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) labels: Vec<String>,
    pub(crate) gauge: String,
    /// The values of the runs that measured it; `None` if no run did.
    pub(crate) sample: Option<Sample>,
    /// Whether it is never below zero.
    pub(crate) is_positive: bool,
}

impl Line {
    /// The 95 % confidence interval of the mean, if there are several values. It is not below zero if no value can be.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let sample = self.sample.as_ref().filter(|sample| sample.count() > 1)?;
        let interval = sample.confidence();
        Some(if self.is_positive { interval.from_zero() } else { interval })
    }
}

pub(super) fn lines_of(experiment: &Experiment, point: &Variant, runs: &[Row]) -> Vec<Line> {
    let labels: Vec<String> = experiment.labels(point).into_iter().map(str::to_owned).collect();
    let line = |(place, (gauge, _)): (usize, &(String, Option<f64>))| {
        let value = |run: &Row| match run.values.get(place) {
            Some((name, value)) if name == gauge => *value,
            // A run that measured other things than the first one.
            _ => run.values.iter().find(|(name, _)| name == gauge).and_then(|(_, value)| *value),
        };
        let values: Vec<f64> = runs.iter().filter_map(value).collect();
        let is_positive = !experiment.may_be_negative(gauge);
        let sample = (!values.is_empty()).then(|| Sample::new(values));
        Line { labels: labels.clone(), gauge: gauge.clone(), sample, is_positive }
    };
    // There are no lines if all runs of the point failed.
    runs.first().map_or(&[][..], Row::values).iter().enumerate().map(line).collect()
}

/// A field of CSV (RFC 4180).
pub(crate) fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", field.replace('"', "\"\""))),
        false => Cow::Borrowed(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The stored figures: `measured.csv` has those of each run, and the tables of the experiments their means.

use std::fs;
use std::path::Path;

use anabranch_lab::experiment::Experiment;
use toml::{Table, Value};

use super::outcome::Values;

const FILE: &str = "measured.csv";
/// Between the labels of a variant.
const BETWEEN: &str = "; ";
const HEAD: &str = "experiment,variant,run,measure,value,load and stolen time";

/// The figures of an experiment.
pub(super) struct Stored {
    name: String,
    /// The labels of each axis.
    axes: Vec<Vec<String>>,
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq)]
struct Run {
    labels: Vec<String>,
    values: Values,
    load: String,
}

impl Stored {
    /// Those that the list in a folder has of an experiment.
    pub(super) fn of(experiment: &Experiment, folder: &Path) -> Result<Self, String> {
        let labels = |axis: &anabranch_lab::experiment::Axis| axis.values.iter().map(|it| it.label.clone()).collect();
        let axes = experiment.axes.iter().map(labels).collect();
        let mut stored = Self { name: experiment.name().to_owned(), axes, runs: vec![] };
        stored.read(&fs::read_to_string(folder.join(FILE)).unwrap_or_default())?;
        Ok(stored)
    }

    fn read(&mut self, list: &str) -> Result<(), String> {
        let (mut last, start) = (String::new(), format!("{},\"", self.name));
        for line in list.lines().filter(|line| line.starts_with(&start)) {
            let wrong = || format!("{FILE}: `{line}` is no line of the list");
            let [_, labels, figures, load, _] = line.split('"').collect::<Vec<_>>()[..] else { return Err(wrong()) };
            let [_, run, measure, value, _] = figures.split(',').collect::<Vec<_>>()[..] else { return Err(wrong()) };
            let value: f64 = value.parse().map_err(|_| wrong())?;
            let key = format!("{labels},{run}");
            if last != key {
                let labels: Vec<&str> = labels.split(BETWEEN).collect();
                self.add(&labels, &vec![], load);
                last = key;
            }
            self.runs.last_mut().expect("one was just added").values.push((measure.to_owned(), value));
        }
        Ok(())
    }

    /// Removes the runs of a variant.
    pub(super) fn forget(&mut self, labels: &[&str]) {
        self.runs.retain(|run| !run.is_of(labels));
    }

    /// Adds a run of a variant.
    pub(super) fn add(&mut self, labels: &[&str], values: &Values, load: &str) {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        self.runs.push(Run { labels, values: values.clone(), load: load.to_owned() });
    }

    /// The mean of a measure over the runs of a variant.
    pub(super) fn mean(&self, labels: &[&str], measure: &str) -> Option<f64> {
        let of = |run: &Run| run.values.iter().find(|(name, _)| name == measure).map(|&(_, value)| value);
        let all: Vec<f64> = self.runs.iter().filter(|run| run.is_of(labels)).filter_map(of).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Writes the runs into the list, and the means into the tables of the experiment's file.
    pub(super) fn write(&self, folder: &Path, file: &Path) -> Result<(), String> {
        let list = folder.join(FILE);
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let before = fs::read_to_string(&list).unwrap_or_default();
        fs::write(&list, self.listed(&before)).map_err(|error| failed(&list, error))?;
        let text = fs::read_to_string(file).map_err(|error| failed(file, error))?;
        fs::write(file, self.written(&text)?).map_err(|error| failed(file, error))
    }

    /// The list with these runs in place of the experiment's others.
    fn listed(&self, before: &str) -> String {
        let start = format!("{},\"", self.name);
        let is_other = |line: &&str| *line != HEAD && !line.starts_with(&start);
        let mut lines: Vec<String> = before.lines().filter(is_other).map(str::to_owned).collect();
        for (index, run) in self.runs.iter().enumerate() {
            let number = 1 + self.runs[..index].iter().filter(|before| before.labels == run.labels).count();
            for (name, value) in &run.values {
                lines.push(format!(
                    "{start}{}\",{number},{name},{value:.4},\"{}\"",
                    run.labels.join(BETWEEN),
                    run.load
                ));
            }
        }
        lines.sort();
        lines.insert(0, HEAD.to_owned());
        lines.join("\n") + "\n"
    }

    /// The text with the means in the tables whose source is `real`.
    pub(super) fn written(&self, text: &str) -> Result<String, String> {
        let document: Table = text.parse().map_err(|error| format!("{}: {error}", self.name))?;
        let mut tables = document.get("table").and_then(Value::as_array).into_iter().flatten();
        let (mut table, mut is_in_rows) = (None, false);
        let mut lines = vec![];
        for line in text.lines() {
            if line == "[[table]]" {
                table = tables.next().and_then(Value::as_table);
            }
            if line.starts_with('[') {
                is_in_rows = line == "[table.rows]";
            }
            let real = table.filter(|table| is_in_rows && table.get("source") == Some(&Value::from("real")));
            let written = real.and_then(|table| self.row(table, line));
            lines.push(written.unwrap_or_else(|| line.to_owned()));
        }
        Ok(lines.join("\n") + "\n")
    }

    /// A line of a table's rows with the means; `None` if it is none.
    fn row(&self, table: &Table, line: &str) -> Option<String> {
        let (label, _) = line.split_once(" = [")?;
        let label = label.trim_matches('"');
        let words = |key: &str| -> Vec<&str> {
            table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (columns, variant) = (words("columns"), words("variant"));
        let cells = table.get("rows")?.get(label)?.as_array()?;
        let cell = |(cell, column): (&Value, &&str)| {
            let names: Vec<&str> = variant.iter().copied().chain([label, column]).collect();
            let labels: Vec<&str> = self.axes.iter().filter_map(|axis| named(axis, &names)).collect();
            let measure = names.iter().copied().find(|name| !labels.contains(name));
            let measure = table.get("measure").and_then(Value::as_str).or(measure);
            let mean = measure.and_then(|measure| {
                let over = words("over");
                let others: Vec<&str> =
                    self.axes.iter().zip(&labels).map(|(axis, label)| named(axis, &over).unwrap_or(label)).collect();
                let below = if over.is_empty() { 1.0 } else { self.mean(&others, measure)? };
                Some(self.mean(&labels, measure)? / below)
            });
            mean.map_or_else(|| text_of(cell), |mean| put(cell, mean))
        };
        let cells: Vec<String> = cells.iter().zip(&columns).map(cell).collect();
        Some(format!("\"{label}\" = [{}]", cells.join(", ")))
    }
}

impl Run {
    fn is_of(&self, labels: &[&str]) -> bool {
        self.labels.iter().eq(labels)
    }
}

/// The label of an axis among some names.
fn named<'a>(axis: &[String], names: &[&'a str]) -> Option<&'a str> {
    names.iter().copied().find(|name| axis.iter().any(|label| label == name))
}

/// A number in place of a table's value, whose allowance stays. An empty cell stays empty.
fn put(cell: &Value, mean: f64) -> String {
    let number = match mean.abs() {
        size if size >= 1000.0 => format!("{mean:.0}"),
        size if size >= 10.0 => format!("{mean:.1}"),
        _ => format!("{mean:.3}"),
    };
    match cell.as_str().map(|text| text.split_once('±')) {
        None => number,
        Some(Some((_, allowance))) => format!("\"{number}±{allowance}\""),
        Some(None) => text_of(cell),
    }
}

fn text_of(cell: &Value) -> String {
    match cell {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => format!("\"{}\"", cell.as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Stored {
        let words = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let run = |labels: &[&str], goodput, rtt| Run {
            labels: words(labels),
            values: vec![("goodput".to_owned(), goodput), ("rtt".to_owned(), rtt)],
            load: "0.50, 1 %".to_owned(),
        };
        let runs =
            vec![run(&["FAST", "1%"], 8.0, 100.0), run(&["FAST", "1%"], 9.0, 102.0), run(&["Reno", "1%"], 2.0, 101.0)];
        Stored { name: "papers".to_owned(), axes: vec![words(&["FAST", "Reno"]), words(&["0", "1%"])], runs }
    }

    #[test]
    fn means_go_to_the_tables_of_the_real_source() {
        let text = "[[table]]\nsource = \"real\"\nmeasure = \"goodput\"\ncolumns = [\"0\", \"1%\"]\n[table.rows]\n\"FAST\" = [1, 2]\n\"Reno\" = [3, \"\"]\n\
                    [[table]]\nsource = \"real\"\nvariant = [\"FAST\"]\ncolumns = [\"rtt\"]\n[table.rows]\n\"1%\" = [\"99±2.0\"]\n\
                    [[table]]\nsource = \"aim\"\nmeasure = \"goodput\"\ncolumns = [\"1%\"]\n[table.rows]\n\"FAST\" = [7]\n";
        let written = stored().written(text).unwrap();
        let changed = text.replace("\"FAST\" = [1, 2]", "\"FAST\" = [1, 8.500]").replace("99±2.0", "101.0±2.0");
        assert_eq!(written, changed);
    }

    #[test]
    fn ratio_is_of_means() {
        let text = "[[table]]\nsource = \"real\"\nmeasure = \"goodput\"\nover = [\"Reno\"]\ncolumns = [\"1%\"]\n[table.rows]\n\"FAST\" = [1]\n";
        assert_eq!(stored().written(text).unwrap(), text.replace("[1]", "[4.250]"));
    }

    #[test]
    fn list_is_read_as_it_was_written() {
        let other = "rivals,\"BBR; 0\",1,goodput,2.0000,\"0.10\"";
        let list = stored().listed(&format!("{HEAD}\n{other}\npapers,\"FAST; 1%\",1,goodput,1.0000,\"0.10\"\n"));
        assert_eq!(list.lines().count(), 1 + 1 + 6);
        assert!(list.contains(other) && !list.contains(",1.0000,"), "{list}");
        let mut read = Stored { runs: vec![], ..stored() };
        read.read(&list).unwrap();
        assert_eq!(read.runs, stored().runs);
        read.forget(&["FAST", "1%"]);
        assert_eq!(read.runs, stored().runs[2..]);
        assert!(read.read("papers,\"FAST; 1%\",1,goodput,much,\"0.10\"\n").unwrap_err().contains("much"));
    }
}

//! One row of numbers for each run, kept in a file. So a sweep that was stopped, or that gets more seeds, runs only the missing runs.
//!
//! The identity of a run is a BLAKE3 hash of its content: the canonical scenario with the point's values, the measures, the seed, and the engine, which is
//! itself a hash of its sources. The file is CSV with a line for each number, `run,<axes>,seed,gauge,value`. The last line of a run has its `hash`. A run
//! without this line was cut off, and is run again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use crate::diagnostic::{Diagnostic, Fault};
use crate::experiment::Experiment;
use crate::run::Run;

use super::quoted;

/// The engine of this program, in 16 hexadecimal digits: runs of two engines may differ.
pub const ENGINE: &str = env!("ANABRANCH_ENGINE");

/// The last gauge of a run.
const HASH: &str = "hash";
/// The length of gauge and value, which are rarely longer.
const LINE_MOST: usize = 64;
/// The columns beside the axes.
const COLUMNS: [&str; 4] = ["run", "seed", "gauge", "value"];

/// The numbers of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The identity of the run.
    pub(super) run: String,
    pub(super) labels: Vec<String>,
    pub(super) seed: u64,
    /// By measure and gauge; `None` where nothing was measured.
    pub(super) values: Vec<(String, Option<f64>)>,
    pub(super) hash: String,
}

/// Rows by their runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows(BTreeMap<String, Row>);

/// The identity of a run: the engine, so that a reader sees a difference in it, and the hash of the whole content.
pub(super) fn identity(content: &str, seed: u64) -> String {
    let hash = blake3::hash(format!("{ENGINE}\n{seed}\n{content}").as_bytes()).to_hex();
    // Half of a hash is enough: two runs of a file do not have the same half by chance.
    format!("{ENGINE}-{}", &hash[..32])
}

impl Row {
    pub(super) fn of(experiment: &Experiment, labels: &[String], identity: &str, run: &Run) -> Self {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let measures = experiment
            .measures()
            .iter()
            .map(|(name, _)| (name.clone(), run.value(experiment, name).ok().and_then(finite)));
        // If a measure has the name of a gauge, the measure counts.
        let gauges = run.report.gauges().into_iter().filter(|(name, _)| !experiment.has_measure(name));
        let gauges = gauges.map(|(name, value)| (name, finite(value)));
        Self {
            run: identity.to_owned(),
            labels: labels.to_vec(),
            seed: run.report.seed,
            values: measures.chain(gauges).collect(),
            hash: run.report.hash.clone(),
        }
    }

    /// The engine of the run.
    pub fn engine(&self) -> &str {
        self.run.split_once('-').map_or("", |(engine, _)| engine)
    }

    /// The label of each axis.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of the run: of everything that happened in it.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The measures of the file, then all gauges, by name; `None` where nothing was measured.
    pub fn values(&self) -> &[(String, Option<f64>)] {
        &self.values
    }

    /// Writes its lines, in one piece.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let labels: String = self.labels.iter().map(|label| format!("{},", quoted(label))).collect();
        let begin = format!("{},{labels}{},", self.run, self.seed);
        let mut lines = String::with_capacity((self.values.len() + 1) * (begin.len() + LINE_MOST));
        for (gauge, value) in &self.values {
            lines += &begin;
            lines += &quoted(gauge);
            let _ = match value {
                Some(value) => writeln!(lines, ",{value}"),
                None => writeln!(lines, ","),
            };
        }
        let _ = writeln!(lines, "{begin}{HASH},{}", self.hash);
        out.write_all(lines.as_bytes())
    }
}

/// The first line of a file of rows.
pub fn head(experiment: &Experiment) -> String {
    let axes = experiment.axes.iter().map(|axis| quoted(&axis.name));
    let all: Vec<Cow<'_, str>> = ["run".into()].into_iter().chain(axes).chain(["seed,gauge,value".into()]).collect();
    all.join(",") + "\n"
}

impl Rows {
    /// Reads the rows of an earlier sweep of this experiment. Runs that were cut off are left out.
    ///
    /// # Errors
    /// If `text` has another format or is of other axes; `file` is its name in the message.
    pub fn parse(experiment: &Experiment, file: &str, text: &str) -> Result<Self, Diagnostic> {
        let mut rows = Self::default();
        let expected = head(experiment);
        let Some(lines) = text.strip_prefix(&expected) else {
            // Nothing was kept yet.
            if text.is_empty() {
                return Ok(rows);
            }
            let fault =
                Fault::new(format!("these are no rows of this sweep: the first line is not `{}`", expected.trim_end()));
            return Err(fault.remedy("name another file, or remove this one").about(file));
        };
        let columns = COLUMNS.len() + experiment.axes.len();
        let mut open: Option<Row> = None;
        // A line without its end was cut off.
        let whole = lines.rfind('\n').map_or("", |end| &lines[..end]);
        for line in whole.lines() {
            let fields = fields(line);
            let [run, labels @ .., seed, gauge, value] = fields.as_slice() else { continue };
            let Some(seed) = seed.parse::<u64>().ok().filter(|_| fields.len() == columns) else {
                open = None;
                continue;
            };
            let row = open.take().filter(|row| row.run == *run);
            let mut row = row.unwrap_or_else(|| Row {
                run: run.clone(),
                labels: labels.to_vec(),
                seed,
                values: Vec::new(),
                hash: String::new(),
            });
            if gauge == HASH {
                row.hash.clone_from(value);
                rows.add(row);
            } else {
                row.values.push((gauge.clone(), value.parse().ok()));
                open = Some(row);
            }
        }
        Ok(rows)
    }

    /// Adds the row of a run.
    pub fn add(&mut self, row: Row) {
        self.0.insert(row.run.clone(), row);
    }

    pub(super) fn find(&self, run: &str) -> Option<&Row> {
        self.0.get(run)
    }

    /// All rows, in an order that does not depend on the order of the runs.
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.0.values()
    }
}

/// The fields of a line of CSV (RFC 4180). A quoted field does not span lines here: labels have no line breaks.
fn fields(line: &str) -> Vec<String> {
    // Nearly all lines have no quotes.
    if !line.contains('"') {
        return line.split(',').map(str::to_owned).collect();
    }
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        let field = fields.last_mut().expect("there is always one");
        match sign {
            '"' if is_quoted && signs.peek() == Some(&'"') => {
                signs.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn experiment() -> Experiment {
        let text = "duration = '1s'\n\
            [[link]]\nid = 'l'\nfrom = 'a'\nto = 'b'\nrate = '1Mbit/s'\ndelay = '10ms'\n\
            queue = { kind = 'drop_tail', packets = 10 }\n\
            [[flow]]\nid = 'f0'\nfrom = 'a'\nto = 'b'\ntransport = 'ns2/sack'\npacket = '1500B'\n\
            [[axis]]\nname = 'the, axis'\n[axis.values]\n'a \"b\"' = {}\n";
        Experiment::parse(Document::parse("s.toml", text).expect("TOML")).expect("a scenario")
    }

    fn row(run: &str, values: &[(&str, Option<f64>)]) -> Row {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Row { run: run.to_owned(), labels: vec!["a \"b\"".to_owned()], seed: 3, values, hash: format!("h{run}") }
    }

    fn written(rows: &[Row]) -> String {
        let mut out = head(&experiment()).into_bytes();
        rows.iter().for_each(|row| row.write_csv(&mut out).expect("a vector takes everything"));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn rows_are_read_back_to_the_bit() {
        let rows = [row("r1", &[("m", Some(0.1 + 0.2)), ("n", None)]), row("r2", &[("m", Some(1e-300))])];
        let read = Rows::parse(&experiment(), "rows.csv", &written(&rows)).expect("rows");
        assert_eq!(read.iter().cloned().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn a_run_that_was_cut_off_is_left_out() {
        let text = written(&[row("r1", &[("m", Some(1.0))]), row("r2", &[("m", Some(2.0)), ("n", Some(3.0))])]);
        let end_of_first = text.find("r2,").expect("the second row");
        for length in end_of_first..text.len() {
            let read = Rows::parse(&experiment(), "rows.csv", &text[..length]).expect("rows");
            let kept: Vec<&str> = read.iter().map(|row| row.run.as_str()).collect();
            assert_eq!(kept, ["r1"], "{length}");
        }
    }

    #[test]
    fn another_file_is_refused() {
        let error = Rows::parse(&experiment(), "rows.csv", "time,value\n1,2\n").expect_err("no rows").to_string();
        assert!(error.starts_with("rows.csv: these are no rows of this sweep"), "{error}");
        assert_eq!(Rows::parse(&experiment(), "rows.csv", "").expect("nothing yet"), Rows::default());
    }

    /// The identity does not depend on the order of keys, comments and claims. It depends on every value.
    #[test]
    fn a_scenario_is_the_same_however_it_is_written() {
        let content = |text: &str| Document::parse("s.toml", text).expect("TOML").canonical(&["claim"]);
        let first = content("duration = '1s'\nqueue = { kind = 'red', packets = 10 }\n[[claim]]\nitem = 'x'\n");
        assert_eq!(first, content("# Why?\nduration = \"1s\"\n[queue]\npackets = 10\nkind = 'red'\n"));
        for other in
            ["duration = '2s'\nqueue = { kind = 'red', packets = 10 }", "duration = '1s'\nqueue = { kind = 'red' }"]
        {
            assert!(content(other) != first, "{other}");
        }
        assert!(content("a = 'b,'") != content("a = 'b'") && content("a = ['b', 'c']") != content("a = ['b,c']"));
    }

    #[test]
    fn a_run_is_known_by_its_seed_and_its_content() {
        let of = |content, seed| identity(content, seed);
        assert_eq!(of("a", 1), of("a", 1));
        assert!(of("a", 1) != of("a", 2) && of("a", 1) != of("b", 1));
        // The seed and the content are told apart.
        assert!(of("1\n2", 1) != of("2", 1) && row(&of("a", 1), &[]).engine() == ENGINE);
    }
}

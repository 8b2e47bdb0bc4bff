//! A grid that is being run: its missing runs, its parts for workers, and its file of rows.

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::own::{Module, Own};
use anabranch_lab::sweep::{self, ENGINE, Failed, GridPlace, Options, Row, Rows, Shard, Watch};
use anabranch_lab::{files, parallel};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, of_scenario};
use crate::own::{Laws, version};
use crate::run::{Looks, assignments};
use crate::scenario::Scenario;
use crate::sweep::{Axis, Sweep};

/// A grid with the rows of the runs that are done.
#[pyclass(module = "anabranch")]
pub(crate) struct Grid {
    experiment: Experiment,
    axes: Vec<Axis>,
    seeds: u32,
    /// The swept scenario as TOML.
    scenario: String,
    /// The overrides, as `--set` takes them.
    set: Vec<String>,
    laws: Laws,
    rows: Rows,
    keeper: Option<Keeper>,
}

/// The file of rows.
struct Keeper {
    path: PathBuf,
    file: fs::File,
}

#[pymethods]
impl Grid {
    /// Every combination of values, with several seeds. `axes` maps a key of the scenario, as `set` takes it, to its values: a list, or a dict with a
    /// label for each. The file's own axes are varied as well. Runs with a row in the file `rows` are not run again.
    #[new]
    #[pyo3(signature = (scenario, axes, *, seeds = 1, set = None, cc = None, rows = None))]
    fn new(
        scenario: &Bound<'_, PyAny>,
        axes: &Bound<'_, PyDict>,
        seeds: u32,
        set: Option<&Bound<'_, PyDict>>,
        cc: Option<&Bound<'_, PyDict>>,
        rows: Option<PathBuf>,
    ) -> PyResult<Self> {
        if seeds == 0 {
            return Err(PyValueError::new_err("seeds is 0, and nothing would run; use 1 or more"));
        }
        let mut scenario = Scenario::copy_of(scenario)?;
        scenario.drop_claims();
        let mut laws = Laws::default();
        let mut named = names(axes)?;
        for (axis, (_, values)) in named.iter_mut().zip(axes) {
            axis.numbers = scenario.push_axis(&axis.name, &axis.key, &values, &mut laws)?;
        }
        let mut set = assignments(set)?;
        for (flow, law) in cc.into_iter().flatten() {
            let flow: String = flow.extract()?;
            set.push(format!("flow.{flow}.cc={}", laws.cc_of(&law)?));
        }
        let mut document = scenario.document(&laws.given())?;
        set.iter().try_for_each(|assignment| document.set(assignment)).map_err(of_scenario)?;
        let experiment = Experiment::parse(document).map_err(of_scenario)?;
        let of_file = experiment.axes.len() - named.len();
        let of_file = experiment.axes[..of_file].iter();
        let mut axes: Vec<Axis> =
            of_file.map(|axis| Axis { name: axis.name.clone(), key: axis.name.clone(), numbers: None }).collect();
        axes.append(&mut named);
        let mut grid =
            Self { experiment, axes, seeds, scenario: scenario.text(), set, laws, rows: Rows::default(), keeper: None };
        if let Some(path) = rows {
            grid.keep(path)?;
        }
        Ok(grid)
    }

    /// The missing runs, each as the number of its point and the offset of its seed from the first.
    fn missing(&self) -> PyResult<Vec<(usize, u32)>> {
        let places = sweep::missing(&self.experiment, self.options(NonZeroUsize::MIN), &self.rows);
        Ok(places.map_err(of_scenario)?.into_iter().map(|place| (place.point, place.seed)).collect())
    }

    /// A run in words, for error messages.
    fn describe(&self, place: (usize, u32)) -> PyResult<String> {
        let (point, seed) = place;
        if point >= self.experiment.variants().len() {
            return Err(PyValueError::new_err("there is no such point"));
        }
        sweep::describe(&self.experiment, GridPlace { point, seed }).map_err(of_scenario)
    }

    /// Adds the rows that `run_places` returned.
    fn add(&mut self, text: &str) -> PyResult<()> {
        let told = Rows::parse(&self.experiment, "what a worker has sent", text).map_err(of_scenario)?;
        for row in told.iter() {
            if let Some(keeper) = &mut self.keeper {
                keeper.add(row)?;
            }
            self.rows.add(row.clone());
        }
        Ok(())
    }

    /// Runs the missing runs in this process. Returns the sweep, and the place and the reason of each failed run.
    #[pyo3(signature = (jobs = None, progress = None))]
    fn finish(
        &mut self,
        py: Python<'_>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Sweep, Vec<Unrun>)> {
        let jobs = match jobs {
            None => parallel::jobs_default(),
            Some(jobs) => NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is 0; use 1 or more"))?,
        };
        let options = self.options(jobs);
        let Self { experiment, rows, keeper, .. } = self;
        let mut looks = Looks::new(progress);
        let mut kept: PyResult<()> = Ok(());
        let sweep = {
            let watch = Watcher { looks: &mut looks, keeper: keeper.as_mut(), kept: &mut kept };
            py.detach(|| sweep::sweep_until(experiment, options, rows, watch))
        };
        looks.result()?;
        kept?;
        let sweep = sweep.map_err(of_scenario)?.ok_or_else(|| Error::new_err("the sweep was stopped"))?;
        let failed = unrun(&sweep.failed);
        Ok((self.made(sweep.rows)?, failed))
    }

    /// The sweep of the rows so far. Nothing is run.
    fn known(&self, py: Python<'_>) -> PyResult<Sweep> {
        let options = self.options(NonZeroUsize::MIN);
        let sweep = py.detach(|| sweep::known(&self.experiment, options, &self.rows));
        self.made(sweep.map_err(of_scenario)?.rows)
    }

    /// The task for `run_places` in another process. The worker needs no files.
    #[getter]
    fn task(&self, py: Python<'_>) -> PyResult<Task> {
        let document = self.experiment.document();
        let own = [(document.file().to_owned(), document.text().to_owned())];
        let bases = document.bases().iter().map(|base| (base.file.to_string(), base.text.to_string()));
        let module = |(file, law): (&String, &Own)| match law {
            Own::Module(module) => Some((file.clone(), module.name().to_owned(), module.bytes().to_vec())),
            Own::Made(_) => None,
        };
        Ok(Task {
            engine: ENGINE.to_owned(),
            python: version(py)?,
            files: own.into_iter().chain(bases).collect(),
            set: self.set.clone(),
            modules: document.own_laws().iter().filter_map(module).collect(),
            laws: self.laws.sent(py),
        })
    }
}

impl Grid {
    fn options(&self, jobs: NonZeroUsize) -> Options {
        Options { jobs, seeds: self.seeds, shard: Shard::WHOLE }
    }

    /// Makes a sweep of the rows, and writes them to the file of rows.
    fn made(&self, rows: Vec<Row>) -> PyResult<Sweep> {
        if let Some(keeper) = &self.keeper {
            let mut all = self.rows.clone();
            rows.iter().for_each(|row| all.add(row.clone()));
            keeper.write(&self.experiment, &all)?;
        }
        let measured = rows.first().map_or(&[][..], Row::values).iter().map(|(name, _)| name);
        let signed = measured.filter(|name| self.experiment.may_be_negative(name)).cloned().collect();
        let facts = [
            ("scenario", self.scenario.clone()),
            ("set", self.set.join("\n")),
            ("seeds", self.seeds.to_string()),
            ("engine", ENGINE.to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        Ok(Sweep { axes: self.axes.clone(), rows, signed, facts })
    }

    /// Reads the file if it exists, and opens it for appending.
    fn keep(&mut self, path: PathBuf) -> PyResult<()> {
        let refuse = |error: std::io::Error| {
            Error::new_err(format!("{}: cannot be kept: {error}; name another file", path.display()))
        };
        let text = match files::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(refuse(error)),
        };
        self.rows = Rows::parse(&self.experiment, &path.display().to_string(), &text).map_err(of_scenario)?;
        // The file is rewritten first, so that no row is appended to an incomplete line.
        written(&path, &self.experiment, &self.rows)?;
        let file = fs::File::options().append(true).open(&path).map_err(refuse)?;
        self.keeper = Some(Keeper { path, file });
        Ok(())
    }
}

impl Keeper {
    fn add(&mut self, row: &Row) -> PyResult<()> {
        row.write_csv(&mut self.file).map_err(|error| Error::new_err(format!("{}: {error}", self.path.display())))
    }

    /// Rewrites all rows in an order that does not depend on the order of the runs.
    fn write(&self, experiment: &Experiment, rows: &Rows) -> PyResult<()> {
        written(&self.path, experiment, rows)
    }
}

/// Replaces the file atomically, so that no row is lost if the process is killed.
fn written(path: &Path, experiment: &Experiment, rows: &Rows) -> PyResult<()> {
    let write = |file: fs::File| {
        let mut file = std::io::BufWriter::new(file);
        file.write_all(sweep::head(experiment).as_bytes())?;
        rows.iter().try_for_each(|row| row.write_csv(&mut file))?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    };
    let written = files::create_part(path).and_then(|(file, part)| {
        let named = write(file).and_then(|()| fs::rename(&part, path));
        if named.is_err() {
            _ = fs::remove_file(&part);
        }
        named
    });
    written.map_err(|error| Error::new_err(format!("{}: cannot be kept: {error}; name another file", path.display())))
}

struct Watcher<'a> {
    looks: &'a mut Looks,
    keeper: Option<&'a mut Keeper>,
    /// Whether every row could be written.
    kept: &'a mut PyResult<()>,
}

impl Watch for Watcher<'_> {
    fn runs(&mut self, done: usize, total: usize) {
        self.looks.look(done, total);
    }

    fn row(&mut self, row: &Row) {
        if let (Some(keeper), Ok(())) = (&mut self.keeper, &self.kept) {
            *self.kept = keeper.add(row);
        }
    }

    fn goes_on(&self) -> bool {
        !self.looks.is_stopped() && self.kept.is_ok()
    }
}

/// A worker's task.
#[derive(FromPyObject, IntoPyObject)]
pub(crate) struct Task {
    #[pyo3(item)]
    engine: String,
    /// The version of the driver's interpreter.
    #[pyo3(item)]
    python: String,
    /// The names and texts of the experiment and of the files that it reads.
    #[pyo3(item)]
    files: Vec<(String, String)>,
    /// The overrides.
    #[pyo3(item)]
    set: Vec<String>,
    /// The WASM modules: the names of their files in the document, what messages call them, and their bytes.
    #[pyo3(item)]
    modules: Vec<(String, String, Vec<u8>)>,
    /// The laws written in Python, with their digests.
    #[pyo3(item)]
    laws: Vec<(String, Py<PyAny>, String)>,
}

/// A failed run: its place and the reason.
type Unrun = ((usize, u32), String);

fn unrun(failed: &[Failed]) -> Vec<Unrun> {
    failed.iter().map(|it| ((it.place.point, it.place.seed), it.because.clone())).collect()
}

/// Runs some places of a grid in this process: the work of a worker. Returns the text of their rows, and the failed runs. `task` is `Grid.task`.
#[pyfunction]
#[pyo3(signature = (task, places, jobs = 1))]
pub(crate) fn run_places(
    py: Python<'_>,
    task: Task,
    places: Vec<(usize, u32)>,
    jobs: usize,
) -> PyResult<(String, Vec<Unrun>)> {
    let jobs = NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is 0; use 1 or more"))?;
    let Task { engine, python, files, set, modules, laws: sent } = task;
    if engine != ENGINE {
        return Err(Error::new_err(format!(
            "a worker has another version of anabranch, whose runs may differ: engine {ENGINE}, not {engine}; install the same wheel there"
        )));
    }
    let Some(((name, text), bases)) = files.split_first() else {
        return Err(PyValueError::new_err("the task has no scenario"));
    };
    let mut base = |wanted: &str| {
        let found = bases.iter().find(|(name, _)| name == wanted).map(|(_, text)| text.clone());
        found.ok_or_else(|| "it was not sent".to_owned())
    };
    let mut laws = Laws::default();
    sent.iter().try_for_each(|(name, make, digest)| laws.receive(name, make.bind(py), digest, &python))?;
    let mut given = laws.given();
    for (file, name, bytes) in modules {
        let module = Module::new(&name, bytes).map_err(|error| Error::new_err(format!("the controller {error}")))?;
        given.insert(file, Own::Module(Arc::new(module)));
    }
    let mut document = Document::parse_given(name, text, &mut base, &given).map_err(of_scenario)?;
    set.iter().try_for_each(|assignment| document.set(assignment)).map_err(of_scenario)?;
    let experiment = Experiment::parse(document).map_err(of_scenario)?;
    let places: Vec<GridPlace> = places.into_iter().map(|(point, seed)| GridPlace { point, seed }).collect();
    let mut looks = Looks::new(None);
    let mut kept = Ok(());
    let told = {
        let watch = Watcher { looks: &mut looks, keeper: None, kept: &mut kept };
        py.detach(|| sweep::run_some(&experiment, &places, jobs, watch))
    };
    looks.result()?;
    let told = told.map_err(of_scenario)?.ok_or_else(|| Error::new_err("it was stopped"))?;
    let mut out = sweep::head(&experiment).into_bytes();
    told.rows.iter().try_for_each(|row| row.write_csv(&mut out)).map_err(|error| Error::new_err(error.to_string()))?;
    let text = String::from_utf8(out).map_err(|error| Error::new_err(error.to_string()))?;
    Ok((text, unrun(&told.failed)))
}

/// A short name for each key; the whole key where two short names would be equal.
fn names(axes: &Bound<'_, PyDict>) -> PyResult<Vec<Axis>> {
    let keys: Vec<String> = axes.keys().extract()?;
    let short = |key: &str| {
        let mut words = key.rsplit('.');
        let last = words.next().unwrap_or_default();
        let before = words.next().filter(|_| ["name", "kind"].contains(&last));
        before.unwrap_or(last).to_owned()
    };
    let count = |name: &str| keys.iter().filter(|key| short(key) == name).count();
    let axis = |key: &String| {
        let name = Some(short(key)).filter(|name| count(name) == 1).unwrap_or_else(|| key.clone());
        Axis { name, key: key.clone(), numbers: None }
    };
    Ok(keys.iter().map(axis).collect())
}

//! A scenario as editable text: the content of a file stays as it was written, with its comments and order.

use std::collections::HashMap;
use std::path::PathBuf;

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::own::Given;
use anabranch_lab::scenario::Scenario as Checked;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::error::{Error, ScenarioError, of_scenario};
use crate::own::{self, Laws};
use crate::{controller, values};

/// The keys that make a scenario an experiment. A sweep judges nothing, and the claims know nothing of added axes.
const CLAIMS: [&str; 6] = ["experiment", "engine", "table", "claim", "note", "figure"];

/// A scenario: a network, its flows and its measures, as in a TOML file.
#[pyclass(module = "anabranch")]
pub(crate) struct Scenario {
    toml: DocumentMut,
    /// Its name in messages.
    name: String,
}

impl Scenario {
    /// Parses the text as the laboratory does. It may name the laws in `given`.
    pub(crate) fn document(&self, given: &Given) -> PyResult<Document> {
        Document::parse_beside(&self.name, &self.toml.to_string(), given).map_err(of_scenario)
    }

    /// A copy of a scenario, or of the scenario in a file.
    pub(crate) fn copy_of(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(scenario) = source.cast::<Self>() {
            let scenario = scenario.borrow();
            return Ok(Self { toml: scenario.toml.clone(), name: scenario.name.clone() });
        }
        let document = document_of(source)?;
        Self::parsed(document.text(), document.file().to_owned())
    }

    pub(crate) fn drop_claims(&mut self) {
        for key in CLAIMS {
            self.toml.remove(key);
        }
    }

    /// Appends an axis that sets `key` to each of several values: a list, or a dict with a label for each. Returns the number of each label if all
    /// are numbers. A label that another axis has gets the key before it.
    pub(crate) fn push_axis(
        &mut self,
        name: &str,
        key: &str,
        values: &Bound<'_, PyAny>,
        laws: &mut Laws,
    ) -> PyResult<Option<HashMap<String, f64>>> {
        let pairs: Vec<(String, Bound<'_, PyAny>)> = match values.cast::<PyDict>() {
            Ok(named) => pairs(named)?,
            Err(_) => {
                let each = values.try_iter()?.map(|value| value.and_then(|value| Ok((label(&value)?, value))));
                each.collect::<PyResult<_>>()?
            }
        };
        let taken = self.labels();
        let is_taken = pairs.iter().any(|(label, _)| taken.contains(label));
        let mut numbers = Some(HashMap::new());
        let mut table = InlineTable::new();
        for (label, value) in pairs {
            let label = if is_taken { format!("{key}={label}") } else { label };
            let toml = match own::is_law(key) {
                true => laws.cc_of(&value)?,
                false if value.is_callable() => {
                    let message =
                        format!("{key}: a law written in Python belongs to the key `cc` of a flow, as `flow.f0.cc`");
                    return Err(ScenarioError::new_err(message));
                }
                false => values::to_toml(&value)?,
            };
            match toml.as_float().or_else(|| toml.as_integer().map(|number| number as f64)) {
                Some(number) => {
                    numbers = numbers.map(|mut known| {
                        known.insert(label.clone(), number);
                        known
                    })
                }
                None => numbers = None,
            }
            if table.contains_key(&label) {
                return Err(ScenarioError::new_err(format!("{key}: the value `{label}` is there twice")));
            }
            let mut assignment = InlineTable::new();
            assignment.insert(key, toml);
            table.insert(&label, Value::InlineTable(assignment));
        }
        let mut axis = Table::new();
        axis.insert("name", Item::Value(name.into()));
        axis.insert("values", Item::Value(Value::InlineTable(table)));
        self.push_table("axis", axis)?;
        Ok(numbers)
    }

    /// All labels of all axes.
    fn labels(&self) -> Vec<String> {
        let axes = self.toml.get("axis").and_then(Item::as_array_of_tables).into_iter().flatten();
        let values = axes.filter_map(|axis| axis.get("values").and_then(Item::as_table_like));
        values.flat_map(|values| values.iter().map(|(label, _)| label.to_owned())).collect()
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        self.toml.to_string()
    }

    fn parsed(text: &str, name: String) -> PyResult<Self> {
        // The laboratory reports errors with their positions.
        let document = Document::parse_beside(&name, text, &Given::new()).map_err(of_scenario)?;
        let toml = document.text().parse().map_err(|error| ScenarioError::new_err(format!("{name}: {error}")))?;
        Ok(Self { toml, name })
    }

    /// Appends an element to a list of tables.
    fn push<'py>(
        &mut self,
        list: &str,
        entries: impl IntoIterator<Item = (String, Bound<'py, PyAny>)>,
    ) -> PyResult<()> {
        let mut table = Table::new();
        for (key, value) in entries {
            table.insert(&key, Item::Value(values::to_toml(&value)?));
        }
        self.push_table(list, table)
    }

    fn push_table(&mut self, list: &str, table: Table) -> PyResult<()> {
        let item = self.toml.entry(list).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match item {
            Item::ArrayOfTables(tables) => {
                tables.push(table);
                Ok(())
            }
            Item::Value(Value::Array(elements)) => {
                elements.push(table.into_inline_table());
                Ok(())
            }
            _ => Err(ScenarioError::new_err(format!("{}: `{list}` is no list", self.name))),
        }
    }

    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(table) = value.cast::<PyDict>() {
            let mut entries = Table::new();
            for (key, value) in table {
                entries.insert(&key.extract::<String>()?, Item::Value(values::to_toml(&value)?));
            }
            self.toml.insert(key, Item::Table(entries));
            return Ok(());
        }
        let elements: Option<Vec<Bound<'_, PyDict>>> = value
            .extract::<Vec<Bound<'_, PyAny>>>()
            .ok()
            .filter(|list| !list.is_empty() && !value.is_instance_of::<pyo3::types::PyString>())
            .and_then(|list| list.into_iter().map(|element| element.cast_into::<PyDict>().ok()).collect());
        match elements {
            Some(elements) => {
                self.toml.remove(key);
                elements.iter().try_for_each(|element| self.push(key, pairs(element)?))
            }
            None => {
                self.toml.insert(key, Item::Value(values::to_toml(value)?));
                Ok(())
            }
        }
    }
}

/// A scenario that was pickled. Its text may name laws of the program, so it is checked when it is run.
#[pyfunction]
#[pyo3(name = "_restore_scenario")]
pub(crate) fn restore_scenario(text: &str, name: String) -> PyResult<Scenario> {
    let toml = text.parse().map_err(|error| ScenarioError::new_err(format!("{name}: {error}")))?;
    Ok(Scenario { toml, name })
}

/// What tables call a value without a label of its own.
fn label(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_callable() {
        return Ok(controller::name(value));
    }
    let Ok(table) = value.cast::<PyDict>() else { return value.str()?.extract() };
    // A law with settings, as it is written on the command line.
    let mut label = String::new();
    for (key, value) in table {
        let (key, value): (String, String) = (key.extract()?, value.str()?.extract()?);
        match label.is_empty() && ["name", "plugin"].contains(&key.as_str()) {
            true => label = value,
            false => label += &format!("{}{key}={value}", if label.is_empty() { "" } else { "," }),
        }
    }
    Ok(label)
}

fn pairs<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    dict.iter().map(|(key, value)| Ok((key.extract()?, value))).collect()
}

/// A scenario, or the path of a file that has one, as the laboratory reads it.
pub(crate) fn document_of(source: &Bound<'_, PyAny>) -> PyResult<Document> {
    if let Ok(scenario) = source.cast::<Scenario>() {
        return scenario.borrow().document(&Given::new());
    }
    let path = source.extract::<PathBuf>().map_err(|_| {
        PyTypeError::new_err(
            "a scenario is the path of a TOML file or an anabranch.Scenario; Scenario.parse reads a text",
        )
    })?;
    Document::read(&path).map_err(of_scenario)
}

#[pymethods]
impl Scenario {
    /// A scenario with these keys: `Scenario(duration="60s", seed=1)`.
    #[new]
    #[pyo3(signature = (**keys))]
    fn new(keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut scenario = Self { toml: DocumentMut::new(), name: "scenario".to_owned() };
        for (key, value) in keys.map(pairs).transpose()?.unwrap_or_default() {
            scenario.set(&key, &value)?;
        }
        Ok(scenario)
    }

    /// Reads a file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        let document = Document::read(&path).map_err(of_scenario)?;
        Self::parsed(document.text(), document.file().to_owned())
    }

    /// Reads a text; `name` is what messages call it.
    #[staticmethod]
    #[pyo3(signature = (text, name = "scenario"))]
    fn parse(text: &str, name: &str) -> PyResult<Self> {
        Self::parsed(text, name.to_owned())
    }

    /// For pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let restore = py.import("anabranch._native")?.getattr("_restore_scenario")?;
        Ok((restore, (self.text(), self.name.clone())))
    }

    /// Of a dict, as `to_dict` gives it.
    #[staticmethod]
    fn from_dict(keys: &Bound<'_, PyDict>) -> PyResult<Self> {
        Self::new(Some(keys))
    }

    /// Adds a link from one node to another, with its reverse direction.
    #[pyo3(signature = (id, from_, to, **keys))]
    fn link<'py>(
        slf: Bound<'py, Self>,
        id: Bound<'py, PyAny>,
        from_: Bound<'py, PyAny>,
        to: Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        append(slf, "link", [("id", id), ("from", from_), ("to", to)], keys)
    }

    /// Adds a flow from one node to another.
    #[pyo3(signature = (id, from_, to, **keys))]
    fn flow<'py>(
        slf: Bound<'py, Self>,
        id: Bound<'py, PyAny>,
        from_: Bound<'py, PyAny>,
        to: Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        append(slf, "flow", [("id", id), ("from", from_), ("to", to)], keys)
    }

    /// Adds an element to a list of the file: `add("route", at="5s", ...)`.
    #[pyo3(signature = (kind, **keys))]
    fn add<'py>(slf: Bound<'py, Self>, kind: &str, keys: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        append(slf, kind, [], keys)
    }

    /// Adds measures: `measure(goodput="flow.f0.goodput_bps")`.
    #[pyo3(signature = (**expressions))]
    fn measure<'py>(slf: Bound<'py, Self>, expressions: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        {
            let mut scenario = slf.borrow_mut();
            let item = scenario.toml.entry("measure").or_insert_with(|| Item::Table(Table::new()));
            let Some(table) = item.as_table_like_mut() else {
                return Err(ScenarioError::new_err("`measure` is no table"));
            };
            for (name, text) in expressions.map(pairs).transpose()?.unwrap_or_default() {
                table.insert(&name, Item::Value(values::to_toml(&text)?));
            }
        }
        Ok(slf)
    }

    /// All keys and values, in the order of the file.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::table_to_python(py, self.toml.as_table().iter())
    }

    /// The text of the file.
    fn to_toml(&self) -> String {
        self.toml.to_string()
    }

    /// Writes the file.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        std::fs::write(&path, self.to_toml())
            .map_err(|error| Error::new_err(format!("{}: cannot be written: {error}", path.display())))
    }

    /// Raises `ScenarioError` if something in it is wrong.
    fn check(&self) -> PyResult<()> {
        let document = self.document(&Given::new())?;
        Checked::parse(&document).map_err(of_scenario)?;
        Experiment::parse(document).map(|_| ()).map_err(of_scenario)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.to_dict(py)?.eq(other.borrow().to_dict(py)?),
            Err(_) => Ok(false),
        }
    }

    fn __str__(&self) -> String {
        self.to_toml()
    }

    fn __repr__(&self) -> String {
        let count = |list: &str| self.toml.get(list).and_then(Item::as_array_of_tables).map_or(0, ArrayOfTables::len);
        format!("<anabranch.Scenario {}: {} links, {} flows>", self.name, count("link"), count("flow"))
    }
}

fn append<'py, const N: usize>(
    slf: Bound<'py, Scenario>,
    list: &str,
    first: [(&str, Bound<'py, PyAny>); N],
    keys: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, Scenario>> {
    let first = first.into_iter().map(|(key, value)| (key.to_owned(), value));
    let entries: Vec<_> = first.chain(keys.map(pairs).transpose()?.unwrap_or_default()).collect();
    slf.borrow_mut().push(list, entries)?;
    Ok(slf)
}

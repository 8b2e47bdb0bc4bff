//! Converts between Python values and TOML.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml_edit::{Array, InlineTable, Item, Value};

/// Converts to a TOML value. Every Python number counts as a number, also numpy's.
pub(crate) fn to_toml(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned().into());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.extract::<i64>()?.into());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(value.extract::<f64>()?.into());
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let mut inline = InlineTable::new();
        for (key, value) in table {
            inline.insert(key.extract::<String>()?, to_toml(&value)?);
        }
        return Ok(Value::InlineTable(inline));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let elements: PyResult<Array> = value.try_iter()?.map(|element| to_toml(&element?)).collect();
        return Ok(Value::Array(elements?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number.into());
    }
    let kind = value.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("a scenario has texts, numbers, truths, lists and dicts of these, and no {kind}")))
}

/// Converts to a Python value.
pub(crate) fn to_python<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyAny>> {
    match item {
        Item::None => Ok(py.None().into_bound(py)),
        Item::Value(value) => value_to_python(py, value),
        Item::Table(table) => table_to_python(py, table.iter()),
        Item::ArrayOfTables(tables) => {
            let elements: PyResult<Vec<_>> = tables.iter().map(|table| table_to_python(py, table.iter())).collect();
            Ok(PyList::new(py, elements?)?.into_any())
        }
    }
}

fn value_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::String(text) => text.value().into_pyobject(py)?.into_any(),
        Value::Integer(number) => number.value().into_pyobject(py)?.into_any(),
        Value::Float(number) => number.value().into_pyobject(py)?.into_any(),
        Value::Boolean(truth) => PyBool::new(py, *truth.value()).to_owned().into_any(),
        // No key of a scenario is a date; the laboratory reads a date as text, too.
        Value::Datetime(date) => date.value().to_string().into_pyobject(py)?.into_any(),
        Value::Array(elements) => {
            let elements: PyResult<Vec<_>> = elements.iter().map(|element| value_to_python(py, element)).collect();
            PyList::new(py, elements?)?.into_any()
        }
        Value::InlineTable(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table.iter() {
                dict.set_item(key, value_to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Converts a table to a dict in the order of the file.
pub(crate) fn table_to_python<'py, 'a>(
    py: Python<'py>,
    entries: impl Iterator<Item = (&'a str, &'a Item)>,
) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    for (key, item) in entries {
        dict.set_item(key, to_python(py, item)?)?;
    }
    Ok(dict.into_any())
}

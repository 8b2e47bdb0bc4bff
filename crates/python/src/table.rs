//! A table: named columns, for every library that supports Arrow's PyCapsule interface, and for plain Python.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, StructArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, ffi::FFI_ArrowSchema};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::error::Error;

/// Columns with names. `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)` and duckdb read it.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Table(RecordBatch);

/// A column that is being built.
pub(crate) enum Column {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

impl Column {
    fn array(self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(StringArray::from(values)),
            Self::Count(values) => Arc::new(UInt64Array::from(values)),
            Self::Signed(values) => Arc::new(Int64Array::from(values)),
            Self::Number(values) => Arc::new(Float64Array::from(values)),
        }
    }
}

impl Table {
    /// A table of columns of equal length.
    pub(crate) fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Column)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, column)| (name.into(), column));
        Self::of_columns(columns.collect(), HashMap::new())
    }

    /// A table with metadata.
    pub(crate) fn of_columns(columns: Vec<(String, Column)>, metadata: HashMap<String, String>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, column)| (name, column.array()));
        Self::of_arrays(columns.collect(), metadata)
    }

    /// A table of finished Arrow arrays, with metadata.
    pub(crate) fn of_arrays(columns: Vec<(String, ArrayRef)>, metadata: HashMap<String, String>) -> PyResult<Self> {
        let field = |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
        let schema = Schema::new_with_metadata(columns.iter().map(field).collect::<Vec<_>>(), metadata);
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).map(Self).map_err(of_arrow)
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        let missing =
            || PyKeyError::new_err(format!("no column is called `{name}`; there are {}", self.columns().join(", ")));
        self.0.column_by_name(name).ok_or_else(missing)
    }

    fn list<'py>(&self, py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
        fn all<'py, A: Array + 'static, T: IntoPyObject<'py>>(
            py: Python<'py>,
            array: &ArrayRef,
            value: impl Fn(&A, usize) -> T,
        ) -> PyResult<Bound<'py, PyList>> {
            let array: &A = array.as_any().downcast_ref().expect("its type says so");
            PyList::new(
                py,
                (0..array.len()).map(|row| (!array.is_null(row)).then(|| value(array, row))).collect::<Vec<_>>(),
            )
        }
        match array.data_type() {
            DataType::Utf8 => all(py, array, |array: &StringArray, row| array.value(row).to_owned()),
            DataType::UInt64 => all(py, array, |array: &UInt64Array, row| array.value(row)),
            DataType::Int64 => all(py, array, |array: &Int64Array, row| array.value(row)),
            _ => all(py, array, |array: &Float64Array, row| array.value(row)),
        }
    }
}

fn of_arrow(error: ArrowError) -> PyErr {
    Error::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// Names of the columns, in order.
    #[getter]
    pub(crate) fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The metadata of the table, as texts.
    #[getter]
    fn metadata(&self) -> HashMap<String, String> {
        self.0.schema_ref().metadata().clone().into()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// A column as a list, with `None` where a value is unknown.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.list(py, self.column(name)?)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.column_by_name(name).is_some()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py)?.into_any().try_iter().map(Bound::into_any)
    }

    /// All rows, each a dict.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns: Vec<(String, Bound<'py, PyList>)> = self
            .columns()
            .into_iter()
            .zip(self.0.columns())
            .map(|(name, array)| Ok((name, self.list(py, array)?)))
            .collect::<PyResult<_>>()?;
        let rows = (0..self.0.num_rows()).map(|row| {
            let dict = PyDict::new(py);
            for (name, values) in &columns {
                dict.set_item(name, values.get_item(row)?)?;
            }
            Ok(dict)
        });
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// All columns, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, array) in self.columns().into_iter().zip(self.0.columns()) {
            dict.set_item(name, self.list(py, array)?)?;
        }
        Ok(dict)
    }

    /// A column of numbers as `array.array('d')`, which numpy reads without a copy; NaN where a value is unknown.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.column(name)?;
        let bytes: Vec<u8> = match column.as_any().downcast_ref::<Float64Array>() {
            Some(numbers) => numbers.iter().flat_map(|value| value.unwrap_or(f64::NAN).to_ne_bytes()).collect(),
            None => {
                let values = self.list(py, column)?;
                let number = |value: Bound<'_, PyAny>| -> PyResult<[u8; 8]> {
                    Ok(value.extract::<Option<f64>>()?.unwrap_or(f64::NAN).to_ne_bytes())
                };
                values.iter().map(number).collect::<PyResult<Vec<_>>>()?.concat()
            }
        };
        py.import("array")?.getattr("array")?.call1(("d", PyBytes::new(py, &bytes)))
    }

    /// The schema for libraries that read Arrow.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref()).map_err(of_arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as one array of structs, for libraries that read Arrow.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A producer may ignore the requested schema; the consumer then casts.
        let _ = requested_schema;
        let (array, _) = to_ffi(&StructArray::from(self.0.clone()).into_data()).map_err(of_arrow)?;
        Ok((self.__arrow_c_schema__(py)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    /// The table as a stream of one batch, for libraries that read Arrow.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// For pickle: the name, the type and the values of each column, and the metadata.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Restored<'py>)> {
        let fields = self.0.schema_ref().fields().iter().zip(self.0.columns());
        let columns = fields.map(|(field, array)| {
            let kind = match array.data_type() {
                DataType::Utf8 => "text",
                DataType::UInt64 => "count",
                DataType::Int64 => "signed",
                _ => "number",
            };
            Ok((field.name().clone(), kind.to_owned(), self.list(py, array)?))
        });
        let restore = py.import("anabranch._native")?.getattr("_restore_table")?;
        Ok((restore, (columns.collect::<PyResult<_>>()?, self.metadata())))
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Table of {} rows: {}>", self.0.num_rows(), self.columns().join(", "))
    }

    /// The first rows, for notebooks.
    pub(crate) fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let mut html = "<table><thead><tr>".to_owned();
        for name in self.columns() {
            let _ = write!(html, "<th>{}</th>", escaped(&name));
        }
        html += "</tr></thead><tbody>";
        let shown = self.0.slice(0, self.0.num_rows().min(ROWS_SHOWN));
        let columns = shown.columns().iter().map(|array| self.list(py, array)).collect::<PyResult<Vec<_>>>()?;
        for row in 0..shown.num_rows() {
            html += "<tr>";
            for column in &columns {
                let value = column.get_item(row)?;
                let text = match value.extract::<f64>() {
                    _ if value.is_none() => "–".to_owned(),
                    Ok(number) => significant(number),
                    Err(_) => value.str()?.to_string(),
                };
                let _ = write!(html, "<td>{}</td>", escaped(&text));
            }
            html += "</tr>";
        }
        html += "</tbody></table>";
        if self.0.num_rows() > ROWS_SHOWN {
            let _ = write!(html, "<p>{} rows, of which {ROWS_SHOWN} are shown</p>", self.0.num_rows());
        }
        Ok(html)
    }
}

/// The columns and the metadata of a table.
type Restored<'py> = (Vec<(String, String, Bound<'py, PyList>)>, HashMap<String, String>);

/// A table that was pickled.
#[pyfunction]
#[pyo3(name = "_restore_table")]
pub(crate) fn restore_table(
    columns: Vec<(String, String, Bound<'_, PyList>)>,
    metadata: HashMap<String, String>,
) -> PyResult<Table> {
    let column = |(name, kind, values): (String, String, Bound<'_, PyList>)| {
        let column = match kind.as_str() {
            "text" => Column::Text(values.extract()?),
            "count" => Column::Count(values.extract()?),
            "signed" => Column::Signed(values.extract()?),
            _ => Column::Number(values.extract()?),
        };
        Ok((name, column))
    };
    Table::of_columns(columns.into_iter().map(column).collect::<PyResult<_>>()?, metadata)
}

/// The limit of rows in a notebook, which nobody would read to the end.
const ROWS_SHOWN: usize = 50;

/// A number with five significant digits, for display.
fn significant(number: f64) -> String {
    let digits = 4 - (number.abs().max(1e-4).log10().floor() as i32).clamp(-4, 4);
    let text = format!("{number:.*}", digits.cast_unsigned() as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Escapes text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

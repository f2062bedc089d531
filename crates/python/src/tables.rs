//! Outcomes as Arrow tables, one a kind of row.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// An Arrow table, for any library that reads the Arrow C stream interface.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Table(RecordBatch);

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the schema asked for; the consumer casts.
        let _ = requested_schema;
        let schema = self.0.schema();
        let batches = std::iter::once(Ok(self.0.clone()));
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// A table being filled, row by row.
#[derive(Default)]
pub struct Columns {
    /// The value of a first column `setting` in all following rows, if there is one.
    setting: Option<(UInt32Builder, u32)>,
    names: Vec<&'static str>,
    columns: Vec<Column>,
}

enum Column {
    Count(UInt64Builder),
    Number(Float64Builder),
    Text(StringBuilder),
}

/// One value of a row.
pub enum Cell<'a> {
    /// A whole number.
    Count(u64),
    /// A number, or nothing.
    Number(Option<f64>),
    /// A text, or nothing.
    Text(Option<&'a str>),
}

impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Cell::Count(n)
    }
}
impl From<f64> for Cell<'_> {
    fn from(x: f64) -> Self {
        Cell::Number(Some(x))
    }
}
impl From<Option<f64>> for Cell<'_> {
    fn from(x: Option<f64>) -> Self {
        Cell::Number(x)
    }
}
impl<'a> From<&'a str> for Cell<'a> {
    fn from(s: &'a str) -> Self {
        Cell::Text(Some(s))
    }
}
impl<'a> From<&'a String> for Cell<'a> {
    fn from(s: &'a String) -> Self {
        Cell::Text(Some(s))
    }
}
impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(s: Option<&'a str>) -> Self {
        Cell::Text(s)
    }
}

/// The values of a column.
#[derive(Clone, Copy)]
pub enum Holds {
    /// Whole numbers.
    Counts,
    /// Numbers, some of them missing.
    Numbers,
    /// Texts, some of them missing.
    Texts,
}

impl Columns {
    /// Rows from now on are of this setting.
    pub fn of_setting(&mut self, number: u32) {
        self.setting.get_or_insert_with(|| (UInt32Builder::with_capacity(0), 0)).1 = number;
    }

    /// Makes these columns, unless they are there.
    pub fn have(&mut self, columns: &[(&'static str, Holds)]) {
        if self.names.is_empty() {
            self.names = columns.iter().map(|c| c.0).collect();
            // By default a builder has room for 1,024 values: a quarter of a megabyte for a run of one flow.
            self.columns = columns
                .iter()
                .map(|c| match c.1 {
                    Holds::Counts => Column::Count(UInt64Builder::with_capacity(0)),
                    Holds::Numbers => Column::Number(Float64Builder::with_capacity(0)),
                    Holds::Texts => Column::Text(StringBuilder::with_capacity(0, 0)),
                })
                .collect();
        }
    }

    /// Adds a row, one cell a column.
    ///
    /// # Panics
    /// If a cell is not of its column's kind: an error in the caller.
    pub fn row(&mut self, cells: &[Cell<'_>]) {
        assert_eq!(cells.len(), self.columns.len(), "a row of {:?}", self.names);
        if let Some((settings, number)) = &mut self.setting {
            settings.append_value(*number);
        }
        for (i, (column, cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            match (column, cell) {
                (Column::Count(c), Cell::Count(n)) => c.append_value(*n),
                (Column::Number(c), Cell::Number(x)) => c.append_option(*x),
                (Column::Number(c), Cell::Count(n)) => c.append_value(*n as f64),
                (Column::Text(c), Cell::Text(s)) => c.append_option(*s),
                _ => panic!("column {} was given another kind of value", self.names[i]),
            }
        }
    }

    /// The finished table.
    ///
    /// # Errors
    /// If Arrow refuses it.
    pub fn table(self) -> PyResult<Table> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        if let Some((mut settings, _)) = self.setting {
            fields.push(Field::new("setting", DataType::UInt32, true));
            arrays.push(Arc::new(settings.finish()));
        }
        for (name, column) in self.names.into_iter().zip(self.columns) {
            let (kind, array): (DataType, ArrayRef) = match column {
                Column::Count(mut c) => (DataType::UInt64, shrunk(c.finish())),
                Column::Number(mut c) => (DataType::Float64, shrunk(c.finish())),
                Column::Text(mut c) => (DataType::Utf8, shrunk(c.finish())),
            };
            fields.push(Field::new(name, kind, true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map(Table).map_err(|e: ArrowError| PyRuntimeError::new_err(e.to_string()))
    }
}

/// Without the room for more values that a builder has kept.
fn shrunk(mut array: impl Array + 'static) -> ArrayRef {
    array.shrink_to_fit();
    Arc::new(array)
}

//! The Python binding: experiments in, tables out. Everything else is Python's or the other crates'.

#[cfg(target_os = "linux")]
mod live;
mod measured;
mod ns2;
mod results;
mod runner;
mod tables;

use inprofile_config::Problem;
use inprofile_core::registry::Registry;
use inprofile_scenario as scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

create_exception!(_internal, ScenarioError, PyValueError, "An experiment that cannot be run.");

/// A checked experiment.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Scenario {
    inner: scenario::Scenario,
    file: String,
}

#[pymethods]
impl Scenario {
    /// Read and check TOML; `file` is what messages call it, `set` overrides keys.
    #[staticmethod]
    fn parse(text: &Bound<'_, PyAny>, file: String, set: Vec<(String, String)>) -> PyResult<Scenario> {
        let registry = Registry::default();
        let read = if let Ok(bytes) = text.cast::<PyBytes>() {
            scenario::Scenario::parse_bytes(bytes.as_bytes(), &file, &set, &registry)
        } else if let Ok(text) = text.extract::<String>() {
            scenario::Scenario::parse(&text, &file, &set, &registry)
        } else {
            return Err(PyTypeError::new_err("text: str or bytes"));
        };
        match read {
            Ok(inner) => Ok(Scenario { inner, file }),
            Err(problems) => Err(ScenarioError::new_err((written(&problems), json(&problems)))),
        }
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        self.inner.title()
    }

    /// How many seeds it asks for.
    #[getter]
    fn seeds(&self) -> u32 {
        self.inner.seeds()
    }

    /// What messages call it.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// Data packets that one run is expected to send.
    fn expected_packets(&self) -> f64 {
        self.inner.expected_packets()
    }

    /// JSON list of problems that do not prevent a run.
    fn warnings(&self) -> String {
        json(self.inner.warnings())
    }

    /// JSON of the effective values, everything left out filled in.
    fn describe(&self) -> String {
        self.inner.describe().to_string()
    }

    /// JSON that is the same text for the same experiment.
    fn canonical(&self) -> String {
        self.inner.canonical()
    }
}

/// JSON catalogue of every marker and queue discipline.
#[pyfunction]
fn mechanisms() -> String {
    scenario::catalogue(&Registry::default()).to_string()
}

/// JSON Schema of the experiment file.
#[pyfunction]
fn schema() -> String {
    scenario::schema(&Registry::default()).to_string()
}

fn written(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn json(problems: &[Problem]) -> String {
    serde_json::json!(problems).to_string()
}

/// The compiled part: the simulator, its experiment files and its mechanisms.
#[pymodule]
mod _internal {
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::live::{NotLive, live, live_hindrance};
    #[pymodule_export]
    use super::ns2::{Inexpressible, ns2_counting_script, ns2_log, ns2_script};
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::runner::run;
    #[pymodule_export]
    use super::tables::Table;
    #[pymodule_export]
    use super::{Scenario, ScenarioError, mechanisms, schema};
}

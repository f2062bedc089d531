//! The Python binding: experiments in, tables out. Everything else is Python's or the other crates'.

#[cfg(target_os = "linux")]
mod live;
mod measured;
mod names;
mod ns2;
mod own;
mod results;
mod runner;
mod tables;

use inprofile_config::Problem;
use inprofile_scenario as scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use own::Own;

create_exception!(_internal, ScenarioError, PyValueError, "An experiment that cannot be run.");

/// A checked experiment.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Scenario {
    inner: scenario::Scenario,
    file: String,
    own: Vec<&'static str>,
}

#[pymethods]
impl Scenario {
    /// Read and check TOML; `file` is what messages call it, `set` overrides keys, `own` are classes it may name.
    #[staticmethod]
    fn parse(
        text: &Bound<'_, PyAny>,
        file: String,
        set: Vec<(String, String)>,
        own: Vec<Py<Own>>,
    ) -> PyResult<Scenario> {
        let py = text.py();
        let registry = own::registry(py, &own);
        let read = if let Ok(bytes) = text.cast::<PyBytes>() {
            scenario::Scenario::parse_bytes(bytes.as_bytes(), &file, &set, &registry)
        } else if let Ok(text) = text.extract::<String>() {
            scenario::Scenario::parse(&text, &file, &set, &registry)
        } else {
            return Err(PyTypeError::new_err("text: str or bytes"));
        };
        match read {
            Ok(inner) => {
                let canonical = if own.is_empty() { String::new() } else { inner.canonical() };
                let named = own.iter().map(|o| o.bind(py).get()).filter(|o| own::named(o, &canonical));
                Ok(Scenario { own: named.map(own::name).collect(), inner, file })
            }
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

    /// The names of the Python classes among its mechanisms.
    #[getter]
    fn own(&self) -> Vec<&'static str> {
        self.own.clone()
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

/// JSON catalogue of every marker and queue discipline, these Python classes among them.
#[pyfunction]
fn mechanisms(py: Python<'_>, own: Vec<Py<Own>>) -> String {
    scenario::catalogue(&own::registry(py, &own)).to_string()
}

/// JSON Schema of the experiment file, which may name these Python classes.
#[pyfunction]
fn schema(py: Python<'_>, own: Vec<Py<Own>>) -> String {
    scenario::schema(&own::registry(py, &own)).to_string()
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
    use super::own::{MechanismError, Own, PacketView, QueueView, Random};
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::runner::run;
    #[pymodule_export]
    use super::tables::Table;
    #[pymodule_export]
    use super::{Scenario, ScenarioError, mechanisms, schema};
}

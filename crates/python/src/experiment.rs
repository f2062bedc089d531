//! An experiment as Python holds it: checked, or refused with every problem.

use inprofile_config::{Document, Problem};
use inprofile_scenario as scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::added;
use crate::own::{self, Own};

create_exception!(_internal, ScenarioError, PyValueError, "An experiment that cannot be run.");

/// A checked experiment.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Scenario {
    pub(crate) inner: scenario::Scenario,
    file: String,
    pub(crate) own: Vec<&'static str>,
    added: Vec<&'static str>,
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
                let mut added = added::names();
                let unknown = own.is_empty() && added.is_empty();
                let canonical = if unknown { String::new() } else { inner.canonical() };
                let own = own.iter().map(|o| own::name(o.bind(py).get()));
                let own = own.filter(|name| own::named(name, &canonical)).collect();
                added.retain(|name| own::named(name, &canonical));
                Ok(Scenario { own, added, inner, file })
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

    /// The names of those that another crate has added.
    #[getter]
    fn added(&self) -> Vec<&'static str> {
        self.added.clone()
    }

    /// Data packets that one run is expected to send.
    fn expected_packets(&self) -> f64 {
        self.inner.expected_packets()
    }

    /// How many flows it has.
    fn flows(&self) -> usize {
        self.inner.flows()
    }

    /// The least memory in bytes: of a run, and of its result.
    fn expected_memory(&self) -> (f64, f64) {
        self.inner.expected_memory()
    }

    /// JSON list of problems that do not prevent a run.
    fn warnings(&self) -> String {
        json(self.inner.warnings())
    }

    /// JSON of the effective values, defaults included.
    fn describe(&self) -> String {
        self.inner.describe().to_string()
    }

    /// JSON that is the same text for the same experiment.
    fn canonical(&self) -> String {
        self.inner.canonical()
    }
}

/// Where the value under a key of an experiment is written, and whether it is: see `Document::place_of`.
#[pyfunction]
pub fn place_of(
    text: &Bound<'_, PyAny>,
    file: &str,
    set: Vec<(String, String)>,
    key: &str,
) -> PyResult<(String, bool)> {
    let read = if let Ok(bytes) = text.cast::<PyBytes>() {
        Document::parse_bytes(bytes.as_bytes(), file, &set)
    } else {
        Document::parse(&text.extract::<String>()?, file, &set)
    };
    read.map(|document| document.place_of(key))
        .map_err(|problems| ScenarioError::new_err((written(&problems), json(&problems))))
}

fn written(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn json(problems: &[Problem]) -> String {
    serde_json::json!(problems).to_string()
}

//! An experiment as Python holds it: checked, or refused with every problem.

use inprofile_experiment as scenario;
use inprofile_experiment::Memory;
use inprofile_experiment::text::extends::{self, Base};
use inprofile_experiment::text::{Document, Problem};
use inprofile_sim::parts::balance::balanced;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::extension;
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
    /// Read and check TOML; `file` is what messages call it, `bases` what it extends, `set` overrides keys, `own` are classes
    /// it may name.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: &str,
        file: String,
        bases: Vec<(String, String)>,
        set: Vec<(String, String)>,
        own: Vec<Py<Own>>,
    ) -> PyResult<Scenario> {
        let registry = own::registry(py, &own);
        match scenario::Scenario::parse_extended(text, &file, &files(bases), &set, &registry) {
            Ok(inner) => {
                let mut added = extension::names();
                let unknown = own.is_empty() && added.is_empty();
                let canonical = if unknown { String::new() } else { inner.canonical() };
                let own = own.iter().map(|o| own::name(o.bind(py).get()));
                let own = own.filter(|name| own::named(name, &canonical)).collect();
                added.retain(|name| own::named(name, &canonical));
                Ok(Scenario { own, added, inner, file })
            }
            Err(problems) => Err(refused(problems)),
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

    /// Its name in messages.
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

    /// The parts in which a run of this seed is simulated on so many threads: how many, their lookahead in seconds, the share of the
    /// work in the largest, how many times as fast as in one piece it should be, and why it is in one piece, if it is.
    fn in_parts(&self, seed: u64, threads: u32, trace: bool) -> (u32, f64, f64, f64, Option<&'static str>) {
        let found = balanced(&self.inner.network(seed, trace), threads);
        let whole =
            if self.own.is_empty() { found.whole } else { Some("Python code runs one call at a time") };
        (found.cut.parts(), found.cut.lookahead().secs(), found.largest, found.speed_up, whole)
    }

    /// The least memory in bytes: of a run in one piece, of each part more, and of its result.
    fn expected_memory(&self) -> (f64, f64, f64) {
        let Memory { run, part, result } = self.inner.expected_memory();
        (run, part, result)
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
    text: &str,
    file: &str,
    bases: Vec<(String, String)>,
    set: Vec<(String, String)>,
    key: &str,
) -> PyResult<(String, bool)> {
    let read = Document::parse_extended(text, file, &files(bases), &set);
    read.map(|document| document.place_of(key)).map_err(refused)
}

/// The files that an experiment in `file` extends, each with its text.
#[pyfunction]
pub fn bases(text: &str, file: &str) -> PyResult<Vec<(String, String)>> {
    let found = extends::bases(text, file, &inprofile_experiment::text::file::read).map_err(refused)?;
    Ok(found.into_iter().map(|base| (base.file, base.text)).collect())
}

/// The experiment in one text, with what it extends.
#[pyfunction]
pub fn whole(text: &str, file: &str, bases: Vec<(String, String)>) -> PyResult<String> {
    Document::parse_extended(text, file, &files(bases), &[])
        .map(|document| document.written())
        .map_err(refused)
}

fn files(bases: Vec<(String, String)>) -> Vec<Base> {
    bases.into_iter().map(|(file, text)| Base { file, text }).collect()
}

fn refused(problems: Vec<Problem>) -> PyErr {
    ScenarioError::new_err((written(&problems), json(&problems)))
}

fn written(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn json(problems: &[Problem]) -> String {
    serde_json::json!(problems).to_string()
}

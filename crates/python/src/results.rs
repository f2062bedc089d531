//! The outcomes of experiments' runs, and the tables made of them: of one experiment, or of many together.

use std::sync::Mutex;

use inprofile_sim::outcome::Outcome;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;

use crate::experiment::Scenario;
use crate::names::Names;
use crate::rows::Runs;
use crate::tables::{Columns, Table};

/// The outcomes of one experiment's runs, one or more seeds in one table each; a table is made when it is asked for.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Results {
    scenario: Py<Scenario>,
    /// None once `take` has made tables of them.
    runs: Mutex<Option<Vec<(Names, Outcome)>>>,
}

#[pymethods]
impl Results {
    /// One of the tables.
    fn table(&self, name: &str) -> PyResult<Table> {
        let kind = Kind::named(name)?;
        let mut columns = Columns::default();
        self.fill(kind, &mut columns)?;
        columns.table()
    }

    /// The tables of these names. What they were made of is gone then: of many flows it takes as much memory as they do.
    fn take(&self, names: Vec<String>) -> PyResult<Vec<Table>> {
        let made = names.iter().map(|name| self.table(name)).collect();
        *self.runs.lock().expect("no table panics") = None;
        made
    }

    /// Whether every packet was accounted for, in every run: the engine checks it and fails otherwise.
    #[getter]
    fn conservation(&self) -> bool {
        true
    }
}

impl Results {
    pub fn new(scenario: Py<Scenario>, runs: Vec<(Names, Outcome)>) -> Results {
        Results { scenario, runs: Mutex::new(Some(runs)) }
    }

    fn fill(&self, kind: Kind, columns: &mut Columns) -> PyResult<()> {
        let scenario = &self.scenario.get().inner;
        let (from, to) = scenario.window();
        let runs = self.runs.lock().expect("no table panics");
        let runs =
            runs.as_ref().ok_or_else(|| PyRuntimeError::new_err("these results' tables were taken"))?;
        let runs = Runs { scenario, window: (to - from).secs(), runs };
        match kind {
            Kind::Metrics => runs.metrics(columns),
            Kind::Flows => runs.flows(columns),
            Kind::Drops => runs.drops(columns),
            Kind::Queues => runs.queues(columns),
            Kind::Markers => runs.markers(columns),
            Kind::Signals => runs.signals(columns),
            Kind::Series => runs.series(columns),
            Kind::Verdicts => runs.verdicts(columns),
            Kind::Downloads => runs.downloads(columns),
            Kind::Delays => runs.distributions(columns, &mut Columns::default()),
            Kind::Cdf => runs.distributions(&mut Columns::default(), columns),
        }
        Ok(())
    }
}

/// Tables of these names, each with the rows of all these results; the number beside each is its rows' `setting`, the first column.
#[pyfunction]
pub fn tables_together(
    py: Python<'_>,
    results: Vec<(u32, Py<Results>)>,
    names: Vec<String>,
) -> PyResult<Vec<Table>> {
    let kinds = names.iter().map(|name| Kind::named(name)).collect::<PyResult<Vec<Kind>>>()?;
    py.detach(|| {
        let made = kinds.into_iter().map(|kind| {
            let mut columns = Columns::default();
            for (setting, results) in &results {
                columns.of_setting(*setting);
                results.get().fill(kind, &mut columns)?;
            }
            columns.table()
        });
        made.collect()
    })
}

/// A kind of table.
#[derive(Clone, Copy)]
enum Kind {
    Metrics,
    Flows,
    Drops,
    Queues,
    Markers,
    Signals,
    Series,
    Verdicts,
    Downloads,
    Delays,
    Cdf,
}

impl Kind {
    fn named(name: &str) -> PyResult<Kind> {
        Ok(match name {
            "metrics" => Kind::Metrics,
            "flows" => Kind::Flows,
            "drops" => Kind::Drops,
            "queues" => Kind::Queues,
            "markers" => Kind::Markers,
            "signals" => Kind::Signals,
            "series" => Kind::Series,
            "verdicts" => Kind::Verdicts,
            "downloads" => Kind::Downloads,
            "delays" => Kind::Delays,
            "cdf" => Kind::Cdf,
            _ => return Err(PyKeyError::new_err(format!("no table is called {name:?}"))),
        })
    }
}

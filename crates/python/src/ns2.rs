//! An experiment as ns-2 would run it: its script.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::experiment::Scenario;

create_exception!(_internal, Inexpressible, PyValueError, "An experiment that ns-2 has no words for.");

/// The Tcl script by which ns-2 2.35 runs this seed of an experiment.
///
/// `Inexpressible` with a list of texts, one for each thing that ns-2 doesn't have.
#[pyfunction]
pub fn ns2_script(scenario: &Scenario, seed: u64) -> PyResult<String> {
    scenario.inner.ns2_script(seed).map_err(|missing| Inexpressible::new_err(missing.0))
}

/// The Tcl script by which ns-2 2.35 runs an experiment like this one and counts, whatever its engine's profile.
///
/// `Inexpressible` as [`ns2_script`].
#[pyfunction]
pub fn ns2_counting_script(scenario: &Scenario, seed: u64) -> PyResult<String> {
    scenario.inner.ns2_counting_script(seed).map_err(|missing| Inexpressible::new_err(missing.0))
}

//! The Python binding: experiments in, tables out. Everything else is Python's or the other crates'.

mod experiment;
#[cfg(target_os = "linux")]
mod live;
mod measured;
mod names;
mod ns2;
mod own;
mod results;
mod runner;
mod tables;

use inprofile_scenario as scenario;
use pyo3::prelude::*;

use own::Own;

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

/// The compiled part: the simulator, its experiment files and its mechanisms.
#[pymodule]
mod _internal {
    #[pymodule_export]
    use super::experiment::{Scenario, ScenarioError};
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
    use super::{mechanisms, schema};
}

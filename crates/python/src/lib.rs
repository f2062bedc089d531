//! The Python binding: experiments in, tables out. Everything else is Python's or the other crates'.
//!
//! As a library it makes the same binding with mechanisms of another crate in it: [`wheel!`].

mod distributions;
mod experiment;
mod extension;
#[cfg(target_os = "linux")]
mod live;
mod names;
mod ns2;
mod own;
mod packets;
mod results;
mod rows;
mod runner;
mod tables;

use inprofile_experiment as scenario;
use pyo3::prelude::*;

pub use extension::{Add, extend};
pub use pyo3;

use own::Own;

/// The extension module of a crate with mechanisms of its own: `wheel!(engine, add)` is the module `engine`, and `add`
/// puts them into the registry. The crate depends on this one by the name `inprofile_python`.
#[macro_export]
macro_rules! wheel {
    ($module:ident, $add:path) => {
        #[$crate::pyo3::pymodule]
        #[pyo3(crate = "inprofile_python::pyo3")]
        fn $module(
            module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>,
        ) -> $crate::pyo3::PyResult<()> {
            $crate::extend(module, $add)
        }
    };
}

/// Names of the mechanisms that another crate has added.
#[pyfunction]
fn added_names() -> Vec<&'static str> {
    extension::names()
}

/// The version of this binding.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
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

/// The compiled part: the simulator, its experiment files and its mechanisms.
#[pymodule]
mod _internal {
    #[pymodule_export]
    use super::experiment::{Scenario, ScenarioError, bases, place_of, whole};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::live::{NotLive, live, live_hindrance};
    #[pymodule_export]
    use super::ns2::{Inexpressible, ns2_counting_script, ns2_script};
    #[pymodule_export]
    use super::own::{MechanismError, Own, PacketView, QueueView, Random};
    #[pymodule_export]
    use super::packets::{capture_packets, ns2_log, queue_log};
    #[pymodule_export]
    use super::results::{Results, tables_together};
    #[pymodule_export]
    use super::runner::run;
    #[pymodule_export]
    use super::tables::Table;
    #[pymodule_export]
    use super::{added_names, mechanisms, schema, version};
}

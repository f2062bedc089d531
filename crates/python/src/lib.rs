//! The Python binding: experiments in, tables out. Everything else is Python's or the other crates'.
//!
//! As a library it makes the same binding with mechanisms of another crate in it: [`wheel!`].

mod distributions;
mod experiment;
#[cfg(target_os = "linux")]
mod live;
mod names;
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

mod ns2 {
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
}

mod extension {
    //! Mechanisms of another crate, compiled with ours into an extension module of its own: what
    //! [`wheel!`](crate::wheel) makes. There is one such module in a process, as there is one engine.

    use std::sync::OnceLock;

    use inprofile_core::registry::Registry;
    use pyo3::exceptions::PyRuntimeError;
    use pyo3::prelude::*;
    use pyo3::types::PyDictMethods;

    /// The function that puts a crate's mechanisms into the registry.
    pub type Add = fn(&mut Registry);

    static ADDED: OnceLock<Add> = OnceLock::new();

    /// Ours, and those of the crate that this module was built for.
    pub fn registry() -> Registry {
        let mut registry = Registry::default();
        if let Some(add) = ADDED.get() {
            add(&mut registry);
        }
        registry
    }

    /// Names of the mechanisms that are not ours.
    pub fn names() -> Vec<&'static str> {
        if ADDED.get().is_none() {
            return Vec::new();
        }
        let ours = all(&Registry::default());
        all(&registry()).into_iter().filter(|name| !ours.contains(name)).collect()
    }

    fn all(registry: &Registry) -> Vec<&'static str> {
        registry.markers.iter().map(|e| e.name).chain(registry.aqms.iter().map(|e| e.name)).collect()
    }

    /// Makes `module` the engine with these mechanisms in it: whatever `inprofile._internal` has, it has too.
    ///
    /// # Errors
    /// If a name is used twice, or Python refuses.
    pub fn extend(module: &Bound<'_, PyModule>, add: Add) -> PyResult<()> {
        let mut registry = Registry::default();
        add(&mut registry);
        let mut names = all(&registry);
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let text = format!("{}: there is a mechanism of this name already; give yours another", pair[0]);
            return Err(PyRuntimeError::new_err(text));
        }
        ADDED.get_or_init(|| add);
        let ours = pyo3::wrap_pymodule!(crate::_internal)(module.py());
        for (name, value) in ours.bind(module.py()).dict().iter() {
            if !name.extract::<String>()?.starts_with("__") {
                module.add(name.extract::<String>()?.as_str(), value)?;
            }
        }
        Ok(())
    }
}

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

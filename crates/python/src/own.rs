//! Mechanisms written in Python: a class becomes an entry of the registry, an instance of it a marker or a queue
//! discipline. What a class may declare is checked in Python (`inprofile/own.py`); here it is called.

mod instance;
mod view;

pub use view::{PacketView, QueueView, Random};

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use inprofile_core::params::{
    Bounds, Check, Context, Default as LeftOut, Fault, Field, Kind, Value, Values, Warning,
};
use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};
use inprofile_core::signal::Oracle;
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use instance::Instance;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A class that experiments may name. It is kept for as long as the process lives, as whatever names it may.
#[pyclass(frozen, module = "inprofile._internal")]
pub struct Own {
    class: &'static Class,
    offer: Offer,
}

/// The entry for the registry.
enum Offer {
    Marker(Entry<AnyMarker>),
    Aqm(Entry<AnyAqm>),
}

/// A Python class and what it declares.
struct Class {
    name: &'static str,
    kind: What,
    /// Called with parameters and place, each a dict; gives an instance.
    make: Py<PyAny>,
    hooks: Vec<String>,
    oracle: Option<Oracle>,
    /// Verdicts that instances of it have given so far.
    decisions: AtomicU64,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Marker,
    Aqm,
}

/// One parameter: name, kind, meaning, default, least and greatest value, and the words of a choice.
type Declared = (String, String, String, Option<Py<PyAny>>, Option<f64>, Option<f64>, Vec<String>);

#[pymethods]
impl Own {
    /// `kind` is `marker` or `aqm`; `hooks` are the methods that the class has; `make(parameters, place)` gives an instance.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "what a class declares, once")]
    fn new(
        py: Python<'_>,
        name: &str,
        kind: &str,
        summary: &str,
        source: &str,
        fields: Vec<Declared>,
        hooks: Vec<String>,
        oracle: Option<&str>,
        make: Py<PyAny>,
    ) -> PyResult<Own> {
        let kind = match kind {
            "marker" => What::Marker,
            "aqm" => What::Aqm,
            _ => return Err(PyValueError::new_err(format!("kind {kind}: marker or aqm"))),
        };
        let oracle = match oracle {
            None => None,
            Some("rtt") => Some(Oracle::Rtt),
            Some("window") => Some(Oracle::Window),
            Some(other) => {
                return Err(PyValueError::new_err(format!("oracle {other:?}: \"rtt\" or \"window\"")));
            }
        };
        let fields: Vec<Field> = fields.into_iter().map(|f| field(py, f)).collect::<PyResult<_>>()?;
        let class = Class { name: keep(name), kind, make, hooks, oracle, decisions: AtomicU64::new(0) };
        let class: &'static Class = Box::leak(Box::new(class));
        let offer = Offer::of(class, keep(summary), keep(source), Box::leak(fields.into_boxed_slice()));
        Ok(Own { class, offer })
    }

    /// Decisions of all runs so far.
    fn decisions(&self) -> u64 {
        self.class.decisions.load(Ordering::Relaxed)
    }
}

/// Ours, those of the crate this was built for, and these.
pub fn registry(py: Python<'_>, own: &[Py<Own>]) -> Registry {
    let mut registry = crate::extension::registry();
    for own in own {
        match &own.bind(py).get().offer {
            Offer::Marker(entry) => registry.markers.push(*entry),
            Offer::Aqm(entry) => registry.aqms.push(*entry),
        }
    }
    registry
}

/// Whether the canonical text of an experiment names it.
pub fn named(name: &str, canonical: &str) -> bool {
    canonical.contains(&format!("\"{name}\""))
}

/// Its name in a file.
pub fn name(own: &Own) -> &'static str {
    own.class.name
}

impl Offer {
    /// The entry of a class, made once: it is kept with the class.
    fn of(
        class: &'static Class,
        summary: &'static str,
        source: &'static str,
        fields: &'static [Field],
    ) -> Offer {
        let name = class.name;
        let check: Check = Box::leak(Box::new(move |v: &Values, c: &Context| class.check(v, c)));
        match class.kind {
            What::Marker => {
                let build =
                    move |v: &Values, c: &Context| AnyMarker::Custom(Box::new(Instance::new(class, v, c)));
                Offer::Marker(Entry {
                    name,
                    summary,
                    source,
                    fields,
                    check,
                    build: Box::leak(Box::new(build)),
                })
            }
            What::Aqm => {
                let build =
                    move |v: &Values, c: &Context| AnyAqm::Custom(Box::new(Instance::new(class, v, c)));
                Offer::Aqm(Entry { name, summary, source, fields, check, build: Box::leak(Box::new(build)) })
            }
        }
    }
}

impl Class {
    /// Whether an instance can be made.
    fn check(&self, values: &Values, context: &Context) -> Result<Vec<Warning>, Fault> {
        Python::attach(|py| match self.instance(py, values, context) {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(Fault {
                field: if self.kind == What::Marker { "kind" } else { "aqm" },
                problem: told(py, self.name, "setup", &error),
                remedy: "parameters that its `setup` accepts, or mend it".to_owned(),
            }),
        })
    }

    /// An instance with these parameters, in this place.
    fn instance<'py>(
        &self,
        py: Python<'py>,
        values: &Values,
        context: &Context,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = PyDict::new(py);
        for (name, value) in &values.0 {
            match value {
                Value::Flag(v) => parameters.set_item(name, v)?,
                Value::Count(v) => parameters.set_item(name, v)?,
                Value::Number(v) => parameters.set_item(name, v)?,
                Value::Rate(v) => parameters.set_item(name, v.0 as f64)?,
                Value::Duration(v) => parameters.set_item(name, v.secs())?,
                Value::Bytes(v) => parameters.set_item(name, v.0)?,
                Value::Choice(v) => parameters.set_item(name, v)?,
                Value::Backlog(_) | Value::Group(_) => {
                    return Err(PyException::new_err(format!("{name}: no Python class declares this kind")));
                }
            }
        }
        let place = PyDict::new(py);
        place.set_item("link_rate", context.link_rate.map(|r| r.0 as f64))?;
        place.set_item("contract", context.contract.map(|r| r.0 as f64))?;
        place.set_item("packet_size", context.packet.0)?;
        place.set_item("limit", context.limit.map(|l| l.bytes(context.packet)))?;
        self.make.bind(py).call1((parameters, place))
    }

    fn has(&self, hook: &str) -> bool {
        self.hooks.iter().any(|h| h == hook)
    }
}

fn field(py: Python<'_>, declared: Declared) -> PyResult<Field> {
    let (name, kind, doc, default, least, most, words) = declared;
    let words: &'static [&'static str] = Box::leak(words.iter().map(|w| keep(w)).collect());
    let kind = match kind.as_str() {
        "flag" => Kind::Flag,
        "count" => Kind::Count,
        "number" => Kind::Number,
        "rate" => Kind::Rate,
        "duration" => Kind::Duration,
        "bytes" => Kind::Bytes,
        "choice" => Kind::Choice(words),
        other => return Err(PyValueError::new_err(format!("parameter {name}: no kind is called {other}"))),
    };
    let default = match default {
        None => LeftOut::Required,
        Some(given) => {
            let given = given.bind(py);
            let value = match kind {
                Kind::Flag => Value::Flag(given.extract()?),
                Kind::Count => Value::Count(given.extract()?),
                Kind::Rate => Value::Rate(Rate(given.extract::<f64>()?.round() as u64)),
                Kind::Duration => Value::Duration(Duration::from_secs(given.extract()?)),
                Kind::Bytes => Value::Bytes(Bytes(given.extract::<f64>()?.round() as u64)),
                Kind::Choice(_) => Value::Choice(keep(&given.extract::<String>()?)),
                _ => Value::Number(given.extract()?),
            };
            LeftOut::Value(Box::leak(Box::new(move || value.clone())))
        }
    };
    let bounds = Bounds {
        min: least.unwrap_or(f64::NEG_INFINITY),
        max: most.unwrap_or(f64::INFINITY),
        open_min: false,
    };
    Ok(Field { name: keep(&name), kind, bounds, doc: Box::leak(Box::new([keep(&doc)])), default })
}

/// The text for as long as the process lives, once however often it is asked for: names in results are such.
fn keep(text: &str) -> &'static str {
    static KEPT: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(new);
    new
}

// Errors in a mechanism written in Python: the hooks that the engine calls cannot fail, so the error waits here,
// on the thread of the run, which is told to stop.

create_exception!(_internal, MechanismError, PyRuntimeError, "A mechanism written in Python has failed.");

#[derive(Default)]
struct Run {
    stop: Option<Arc<AtomicBool>>,
    error: Option<PyErr>,
}

thread_local! {
    static RUN: RefCell<Run> = RefCell::default();
}

/// Runs on this thread; the first error of a mechanism sets `stop` and is what comes out.
///
/// # Errors
/// That error, a [`MechanismError`].
pub fn guarded<T>(stop: &Arc<AtomicBool>, run: impl FnOnce() -> T) -> PyResult<T> {
    RUN.with_borrow_mut(|r| *r = Run { stop: Some(stop.clone()), error: None });
    let made = run();
    match RUN.take().error {
        Some(error) => Err(error),
        None => Ok(made),
    }
}

/// Keeps the error, if it is the run's first, and stops the run.
pub fn raise(py: Python<'_>, name: &str, hook: &str, now: Option<Time>, cause: PyErr) {
    RUN.with_borrow_mut(|run| {
        if run.error.is_none() {
            let at = now.map_or(String::new(), |t| format!(" at {:.6} s", t.secs()));
            let error = MechanismError::new_err(format!("{}{at}", told(py, name, hook, &cause)));
            error.set_cause(py, Some(cause));
            run.error = Some(error);
        }
        if let Some(stop) = &run.stop {
            stop.store(true, Ordering::Relaxed);
        }
    });
}

/// An exception in a sentence: whose, what, and the line it came from.
pub fn told(py: Python<'_>, name: &str, hook: &str, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |n| n.to_string());
    let line = error.traceback(py).and_then(|t| last_line(&t));
    let place = line.map_or(String::new(), |line| format!(" ({line})"));
    format!("{name}: {hook} raised {kind}: {}{place}", error.value(py))
}

/// `file.py, line 12`, of the innermost frame.
fn last_line(traceback: &Bound<'_, pyo3::types::PyTraceback>) -> Option<String> {
    let mut at = traceback.clone().into_any();
    while let Ok(next) = at.getattr("tb_next")
        && !next.is_none()
    {
        at = next;
    }
    let line: u32 = at.getattr("tb_lineno").ok()?.extract().ok()?;
    let file = at.getattr("tb_frame").ok()?.getattr("f_code").ok()?.getattr("co_filename").ok()?;
    Some(format!("{file}, line {line}"))
}

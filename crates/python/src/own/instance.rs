//! An instance of a Python class as the engine sees it: every hook of the mechanism calls the method of its name.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use inprofile_core::aqm::{Aqm, At};
use inprofile_core::marker::{EDGE, Marker};
use inprofile_core::mechanism::{FlowGauge, Gauge, Mechanism};
use inprofile_core::packet::{Direction, FlowId, Packet};
use inprofile_core::params::{Context, Value, Values};
use inprofile_core::queue::Queue;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Oracle, Outbox, Signal};
use inprofile_core::units::Time;
use inprofile_core::verdict::{Admission, Cause, Departure, Mark, Why};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::view::{PacketView, QueueView, Random, coloured};
use super::{Class, keep, raise};

/// The method of a hook, if the class has it.
type Hook = fn(&Instance) -> &Option<Py<PyAny>>;

/// A discipline's own drop.
const EARLY: Cause = Cause::named("early");

/// One marker or discipline of one run.
pub(super) struct Instance {
    class: &'static Class,
    mark: Option<Py<PyAny>>,
    arrive: Option<Py<PyAny>>,
    depart: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    tick: Option<Py<PyAny>>,
    signal: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
    flow_gauges: Option<Py<PyAny>>,
    stats: Option<Py<PyAny>>,
    /// The parameter `ecn`.
    ecn: bool,
    random: Option<Py<Random>>,
    /// Stands in for the stream that [`Random`] holds during a decision.
    spare: Rng,
    /// After an error nothing is asked any more: the run is about to stop.
    failed: Cell<bool>,
    decisions: u64,
}

impl Instance {
    /// In its first state. What fails is kept for the run.
    pub fn new(class: &'static Class, values: &Values, context: &Context) -> Instance {
        Python::attach(|py| {
            let mut made = Instance {
                class,
                mark: None,
                arrive: None,
                depart: None,
                observe: None,
                tick: None,
                signal: None,
                gauges: None,
                flow_gauges: None,
                stats: None,
                ecn: values.get("ecn") == Some(&Value::Flag(true)),
                random: None,
                spare: Rng::for_component(0, ""),
                failed: Cell::new(false),
                decisions: 0,
            };
            if let Err(error) = made.bind(py, values, context) {
                made.fail(py, "setup", None, error);
            }
            made
        })
    }

    fn bind(&mut self, py: Python<'_>, values: &Values, context: &Context) -> PyResult<()> {
        let object = self.class.instance(py, values, context)?;
        let hook = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            if self.class.has(name) { Ok(Some(object.getattr(name)?.unbind())) } else { Ok(None) }
        };
        let found = (hook("mark")?, hook("arrive")?, hook("depart")?, hook("observe")?, hook("tick")?);
        let (signal, gauges, flow_gauges, stats) =
            (hook("signal")?, hook("gauges")?, hook("flow_gauges")?, hook("stats")?);
        (self.mark, self.arrive, self.depart, self.observe, self.tick) = found;
        (self.signal, self.gauges, self.flow_gauges, self.stats) = (signal, gauges, flow_gauges, stats);
        self.random = Some(Py::new(py, Random(None))?);
        Ok(())
    }

    fn fail(&self, py: Python<'_>, hook: &str, now: Option<Time>, error: PyErr) {
        self.failed.set(true);
        raise(py, self.class.name, hook, now, error);
    }

    /// Calls a hook; `None` where there is none, or after an error.
    fn call<'py, A: PyCallArgs<'py>, T>(
        &self,
        py: Python<'py>,
        (name, hook): (&str, &Option<Py<PyAny>>),
        now: Option<Time>,
        args: A,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let hook = hook.as_ref().filter(|_| !self.failed.get())?;
        match hook.bind(py).call1(args).and_then(|answer| read(&answer)) {
            Ok(read) => Some(read),
            Err(error) => {
                self.fail(py, name, now, error);
                None
            }
        }
    }

    /// Asks for a decision: lends the random numbers, and counts.
    #[expect(clippy::too_many_arguments, reason = "whom, when and with what it is asked")]
    fn decide<'py, A: PyCallArgs<'py>, T, W: Why + ?Sized>(
        &mut self,
        py: Python<'py>,
        (name, hook): (&'static str, Hook),
        now: Time,
        rng: &mut Rng,
        why: &mut W,
        args: impl FnOnce(Bound<'py, Random>) -> PyResult<A>,
        read: impl FnOnce(&str) -> PyResult<T>,
    ) -> Option<T> {
        self.decisions += 1;
        let random = self.random.as_ref()?.bind(py).clone();
        random.borrow_mut().0 = Some(std::mem::replace(rng, self.spare.clone()));
        let answer = match args(random.clone()) {
            Ok(args) => {
                self.call(py, (name, hook(self)), Some(now), args, |answer| verdict(answer, why, read))
            }
            Err(error) => {
                self.fail(py, name, Some(now), error);
                None
            }
        };
        if let Some(lent) = random.borrow_mut().0.take() {
            *rng = lent;
        }
        answer
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.class.decisions.fetch_add(self.decisions, Ordering::Relaxed);
    }
}

/// A verdict is a word, or a word and the figures behind it.
fn verdict<T, W: Why + ?Sized>(
    answer: &Bound<'_, PyAny>,
    why: &mut W,
    read: impl FnOnce(&str) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(word) = answer.cast::<PyString>() {
        return read(&word.to_cow()?);
    }
    if let Ok(pair) = answer.cast::<PyTuple>()
        && pair.len() == 2
        && let (Ok(word), Ok(figures)) =
            (pair.get_item(0)?.cast::<PyString>(), pair.get_item(1)?.cast::<PyDict>())
    {
        if why.asks() {
            for (name, value) in figures {
                why.note(keep(&name.extract::<String>()?), value.extract()?);
            }
        }
        return read(&word.to_cow()?);
    }
    Err(PyTypeError::new_err(format!(
        "returned {}: return a verdict, such as \"drop\", or a verdict and a dict of figures",
        answer.repr()?
    )))
}

fn wrong<T>(word: &str, instead: &str) -> PyResult<T> {
    Err(PyValueError::new_err(format!("returned {word:?}: return {instead}")))
}

impl Mechanism for Instance {
    fn keeps_time(&self) -> bool {
        self.observe.is_some() || self.tick.is_some() || self.signal.is_some()
    }

    fn sees_reverse(&self) -> bool {
        self.observe.is_some()
    }

    fn sends(&self) -> bool {
        self.class.has("sends")
    }

    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        if self.observe.is_none() {
            return;
        }
        let way = if direction == Direction::Forward { "forward" } else { "reverse" };
        Python::attach(|py| {
            let args = (now.secs(), PacketView(*packet), way);
            self.call(py, ("observe", &self.observe), Some(now), args, |_| Ok(()));
        });
    }

    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        self.tick.as_ref()?;
        Python::attach(|py| {
            let sent = PyList::empty(py);
            let args = (now.secs(), sent.clone());
            self.call(py, ("tick", &self.tick), Some(now), args, |answer| {
                for signal in sent {
                    outbox.signals.push(read_signal(&signal)?);
                }
                let next: Option<f64> = answer.extract()?;
                match next.map(|s| (s, Time::from_secs(s))) {
                    None => Ok(None),
                    Some((s, t)) if s.is_finite() && t > now => Ok(Some(t)),
                    Some((s, _)) => Err(PyValueError::new_err(format!(
                        "returned {s}, which is not later than now: return the time of the next tick in seconds, or None"
                    ))),
                }
            })
            .flatten()
        })
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        if self.signal.is_none() {
            return;
        }
        Python::attach(|py| {
            let args = (now.secs(), signal.topic, signal.value, signal.flow.map(|f| f.0));
            self.call(py, ("signal", &self.signal), Some(now), args, |_| Ok(()));
        });
    }

    fn oracle(&self) -> Option<Oracle> {
        self.class.oracle
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        if self.gauges.is_none() {
            return;
        }
        Python::attach(|py| {
            self.call(py, ("gauges", &self.gauges), Some(now), (now.secs(),), |answer| {
                for (name, value) in answer.cast::<PyDict>()? {
                    show(keep(&name.extract::<String>()?), value.extract()?);
                }
                Ok(())
            });
        });
    }

    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        if self.flow_gauges.is_none() {
            return;
        }
        Python::attach(|py| {
            self.call(py, ("flow_gauges", &self.flow_gauges), Some(now), (now.secs(),), |answer| {
                for (key, value) in answer.cast::<PyDict>()? {
                    let (flow, name): (u32, String) = key.extract()?;
                    show(FlowId(flow), keep(&name), value.extract()?);
                }
                Ok(())
            });
        });
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        if self.stats.is_none() {
            return;
        }
        Python::attach(|py| {
            self.call(py, ("stats", &self.stats), None, (), |answer| {
                for (name, value) in answer.cast::<PyDict>()? {
                    show(keep(&name.extract::<String>()?), value.extract()?);
                }
                Ok(())
            });
        });
    }
}

/// `(topic, value)` or `(topic, value, flow)`.
fn read_signal(given: &Bound<'_, PyAny>) -> PyResult<Signal> {
    let read = |topic: String, value, flow: Option<u32>| Signal {
        topic: keep(&topic),
        flow: flow.map(FlowId),
        value,
    };
    if let Ok((topic, value)) = given.extract::<(String, f64)>() {
        return Ok(read(topic, value, None));
    }
    if let Ok((topic, value, flow)) = given.extract::<(String, f64, Option<u32>)>() {
        return Ok(read(topic, value, flow));
    }
    Err(PyTypeError::new_err(format!(
        "{} is no signal: send (topic, value) or (topic, value, flow)",
        given.repr()?
    )))
}

impl Marker for Instance {
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        let asked = Python::attach(|py| {
            self.decide(
                py,
                ("mark", |i| &i.mark),
                now,
                rng,
                why,
                |random| Ok((now.secs(), PacketView(*packet), random)),
                |word| match word {
                    "drop" => Ok(Mark::Drop(EDGE)),
                    colour => coloured(colour)
                        .map(Mark::Pass)
                        .or_else(|_| wrong(word, "\"in\", \"out\", \"red\" or \"drop\"")),
                },
            )
        });
        asked.unwrap_or(Mark::Pass(packet.colour))
    }
}

impl Aqm for Instance {
    fn serves(&self) -> bool {
        self.depart.is_some()
    }

    /// Its other answers are not known before it is asked.
    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let fits = at.queue.fits(packet.size);
        if self.arrive.is_some() {
            let asked = Python::attach(|py| {
                self.decide(
                    py,
                    ("arrive", |i| &i.arrive),
                    at.now,
                    at.rng,
                    at.why,
                    |random| {
                        Ok((at.now.secs(), PacketView(*packet), QueueView::of(at.queue, packet.size), random))
                    },
                    |word| match word {
                        "accept" => Ok(Admission::Admit),
                        "mark" => Ok(Admission::Mark),
                        "drop" => Ok(Admission::Drop(EARLY)),
                        _ => wrong(word, "\"accept\", \"mark\" or \"drop\""),
                    },
                )
            });
            match asked {
                Some(drop @ Admission::Drop(_)) => return drop,
                Some(joins) if fits => return joins,
                _ => {}
            }
        }
        if fits { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let asked = Python::attach(|py| {
            self.decide(
                py,
                ("depart", |i| &i.depart),
                at.now,
                at.rng,
                at.why,
                |random| {
                    let waited = at.now.since(at.since).secs();
                    Ok((at.now.secs(), PacketView(*packet), waited, QueueView::of(at.queue, 0), random))
                },
                |word| match word {
                    "send" => Ok(Departure::Send),
                    "mark" => Ok(Departure::Mark),
                    "drop" => Ok(Departure::Drop(EARLY)),
                    _ => wrong(word, "\"send\", \"mark\" or \"drop\""),
                },
            )
        });
        asked.unwrap_or(Departure::Send)
    }
}

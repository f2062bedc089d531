//! The arguments of a mechanism written in Python: a packet, the queue, random numbers.

use inprofile_core::packet::{Colour, Ecn, Kind, Packet};
use inprofile_core::queue::Queue;
use inprofile_core::rng::Rng;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// A packet.
#[pyclass(frozen, name = "Packet", module = "inprofile._internal")]
pub struct PacketView(pub Packet);

#[pymethods]
impl PacketView {
    /// The number of its flow: 0, 1, … in the order of the experiment.
    #[getter]
    fn flow(&self) -> u32 {
        self.0.flow.0
    }
    /// Bytes on the wire.
    #[getter]
    fn size(&self) -> u32 {
        self.0.size
    }
    /// Bytes of payload.
    #[getter]
    fn payload(&self) -> u32 {
        self.0.payload
    }
    /// TCP: number of the first payload byte, modulo 2³².
    #[getter]
    fn seq(&self) -> u32 {
        self.0.seq
    }
    /// TCP: the next byte that the receiver expects, modulo 2³².
    #[getter]
    fn ack(&self) -> u32 {
        self.0.ack
    }
    /// Drop precedence: `in`, `out` or `red`.
    #[getter]
    fn colour(&self) -> &'static str {
        self.0.colour.name()
    }
    /// `data`, `ack`, `syn` or `datagram`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            Kind::Data => "data",
            Kind::Ack => "ack",
            Kind::Syn => "syn",
            Kind::Datagram => "datagram",
        }
    }
    /// `not_ect`, `ect0`, `ect1` or `ce`.
    #[getter]
    fn ecn(&self) -> &'static str {
        match self.0.ecn {
            Ecn::NotCapable => "not_ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Experienced => "ce",
        }
    }
    /// The class that a scheduler serves it in, by its number.
    #[getter(class_)]
    fn class(&self) -> u8 {
        self.0.class
    }
    fn __repr__(&self) -> String {
        let (flow, size, colour) = (self.flow(), self.size(), self.colour());
        format!("Packet(flow={flow}, size={size}, colour='{colour}')")
    }
}

/// A queue as it was when its discipline was asked.
#[pyclass(frozen, name = "Queue", module = "inprofile._internal")]
pub struct QueueView {
    /// Packets waiting.
    #[pyo3(get)]
    packets: u32,
    /// Bytes waiting.
    #[pyo3(get)]
    bytes: u64,
    /// Since when the link has had nothing to send, in seconds; None while it sends.
    #[pyo3(get)]
    idle_since: Option<f64>,
    /// Whether the packet in question fits within the limit.
    #[pyo3(get)]
    fits: bool,
    packets_of: [u32; 3],
    bytes_of: [u64; 3],
}

impl QueueView {
    /// Of a queue that a packet of `size` bytes asks to join.
    pub fn of<Q: Queue + ?Sized>(queue: &Q, size: u32) -> QueueView {
        QueueView {
            packets: queue.packets(),
            bytes: queue.bytes(),
            idle_since: queue.idle_since().map(|t| t.secs()),
            fits: queue.fits(size),
            packets_of: Colour::ALL.map(|c| queue.packets_of(c)),
            bytes_of: Colour::ALL.map(|c| queue.bytes_of(c)),
        }
    }
}

#[pymethods]
impl QueueView {
    /// Packets of this colour waiting.
    fn packets_of(&self, colour: &str) -> PyResult<u32> {
        Ok(self.packets_of[coloured(colour)? as usize])
    }
    /// Bytes of this colour waiting.
    fn bytes_of(&self, colour: &str) -> PyResult<u64> {
        Ok(self.bytes_of[coloured(colour)? as usize])
    }
    fn __repr__(&self) -> String {
        format!("Queue(packets={}, bytes={})", self.packets, self.bytes)
    }
}

/// The colour of this name.
pub fn coloured(name: &str) -> PyResult<Colour> {
    let found = Colour::ALL.into_iter().find(|c| c.name() == name);
    found.ok_or_else(|| {
        PyValueError::new_err(format!("there is no colour {name:?}: \"in\", \"out\" or \"red\""))
    })
}

/// The mechanism's stream of random numbers, which follows from the run's seed. It gives some only while the mechanism
/// is asked for a decision.
#[pyclass(module = "inprofile._internal")]
pub struct Random(pub Option<Rng>);

impl Random {
    fn stream(&mut self) -> PyResult<&mut Rng> {
        self.0.as_mut().ok_or_else(|| {
            PyRuntimeError::new_err("random numbers can be drawn only while a decision is asked for")
        })
    }
}

#[pymethods]
impl Random {
    /// Uniform in [0, 1).
    fn random(&mut self) -> PyResult<f64> {
        Ok(self.stream()?.uniform())
    }
    /// Uniform among 0 … n − 1.
    fn below(&mut self, n: u32) -> PyResult<u32> {
        if n == 0 {
            return Err(PyValueError::new_err("below(0): there is no number below 0; give 1 or more"));
        }
        Ok(self.stream()?.below(n))
    }
}

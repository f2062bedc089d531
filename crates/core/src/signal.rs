//! What mechanisms tell each other: from an edge to a core, with the delay and loss of the links crossed.
//!
//! No mechanism here sends any yet, and an experiment can't connect two: the simulator discards what it is given.

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// What it is about, by the name the receiving mechanism documents.
    pub topic: &'static str,
    /// The figure.
    pub value: f64,
}

/// Signals a mechanism wants delivered to the peers that the experiment connected it to.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// In the order they were sent.
    pub signals: Vec<Signal>,
}

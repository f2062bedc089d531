//! The experiment file: what it says, whether that makes sense, and the network it describes.
//!
//! [`Scenario::parse`] reads a TOML text with the parsers of [`text`] and checks how its parts
//! go together. What comes out is complete: [`Scenario::describe`] shows every value in effect,
//! [`Scenario::canonical`] is the same text for the same experiment however it was written, and
//! [`Scenario::network`] draws and builds what the simulator runs. [`Scenario::metrics`] turns the
//! outcome of a run into the figures that are reported.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod access;
mod build;
mod canonical;
mod cross_check;
mod describe;
mod estimate;
mod lockstep;
pub mod metrics;
pub mod model;
pub mod ns2;
mod read;
mod routes;
mod schema;
pub mod text;
pub mod traffic;
pub mod wire;

use describe::catalogue;
use inprofile_core::registry::Registry;
use inprofile_core::units::{Duration, Rate, Time};
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;

pub use catalogue::catalogue;
pub use estimate::Memory;
pub use metrics::Metric;
pub use schema::schema;
use text::Document;
use text::extends::Base;
pub use text::{Problem, Severity};

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    model: model::Model,
    warnings: Vec<Problem>,
}

/// A flow as the experiment file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow<'a> {
    /// `tcp.0`.
    pub name: String,
    /// `tcp`.
    pub group: &'a str,
    /// The rate it was promised.
    pub contract: Option<Rate>,
    /// Its round-trip time without queues.
    pub rtt: Duration,
    /// The kind of its traffic: `bulk`, `transfer`, `cbr`, …
    pub traffic: &'static str,
}

impl Scenario {
    /// Reads an experiment; `file` is its name in messages, `set` what `--set` gives: keys and values in order.
    ///
    /// # Errors
    /// Every problem, in the order of the file; warnings among them.
    pub fn parse(
        text: &str,
        file: &str,
        set: &[(String, String)],
        registry: &Registry,
    ) -> Result<Scenario, Vec<Problem>> {
        Scenario::parse_extended(text, file, &[], set, registry)
    }

    /// As [`Scenario::parse`], of a text that extends `bases`, as `crate::text::extends::bases` finds them.
    ///
    /// # Errors
    /// As [`Scenario::parse`], of any of the texts.
    pub fn parse_extended(
        text: &str,
        file: &str,
        bases: &[Base],
        set: &[(String, String)],
        registry: &Registry,
    ) -> Result<Scenario, Vec<Problem>> {
        Scenario::from_document(&Document::parse_extended(text, file, bases, set)?, registry)
    }

    /// As [`Scenario::parse`], from the bytes of a file.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and the place of the first byte that is not UTF-8.
    pub fn parse_bytes(
        bytes: &[u8],
        file: &str,
        set: &[(String, String)],
        registry: &Registry,
    ) -> Result<Scenario, Vec<Problem>> {
        Scenario::from_document(&Document::parse_bytes(bytes, file, set)?, registry)
    }

    fn from_document(document: &Document, registry: &Registry) -> Result<Scenario, Vec<Problem>> {
        let (model, warnings) = read::read(document, registry)?;
        Ok(Scenario { model, warnings })
    }

    /// The experiment's title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.model.title
    }

    /// How many seeds, from 1, unless the command says otherwise.
    #[must_use]
    pub fn seeds(&self) -> u32 {
        self.model.seeds
    }

    /// Whether packets may be lost on a link, where no queue drops them.
    #[must_use]
    pub fn loses_on_links(&self) -> bool {
        self.model.links.iter().flat_map(|l| &l.directions).any(|d| d.way.loss.is_some())
    }

    /// How long it runs.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.model.duration
    }

    /// The window of every metric: from (included) to (excluded).
    #[must_use]
    pub fn window(&self) -> (Time, Time) {
        self.model.window
    }

    /// The measured link: its index in [`Network::links`].
    #[must_use]
    pub fn measured(&self) -> usize {
        self.model.at
    }

    /// The warnings: allowed, but perhaps not meant.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The experiment as it was read, every value typed.
    #[must_use]
    pub fn model(&self) -> &model::Model {
        &self.model
    }

    /// Every flow, in the order of [`Network::flows`].
    pub fn flow_rows(&self) -> impl Iterator<Item = FlowRow<'_>> {
        self.model.groups.iter().flat_map(|group| {
            (0..group.count).map(move |i| FlowRow {
                name: group.flow_name(i),
                group: &group.name,
                contract: group.contract(i),
                rtt: group.rtt(i),
                traffic: group.traffic.name,
            })
        })
    }

    /// Every value in effect, defaults filled in, with units: for people.
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        describe::describe(&self.model)
    }

    /// JSON in one line and in base units: the same text for the same experiment, however it was written.
    /// How many seeds it runs with is not part of it.
    #[must_use]
    pub fn canonical(&self) -> String {
        canonical::canonical(&self.model)
    }

    /// Data packets that one run is expected to send, by rates and duration: how long it will take, before it is run.
    #[must_use]
    pub fn expected_packets(&self) -> f64 {
        estimate::packets(&self.model)
    }

    /// How many flows it has.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.model.flows()
    }

    /// The least memory of its runs.
    #[must_use]
    pub fn expected_memory(&self) -> Memory {
        estimate::memory(&self.model)
    }

    /// The network of this seed; with `trace` every verdict is recorded.
    #[must_use]
    pub fn network(&self, seed: u64, trace: bool) -> Network {
        build::network(&self.model, seed, trace)
    }

    /// The script by which ns-2 2.35 runs this experiment with this seed.
    ///
    /// # Errors
    /// Everything that ns-2 can't express.
    pub fn ns2_script(&self, seed: u64) -> Result<String, ns2::Inexpressible> {
        ns2::script(&self.model, &self.network(seed, false), ns2::Aim::Events)
    }

    /// The script by which ns-2 2.35 runs an experiment like this one, whatever its engine's profile, and counts what
    /// figures over many seeds are made of: `ns2.rs` has the format.
    ///
    /// # Errors
    /// Everything that has no counterpart in ns-2.
    pub fn ns2_counting_script(&self, seed: u64) -> Result<String, ns2::Inexpressible> {
        ns2::script(&self.model, &self.network(seed, false), ns2::Aim::Counts)
    }

    /// The metrics of one run. A metric without a value in this run (the loss of a colour that no packet had) is absent.
    #[must_use]
    pub fn metrics(&self, outcome: &Outcome) -> Vec<Metric> {
        metrics::metrics(&self.model, outcome)
    }
}

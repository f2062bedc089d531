//! The same packets, seed and clock through the simulator and through the datapath: the verdicts are identical.
//!
//! A simulated network runs with every verdict written down. What came to its edge router is made into real
//! packets and replayed under a virtual clock through a datapath with the same marker, queue and rate. Both logs are
//! compared row by row: colour, drop and its cause, mark, and the moment of each departure.

use crate::backends::{Outcome, Row, live, simulated};
use crate::settings::{LINK, QUEUE, Setting, built, context, values_of};
use inprofile_core::packet::Ecn;
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::Setup;
use inprofile_core::registry::{AnyAqm, AnyMarker, AnyScheduler, Entry, Registry, SchedulerEntry};
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_experiment::Scenario;
use inprofile_sim::network::{Class, Network, Queue, Scheduled, SignalPath, Target};

/// The link whose queue is compared, and the edge before it.
const BOTTLENECK: u32 = 0;
/// A run in which only a choice or a flag is other than in another.
const SHORT: Duration = Duration::from_millis(4_000);

/// A pair of mechanisms, made afresh for each backend.
pub struct Pair<'a> {
    /// At the edge.
    pub marker: &'a Entry<AnyMarker>,
    /// The marker before the bottleneck.
    pub before: Before<'a>,
    /// Of both.
    pub setting: Setting,
}

/// The marker before the bottleneck.
#[derive(Clone, Copy)]
pub enum Before<'a> {
    /// One queue.
    One(&'a Entry<AnyAqm>),
    /// A queue for each of these classes, with its discipline and perhaps its set rate; flow i is of class i modulo their
    /// number.
    Classes(&'a SchedulerEntry, &'a [(&'a Entry<AnyAqm>, Option<Rate>)]),
}

impl Pair<'_> {
    fn marker(&self) -> AnyMarker {
        built(self.marker, self.setting).expect("checked before")
    }
    fn aqm(&self, entry: &Entry<AnyAqm>) -> AnyAqm {
        built(entry, self.setting).expect("checked before")
    }

    /// The classes and who shares the link out among them.
    fn queues(&self) -> (Vec<Setup>, AnyScheduler) {
        let setup =
            |number, aqm, rate| Setup { number, limit: QUEUE, aqm: self.aqm(aqm), rate, burst: Bytes(0) };
        match self.before {
            Before::One(aqm) => (vec![setup(0, aqm, None)], AnyScheduler::Priority(Priority)),
            Before::Classes(scheduler, classes) => {
                let values: Vec<_> =
                    classes.iter().map(|_| values_of(scheduler.fields, self.setting)).collect();
                let setups = (0..).zip(classes).map(|(n, (aqm, rate))| setup(n, aqm, *rate));
                (setups.collect(), (scheduler.build)(&values, &context()))
            }
        }
    }

    /// Who is compared.
    #[must_use]
    pub fn name(&self) -> String {
        let before = match self.before {
            Before::One(aqm) => aqm.name.to_owned(),
            Before::Classes(scheduler, classes) => {
                let each = classes.iter().map(|(aqm, rate)| match rate {
                    Some(rate) => format!("{} at {rate}", aqm.name),
                    None => aqm.name.to_owned(),
                });
                format!("{} of {}", scheduler.name, each.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{} and {before}, {:?}", self.marker.name, self.setting)
    }

    /// The network in the simulator.
    ///
    /// Twelve flows of unlike round-trip times and transports, every other one speaking ECN, and datagrams with ECT(1).
    pub fn network(&self, seed: u64, trace: bool) -> Network {
        let text = include_str!("network.toml");
        let scenario = Scenario::parse(text, "network.toml", &[], &Registry::default()).expect("a good one");
        let mut network = scenario.network(seed, trace);
        if self.setting.is_like_another() {
            network.duration = SHORT;
        }
        network.edges[0].marker = self.marker();
        network.links[BOTTLENECK as usize].queue = match self.before {
            Before::One(aqm) => Queue::One { aqm: self.aqm(aqm), limit: QUEUE },
            Before::Classes(_, among) => {
                for (i, flow) in network.flows.iter_mut().enumerate() {
                    flow.class = (i % among.len()) as u8;
                }
                let (setups, scheduler) = self.queues();
                let class = |setup: Setup| Class { name: format!("c{}", setup.number), setup };
                Queue::Scheduled(Scheduled { scheduler, classes: setups.into_iter().map(class).collect() })
            }
        };
        let (edge, queue) = (Target::Edge(0), Target::Queue(BOTTLENECK));
        let path = |name: &str, from, to| SignalPath {
            name: name.into(),
            from,
            to,
            delay: Duration::ZERO,
            loss: 0.0,
        };
        network.signals = vec![path("there", edge, queue), path("back", queue, edge)];
        network
    }
}

/// How many verdicts of each kind were compared.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs of both.
    pub runs: usize,
    /// Coloured by the marker.
    pub coloured: usize,
    /// Dropped by it.
    pub edge_drops: usize,
    /// Let into the queue.
    pub admitted: usize,
    /// Let in with a mark.
    pub marked: usize,
    /// Refused by the queue, or dropped by it later.
    pub queue_drops: usize,
    /// Sent.
    pub departures: usize,
}

impl Tally {
    fn add(&mut self, rows: &[Row]) {
        for row in rows {
            match row.marker.1 {
                "drop" => self.edge_drops += 1,
                _ => self.coloured += 1,
            }
            match row.queue.map(|(_, word, _)| word) {
                Some("admit") => self.admitted += 1,
                Some("mark") => self.marked += 1,
                Some(_) => self.queue_drops += 1,
                None => {}
            }
            let later = matches!(row.queue, Some((_, "admit" | "mark", _)));
            self.queue_drops += usize::from(later && matches!(row.outcome, Outcome::Dropped(_)));
            self.departures += usize::from(matches!(row.outcome, Outcome::Sent { .. }));
        }
    }

    /// Of any kind.
    #[must_use]
    pub fn all(&self) -> usize {
        self.coloured + self.edge_drops + self.admitted + self.marked + self.queue_drops + self.departures
    }
}

/// Runs both and compares them.
///
/// # Panics
/// If one verdict differs.
pub fn compare(pair: &Pair<'_>, seed: u64, tally: &mut Tally) {
    let what = format!("{}, seed {seed}", pair.name());
    let network = pair.network(seed, true);
    let contracts: Vec<_> = network.flows.iter().map(|f| f.contract).collect();
    let end = Time(network.duration.0);
    let (arrivals, expected) = simulated(network, BOTTLENECK);
    assert!(arrivals.len() > 300, "{what}: only {} packets", arrivals.len());
    let got = live(&arrivals, pair.marker(), &contracts, pair.queues(), LINK, seed, end);
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(got, expected, "{what}: packet {i} of {}", arrivals.len());
    }
    assert_eq!(got.len(), expected.len(), "{what}");
    // Nobody sends CE: it is a mark of one of these queues.
    let ce = |row: &Row| matches!(row.outcome, Outcome::Sent { ecn: Ecn::Experienced, .. });
    let may_mark = pair.queues().0.iter().any(|setup| setup.aqm.marks());
    assert!(may_mark || !got.iter().any(ce), "{what}: it marks, and says that it doesn't");
    tally.runs += 1;
    tally.add(&got);
}

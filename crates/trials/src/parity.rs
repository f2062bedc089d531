//! The same packets, seed and clock through the simulator and through the datapath: the verdicts are identical.
//!
//! A simulated network runs with every verdict written down. What came to its edge router is made into real
//! packets and replayed under a virtual clock through a datapath with the same marker, queue and rate. Both logs are
//! compared row by row: colour, drop and its cause, mark, and the moment of each departure.

mod backends;

use backends::{Fate, Row, live, simulated};
use inprofile_core::params::{Context, Default as Fallback, Fault, Field, Kind, Value, Values};
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::Setup;
use inprofile_core::registry::{AnyAqm, AnyMarker, AnyScheduler, Entry, Registry, SchedulerEntry};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
use inprofile_scenario::Scenario;
use inprofile_sim::network::{Class, Network, Queue, Scheduled, SignalPath, Target};

/// The link whose queue is compared, and the edge before it.
const BOTTLENECK: u32 = 0;
const RATE: Rate = Rate(2_000_000);
const LIMIT: Backlog = Backlog::Packets(30.0);

/// Two settings of each mechanism: thresholds about the middle of the queue; low ones, a quick average and ECN.
#[derive(Clone, Copy, Debug)]
enum Setting {
    Middle,
    Low,
}

fn value_of(field: &Field, setting: Setting) -> Value {
    match (field.name, setting) {
        // Half of the flows speak ECN, and the low setting lets disciplines mark them.
        ("ecn", Setting::Low) => return Value::Flag(true),
        // So that the average moves within the run.
        ("w_q", Setting::Low) => return Value::Number(0.05),
        // So that it ends within the run, and windows are small now and then.
        ("interval", Setting::Low) => return Value::Duration(Duration::from_millis(300)),
        ("small_window", Setting::Low) => return Value::Count(4),
        _ => {}
    }
    if let Fallback::Value(default) = field.default {
        return default();
    }
    let (low, high, share) = match setting {
        Setting::Middle => (8.0, 20.0, 0.1),
        Setting::Low => (2.0, 6.0, 0.5),
    };
    match field.kind {
        Kind::Flag => Value::Flag(true),
        Kind::Count => Value::Count(7),
        Kind::Number => Value::Number(share),
        Kind::Rate => Value::Rate(Rate(1_200_000)),
        Kind::Duration => Value::Duration(Duration::from_millis(50)),
        Kind::Bytes => Value::Bytes(Bytes(3000)),
        Kind::Backlog if field.name.starts_with("max") => Value::Backlog(Backlog::Packets(high)),
        Kind::Backlog => Value::Backlog(Backlog::Packets(low)),
        Kind::Choice(words) => Value::Choice(words[0]),
        Kind::Group(fields) => Value::Group(values_of(fields, setting)),
    }
}

fn values_of(fields: &[Field], setting: Setting) -> Values {
    Values(fields.iter().map(|f| (f.name, value_of(f, setting))).collect())
}

fn context() -> Context {
    Context { link_rate: Some(RATE), contract: Some(Rate(250_000)), packet: Bytes(1040), limit: Some(LIMIT) }
}

fn built<M>(entry: &Entry<M>, setting: Setting) -> Result<M, Fault> {
    let values = values_of(entry.fields, setting);
    (entry.check)(&values, &context()).map(|_| (entry.build)(&values, &context()))
}

/// What a pair of mechanisms is: made anew for each backend.
struct Pair<'a> {
    marker: &'a Entry<AnyMarker>,
    before: Before<'a>,
    setting: Setting,
}

/// What is before the bottleneck.
#[derive(Clone, Copy)]
enum Before<'a> {
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
        let setup = |number, aqm, rate| Setup { number, limit: LIMIT, aqm: self.aqm(aqm), rate };
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

    fn name(&self) -> String {
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

    /// Twelve flows of unlike round-trip times and transports, every other one speaking ECN, and datagrams with ECT(1).
    fn network(&self, seed: u64) -> Network {
        let text = include_str!("network.toml");
        let scenario = Scenario::parse(text, "network.toml", &[], &Registry::default()).expect("a good one");
        let mut network = scenario.network(seed, true);
        network.edges[0].marker = self.marker();
        network.links[BOTTLENECK as usize].queue = match self.before {
            Before::One(aqm) => Queue::One { aqm: self.aqm(aqm), limit: LIMIT },
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
struct Tally {
    coloured: usize,
    edge_drops: usize,
    admitted: usize,
    marked: usize,
    queue_drops: usize,
    departures: usize,
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
            self.departures += usize::from(matches!(row.fate, Fate::Sent { .. }));
        }
    }

    fn all(&self) -> usize {
        self.coloured + self.edge_drops + self.admitted + self.marked + self.queue_drops + self.departures
    }
}

fn compare(pair: &Pair<'_>, seed: u64, tally: &mut Tally) {
    let what = format!("{}, seed {seed}", pair.name());
    let network = pair.network(seed);
    let contracts: Vec<_> = network.flows.iter().map(|f| f.contract).collect();
    let (arrivals, expected) = simulated(network, BOTTLENECK);
    assert!(arrivals.len() > 300, "{what}: only {} packets", arrivals.len());
    let got = live(&arrivals, pair.marker(), &contracts, pair.queues(), RATE, seed);
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(got, expected, "{what}: packet {i} of {}", arrivals.len());
    }
    assert_eq!(got.len(), expected.len(), "{what}");
    tally.add(&got);
}

/// Settings that this mechanism can be given here; at least one, or the test says why not.
fn settings<M>(entry: &Entry<M>) -> Vec<Setting> {
    let all = [Setting::Middle, Setting::Low];
    let fit: Vec<_> = all.into_iter().filter(|s| built(entry, *s).is_ok()).collect();
    if let ([], Err(fault)) = (&fit[..], built(entry, Setting::Middle)) {
        panic!("{}: no setting fits: {fault:?}", entry.name);
    }
    fit
}

fn find<'a, M>(entries: &'a [Entry<M>], name: &str) -> &'a Entry<M> {
    entries.iter().find(|e| e.name == name).expect("registered")
}


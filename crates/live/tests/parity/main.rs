//! The same packets, seed and clock through the simulator and through the datapath: the verdicts are identical.
//!
//! A simulated network runs with every verdict written down. What came to its edge router is made into real
//! packets and replayed under a virtual clock through a datapath with the same marker, queue and rate. Both logs are
//! compared row by row: colour, drop and its cause, mark, and the moment of each departure.

mod backends;

use backends::{Fate, Row, live, simulated};
use inprofile_core::params::{Context, Default as Fallback, Fault, Field, Kind, Value, Values};
use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
use inprofile_scenario::Scenario;
use inprofile_sim::network::{Network, Queue, SignalPath, Target};

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
    aqm: &'a Entry<AnyAqm>,
    setting: Setting,
}

impl Pair<'_> {
    fn marker(&self) -> AnyMarker {
        built(self.marker, self.setting).expect("checked before")
    }
    fn aqm(&self) -> AnyAqm {
        built(self.aqm, self.setting).expect("checked before")
    }

    /// Twelve flows of unlike round-trip times and transports, every other one speaking ECN.
    fn network(&self, seed: u64) -> Network {
        let text = include_str!("network.toml");
        let scenario = Scenario::parse(text, "network.toml", &[], &Registry::default()).expect("a good one");
        let mut network = scenario.network(seed, true);
        network.edges[0].marker = self.marker();
        network.links[BOTTLENECK as usize].queue = Queue::One { aqm: self.aqm(), limit: LIMIT };
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
    let what = format!("{} and {}, {:?}, seed {seed}", pair.marker.name, pair.aqm.name, pair.setting);
    let (arrivals, expected) = simulated(pair.network(seed), BOTTLENECK);
    assert!(arrivals.len() > 300, "{what}: only {} packets", arrivals.len());
    let got = live(&arrivals, pair.marker(), pair.aqm(), (RATE, LIMIT), seed);
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

fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("PARITY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn every_marker_gives_the_same_verdicts() {
    let registry = Registry::default();
    let mut tally = Tally::default();
    for marker in &registry.markers {
        for setting in settings(marker) {
            let pair = Pair { marker, aqm: find(&registry.aqms, "rio"), setting };
            seeds().for_each(|seed| compare(&pair, seed, &mut tally));
        }
    }
    println!("{} markers: {} verdicts compared, {tally:?}", registry.markers.len(), tally.all());
    assert!(tally.edge_drops > 0 && tally.queue_drops > 0);
}

#[test]
fn every_discipline_gives_the_same_verdicts() {
    let registry = Registry::default();
    let mut tally = Tally::default();
    for aqm in &registry.aqms {
        for setting in settings(aqm) {
            let pair = Pair { marker: find(&registry.markers, "ard"), aqm, setting };
            seeds().for_each(|seed| compare(&pair, seed, &mut tally));
        }
    }
    println!("{} disciplines: {} verdicts compared, {tally:?}", registry.aqms.len(), tally.all());
    assert!(tally.queue_drops > 0 && tally.marked > 0 && tally.departures > 0);
}

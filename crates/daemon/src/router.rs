//! Two datapaths, one a direction, set up from a configuration and set up anew from another without losing a packet.

use inprofile_config::named::Mechanism;
use inprofile_config::show;
use inprofile_core::params::Context;
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::{Heir, Setup};
use inprofile_core::registry::{AnyScheduler, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Time};
use inprofile_live::datapath::lateness::Lateness;
use inprofile_live::datapath::marking::Marking;
use inprofile_live::datapath::{Datapath, Parts, Witness};
use inprofile_live::flow::Flows;
use inprofile_live::io::frames::Frames;
use inprofile_live::packet::{self, Layer};

use crate::config::{Class, Config, DIRECTIONS, Direction, Fail};
use crate::policers;
use crate::policy::Classifier;

/// Whatever limits say, no more packets than this wait in one direction.
const MOST_BUFFERS: usize = 1 << 20;

/// What leaves: frames, each with the moment its turn came.
struct Leaving<'a>(&'a mut Frames);

impl Witness for Leaving<'_> {
    fn send(&mut self, due: Time, _: u64, frame: &mut [u8]) {
        self.0.push(due, frame);
    }
}

/// One direction at work.
#[derive(Debug)]
pub struct Lane {
    /// Markers, queues, link.
    pub path: Datapath<Classifier>,
    /// Frames to be sent at the other port, each with the moment its turn came.
    pub leaving: Frames,
    /// How late packets left, after their turn had come.
    pub lateness: Lateness,
    /// Whether some mechanism looks at what goes the other way.
    sees_reverse: bool,
}

/// The router without its ports.
#[derive(Debug)]
pub struct Router {
    /// What it was last set up from.
    pub config: Config,
    /// From inside to outside, from outside to inside.
    pub lanes: [Lane; 2],
    /// Why the mechanisms are out of use, if they are.
    pub failure: Option<String>,
    /// Frames that were forwarded, or not, since then: by the port they came in at.
    pub since_failure: [u64; 2],
}

impl Router {
    /// Empty and idle.
    #[must_use]
    pub fn new(config: Config, layer: Layer, seed: u64) -> Router {
        let lanes = [0, 1].map(|i| {
            let secret = Rng::for_component(seed, DIRECTIONS[i]).uniform().to_bits();
            let direction = config.directions[i].as_ref();
            let policy = Classifier::new(direction, i == 0, &config, Flows::new(config.flows, secret));
            let markers = Vec::from_iter(direction.into_iter().flat_map(|d| markers(d, &config, seed)));
            let parts = parts(direction, &config, layer, seed, markers);
            let sees_reverse = sees_reverse(&parts);
            let path = Datapath::new(policy, parts);
            Lane { path, leaving: Frames::default(), lateness: Lateness::default(), sees_reverse }
        });
        Router { config, lanes, failure: None, since_failure: [0; 2] }
    }

    /// Set up from another configuration at `now`. Packets that wait are kept; a class, discipline or marker whose settings are
    /// the same goes on in the state it is in, others start anew.
    pub fn set_up_anew(self, config: Config, layer: Layer, seed: u64, now: Time) -> Router {
        let Router { config: old, lanes, failure, since_failure } = self;
        let mut index = 0;
        let lanes = lanes.map(|mut lane| {
            let i = index;
            index += 1;
            let (was, is) = (old.directions[i].as_ref(), config.directions[i].as_ref());
            let policy = lane.path.policy.succeeded_by(is, i == 0, &config);
            let kept = lane.path.take_markers();
            let markers = match is {
                Some(is) => carry_over(kept, was, &old, is, &config, seed, now),
                None => Vec::new(),
            };
            let parts = parts(is, &config, layer, seed, markers);
            lane.sees_reverse = sees_reverse(&parts);
            let heirs = heirs(was, &old, is, &config);
            Lane { path: lane.path.set_up_anew(policy, parts, &heirs, now), ..lane }
        });
        Router { config, lanes, failure, since_failure }
    }

    /// A frame has come in at a port.
    pub fn arrive(&mut self, now: Time, port: usize, layer: Layer, frame: &mut [u8]) {
        if self.failure.is_some() {
            self.since_failure[port] += 1;
            if self.config.fail == Fail::Open {
                self.lanes[port].leaving.push(now, frame);
            }
            return;
        }
        let [up, down] = &mut self.lanes;
        let (lane, other) = if port == 0 { (up, down) } else { (down, up) };
        if other.sees_reverse
            && let Ok(headers) = packet::parse(layer, frame)
            && let Some(way) = other.path.policy.way_back(now, &headers)
        {
            other.path.reverse(now, frame, &way, &mut Leaving(&mut other.leaving));
        }
        let Lane { path, leaving, .. } = lane;
        path.arrive(now, frame, &mut Leaving(leaving));
        if let Some(aggregate) = path.policy.aggregate() {
            let news: Vec<_> = path.policy.newcomers().collect();
            news.iter().for_each(|signal| path.tell(aggregate, now, signal));
        }
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Time) {
        if self.failure.is_none() {
            for Lane { path, leaving, .. } in &mut self.lanes {
                path.advance(now, &mut Leaving(leaving));
            }
        }
    }

    /// What time it is, before frames that came and what was due before that are seen to.
    pub fn set_present(&mut self, now: Time) {
        self.lanes.iter_mut().for_each(|l| l.path.set_present(now));
    }

    /// When something is next due.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        if self.failure.is_some() { None } else { self.lanes.iter().filter_map(|l| l.path.due()).min() }
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let classes = self.lanes.iter().flat_map(|l| l.path.classes());
        classes.flat_map(|c| c.waiting()).map(u64::from).sum()
    }

    /// Lets everything pass, or stops doing so. Packets that wait leave as they would have.
    pub fn set_bypass(&mut self, on: bool) {
        self.lanes.iter_mut().for_each(|l| l.path.policy.set_bypass(on));
    }

    /// Whether every frame is accounted for.
    ///
    /// # Errors
    /// What doesn't add up, and in which direction.
    pub fn check(&self) -> Result<(), String> {
        for (lane, name) in self.lanes.iter().zip(DIRECTIONS) {
            lane.path.check().map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }
}

/// A customer's or an aggregate's random stream.
fn stream(seed: u64, name: &str) -> Rng {
    Rng::for_component(seed, &format!("marker {name}"))
}

/// The markers of a direction: its customers' in order, then the aggregate's, then policers. Before their first packet.
fn markers(direction: &Direction, config: &Config, seed: u64) -> Vec<Marking> {
    let packet = config.full_packet();
    let of = direction
        .customers
        .iter()
        .map(|c| (&c.marker, direction.place_of_customer(c, packet), c.name.as_str()));
    let all = direction.aggregate.as_ref().map(|m| (m, direction.place_of_aggregate(packet), "aggregate"));
    let markers =
        of.chain(all).map(|(m, place, name)| Marking::new((m.build)(&m.values, &place), stream(seed, name)));
    let policers = policers::of(direction).map(|p| Marking::new(p.build(packet), stream(seed, &p.name)));
    markers.chain(policers).collect()
}

/// What a marker's mechanism depends on, as a text: equal texts, equal mechanisms.
fn fingerprint<M>(mechanism: &Mechanism<M>, place: &Context) -> String {
    format!("{} {} {place:?}", mechanism.name, show::canonical(&show::all(&mechanism.values, show::base)))
}

/// The markers of a direction that is set up anew.
fn carry_over(
    old: Vec<Marking>,
    was: Option<&Direction>,
    old_config: &Config,
    is: &Direction,
    config: &Config,
    seed: u64,
    now: Time,
) -> Vec<Marking> {
    let describe = |d: &Direction, packet: Bytes| -> Vec<(String, String)> {
        let of = d.customers.iter().map(|c| {
            (format!("customer {}", c.name), fingerprint(&c.marker, &d.place_of_customer(c, packet)))
        });
        let all = d
            .aggregate
            .as_ref()
            .map(|m| ("aggregate".to_owned(), fingerprint(m, &d.place_of_aggregate(packet))));
        let policers =
            policers::of(d).map(|p| (format!("policer {}", p.name), format!("{:?} {packet}", p.police)));
        of.chain(all).chain(policers).collect()
    };
    let before = was.map_or_else(Vec::new, |d| describe(d, old_config.full_packet()));
    let mut old: std::collections::BTreeMap<String, (String, Marking)> =
        before.into_iter().zip(old).map(|((name, print), m)| (name, (print, m))).collect();
    let fresh = markers(is, config, seed).into_iter();
    fresh
        .zip(describe(is, config.full_packet()))
        .map(|(new, (name, print))| match old.remove(&name) {
            Some((same, marking)) if same == print => marking,
            Some((_, marking)) => marking.replaced(new.marker, now),
            None => new.starting(now),
        })
        .collect()
}

/// Where packets of each old class go: to the class of the same name; else to the last.
fn heirs(was: Option<&Direction>, old: &Config, is: Option<&Direction>, new: &Config) -> Vec<Heir> {
    let print = |d: &Direction, c: &Class, config: &Config| {
        fingerprint(&c.aqm, &d.place_of(c, config.full_packet())) + &format!(" {:?}", c.rate)
    };
    let Some(was) = was else { return vec![Heir { class: last(is), unchanged: false }] };
    let heir = |c: &Class| {
        let found = is.and_then(|is| is.classes.iter().position(|n| n.name == c.name).map(|i| (is, i)));
        match found {
            Some((is, i)) => {
                Heir { class: i, unchanged: print(is, &is.classes[i], new) == print(was, c, old) }
            }
            None => Heir { class: last(is), unchanged: false },
        }
    };
    was.classes.iter().map(heir).collect()
}

fn last(direction: Option<&Direction>) -> usize {
    direction.map_or(0, |d| d.classes.len() - 1)
}

/// What a datapath is made of. Without a direction nothing is ever queued, but for what waited before: that goes at once.
fn parts(
    direction: Option<&Direction>,
    config: &Config,
    layer: Layer,
    seed: u64,
    markers: Vec<Marking>,
) -> Parts {
    let packet = config.full_packet();
    let classes = match direction {
        Some(d) => (0..)
            .zip(&d.classes)
            .map(|(number, c)| Setup {
                number,
                limit: c.limit,
                aqm: (c.aqm.build)(&c.aqm.values, &d.place_of(c, packet)),
                rate: c.rate,
            })
            .collect(),
        None => vec![transparent(packet)],
    };
    Parts {
        layer,
        markers,
        buffers: buffers(&classes),
        classes,
        scheduler: AnyScheduler::Priority(Priority),
        rng: Rng::for_component(seed, "queue"),
        rate: direction.map_or(inprofile_config::quantity::FASTEST, |d| d.rate),
        overhead: config.overhead,
        mpu: config.mpu,
        age_limit: direction.map(|_| config.frames.age_limit),
    }
}

/// Room for what the limits allow, in the smallest packets.
fn buffers(classes: &[Setup]) -> usize {
    let of = |limit: Backlog| match limit {
        Backlog::Packets(n) => n as usize,
        Backlog::Bytes(b) => b as usize / 20,
    };
    classes.iter().map(|c| of(c.limit).saturating_add(1)).fold(0, usize::saturating_add).min(MOST_BUFFERS)
}

fn transparent(packet: Bytes) -> Setup {
    let limit = Backlog::Packets(1.0);
    let place = Context { link_rate: None, contract: None, packet, limit: Some(limit) };
    let params = inprofile_core::aqm::drop_tail::Params {
        limit_rule: inprofile_core::aqm::drop_tail::LimitRule::Waiting,
    };
    let drop_tail = inprofile_core::params::Build::build(&params, &place);
    Setup { number: 0, limit, aqm: inprofile_core::registry::AnyAqm::DropTail(drop_tail), rate: None }
}

fn sees_reverse(parts: &Parts) -> bool {
    parts.markers.iter().any(|m| m.marker.sees_reverse())
        || parts.classes.iter().any(|c| c.aqm.sees_reverse())
}

/// The mechanisms a file may name.
#[must_use]
pub fn registry() -> Registry {
    Registry::default()
}

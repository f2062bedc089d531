//! The router at one moment: what `stats` and the metrics show.

mod builder;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use inprofile_core::queue::Counts;
use inprofile_core::verdict::Cause;
use inprofile_live::datapath::customer::CustomerCounts;
use inprofile_live::datapath::lateness::Lateness;
use inprofile_live::datapath::marker::MarkerCounts;
use inprofile_live::io::PortCounts;
use inprofile_live::io::afpacket::Oddities;
use inprofile_live::io::link::Link;
use serde_json::{Map, Value as Json, json};

use crate::config::Config;
use crate::presence::Standing;

pub use builder::Builder;

/// Everything that is counted.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Seconds since the start.
    pub uptime: f64,
    /// Whether everything passes.
    pub bypass: bool,
    /// Why the mechanisms are out of use, if they are.
    pub failure: Option<String>,
    /// Frames that came since then.
    pub since_failure: u64,
    /// Inside, outside.
    pub ports: [PortState; 2],
    /// Upstream, downstream.
    pub directions: Vec<DirectionState>,
    /// The configuration it was set up from.
    pub config: Arc<Config>,
}

/// One customer in one direction.
#[derive(Clone, Copy, Debug)]
pub struct CustomerState<'a> {
    /// His name in the file.
    pub name: &'a str,
    /// His group, if he is in one.
    pub group: Option<&'a str>,
    /// The contract, in bit/s.
    pub contract: Option<u64>,
    /// His shaper, in bit/s.
    pub shaper: Option<u64>,
    /// The fate of the customer's packets.
    pub counts: &'a CustomerCounts,
}

/// One port.
#[derive(Clone, Debug)]
pub struct PortState {
    /// The interface.
    pub interface: String,
    /// Frames.
    pub counts: PortCounts,
    /// Their irregularities.
    pub oddities: Oddities,
    /// Whether the interface is there and in use.
    pub standing: Standing,
    /// How often it was taken away while it was in use.
    pub taken_away: u64,
    /// Its link, as it was seen last; `None`: away.
    pub link: Option<Link>,
}

/// One direction. `came` = `passed` + `sent` + `dropped` + `refused` + `marker_dropped` + `policed` + `no_buffer` + `too_late` +
/// `waiting`.
#[derive(Clone, Debug)]
pub struct DirectionState {
    /// `upstream` or `downstream`.
    pub name: &'static str,
    /// Frames that came in.
    pub came: u64,
    /// Went on at once, as everything passes.
    pub passed: u64,
    /// Of these: while the bypass was on.
    pub bypassed: u64,
    /// Dropped for what they are: not to be read, with a wrong length field, too long for the port.
    pub refused: u64,
    /// Of these, by the reason.
    pub refusals: Vec<(&'static str, u64)>,
    /// Dropped by markers.
    pub marker_dropped: u64,
    /// Dropped by policers.
    pub policed: u64,
    /// Dropped as their turn had come too long ago.
    pub too_late: u64,
    /// Of those that came: with a length field that says something else than what was received.
    pub length_disagrees: u64,
    /// Dropped for want of buffers.
    pub no_buffer: u64,
    /// Sent at the shaped rate.
    pub sent: u64,
    /// Dropped by queues.
    pub dropped: u64,
    /// Waiting now.
    pub waiting: u64,
    /// The accounting faults, if any.
    pub amiss: Option<String>,
    /// Frames by what they turned out to be.
    pub census: Vec<(&'static str, u64)>,
    /// Control frames that were dropped because their senders sent too many, by kind; `policed` has them too.
    pub control_excess: Vec<(&'static str, u64)>,
    /// Fragments that were not held against customers' ports, as the first one of their packet was not seen.
    pub fragments_without_first: u64,
    /// Queues.
    pub classes: Vec<ClassState>,
    /// Customers' markers, then the aggregate's.
    pub markers: Vec<MarkerState>,
    /// How late packets left that had waited.
    pub lateness: Lateness,
    /// The fate of customers' packets, by index: see [`Snapshot::customers`].
    pub by_place: Vec<CustomerCounts>,
    /// Customers' own queues, by their places.
    pub own_queues: Vec<(u32, Vec<ClassState>)>,
    /// Flows that are told apart.
    pub flows: u32,
    /// Flows that had to make room.
    pub flows_replaced: u64,
}

/// One queue.
#[derive(Clone, Debug)]
pub struct ClassState {
    /// Its name in the file.
    pub name: String,
    /// Packets by colour and fate.
    pub counts: Counts,
    /// Waiting now, by colour.
    pub waiting: [u32; 3],
    /// The discipline's state.
    pub gauges: Vec<(&'static str, f64)>,
    /// The discipline's own counts.
    pub stats: Vec<(&'static str, u64)>,
}

/// One marker.
#[derive(Clone, Debug)]
pub struct MarkerState {
    /// The customer's name, or `aggregate`.
    pub name: String,
    /// Its name in the registry.
    pub kind: &'static str,
    /// Packets by colour, before and after.
    pub counts: MarkerCounts,
    /// Its state.
    pub gauges: Vec<(&'static str, f64)>,
    /// Its own counts.
    pub stats: Vec<(&'static str, u64)>,
}

impl Snapshot {
    /// As one object.
    #[must_use]
    pub fn json(&self) -> Json {
        json!({
            "uptime": self.uptime,
            "mode": self.mode(),
            "failure": self.failure,
            "since_failure": self.since_failure,
            "ports": self.ports.iter().map(port).collect::<Vec<_>>(),
            "directions": (0..self.directions.len()).map(|i| self.direction(i)).collect::<Vec<_>>(),
        })
    }

    /// The customers of a direction, 0 upstream and 1 downstream, in the order of the file.
    pub fn customers(&self, direction: usize) -> impl Iterator<Item = CustomerState<'_>> {
        let of =
            self.config.directions[direction].iter().flat_map(|d| d.customers.iter().map(move |c| (d, c)));
        of.filter_map(move |(d, c)| {
            Some(CustomerState {
                name: &c.name,
                group: c.group.and_then(|g| d.groups.get(g)).map(String::as_str),
                contract: c.contract.map(|r| r.0),
                shaper: c.own.as_ref().and_then(|own| own.rate).map(|r| r.0),
                counts: self.directions[direction].by_place.get(c.place as usize)?,
            })
        })
    }

    fn direction(&self, i: usize) -> Json {
        let mut out = self.directions[i].json();
        let own: HashMap<u32, &[ClassState]> =
            self.directions[i].own_queues.iter().map(|(place, c)| (*place, c.as_slice())).collect();
        let places = self.config.directions[i].iter().flat_map(|d| d.customers.iter().map(|c| c.place));
        let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
        let each = self.customers(i).zip(places).map(|(customer, place)| {
            if let Some(group) = customer.group {
                groups.entry(group).or_default().add(customer.counts);
            }
            let mut out = customer.json();
            if let Some(classes) = own.get(&place) {
                out["classes"] = classes.iter().map(ClassState::json).collect();
            }
            out
        });
        out["customers"] = each.collect();
        out["groups"] = groups.iter().map(|(name, group)| group.json(name)).collect();
        out
    }

    /// `normal`, `bypass` or `failed`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match (&self.failure, self.bypass) {
            (Some(_), _) => "failed",
            (None, true) => "bypass",
            (None, false) => "normal",
        }
    }
}

/// The customers of a group together.
#[derive(Default)]
struct Group {
    customers: u64,
    arrived: u64,
    sent: u64,
    sent_bytes: u64,
    dropped: u64,
    waiting: u64,
}

impl Group {
    fn add(&mut self, c: &CustomerCounts) {
        self.customers += 1;
        self.arrived += c.arrived;
        self.sent += c.sent.iter().sum::<u64>();
        self.sent_bytes += c.sent_bytes.iter().sum::<u64>();
        self.dropped += c.dropped.iter().sum::<u64>() + c.no_buffer + c.too_late;
        self.waiting += c.waiting();
    }

    fn json(&self, name: &str) -> Json {
        json!({
            "name": name,
            "customers": self.customers,
            "arrived": self.arrived,
            "sent": self.sent,
            "sent_bytes": self.sent_bytes,
            "dropped": self.dropped,
            "waiting": self.waiting,
        })
    }
}

impl CustomerState<'_> {
    /// As one object.
    #[must_use]
    pub fn json(&self) -> Json {
        let c = self.counts;
        let delay = c.delay();
        let dropped: Map<String, Json> = Cause::ALL
            .iter()
            .map(|cause| (cause.name().to_owned(), c.dropped[cause.index()].into()))
            .collect();
        json!({
            "name": self.name,
            "group": self.group,
            "contract": self.contract,
            "shaper": self.shaper,
            "arrived": c.arrived,
            "arrived_bytes": c.arrived_bytes,
            "sent": colours(c.sent),
            "sent_bytes": colours(c.sent_bytes),
            "dropped": dropped,
            "no_buffer": c.no_buffer,
            "too_late": c.too_late,
            "waiting": c.waiting(),
            "delay": { "packets": delay.count(), "sum_s": delay.sum(), "mean_ms": delay.mean() * 1e3, "p99_ms": delay.quantile(0.99) * 1e3 },
        })
    }
}

fn port(p: &PortState) -> Json {
    json!({
        "interface": p.interface,
        "there": p.standing.there().is_some(),
        "in_use": p.standing.in_use().is_some(),
        "out_of_use": p.standing.why(),
        "taken_away": p.taken_away,
        "carrier": p.link.as_ref().is_some_and(|l| l.carrier),
        "operstate": p.link.as_ref().map_or("notpresent", |l| l.operstate.name()),
        "carrier_changes": p.link.as_ref().map_or(0, |l| l.carrier_changes),
        "received": p.counts.received,
        "missed": p.counts.missed,
        "sent": p.counts.sent,
        "refused": p.counts.refused,
        "too_long": p.oddities.too_long,
        "unfinished_checksum": p.oddities.unfinished_checksum,
        "tagged": p.oddities.tagged,
        "in_trains": p.oddities.in_trains,
        "trains": p.oddities.trains,
    })
}

fn colours<T: Into<Json> + Copy>(of: [T; 3]) -> Json {
    json!({ "in": of[0].into(), "out": of[1].into(), "red": of[2].into() })
}

fn object<T: Into<Json> + Copy>(all: &[(&'static str, T)]) -> Json {
    Json::Object(all.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect::<Map<_, _>>())
}

impl DirectionState {
    fn json(&self) -> Json {
        json!({
            "name": self.name,
            "came": self.came,
            "passed": self.passed,
            "bypassed": self.bypassed,
            "sent": self.sent,
            "dropped": self.dropped,
            "refused": self.refused,
            "refusals": object(&self.refusals),
            "marker_dropped": self.marker_dropped,
            "policed": self.policed,
            "too_late": self.too_late,
            "length_disagrees": self.length_disagrees,
            "no_buffer": self.no_buffer,
            "waiting": self.waiting,
            "adds_up": self.amiss.is_none(),
            "frames": object(&self.census),
            "control_excess": object(&self.control_excess),
            "fragments_without_first": self.fragments_without_first,
            "classes": self.classes.iter().map(ClassState::json).collect::<Vec<_>>(),
            "markers": self.markers.iter().map(MarkerState::json).collect::<Vec<_>>(),
            "lateness": {
                "packets": self.lateness.count(),
                "p50_us": self.lateness.quantile(0.5).secs() * 1e6,
                "p99_us": self.lateness.quantile(0.99).secs() * 1e6,
                "most_us": self.lateness.most().secs() * 1e6,
            },
            "flows": self.flows,
            "flows_replaced": self.flows_replaced,
        })
    }
}

impl ClassState {
    fn json(&self) -> Json {
        let c = &self.counts;
        let dropped: Map<String, Json> = Cause::ALL
            .iter()
            .map(|cause| (cause.name().to_owned(), colours(c.dropped[cause.index()])))
            .collect();
        json!({
            "name": self.name,
            "arrived": colours(c.arrived),
            "arrived_bytes": colours(c.arrived_bytes),
            "sent": colours(c.sent),
            "sent_bytes": colours(c.sent_bytes),
            "dropped": dropped,
            "marked": colours(c.marked),
            "waiting": colours(self.waiting),
            "gauges": object(&self.gauges),
            "stats": object(&self.stats),
        })
    }
}

impl MarkerState {
    fn json(&self) -> Json {
        let c = &self.counts;
        json!({
            "name": self.name,
            "kind": self.kind,
            "arrived": colours(c.arrived),
            "arrived_bytes": colours(c.arrived_bytes),
            "left": colours(c.left),
            "left_bytes": colours(c.left_bytes),
            "dropped": colours(c.dropped),
            "gauges": object(&self.gauges),
            "stats": object(&self.stats),
        })
    }
}

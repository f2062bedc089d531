//! The page of metrics in Prometheus' text format: a family for each thing that is counted.

use std::borrow::Cow;
use std::fmt::Write as _;

use inprofile_core::packet::Colour;
use inprofile_core::verdict::Cause;
use inprofile_live::datapath::customer::CustomerCounts;
use inprofile_live::io::link::Link;

use crate::hub::Reloads;
use crate::snapshot::Snapshot;

const COLOURS: [&str; 3] = ["in", "out", "red"];

/// A page in the making: families in order, each with its head once.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP inprofiled_{name} {help}\n# TYPE inprofiled_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "inprofiled_{name} {value}"),
            false => writeln!(self.0, "inprofiled_{name}{{{}}} {value}", labels.join(",")),
        };
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole page.
#[must_use]
pub fn page(s: &Snapshot, reloads: &Reloads, (written, lost): (u64, u64)) -> String {
    let mut p = Page(String::new());
    p.family("build_info", "gauge", "1; which version runs.");
    p.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    p.family("uptime_seconds", "gauge", "Time since the start.");
    p.sample("uptime_seconds", &[], s.uptime);
    p.family("bypass", "gauge", "1 while everything passes unmarked and unshaped.");
    p.sample("bypass", &[], u8::from(s.bypass));
    p.family("failed", "gauge", "1 once the mechanisms are out of use.");
    p.sample("failed", &[], u8::from(s.failure.is_some()));
    p.family("reloads_total", "counter", "Configurations taken, and refused.");
    p.sample("reloads_total", &[("result", "done")], reloads.done);
    p.sample("reloads_total", &[("result", "refused")], reloads.refused);
    p.family("log_lines_total", "counter", "Lines of the log, by whether they could be written.");
    p.sample("log_lines_total", &[("result", "written")], written);
    p.sample("log_lines_total", &[("result", "lost")], lost);
    ports(&mut p, s);
    frames(&mut p, s);
    classes(&mut p, s);
    markers(&mut p, s);
    customers(&mut p, s);
    lateness(&mut p, s);
    p.0
}

fn ports(p: &mut Page, s: &Snapshot) {
    p.family("port_there", "gauge", "1 while there is an interface of the port's name.");
    for port in &s.ports {
        p.sample("port_there", &[("interface", &port.interface)], u8::from(port.standing.there().is_some()));
    }
    p.family(
        "port_in_use",
        "gauge",
        "1 while packets come and go there; 0 if it is away or has wrong offloads.",
    );
    for port in &s.ports {
        p.sample(
            "port_in_use",
            &[("interface", &port.interface)],
            u8::from(port.standing.in_use().is_some()),
        );
    }
    p.family("port_carrier", "gauge", "1 while the port hears its neighbour.");
    for port in &s.ports {
        let carrier = port.link.as_ref().is_some_and(|l| l.carrier);
        p.sample("port_carrier", &[("interface", &port.interface)], u8::from(carrier));
    }
    p.family("port_up", "gauge", "1 while packets can pass the port's link; its state as RFC 2863 names it.");
    for port in &s.ports {
        let state = port.link.as_ref().map_or("notpresent", |l| l.operstate.name());
        let passes = port.link.as_ref().is_some_and(Link::passes);
        p.sample("port_up", &[("interface", &port.interface), ("operstate", state)], u8::from(passes));
    }
    p.family("port_carrier_changes_total", "counter", "How often the carrier came or went.");
    for port in &s.ports {
        let changes = port.link.as_ref().map_or(0, |l| l.carrier_changes);
        p.sample("port_carrier_changes_total", &[("interface", &port.interface)], changes);
    }
    p.family("port_taken_away_total", "counter", "How often a port's interface was taken away.");
    for port in &s.ports {
        p.sample("port_taken_away_total", &[("interface", &port.interface)], port.taken_away);
    }
    p.family("port_frames_total", "counter", "Frames at a port by what became of them.");
    for port in &s.ports {
        let (c, o) = (&port.counts, &port.oddities);
        let each = [
            ("received", c.received),
            ("missed", c.missed),
            ("sent", c.sent),
            ("refused", c.refused),
            ("too_long", o.too_long),
            ("unfinished_checksum", o.unfinished_checksum),
            ("tagged", o.tagged),
            ("in_trains", o.in_trains),
        ];
        for (event, n) in each {
            p.sample("port_frames_total", &[("interface", &port.interface), ("event", event)], n);
        }
    }
}

fn frames(p: &mut Page, s: &Snapshot) {
    p.family("frames_total", "counter", "Frames that came in.");
    s.directions.iter().for_each(|d| p.sample("frames_total", &[("direction", d.name)], d.came));
    p.family("frames_by_fate_total", "counter", "Frames by what became of them; bypassed ones passed.");
    for d in &s.directions {
        let fates = [
            ("sent", d.sent),
            ("passed", d.passed),
            ("dropped", d.dropped),
            ("refused", d.refused),
            ("marker_dropped", d.marker_dropped),
            ("policed", d.policed),
            ("too_late", d.too_late),
            ("no_buffer", d.no_buffer),
            ("bypassed", d.bypassed),
        ];
        for (fate, n) in fates {
            p.sample("frames_by_fate_total", &[("direction", d.name), ("fate", fate)], n);
        }
    }
    p.family(
        "frames_by_kind_total",
        "counter",
        "Frames by what they turned out to be; truncated and malformed ones could not be read.",
    );
    for d in &s.directions {
        for (kind, n) in &d.census {
            p.sample("frames_by_kind_total", &[("direction", d.name), ("kind", kind)], n);
        }
    }
    p.family("refused_frames_total", "counter", "Refused frames by the reason.");
    for d in &s.directions {
        for (reason, n) in &d.refusals {
            p.sample("refused_frames_total", &[("direction", d.name), ("reason", reason)], n);
        }
    }
    p.family(
        "length_mismatches_total",
        "counter",
        "Packets with a length field that says something else than what was received.",
    );
    for d in &s.directions {
        p.sample("length_mismatches_total", &[("direction", d.name)], d.length_disagrees);
    }
    p.family(
        "control_excess_frames_total",
        "counter",
        "Control frames dropped because their senders sent too many, by kind; policed has them too.",
    );
    for d in &s.directions {
        for (kind, n) in &d.control_excess {
            p.sample("control_excess_frames_total", &[("direction", d.name), ("kind", kind)], n);
        }
    }
    p.family(
        "fragments_without_first_total",
        "counter",
        "Fragments not held against customers' ports, as the first one of their packet was not seen.",
    );
    for d in &s.directions {
        p.sample("fragments_without_first_total", &[("direction", d.name)], d.fragments_without_first);
    }
    p.family("accounts_add_up", "gauge", "1 if every frame is accounted for.");
    s.directions
        .iter()
        .for_each(|d| p.sample("accounts_add_up", &[("direction", d.name)], u8::from(d.amiss.is_none())));
    p.family("flows", "gauge", "Flows that are told apart.");
    s.directions.iter().for_each(|d| p.sample("flows", &[("direction", d.name)], d.flows));
    p.family("flows_replaced_total", "counter", "Flows that had to make room for others.");
    s.directions
        .iter()
        .for_each(|d| p.sample("flows_replaced_total", &[("direction", d.name)], d.flows_replaced));
}

fn classes(p: &mut Page, s: &Snapshot) {
    let each = || s.directions.iter().flat_map(|d| d.classes.iter().map(move |c| (d.name, c)));
    for (name, unit) in [("packets", "Packets"), ("bytes", "Bytes")] {
        for (event, what) in [("arrived", "offered to"), ("sent", "sent by")] {
            let family = format!("class_{event}_{name}_total");
            p.family(&family, "counter", &format!("{unit} {what} a class, by colour."));
            for (direction, class) in each() {
                let c = &class.counts;
                let counts = match (event, name) {
                    ("arrived", "packets") => c.arrived,
                    ("arrived", _) => c.arrived_bytes,
                    (_, "packets") => c.sent,
                    _ => c.sent_bytes,
                };
                for (colour, n) in COLOURS.iter().zip(counts) {
                    p.sample(
                        &family,
                        &[("direction", direction), ("class", &class.name), ("colour", colour)],
                        n,
                    );
                }
            }
        }
    }
    p.family("class_dropped_packets_total", "counter", "Packets dropped by a class, by colour and cause.");
    for (direction, class) in each() {
        for cause in Cause::ALL {
            for colour in Colour::ALL {
                let labels = [
                    ("direction", direction),
                    ("class", class.name.as_str()),
                    ("colour", COLOURS[colour as usize]),
                    ("cause", cause.name()),
                ];
                p.sample(
                    "class_dropped_packets_total",
                    &labels,
                    class.counts.dropped[cause.index()][colour as usize],
                );
            }
        }
    }
    p.family("class_marked_packets_total", "counter", "Packets marked congestion experienced, by colour.");
    for (direction, class) in each() {
        for (colour, n) in COLOURS.iter().zip(class.counts.marked) {
            p.sample(
                "class_marked_packets_total",
                &[("direction", direction), ("class", &class.name), ("colour", colour)],
                n,
            );
        }
    }
    p.family("class_queue_packets", "gauge", "Packets that wait, by colour.");
    for (direction, class) in each() {
        for (colour, n) in COLOURS.iter().zip(class.waiting) {
            p.sample(
                "class_queue_packets",
                &[("direction", direction), ("class", &class.name), ("colour", colour)],
                n,
            );
        }
    }
    p.family("class_state", "gauge", "State of a class's discipline: averages, probabilities.");
    for (direction, class) in each() {
        for (gauge, value) in &class.gauges {
            p.sample(
                "class_state",
                &[("direction", direction), ("class", &class.name), ("variable", gauge)],
                value,
            );
        }
    }
}

fn markers(p: &mut Page, s: &Snapshot) {
    let most = s.config.most_customer_series;
    // Customers' come first, in the order of the file.
    let each = || {
        s.directions.iter().zip(&s.config.directions).flat_map(move |(d, config)| {
            let customers = config.as_ref().map_or(0, |c| c.customers.len());
            let shown = d.markers.iter().enumerate().filter(move |(i, _)| *i < most || *i >= customers);
            shown.map(move |(_, m)| (d.name, m))
        })
    };
    for (family, bytes, help) in [
        ("marker_packets_total", false, "Packets at a marker, by colour, before and after it."),
        ("marker_bytes_total", true, "Bytes at a marker, by colour, before and after it."),
    ] {
        p.family(family, "counter", help);
        for (direction, m) in each() {
            let c = &m.counts;
            let events = if bytes {
                vec![("arrived", c.arrived_bytes), ("left", c.left_bytes)]
            } else {
                vec![("arrived", c.arrived), ("left", c.left), ("dropped", c.dropped)]
            };
            for (event, counts) in events {
                for (colour, n) in COLOURS.iter().zip(counts) {
                    let labels =
                        [("direction", direction), ("marker", &m.name), ("event", event), ("colour", colour)];
                    p.sample(family, &labels, n);
                }
            }
        }
    }
    p.family("marker_state", "gauge", "State of a marker: tokens, rates.");
    for (direction, m) in each() {
        for (gauge, value) in &m.gauges {
            p.sample(
                "marker_state",
                &[("direction", direction), ("marker", &m.name), ("variable", gauge)],
                value,
            );
        }
    }
}

/// Who stands for the customers beyond the cap: no name in a file can be this.
const OTHERS: &str = "(others)";

/// A customer's series: his own up to the cap, then those of all others together. A page of ten thousand customers would be ten
/// megabytes, and each of their names a series of every family for the time-series database to keep.
fn customers(p: &mut Page, s: &Snapshot) {
    let most = s.config.most_customer_series;
    p.family("customers", "gauge", "Customers in the file.");
    for (d, config) in s.directions.iter().zip(&s.config.directions) {
        let n = config.as_ref().map_or(0, |c| c.customers.len());
        p.sample("customers", &[("direction", d.name)], n);
    }
    let mut all: Vec<(&str, &str, Cow<'_, CustomerCounts>)> = Vec::new();
    for (i, d) in s.directions.iter().enumerate() {
        let mut others: Option<CustomerCounts> = None;
        for (n, c) in s.customers(i).enumerate() {
            if n < most {
                all.push((d.name, c.name, Cow::Borrowed(c.counts)));
            } else {
                others.get_or_insert_default().add(c.counts);
            }
        }
        all.extend(others.map(|counts| (d.name, OTHERS, Cow::Owned(counts))));
    }
    type One = fn(&CustomerCounts) -> u64;
    let plain: [(&str, &str, &str, One); 3] = [
        ("customer_arrived_packets_total", "counter", "Packets of a customer that came.", |c| c.arrived),
        ("customer_arrived_bytes_total", "counter", "Bytes of a customer that came.", |c| c.arrived_bytes),
        ("customer_queue_packets", "gauge", "Packets of a customer that wait.", CustomerCounts::waiting),
    ];
    for (family, kind, help, value) in plain {
        p.family(family, kind, help);
        for (direction, name, c) in &all {
            p.sample(family, &[("direction", direction), ("customer", name)], value(c));
        }
    }
    type ByColour = fn(&CustomerCounts) -> [u64; 3];
    let by_colour: [(&str, &str, ByColour); 2] = [
        ("customer_sent_packets_total", "Packets of a customer that left, by colour.", |c| c.sent),
        ("customer_sent_bytes_total", "Bytes of a customer that left, by colour.", |c| c.sent_bytes),
    ];
    for (family, help, value) in by_colour {
        p.family(family, "counter", help);
        for (direction, name, c) in &all {
            for (colour, n) in COLOURS.iter().zip(value(c)) {
                p.sample(family, &[("direction", direction), ("customer", name), ("colour", colour)], n);
            }
        }
    }
    let family = "customer_dropped_packets_total";
    p.family(family, "counter", "Packets of a customer that were dropped, by cause.");
    for (direction, name, c) in &all {
        let causes = Cause::ALL.iter().map(|cause| (cause.name(), c.dropped[cause.index()]));
        for (cause, n) in causes.chain([("no_buffer", c.no_buffer), ("too_late", c.too_late)]) {
            p.sample(family, &[("direction", direction), ("customer", name), ("cause", cause)], n);
        }
    }
    let help =
        "From a packet's arrival to its turn on the link, of those that left; the quantile since the start.";
    p.family("customer_delay_seconds", "summary", help);
    for (direction, name, c) in &all {
        let labels = [("direction", *direction), ("customer", *name)];
        let ([a, b], delay) = (labels, c.delay());
        p.sample("customer_delay_seconds", &[a, b, ("quantile", "0.99")], delay.quantile(0.99));
        p.sample("customer_delay_seconds_sum", &labels, delay.sum());
        p.sample("customer_delay_seconds_count", &labels, delay.count());
    }
}

fn lateness(p: &mut Page, s: &Snapshot) {
    p.family("shaper_lateness_seconds", "histogram", "How late packets left, after their turn had come.");
    for d in &s.directions {
        let mut sum = 0;
        for (bound, n) in d.lateness.cells() {
            sum += n;
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |b| b.secs().to_string());
            p.sample("shaper_lateness_seconds_bucket", &[("direction", d.name), ("le", &bound)], sum);
        }
        p.sample("shaper_lateness_seconds_sum", &[("direction", d.name)], d.lateness.sum().secs());
        p.sample("shaper_lateness_seconds_count", &[("direction", d.name)], d.lateness.count());
    }
}

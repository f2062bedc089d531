//! The rows of every table, run by run in the order of seeds.

use inprofile_core::packet::Colour;
use inprofile_core::units::Time;
use inprofile_core::verdict::Cause;
use inprofile_experiment as scenario;
use inprofile_sim::outcome::{MarkerOutcome, Outcome};

use crate::distributions::{Distributions, add_periods};
use crate::names::Names;
use crate::tables::{Cell, Columns, Holds};

use Holds::{Counts, Numbers, Texts};

/// The runs of one experiment, and what they are called.
pub struct Runs<'a> {
    pub scenario: &'a scenario::Scenario,
    /// Of the measured window, in seconds.
    pub window: f64,
    pub runs: &'a [(Names, Outcome)],
}

type Object = serde_json::Map<String, serde_json::Value>;

/// A mechanism's counts and gauges under their names.
fn figures(stats: &[(&str, u64)], gauges: &[(&str, f64)]) -> Object {
    let counts = stats.iter().map(|&(n, v)| (n.to_owned(), v.into()));
    counts.chain(gauges.iter().map(|&(n, v)| (n.to_owned(), v.into()))).collect()
}

/// Whether flows of this traffic open a connection before they send.
fn has_connections(traffic: &str) -> bool {
    matches!(traffic, "bulk" | "transfer" | "web" | "video")
}

fn sum(packets: &[u64]) -> u64 {
    packets.iter().sum()
}

impl Runs<'_> {
    fn rate(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.window
    }

    pub fn metrics(&self, t: &mut Columns) {
        t.have(&[
            ("seed", Counts),
            ("name", Texts),
            ("unit", Texts),
            ("value", Numbers),
            ("point", Texts),
            ("header", Texts),
        ]);
        for (_, o) in self.runs {
            for m in self.scenario.metrics(o) {
                t.row(&[
                    o.seed.into(),
                    m.name.into(),
                    m.unit.into(),
                    m.value.into(),
                    (&m.point).into(),
                    m.header.into(),
                ]);
            }
        }
    }

    pub fn flows(&self, t: &mut Columns) {
        let mut columns = vec![("seed", Counts), ("flow", Texts), ("group", Texts)];
        columns.extend(["contract", "rtt", "start", "throughput", "goodput"].map(|n| (n, Numbers)));
        columns.extend(["sent_in", "sent_out", "received_in", "received_out"].map(|n| (n, Counts)));
        columns.extend(["received_in_rate", "received_out_rate"].map(|n| (n, Numbers)));
        // Only where packets may be lost on links is there a column of these.
        let causes = Cause::COUNT + usize::from(self.scenario.loses_on_links());
        let all_causes = Cause::ALL.into_iter().chain([Cause::LINK_ERROR]);
        columns.extend(all_causes.take(causes).map(|c| (c.column(), Counts)));
        columns.extend(["sent", "received", "dropped", "in_flight"].map(|n| (n, Counts)));
        columns.extend(["timeouts", "fast_retransmits", "retransmissions"].map(|n| (n, Counts)));
        columns.push(("traffic", Texts));
        columns.extend(["size", "completed", "startup"].map(|n| (n, Numbers)));
        t.have(&columns);
        for (names, o) in self.runs {
            let first_data = o.measured.as_ref().map_or(&[] as &[Option<Time>], |m| &m.first_data);
            for (i, (row, f)) in self.scenario.flow_rows().zip(&o.flows).enumerate() {
                let w = &f.window;
                let first_data =
                    first_data.get(i).copied().flatten().filter(|_| has_connections(row.traffic));
                let startup = first_data.map(|at| at.since(f.start).secs());
                let out = |by_colour: [u64; 3]| by_colour[1] + by_colour[2];
                let mut cells: Vec<Cell<'_>> = vec![
                    o.seed.into(),
                    (&row.name).into(),
                    row.group.into(),
                    row.contract.map(|r| r.0 as f64).into(),
                    row.rtt.secs().into(),
                    f.start.secs().into(),
                    self.rate(w.in_order_wire_bytes).into(),
                    self.rate(w.in_order_payload_bytes).into(),
                    w.sent[0].into(),
                    out(w.sent).into(),
                    w.received[0].into(),
                    out(w.received).into(),
                    self.rate(w.received_bytes[0]).into(),
                    self.rate(out(w.received_bytes)).into(),
                ];
                cells.extend(f.window_dropped[..causes].iter().map(|n| Cell::Count(*n)));
                let total = &f.total;
                cells.extend([sum(&total.sent), sum(&total.received), sum(&f.dropped)].map(Cell::Count));
                cells.extend(
                    [
                        f.in_flight,
                        f.tally.timeouts.into(),
                        f.tally.fast_retransmits.into(),
                        f.tally.retransmissions,
                    ]
                    .map(Cell::Count),
                );
                cells.push(row.traffic.into());
                cells.extend([names.size(i).into(), f.completed.map(Time::secs).into(), startup.into()]);
                t.row(&cells);
            }
        }
    }

    pub fn drops(&self, t: &mut Columns) {
        t.have(&[
            ("seed", Counts),
            ("flow", Texts),
            ("place", Texts),
            ("cause", Texts),
            ("in", Counts),
            ("out", Counts),
            ("red", Counts),
        ]);
        for (names, o) in self.runs {
            for d in &o.drops {
                t.row(&[
                    o.seed.into(),
                    names.flows.get(d.flow).into(),
                    names.place(d.place, d.flow).into(),
                    d.cause.name().into(),
                    d.packets[0].into(),
                    d.packets[1].into(),
                    d.packets[2].into(),
                ]);
            }
        }
    }

    pub fn queues(&self, t: &mut Columns) {
        let mut columns = vec![("seed", Counts), ("queue", Texts)];
        let of_colours = ["arrived_in", "arrived_out", "arrived_red", "sent_in", "sent_out", "sent_red"];
        columns.extend(of_colours.map(|n| (n, Counts)));
        columns.extend(Cause::ALL.map(|c| (c.column(), Counts)));
        columns.extend(["dropped_in", "dropped_out", "dropped_red", "marked"].map(|n| (n, Counts)));
        let rates = ["arrived_in_rate", "arrived_out_rate", "sent_rate", "utilisation", "queue_mean"];
        columns.extend(rates.map(|n| (n, Numbers)));
        columns.extend(["total_arrived", "total_sent", "total_dropped", "waiting"].map(|n| (n, Counts)));
        columns.push(("stats", Texts));
        t.have(&columns);
        for (names, o) in self.runs {
            let all = o.links.iter().zip(names.links.iter()).zip(&names.reported);
            let each = all.filter(|(_, n)| n.reported).flat_map(|((l, name), names)| {
                let of_classes = l.classes.iter().zip(names.classes.iter().map(String::as_str));
                [(l, name)].into_iter().chain(of_classes).map(|(l, name)| (l, name, names.rate))
            });
            for (l, name, rate) in each {
                let w = &l.window;
                let mut cells: Vec<Cell<'_>> = vec![o.seed.into(), name.into()];
                cells.extend(w.arrived.map(Cell::Count));
                cells.extend(w.sent.map(Cell::Count));
                cells.extend(Cause::ALL.map(|c| Cell::Count(sum(&w.dropped[c.index()]))));
                cells.extend(Colour::ALL.map(|c| Cell::Count(w.dropped_of(c))));
                cells.push(sum(&w.marked).into());
                // The share of the window in which it was sending, and the rate that this is: of a packet under way when the
                // window turns, the part inside.
                let utilisation = l.sending.secs() / self.window;
                cells.extend([
                    self.rate(w.arrived_bytes[0]).into(),
                    self.rate(w.arrived_bytes[1] + w.arrived_bytes[2]).into(),
                    rate.map_or_else(|| self.rate(w.sent_bytes.iter().sum()), |r| utilisation * r as f64)
                        .into(),
                    utilisation.into(),
                    l.queue_mean.into(),
                ]);
                let dropped: u64 = l.total.dropped.iter().map(|c| sum(c)).sum();
                let total = [sum(&l.total.arrived), sum(&l.total.sent), dropped, l.waiting];
                cells.extend(total.map(Cell::Count));
                let mut stats = figures(&l.stats, &l.gauges);
                let mut by_flow = Object::new();
                for &(flow, what, value) in &l.by_flow {
                    let flow = by_flow.entry(names.flows.get(flow)).or_insert(Object::new().into());
                    flow[what] = value.into();
                }
                if !by_flow.is_empty() {
                    stats.insert("flows".into(), by_flow.into());
                }
                let stats = serde_json::Value::Object(stats).to_string();
                cells.push((&stats).into());
                t.row(&cells);
            }
        }
    }

    pub fn markers(&self, t: &mut Columns) {
        let mut columns = vec![("seed", Counts), ("place", Texts), ("kind", Texts)];
        let counts = ["arrived_in", "arrived_out", "left_in", "left_out", "dropped"];
        columns.extend(counts.map(|n| (n, Counts)));
        let rates = ["arrived_in_rate", "arrived_out_rate", "left_in_rate", "left_out_rate"];
        columns.extend(rates.map(|n| (n, Numbers)));
        columns.push(("stats", Texts));
        t.have(&columns);
        let model = self.scenario.model();
        let of_flows: Vec<&str> = model
            .groups
            .iter()
            .flat_map(|g| std::iter::repeat_n(g.marker.as_ref().map_or("", |m| m.name), g.count))
            .collect();
        for (names, o) in self.runs {
            let mut row = |place: &str, kind: &str, m: &MarkerOutcome| {
                let w = &m.window;
                let out = |by_colour: [u64; 3]| by_colour[1] + by_colour[2];
                let stats = serde_json::Value::Object(figures(&m.stats, &m.gauges)).to_string();
                t.row(&[
                    o.seed.into(),
                    place.into(),
                    kind.into(),
                    w.arrived[0].into(),
                    out(w.arrived).into(),
                    w.left[0].into(),
                    out(w.left).into(),
                    sum(&w.dropped).into(),
                    self.rate(w.arrived_bytes[0]).into(),
                    self.rate(out(w.arrived_bytes)).into(),
                    self.rate(w.left_bytes[0]).into(),
                    self.rate(out(w.left_bytes)).into(),
                    (&stats).into(),
                ]);
            };
            for ((m, name), edge) in o.edges.iter().zip(&names.edges).zip(&model.edges) {
                row(name, edge.marker.name, m);
            }
            for ((m, name), kind) in o.flow_markers.iter().zip(names.flows.iter()).zip(&of_flows) {
                if let Some(m) = m {
                    row(name, kind, m);
                }
            }
        }
    }

    pub fn signals(&self, t: &mut Columns) {
        let mut columns = vec![("seed", Counts), ("from", Texts), ("to", Texts)];
        columns.extend(["delay", "loss"].map(|n| (n, Numbers)));
        columns.extend(["sent", "lost", "delivered"].map(|n| (n, Counts)));
        t.have(&columns);
        for (names, o) in self.runs {
            for ((from, to, delay, loss), s) in names.signals.iter().zip(&o.signals) {
                t.row(&[
                    o.seed.into(),
                    from.into(),
                    to.into(),
                    (*delay).into(),
                    (*loss).into(),
                    s.sent.into(),
                    s.lost.into(),
                    s.delivered.into(),
                ]);
            }
        }
    }

    pub fn series(&self, t: &mut Columns) {
        t.have(&[("seed", Counts), ("monitor", Texts), ("what", Texts), ("t", Numbers), ("value", Numbers)]);
        for (names, o) in self.runs {
            for s in &o.series {
                let name = names.monitors[s.monitor as usize].as_str();
                for (what, values) in &s.columns {
                    for (at, &value) in s.times.iter().zip(values) {
                        // What has no value yet (ssthresh before the first loss) is missing, not NaN.
                        let value = (!value.is_nan()).then_some(value);
                        t.row(&[o.seed.into(), name.into(), (*what).into(), at.secs().into(), value.into()]);
                    }
                }
            }
            if let Some(measured) = &o.measured {
                add_periods(t, self.scenario.model(), &names.of_reported(), o.seed, measured);
            }
        }
    }

    pub fn downloads(&self, t: &mut Columns) {
        t.have(&[
            ("seed", Counts),
            ("flow", Texts),
            ("group", Texts),
            ("number", Counts),
            ("size", Counts),
            ("asked", Numbers),
            ("completed", Numbers),
            ("stalled", Numbers),
        ]);
        for (names, o) in self.runs {
            for d in &o.downloads {
                let flow = names.flows.get(d.flow);
                // A flow's name is its group's and its number.
                let group = flow.rsplit_once('.').map_or(flow, |(group, _)| group);
                t.row(&[
                    o.seed.into(),
                    flow.into(),
                    group.into(),
                    u64::from(d.number).into(),
                    d.size.0.into(),
                    d.asked.secs().into(),
                    d.completed.secs().into(),
                    d.stalled.secs().into(),
                ]);
            }
        }
    }

    pub fn distributions(&self, delays: &mut Columns, cdf: &mut Columns) {
        let mut tables = Distributions::of(delays, cdf);
        for (names, o) in self.runs {
            if let Some(measured) = &o.measured {
                tables.add(self.scenario.model(), &names.of_reported(), o.seed, measured);
            }
        }
    }

    pub fn verdicts(&self, t: &mut Columns) {
        t.have(&[
            ("seed", Counts),
            ("time_ps", Counts),
            ("packet", Counts),
            ("flow", Texts),
            ("point", Texts),
            ("verdict", Texts),
            ("cause", Texts),
            ("why", Texts),
        ]);
        for (names, o) in self.runs {
            for v in &o.verdicts {
                let mut why = serde_json::Map::new();
                why.extend(v.why.iter().map(|&(n, x)| (n.to_owned(), x.into())));
                let why = serde_json::Value::Object(why).to_string();
                t.row(&[
                    o.seed.into(),
                    v.at.0.into(),
                    v.packet.into(),
                    names.flows.get(v.flow).into(),
                    names.place(v.place, v.flow).into(),
                    v.verdict.into(),
                    v.cause.map(Cause::name).into(),
                    (&why).into(),
                ]);
            }
        }
    }
}

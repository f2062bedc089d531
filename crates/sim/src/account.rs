//! The counters of a run: over the measured window and in total, checked for conservation of packets.

use std::ops::Range;

use inprofile_core::packet::Colour;
use inprofile_core::queue::Counts;
use inprofile_core::units::{Duration, Time};
use inprofile_core::verdict::Cause;

use crate::clock::Clock;
use crate::drops::Drops;
use crate::flow_control::Paused;
use crate::marker_points::MarkerState;
use crate::outcome::{Dropped, FlowCounts, FlowOutcome, LinkOutcome, MarkerCounts, MarkerOutcome, Outcome};
use crate::senders::Senders;
use crate::tcp::Tally;
use crate::view::QueueView;
use crate::window_counts::WindowCounts;
use crate::world::World;

/// The counters over the measured window.
#[derive(Debug)]
pub struct Accounts {
    window: (Time, Time),
    /// How many boundaries of the window have passed.
    turns: u8,
    /// Before the window: nothing. Within it: the counters at its beginning. After it: what was counted in it.
    counted: Counted,
}

/// All counters over the window. (Links keep their own, as theirs may run ahead of the current time.)
#[derive(Debug, Default)]
struct Counted {
    flows: WindowCounts,
    drops: LossCounts,
    tallies: Vec<Tally>,
    edges: Vec<MarkerCounts>,
    hosts: Vec<Option<Box<MarkerCounts>>>,
    /// By link, where one may pause others.
    paused: Vec<Option<Paused>>,
}

impl Counted {
    /// Replaces each counter by its increase since: first by its value at the beginning of the window, then by what was
    /// counted in it. In place, as there may be a hundred thousand flows.
    fn since_then<C: Clock, const TRACE: bool>(
        &mut self,
        world: &mut World<C, TRACE>,
        senders: &Senders<C>,
        turn: u8,
    ) {
        let n = world.flows.len();
        self.flows.expect(n);
        self.tallies.resize(n, Tally::default());
        self.edges.resize(world.edges.len(), MarkerCounts::default());
        if world.flows.iter().any(|f| f.marker.is_some()) {
            self.hosts.resize(n, None);
        }
        for (i, f) in world.flows.iter().enumerate() {
            self.flows.change(i, |counted| *counted = f.counts.since(counted));
        }
        if let Some(control) = &world.flow_control {
            let now = control.counts(world.now.time());
            self.paused.resize(now.len(), None);
            for (counted, now) in self.paused.iter_mut().zip(now) {
                *counted = now.map(|now| now.since(&counted.unwrap_or_default()));
            }
        }
        for (_, flow, then) in world.boundary_counts.extract_if(.., |t| t.0 == turn) {
            let now = &world.flows[flow as usize].counts;
            self.flows.change(flow as usize, |counted| counted.take_back(&now.since(&then)));
        }
        let mut drops = LossCounts::of(&world.drops);
        for &(_, flow, cause) in world.pending_losses() {
            *drops.row(flow, cause) -= 1;
        }
        self.drops = drops.since(&self.drops);
        for (counted, now) in self.tallies.iter_mut().zip(senders.tallies()) {
            *counted = now.since(counted);
        }
        for (counted, edge) in self.edges.iter_mut().zip(&world.edges) {
            *counted = edge.counts.since(counted);
        }
        for (counted, f) in self.hosts.iter_mut().zip(&world.flows) {
            if let Some(m) = &f.marker {
                let counted = counted.get_or_insert_default();
                **counted = m.counts.since(counted);
            }
        }
        for f in &mut world.flows {
            f.boundary_passed(turn, world.window);
        }
    }
}

impl Accounts {
    /// Before the window.
    pub fn new(window: (Time, Time)) -> Accounts {
        Accounts { window, turns: 0, counted: Counted::default() }
    }

    /// A boundary of the window: it begins, or it ends.
    pub fn cross_boundary<C: Clock, const TRACE: bool>(
        &mut self,
        world: &mut World<C, TRACE>,
        senders: &Senders<C>,
    ) {
        self.counted.since_then(world, senders, self.turns);
        self.turns += 1;
    }

    /// Adds what another part of the run has counted, which has the senders of these flows, and these edges.
    pub(crate) fn absorb(&mut self, other: Accounts, sends: &[bool], edges: &[bool]) {
        let (own, other) = (&mut self.counted, other.counted);
        take(&mut own.tallies, other.tallies, sends);
        if own.hosts.is_empty() {
            // A part has none where none of its flows is marked.
            own.hosts.resize(other.hosts.len(), None);
        }
        take(&mut own.hosts, other.hosts, sends);
        take(&mut own.edges, other.edges, edges);
        own.flows.add(&other.flows);
        for (flow, cause, packets) in other.drops.0 {
            *own.drops.row(flow, cause) += packets;
        }
    }

    /// Closes the accounts at the end of the run.
    ///
    /// # Errors
    /// The counters that do not add up.
    pub fn close<C: Clock, const TRACE: bool>(
        mut self,
        mut world: World<C, TRACE>,
        senders: Senders<C>,
        seed: u64,
        events: u64,
    ) -> Result<Outcome, String> {
        let now = world.now;
        for l in &mut world.links {
            l.settle(now);
        }
        match self.turns {
            0 => return Err("the measured window did not begin within the run".into()),
            1 => self.cross_boundary(&mut world, &senders),
            _ => {}
        }
        let counted = self.counted;

        // Frees memory for the outcome.
        let tallies: Vec<Tally> = senders.tallies().collect();
        drop(senders);
        let mut in_flight = vec![[0u32; 2]; world.flows.len()];
        for t in world.packets.iter() {
            in_flight[t.packet.flow.0 as usize][usize::from(!t.forward())] += 1;
        }
        drop(world.packets);
        drop(world.calendar);
        let drops = LossCounts::of(&world.drops);
        let window_ps = (self.window.1 - self.window.0).0 as f64;
        let mut outcome = Outcome { seed, events, ..Outcome::default() };
        let paused = world.flow_control.take().map_or(Vec::new(), |control| control.counts(now.time()));
        let last = world.links.iter().rposition(|l| l.reported).map_or(0, |i| i + 1);
        for (i, l) in world.links.iter().enumerate() {
            let wrong = |e| format!("link {i}: {e}");
            if i >= last {
                let seen = l.view(None);
                check_queue(&seen.counts, seen.waiting).map_err(wrong)?;
                continue;
            }
            let queue =
                |class: Option<usize>| queue_outcome(&l.view(class), window_ps, now.time()).map_err(wrong);
            let classes = (0..l.classes()).map(|c| queue(Some(c))).collect::<Result<Vec<_>, String>>()?;
            let queue_mean_dropped = l.dropped_area() as f64 / window_ps;
            let mut link = LinkOutcome { classes, queue_mean_dropped, ..queue(None)? };
            if let Some(paused) = paused.get(i).copied().flatten() {
                link.window_paused = counted.paused[i];
                link.stats.push(("pauses", paused.pauses));
                link.gauges.push(("paused_time", paused.time.secs()));
                link.gauges.push(("ingress_most", paused.most.0 as f64));
            }
            outcome.links.push(link);
        }
        // Frees memory: a hundred thousand hosts have two hundred thousand links.
        drop(world.links);
        outcome.flows.reserve_exact(world.flows.len());
        outcome.flow_markers.reserve_exact(world.flows.len());
        let mut hosts = counted.hosts.into_iter();
        for (i, f) in world.flows.into_iter().enumerate() {
            let [data, acks] = in_flight[i].map(u64::from);
            let flow = FlowOutcome {
                total: f.counts,
                window: counted.flows.of(i),
                dropped: drops.of_flow(i as u32),
                window_dropped: counted.drops.of_flow(i as u32),
                in_flight: data,
                acks: [f.acks_sent, f.acks_received, f.acks_dropped, acks],
                tally: tallies[i],
                start: f.start,
                completed: f.completed.filter(|_| !f.asks),
                window_tally: counted.tallies[i],
            };
            flow.check().map_err(|e| format!("flow {i}: {e}"))?;
            outcome.flows.push(flow);
            let window = hosts.next().flatten().map_or_else(MarkerCounts::default, |counts| *counts);
            outcome.flow_markers.push(f.marker.map(|m| Box::new(marker_outcome(&m, window, now.time()))));
        }
        for (i, m) in world.edges.iter().enumerate() {
            outcome.edges.push(marker_outcome(m, counted.edges[i], now.time()));
        }
        outcome.drops = world.drops.sorted().collect();
        outcome.verdicts = world.verdicts;
        outcome.signals = world.signals.close()?;
        Ok(outcome)
    }
}

/// Takes those of another part of the run that are there.
pub(crate) fn take<T>(own: &mut [T], other: Vec<T>, there: &[bool]) {
    for ((own, other), _) in own.iter_mut().zip(other).zip(there).filter(|(_, there)| **there) {
        *own = other;
    }
}

/// Dropped packets by flow and cause, in the order of flows: most flows have lost none, or for one cause.
#[derive(Debug, Default)]
struct LossCounts(Vec<(u32, Cause, u64)>);

impl LossCounts {
    /// Wherever they were dropped.
    fn of(drops: &Drops) -> LossCounts {
        let mut counts = LossCounts::default();
        for row in drops.sorted() {
            *counts.row(row.flow, row.cause) += row.packets.iter().sum::<u64>();
        }
        counts
    }

    /// The rows of a flow.
    fn range(&self, flow: u32) -> Range<usize> {
        let from = self.0.partition_point(|row| row.0 < flow);
        from..from + self.0[from..].iter().take_while(|row| row.0 == flow).count()
    }

    /// One of them, at zero if there was none.
    fn row(&mut self, flow: u32, cause: Cause) -> &mut u64 {
        let mut rows = self.range(flow);
        let end = rows.end;
        let at = rows.find(|&i| self.0[i].1 == cause).unwrap_or_else(|| {
            self.0.insert(end, (flow, cause, 0));
            end
        });
        &mut self.0[at].2
    }

    /// The packets dropped since `before`.
    fn since(mut self, before: &LossCounts) -> LossCounts {
        for &(flow, cause, packets) in &before.0 {
            *self.row(flow, cause) -= packets;
        }
        self
    }

    /// A flow's, by cause.
    fn of_flow(&self, flow: u32) -> Dropped {
        let mut dropped = Dropped::default();
        for &(_, cause, packets) in &self.0[self.range(flow)] {
            dropped[cause.index()] = packets;
        }
        dropped
    }
}

/// The counters of one queue, or of all of a link's classes together, checked.
fn queue_outcome(seen: &QueueView<'_>, window_ps: f64, now: Time) -> Result<LinkOutcome, String> {
    check_queue(&seen.counts, seen.waiting)?;
    let (window, queue_mean, sending) = match seen.snapshots {
        [b, e] => {
            let mean = (e.area - b.area) as f64 / window_ps;
            (since(&e.counts, &b.counts), mean, Duration(e.sending - b.sending))
        }
        _ => (Counts::default(), 0.0, Duration::ZERO),
    };
    if sending.0 as f64 > window_ps {
        return Err(format!("it was sending for {sending}, longer than the measured window"));
    }
    let waiting = seen.waiting.iter().map(|&n| u64::from(n)).sum();
    let mut queue =
        LinkOutcome { total: seen.counts, window, queue_mean, sending, waiting, ..LinkOutcome::default() };
    if let Some(aqm) = seen.aqm {
        aqm.show_counts(&seen.counts, &mut |name, value| queue.stats.push((name, value)));
        aqm.gauges(now, &mut |name, value| queue.gauges.push((name, value)));
        aqm.flow_gauges(now, &mut |flow, name, value| queue.by_flow.push((flow.0, name, value)));
    }
    Ok(queue)
}

fn marker_outcome(m: &MarkerState, window: MarkerCounts, now: Time) -> MarkerOutcome {
    let (mut stats, mut gauges) = (Vec::new(), Vec::new());
    m.marker.stats(&mut |name, value| stats.push((name, value)));
    m.marker.gauges(now, &mut |name, value| gauges.push((name, value)));
    // A hundred thousand hosts may have a marker each.
    stats.shrink_to_fit();
    gauges.shrink_to_fit();
    MarkerOutcome { total: m.counts, window, stats, gauges }
}

fn less<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| a[i] - b[i])
}

/// The counts between two moments.
fn since(after: &Counts, before: &Counts) -> Counts {
    Counts {
        arrived: less(after.arrived, before.arrived),
        arrived_bytes: less(after.arrived_bytes, before.arrived_bytes),
        sent: less(after.sent, before.sent),
        sent_bytes: less(after.sent_bytes, before.sent_bytes),
        dropped: std::array::from_fn(|i| less(after.dropped[i], before.dropped[i])),
        marked: less(after.marked, before.marked),
    }
}

impl FlowCounts {
    /// Takes back what a receiver that runs ahead has counted beyond a boundary of the window.
    fn take_back(&mut self, beyond: &FlowCounts) {
        self.received = less(self.received, beyond.received);
        self.received_bytes = less(self.received_bytes, beyond.received_bytes);
        self.in_order_wire_bytes -= beyond.in_order_wire_bytes;
        self.in_order_payload_bytes -= beyond.in_order_payload_bytes;
    }

    /// Adds what another part of the run has counted.
    pub(crate) fn add(&mut self, other: &FlowCounts) {
        let more = |own: &mut [u64; 3], other: [u64; 3]| own.iter_mut().zip(other).for_each(|(n, m)| *n += m);
        more(&mut self.sent, other.sent);
        more(&mut self.sent_bytes, other.sent_bytes);
        more(&mut self.received, other.received);
        more(&mut self.received_bytes, other.received_bytes);
        self.in_order_wire_bytes += other.in_order_wire_bytes;
        self.in_order_payload_bytes += other.in_order_payload_bytes;
    }

    /// The packets counted since `before`.
    #[must_use]
    pub fn since(&self, before: &FlowCounts) -> FlowCounts {
        FlowCounts {
            sent: less(self.sent, before.sent),
            sent_bytes: less(self.sent_bytes, before.sent_bytes),
            received: less(self.received, before.received),
            received_bytes: less(self.received_bytes, before.received_bytes),
            in_order_wire_bytes: self.in_order_wire_bytes - before.in_order_wire_bytes,
            in_order_payload_bytes: self.in_order_payload_bytes - before.in_order_payload_bytes,
        }
    }
}

impl FlowOutcome {
    /// sent = received + dropped + in flight, for data and for acknowledgements.
    fn check(&self) -> Result<(), String> {
        let sum = |a: &[u64]| a.iter().sum::<u64>();
        let (sent, received) = (sum(&self.total.sent), sum(&self.total.received));
        let dropped = sum(&self.dropped);
        if sent != received + dropped + self.in_flight {
            return Err(format!(
                "{sent} packets sent, but {received} received, {dropped} dropped and {} in flight",
                self.in_flight
            ));
        }
        let [sent, received, dropped, in_flight] = self.acks;
        if sent != received + dropped + in_flight {
            return Err(format!(
                "{sent} acknowledgements sent, but {received} received, {dropped} dropped and {in_flight} in flight"
            ));
        }
        Ok(())
    }
}

/// arrived = sent + dropped + waiting, by colour.
fn check_queue(c: &Counts, waiting: [u32; 3]) -> Result<(), String> {
    for colour in Colour::ALL {
        let i = colour as usize;
        let dropped = c.dropped_of(colour);
        if c.arrived[i] != c.sent[i] + dropped + u64::from(waiting[i]) {
            return Err(format!(
                "{} packets of colour {i} arrived, but {} were sent, {dropped} dropped and {} wait",
                c.arrived[i], c.sent[i], waiting[i]
            ));
        }
    }
    Ok(())
}

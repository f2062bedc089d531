//! The books of a run: the measured window, and the proof that no packet was lost or made up.

use inprofile_core::packet::Colour;
use inprofile_core::queue::fifo::Counts;
use inprofile_core::units::Time;

use crate::clock::Clock;
use crate::link::Seen;
use crate::marking::MarkerState;
use crate::outcome::{DropRow, FlowCounts, FlowOutcome, LinkOutcome, MarkerCounts, MarkerOutcome, Outcome};
use crate::tcp::Tally;
use crate::traffic::Source;
use crate::world::World;

/// The books.
#[derive(Debug)]
pub struct Accounts {
    window: (Time, Time),
    begins: Option<Snapshot>,
    ends: Option<Snapshot>,
}

/// Counts at one moment. (Links keep their own: theirs may be ahead of the present.)
#[derive(Debug)]
struct Snapshot {
    flows: Vec<FlowCounts>,
    tallies: Vec<Tally>,
    edges: Vec<MarkerCounts>,
    hosts: Vec<Option<Box<MarkerCounts>>>,
}

impl Snapshot {
    /// At this turn of the window.
    fn take<C: Clock, const TRACE: bool>(
        world: &mut World<C, TRACE>,
        senders: &[Source<C>],
        turn: u8,
    ) -> Snapshot {
        let mut flows: Vec<FlowCounts> = world.flows.iter().map(|f| f.counts).collect();
        for (_, flow, counts) in world.turned.extract_if(.., |t| t.0 == turn) {
            flows[flow as usize].receive(&counts);
        }
        for &(_, flow, cause) in world.losses_to_come() {
            flows[flow as usize].dropped[cause as usize] -= 1;
        }
        Snapshot {
            flows,
            tallies: senders.iter().map(Source::tally).collect(),
            edges: world.edges.iter().map(|e| e.counts).collect(),
            hosts: world.flows.iter().map(|f| f.marker.as_ref().map(|m| Box::new(m.counts))).collect(),
        }
    }
}

impl Accounts {
    /// Before the window.
    pub fn new(window: (Time, Time)) -> Accounts {
        Accounts { window, begins: None, ends: None }
    }

    /// The window begins now.
    pub fn window_begins<C: Clock, const TRACE: bool>(
        &mut self,
        world: &mut World<C, TRACE>,
        senders: &[Source<C>],
    ) {
        self.begins = Some(Snapshot::take(world, senders, 0));
    }

    /// The window ends now.
    pub fn window_ends<C: Clock, const TRACE: bool>(
        &mut self,
        world: &mut World<C, TRACE>,
        senders: &[Source<C>],
    ) {
        self.ends = Some(Snapshot::take(world, senders, 1));
    }

    /// Closes the books at the end of the run.
    ///
    /// # Errors
    /// What was found not to add up.
    pub fn close<C: Clock, const TRACE: bool>(
        self,
        mut world: World<C, TRACE>,
        senders: &[Source<C>],
        seed: u64,
        events: u64,
    ) -> Result<Outcome, String> {
        let now = world.now;
        for l in &mut world.links {
            l.settle(now);
        }
        let (begins, ends) = match (self.begins, self.ends) {
            (Some(b), Some(e)) => (b, e),
            (Some(b), None) => (b, Snapshot::take(&mut world, senders, 1)),
            _ => return Err("the measured window did not begin within the run".into()),
        };

        let mut in_flight = vec![[0u64; 2]; world.flows.len()];
        for t in world.packets.iter() {
            in_flight[t.packet.flow.0 as usize][usize::from(!t.forward)] += 1;
        }
        let window_ps = (self.window.1 - self.window.0).0 as f64;
        let mut outcome = Outcome { seed, events, ..Outcome::default() };
        for (i, f) in world.flows.iter().enumerate() {
            let flow = FlowOutcome {
                total: f.counts,
                window: ends.flows[i].since(&begins.flows[i]),
                in_flight: in_flight[i][0],
                acks: [f.acks[0], f.acks[1], f.acks[2], in_flight[i][1]],
                tally: senders[i].tally(),
                start: f.start,
                completed: f.completed,
                window_tally: ends.tallies[i].since(&begins.tallies[i]),
            };
            flow.check().map_err(|e| format!("flow {i}: {e}"))?;
            outcome.flows.push(flow);
            outcome.flow_markers.push(f.marker.as_ref().map(|m| {
                let counts = |at: &Snapshot| at.hosts[i].as_deref().copied().unwrap_or_default();
                Box::new(marker_outcome(m, counts(&ends).since(&counts(&begins)), now.time()))
            }));
        }
        for (i, l) in world.links.iter().enumerate() {
            let queue = |class: Option<usize>| {
                queue_outcome(&l.seen(class), window_ps, now.time()).map_err(|e| format!("link {i}: {e}"))
            };
            let classes = (0..l.classes()).map(|c| queue(Some(c))).collect::<Result<Vec<_>, String>>()?;
            outcome.links.push(LinkOutcome { classes, ..queue(None)? });
        }
        for (i, m) in world.edges.iter().enumerate() {
            let window = ends.edges[i].since(&begins.edges[i]);
            outcome.edges.push(marker_outcome(m, window, now.time()));
        }
        let row = |(&(flow, place, cause), &packets)| DropRow { flow, place, cause, packets };
        outcome.drops = world.drops.iter().map(row).collect();
        outcome.verdicts = world.verdicts;
        outcome.signals = world.signals.close()?;
        Ok(outcome)
    }
}

/// What happened at one queue, or at all of a link's classes together; its books are checked.
fn queue_outcome(seen: &Seen<'_>, window_ps: f64, now: Time) -> Result<LinkOutcome, String> {
    check_queue(&seen.counts, seen.waiting)?;
    let (window, queue_mean) = match seen.books {
        [b, e] => (since(&e.counts, &b.counts), (e.area - b.area) as f64 / window_ps),
        _ => (Counts::default(), 0.0),
    };
    let waiting = seen.waiting.iter().map(|&n| u64::from(n)).sum();
    let mut queue = LinkOutcome { total: seen.counts, window, queue_mean, waiting, ..LinkOutcome::default() };
    if let Some(aqm) = seen.aqm {
        aqm.stats(&mut |name, value| queue.stats.push((name, value)));
        aqm.gauges(now, &mut |name, value| queue.gauges.push((name, value)));
        aqm.flow_gauges(now, &mut |flow, name, value| queue.by_flow.push((flow.0, name, value)));
    }
    Ok(queue)
}

fn marker_outcome(m: &MarkerState, window: MarkerCounts, now: Time) -> MarkerOutcome {
    let (mut stats, mut gauges) = (Vec::new(), Vec::new());
    m.marker.stats(&mut |name, value| stats.push((name, value)));
    m.marker.gauges(now, &mut |name, value| gauges.push((name, value)));
    MarkerOutcome { total: m.counts, window, stats, gauges }
}

fn less<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| a[i] - b[i])
}

/// What was counted between two moments.
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
    /// What the receiver counts is as in `other`.
    fn receive(&mut self, other: &FlowCounts) {
        self.received = other.received;
        self.received_bytes = other.received_bytes;
        self.in_order_wire_bytes = other.in_order_wire_bytes;
        self.in_order_payload_bytes = other.in_order_payload_bytes;
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &FlowCounts) -> FlowCounts {
        FlowCounts {
            sent: less(self.sent, before.sent),
            sent_bytes: less(self.sent_bytes, before.sent_bytes),
            received: less(self.received, before.received),
            received_bytes: less(self.received_bytes, before.received_bytes),
            in_order_wire_bytes: self.in_order_wire_bytes - before.in_order_wire_bytes,
            in_order_payload_bytes: self.in_order_payload_bytes - before.in_order_payload_bytes,
            dropped: less(self.dropped, before.dropped),
        }
    }
}

impl MarkerCounts {
    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &MarkerCounts) -> MarkerCounts {
        MarkerCounts {
            arrived: less(self.arrived, before.arrived),
            arrived_bytes: less(self.arrived_bytes, before.arrived_bytes),
            left: less(self.left, before.left),
            left_bytes: less(self.left_bytes, before.left_bytes),
            dropped: less(self.dropped, before.dropped),
        }
    }
}

impl FlowOutcome {
    /// sent = received + dropped + in flight, for data and for acknowledgements.
    fn check(&self) -> Result<(), String> {
        let sum = |a: &[u64]| a.iter().sum::<u64>();
        let (sent, received) = (sum(&self.total.sent), sum(&self.total.received));
        let dropped = sum(&self.total.dropped);
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

//! Markers in a run, and where on a packet's path they decide: at its own host, and at an edge.

use inprofile_core::ns2::Moment;
use inprofile_core::packet::{Direction, Packet};
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::{Mark, Notes, Silent};

use crate::clock::Clock;
use crate::outcome::{MarkerCounts, VerdictPoint};
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// The flow's own marker decides. False: it dropped the packet.
    #[inline]
    pub(crate) fn mark_at_host(&mut self, flow: u32, slot: u32) -> bool {
        let Some(m) = self.flows[flow as usize].marker.as_mut() else { return true };
        let packet = self.packets.get(slot).packet;
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        let colour = match verdict {
            Mark::Pass(colour) => colour,
            Mark::Drop(_) => packet.colour,
        };
        self.flows[flow as usize].counts.leave(colour, packet.size);
        self.apply(verdict, slot, VerdictPoint::Host)
    }

    /// An edge's marker decides on data, and observes acknowledgements. False: it dropped the packet.
    #[inline]
    pub(crate) fn mark_at_edge(&mut self, edge: u32, slot: u32) -> bool {
        let t = self.packets.get(slot);
        let packet = t.packet;
        let m = &mut self.edges[edge as usize];
        if !t.forward() {
            m.marker.observe(self.now.time(), &packet, Direction::Reverse);
            return true;
        }
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        self.apply(verdict, slot, VerdictPoint::Edge(edge))
    }

    /// Carries out a marker's verdict. False: the packet was dropped.
    #[inline]
    fn apply(&mut self, verdict: Mark, slot: u32, place: VerdictPoint) -> bool {
        if TRACE {
            let word = match verdict {
                Mark::Pass(colour) => (colour.name(), None),
                Mark::Drop(cause) => ("drop", Some(cause)),
            };
            self.record_verdict(self.now.time(), slot, place, word);
        }
        match verdict {
            Mark::Pass(colour) => {
                self.packets.get_mut(slot).packet.colour = colour;
                true
            }
            Mark::Drop(cause) => {
                self.drop_packet(slot, place, cause, self.now);
                false
            }
        }
    }
}

/// A marker in a run.
#[derive(Debug)]
pub struct MarkerState {
    /// The mechanism.
    pub marker: AnyMarker,
    /// Its random numbers.
    pub rng: Rng,
    /// Counts since the start of the run.
    pub counts: MarkerCounts,
}

impl MarkerState {
    /// The marker's verdict on a packet, counted. Random numbers are its own, or `shared`.
    #[inline]
    pub fn decide<C: Clock, const TRACE: bool>(
        &mut self,
        clock: C,
        packet: &Packet,
        shared: Option<&mut Rng>,
        notes: &mut Notes,
    ) -> Mark {
        let now = clock.time();
        if C::NS2 {
            self.marker.tell_moment(now, Moment { secs: clock.secs(), idle: 0.0 });
        }
        let (came, size) = (packet.colour as usize, u64::from(packet.size));
        self.counts.arrived[came] += 1;
        self.counts.arrived_bytes[came] += size;
        let rng = shared.unwrap_or(&mut self.rng);
        let verdict = if TRACE {
            notes.clear();
            self.marker.mark(now, packet, rng, notes)
        } else {
            self.marker.mark(now, packet, rng, &mut Silent)
        };
        match verdict {
            Mark::Pass(colour) => {
                self.counts.left[colour as usize] += 1;
                self.counts.left_bytes[colour as usize] += size;
            }
            Mark::Drop(_) => self.counts.dropped[came] += 1,
        }
        verdict
    }
}

mod mechanisms {
    //! Mechanisms in a run: their ticks, the signals they receive, the acknowledgements they observe.

    use inprofile_core::packet::{Direction, Packet};
    use inprofile_core::signal::{Outbox, Signal};

    use crate::clock::Clock;
    use crate::event::EventKind;
    use crate::network::Target;
    use crate::world::World;

    impl<C: Clock, const TRACE: bool> World<C, TRACE> {
        /// The tick of an edge's, queue's or host's mechanism.
        pub fn tick(&mut self, what: EventKind) {
            let now = self.now.time();
            let mut outbox = Outbox::default();
            let next = match what {
                EventKind::EdgeTick(e) => self.edges[e as usize].marker.tick(now, &mut outbox),
                EventKind::QueueTick(l) => {
                    self.bring_up_to_date(l);
                    self.links[l as usize].queue.tick(now, &mut outbox)
                }
                EventKind::HostTick(f) => {
                    self.flows[f as usize].marker.as_mut().and_then(|m| m.marker.tick(now, &mut outbox))
                }
                _ => None,
            };
            if !outbox.signals.is_empty() {
                for (path, delay) in self.signals.post(what, &outbox) {
                    let at = self.now.after(C::span(delay));
                    if !self.send_signals_away(path, at) {
                        self.schedule(at, EventKind::Signals(path));
                    }
                }
            }
            if let Some(at) = next {
                let at = self.timer_after(what).unwrap_or_else(|| C::at(at));
                if let EventKind::QueueTick(l) = what
                    && let Some(o) = &mut self.links[l as usize].on_demand
                    && o.plan_tick(at)
                {
                    return;
                }
                self.schedule(at, what);
            }
        }

        /// On ns-2's clock: when a timer of ns-2's own expires next.
        fn timer_after(&self, what: EventKind) -> Option<C> {
            let EventKind::QueueTick(l) = what else { return None };
            let secs = C::NS2.then(|| self.links[l as usize].queue.timer_secs())??;
            Some(self.now.after(C::span_secs(secs)))
        }

        /// A mechanism receives a signal.
        pub fn tell(&mut self, who: Target, signal: &Signal) {
            let now = self.now.time();
            match who {
                Target::Edge(e) => self.edges[e as usize].marker.signal(now, signal),
                Target::Queue(l) | Target::Class(l, _) => {
                    let class = if let Target::Class(_, c) = who { Some(c as usize) } else { None };
                    self.bring_up_to_date(l);
                    self.links[l as usize].queue.signal(now, class, signal);
                }
                Target::Flow(f) => {
                    if let Some(m) = &mut self.flows[f as usize].marker {
                        m.marker.signal(now, signal);
                    }
                }
            }
        }

        /// Signals arrive at the end of a path.
        pub fn deliver(&mut self, path: u32) {
            let (who, signals) = self.signals.arrive(path);
            for signal in &signals {
                self.tell(who, signal);
            }
        }

        /// An acknowledgement has arrived over a link: queues at its far end that the flow's data passes may observe it.
        pub(crate) fn show_to_queues(&mut self, came_by: u32, packet: &Packet) {
            let Some(queues) = self.observers.get(&came_by) else { return };
            let route = self.flows[packet.flow.0 as usize].forward;
            let passed: Vec<u32> = queues.iter().copied().filter(|l| self.routes.passes(route, *l)).collect();
            for l in passed {
                self.bring_up_to_date(l);
                self.links[l as usize].queue.observe(self.now.time(), packet, Direction::Reverse);
            }
        }
    }
}

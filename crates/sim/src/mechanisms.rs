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
                self.links[l as usize].tick(now, &mut outbox)
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
        let secs = C::NS2.then(|| self.links[l as usize].timer_secs())??;
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
                self.links[l as usize].signal(now, class, signal);
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
            self.links[l as usize].observe(self.now.time(), packet, Direction::Reverse);
        }
    }
}

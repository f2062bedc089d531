//! The beginning of a run: the world, built from the network, and the first events.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};

use super::{Hosts, Run, STOP_CHECK_INTERVAL};
use crate::account::Accounts;
use crate::calendar::Calendar;
use crate::clock::Clock;
use crate::event::{EventKind, MAX_INDEX};
use crate::flow::FlowState;
use crate::flow_control::FlowControl;
use crate::link::Link;
use crate::marker_points::MarkerState;
use crate::measure::{Measures, waits};
use crate::monitor::watches;
use crate::network::{Flow, Network, NodeId, Profile};
use crate::outcome::MarkerCounts;
use crate::parts::Part;
use crate::parts::border::Border;
use crate::plan::{Plan, busiest, expected_events, longest_delay, samples};
use crate::route::{RouteIndex, Service};
use crate::run_log::Log;
use crate::senders::{Senders, of_linux};
use crate::signals::{Oracles, Paths};
use crate::traffic::page_load::PageLoad;
use crate::traffic::{ExternalSender, Source, udp};
use crate::world::World;

/// From how many flows on memory is read ahead, and for how many events at once: with fewer flows, what they need is in a cache so
/// near that processors wait less for it than reading ahead costs.
const MANY_FLOWS: (usize, u64) = (2048, 32);
/// The same where a link keeps flows apart: they then come by turns, and nothing of one is near when its turn comes.
const FLOWS_BY_TURNS: (usize, u64) = (512, 8);

/// Room for the senders of these flows.
fn room<C: Clock>(flows: &[Flow], hosts: Hosts, here: impl Fn(NodeId) -> bool) -> Senders<C> {
    let count = |which: &dyn Fn(&&Flow) -> bool| flows.iter().filter(which).count();
    let elsewhere = count(&|f| !here(f.from));
    let linux = count(&|f| hosts == Hosts::Simulated && here(f.from) && of_linux(&f.transport).is_some());
    Senders::with_room(linux, flows.len() - linux - elsewhere, elsewhere)
}

impl<C: Clock, const TRACE: bool> Run<C, TRACE> {
    pub(crate) fn new(network: Network, log: Option<Log>, hosts: Hosts) -> Run<C, TRACE> {
        let by_events = TRACE
            || log.is_some()
            || network.profile != Profile::Exact
            || hosts == Hosts::Outside
            || network.pauses();
        let plan = Plan::of(&network, by_events, None);
        Run::part(network, &plan, log, hosts, None)
    }

    /// The whole run, or one part of it; `plan` is that of the whole network.
    pub(crate) fn part(
        network: Network,
        plan: &Plan,
        log: Option<Log>,
        hosts: Hosts,
        part: Option<Part<'_>>,
    ) -> Run<C, TRACE> {
        let here = |node| part.is_none_or(|part| part.has(node));
        let most = network.flows.len().max(network.links.len());
        assert!(most < MAX_INDEX as usize, "the experiment file's limits keep the numbers below {MAX_INDEX}");
        let seed = network.seed;
        let mut shared = (network.profile != Profile::Exact)
            .then(|| inprofile_core::ns2::stream(seed.clamp(1, u64::from(u32::MAX)) as u32));
        if let Some(rng) = &mut shared {
            // ns-2 draws the phase of every sender's clock twice: when the sender is created, which is overwritten, and when
            // the run begins.
            network.flows.iter().filter(|f| f.transport.tcp().is_some()).for_each(|_| {
                rng.uniform();
            });
        }
        // Components that share one random stream must draw in the order of events, and logs must be written in it.
        let flow_control = FlowControl::new(&network);
        let stepped = TRACE || log.is_some() || shared.is_some() || flow_control.is_some();
        let calendar = Calendar::new(expected_events(&network), longest_delay(&network));
        let end = C::at(Time(network.duration.0));
        let window = [C::at(network.window.0), C::at(network.window.1)];
        let mut world = World::new(calendar, end, window, log);

        let services = &plan.services;
        world.busiest = busiest(&network, plan, here);
        world.border = part.map(|part| Box::new(Border::new(&network, plan, part)));
        world.measures = Measures::of(&network);
        world.pages = network.pages.iter().cloned().map(PageLoad::new).collect();
        let waits = waits(&network);
        let mut of_flows = samples(&network);
        let (watches, mut ahead) = watches(&network, services, here);
        let oracles = Oracles::of(&network);
        world.observers = plan.observers.clone();
        world.signals = Paths::new(network.signals, seed);
        world.ends = network.links.iter().map(|l| (l.from, l.to)).collect();
        world.edge_at = vec![None; network.nodes.len()];
        for (i, e) in network.edges.into_iter().enumerate() {
            world.edge_at[e.node as usize] = Some(i as u32);
            let rng = Rng::for_component(seed, &format!("edge {}", e.name));
            world.edges.push(MarkerState { marker: e.marker, rng, counts: MarkerCounts::default() });
        }
        world.links.reserve_exact(network.links.len());
        for ((l, service), lookahead) in network.links.into_iter().zip(services).zip(&plan.lookahead) {
            let from = l.from;
            let rng = Rng::for_component(seed, &format!("queue {}", l.name));
            let waits = waits.clone().filter(|_| l.reported);
            let wire = (!l.wire.is_plain())
                .then(|| (l.wire.clone(), Rng::for_component(seed, &format!("link {}", l.name))));
            let access =
                l.access.clone().map(|a| (a, Rng::for_component(seed, &format!("access {}", l.name))));
            let mut link = Link::new(l, rng, stepped, network.window, end);
            if let Some((access, rng)) = access {
                link.set_access(access, rng);
            }
            if let Some((wire, rng)) = wire {
                link.set_wire(wire, rng);
            }
            if let Some(waits) = waits {
                link.measure_delays(waits);
            }
            match *service {
                _ if !here(from) => {}
                Service::OnDemand(_) => link.serve_on_demand(*service, *lookahead),
                Service::CutThrough if link.stepped => link.serve_on_demand(*service, *lookahead),
                Service::CutThrough | Service::ByEvents => {}
            }
            if let Some(records) = ahead.remove(&(world.links.len() as u32)) {
                link.record_ahead(records.into_boxed_slice());
            }
            world.links.push(link);
        }

        let mut senders = room(&network.flows, hosts, here);
        let mut starts = Vec::with_capacity(network.flows.len());
        let mut index = RouteIndex::new();
        world.flows.reserve_exact(network.flows.len());
        for (f, &immediate_ack) in given_back(network.flows).zip(&plan.immediate_acks) {
            let sends = here(f.from);
            let mut rng = Rng::for_component(seed, &format!("flow {}", f.name));
            let times = udp::times(seed, &f.name);
            let uniform = || shared.as_mut().unwrap_or(&mut rng).uniform();
            match (hosts, of_linux(&f.transport)) {
                _ if !sends => senders.add_elsewhere(),
                (Hosts::Outside, _) => {
                    senders.add(Source::Outside(f.transport.tcp().map(|_| ExternalSender::default())));
                }
                (Hosts::Simulated, Some((config, segments))) => senders.add_linux(config, segments),
                (Hosts::Simulated, None) => senders.add(Source::new(&f.transport, f.stop, times, uniform)),
            }
            let marker = f.marker.map(|marker| {
                let rng = Rng::for_component(seed, &format!("marker {}", f.name));
                Box::new(MarkerState { marker, rng, counts: MarkerCounts::default() })
            });
            let ahead =
                immediate_ack && f.back.first().is_some_and(|&l| services[l as usize] == Service::CutThrough);
            let forward = world.routes.add(&f.path, plan, ahead, &mut index);
            let back = world.routes.add(&f.back, plan, false, &mut index);
            let mut state = FlowState::new(&f.transport, f.start, f.class, forward, back, marker, rng);
            if plan.marked(world.flows.len()) {
                state.is_marked_elsewhere();
            }
            let of_flow = of_flows.remove(&(world.flows.len() as u32)).unwrap_or_default();
            world.flows.push(if ahead {
                state.with_computed_receiver(window, of_flow.into_boxed_slice())
            } else {
                state
            });
            starts.push(sends.then_some((f.start, f.stop)));
        }
        if flow_control.is_some() {
            world.links.iter_mut().for_each(Link::refuse_bypass);
        }
        if let Some(border) = &mut world.border {
            border.expect_flows(&world.flows);
        }
        world.flow_control = flow_control;
        world.shared = shared;

        let accounts = Accounts::new(network.window);
        let by_turns = world.links.iter().any(|l| l.queue.has_flow_queues());
        let read_ahead = [Some(MANY_FLOWS), by_turns.then_some(FLOWS_BY_TURNS)];
        let enough = read_ahead.into_iter().flatten().find(|(least, _)| senders.len() >= *least);
        let interval = enough.map_or(STOP_CHECK_INTERVAL, |(_, batch)| batch);
        let mut run = Run {
            world,
            senders,
            watches,
            accounts,
            oracles,
            hosts,
            seed,
            events: 0,
            over: false,
            interval,
            by_turns,
        };
        run.first_events(&starts, network.window, network.duration);
        run
    }

    fn first_events(
        &mut self,
        starts: &[Option<(Time, Option<Time>)>],
        window: (Time, Time),
        duration: Duration,
    ) {
        for (who, signal) in self.oracles.take_first() {
            self.world.tell(who, &signal);
        }
        self.world.schedule(C::at(window.0), EventKind::WindowBegins);
        self.world.schedule(C::at(window.1), EventKind::WindowEnds);
        for e in 0..self.world.edges.len() as u32 {
            self.tick(EventKind::EdgeTick(e));
        }
        // ns-2 sets the timers of queues when the script, which sets those of flows, has been read.
        if !C::NS2 {
            self.tick_queues();
        }
        for (f, own) in (0..).zip(starts) {
            let &Some((start, stop)) = own else { continue };
            self.tick(EventKind::HostTick(f));
            // A later page of the web begins when the one before is there, unless that is after its stop.
            let requests = matches!(self.senders.source(f), Some(Source::Requests(_)));
            let follows = Time(duration.0) < start && requests;
            if !follows && stop.is_some_and(|stop| stop <= start) {
                continue;
            }
            if requests {
                self.world.request_later(f, start);
            } else {
                self.world.schedule(C::at(start), EventKind::FlowStarts(f));
            }
            if let Some(stop) = stop.filter(|_| C::NS2 || self.senders.is_tcp(f)) {
                self.world.schedule(C::at(stop), EventKind::FlowStops(f));
            }
        }
        if C::NS2 {
            self.tick_queues();
        }
        let w = &mut self.world;
        for m in 0..self.watches.len() as u32 {
            w.schedule(C::ZERO, EventKind::Sample(m));
        }
        w.schedule(C::at(Time(duration.0)), EventKind::RunEnds);
    }

    fn tick_queues(&mut self) {
        for l in 0..self.world.links.len() as u32 {
            self.tick(EventKind::QueueTick(l));
        }
    }
}

/// How many flows are freed at once.
const BLOCK: usize = 1 << 12;

/// All of them in order, freed as they are used up: a million flows of the network become a million of the run, and memory should not
/// hold both.
fn given_back<T>(mut all: Vec<T>) -> impl Iterator<Item = T> {
    let mut blocks = Vec::new();
    while all.len() > BLOCK {
        blocks.push(all.split_off((all.len() - 1) / BLOCK * BLOCK));
        // In place: what a large allocation ends with goes back to the system.
        all.shrink_to_fit();
    }
    blocks.push(all);
    std::iter::from_fn(move || blocks.pop()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_in_order() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 20_000] {
            assert!(given_back((0..n).collect()).eq(0..n), "{n}");
        }
    }
}

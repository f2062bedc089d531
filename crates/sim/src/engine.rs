//! A run: builds the world from the network, handles events until the end, returns the outcome.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use inprofile_core::packet::Direction;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};

use crate::account::Accounts;
use crate::calendar::{Calendar, Event};
use crate::clock::{Clock, Exact};
use crate::ends::FlowHost;
use crate::event::{EventKind, MAX_INDEX};
use crate::flow::{Care, FlowState};
use crate::flow_control::FlowControl;
use crate::given_back::given_back;
use crate::link::Link;
use crate::marker_points::MarkerState;
use crate::measure::{Measures, waits};
use crate::monitor::{Watch, watches};
use crate::network::{Flow, Network, NodeId, Profile, Target};
use crate::ns2::Seconds;
use crate::outcome::{MarkerCounts, Outcome};
use crate::parts::Part;
use crate::parts::border::Border;
use crate::plan::{Plan, busiest, expected_events, longest_delay, samples};
use crate::record::QueueRecord;
use crate::route::{RouteIndex, Service};
use crate::run_log::Log;
use crate::senders::{Senders, of_linux};
use crate::signals::{Oracles, Paths};
use crate::tcp::{Ack, Delays, Flags, More, Sack, TimerKind};
use crate::timer::{Due, Expiry};
use crate::traffic::page_load::PageLoad;
use crate::traffic::{ExternalSender, Source, udp};
use crate::world::World;

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// `stop` was set.
    Stopped,
    /// Packets were lost or invented: an error in the engine. The text says where.
    NotConserved(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Stopped => f.write_str("the run was stopped before its end"),
            Failure::NotConserved(what) => {
                write!(f, "packets are not conserved, which is an error in the simulator: {what}")
            }
        }
    }
}

impl std::error::Error for Failure {}

/// Runs a network to its end.
///
/// `stop` is checked every few thousand events. `log` is called for every packet at every link.
///
/// # Errors
/// [`Failure::Stopped`] if `stop` was set; [`Failure::NotConserved`] if the engine miscounted.
pub fn run(network: Network, stop: &AtomicBool, log: Option<Log>) -> Result<Outcome, Failure> {
    run_seen(network, stop, log, &AtomicU64::new(0))
}

/// The same with progress: `reached` is the simulated time in picoseconds, as of the last check of `stop`. No result depends on it.
///
/// # Errors
/// See [`run`].
pub fn run_seen(
    network: Network,
    stop: &AtomicBool,
    log: Option<Log>,
    reached: &AtomicU64,
) -> Result<Outcome, Failure> {
    match (network.profile, network.trace) {
        (Profile::Exact | Profile::ExactNs2Random, false) => {
            Run::<Exact, false>::new(network, log, Hosts::Simulated).finish(stop, reached)
        }
        (Profile::Exact | Profile::ExactNs2Random, true) => {
            Run::<Exact, true>::new(network, log, Hosts::Simulated).finish(stop, reached)
        }
        (Profile::Ns2, false) => {
            Run::<Seconds, false>::new(network, log, Hosts::Simulated).finish(stop, reached)
        }
        (Profile::Ns2, true) => {
            Run::<Seconds, true>::new(network, log, Hosts::Simulated).finish(stop, reached)
        }
    }
}

/// How many events between two checks of `stop`.
const STOP_CHECK_INTERVAL: u64 = 1 << 14;
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

/// Whether senders and receivers are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// They are.
    Simulated,
    /// They are external: their packets are put in and taken out.
    Outside,
}

pub(crate) struct Run<C: Clock, const TRACE: bool> {
    pub(crate) world: World<C, TRACE>,
    pub(crate) senders: Senders<C>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) accounts: Accounts,
    oracles: Oracles,
    hosts: Hosts,
    seed: u64,
    pub(crate) events: u64,
    /// Whether the last event has been handled.
    pub(crate) over: bool,
    /// How many events between two looks at what is no event: a power of two. Memory is read ahead for so many at once.
    pub(crate) interval: u64,
    /// Whether a link keeps flows apart.
    pub(crate) by_turns: bool,
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
        let by_turns = world.links.iter().any(Link::has_flow_queues);
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

    fn finish(mut self, stop: &AtomicBool, reached: &AtomicU64) -> Result<Outcome, Failure> {
        self.advance(stop, reached)?;
        self.close()
    }

    /// Handles events until the run is over, or pauses.
    pub(crate) fn advance(&mut self, stop: &AtomicBool, reached: &AtomicU64) -> Result<(), Failure> {
        while let Some(event) = self.world.calendar.pop() {
            self.events += 1;
            if self.events & (self.interval - 1) == 0 {
                if self.events.is_multiple_of(STOP_CHECK_INTERVAL) {
                    if stop.load(Ordering::Relaxed) {
                        return Err(Failure::Stopped);
                    }
                    reached.store(self.world.now.time().0, Ordering::Relaxed);
                }
                if self.interval < STOP_CHECK_INTERVAL {
                    self.read_ahead();
                }
            }
            if !self.handle(event) {
                break;
            }
        }
        Ok(())
    }

    /// Handles an event. False: the run is over, or pauses.
    #[inline]
    pub(crate) fn handle(&mut self, event: Event) -> bool {
        let now = C::from_bits(event.at);
        debug_assert!(now >= self.world.now, "time ran back");
        self.world.now = now;
        self.world.order = event.tie();
        // Nearly every event is one of these: asked for one by one, they are foreseen better than a jump by the kind.
        if let Some(slot) = EventKind::arriving(event.kind()) {
            if self.world.arrive(slot) {
                self.agent(slot);
            }
            return true;
        }
        if let Some((flow, which)) = EventKind::timer(event.kind()) {
            self.timer(flow, which, (now, event.tie()));
            return true;
        }
        match EventKind::unpack(event.kind()) {
            EventKind::Arrive(_) | EventKind::Timer(..) => {}
            EventKind::Departure(link) => self.world.departure(link),
            EventKind::FlowStarts(flow) => {
                let (sender, timers) = self.senders.of(flow);
                sender.start(&mut FlowHost { world: &mut self.world, timers, flow });
            }
            EventKind::FlowStops(flow) => {
                let (sender, timers) = self.senders.of(flow);
                sender.stop(&mut FlowHost { world: &mut self.world, timers, flow });
            }
            EventKind::Sample(m) => {
                let watch = &mut self.watches[m as usize];
                watch.sample(&mut self.world, &self.senders);
                let next = watch.next();
                self.world.schedule(C::at(next), EventKind::Sample(m));
            }
            EventKind::WindowBegins | EventKind::WindowEnds => {
                self.world.catch_up_everywhere();
                self.accounts.cross_boundary(&mut self.world, &self.senders);
            }
            what @ (EventKind::EdgeTick(_) | EventKind::QueueTick(_) | EventKind::HostTick(_)) => {
                self.tick(what)
            }
            EventKind::Signals(path) => self.world.deliver(path),
            EventKind::FlowControl(link, stop) => self.world.obey(link, stop),
            EventKind::RunEnds => {
                self.world.catch_up_everywhere();
                self.over = true;
                return false;
            }
            EventKind::Pause => {
                self.world.pass_gates();
                self.events -= 1;
                return false;
            }
        }
        true
    }

    /// The outcome, after the last event. No part of the function that handles events, which needs its registers.
    #[inline(never)]
    pub(crate) fn close(mut self) -> Result<Outcome, Failure> {
        let queueing =
            (0..).zip(&mut self.world.links).filter_map(|(i, l)| Some((i, l.take_delays()?))).collect();
        let measured = self.world.measures.take().map(|m| Box::new(m.close(queueing)));
        let downloads = std::mem::take(&mut self.world.downloads).into_iter().map(|(_, d)| d).collect();
        let end = self.world.now;
        let ahead =
            self.world.links.iter_mut().flat_map(|l| l.take_records(end)).map(QueueRecord::into_series);
        let mut series: Vec<_> = self.watches.into_iter().map(Watch::into_series).chain(ahead).collect();
        series.sort_by_key(|s| s.monitor);
        series.dedup_by(|more, series| {
            let same = more.monitor == series.monitor;
            if same {
                series.columns.append(&mut more.columns);
            }
            same
        });
        let outcome = self.accounts.close(self.world, self.senders, self.seed, self.events);
        outcome.map(|o| Outcome { series, measured, downloads, ..o }).map_err(Failure::NotConserved)
    }

    /// A packet has reached the end of its route: its receiver or sender gets it.
    #[inline]
    fn agent(&mut self, slot: u32) {
        let t = self.world.packets.get(slot);
        let flow = t.packet.flow.0;
        if self.hosts == Hosts::Outside {
            return self.world.deliver_outside(slot);
        }
        if t.forward() {
            let now = self.world.now;
            if let Some((position, shape)) = self.world.receive(slot, now) {
                self.world.pass_links(slot, position, shape, now);
            }
            return;
        }
        let next = t.segment;
        let f = &mut self.world.flows[flow as usize];
        f.acks_received += 1;
        // Most flows ask for neither, and nothing is copied for them.
        let (found, told);
        let (mut sack, mut more) = (&Sack::NONE, None);
        let mut flags = Flags::NONE;
        if t.packet.size > f.header {
            // An option makes it longer.
            found = self.world.packets.sack(slot);
            sack = &found;
        }
        if f.care != Care::Plain {
            flags = t.flags();
            if f.care == Care::All {
                if let Some(m) = &mut f.marker {
                    m.marker.observe(self.world.now.time(), &t.packet, Direction::Reverse);
                }
                let (measured, counted) = (f.delays.is_some(), f.tells_bytes());
                if measured || counted {
                    let packets = &self.world.packets;
                    told = More {
                        delays: if measured { packets.delays(slot) } else { Delays::default() },
                        bytes: if counted { packets.byte_option(slot) } else { None },
                    };
                    more = Some(&told);
                }
            }
        }
        self.world.packets.remove(slot);
        let (sender, timers) = self.senders.of(flow);
        let host = &mut FlowHost { world: &mut self.world, timers, flow };
        sender.on_ack(Ack { next, sack, flags, more }, host);
    }

    /// A mechanism's tick; the oracle first tells it what it asked for.
    fn tick(&mut self, what: EventKind) {
        for passing in self.oracles.before(what) {
            let who = match what {
                EventKind::EdgeTick(e) => Target::Edge(e),
                EventKind::QueueTick(l) => Target::Queue(l),
                EventKind::HostTick(f) => Target::Flow(f),
                _ => continue,
            };
            let flow = passing.flow as usize;
            let now = self.world.now;
            let f = &self.world.flows[flow];
            let done = f.completed.is_some_and(|at| C::at(at) <= now);
            let open = now >= C::at(f.start) && !done;
            let cwnd = self.senders.window(passing.flow).filter(|_| open).map_or(0.0, |(cwnd, _)| cwnd);
            self.world.tell(who, &passing.window(cwnd));
        }
        self.world.tick(what);
    }

    fn timer(&mut self, flow: u32, which: TimerKind, due: Due<C>) {
        let (sender, timers) = self.senders.of(flow);
        let expiry = match which {
            TimerKind::Send => timers[TimerKind::Send as usize].on_event(due),
            TimerKind::Retransmit => timers[TimerKind::Retransmit as usize].on_event(due),
            TimerKind::DelayedAck => self.world.flows[flow as usize].delayed_ack.on_event(due),
        };
        match expiry {
            Expiry::Due if which == TimerKind::DelayedAck => self.world.send_delayed_ack(flow),
            Expiry::Due => sender.on_timer(which, &mut FlowHost { world: &mut self.world, timers, flow }),
            Expiry::Rearm(due) => self.world.requeue(due, EventKind::Timer(flow, which)),
            Expiry::Stale => {}
        }
    }
}

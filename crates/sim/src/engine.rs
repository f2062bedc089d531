//! A run: [builds](build) the world from the network, handles events until the end, returns the outcome.

mod build;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use inprofile_core::packet::Direction;

use crate::account::Accounts;
use crate::calendar::Event;
use crate::clock::{Clock, Exact};
use crate::ends::FlowHost;
use crate::event::EventKind;
use crate::flow::Care;
use crate::monitor::Watch;
use crate::network::{Network, Profile, Target};
use crate::ns2::Seconds;
use crate::outcome::Outcome;
use crate::record::QueueRecord;
use crate::run_log::Log;
use crate::senders::Senders;
use crate::signals::Oracles;
use crate::tcp::{Ack, Delays, Flags, More, Sack, TimerKind};
use crate::timer::{Due, Expiry};
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

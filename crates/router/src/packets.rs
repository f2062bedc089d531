//! The packet thread: waits for frames, takes them in, sends what is due, and answers commands in between.

mod request;

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use inprofile_core::units::{Duration, Time};
use inprofile_live::io::afpacket::{AfPacket, Oddities};
use inprofile_live::io::{Io, Port};

use crate::config::{Config, Fail};
use crate::log::Log;
use crate::presence::Standing;
use crate::router::{Next, Router};
use crate::snapshot::{Builder, PortState, Snapshot};

pub use request::{Request, Waiting, ask};

/// The longest that a command waits while no frame arrives. Each poll costs an idle machine some 60 µs of CPU.
const LOOK: Duration = Duration::from_millis(25);
/// How often accounts are checked, and the ports' MTUs looked up.
const AUDIT: Duration = Duration::from_millis(1000);
/// The longest that queued packets may take to drain at the end.
const LONGEST_DRAIN: Duration = Duration::from_millis(5000);

/// After this time a run ends as if told to stop, and has to be started again: picoseconds in 64 bits last 213 days.
const LONGEST_RUN: Time = Time(200 * 86_400 * inprofile_core::units::PS_PER_S);

/// A driver that also counts oddities of frames, and whose ports' interfaces may come and go.
pub trait Ports: Io + Send {
    /// The oddities counted at this port.
    fn odd(&self, port: Port) -> Oddities;

    /// The MTU of its interface now, if it is known.
    fn mtu(&self, port: Port) -> Option<usize>;

    /// Binds the port to the interface of this index, or to none.
    ///
    /// # Errors
    /// The system's error; the port is then bound to none.
    fn bind(&mut self, port: Port, index: Option<u32>) -> io::Result<()>;
}

impl Ports for AfPacket {
    fn odd(&self, port: Port) -> Oddities {
        self.oddities(port)
    }

    fn mtu(&self, port: Port) -> Option<usize> {
        AfPacket::mtu(self, port)
    }

    fn bind(&mut self, port: Port, index: Option<u32>) -> io::Result<()> {
        AfPacket::bind(self, port, index)
    }
}

/// The interface of a port, and how often it disappeared.
#[derive(Clone, Debug)]
struct Attachment {
    standing: Standing,
    /// How often it was taken away while it was in use.
    taken_away: u64,
}

/// Requests of other threads; each is answered, unless the requester has withdrawn it.
#[derive(Debug)]
pub enum Command {
    /// Reconfigure from this; the answer is why that failed, if it did.
    Reload(Box<Config>, Request<Result<(), String>>),
    /// Let everything pass (true), or stop doing so.
    Bypass(bool, Request<()>),
    /// Take a snapshot of everything.
    Snapshot(Request<Box<Snapshot>>),
    /// The interface of a port has come or gone; the answer is the system's error, if it can't be bound.
    Port(Port, Standing, Request<Result<(), String>>),
    /// Send what waits, and end; it is answered before it ends.
    Stop(Request<()>),
}

/// Counts the rounds of the loop, for the watchdog.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// One more round.
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Rounds so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Packets that still waited when the time to drain was over.
    pub left_behind: u64,
}

/// Values that take time to drop.
type Waste = Box<dyn Send>;

/// A reload that another thread prepares, so that no packet waits for it.
#[derive(Debug)]
struct Preparing {
    asked: Request<Result<(), String>>,
    next: Receiver<Result<Next, String>>,
    /// Values that are no longer used, for that thread to drop.
    unused: Sender<Waste>,
}

struct Loop<'a, P: ?Sized> {
    io: &'a mut P,
    router: Option<Router>,
    log: Log,
    seed: u64,
    bypass: bool,
    attachments: [Attachment; 2],
    preparing: Option<Preparing>,
    /// Requests for snapshots.
    lookers: VecDeque<Request<Box<Snapshot>>>,
    /// The snapshot for the first of them.
    building: Option<Builder>,
    audit: Time,
    /// The time that the router has reached: every frame that arrived by then has been handled.
    until: Time,
}

/// Runs until it is told to stop.
///
/// # Errors
/// The system's error; or the internal fault, if `fail` is closed.
pub fn run<P: Ports + ?Sized>(
    io: &mut P,
    router: Router,
    standings: [Standing; 2],
    seed: u64,
    commands: &Receiver<Command>,
    pulse: &Pulse,
    log: Log,
) -> io::Result<Ended> {
    let mut this = Loop::new(io, router, standings, seed, log);
    let mut drain_until = None;
    loop {
        match commands.try_recv() {
            Ok(Command::Stop(asked)) => {
                if asked.take() {
                    asked.answer(());
                    drain_until = drain_until.or(Some(this.io.now() + LONGEST_DRAIN));
                }
            }
            Ok(command) => {
                this.obey(command)?;
                continue;
            }
            // Nobody is left to send commands.
            Err(TryRecvError::Disconnected) => {
                drain_until = drain_until.or(Some(this.io.now() + LONGEST_DRAIN))
            }
            Err(TryRecvError::Empty) => {}
        }
        if drain_until.is_none() && this.io.now() > LONGEST_RUN {
            this.log.warn("clock", "200 days are over: draining the queues, then ending; restart it", &[]);
            drain_until = Some(this.io.now() + LONGEST_DRAIN);
        }
        if let Some(until) = drain_until {
            let waiting = this.router.as_ref().map_or(0, Router::waiting);
            if waiting == 0 || this.io.now() >= until {
                this.io.flush()?;
                return Ok(Ended { left_behind: waiting });
            }
        }
        this.take_over(false)?;
        this.look();
        this.round(drain_until.is_none())?;
        pulse.beat();
    }
}

impl<'a, P: Ports + ?Sized> Loop<'a, P> {
    fn new(io: &'a mut P, router: Router, standings: [Standing; 2], seed: u64, log: Log) -> Loop<'a, P> {
        let (audit, until) = (Time::ZERO, Time::ZERO);
        let attachments = standings.map(|standing| Attachment { standing, taken_away: 0 });
        let (lookers, building, preparing) = (VecDeque::new(), None, None);
        let (router, bypass) = (Some(router), false);
        Loop { io, router, log, seed, bypass, attachments, preparing, lookers, building, audit, until }
    }

    fn obey(&mut self, command: Command) -> io::Result<()> {
        match command {
            // Taken once it is prepared: until then it can be withdrawn.
            Command::Reload(config, asked) if !asked.is_withdrawn() => self.prepare(*config, asked),
            Command::Bypass(on, asked) if asked.take() => {
                self.bypass = on;
                if let Some(router) = &mut self.router {
                    router.set_bypass(on);
                }
                asked.answer(());
            }
            Command::Snapshot(asked) if asked.take() => self.lookers.push_back(asked),
            Command::Port(port, standing, asked) if asked.take() => asked.answer(self.change(port, standing)),
            // Withdrawn; or a stop, which `run` handles.
            _ => {}
        }
        Ok(())
    }

    /// Builds the next slice of a snapshot that was asked for, between packets.
    fn look(&mut self) {
        let Some(router) = &self.router else { return };
        if self.building.is_none() && !self.lookers.is_empty() {
            let ports = [0, 1].map(|p| self.port(p, &router.config.ports[p]));
            self.building = Some(Builder::begin(router, self.until, self.bypass, ports));
        }
        if self.building.as_mut().is_some_and(|b| b.go_on(router, self.until))
            && let (Some(asked), Some(building)) = (self.lookers.pop_front(), self.building.take())
        {
            asked.answer(building.finish());
        }
    }

    /// The present state of a port.
    fn port(&self, port: Port, interface: &str) -> PortState {
        let Attachment { standing, taken_away } = self.attachments[port].clone();
        let (counts, oddities) = (self.io.counts(port), self.io.odd(port));
        PortState { interface: interface.to_owned(), counts, oddities, standing, taken_away, link: None }
    }

    /// Unbinds a port from its interface, or binds it to one.
    fn change(&mut self, port: Port, standing: Standing) -> Result<(), String> {
        let bound = self.io.bind(port, standing.in_use()).map_err(|e| e.to_string());
        // Another interface may have another MTU.
        self.audit = self.audit.min(self.io.now());
        let place = &mut self.attachments[port];
        place.taken_away += u64::from(place.standing.in_use().is_some() && standing == Standing::Away);
        place.standing = match (standing, &bound) {
            (Standing::InUse(index), Err(e)) => Standing::Unfit(index, e.clone()),
            (standing, _) => standing,
        };
        bound
    }

    /// Has a reload prepared by another thread. If that fails, the requester is told why, and the configuration in force stays.
    fn prepare(&mut self, config: Config, asked: Request<Result<(), String>>) {
        let Some(router) = self.router.as_ref().filter(|_| self.preparing.is_none()) else {
            return asked.answer(Err("another reload is being prepared".into()));
        };
        let (old, layer, seed) = (Arc::clone(&router.config), self.io.layer(), self.seed);
        let ((ready, next), (unused, to_drop)) = (channel(), channel());
        let work = move || {
            let work = catch_unwind(AssertUnwindSafe(|| Next::prepare(&old, config, layer, seed)));
            drop(old);
            // At the end nobody takes it any more.
            let told = ready.send(work.map_err(|panic| broke_off(panic.as_ref())));
            if told.is_ok() {
                drop(to_drop.recv());
            }
        };
        match std::thread::Builder::new().name("reload".into()).spawn(work) {
            Ok(_) => self.preparing = Some(Preparing { asked, next, unused }),
            Err(e) => asked.answer(Err(format!("no thread to prepare it: {e}"))),
        }
    }

    /// Adopts a prepared reload if it is ready; with `wait`, waits until it is.
    fn take_over(&mut self, wait: bool) -> io::Result<()> {
        let Some(preparing) = &self.preparing else { return Ok(()) };
        let ended = || Err("the thread that prepared it has ended".to_owned());
        let next = if wait {
            preparing.next.recv().unwrap_or_else(|_| ended())
        } else {
            match preparing.next.try_recv() {
                Err(TryRecvError::Empty) => return Ok(()),
                next => next.unwrap_or_else(|_| ended()),
            }
        };
        let Some(Preparing { asked, unused, .. }) = self.preparing.take() else { return Ok(()) };
        let next = match next {
            Ok(next) => next,
            Err(fault) => {
                asked.answer(Err(fault));
                return Ok(());
            }
        };
        if !asked.take() {
            // Withdrawn: the requester was told that it failed.
            let _ = unused.send(Box::new(next));
            return Ok(());
        }
        let before = self.io.now();
        let outcome = self.adopt(next, &unused);
        let held = self.io.now().since(before);
        self.log.info("reload", "packets were held for it", &[("microseconds", (held.0 / 1_000_000).into())]);
        asked.answer(outcome.clone());
        outcome.or_else(|fault| self.failed(fault))
    }

    /// Reconfigures. If a mechanism panics, queued packets are lost, and a new router with the previous configuration takes
    /// over, so that there is one to fail open or closed.
    fn adopt(&mut self, next: Next, unused: &Sender<Waste>) -> Result<(), String> {
        let Some(router) = self.router.take() else { return Err("there is no router".into()) };
        let (before, failure, since) =
            (Arc::clone(&router.config), router.failure.clone(), router.since_failure);
        let (layer, seed, now) = (self.io.layer(), self.seed, self.until);
        let (router, outcome) = match catch_unwind(AssertUnwindSafe(|| router.adopt(next, now))) {
            Ok((router, old)) => {
                // If that thread has ended, it is dropped here.
                let _ = unused.send(Box::new(old));
                (router, Ok(()))
            }
            Err(panic) => {
                let mut router = Router::new(before, layer, seed);
                router.set_bypass(self.bypass);
                (router.failure, router.since_failure) = (failure, since);
                (router, Err(broke_off(panic.as_ref())))
            }
        };
        self.router = Some(router);
        outcome
    }

    /// Waits, receives, sends. While the queues drain (not `open`) it receives nothing.
    fn round(&mut self, open: bool) -> io::Result<()> {
        let Some(router) = &mut self.router else { return Err(io::Error::other("a reload broke off")) };
        let soon = if self.lookers.is_empty() { self.io.now() + LOOK } else { self.io.now() };
        let until = router.due().map_or(soon, |due| due.min(soon));
        self.io.wait(Some(until))?;
        let (layer, now) = (self.io.layer(), self.io.now());
        let audit = now >= self.audit;
        if audit {
            router.set_mtus([self.io.mtu(0), self.io.mtu(1)]);
        }
        router.set_present(now);
        let (io, reached) = (&mut *self.io, &mut self.until);
        let work = catch_unwind(AssertUnwindSafe(|| -> io::Result<Result<(), String>> {
            // Late or not: decisions are taken in the order, and with the times, of frames' arrivals and of deadlines.
            if open && router.looks_ahead() {
                router.look_anew();
                io.peek(&mut |port, frame| router.foresee(port, frame));
            }
            *reached = if open {
                io.receive(&mut |came, port, frame| router.arrive(came, port, layer, frame))?.until
            } else {
                now.max(*reached)
            };
            router.advance(*reached);
            Ok(if audit && router.failure.is_none() { router.audit() } else { Ok(()) })
        }));
        if audit {
            self.audit = now + AUDIT;
        }
        let fault = match work {
            Ok(Ok(fine)) => fine.err(),
            Ok(Err(e)) => return Err(e),
            Err(panic) => Some(why(panic.as_ref())),
        };
        if let Some(fault) = fault {
            self.failed(fault)?;
        }
        self.send()
    }

    /// After a fault, the mechanisms can no longer be trusted.
    fn failed(&mut self, fault: String) -> io::Result<()> {
        let Some(router) = &mut self.router else { return Ok(()) };
        let open = router.config.fail == Fail::Open;
        self.log.error(
            "failed",
            "the mechanisms are out of use until a restart",
            &[("why", fault.as_str().into()), ("fail", router.config.fail.name().into())],
        );
        router.failure = Some(fault.clone());
        if open { Ok(()) } else { Err(io::Error::other(format!("{fault}; fail = closed"))) }
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(router) = &mut self.router else { return Ok(()) };
        for (port, lane) in router.lanes.iter_mut().enumerate() {
            if lane.leaving.is_empty() {
                continue;
            }
            let now = self.io.now();
            lane.leaving.times().iter().for_each(|due| lane.lateness.record(now.since(*due)));
            self.io.send_all(1 - port, &lane.leaving)?;
            lane.leaving.clear();
        }
        Ok(())
    }
}

fn broke_off(panic: &(dyn std::any::Any + Send)) -> String {
    format!("the reload broke off: {}", why(panic))
}

/// The message of a panic.
fn why(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

#[cfg(test)]
mod tests;

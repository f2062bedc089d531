//! `inprofiled run` with `datapath = "kernel"`: sets everything up, gives up privileges, and then only minds: commands, signals, ports that go
//! and come back.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use inprofile_live::io::PortCounts;
use inprofile_live::io::afpacket::{Oddities, claim};
use inprofile_live::io::link::Link;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

use super::attach::{are_filters, attach, by_tcx, detach};
use super::maps::Maps;
use super::pins::Pins;
use super::shown;
use crate::config::{self, Config};
use crate::hub::Hub;
use crate::isolation::Isolation;
use crate::link_loss::LinkLoss;
use crate::log::Log;
use crate::notify::Notify;
use crate::offload::{self, Offloads};
use crate::packets::{Command, Ended, Pulse};
use crate::presence::{Standing, fault, trouble};
use crate::privileges;
use crate::run::{Opened, SlowTask, SlowTasks, open_sockets, status};
use crate::snapshot::PortState;
use crate::sys::{Signals, monotonic};
use crate::{control, ports, serve};

/// How often ports are looked at, and the watchdog is told that commands are answered.
const LOOK: Duration = Duration::from_millis(250);

/// A port.
struct Port {
    name: String,
    claim: claim::Claim,
    standing: Standing,
    taken_away: u64,
    link: Option<Link>,
}

/// What is set up, in the order in which it is taken down.
struct Keeper {
    config: Config,
    maps: Maps,
    pins: Pins,
    /// Else programs are filters.
    tcx: bool,
    ports: [Port; 2],
    closed: Isolation,
    offloads: Offloads,
    link_loss: LinkLoss,
    log: Log,
    started: Instant,
}

/// The interfaces, closed to the machine and forwarding; or all as it was.
fn forward(config: &Config, pins: &Pins, tcx: bool, indices: [u32; 2]) -> Result<Maps, String> {
    let mut maps = Maps::load(config, Some(&pins.folder))?;
    let before = maps.state()?;
    maps.apply(config, monotonic())?;
    for (port, name) in config.ports.iter().enumerate() {
        attach(&mut maps, port, name, pins, tcx)?;
    }
    // Frames leave by the other port. Only now: with one program in place nothing is forwarded.
    let out = [indices[1], indices[0]];
    maps.change(|s| (s.out, s.mtu, s.on, s.bypass) = (out, mtus(indices), 1, 0))?;
    if before.bypass != 0 {
        eprintln!("inprofiled: the bypass that was on is off");
    }
    Ok(maps)
}

/// The MTUs of the interfaces that frames leave by.
fn mtus(indices: [u32; 2]) -> [u32; 2] {
    let of = |index| Netlink::open().and_then(|n| n.link(index)).ok().and_then(|l| l.mtu).unwrap_or(0);
    [of(indices[1]), of(indices[0])]
}

/// Runs until it is told to stop.
///
/// # Errors
/// What can't be set up, or the failure, in words.
pub fn run(config: Config, file: PathBuf, fix_offloads: bool) -> Result<Ended, String> {
    let words = |e: io::Error| e.to_string();
    let tcx = by_tcx(config.attach)?;
    let signals = Signals::take().map_err(words)?;
    control::look(&config.socket).map_err(words)?;
    let to_switch =
        if config.fix_offloads { offload::look(&config.ports, true).map_err(words)? } else { Vec::new() };
    let Opened { control: listener, mut socket, metrics, log: to, accounts } =
        open_sockets(&config).map_err(words)?;
    let mut claims = Vec::new();
    for name in &config.ports {
        let named = |e: io::Error| format!("interface `{name}`: {e}");
        let index = interface_index(name).map_err(named)?;
        let claim = claim::Claim::new().and_then(|claim| claim.take(index).map(|()| claim));
        claims.push((index, claim.map_err(named)?));
    }
    let indices = [claims[0].0, claims[1].0];
    let note = config.socket.with_extension("offloads");
    let offloads = offload::switch_off(&config.ports, config.fix_offloads, &to_switch, &note, accounts.user)
        .map_err(words)?;
    let closed = Isolation::start(&config.ports, indices.map(Some)).map_err(words)?;
    let note = config.socket.with_extension("links");
    let pass_on = config.link_loss == config::LinkLoss::PassOn;
    let link_loss = LinkLoss::start(pass_on, &config.ports, &note, accounts.user).map_err(words)?;
    let pins = Pins::open(&config.pins, &config.ports)?;
    let found = pins.taken();
    let maps = forward(&config, &pins, tcx, indices).inspect_err(|_| {
        // What a process before us left goes on forwarding by what it was told.
        if !found && let Err(e) = pins.remove() {
            eprintln!("inprofiled: {} stays: {e}", pins.folder.display());
        }
    })?;
    let earlier = pins.remove_earlier(&config.ports);
    privileges::drop(&accounts, &privileges::KEPT).map_err(|e| format!("giving up privileges: {e}"))?;
    let (log, log_thread) = Log::start(config.log.level, to).map_err(words)?;
    let notify = Arc::new(Notify::from_environment(log.clone()));
    match earlier {
        Ok(0) => {}
        Ok(pairs) => log.info("start", "what was pinned for these ports before is taken away", &[("pairs", pairs.into())]),
        Err(e) => log.error("start", "what was pinned for these ports before stays, and comes back at the end: inprofiled release PORT takes it away", &[("why", e.to_string().into())]),
    }
    for warning in ports::cut_off(&config.ports) {
        log.warn("port", &warning.text, &[("interface", warning.interface.as_str().into())]);
    }
    let (commands, queue) = channel();
    let hub = Arc::new(Hub::new(commands, file, fix_offloads, config.clone(), log.clone()));
    serve::start(listener, accounts, metrics, Arc::clone(&hub)).map_err(words)?;
    let tasks = SlowTasks::start(Arc::clone(&hub), Arc::clone(&notify)).map_err(words)?;
    hub.tell_roles(&config);
    let text =
        if found { "the kernel's datapath is taken over" } else { "packets are forwarded in the kernel" };
    let [inside, outside] = config.ports.each_ref().map(|p| p.as_str().into());
    log.info("start", text, &[("inside", inside), ("outside", outside)]);
    let mut claims = claims.into_iter();
    let ports = config.ports.each_ref().map(|name| {
        let (index, claim) = claims.next().map_or_else(|| (0, None), |(i, c)| (i, Some(c)));
        claim.map(|claim| Port {
            name: name.clone(),
            claim,
            standing: Standing::InUse(index),
            taken_away: 0,
            link: None,
        })
    });
    let [Some(inside), Some(outside)] = ports else { return Err("a port is missing".into()) };
    let started = Instant::now();
    let mut keeper = Keeper {
        config,
        maps,
        pins,
        tcx,
        ports: [inside, outside],
        closed,
        offloads,
        link_loss,
        log: log.clone(),
        started,
    };
    let pulse = Pulse::default();
    let outcome = std::thread::scope(|scope| {
        let (keeper, told, beat) = (&mut keeper, &hub, &pulse);
        let (sees, seen) = channel();
        let keeping = scope.spawn(move || keeper.keep(&queue, told, beat, &sees));
        let minded = mind(&signals, &notify, &hub, &tasks, &pulse, &seen, || keeping.is_finished());
        hub.stop();
        let kept =
            keeping.join().unwrap_or_else(|_| Err("the thread that minds the kernel's datapath died".into()));
        minded.and(kept)
    });
    keeper.end(&outcome);
    if let Err(e) = socket.remove() {
        log.warn("stop", "the control socket stays", &[("why", e.to_string().into())]);
    }
    notify.tell("STOPPING=1");
    drop((keeper, hub, tasks, notify, log));
    let patience = Instant::now() + Duration::from_millis(200);
    while !log_thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    outcome.map(|()| Ended { left_behind: 0 })
}

/// Handles signals, and tells the service manager what is the matter and the watchdog whether commands are answered, until the keeper has
/// ended.
fn mind(
    signals: &Signals,
    notify: &Notify,
    hub: &Hub,
    tasks: &SlowTasks,
    pulse: &Pulse,
    troubles: &Receiver<Option<String>>,
    ended: impl Fn() -> bool,
) -> Result<(), String> {
    let mut trouble = None;
    let now = |trouble: &Option<String>| status(hub, trouble.clone(), "packets are forwarded in the kernel");
    let mut told = now(&trouble);
    notify.tell(&format!("READY=1\nSTATUS={told}"));
    let every = notify.watchdog().map_or(LOOK, |w| (w / 3).min(LOOK));
    let mut last = None;
    while !ended() {
        match signals.next(every.as_millis() as i32).map_err(|e| e.to_string())? {
            Some(libc::SIGHUP) => tasks.ask(SlowTask::Reload),
            Some(libc::SIGUSR1) => tasks.ask(SlowTask::ReopenLog),
            Some(_) => hub.stop(),
            None => {}
        }
        trouble = troubles.try_iter().last().unwrap_or(trouble);
        let status = now(&trouble);
        if status != told {
            notify.tell(&format!("STATUS={status}"));
            told = status;
        }
        let beats = pulse.count();
        if last != Some(beats) {
            last = Some(beats);
            if notify.watchdog().is_some() {
                notify.tell("WATCHDOG=1");
            }
        }
    }
    Ok(())
}

impl Keeper {
    /// Obeys commands and looks at the ports, and says what is the matter with them, until it is told to stop.
    fn keep(
        &mut self,
        commands: &Receiver<Command>,
        hub: &Hub,
        pulse: &Pulse,
        troubles: &Sender<Option<String>>,
    ) -> Result<(), String> {
        let mut look = Instant::now();
        loop {
            if Instant::now() >= look {
                self.look()?;
                hub.set_links(self.ports.each_ref().map(|p| p.link.clone()));
                let seen = self.ports.iter().map(|p| (p.name.as_str(), &p.standing, p.link.as_ref()));
                // Nobody hears it who has ended.
                let _ = troubles.send(trouble(seen));
                look = Instant::now() + LOOK;
            }
            pulse.beat();
            match commands.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(Command::Stop(asked)) => {
                    if asked.take() {
                        asked.answer(());
                        return Ok(());
                    }
                }
                Ok(command) => self.obey(command)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn obey(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Reload(config, asked) if asked.take() => {
                let before = Instant::now();
                let outcome = self.maps.apply(&config, monotonic());
                if outcome.is_ok() {
                    self.config = *config;
                    let took = before.elapsed().as_micros() as u64;
                    self.log.info(
                        "reload",
                        "the other bank is in force; no packet was held",
                        &[("microseconds", took.into())],
                    );
                }
                asked.answer(outcome);
            }
            Command::Bypass(on, asked) if asked.take() => {
                self.maps.change(|s| s.bypass = on.into())?;
                asked.answer(());
            }
            Command::Snapshot(asked) if asked.take() => {
                let ports = self.ports.each_ref().map(|p| PortState {
                    interface: p.name.clone(),
                    counts: PortCounts::default(),
                    oddities: Oddities::default(),
                    standing: p.standing.clone(),
                    taken_away: p.taken_away,
                    link: None,
                });
                let uptime = self.started.elapsed().as_secs_f64();
                asked.answer(shown::snapshot(&mut self.maps, &self.config, uptime, ports)?);
            }
            // Withdrawn; or of the other datapath.
            _ => {}
        }
        Ok(())
    }

    /// Lets go of interfaces that have gone, and takes up those of their name that have come.
    fn look(&mut self) -> Result<(), String> {
        for port in 0..2 {
            let named = interface_index(&self.ports[port].name).ok();
            let (in_use, name) = (self.ports[port].standing.in_use(), self.ports[port].name.clone());
            let interface = ("interface", name.as_str().into());
            if let Some(index) = in_use.filter(|index| named == Some(*index)) {
                if let Err(e) = claim::shared(index)
                    && e.kind() == io::ErrorKind::AddrInUse
                {
                    self.leave(port, Standing::Unfit(index, e.to_string()))?;
                    self.log.error(
                        "port",
                        "out of use until this is put right",
                        &[interface, ("why", e.to_string().into())],
                    );
                }
            } else {
                if in_use.is_some() {
                    self.leave(port, Standing::Away)?;
                    self.ports[port].taken_away += 1;
                    self.closed.leave(port, &self.log);
                    let text = "the interface was taken away: what should leave by it is refused until one of its name is there";
                    self.log.warn("port", text, std::slice::from_ref(&interface));
                }
                let found = named.map_or(Standing::Away, |index| self.take_up(port, index));
                if found != self.ports[port].standing {
                    match found.why() {
                        None => {
                            self.log.info("port", "the interface is there again, and in use", &[interface])
                        }
                        Some(why) => self.log.error(
                            "port",
                            "it stays out of use until this is put right",
                            &[interface, ("why", why.into())],
                        ),
                    }
                    self.ports[port].standing = found;
                }
            }
            self.closed.look(port, &self.log);
            self.look_at_filters(port)?;
            self.look_at_link(port);
        }
        let indices = self.ports.each_ref().map(|p| p.standing.in_use().unwrap_or(0));
        let (out, mtu, state) = ([indices[1], indices[0]], mtus(indices), self.maps.state()?);
        if (state.out, state.mtu) != (out, mtu) {
            self.maps.change(|s| (s.out, s.mtu) = (out, mtu))?;
        }
        self.link_loss
            .look(self.ports.each_ref().map(|p| p.standing.there().zip(p.link.as_ref())), &self.log);
        Ok(())
    }

    /// Nothing comes in by a port any more, nor leaves by it.
    fn leave(&mut self, port: usize, standing: Standing) -> Result<(), String> {
        self.maps.change(|s| s.out[1 - port] = 0)?;
        detach(port, self.ports[port].standing.in_use(), &self.pins).map_err(|e| e.to_string())?;
        self.ports[port].claim.leave().map_err(|e| e.to_string())?;
        self.ports[port].standing = standing;
        Ok(())
    }

    fn take_up(&mut self, port: usize, index: u32) -> Standing {
        let name = self.ports[port].name.clone();
        let taken = self.ports[port].claim.take(index).and_then(|()| self.closed.take_up(port, index));
        let taken = taken.and_then(|()| {
            if self.config.fix_offloads { self.offloads.take_up(&name).map(drop) } else { Ok(()) }
        });
        let attached = taken
            .map_err(|e| e.to_string())
            .and_then(|()| attach(&mut self.maps, port, &name, &self.pins, self.tcx));
        attached.map_or_else(|e| Standing::Unfit(index, e), |()| Standing::InUse(index))
    }

    /// Puts programs back that are filters, and which somebody has taken away or come before.
    fn look_at_filters(&mut self, port: usize) -> Result<(), String> {
        let Some(index) = self.ports[port].standing.in_use().filter(|_| !self.tcx) else { return Ok(()) };
        // It is going just now where the kernel does not tell: seen with the next look.
        if are_filters(index).unwrap_or(true) {
            return Ok(());
        }
        let name = self.ports[port].name.clone();
        let interface = ("interface", name.as_str().into());
        match attach(&mut self.maps, port, &name, &self.pins, self.tcx) {
            Ok(()) => self.log.warn(
                "port",
                "somebody took the programs away that forward its frames (tc): they are there again",
                &[interface],
            ),
            Err(why) => {
                self.leave(port, Standing::Unfit(index, why.clone()))?;
                self.log.error(
                    "port",
                    "out of use until this is put right",
                    &[interface, ("why", why.into())],
                );
            }
        }
        Ok(())
    }

    fn look_at_link(&mut self, port: usize) {
        let now =
            self.ports[port].standing.there().and_then(|i| Netlink::open().and_then(|n| n.link(i)).ok());
        let was = std::mem::replace(&mut self.ports[port].link, now);
        let (was, now) = (was.as_ref().and_then(fault), self.ports[port].link.as_ref().and_then(fault));
        let interface = ("interface", self.ports[port].name.as_str().into());
        match (was, now) {
            (Some(_), None) => self.log.info("link", "the link is up again", &[interface]),
            (was, Some(fault)) if was.as_ref() != Some(&fault) => self.log.warn("link", &fault, &[interface]),
            _ => {}
        }
    }

    /// Takes everything down; after a fault the kernel goes on by what it was told, until the next start takes it over.
    fn end(&mut self, outcome: &Result<(), String>) {
        let told = |what: &str, e: io::Error| self.log.error("stop", what, &[("why", e.to_string().into())]);
        if let Err(e) = outcome {
            self.closed.leave_closed();
            let text = "ended by a fault; the kernel goes on forwarding and policing until the next start or `inprofiled release`";
            self.log.error("stop", text, &[("why", e.as_str().into())]);
            return;
        }
        if let Err(e) = self.pins.remove() {
            told("the kernel's datapath stays", e);
            self.closed.leave_closed();
            return;
        }
        if let Err(e) = self.closed.end() {
            told("a port stays closed to the machine's own IP stack", e);
        }
        if let Err(e) = self.offloads.restore() {
            told("offloads could not be restored", e);
        }
        if let Err(e) = self.link_loss.end() {
            told("a link could not be switched on again", e);
        }
        self.log.info("stop", "ended", &[("left_behind", 0.into())]);
    }
}

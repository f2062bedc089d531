//! `inprofiled run`: opens everything, gives up privileges, starts the threads, and then minds signals and the watchdog.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use inprofile_config::Severity;
use inprofile_core::registry::Registry;
use inprofile_live::io::Io;
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::sys::{self as live, Clock};
use serde_json::{Value as Json, json};

use crate::config::{self, Config};
use crate::log::Log;
use crate::notify::Notify;
use crate::offload::{self, Offloads};
use crate::packets::{self, Asked, Command, Ended, Pulse};
use crate::presence::Presence;
use crate::privileges::{self, People};
use crate::router::Router;
use crate::snapshot::Snapshot;
use crate::sys::Signals;
use crate::{control, metrics};

/// Link layer and VLAN tags around a full packet.
const AROUND: u32 = 22;
/// Frames that the kernel may keep for a port.
const RING: u32 = 4096;
/// How long the packet thread may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the watchdog's answer is considered, if it doesn't ask for more.
const LOOK: Duration = Duration::from_millis(250);

/// How many configurations were taken since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    /// Taken.
    pub done: u64,
    /// Refused; the one before was kept.
    pub refused: u64,
    /// Why the last was refused, if it was.
    pub error: Option<String>,
}

/// What the threads beside the packets share.
#[derive(Debug)]
pub struct Hub {
    commands: Mutex<Sender<Command>>,
    /// The file, and what of it can only change with a restart.
    file: PathBuf,
    running: Mutex<Config>,
    reloads: Mutex<Reloads>,
    /// Logs.
    pub log: Log,
}

/// A lock whose holder panicked holds what it held: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Sends a command and waits for its answer; one that isn't taken up in time is withdrawn.
    fn command<T>(&self, make: impl FnOnce(Asked<T>) -> Command) -> Result<T, String> {
        let (asked, waiting) = packets::ask();
        lock(&self.commands).send(make(asked)).map_err(|_| "the packet loop has ended".to_owned())?;
        waiting.answer(PATIENCE)
    }

    /// The router now.
    ///
    /// # Errors
    /// If the packet thread doesn't answer.
    pub fn snapshot(&self) -> Result<Box<Snapshot>, String> {
        self.command(Command::Snapshot)
    }

    /// Reloads so far.
    #[must_use]
    pub fn reloads(&self) -> Reloads {
        lock(&self.reloads).clone()
    }

    /// Reads the file again and sets the router up from it; what is running stays if anything is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub fn reload(&self) -> Result<(), String> {
        // One at a time: the lock is held to the end.
        let mut running = lock(&self.running);
        let outcome = self.try_reload(&mut running);
        let mut reloads = lock(&self.reloads);
        match &outcome {
            Ok(()) => {
                reloads.done += 1;
                reloads.error = None;
                self.log.info("reload", "the new configuration is in force", &[]);
            }
            Err(e) => {
                reloads.refused += 1;
                reloads.error = Some(e.clone());
                self.log.error(
                    "reload",
                    "refused; the configuration before is kept",
                    &[("why", e.as_str().into())],
                );
            }
        }
        outcome
    }

    fn try_reload(&self, running: &mut Config) -> Result<(), String> {
        let (new, _) = read(&self.file, &crate::router::registry(), Some(&self.log))?;
        let fixed: [(&str, bool); 8] = [
            ("inside, outside", new.ports == running.ports),
            ("packet", new.packet == running.packet),
            ("flows", new.flows == running.flows),
            ("user", new.user == running.user),
            ("control", new.socket == running.socket && new.group == running.group),
            ("metrics", new.metrics == running.metrics),
            ("log.file", new.log.file == running.log.file),
            ("fix_offloads", new.fix_offloads == running.fix_offloads),
        ];
        let changed: Vec<&str> = fixed.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect();
        if !changed.is_empty() {
            let file = self.file.display();
            return Err(format!(
                "{file}: {} can't change while it runs\n  restart inprofiled, or put back what was there",
                changed.join("; ")
            ));
        }
        self.command(|asked| Command::Reload(Box::new(new.clone()), asked))??;
        self.log.set_level(new.log.level);
        *running = new;
        Ok(())
    }

    /// Answers a request that came over the control socket.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn answer(&self, request: &Json) -> Result<Json, String> {
        match request.get("do").and_then(Json::as_str) {
            Some("stats") => {
                let mut stats = self.snapshot()?.json();
                let reloads = self.reloads();
                stats["reloads"] =
                    json!({ "done": reloads.done, "refused": reloads.refused, "error": reloads.error });
                let (written, lost) = self.log.counts();
                stats["log"] = json!({ "written": written, "lost": lost });
                Ok(json!({ "stats": stats }))
            }
            Some("reload") => self.reload().map(|()| json!({})),
            Some("bypass") => {
                let on = request.get("on").and_then(Json::as_bool).ok_or("\"on\" is true or false")?;
                self.command(|asked| Command::Bypass(on, asked))?;
                self.log.info("bypass", if on { "everything passes" } else { "back to normal" }, &[]);
                Ok(json!({ "bypass": on }))
            }
            Some("stop") => {
                self.stop();
                Ok(json!({}))
            }
            _ => Err("\"do\" is stats, reload, bypass or stop".into()),
        }
    }

    /// Opens the log's file anew, for log rotation; the one before stays if that fails.
    fn reopen_log(&self) {
        let Some(path) = lock(&self.running).log.file.clone() else { return };
        match open_log(&path).and_then(|file| self.log.change_to(file)) {
            Ok(()) => self.log.info("log", "opened anew", &[]),
            Err(e) => self.log.error(
                "log",
                "can't be opened anew; the file before is kept",
                &[("why", e.to_string().into())],
            ),
        }
    }

    /// Tells the packet thread to drain and end.
    pub fn stop(&self) {
        // If it has ended already there is nothing to tell.
        let _ = lock(&self.commands).send(Command::Stop);
    }
}

/// Reads a configuration; warnings go to the log, or to standard error.
///
/// # Errors
/// Everything that is wrong with it, in words.
pub fn read(file: &Path, registry: &Registry, log: Option<&Log>) -> Result<(Config, usize), String> {
    let name = file.display().to_string();
    let bytes = fs::read(file).map_err(|e| format!("{name}: {e}"))?;
    let told = |problems: &[inprofile_config::Problem]| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let (config, warnings) = config::parse(&bytes, &name, registry).map_err(|p| {
        let errors: Vec<_> = p.into_iter().filter(|p| p.severity == Severity::Error).collect();
        told(&errors)
    })?;
    for w in &warnings {
        match log {
            Some(log) => log.warn("configuration", &w.to_string(), &[]),
            None => eprintln!("{w}"),
        }
    }
    Ok((config, warnings.len()))
}

/// Everything that is opened with privileges.
struct Open {
    io: AfPacket,
    control: UnixListener,
    place: control::Place,
    metrics: Option<TcpListener>,
    log: Option<File>,
    offloads: Offloads,
    people: People,
}

fn open_log(path: &Path) -> io::Result<File> {
    let file = File::options().append(true).create(true).open(path);
    file.map_err(|e| io::Error::new(e.kind(), format!("log {}: {e}", path.display())))
}

/// Looks first, then changes; what was changed is put back where something behind it fails.
fn open(config: &Config) -> io::Result<Open> {
    let people = privileges::look_up(config)?;
    control::look(&config.socket)?;
    let to_switch = offload::look(&config.ports, config.fix_offloads)?;
    let log = config.log.file.as_deref().map(open_log).transpose()?;
    if let (Some(log), Some(account)) = (&log, people.user) {
        // So that it can be opened anew once we are that user.
        std::os::unix::fs::fchown(log, Some(account.uid), Some(account.gid))?;
    }
    let (control, place) = control::open(&config.socket, &people)?;
    let metrics = match config.metrics {
        Some(address) => Some(
            TcpListener::bind(address)
                .map_err(|e| io::Error::new(e.kind(), format!("metrics at {address}: {e}")))?,
        ),
        None => None,
    };
    let note = config.socket.with_extension("offloads");
    let offloads = offload::switch_off(&config.ports, config.fix_offloads, &to_switch, &note, people.user)?;
    let ports = config.ports.each_ref().map(|interface| PortOptions {
        interface: interface.clone(),
        longest: config.packet.0 as u32 + AROUND,
        frames: RING,
    });
    let io = AfPacket::open(&ports, Clock::start())?;
    Ok(Open { io, control, place, metrics, log, offloads, people })
}

/// Runs until it is told to stop.
///
/// # Errors
/// What can't be opened, or what failed, in words.
pub fn run(file: &Path, fix_offloads: bool) -> Result<Ended, String> {
    let (mut config, _) = read(file, &crate::router::registry(), None)?;
    config.fix_offloads |= fix_offloads;
    let words = |e: io::Error| e.to_string();
    // The file is read again on every reload, wherever the process stands then.
    let file = fs::canonicalize(file).map_err(words)?;
    let notify = Notify::from_environment().map_err(words)?;
    let signals = Signals::take().map_err(words)?;
    let Open { mut io, control, mut place, metrics: listener, log: to, mut offloads, people } =
        open(&config).map_err(words)?;
    let mut presence = Presence::of(&config.ports, &io).map_err(words)?;
    let standings = presence.standings();
    // This thread alone: those it starts run as usual.
    let first = live::run_first();
    privileges::drop(&people, offloads.are_minded()).map_err(words)?;
    let (log, log_thread) = Log::start(config.log.level, to).map_err(words)?;
    for (port, feature) in offloads.changed() {
        log.info("offload", "switched off", &[("interface", port.into()), ("feature", feature.into())]);
    }

    let seed = seed();
    let (commands, queue) = channel();
    let (pulse, layer) = (Pulse::default(), io.layer());
    let router = Router::new(config.clone(), layer, seed);
    let hub = Arc::new(Hub {
        commands: Mutex::new(commands),
        file,
        running: Mutex::new(config.clone()),
        reloads: Mutex::default(),
        log: log.clone(),
    });
    let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(words)
    };
    let h = Arc::clone(&hub);
    start("control", Box::new(move || control::serve(&control, &people, &h)))?;
    if let Some(listener) = listener {
        let h = Arc::clone(&hub);
        start("metrics", Box::new(move || metrics::serve(&listener, &h)))?;
    }
    log.info(
        "start",
        "packets are forwarded",
        &[
            ("inside", config.ports[0].as_str().into()),
            ("outside", config.ports[1].as_str().into()),
            ("real_time", first.into()),
        ],
    );
    // The packets are this thread's, which alone may be real-time; another minds signals and the watchdog.
    let (sender, ended) = channel();
    let outcome = std::thread::scope(|scope| {
        let minder = scope.spawn(|| {
            let outcome = mind(&signals, &notify, &hub, &pulse, ended, &mut presence, &mut offloads);
            // Nobody minds the packets any more: if they haven't ended they do now.
            hub.stop();
            outcome
        });
        let beat = pulse.clone();
        let packets = || packets::run(&mut io, router, standings, seed, &queue, &beat, log.clone());
        // Without an outcome, the minder knows that it panicked.
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(packets)) {
            // Nobody to tell: then the minder's own outcome is what counts.
            let _ = sender.send(outcome.map_err(|e| e.to_string()));
        }
        drop(sender);
        minder.join().unwrap_or_else(|_| Err("the thread that minds the packets died".into()))
    });
    finish(&mut place, &mut offloads, &notify, &log, &outcome);
    drop((hub, log));
    // The control and metrics threads hold a log too: the line may be on its way for as long as this.
    let patience = Instant::now() + Duration::from_millis(200);
    while !log_thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    outcome
}

/// Waits for signals, and for the packet thread to end; tells the watchdog whether packets move.
fn mind(
    signals: &Signals,
    notify: &Notify,
    hub: &Hub,
    pulse: &Pulse,
    ended: Receiver<Result<Ended, String>>,
    presence: &mut Presence,
    offloads: &mut Offloads,
) -> Result<Ended, String> {
    let words = |e: io::Error| e.to_string();
    notify.tell(&format!("READY=1\nSTATUS={}", status(hub, presence))).map_err(words)?;
    let every = notify.watchdog().map_or(LOOK, |w| (w / 3).min(LOOK));
    let mut last = None;
    loop {
        match signals.next(every.as_millis() as i32).map_err(words)? {
            Some(libc::SIGHUP) => {
                notify.tell("RELOADING=1").map_err(words)?;
                // What is wrong has been logged and counted.
                let _ = hub.reload();
                notify.tell(&format!("READY=1\nSTATUS={}", status(hub, presence))).map_err(words)?;
            }
            Some(libc::SIGUSR1) => hub.reopen_log(),
            Some(_) => {
                notify.tell("STOPPING=1\nSTATUS=what waits is sent").map_err(words)?;
                hub.stop();
            }
            None => {}
        }
        match ended.try_recv() {
            Ok(outcome) => return outcome,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => return Err("the packet loop died".into()),
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
        }
        let tell = |port, standing| hub.command(|asked| Command::Port(port, standing, asked));
        if presence.look(offloads, &hub.log, tell).map_err(words)? {
            notify.tell(&format!("STATUS={}", status(hub, presence))).map_err(words)?;
        }
        // Tied to the packets: a loop that hangs is no sign of life, whatever this thread does.
        let now = pulse.count();
        if last != Some(now) {
            last = Some(now);
            if notify.watchdog().is_some() {
                notify.tell("WATCHDOG=1").map_err(words)?;
            }
        }
    }
}

/// How it stands, for the service manager.
fn status(hub: &Hub, presence: &Presence) -> String {
    let refused = hub
        .reloads()
        .error
        .map(|e| format!("the last reload was refused: {}", e.lines().next().unwrap_or("")));
    let trouble = presence.trouble().into_iter().chain(refused).reduce(|a, b| format!("{a}; {b}"));
    trouble.unwrap_or_else(|| "packets are forwarded".to_owned())
}

fn finish(
    place: &mut control::Place,
    offloads: &mut Offloads,
    notify: &Notify,
    log: &Log,
    outcome: &Result<Ended, String>,
) {
    if let Err(e) = offloads.restore() {
        log.error("offload", "could not be restored", &[("why", e.to_string().into())]);
    }
    match outcome {
        Ok(ended) => log.info("stop", "ended", &[("left_behind", ended.left_behind.into())]),
        Err(e) => log.error("stop", "ended by a fault", &[("why", e.as_str().into())]),
    }
    if let Err(e) = place.leave() {
        log.warn("stop", "the control socket stays", &[("why", e.to_string().into())]);
    }
    if let Err(e) = notify.tell("STOPPING=1") {
        log.warn("stop", "the service manager could not be told", &[("why", e.to_string().into())]);
    }
}

/// For the random numbers of mechanisms and the secret of the flow table: nobody outside may guess it.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Keyed by the system's random numbers.
    RandomState::new().build_hasher().finish()
}

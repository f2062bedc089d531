//! `inprofiled run`: opens everything, drops privileges, starts the threads, and then handles signals and the watchdog.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use inprofile_live::io::Io;
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::sys::{self as live, Clock};
use inprofile_live::packet::MOST_BEFORE_IP;

use crate::config::datapath::Datapath;
use crate::config::{self, Config};
use crate::hub::Hub;
use crate::isolation::Isolation;
use crate::link_loss::LinkLoss;
use crate::load::load;
use crate::log::{self, Log};
use crate::notify::Notify;
use crate::offload::{self, Offloads};
use crate::packets::{self, Command, Ended, Pulse};
use crate::presence::Presence;
use crate::privileges::{self, Accounts};
use crate::router::Router;
use crate::sys::{Signals, random};
use crate::{control, files, ports, serve};

/// Frames that the kernel may keep for a port.
const RING: u32 = 4096;
/// How often the watchdog's answer is considered, if it doesn't ask for more.
const LOOK: Duration = Duration::from_millis(250);

/// Everything that is opened with privileges.
struct Open {
    io: AfPacket,
    control: UnixListener,
    socket: control::SocketFile,
    metrics: Option<TcpListener>,
    log: Option<File>,
    offloads: Offloads,
    closed: Isolation,
    link_loss: LinkLoss,
    accounts: Accounts,
}

/// What is opened whatever the datapath.
pub(crate) struct Opened {
    pub(crate) control: UnixListener,
    pub(crate) socket: control::SocketFile,
    pub(crate) metrics: Option<TcpListener>,
    pub(crate) log: Option<File>,
    pub(crate) accounts: Accounts,
}

/// Opens the control socket, metrics and log.
pub(crate) fn open_sockets(config: &Config) -> io::Result<Opened> {
    let accounts = privileges::look_up(config)?;
    control::look(&config.socket)?;
    let log = config.log.file.as_deref().map(log::open).transpose()?;
    if let (Some(log), Some(account)) = (&log, accounts.user) {
        // So that it can be opened anew once we are that user.
        std::os::unix::fs::fchown(log, Some(account.uid), Some(account.gid))?;
    }
    let (control, socket) = control::open(&config.socket, &accounts)?;
    let metrics =
        match config.metrics {
            Some(address) => Some(TcpListener::bind(address).map_err(|e| {
                io::Error::new(e.kind(), format!("metrics at {address}: {e}{}", listening(&e)))
            })?),
            None => None,
        };
    Ok(Opened { control, socket, metrics, log, accounts })
}

/// Looks first, then changes; what was changed is put back where something behind it fails.
fn open(config: &Config) -> io::Result<Open> {
    control::look(&config.socket)?;
    let to_switch = offload::look(&config.ports, config.fix_offloads)?;
    let Opened { control, socket, metrics, log, accounts } = open_sockets(config)?;
    let note = config.socket.with_extension("offloads");
    let offloads = offload::switch_off(&config.ports, config.fix_offloads, &to_switch, &note, accounts.user)?;
    let ports = config.ports.each_ref().map(|interface| PortOptions {
        interface: interface.clone(),
        longest: config.packet.0 as u32 + MOST_BEFORE_IP as u32,
        frames: RING,
        alone: true,
    });
    let io = AfPacket::open(&ports, Clock::start())?;
    // Now that they are ours alone, and before anything is forwarded.
    let closed = Isolation::start(&config.ports, [io.binding(0)?.index()?, io.binding(1)?.index()?])?;
    let note = config.socket.with_extension("links");
    let pass_on = config.link_loss == config::LinkLoss::PassOn;
    let link_loss = LinkLoss::start(pass_on, &config.ports, &note, accounts.user)?;
    Ok(Open { io, control, socket, metrics, log, offloads, closed, link_loss, accounts })
}

/// The remedy where the system lets nobody listen at an address.
fn listening(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::AddrInUse => {
            "\n  another program listens there (`ss -ltnp` shows it): name another port in metrics.listen"
        }
        io::ErrorKind::AddrNotAvailable => {
            "\n  no interface here has this address: `ip addr` shows those there are"
        }
        io::ErrorKind::PermissionDenied => {
            "\n  ports below 1024 are the system's: name one above, such as 9474"
        }
        _ => files::remedy(e),
    }
}

/// Runs until it is told to stop.
///
/// # Errors
/// The resource that cannot be opened, or the failure, in words.
pub fn run(file: &Path, fix_offloads: bool) -> Result<Ended, String> {
    let (mut config, _) = load(file, &crate::router::registry(), None)?;
    config.fix_offloads |= fix_offloads;
    let words = |e: io::Error| e.to_string();
    // The file is read again on every reload, whatever the working directory is then; a link in between is followed again.
    let file = std::path::absolute(file).map_err(|e| files::at(file, &e).to_string())?;
    if config.datapath == Datapath::Kernel {
        return crate::kernel::run::run(config, file, fix_offloads);
    }
    let signals = Signals::take().map_err(words)?;
    let Open {
        mut io,
        control,
        mut socket,
        metrics: listener,
        log: to,
        mut offloads,
        mut closed,
        mut link_loss,
        accounts,
    } = open(&config).map_err(words)?;
    let mut presence = Presence::of(&config.ports, &io).map_err(words)?;
    let standings = presence.standings();
    // This thread alone: those it starts run as usual.
    let first = live::run_first();
    privileges::drop(&accounts, &privileges::KEPT).map_err(|e| {
        let user = config.user.as_deref().map_or_else(String::new, |user| format!("becoming {user} and "));
        format!(
            "{user}giving up privileges: {e}\n  start it as root, or without `user` as whom it should run as"
        )
    })?;
    let (log, log_thread) = Log::start(config.log.level, to).map_err(words)?;
    let notify = Arc::new(Notify::from_environment(log.clone()));
    for (port, feature) in offloads.changed() {
        log.info("offload", "switched off", &[("interface", port.into()), ("feature", feature.into())]);
    }

    for warning in ports::cut_off(&config.ports) {
        log.warn("port", &warning.text, &[("interface", warning.interface.as_str().into())]);
    }

    let seed = random();
    let (commands, queue) = channel();
    let (pulse, layer) = (Pulse::default(), io.layer());
    let router = Router::new(config.clone(), layer, seed);
    let hub = Arc::new(Hub::new(commands, file, fix_offloads, config.clone(), log.clone()));
    hub.set_links(presence.links());
    serve::start(control, accounts, listener, Arc::clone(&hub)).map_err(words)?;
    let tasks = SlowTasks::start(Arc::clone(&hub), Arc::clone(&notify)).map_err(words)?;
    hub.tell_roles(&config);
    log.info(
        "start",
        "packets are forwarded",
        &[
            ("inside", config.ports[0].as_str().into()),
            ("outside", config.ports[1].as_str().into()),
            ("real_time", first.into()),
        ],
    );
    // The packets are this thread's, which alone may be real-time; another handles signals and the watchdog.
    let (sender, ended) = channel();
    let outcome = std::thread::scope(|scope| {
        let supervisor = scope.spawn(|| {
            let supervised = Supervised {
                presence: &mut presence,
                offloads: &mut offloads,
                closed: &mut closed,
                link_loss: &mut link_loss,
            };
            let outcome = supervise(&signals, &notify, &hub, &tasks, &pulse, ended, supervised);
            // Nobody handles packets any more: if they haven't ended they do now.
            hub.stop();
            outcome
        });
        let beat = pulse.clone();
        let packets = || packets::run(&mut io, router, standings, seed, &queue, &beat, log.clone());
        // Without an outcome, the supervisor knows that it panicked.
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(packets)) {
            // Nobody to tell: then the supervisor's own outcome is what counts.
            let _ = sender.send(outcome.map_err(|e| e.to_string()));
        }
        drop(sender);
        supervisor.join().unwrap_or_else(|_| Err("the thread that supervises the packets died".into()))
    });
    // The ports stay ours until they are as before.
    finish(&mut socket, &mut offloads, &mut closed, &mut link_loss, &notify, &log, &outcome);
    drop((io, hub, tasks, notify, log));
    // The control and metrics threads hold a log too: the line may be on its way for as long as this.
    let patience = Instant::now() + Duration::from_millis(200);
    while !log_thread.is_finished() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    outcome
}

/// The state of the signal-handling thread.
struct Supervised<'a> {
    presence: &'a mut Presence,
    offloads: &'a mut Offloads,
    closed: &'a mut Isolation,
    link_loss: &'a mut LinkLoss,
}

/// Waits for signals, and for the packet thread to end; tells the watchdog whether packets move. Nothing here waits for a disk.
fn supervise(
    signals: &Signals,
    notify: &Notify,
    hub: &Hub,
    tasks: &SlowTasks,
    pulse: &Pulse,
    ended: Receiver<Result<Ended, String>>,
    supervised: Supervised<'_>,
) -> Result<Ended, String> {
    let Supervised { presence, offloads, closed, link_loss } = supervised;
    let words = |e: io::Error| e.to_string();
    let well = "packets are forwarded";
    let mut told = status(hub, presence.trouble(), well);
    notify.tell(&format!("READY=1\nSTATUS={told}"));
    let every = notify.watchdog().map_or(LOOK, |w| (w / 3).min(LOOK));
    let mut last = None;
    loop {
        match signals.next(every.as_millis() as i32).map_err(words)? {
            Some(libc::SIGHUP) => tasks.ask(SlowTask::Reload),
            Some(libc::SIGUSR1) => tasks.ask(SlowTask::ReopenLog),
            Some(_) => {
                notify.tell("STOPPING=1\nSTATUS=what waits is sent");
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
        if presence.look(offloads, closed, link_loss, &hub.log, tell).map_err(words)? {
            hub.set_links(presence.links());
        }
        let now = status(hub, presence.trouble(), well);
        if now != told {
            notify.tell(&format!("STATUS={now}"));
            told = now;
        }
        // Tied to the packets: a loop that hangs is no sign of life, whatever this thread does.
        let now = pulse.count();
        if last != Some(now) {
            last = Some(now);
            if notify.watchdog().is_some() {
                notify.tell("WATCHDOG=1");
            }
        }
    }
}

/// A signal's request that may have to wait for a disk.
pub(crate) enum SlowTask {
    Reload,
    ReopenLog,
}

/// A thread that does it.
pub(crate) struct SlowTasks(SyncSender<SlowTask>);

impl SlowTasks {
    /// So many signals are remembered while one task is done.
    const MOST: usize = 16;

    pub(crate) fn start(hub: Arc<Hub>, notify: Arc<Notify>) -> io::Result<SlowTasks> {
        let (asks, queue) = sync_channel(SlowTasks::MOST);
        std::thread::Builder::new().name("tasks".into()).spawn(move || {
            for task in queue {
                match task {
                    SlowTask::Reload => {
                        notify.tell("RELOADING=1");
                        // What is wrong has been logged and counted.
                        let _ = hub.reload();
                        notify.tell("READY=1");
                    }
                    SlowTask::ReopenLog => hub.reopen_log(),
                }
            }
        })?;
        Ok(SlowTasks(asks))
    }

    pub(crate) fn ask(&self, task: SlowTask) {
        // One too many: those that wait do the same.
        let _ = self.0.try_send(task);
    }
}

/// Its status, for the service manager: what is the matter with ports, and with the file, or that all is well.
pub(crate) fn status(hub: &Hub, trouble: Option<String>, well: &str) -> String {
    let refused = hub
        .reloads()
        .error
        .map(|e| format!("the last reload was refused: {}", e.lines().next().unwrap_or("")));
    let trouble = trouble.into_iter().chain(refused).reduce(|a, b| format!("{a}; {b}"));
    trouble.unwrap_or_else(|| well.to_owned())
}

fn finish(
    socket: &mut control::SocketFile,
    offloads: &mut Offloads,
    closed: &mut Isolation,
    link_loss: &mut LinkLoss,
    notify: &Notify,
    log: &Log,
    outcome: &Result<Ended, String>,
) {
    if let Err(e) = offloads.restore() {
        log.error("offload", "could not be restored", &[("why", e.to_string().into())]);
    }
    if outcome.is_err() {
        closed.leave_closed();
        log.warn(
            "port",
            "the ports stay closed to the machine's own IP stack, until the next start or `inprofiled release`",
            &[],
        );
    } else if let Err(e) = closed.end() {
        let why = ("why", e.to_string().into());
        log.error("port", "a port stays closed to the machine's own IP stack", &[why]);
    }
    if let Err(e) = link_loss.end() {
        log.error("link", "could not be switched on again", &[("why", e.to_string().into())]);
    }
    match outcome {
        Ok(ended) => log.info("stop", "ended", &[("left_behind", ended.left_behind.into())]),
        Err(e) => log.error("stop", "ended by a fault", &[("why", e.as_str().into())]),
    }
    if let Err(e) = socket.remove() {
        log.warn("stop", "the control socket stays", &[("why", e.to_string().into())]);
    }
    notify.tell("STOPPING=1");
}

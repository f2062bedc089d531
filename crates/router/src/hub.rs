//! The state shared by all threads but the packet thread: through it they send commands to the packet thread and reload the file.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inprofile_experiment::text::Problem;
use inprofile_live::io::link::Link;
use serde_json::{Value as Json, json};

use crate::changes;
use crate::config::{self, Config, describe};
use crate::load::load;
use crate::log::{self, Log};
use crate::packets::{self, Command, Request};
use crate::snapshot::Snapshot;

/// How long the packet thread may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The same of a reload, which a thread of its own prepares first.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

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

/// The state shared by the threads beside the packet thread.
#[derive(Debug)]
pub struct Hub {
    commands: Mutex<Sender<Command>>,
    /// The file, and what of it can only change with a restart.
    file: PathBuf,
    /// Said on the command line, whatever the file says.
    fix_offloads: bool,
    running: Mutex<Config>,
    reloads: Mutex<Reloads>,
    /// The ports' links, as the thread that handles signals saw them last.
    links: Mutex<[Option<Link>; 2]>,
    /// Logs.
    pub log: Log,
}

/// The changes in a new configuration that need a restart.
fn needs_restart(running: &Config, new: &Config) -> Vec<&'static str> {
    let fixed: [(&'static str, bool); 12] = [
        ("datapath", new.datapath == running.datapath),
        ("attach", new.attach == running.attach),
        ("pins", new.pins == running.pins),
        ("inside, outside", new.ports == running.ports),
        ("packet", new.packet == running.packet),
        ("flows", new.flows == running.flows),
        ("user", new.user == running.user),
        ("control", new.socket == running.socket && new.group == running.group),
        ("metrics", new.metrics == running.metrics),
        ("log.file", new.log.file == running.log.file),
        ("link_loss", new.link_loss == running.link_loss),
        ("fix_offloads", new.fix_offloads == running.fix_offloads),
    ];
    fixed.iter().filter(|(_, same)| !same).map(|(key, _)| *key).collect()
}

/// A lock whose holder panicked holds what it held: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Of a router that runs by this configuration, read from this file; it obeys what is sent here. `fix_offloads`: whatever the
    /// file says.
    #[must_use]
    pub fn new(
        commands: Sender<Command>,
        file: PathBuf,
        fix_offloads: bool,
        running: Config,
        log: Log,
    ) -> Hub {
        let (reloads, links) = (Mutex::default(), Mutex::default());
        Hub {
            commands: Mutex::new(commands),
            file,
            fix_offloads,
            running: Mutex::new(running),
            reloads,
            links,
            log,
        }
    }

    /// Sends a command and waits for its answer; one that isn't taken up in time is withdrawn.
    pub(crate) fn command<T>(&self, make: impl FnOnce(Request<T>) -> Command) -> Result<T, String> {
        self.command_within(ANSWER_TIMEOUT, make)
    }

    fn command_within<T>(
        &self,
        patience: Duration,
        make: impl FnOnce(Request<T>) -> Command,
    ) -> Result<T, String> {
        let (asked, waiting) = packets::ask();
        lock(&self.commands).send(make(asked)).map_err(|_| "the packet loop has ended".to_owned())?;
        waiting.answer(patience)
    }

    /// The router now.
    ///
    /// # Errors
    /// If the packet thread doesn't answer.
    pub fn snapshot(&self) -> Result<Box<Snapshot>, String> {
        let mut snapshot = self.command(Command::Snapshot)?;
        snapshot.name_all();
        let links = lock(&self.links).clone();
        for (port, link) in snapshot.ports.iter_mut().zip(links) {
            port.link = link;
        }
        Ok(snapshot)
    }

    /// The links of the ports now.
    pub(crate) fn set_links(&self, links: [Option<Link>; 2]) {
        *lock(&self.links) = links;
    }

    /// Reloads so far.
    #[must_use]
    pub fn reloads(&self) -> Reloads {
        lock(&self.reloads).clone()
    }

    /// Reads the file again and sets the router up from it; what is running stays if anything is wrong.
    ///
    /// # Errors
    /// The fault.
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
                self.tell_roles(&running);
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

    /// Says in the log what is done with what nobody has bought.
    pub(crate) fn tell_roles(&self, config: &Config) {
        describe::roles(config).iter().for_each(|role| self.log.info("role", role, &[]));
    }

    fn try_reload(&self, running: &mut Config) -> Result<(), String> {
        let (mut new, _) = load(&self.file, &crate::router::registry(), Some(&self.log))?;
        new.fix_offloads |= self.fix_offloads;
        let changed = needs_restart(running, &new);
        if !changed.is_empty() {
            let file = self.file.display();
            return Err(format!(
                "{file}: {} can't change while it runs\n  restart inprofiled, or put back what was there",
                changed.join("; ")
            ));
        }
        self.command_within(RELOAD_TIMEOUT, |asked| Command::Reload(Box::new(new.clone()), asked))??;
        self.log.set_level(new.log.level);
        *running = new;
        Ok(())
    }

    /// Answers a request that came over the control socket.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn answer(&self, request: &Json) -> Result<Json, String> {
        match request.get("do").and_then(Json::as_str) {
            Some("stats") => {
                let mut stats = self.snapshot()?.json();
                stats["version"] = env!("CARGO_PKG_VERSION").into();
                let reloads = self.reloads();
                stats["reloads"] =
                    json!({ "done": reloads.done, "refused": reloads.refused, "error": reloads.error });
                let (written, lost) = self.log.counts();
                stats["log"] = json!({ "written": written, "lost": lost });
                Ok(json!({ "stats": stats }))
            }
            Some("reload") if request.get("dry_run").and_then(Json::as_bool) == Some(true) => self.dry_run(),
            Some("customer") => {
                let name = request.get("name").and_then(Json::as_str).ok_or("\"name\" is a customer's")?;
                self.customer(name).map(|customer| json!({ "customer": customer }))
            }
            Some("reload") => {
                self.reload().map(|()| json!({ "roles": describe::roles(&lock(&self.running)) }))
            }
            Some("bypass") => {
                let on = request.get("on").and_then(Json::as_bool).ok_or("\"on\" is true or false")?;
                self.command(|asked| Command::Bypass(on, asked))?;
                self.log.info("bypass", if on { "everything passes" } else { "back to normal" }, &[]);
                Ok(json!({ "bypass": on }))
            }
            Some("stop") => self.command(Command::Stop).map(|()| json!({})),
            _ => Err("\"do\" is stats, customer, reload, bypass or stop".into()),
        }
    }

    /// The changes that a reload would make now; nothing is changed.
    fn dry_run(&self) -> Result<Json, String> {
        let running = lock(&self.running).clone();
        let name = self.file.display().to_string();
        let bytes = inprofile_experiment::text::file::read(&self.file).map_err(|e| format!("{name}: {e}"))?;
        let told = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (mut new, warnings) = config::parse(&bytes, &name, &crate::router::registry())
            .map_err(|problems| told(problems).join("\n"))?;
        new.fix_offloads |= self.fix_offloads;
        let mut changes = changes::between(&describe::json(&running), &describe::json(&new));
        if changes.is_empty() {
            changes.push("nothing changes".into());
        }
        let refused = needs_restart(&running, &new);
        let refused = (!refused.is_empty())
            .then(|| format!("{} can't change while it runs: that takes a restart", refused.join("; ")));
        Ok(json!({ "changes": changes, "warnings": told(warnings), "refused": refused }))
    }

    /// Everything about a customer: what is configured, and what became of his packets.
    fn customer(&self, name: &str) -> Result<Json, String> {
        let snapshot = self.snapshot()?;
        let mut directions = Vec::new();
        for (i, (state, config)) in snapshot.directions.iter().zip(&snapshot.config.directions).enumerate() {
            let configured =
                config.as_ref().and_then(|d| Some((d, d.customers.iter().find(|c| c.name == name)?)));
            let counts = snapshot.customers(i).find(|c| c.name == name);
            if let (Some((direction, customer)), Some(counts)) = (configured, counts) {
                directions.push(json!({
                    "direction": state.name,
                    "configured": describe::customer(customer, direction, snapshot.config.full_packet()),
                    "counts": counts.json(),
                }));
            }
        }
        if directions.is_empty() {
            let all: Vec<&str> = (0..2).flat_map(|i| snapshot.customers(i)).map(|c| c.name).collect();
            let near = inprofile_experiment::text::nearest::suggest(name, &all);
            return Err(format!("there is no customer {name}\n  {near}"));
        }
        Ok(json!({ "name": name, "uptime": snapshot.uptime, "directions": directions }))
    }

    /// Opens the log's file anew, for log rotation; the one before stays if that fails.
    pub(crate) fn reopen_log(&self) {
        let Some(path) = lock(&self.running).log.file.clone() else { return };
        match log::open(&path).and_then(|file| self.log.change_to(file)) {
            Ok(()) => self.log.info("log", "opened anew", &[]),
            Err(e) => self.log.error(
                "log",
                "can't be opened anew; the file before is kept",
                &[("why", e.to_string().into())],
            ),
        }
    }

    /// Tells the packet thread to drain and end, whenever it comes to it.
    pub fn stop(&self) {
        let (asked, _) = packets::ask();
        // If it has ended already there is nothing to tell.
        let _ = lock(&self.commands).send(Command::Stop(asked));
    }
}

//! Link loss forwarding: when one port loses its link, the other is switched off, so that the neighbour there sees the loss as
//! with a cable and can use another path. It is switched on again when the link returns.
//!
//! A port that was switched off is noted in a file beside the control socket: the router's end, or its next start after a kill,
//! switches the port on.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use inprofile_live::io::link::Link;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;
use serde_json::{Value as Json, json};

use crate::files;
use crate::log::Log;
use crate::sys::Account;

/// How long a port that was switched on may take to agree on a speed with its neighbour.
const SETTLING: Duration = Duration::from_secs(10);

/// Which link states are passed on.
#[derive(Debug)]
pub struct LinkLoss {
    on: bool,
    names: [String; 2],
    /// Ports we have switched off, by the interface's number.
    off: [Option<u32>; 2],
    /// Until when a port without carrier isn't taken for lost; and how often the carrier had changed when it was switched on.
    settling: [Option<(Instant, u32)>; 2],
    note: PathBuf,
    noted: bool,
}

impl LinkLoss {
    /// `on`: by choice. What a process before us switched off and left so is switched on now. `note`: where that is noted, for
    /// `user`, whom the process becomes.
    ///
    /// # Errors
    /// The system's error, with the interface.
    pub fn start(on: bool, names: &[String; 2], note: &Path, user: Option<Account>) -> io::Result<LinkLoss> {
        let off = noted(note, names);
        let (names, note, settling) = (names.clone(), note.to_owned(), [None; 2]);
        let mut this = LinkLoss { on, names, off, settling, noted: note.exists(), note };
        this.switch_back()?;
        if on {
            this.keep_note()?;
            files::give(&this.note, user)?;
        }
        Ok(this)
    }

    /// Whether a port is off by our doing, and not because of its own link.
    #[must_use]
    pub fn is_off(&self, port: usize) -> bool {
        self.off[port].is_some()
    }

    /// Looks at the links as they are (`None`: the interface is away), and switches what has to be.
    pub fn look(&mut self, links: [Option<(u32, &Link)>; 2], log: &Log) {
        if !self.on {
            return;
        }
        for port in [0, 1] {
            let index = links[port].map(|(index, _)| index);
            if self.off[port].is_some() && self.off[port] != index {
                // Another interface has its name now, or none.
                self.off[port] = None;
            }
        }
        for (port, other) in [(0, 1), (1, 0)] {
            let waiting = self.settling[port].is_some_and(|(until, changes)| {
                // Its carrier may have come, and gone again, before anybody looked.
                let been = links[port].is_some_and(|(_, l)| l.passes() || l.carrier_changes >= changes + 2);
                !been && Instant::now() < until
            });
            if !waiting {
                self.settling[port] = None;
            }
            let lost = self.off[port].is_none() && !links[port].is_some_and(|(_, link)| link.passes());
            let outcome = match (lost, self.off[other], links[other]) {
                (true, None, Some((index, link))) if link.up && !waiting => {
                    self.switch_off(other, index, log)
                }
                (false, Some(index), Some((_, link))) if self.off[port].is_none() => {
                    self.switch_on(other, index, link.carrier_changes, log)
                }
                _ => Ok(()),
            };
            if let Err(e) = outcome {
                let fields =
                    [("interface", self.names[other].as_str().into()), ("why", e.to_string().into())];
                log.error("link", "the loss of a link can't be passed on", &fields);
            }
        }
    }

    fn switch_off(&mut self, port: usize, index: u32, log: &Log) -> io::Result<()> {
        self.off[port] = Some(index);
        let outcome = self.keep_note().and_then(|()| Netlink::open()?.switch(index, false));
        if outcome.is_err() {
            self.off[port] = None;
            return outcome;
        }
        let text = format!("switched off, as the link at `{}` is down", self.names[1 - port]);
        log.warn("link", &text, &[("interface", self.names[port].as_str().into())]);
        Ok(())
    }

    fn switch_on(&mut self, port: usize, index: u32, changes: u32, log: &Log) -> io::Result<()> {
        Netlink::open()?.switch(index, true)?;
        self.off[port] = None;
        self.settling[port] = Some((Instant::now() + SETTLING, changes));
        let text = format!("switched on, as the link at `{}` is up", self.names[1 - port]);
        log.info("link", &text, &[("interface", self.names[port].as_str().into())]);
        self.keep_note()
    }

    fn keep_note(&mut self) -> io::Result<()> {
        self.noted = true;
        let one = |(name, index): (&String, Option<u32>)| Some(json!({ "port": name, "index": index? }));
        let all: Vec<Json> = self.names.iter().zip(self.off).filter_map(one).collect();
        files::write(&self.note, &Json::Array(all).to_string())
    }

    fn switch_back(&mut self) -> io::Result<()> {
        let mut outcome = Ok(());
        for (name, off) in self.names.iter().zip(&mut self.off) {
            let Some(index) = *off else { continue };
            match Netlink::open().and_then(|n| n.switch(index, true)) {
                Ok(()) => *off = None,
                Err(e) => {
                    let text =
                        format!("interface `{name}` stays switched off: {e}\n  `ip link set {name} up`");
                    outcome = outcome.and(Err(io::Error::new(e.kind(), text)));
                }
            }
        }
        outcome
    }

    /// Switches on again what we have switched off, at both ports even if one fails. Once is enough.
    ///
    /// # Errors
    /// The first failure, with the interface; then the note stays for the next start.
    pub fn end(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.noted) {
            return Ok(());
        }
        self.switch_back()?;
        files::forget(&self.note)
    }
}

/// The settings that an earlier process switched off, of interfaces that still exist.
fn noted(note: &Path, names: &[String; 2]) -> [Option<u32>; 2] {
    let text = files::read(note).unwrap_or_default();
    let Ok(Json::Array(list)) = serde_json::from_str(&text) else { return [None; 2] };
    names.each_ref().map(|name| {
        let item = list.iter().find(|i| i.get("port").and_then(Json::as_str) == Some(name))?;
        let index = u32::try_from(item.get("index")?.as_u64()?).ok()?;
        (interface_index(name).ok() == Some(index)).then_some(index)
    })
}

impl Drop for LinkLoss {
    fn drop(&mut self) {
        if let Err(e) = self.end() {
            eprintln!("inprofiled: {e}");
        }
    }
}
